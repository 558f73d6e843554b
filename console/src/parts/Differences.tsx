/** Memories that differ, each with what it said and says. */

import type { Schemas } from "../api";
import { BASE } from "../address";
import { Changes } from "../screens/review/Changes";
import { Tag, type Tone } from "./Tag";
import { seen } from "./seen";

export interface Differing {
  id: string;
  op?: string;
  before: Schemas["Memory"] | null;
  after: Schemas["Memory"] | null;
  changed: Schemas["FieldChange"][];
}

const TONES: Record<string, Tone> = { "comes back": "good", new: "good", goes: "bad" };

export function Differences({ items, label }: { items: readonly Differing[]; label: string }) {
  return (
    <ol class="plain-list stack" aria-label={label}>
      {items.map((each) => {
        const side = each.after ?? each.before;
        if (!side) return null;
        const word = each.op ?? (each.before ? (each.after ? "changes" : "goes") : "new");
        // Of what is gone its words say enough.
        const fields = each.after ? each.changed : each.changed.filter((change) => change.field === "text");
        const step = { op: word, id: each.id, version: side.version, before: each.before, after: side, changed: fields };
        return (
          <li key={each.id} class="differing">
            <div class="line small">
              <Tag tone={TONES[word] ?? "plain"}>{word}</Tag>
              <a href={`${BASE}/memories/${each.id}`}>{seen(side.key ?? `${side.tier} ${side.kind}`)}</a>
              <span class="faint mono">{each.id.slice(0, 8)}</span>
            </div>
            <Changes steps={[step]} />
          </li>
        );
      })}
    </ol>
  );
}
