/** All memories that pass the filters: to read or as a table, in any order, from the first to the last. */

import { useEffect } from "preact/hooks";
import { Link } from "wouter-preact";
import { go, type Address } from "../../address";
import type { Schemas } from "../../api";
import type { Query } from "../../browse";
import { useKeys } from "../../keys";
import { commits } from "../../events";
import { get } from "../../load";
import { useWindow, type Windowed } from "../../pages";
import { Button } from "../../parts/Button";
import { MemorySummary, Signs, Trust } from "../../parts/MemorySummary";
import { MemoryText } from "../../parts/MemoryText";
import { Said } from "../../parts/Said";
import { Failed, NoMemory } from "../../parts/States";
import { Time } from "../../parts/Time";
import { VirtualList } from "../../parts/VirtualList";
import { Who } from "../../parts/Who";
import { isInList, placeOf, type Cursor, type Picked } from "./picked";

type Memory = Schemas["Record"];

const COLUMNS = [
  { sort: null, title: "Memory", name: "" },
  { sort: null, title: "About", name: "about" },
  { sort: "author", title: "Said by", name: "author" },
  { sort: "trust", title: "Trust", name: "trust" },
  { sort: "created", title: "Said", name: "created" },
] as const;
type Sort = NonNullable<(typeof COLUMNS)[number]["sort"]>;

export function Browser({
  address,
  query,
  selected,
  turn,
  cursor,
  onCursor,
}: Picked &
  Cursor & {
    address: Address;
    query: Query;
  }) {
  const sort = (address.get("sort") || "created") as NonNullable<Query["sort"]>;
  const ascending = address.get("asc") === "1";
  const reading = address.get("view") !== "table";
  const name = JSON.stringify([query, sort, ascending]);
  const list = useWindow<Memory>(
    name,
    async (offset, limit) => {
      const found = await get("/memory/items", { params: { query: { ...query, sort, ascending, offset, limit } } });
      return found.ok ? { ...found, data: found.data.items } : found;
    },
    query.as_of ? null : commits,
  );
  useEffect(() => onCursor(-1), [name, onCursor]);
  const total = list.total ?? 0;
  const step = (by: number) => onCursor(Math.max(0, Math.min(total - 1, cursor + by)));
  const inList = (by: number) => (event: KeyboardEvent) => (isInList(event) ? step(by) : false);
  const here = list.at(cursor);
  useKeys("Memories", {
    j: { does: "Next", run: () => step(1) },
    k: { does: "The one before", run: () => step(-1) },
    x: { does: "Select, or not any more", run: () => here && turn(here) },
    ArrowDown: { does: "Next, from the search or in the list", run: inList(1) },
    ArrowUp: { does: "The one before, in the list", run: inList(-1) },
    Enter: { does: "Open", run: () => (here ? go(placeOf(here, query.as_of)) : false) },
    v: { does: "Table or reading view", run: () => address.set({ view: reading ? "table" : null }) },
  });
  const by = (each: Sort) =>
    address.set(
      each === sort ? { asc: ascending ? null : "1" } : { sort: each === "created" ? null : each, asc: null },
    );
  return (
    <section class="card memory-list" aria-label="Memories">
      <div class="memory-head">
        <div class="line small">
          {reading ? (
            <label class="line">
              Order
              <select value={sort} onChange={(event) => address.set({ sort: event.currentTarget.value, asc: null })}>
                {[
                  "created",
                  "changed",
                  "importance",
                  "confidence",
                  "trust",
                  "tier",
                  "kind",
                  "scope",
                  "source",
                  "author",
                ].map((each) => (
                  <option key={each}>{each}</option>
                ))}
              </select>
            </label>
          ) : null}
          <span class="spread" />
          <Link href={`/activity${location.search}`}>Day by day</Link>
          <Button
            small
            tone="quiet"
            aria-pressed={reading}
            hint="v"
            onClick={() => address.set({ view: reading ? "table" : null })}
          >
            {reading ? "Table" : "Reading view"}
          </Button>
        </div>
        {reading ? null : (
          <div class="memory-row head">
            <span />
            {COLUMNS.map((each) => {
              const own = each.sort;
              return own === null ? (
                <span key={each.title} class={`sort ${each.name}`}>
                  {each.title}
                </span>
              ) : (
                <button
                  key={each.title}
                  type="button"
                  class={`sort ${each.name}`}
                  aria-pressed={sort === own}
                  onClick={() => by(own)}
                >
                  {each.title}
                  <span aria-hidden="true">{sort === own ? (ascending ? " ↑" : " ↓") : ""}</span>
                </button>
              );
            })}
          </div>
        )}
      </div>
      <Body list={list} reading={reading} cursor={cursor} selected={selected} turn={turn} asOf={query.as_of} />
    </section>
  );
}

interface BodyProps extends Picked {
  list: Windowed<Memory>;
  reading: boolean;
  cursor: number;
  asOf: string | number | null | undefined;
}

function Body({ list, reading, cursor, selected, turn, asOf }: BodyProps) {
  if (list.problem && list.total === undefined) return <Failed problem={list.problem} retry={list.reload} />;
  if (list.total === 0) return <NoMemory />;
  return (
    <VirtualList
      key={reading ? "reading" : "table"}
      class="memory-rows"
      label="Memories"
      count={list.total ?? 0}
      estimate={reading ? 96 : 42}
      current={cursor}
      onRange={list.need}
      row={(index) => {
        const each = list.at(index);
        if (!each)
          return (
            <div class="memory-row" role="listitem">
              {list.read(index) ? <Damaged /> : <span class="bone" />}
            </div>
          );
        return (
          <Row
            each={each}
            reading={reading}
            on={index === cursor}
            chosen={selected.has(each.id)}
            turn={turn}
            asOf={asOf}
          />
        );
      }}
    />
  );
}

/** A memory that is left out of its page; which one it is, the note above the list says. */
function Damaged() {
  return (
    <span class="memory-damaged bad">
      One memory cannot be shown: it does not match its seal. <Link href="/integrity">Integrity</Link>
    </span>
  );
}

interface RowProps {
  each: Memory;
  reading: boolean;
  on: boolean;
  chosen: boolean;
  turn: (each: Memory) => void;
  asOf: string | number | null | undefined;
}

function Row({ each, reading, on, chosen, turn, asOf }: RowProps) {
  const box = (
    <input
      type="checkbox"
      checked={chosen}
      onChange={() => turn(each)}
      aria-label={`Select ${each.text.slice(0, 60)}`}
    />
  );
  const name = `memory-row ${on ? "on" : ""} ${chosen ? "picked" : ""} ${each.status === "active" ? "" : "ended"}`;
  const title = (
    <Link href={placeOf(each, asOf)} class="memory-link">
      <MemoryText one={!reading} limit={900} text={each.text} />
    </Link>
  );
  if (reading) {
    return (
      <div class={`${name} reading`} role="listitem">
        {box}
        <div class="stack">
          {title}
          <div class="line small soft">
            <MemorySummary memory={each} /> <Said memory={each} />
          </div>
        </div>
      </div>
    );
  }
  return (
    <div class={name} role="listitem">
      {box}
      <span class="memory-cell">
        {title}
        <span class="memory-signs">
          <Signs memory={each} />
        </span>
      </span>
      <span class="about cut soft">{each.subject ? <Who name={each.subject} /> : "–"}</span>
      <span class="author cut soft">
        <Who name={each.speaker ?? each.text_by} />
      </span>
      <span class="trust">
        <Trust memory={each} />
      </span>
      <span class="created soft">
        <Time at={each.text_at} short />
      </span>
    </div>
  );
}
