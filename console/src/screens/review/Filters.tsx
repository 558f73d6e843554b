/** What narrows the list of proposals: what became of them, who proposed, why they wait, and the tier. */

import type { Address } from "../../address";
import { tierWord } from "../../words";
import { gateName } from "./labels";
import { snoozed } from "./snooze";
import type { Counts } from "./Standing";

export const SNOOZED = "snoozed";

/** What became of proposals, as the API calls it and as it is shown; without one they wait. */
export const STATES = [
  ["approved", "Approved"],
  ["rejected", "Rejected"],
  ["stale", "Outdated"],
  ["expired", "Expired"],
] as const;

export function States({ address }: { address: Address }) {
  return (
    <div class="filters">
      <select
        aria-label="State"
        value={address.get("state")}
        onChange={(event) => address.set({ state: event.currentTarget.value || null, at: null })}
      >
        <option value="">Waiting</option>
        {STATES.map(([name, title]) => (
          <option key={name} value={name}>
            {title}
          </option>
        ))}
        {snoozed.value.size || address.get("state") === SNOOZED ? (
          <option value={SNOOZED}>Snoozed in this browser ({snoozed.value.size})</option>
        ) : null}
      </select>
      <select
        aria-label="Sorted"
        value={address.get("sort")}
        onChange={(event) => address.set({ sort: event.currentTarget.value || null, at: null })}
      >
        <option value="">Oldest first</option>
        <option value="danger">Most dangerous first</option>
      </select>
    </div>
  );
}

const FACETS = [
  ["proposer", "Proposed by", "By anyone"],
  ["gate", "Reason", "Any reason"],
  ["tier", "Tier", "Any tier"],
] as const;
const TIERS = ["core", "working", "episodic", "archival"] as const;

export function tierOf(text: string): (typeof TIERS)[number] | undefined {
  return TIERS.find((each) => each === text);
}

/** Return the values of a filter with their counts; the one in force is among them. */
function valuesOf(counts: Record<string, number> = {}, chosen: string): [string, number][] {
  return Object.entries(chosen && !(chosen in counts) ? { ...counts, [chosen]: 0 } : counts);
}

export function Filters({ counts, address }: { counts: Counts; address: Address }) {
  const shown = FACETS.filter(([facet]) => Object.keys(counts[facet] ?? {}).length > 1 || address.get(facet));
  if (!shown.length) return null;
  return (
    <div class="filters">
      {shown.map(([facet, title, any]) => (
        <select
          key={facet}
          aria-label={title}
          value={address.get(facet)}
          onChange={(event) => address.set({ [facet]: event.currentTarget.value, at: null })}
        >
          <option value="">{any}</option>
          {valuesOf(counts[facet], address.get(facet)).map(([value, count]) => (
            <option key={value} value={value}>
              {facet === "gate" ? gateName(value) : facet === "tier" ? tierWord(value) : value} ({count})
            </option>
          ))}
        </select>
      ))}
    </div>
  );
}
