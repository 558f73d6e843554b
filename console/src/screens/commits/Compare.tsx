/** Two states of the store, compared: what was added, changed and removed between them. */

import { useState } from "preact/hooks";
import type { Address } from "../../address";
import type { Schemas } from "../../api";
import { dayBegins } from "../../browse";
import { changesOf } from "../../changes";
import { useGet } from "../../load";
import { Button } from "../../parts/Button";
import { Chip } from "../../parts/Chip";
import { Damage } from "../../parts/Damage";
import { Differences, PagedDifferences, SHOWN, type Differing } from "../../parts/Differences";
import { Page } from "../../parts/Page";
import { Empty, Shown } from "../../parts/States";
import { Typed } from "../../parts/Typed";
import { daysAgo, localDay, SPANS, WEEK } from "./spans";

// What the store itself changes while a memory is used; its words stay as they are.
const UPKEEP = new Set(["importance", "base_importance", "reinforced_at", "uses", "last_used"]);

/** What a commit changed, with changes of importance and uses apart. */
export function Compared({ items, label }: { items: readonly Differing[]; label: string }) {
  const said = items.filter((each) => changesOf(each.before, each.after).some((change) => !UPKEEP.has(change.field)));
  const weighed = items.filter((each) => !said.includes(each));
  const added = said.filter((each) => !each.before).length;
  const removed = said.filter((each) => !each.after).length;
  const counts = { added, removed, changed: said.length - added - removed, importance: weighed.length };
  return (
    <>
      {items.length > 1 ? <Counts of={counts} /> : null}
      <Differences items={said.slice(0, SHOWN)} label={label} />
      {said.length > SHOWN ? (
        <p class="soft">
          The first {SHOWN} of {said.length.toLocaleString()} are shown; the JSON has all of them.
        </p>
      ) : null}
      {weighed.length ? (
        <details>
          <summary>{upkeepWords(weighed.length)}</summary>
          <Differences items={weighed.slice(0, SHOWN)} label="Importance and uses" />
        </details>
      ) : null}
    </>
  );
}

function upkeepWords(count: number): string {
  return `${count.toLocaleString()} ${count === 1 ? "differs" : "differ"} in importance and uses only`;
}

const KINDS = [
  ["added", "added"],
  ["changed", "changed"],
  ["removed", "removed"],
  ["importance", "with another importance only"],
] as const;

function Counts({ of }: { of: Readonly<Record<string, number>> }) {
  const parts = KINDS.flatMap(([name, word]) => (of[name] ? `${of[name].toLocaleString()} ${word}` : []));
  return <p class="soft">{parts.join(", ")}</p>;
}

/** Return how many differ in more than importance and uses: they come first. */
function saidOf({ total, counts }: Pick<Schemas["Compared"], "total" | "counts">): number {
  return total - (counts["importance"] ?? 0);
}

interface Span {
  earlier: string;
  later: string | undefined;
}

/** The differences between two places of the list of a span. */
function Pages({ span, from, to, label }: { span: Span; from: number; to: number; label: string }) {
  const useRead = (offset: number, limit: number) =>
    useGet("/memory/diff", { params: { query: { ...span, offset, limit } } });
  if (to <= from) return null;
  return <PagedDifferences useRead={useRead} itemsOf={(data) => data.items} from={from} to={to} label={label} />;
}

/** Differences in importance and uses, read when somebody asks for them. */
function Upkeep({ span, from, to }: { span: Span; from: number; to: number }) {
  const [open, setOpen] = useState(false);
  return (
    <details onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>{upkeepWords(to - from)}</summary>
      {open ? <Pages span={span} from={from} to={to} label="Importance and uses" /> : null}
    </details>
  );
}

export function Compare({ address }: { address: Address }) {
  const from = address.get("from") || daysAgo(WEEK);
  const to = address.get("to");
  const span = { earlier: from, later: to || undefined };
  const found = useGet("/memory/diff", { params: { query: { ...span, offset: 0, limit: SHOWN } } });
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
            data.total || data.notes.length ? (
              <>
                <Damage notes={data.notes} />
                <p>
                  <b>
                    {data.total.toLocaleString()} {data.total === 1 ? "memory differs" : "memories differ"}
                  </b>
                </p>
                {data.total > 1 ? <Counts of={data.counts} /> : null}
                <Pages key={found.url} span={span} from={0} to={saidOf(data)} label="What differs" />
                {saidOf(data) < data.total ? (
                  <Upkeep key={`upkeep ${found.url}`} span={span} from={saidOf(data)} to={data.total} />
                ) : null}
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
