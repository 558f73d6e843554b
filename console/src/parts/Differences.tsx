/** Memories that differ, each with what it said and says. */

import { Link } from "wouter-preact";
import type { Schemas } from "../api";
import { changesOf } from "../changes";
import { Changes } from "../screens/review/Changes";
import { OPS } from "../screens/review/labels";
import { Tag, type Tone } from "./Tag";
import { seen } from "./seen";

export interface Differing {
  op?: string;
  before: Schemas["Record"] | null;
  after: Schemas["Record"] | null;
}

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
        return (
          <li key={side.id} class="differing">
            <div class="line small">
              <Tag tone={TONES[word] ?? "plain"}>{OPS[word] ?? word}</Tag>
              <Link href={`/memories/${side.id}`}>
                {seen(side.key ?? (side.text.split("\n")[0]?.slice(0, TITLE) || `${side.tier} ${side.kind}`))}
              </Link>
            </div>
            <Changes steps={[step]} />
          </li>
        );
      })}
    </ol>
  );
}
