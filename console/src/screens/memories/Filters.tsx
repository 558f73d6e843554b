/** Filters beside the facets: dates, scope, importance, fields of its own, and what has ended. */

import { useState } from "preact/hooks";
import type { Address } from "../../address";
import { NO_FILTERS } from "../../browse";
import { Button } from "../../parts/Button";
import { counted } from "../../parts/Contain";

export function Filters({ address, count }: { address: Address; count: number }) {
  return (
    <div class="stack filter-fields">
      <label class="field">
        <span>Written from</span>
        <input
          type="date"
          value={address.get("since")}
          onChange={(event) => address.set({ since: event.currentTarget.value })}
        />
      </label>
      <label class="field">
        <span>Written to</span>
        <input
          type="date"
          value={address.get("until")}
          onChange={(event) => address.set({ until: event.currentTarget.value })}
        />
      </label>
      <details open={["within", "importance", "where"].some((name) => address.get(name) !== "")}>
        <summary class="small">More filters</summary>
        <div class="stack">
          <label class="field">
            <span>In a scope and below it</span>
            <input
              value={address.get("within")}
              placeholder="/agents"
              maxLength={512}
              onChange={(event) => address.set({ within: event.currentTarget.value.trim() })}
            />
          </label>
          <label class="field">
            <span>Importance, at least</span>
            <input
              type="number"
              min={0}
              max={1}
              step={0.05}
              value={address.get("importance")}
              onChange={(event) => address.set({ importance: event.currentTarget.value })}
            />
          </label>
          <Where address={address} />
        </div>
      </details>
      <label class="line small">
        <input
          type="checkbox"
          checked={address.get("ended") === "1"}
          onChange={(event) => address.set({ ended: event.currentTarget.checked ? "1" : null })}
        />
        Show ended ones
      </label>
      {count ? (
        <div>
          <Button small tone="quiet" onClick={() => address.set(NO_FILTERS, { push: true })}>
            Take {counted(count, "filter")} off
          </Button>
        </div>
      ) : null}
    </div>
  );
}

/** Conditions on a memory's own fields, which are sent once they are JSON. */
function Where({ address }: { address: Address }) {
  const [wrong, setWrong] = useState(false);
  const take = (text: string) => {
    const ok = !text || isObject(text);
    setWrong(!ok);
    if (ok) address.set({ where: text });
  };
  return (
    <label class="field">
      <span>Fields of its own, as JSON</span>
      <input
        class="mono"
        value={address.get("where")}
        placeholder={'{"stars": {"$gte": 4}}'}
        maxLength={1000}
        aria-invalid={wrong}
        onChange={(event) => take(event.currentTarget.value.trim())}
      />
      {wrong ? (
        <span class="bad small" role="alert">
          This is no JSON object: {'{"name": "value"}'}
        </span>
      ) : null}
    </label>
  );
}

function isObject(text: string): boolean {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value);
  } catch {
    return false;
  }
}
