/** Every memory that the context could have held: in or out, and the one reason. */

import { useState } from "preact/hooks";
import type { Schemas } from "../../api";
import type { Context } from "../../contexts";
import { Chip } from "../../parts/Chip";
import { MemoryText } from "../../parts/MemoryText";
import { Tag, type Tone } from "../../parts/Tag";
import { VirtualList } from "../../parts/VirtualList";

type Candidate = Schemas["Considered"];

const BAD = new Set(["trust", "injection", "secret", "damaged", "quarantine"]);
/** What a code means, in the words of a table. */
const WORDS: Record<string, string> = {
  budget: "no room",
  cap: "enough of its kind",
  repeat: "said already",
  expired: "expired",
  superseded: "replaced",
  retired: "retired",
  archived: "archived",
  sensitive: "sensitive",
  trust: "not trusted enough",
  weak: "hardly relevant",
  unkeyed: "state without a key",
  quarantine: "waits for review",
  injection: "gives orders",
  secret: "contains a secret",
};

export function wordOf(candidate: Candidate): string {
  return WORDS[candidate.code] ?? candidate.code;
}

export function toneOf(candidate: Candidate): Tone {
  if (candidate.section !== null) return "good";
  return BAD.has(candidate.code) ? "bad" : "plain";
}

interface Props {
  told: Context;
  chosen: string;
  onChoose: (id: string) => void;
}

export function Candidates({ told, chosen, onChoose }: Props) {
  const [shown, show] = useState<"all" | "in" | "out">("all");
  const counts = { in: 0, out: 0 };
  for (const each of told.candidates) counts[each.section === null ? "out" : "in"] += 1;
  const rows = told.candidates.filter((each) => shown === "all" || (shown === "in") === (each.section !== null));
  return (
    <section class="card lab-candidates" aria-label="Candidates">
      <div class="line lab-candidates-head">
        <h2>Candidates</h2>
        <span class="spread" />
        {(["all", "in", "out"] as const).map((each) => (
          <Chip key={each} on={shown === each} onClick={() => show(each)}>
            {each} <span class="num">{each === "all" ? told.candidates.length : counts[each]}</span>
          </Chip>
        ))}
      </div>
      <VirtualList
        key={shown}
        label="Candidates"
        class="lab-candidates-list"
        count={rows.length}
        estimate={58}
        keyOf={(index) => rows[index]?.id ?? index}
        row={(index) => {
          const each = rows[index];
          return each ? <Row key={each.id} candidate={each} on={each.id === chosen} onChoose={onChoose} /> : null;
        }}
      />
    </section>
  );
}

function Row({ candidate, on, onChoose }: { candidate: Candidate; on: boolean; onChoose: (id: string) => void }) {
  return (
    <div role="listitem">
      <button
        type="button"
        class={`lab-candidate ${on ? "on" : ""}`}
        aria-pressed={on}
        onClick={() => onChoose(on ? "" : candidate.id)}
      >
        <MemoryText text={candidate.text || "[erased]"} one />
        {candidate.now === null ? null : (
          <span class="small soft">
            now: <MemoryText text={candidate.now || "[erased]"} one />
          </span>
        )}
        <span class="line small soft">
          <Tag tone={toneOf(candidate)} title={candidate.why}>
            {candidate.section === null ? "out" : "in"}
          </Tag>
          <span class={`of-${candidate.section ?? ""}`}>{wordOf(candidate)}</span>
          <span class="spread" />
          {candidate.source ? <span class="faint">{candidate.source}</span> : null}
          <span class="num">{candidate.score === null ? "" : candidate.score.toFixed(2)}</span>
        </span>
      </button>
    </div>
  );
}
