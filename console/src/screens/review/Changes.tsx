/** What a proposal would change, step by step: its words first, then the other fields. */

import type { ComponentChildren } from "preact";
import type { Schemas } from "../../api";
import { Diff } from "../../parts/Diff";
import { MemoryText } from "../../parts/MemoryText";
import { Tag } from "../../parts/Tag";
import { Time } from "../../parts/Time";
import { seen } from "../../parts/seen";
import { OPS, type Step } from "./words";

// Characters after which the words may have to be scrolled, and so take the focus.
const LONG = 800;

export function Changes({ steps }: { steps: readonly Step[] }) {
  return (
    <>
      {steps.map((step) => (
        <div key={`${step.id}/${step.op}`} class="proposal-step">
          {steps.length > 1 ? <StepHead step={step} /> : null}
          <Words step={step} />
          <Fields step={step} />
        </div>
      ))}
    </>
  );
}

function StepHead({ step }: { step: Step }) {
  return (
    <div class="line small">
      <Tag>{OPS[step.op] ?? step.op}</Tag>
      <span class="soft">
        {step.after.tier} {step.after.kind}
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

function Words({ step }: { step: Step }) {
  const text = step.changed.find((each) => each.field === "text");
  if (text) return <Diff before={shown(text.before)} after={shown(text.after)} />;
  const words = step.after.text ?? step.before?.text;
  return (
    <div
      class="proposal-words"
      tabIndex={(words ?? "").length > LONG ? 0 : undefined}
      role="group"
      aria-label="What it says"
    >
      <MemoryText text={words} />
    </div>
  );
}

function Fields({ step }: { step: Step }) {
  const others = step.changed.filter((each) => each.field !== "text" && meant(each, step));
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

function meant(change: Schemas["FieldChange"], step: Step): boolean {
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
