/** Memories that differ, each with what it said and says. */

import { useState } from "preact/hooks";
import { Link } from "wouter-preact";
import type { Schemas } from "../api";
import { changesOf } from "../changes";
import type { Loaded } from "../load";
import { Changes } from "../screens/review/Changes";
import { OPS } from "../screens/review/labels";
import { Button } from "./Button";
import { Shown } from "./States";
import { Tag, type Tone } from "./Tag";
import { seen } from "./seen";

export interface Differing {
  op?: string;
  before: Schemas["Record"] | null;
  after: Schemas["Record"] | null;
  /** The page about it, if not that of its id; null where it has none. */
  page?: string | null;
  /** What to heed of it, in a word. */
  flag?: string;
}

// Differences that are read at once.
export const SHOWN = 100;

const TONES: Record<string, Tone> = { "comes back": "good", added: "good", new: "good", removed: "bad", goes: "bad" };

// Characters of a memory's first line that stand for it.
const TITLE = 80;

export function Differences({ items, label }: { items: readonly Differing[]; label: string }) {
  return (
    <ol class="plain-list stack" aria-label={label}>
      {items.map((each) => {
        const side = each.after ?? each.before;
        if (!side) return null;
        const word = each.op ?? (each.before ? (each.after ? "changed" : "removed") : "added");
        const changed = changesOf(each.before, each.after);
        // Of what is gone its words say enough.
        const fields = each.after ? changed : changed.filter((change) => change.field === "text");
        const step = { op: word, before: each.before, after: side, changed: fields };
        const title = seen(side.key ?? (side.text.split("\n")[0]?.slice(0, TITLE) || `${side.tier} ${side.kind}`));
        const page = each.page === undefined ? `/memories/${side.id}` : each.page;
        return (
          <li key={side.id} class="differing">
            <div class="line small">
              <Tag tone={TONES[word] ?? "plain"}>{OPS[word] ?? word}</Tag>
              {page === null ? <span>{title}</span> : <Link href={page}>{title}</Link>}
              {each.flag ? <Tag tone="bad">{each.flag}</Tag> : null}
            </div>
            <Changes steps={[step]} />
          </li>
        );
      })}
    </ol>
  );
}

interface Paged<T> {
  /** A hook: read some differences. */
  useRead: (offset: number, limit: number) => Loaded<T>;
  /** Return the differences of what was read. */
  itemsOf: (data: T) => readonly Differing[];
  from: number;
  to: number;
  label: string;
}

/** The first differences between two places of a list, and what reads the ones after them. */
export function PagedDifferences<T>({ useRead, itemsOf, from, to, label }: Paged<T>) {
  const [more, setMore] = useState(false);
  const end = Math.min(to, from + SHOWN);
  const found = useRead(from, SHOWN);
  const left = to - end;
  return (
    <>
      <Shown of={found} rows={4}>
        {(data) => <Differences items={itemsOf(data).slice(0, end - from)} label={label} />}
      </Shown>
      {left > 0 && !more ? (
        <Button onClick={() => setMore(true)}>
          Show {Math.min(left, SHOWN).toLocaleString()} of {left.toLocaleString()} more
        </Button>
      ) : null}
      {left > 0 && more ? (
        <PagedDifferences
          useRead={useRead}
          itemsOf={itemsOf}
          from={end}
          to={to}
          label={`${label.split(", from ")[0]}, from ${end + 1}`}
        />
      ) : null}
    </>
  );
}
