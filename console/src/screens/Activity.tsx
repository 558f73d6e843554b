/** Activity: what was written day by day; brush some days and see what was written then. */

import "./activity.css";
import { Link } from "wouter-preact";
import { useAddress, type Address } from "../address";
import { addressOf, type Schemas } from "../api";
import { NO_FILTERS, filterCount, filtersOf, zone, type Query } from "../browse";
import { commits } from "../events";
import { get, useGet } from "../load";
import { useWindow } from "../pages";
import { Button } from "../parts/Button";
import { Chart } from "../parts/Chart";
import { counted } from "../parts/Contain";
import { Damage, damageOf } from "../parts/Damage";
import { MemoryText } from "../parts/MemoryText";
import { Page } from "../parts/Page";
import { Spark } from "../parts/Spark";
import { Empty, Shown } from "../parts/States";
import { VirtualList } from "../parts/VirtualList";
import { seen } from "../parts/seen";

const BY = ["author", "source", "session", "tier", "kind", "scope"] as const;
const SPANS = [30, 90, 365] as const;

export function Activity() {
  const address = useAddress();
  const query = filtersOf(address);
  const { as_of: _, ...now } = query;
  const count = filterCount(address);
  return (
    <Page
      title="Activity"
      lede="what was written, day by day"
      json={addressOf("/memory/activity", { params: { query: now } })}
    >
      {count ? (
        <p class="line activity-filters">
          <span class="soft">{counted(count, "filter")} in force</span>
          <Button small tone="quiet" onClick={() => address.set(NO_FILTERS)}>
            Take off
          </Button>
          <Link href={`/memories${location.search}`}>As a list</Link>
        </p>
      ) : null}
      <div class="activity-and-list">
        <Timeline address={address} query={now} />
        <List query={now} />
      </div>
    </Page>
  );
}

// --- time

function Timeline({ address, query }: { address: Address; query: Query }) {
  const by = BY.find((each) => each === address.get("by")) ?? "author";
  const days = SPANS.find((each) => String(each) === address.get("days")) ?? 90;
  const { since: _, until: __, ...others } = query;
  const found = useGet("/memory/activity", { params: { query: { ...others, by, days, zone: zone() } } });
  const choose = (from: number, to: number) => address.set({ since: dayOf(from), until: dayOf(to) });
  return (
    <section class="card pad stack" aria-label="Time">
      <div class="line">
        <h2>Written, day by day</h2>
        <span class="spread" />
        <label class="line small">
          by{" "}
          <select value={by} onChange={(event) => address.set({ by: event.currentTarget.value })}>
            {BY.map((each) => (
              <option key={each}>{each}</option>
            ))}
          </select>
        </label>
        <label class="line small">
          of{" "}
          <select value={days} onChange={(event) => address.set({ days: event.currentTarget.value })}>
            {SPANS.map((each) => (
              <option key={each} value={each}>
                {each} days
              </option>
            ))}
          </select>
        </label>
      </div>
      <Shown of={found}>
        {(data) => (
          <>
            <Damage notes={damageOf(data.damaged, "memory", "memories")} />
            <Chart
              label={`Versions written a day: ${data.counts.reduce((a, b) => a + b, 0).toLocaleString()} in ${data.days.length} days, most ${Math.max(...data.counts).toLocaleString()} on one`}
              times={data.days.map(noon)}
              lines={[{ label: "written", values: data.counts, colour: "--accent", columns: true }]}
              height={120}
              onBrush={choose}
            />
            <p class="soft small">
              Drag over days to see what was written then
              {query.since || query.until ? (
                <>
                  ;{" "}
                  <button type="button" class="more-text" onClick={() => address.set({ since: null, until: null })}>
                    all days
                  </button>
                </>
              ) : null}
              .
            </p>
            <ul class="plain-list series">
              {data.series.shown.map((each) => (
                <li key={each.name}>
                  <span class="cut" dir="auto">
                    {seen(each.name)}
                  </span>
                  <Spark
                    values={each.counts}
                    label={`${each.total.toLocaleString()} in ${data.days.length} days`}
                    height={20}
                  />
                  <span class="num soft small">{each.total.toLocaleString()}</span>
                </li>
              ))}
              {data.series.isWhole ? null : <li class="soft small">and {data.series.rest}</li>}
            </ul>
          </>
        )}
      </Shown>
    </section>
  );
}

/** Seconds of the noon of a day in the reader's zone. */
function noon(day: string): number {
  const [year = 1970, month = 1, date = 1] = day.split("-").map(Number);
  return new Date(year, month - 1, date, 12).getTime() / 1000;
}

/** The day of an instant in the reader's zone. */
function dayOf(seconds: number): string {
  const at = new Date(seconds * 1000);
  const two = (value: number) => String(value).padStart(2, "0");
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
}

// --- the list

function List({ query }: { query: Query }) {
  return (
    <section class="card activity-list" aria-label="Written then">
      <div class="line activity-tools">
        <h2>{query.since || query.until ? "Of these days" : "Newest"}</h2>
      </div>
      <Newest query={query} />
    </section>
  );
}

function Newest({ query }: { query: Query }) {
  const list = useWindow<Schemas["Record"]>(
    JSON.stringify(query),
    async (offset, limit, signal) => {
      const found = await get("/memory/items", { signal, params: { query: { ...query, offset, limit } } });
      return found.ok ? { ...found, data: found.data.items } : found;
    },
    commits,
  );
  if (list.total === 0) return <Empty title="No memory was written then" />;
  return (
    <VirtualList
      label="Memories"
      count={list.total ?? 0}
      estimate={64}
      onRange={list.need}
      row={(at) => {
        const each = list.at(at);
        return <Line id={each?.id ?? ""} text={each?.text} damaged={!each && list.read(at)} />;
      }}
    />
  );
}

function Line({ id, text, damaged }: { id: string; text: string | undefined; damaged: boolean }) {
  if (damaged)
    return (
      <div class="activity-line bad" role="listitem">
        One memory cannot be shown: it does not match its seal.
      </div>
    );
  return (
    <div class="activity-line" role="listitem">
      {text === undefined ? (
        <span class="bone" />
      ) : (
        <Link href={`/memories/${encodeURIComponent(id)}`} class="memory-link">
          <MemoryText text={text} limit={160} />
        </Link>
      )}
    </div>
  );
}
