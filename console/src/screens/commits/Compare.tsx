/** Two states of the store, compared: what was added, changed and removed between them. */

import type { Address } from "../../address";
import { dayBegins } from "../../browse";
import { changesOf } from "../../changes";
import { useGet } from "../../load";
import { Button } from "../../parts/Button";
import { Chip } from "../../parts/Chip";
import { Damage } from "../../parts/Damage";
import { Differences, type Differing } from "../../parts/Differences";
import { Page } from "../../parts/Page";
import { Empty, Shown } from "../../parts/States";
import { Typed } from "../../parts/Typed";
import { daysAgo, localDay, SPANS, WEEK } from "./spans";

// What the store itself changes while a memory is used; its words stay as they are.
const UPKEEP = new Set(["importance", "base_importance", "reinforced_at", "uses", "last_used"]);
const SHOWN = 300;

/** Differences by what they are, with those of importance and uses apart. */
export function Compared({ items, label }: { items: readonly Differing[]; label: string }) {
  const said = items.filter((each) => changesOf(each.before, each.after).some((change) => !UPKEEP.has(change.field)));
  const weighed = items.filter((each) => !said.includes(each));
  const added = said.filter((each) => !each.before).length;
  const removed = said.filter((each) => !each.after).length;
  const counts = [
    [added, "added"],
    [said.length - added - removed, "changed"],
    [removed, "removed"],
    [weighed.length, "with another importance only"],
  ] as const;
  return (
    <>
      {items.length > 1 ? (
        <p class="soft">
          {counts.flatMap(([count, word]) => (count ? `${count.toLocaleString()} ${word}` : [])).join(", ")}
        </p>
      ) : null}
      <Differences items={said.slice(0, SHOWN)} label={label} />
      {said.length > SHOWN ? <p class="soft">The first {SHOWN} are shown; the JSON has all of them.</p> : null}
      {weighed.length ? (
        <details>
          <summary>
            {weighed.length} {weighed.length === 1 ? "differs" : "differ"} in importance and uses only
          </summary>
          <Differences items={weighed.slice(0, SHOWN)} label="Importance and uses" />
        </details>
      ) : null}
    </>
  );
}

export function Compare({ address }: { address: Address }) {
  const from = address.get("from") || daysAgo(WEEK);
  const to = address.get("to");
  const found = useGet("/memory/diff", { params: { query: { earlier: from, later: to || undefined } } });
  return (
    <Page
      title="Compare"
      lede="what differs between two states"
      json={found.url}
      actions={
        <Button small onClick={() => address.set({ compare: null, from: null, to: null }, { push: true })}>
          Back to the journal
        </Button>
      }
    >
      <div class="line compare-spans" role="group" aria-label="What changed">
        {SPANS.map(([title, days]) => {
          const since = days === null ? "0" : daysAgo(days);
          return (
            <Chip key={title} on={from === since && !to} onClick={() => address.set({ from: since, to: null })}>
              {title}
            </Chip>
          );
        })}
      </div>
      <form class="bar" onSubmit={(event) => event.preventDefault()}>
        <label class="field">
          <span>From the day</span>
          <input
            type="date"
            value={/^\d{4}-/.test(from) ? localDay(new Date(from)) : ""}
            onChange={(event) => address.set({ from: dayBegins(event.currentTarget.value) })}
          />
        </label>
        <label class="field">
          <span>or after commit number</span>
          <Typed
            value={/^\d+$/.test(from) ? from : ""}
            inputMode="numeric"
            onSet={(value) => address.set({ from: value })}
          />
        </label>
        <label class="field">
          <span>Up to the day</span>
          <input
            type="date"
            value={/^\d{4}-/.test(to) ? localDay(new Date(Date.parse(to) - 1)) : ""}
            onChange={(event) => address.set({ to: dayBegins(event.currentTarget.value, 1) })}
          />
        </label>
        <label class="field">
          <span>or commit number; empty is now</span>
          <Typed
            value={/^\d+$/.test(to) ? to : ""}
            placeholder="now"
            inputMode="numeric"
            onSet={(value) => address.set({ to: value })}
          />
        </label>
      </form>
      <div class="card pad stack">
        <Shown of={found} rows={6}>
          {(data) =>
            data.count || data.notes.length ? (
              <>
                <Damage notes={data.notes} />
                <p>
                  <b>
                    {data.count.toLocaleString()} {data.count === 1 ? "memory differs" : "memories differ"}
                  </b>
                </p>
                <Compared items={data.items} label="What differs" />
              </>
            ) : (
              <Empty title="The two states are equal" />
            )
          }
        </Shown>
      </div>
    </Page>
  );
}
