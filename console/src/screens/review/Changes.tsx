/** What a proposal would change, step by step: its words first, then the other fields. */

import type { ComponentChildren } from "preact";
import type { Schemas } from "../../api";
import { Diff } from "../../parts/Diff";
import { MemoryText } from "../../parts/MemoryText";
import { Tag } from "../../parts/Tag";
import { Time } from "../../parts/Time";
import { seen } from "../../parts/seen";
import { tierWord } from "../../words";
import { unitsOf, type Span } from "../../parts/spans";
import type { Change } from "../../changes";
import { changed, codeName, OPS, type Step } from "./labels";

// Characters after which the words may have to be scrolled, and so take the focus.
const LONG = 800;

interface Props {
  steps: readonly Step[];
  /** Words that gates point at. */
  flagged?: readonly Schemas["Flagged"][];
  /** Memories whose changes are left out, and how to leave out another; without it nothing can be. */
  leftOut?: ReadonlySet<string>;
  onToggle?: (memory: string) => void;
}

export function Changes({ steps, flagged = [], leftOut, onToggle }: Props) {
  return (
    <>
      {steps.map((step) => (
        <div
          key={`${step.after.id}/${step.op}`}
          class={leftOut?.has(step.after.id) ? "proposal-step left-out" : "proposal-step"}
        >
          {steps.length > 1 ? <StepHead step={step} taken={!leftOut?.has(step.after.id)} onToggle={onToggle} /> : null}
          <Words step={step} spans={spansOf(step, flagged)} />
          <Fields step={step} />
        </div>
      ))}
    </>
  );
}

function spansOf(step: Step, flagged: readonly Schemas["Flagged"][]): Span[] {
  const text = step.after.text ?? "";
  return flagged
    .filter((finding) => finding.memory === step.after.id)
    .map(({ start, end, gate, code }) => ({
      start: unitsOf(text, start),
      end: unitsOf(text, end),
      title: `${gate}: ${codeName(code)}`,
    }));
}

function StepHead({ step, taken, onToggle }: { step: Step; taken: boolean; onToggle?: (memory: string) => void }) {
  return (
    <div class="line small">
      {onToggle ? (
        <label class="tick">
          <input type="checkbox" checked={taken} onChange={() => onToggle(step.after.id)} />
          <span class="unheard">Make this change:</span>
        </label>
      ) : null}
      <Tag>{OPS[step.op] ?? step.op}</Tag>
      <span class="soft">
        {tierWord(step.after.tier)} {step.after.kind}
        {step.after.key ? (
          <>
            {" "}
            <b>{seen(step.after.key)}</b>
          </>
        ) : null}
      </span>
    </div>
  );
}

function Words({ step, spans }: { step: Step; spans: readonly Span[] }) {
  const text = changed(step).find((each) => each.field === "text");
  if (text) return <Diff before={shown(text.before)} after={shown(text.after)} spans={spans} />;
  const words = step.after.text ?? step.before?.text;
  return (
    <div
      class="proposal-words"
      tabIndex={(words ?? "").length > LONG ? 0 : undefined}
      role="group"
      aria-label="What it says"
    >
      <MemoryText text={words} spans={spans} />
    </div>
  );
}

/** Fields of a step that differ, without its words. */
export function Fields({ step }: { step: Step }) {
  const others = changed(step).filter((each) => each.field !== "text" && meant(each, step));
  if (!others.length) return null;
  return (
    <dl class="facts proposal-fields">
      {others.map((each) => (
        <>
          <dt>{each.field.replaceAll("_", " ")}</dt>
          <dd>
            {shown(each.before) ? (
              <>
                <span class="soft">{told(each.field, each.before)}</span> <span aria-label="becomes">→</span>{" "}
              </>
            ) : null}
            {shown(each.after) ? told(each.field, each.after) : <span class="faint">nothing</span>}
          </dd>
        </>
      ))}
    </dl>
  );
}

// Of what is new, only what is not said elsewhere.
const SAID = new Set([
  "tier",
  "kind",
  "scope",
  "status",
  "author",
  "created_at",
  "text_by",
  "text_at",
  "content_type",
  "source",
  "trust",
  "confidence",
  "importance",
  "stability",
  "sensitivity",
  "key",
  "evidence",
  "session",
]);

function meant(change: Change, step: Step): boolean {
  return step.before !== null || !SAID.has(change.field);
}

function told(field: string, value: unknown): ComponentChildren {
  return /_at$/.test(field) && typeof value === "string" ? <Time at={value} /> : seen(shown(value));
}

export function shown(value: unknown): string {
  if (value === null || value === undefined) return "";
  if (Array.isArray(value)) return value.map(shown).join(", ");
  return typeof value === "string" ? value : JSON.stringify(value);
}
