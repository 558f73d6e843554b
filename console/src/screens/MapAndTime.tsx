/** Map and time: memories by what they mean and by when they were written; brush either, and see the list. */

import "./map.css";
import { useMemo, useState } from "preact/hooks";
import { Link } from "wouter-preact";
import { go, useAddress, type Address } from "../address";
import { addressOf, api, ask, type Schemas } from "../api";
import { NO_FILTERS, filterCount, filtersOf, zone, type Query } from "../browse";
import { commits } from "../live";
import { useGet } from "../load";
import { useWindow } from "../pages";
import { Button } from "../parts/Button";
import { Chart } from "../parts/Chart";
import { counted } from "../parts/Contain";
import { MapCanvas, type Box, type Points } from "../parts/MapCanvas";
import { MemoryText } from "../parts/MemoryText";
import { Page } from "../parts/Page";
import { Spark } from "../parts/Spark";
import { Empty, NoMemory, Shown } from "../parts/States";
import { VirtualList } from "../parts/VirtualList";
import { seen } from "../parts/seen";

type Found = Schemas["MeaningMap"];
type ColourBy = "tier" | "source" | "kind" | "age";

const COLOUR_BY: readonly ColourBy[] = ["tier", "source", "kind", "age"];
const OF_TIER: Record<string, string> = { core: "--core", working: "--working", episodic: "--pinned", archival: "--recalled" };
const IN_TURN = ["--accent", "--working", "--pinned", "--core", "--recalled", "--bad", "--warn", "--soft"];
// Days up to which a point counts as that old.
const AGES = [1, 7, 30, 90, 365] as const;
const AGE_WORDS = ["today", "this week", "this month", "these three months", "this year", "older"];
const BY = ["author", "source", "session", "tier", "kind", "scope"] as const;
const SPANS = [30, 90, 365] as const;

export function MapAndTime() {
  const address = useAddress();
  const query = filtersOf(address);
  const map = useGet("/memory/map", { params: { query: query as never } }, query.as_of ? null : commits);
  const box = boxOf(address.get("box"));
  const count = filterCount(address);
  return (
    <Page title="Map and time" lede="near each other where they mean much the same" json={addressOf("/memory/map", { params: { query } })}>
      {count ? (
        <p class="line map-filters">
          <span class="soft">{counted(count, "filter")} in force</span>
          <Button small tone="quiet" onClick={() => address.set(NO_FILTERS)}>Take off</Button>
          <Link href={`/memories${location.search}`}>As a list</Link>
        </p>
      ) : null}
      <div class="map-and-list">
        <div class="stack">
          <Shown of={map} rows={8}>{(data) => <Map found={data} address={address} box={box} />}</Shown>
          <Timeline address={address} query={query} />
        </div>
        <List found={map.data} box={box} query={query} address={address} />
      </div>
    </Page>
  );
}

function boxOf(text: string): Box | null {
  const sides = text.split(",").map(Number);
  return sides.length === 4 && sides.every(Number.isFinite) ? (sides as unknown as Box) : null;
}

/** Return the places of the points in a box, in their order. */
function within(found: Found, [left, top, right, bottom]: Box): number[] {
  const places: number[] = [];
  found.x.forEach((x, at) => {
    const y = found.y[at] ?? 0;
    if (x >= left && x <= right && y <= top && y >= bottom) places.push(at);
  });
  return places;
}

// --- the map

function Map({ found, address, box }: { found: Found; address: Address; box: Box | null }) {
  const named = address.get("colour") as ColourBy;
  const by = COLOUR_BY.includes(named) ? named : "tier";
  const [at, setAt] = useState(-1);
  const { points, legend } = useMemo(() => coloured(found, by), [found, by]);
  if (!found.ids.length) {
    return (
      <section class="card">
        {found.total ? (
          <Empty title="No memory has a vector yet">The map lays out what an embedder made of each memory. Set one up, then run <code>keepward reindex</code>.</Empty>
        ) : <NoMemory />}
      </section>
    );
  }
  return (
    <section class="card map-card" aria-label="Map">
      <div class="line map-tools">
        <div class="line" role="group" aria-label="Colour by">
          <span class="soft small">Colour</span>
          {COLOUR_BY.map((each) => (
            <Button key={each} small tone="quiet" aria-pressed={each === by} onClick={() => address.set({ colour: each === "tier" ? null : each })}>{each}</Button>
          ))}
        </div>
        <span class="spread" />
        {box ? <Button small onClick={() => address.set({ box: null })}>Take the brush off</Button> : <span class="soft small">drag to brush, click to open</span>}
      </div>
      <MapCanvas
        points={points}
        label={`${counted(found.placed, "memory", "memories")} as points of a map.`}
        box={box}
        onBox={(next) => address.set({ box: next ? next.join(",") : null })}
        onPoint={setAt}
        onOpen={(index) => go(`/memories/${encodeURIComponent(found.ids[index] ?? "")}`)}
      />
      <div class="map-foot">
        <p class="map-said" aria-live="polite">{at >= 0 ? <Pointed id={found.ids[at] ?? ""} /> : <span class="soft small">{counted(found.placed, "memory", "memories")}{found.notes.map((note) => <>; {seen(note)}</>)}</span>}</p>
        <ul class="chart-legend">
          {legend.map((each) => <li key={each.name}><i style={{ background: each.colour }} />{seen(each.name)} {each.count.toLocaleString()}</li>)}
        </ul>
      </div>
    </section>
  );
}

