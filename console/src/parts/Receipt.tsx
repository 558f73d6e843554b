/** A receipt: the record of one decision, opened over the page. */

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { useGet } from "../load";
import { Damage } from "./Damage";
import { Dialog } from "./Dialog";
import { Shown } from "./States";
import { Tag } from "./Tag";
import { Time } from "./Time";
import { Who } from "./Who";
import { said, seen } from "./seen";

/** A button that opens a receipt. */
export function ReceiptLink({ id, children = "Receipt" }: { id: string; children?: ComponentChildren }) {
  const [open, setOpen] = useState(false);
  return (
    <>
      <button type="button" class="more-text small" onClick={() => setOpen(true)}>
        {children}
      </button>
      {open ? <ReceiptDialog id={id} onClose={() => setOpen(false)} /> : null}
    </>
  );
}

const SAID = new Set([
  "id",
  "tenant",
  "kind",
  "at",
  "actor",
  "policy",
  "head",
  "reasons",
  "changes",
  "explanation",
  "damage",
]);

/** A value of a receipt as a person reads it; what has parts within parts stays as it is. */
function Told({ name, value }: { name: string; value: unknown }): ComponentChildren {
  if (value === null || value === undefined || (typeof value === "object" && !Object.keys(value).length))
    return <span class="faint">none</span>;
  if (typeof value === "string")
    return /(_at|_until|^at)$/.test(name) || /^\d{4}-\d\d-\d\dT\d\d:\d\d/.test(value) ? (
      <Time at={value} />
    ) : (
      <>{seen(value)}</>
    );
  if (typeof value !== "object") return <>{JSON.stringify(value)}</>;
  const parts = Object.entries(value);
  if (parts.some(([, part]) => typeof part === "object" && part !== null))
    return <>{seen(JSON.stringify(value, null, 1))}</>;
  return (
    <>
      {seen(
        parts
          .map(([key, part]) => (Array.isArray(value) ? String(part) : `${key.replaceAll("_", " ")}: ${part}`))
          .join("\n"),
      )}
    </>
  );
}

export function ReceiptDialog({ id, onClose }: { id: string; onClose: () => void }) {
  const found = useGet("/memory/receipts/{id}", { params: { path: { id } } }, null);
  return (
    <Dialog wide title="Receipt" onClose={onClose}>
      <Shown of={found}>
        {(data) => (
          <>
            <Damage notes={(data["damage"] as readonly string[] | undefined) ?? []} />
            <p class="line">
              <Tag tone="accent">{data.kind}</Tag>
              <span>
                by <Who name={data.actor} />
              </span>
              <span class="soft">
                <Time at={data.at} />
              </span>
            </p>
            {data.reasons.length ? (
              <ul class="plain-list stack">
                {data.reasons.map((each) => (
                  <li key={each.code + each.detail}>
                    <Tag>{`${each.gate}: ${each.code}`}</Tag> {said(each.detail)}
                  </li>
                ))}
              </ul>
            ) : null}
            <dl class="facts">
              <dt>id</dt>
              <dd class="mono">{data.id}</dd>
              <dt>head after it</dt>
              <dd class="mono">{data.head}</dd>
              <dt>policy</dt>
              <dd class="mono">{data.policy}</dd>
              {Object.entries(data)
                .filter(([name]) => !SAID.has(name))
                .map(([name, value]) => (
                  <>
                    <dt>{seen(name.replaceAll("_", " "))}</dt>
                    <dd class="mono receipt-value">
                      <Told name={name} value={value} />
                    </dd>
                  </>
                ))}
            </dl>
            <p>
              <a href={found.url} target="_blank" rel="noreferrer">
                JSON
              </a>
            </p>
          </>
        )}
      </Shown>
    </Dialog>
  );
}
