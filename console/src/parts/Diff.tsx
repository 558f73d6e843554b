/** What was and what would be, word by word, with invisible characters drawn. */

import "./diff.css";
import { useMemo } from "preact/hooks";
import { diffWordsWithSpace } from "diff";
import { seen } from "./seen";

interface Props {
  before: string | null | undefined;
  after: string | null | undefined;
}

// Milliseconds that a comparison may take; then both sides are shown whole.
const PATIENCE = 150;
const MOST = 20_000;

export function Diff({ before, after }: Props) {
  const was = before ?? "";
  const now = after ?? "";
  const parts = useMemo(() => compared(was, now), [was, now]);
  return (
    <div class="diff">
      {was ? (
        <div class="was" dir="auto">
          <span class="unheard">Before: </span>
          {parts ? parts.filter((each) => !each.added).map((each) => (each.removed ? <del>{seen(each.value)}</del> : <span>{seen(each.value)}</span>)) : seen(was)}
        </div>
      ) : null}
      {now ? (
        <div class="now" dir="auto">
          <span class="unheard">After: </span>
          {parts ? parts.filter((each) => !each.removed).map((each) => (each.added ? <ins>{seen(each.value)}</ins> : <span>{seen(each.value)}</span>)) : seen(now)}
        </div>
      ) : null}
    </div>
  );
}

function compared(was: string, now: string) {
  if (!was || !now || was.length + now.length > MOST) return null;
  return diffWordsWithSpace(was, now, { timeout: PATIENCE }) ?? null;
}
