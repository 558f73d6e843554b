/** Every memory that the context could have held: in or out, and the one reason. */

import { useState } from "preact/hooks";
import type { Schemas } from "../../api";
import type { Context } from "../../contexts";
import { useDebounced } from "../../debounce";
import { Button } from "../../parts/Button";
import { Chip } from "../../parts/Chip";
import { MemoryText } from "../../parts/MemoryText";
import { NotConsidered } from "../../parts/NotConsidered";
import { Tag, type Tone } from "../../parts/Tag";
import { VirtualList } from "../../parts/VirtualList";
import { sortedCandidates } from "../../unseen";

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
  textless: "no text",
  seen: "given already",
  damaged: "damaged",
};

const NOT_FOUND = { code: "not found", why: "It has too little in common with the question, in words and meaning." };

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
  const [words, setWords] = useState("");
  const [wide, setWide] = useState(false);
  const sought = useDebounced(words.trim()).toLowerCase();
  const says = (each: Candidate) => !sought || each.text.toLowerCase().includes(sought);
  const sorted = sortedCandidates(
    told.candidates.filter((each) => says(each) && (shown === "all" || (shown === "in") === (each.section !== null))),
  );
  // What hardly bears on the question is folded, unless somebody looks for it.
  const folded = !wide && !sought && sorted.weak.length > 0;
  const rows = folded ? sorted.shown : [...sorted.shown, ...sorted.weak];
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
      <label class="field pad">
        <span class="unheard">Find a memory among the candidates</span>
        <input
          type="search"
          value={words}
          placeholder="Words of a memory that you expected"
          onInput={(event) => setWords(event.currentTarget.value)}
        />
      </label>
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
      {folded ? (
        <p class="pad">
          <Button small tone="quiet" onClick={() => setWide(true)}>
            {sorted.weak.length.toLocaleString()} hardly relevant
          </Button>
        </p>
      ) : null}
      {sought ? (
        <NotConsidered
          words={sought}
          scope={told.scope}
          at={told.at}
          known={new Set(told.candidates.map((each) => each.id))}
          otherwise={() => NOT_FOUND}
          none="No other memory says it."
        />
      ) : null}
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
          <span class="small soft cut">
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
