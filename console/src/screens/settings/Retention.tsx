/** How long things are kept, in words, and the lines of the settings file that change it. */

import meanings from "setting-meanings";
import { useState } from "preact/hooks";
import type { Schemas } from "../../api";
import { status } from "../../status";
import { Copy } from "../../parts/Copy";
import { Tag } from "../../parts/Tag";
import { said, seen } from "../../parts/seen";
import { isSpan, linesOf, spanWords } from "./file";

type Setting = Schemas["EffectiveSetting"];

/** What ends when, by the name of its setting. */
const KEPT: Record<string, string> = {
  "policy.ttl_working": "Working memory",
  "policy.ttl_volatile": "Volatile memories",
  "policy.ttl_by_kind": "Volatile memories, by kind",
  "policy.archive_facts_after": "Facts that nobody uses",
  "policy.review_ttl": "Proposals that wait",
  "policy.review_keep": "Texts of decided proposals",
  "policy.compact_receipts_after": "Details of contexts",
};

export function isRetention(setting: Setting): boolean {
  return setting.name in KEPT;
}

export function Retention({ rows, file }: { rows: readonly Setting[]; file: string | null }) {
  const path = status.value?.path ?? "";
  const where = file ?? `${path.includes("/") ? path.slice(0, path.lastIndexOf("/") + 1) : ""}keepward.toml`;
  return (
    <section class="card" aria-label="Retention">
      <h2 class="settings-title">Retention</h2>
      <p class="soft small pad">
        How long things are kept. To change it, write the line into <code>{seen(where)}</code>, run{" "}
        <code>keepward config</code>, and start the server again. A number has a unit: s, m, h, d or w.
      </p>
      <ul class="retention">
        {rows.flatMap((each) =>
          typeof each.value === "object" && each.value
            ? Object.entries(each.value as Record<string, string>).map(([part, value]) => (
                <Kept key={`${each.name} ${part}`} setting={each} value={value} part={part} />
              ))
            : [<Kept key={each.name} setting={each} value={(each.value as string | null) ?? ""} />],
        )}
      </ul>
    </section>
  );
}

function Kept({ setting, value, part }: { setting: Setting; value: string; part?: string }) {
  const [text, setText] = useState(value);
  const title = part ? `Volatile memories of kind ${part}` : KEPT[setting.name];
  const line = linesOf(setting.name, part ? { [part]: text.trim() } : text.trim());
  return (
    <li aria-label={title}>
      <div>
        <b>{title}</b> <span class="num">{value ? spanWords(value) : "never archived for that"}</span>{" "}
        <Tag tone={setting.waiting ? "warn" : "plain"}>{setting.waiting ? "waits" : setting.origin}</Tag>
        <span class="soft small setting-meaning">{said(meanings[setting.name] ?? "")}</span>
      </div>
      <details>
        <summary class="soft small">Change</summary>
        <label class="field">
          <span>Keep for</span>
          <input value={text} placeholder="30d" onInput={(event) => setText(event.currentTarget.value)} />
        </label>
        {isSpan(text.trim()) ? (
          <div class="command">
            <code class="lines">{line}</code>
            <Copy text={line} />
          </div>
        ) : (
          <p class="warn small">Write a whole number and a unit, such as 12h or 30d.</p>
        )}
      </details>
    </li>
  );
}
