/** A moment in the reader's zone, with UTC on hover. */

import { signal } from "@preact/signals";

/** The present, in milliseconds; moves every half minute so that what is relative stays true. */
export const present = signal(Date.now());
setInterval(() => {
  present.value = Date.now();
}, 30_000);

const DAY = 86_400_000;
const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });
const date = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short" });
const dated = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short", year: "numeric" });

/** Return milliseconds as a person says them: `4 min`, `19 h`, `3 days`. */
export function span(milliseconds: number): string {
  const minutes = Math.abs(milliseconds) / 60_000;
  if (minutes < 1) return "less than a minute";
  if (minutes < 60) return `${Math.round(minutes)} min`;
  if (minutes < 48 * 60) return `${Math.round(minutes / 60)} h`;
  return `${Math.round(minutes / 1440)} days`;
}

function relative(at: number): string {
  const past = present.value - at;
  if (Math.abs(past) < 60_000) return "just now";
  return past > 0 ? `${span(past)} ago` : `in ${span(past)}`;
}

function absolute(at: number): string {
  const then = new Date(at);
  const near = Math.abs(Date.now() - at) < 180 * DAY;
  return `${(near ? date : dated).format(then)} ${clock.format(then)}`;
}

/** `short` says how long ago; otherwise the day and the time. */
export function Time({ at, short }: { at: string | null | undefined; short?: boolean }) {
  if (!at) return <span class="faint">never</span>;
  const value = Date.parse(at);
  if (Number.isNaN(value)) return <span>{at}</span>;
  const utc = `${new Date(value).toISOString().slice(0, 19).replace("T", " ")} UTC`;
  return (
    <time dateTime={at} title={short ? `${absolute(value)} · ${utc}` : utc}>
      {short ? relative(value) : absolute(value)}
    </time>
  );
}