function Pointed({ id }: { id: string }) {
  const found = useGet("/memory/items/{id}", { params: { path: { id } } }, null);
  return found.data ? <MemoryText one text={found.data.text} /> : <span class="faint small">…</span>;
}

function coloured(found: Found, by: ColourBy): { points: Points; legend: { name: string; colour: string; count: number }[] } {
  const names = by === "tier" ? found.tiers : by === "source" ? found.sources : by === "kind" ? found.kinds : AGE_WORDS;
  const colour = by === "age" ? found.age.map((days) => { const at = AGES.findIndex((most) => days < most); return at < 0 ? AGES.length : at; }) : found[by];
  const colours = names.map((name, at) => {
    if (by === "tier") return `var(${OF_TIER[name] ?? "--soft"})`;
    if (by === "age") return `color-mix(in srgb, var(--accent) ${100 - at * 17}%, var(--line))`;
    return `var(${IN_TURN[at % IN_TURN.length] ?? "--soft"})`;
  });
  const counts = names.map(() => 0);
  for (const each of colour) counts[each] = (counts[each] ?? 0) + 1;
  const legend = names.map((name, at) => ({ name, colour: colours[at] ?? "", count: counts[at] ?? 0 })).filter((each) => each.count);
  return { points: { x: found.x, y: found.y, colour, colours }, legend: by === "age" ? legend : legend.sort((a, b) => b.count - a.count) };
}

// --- time

function Timeline({ address, query }: { address: Address; query: Query }) {
  const by = BY.find((each) => each === address.get("by")) ?? "author";
  const days = SPANS.find((each) => String(each) === address.get("days")) ?? 90;
  const { since: _, until: __, ...others } = query;
  const found = useGet("/memory/activity", { params: { query: { ...others, by, days, zone: zone() } as never } }, query.as_of ? null : commits);
  const choose = (from: number, to: number) => address.set({ since: dayOf(from), until: dayOf(to) });
  return (
    <section class="card pad stack" aria-label="Time">
      <div class="line">
        <h2>Written, day by day</h2>
        <span class="spread" />
        <label class="line small">by <select value={by} onChange={(event) => address.set({ by: event.currentTarget.value })}>{BY.map((each) => <option key={each}>{each}</option>)}</select></label>
        <label class="line small">of <select value={days} onChange={(event) => address.set({ days: event.currentTarget.value })}>{SPANS.map((each) => <option key={each} value={each}>{each} days</option>)}</select></label>
      </div>
      <Shown of={found}>
        {(data) => (
          <>
            <Chart
              label={`Versions written a day: ${data.counts.reduce((a, b) => a + b, 0)} in ${data.days.length} days, most ${Math.max(...data.counts)} on one`}
              times={data.days.map(noon)}
              lines={[{ label: "written", values: data.counts, colour: "--accent", columns: true }]}
              height={120}
              onBrush={choose}
            />
            <p class="soft small">Drag over days to see what was written then{query.since || query.until ? <>; <button type="button" class="more-text" onClick={() => address.set({ since: null, until: null })}>all days</button></> : null}.</p>
            <ul class="plain-list series">
              {data.series.map((each) => (
                <li key={each.name}>
                  <span class="cut" dir="auto">{seen(each.name)}</span>
                  <Spark values={each.counts} label={`${each.total} in ${data.days.length} days`} height={20} />
                  <span class="num soft small">{each.total.toLocaleString()}</span>
                </li>
              ))}
              {data.more ? <li class="soft small">and {data.more.toLocaleString()} others</li> : null}
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

function List({ found, box, query, address }: { found: Found | undefined; box: Box | null; query: Query; address: Address }) {
  const chosen = useMemo(() => (found && box ? within(found, box).map((at) => found.ids[at] ?? "") : null), [found, box?.join(",")]);
  return (
    <section class="card map-list" aria-label="Brushed">
      <div class="line map-tools">
        <h2>{chosen ? counted(chosen.length, "memory", "memories") : query.since || query.until ? "Of these days" : "Newest"}</h2>
        <span class="spread" />
        {chosen ? <Button small tone="quiet" onClick={() => address.set({ box: null })}>All</Button> : null}
      </div>
      {chosen ? <Chosen ids={chosen} /> : <Newest query={query} />}
    </section>
  );
}

function Chosen({ ids }: { ids: readonly string[] }) {
  if (!ids.length) return <Empty title="No memory lies there" />;
  return <VirtualList key={ids[0]} label="Brushed memories" count={ids.length} estimate={64} keyOf={(at) => ids[at] ?? at} row={(at) => <Loaded id={ids[at] ?? ""} />} />;
}

function Loaded({ id }: { id: string }) {
  const found = useGet("/memory/items/{id}", { params: { path: { id } } }, null);
  return <Line id={id} text={found.data?.text} />;
}

function Newest({ query }: { query: Query }) {
  const list = useWindow<Schemas["Memory"]>(
    JSON.stringify(query),
    async (offset, limit) => {
      const found = await ask(api.GET("/memory/items", { params: { query: { ...query, offset, limit } } }));
      return found.ok ? { ...found, data: { items: found.data.items, total: found.data.total ?? 0 } } : found;
    },
    query.as_of ? null : commits,
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
        return <Line id={each?.id ?? ""} text={each?.text} />;
      }}
    />
  );
}

function Line({ id, text }: { id: string; text: string | undefined }) {
  return (
    <div class="map-line" role="listitem">
      {text === undefined ? <span class="bone" /> : <Link href={`/memories/${encodeURIComponent(id)}`} class="memory-link"><MemoryText text={text} limit={160} /></Link>}
    </div>
  );
}
