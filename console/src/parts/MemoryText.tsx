/** The words of a memory: always text, never markup, with invisible characters drawn. */

import { useState } from "preact/hooks";
import { Pointed } from "./Pointed";
import { seen } from "./seen";
import type { Span } from "./spans";

interface Props {
  text: string | null | undefined;
  /** On one line, cut where there is no more room. */
  one?: boolean;
  /** Characters after which the rest waits for a click. */
  limit?: number;
  /** Words that were sought, as one group; they are marked. */
  marks?: RegExp | null;
  /** Words that are pointed at, each with the reason. */
  spans?: readonly Span[];
  class?: string;
}

// More than a line can show; the rest of a long text is not drawn for it.
const LINE = 400;

export function MemoryText({ text, one, limit = 4_000, marks, spans, class: own = "" }: Props) {
  const [whole, setWhole] = useState(false);
  if (text === null || text === undefined || text === "") return <span class="faint">no text</span>;
  const drawn = (part: string) => {
    if (spans?.length) return <Pointed text={part} spans={spans} />;
    if (!marks) return seen(part);
    return part.split(marks).map((piece, at) => (at % 2 ? <mark>{seen(piece)}</mark> : <>{seen(piece)}</>));
  };
  if (one)
    return (
      <span class={`memory-text one ${own}`} dir="auto">
        {drawn(text.slice(0, LINE).replace(/\s*\n\s*/g, " ⏎ "))}
      </span>
    );
  const cut = !whole && text.length > limit;
  return (
    <>
      <span class={`memory-text ${own}`} dir="auto">
        {drawn(cut ? text.slice(0, limit) : text)}
        {cut ? "…" : ""}
      </span>
      {cut ? (
        <button type="button" class="more-text" onClick={() => setWhole(true)}>
          Show all {text.length.toLocaleString()} characters
        </button>
      ) : null}
    </>
  );
}
