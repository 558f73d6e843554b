/** A conflict: what both sides began from, main and the branch side by side, and which of them counts. */

import { Link } from "wouter-preact";
import type { Schemas } from "../../api";
import { changesOf } from "../../changes";
import { MemoryText } from "../../parts/MemoryText";
import { Tag } from "../../parts/Tag";
import { Time } from "../../parts/Time";
import { Who } from "../../parts/Who";
import { seen } from "../../parts/seen";
import { Fields } from "../review/Changes";
import { codeName, firstWords } from "../review/labels";
import { asOnMain, type BranchChange, type Side } from "./words";

interface Props {
  change: BranchChange;
  /** The side that was chosen; undefined while it is undecided. */
  side: Side | undefined;
  /** Without it nothing can be chosen. */
  onSide: ((side: Side) => void) | undefined;
}

const CHOICES = [
  ["main", "Keep what main has"],
  ["branch", "Take what the branch has"],
] as const;

export function Conflict({ change, side, onSide }: Props) {
  const { base, main, branch } = change;
  const title = branch.key ?? (firstWords((main ?? branch).text) || branch.kind);
  const after = asOnMain(branch, main);
  const others = main ? changesOf(main, after).filter((each) => each.field !== "text") : [];
  return (
    <section class="card pad stack conflict" aria-label={`Conflict: ${title}`}>
      <div class="line small">
        <Tag tone="warn">conflict</Tag>
        {change.of && main ? <Link href={`/memories/${change.of}`}>{seen(title)}</Link> : <span>{seen(title)}</span>}
        {change.instructs ? <Tag tone="bad">{codeName("addressed_to_model")}</Tag> : null}
      </div>
      {base ? (
        <p class="soft small">
          Both began from: <MemoryText text={base.text} one /> <By memory={base} />
        </p>
      ) : null}
      <div class="sides">
        <Said title="On main" memory={main} on={side === "main"} />
        <Said title="On the branch" memory={branch} on={side === "branch"} removed={change.op === "removed"} />
      </div>
      {others.length && change.op !== "removed" ? (
        <>
          <h3>Also different, main → branch</h3>
          <Fields step={{ op: "replace", before: main, after, changed: others }} />
        </>
      ) : null}
      {onSide ? (
        <fieldset class="choices">
          <legend>What counts</legend>
          {CHOICES.map(([value, word]) => (
            <label key={value}>
              <input
                type="radio"
                name={`side of ${change.id}`}
                checked={side === value}
                disabled={value === "branch" && main === null}
                onChange={() => onSide(value)}
              />
              {word}
            </label>
          ))}
          <span class="soft small">{side ? "The next merge does this." : "Undecided: it stays on the branch."}</span>
        </fieldset>
      ) : null}
    </section>
  );
}

function By({ memory }: { memory: Schemas["Record"] }) {
  return (
    <span class="soft small">
      <Who name={memory.text_by} />, <Time at={memory.text_at} />
    </span>
  );
}

function Said({
  title,
  memory,
  on,
  removed,
}: {
  title: string;
  memory: Schemas["Record"] | null;
  on: boolean;
  removed?: boolean;
}) {
  const ended = removed ? "removed" : memory && memory.status !== "active" ? memory.status : "";
  return (
    <div class={on ? "side on" : "side"} role="group" aria-label={title}>
      <div class="line small">
        <b>{title}</b>
        {ended ? <Tag tone="bad">{ended}</Tag> : null}
      </div>
      {memory ? (
        <>
          <p>
            <MemoryText text={memory.text} />
          </p>
          <By memory={memory} />
        </>
      ) : (
        <p class="soft">It is not there any more.</p>
      )}
    </div>
  );
}
