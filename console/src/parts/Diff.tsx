/** What was and what would be, word by word, with invisible characters drawn. */

import "./diff.css";
import { useMemo } from "preact/hooks";
import { diffWordsWithSpace, type Change } from "diff";
import { Pointed } from "./Pointed";
import { seen } from "./seen";
import type { Span } from "./spans";

interface Props {
  before: string | null | undefined;
  after: string | null | undefined;
  /** Words of what it says afterwards that are pointed at. */
  spans?: readonly Span[];
}

const NO_SPANS: readonly Span[] = [];

// Milliseconds that a comparison may take; then both sides are shown whole.
const PATIENCE = 150;
const MOST = 20_000;
// Characters after which a side may have to be scrolled, and so takes the focus.
const LONG = 800;

export function Diff({ before, after, spans = NO_SPANS }: Props) {
  const was = before ?? "";
  const now = after ?? "";
  const parts = useMemo(() => compared(was, now), [was, now]);
  return (
    <div class="diff">
      {was ? (
        <div class="was" dir="auto" {...reachable("Before", was)}>
          <span class="unheard">Before: </span>
          {parts
            ? parts
                .filter((each) => !each.added)
                .map((each) => (each.removed ? <del>{seen(each.value)}</del> : <span>{seen(each.value)}</span>))
            : seen(was)}
        </div>
      ) : null}
      {now ? (
        <div class="now" dir="auto" {...reachable("After", now)}>
          <span class="unheard">After: </span>
          {parts ? (
            <After parts={parts.filter((part) => !part.removed)} spans={spans} />
          ) : (
            <Pointed text={now} spans={spans} />
          )}
        </div>
      ) : null}
    </div>
  );
}

function After({ parts, spans }: { parts: readonly Change[]; spans: readonly Span[] }) {
  let offset = 0;
  return (
    <>
      {parts.map((part) => {
        const drawn = <Pointed text={part.value} offset={offset} spans={spans} />;
        offset += part.value.length;
        return part.added ? <ins>{drawn}</ins> : <span>{drawn}</span>;
      })}
    </>
  );
}

/** What lets a long side be scrolled by keys. */
function reachable(name: string, text: string) {
  return text.length > LONG || text.split("\n").length > 12
    ? ({ tabIndex: 0, role: "group", "aria-label": name } as const)
    : {};
}

function compared(was: string, now: string) {
  if (!was || !now || was.length + now.length > MOST) return null;
  return diffWordsWithSpace(was, now, { timeout: PATIENCE }) ?? null;
}
