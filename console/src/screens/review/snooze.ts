/** Proposals that this browser hides until a time; they go on waiting for everybody else. */

import { signal } from "@preact/signals";

const NAME = "keepward.snoozed";
const HOUR_MS = 3_600_000;
const MORNING = 9;
// The longest that a timer of a browser takes.
const LONGEST_MS = 2 ** 31 - 1;

/** When each hidden proposal is shown again, in milliseconds since 1970, by id. */
export const snoozed = signal<ReadonlyMap<string, number>>(new Map());

let due: ReturnType<typeof setTimeout> | undefined;

/** Return those that are hidden at `now`. */
export function stillSnoozed(all: ReadonlyMap<string, number>, now: number): Map<string, number> {
  return new Map([...all].filter(([, until]) => until > now));
}

/** Return the times that are offered, as title and milliseconds since 1970; mornings are the reader's. */
export function snoozeTimes(now: Date): [string, number][] {
  const morning = (days: number) =>
    new Date(now.getFullYear(), now.getMonth(), now.getDate() + days, MORNING).getTime();
  return [
    ["for an hour", now.getTime() + HOUR_MS],
    ["until tomorrow", morning(1)],
    ["for a week", morning(7)],
  ];
}

/** Hide proposals until a time; null shows them at once. */
export function snooze(ids: readonly string[], until: number | null): void {
  const next = new Map(snoozed.peek());
  for (const id of ids) {
    if (until === null) next.delete(id);
    else next.set(id, until);
  }
  keep(next);
}

function keep(all: ReadonlyMap<string, number>): void {
  const now = Date.now();
  const next = stillSnoozed(all, now);
  snoozed.value = next;
  try {
    localStorage.setItem(NAME, JSON.stringify([...next]));
  } catch {
    // Without room they are hidden until the page is loaded again.
  }
  clearTimeout(due);
  if (next.size)
    due = setTimeout(() => keep(snoozed.peek()), Math.min(LONGEST_MS, Math.min(...next.values()) - now + 1));
}

/** Read what was hidden before, here or in another tab. */
export function readSnoozed(): void {
  try {
    keep(new Map(JSON.parse(localStorage.getItem(NAME) ?? "[]") as [string, number][]));
  } catch {
    keep(new Map());
  }
}
