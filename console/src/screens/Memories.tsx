/** Memories: search by words and meaning, or browse all of them with facets, at any commit. */

import "./memories.css";
import { useCallback, useEffect, useRef, useState, type MutableRef as Ref } from "preact/hooks";
import { Link } from "wouter-preact";
import { go, useAddress, type Address } from "../address";
import { addressOf, api, ask, type Schemas } from "../api";
import { NOT_IN_SEARCH, NO_FILTERS, filterCount, filtersOf, searched, type Query } from "../browse";
import { useKeys } from "../keys";
import { notifyChanged, commits } from "../events";
import { useGet } from "../load";
import { useWindow, type Windowed } from "../pages";
import { mayChange } from "../session";
import { status } from "../status";
import { rollBack } from "../undo";
import { Button } from "../parts/Button";
import { ContainDialog, counted } from "../parts/Contain";
import { Dialog } from "../parts/Dialog";
import { Facets } from "../parts/Facets";
import { Facts } from "../parts/Facts";
import { MemoryText } from "../parts/MemoryText";
import { Page } from "../parts/Page";
import { Empty, Failed, NoMemory, Shown } from "../parts/States";
import { Tag } from "../parts/Tag";
import { Time } from "../parts/Time";
import { say } from "../parts/Toasts";
import { VirtualList } from "../parts/VirtualList";
import { seen } from "../parts/seen";

type Memory = Schemas["Memory"];

// Most that one call forgets, and so most that can be selected.
const MOST = 500;
// Most whose ids fit an address.
const ERASED_AT_ONCE = 200;

export function Memories() {
  const address = useAddress();
  const query = filtersOf(address);
  const asked = address.get("q");
  const { as_of: _, ...now } = query;
  const facets = useGet(query.as_of ? null : "/memory/facets", { params: { query: now as never } });
  const [selected, setSelected] = useState<ReadonlyMap<string, Memory>>(new Map());
  const [more, setMore] = useState(false);
  const turn = useCallback((each: Memory) => {
    setSelected((before) => {
      const next = new Map(before);
      if (!next.delete(each.id) && next.size < MOST) next.set(each.id, each);
      return next;
    });
  }, []);
  const count = filterCount(address);
  const total = facets.data?.total;
  const json = asked
    ? addressOf("/memory/search", { params: { query: searched(query, asked) } })
    : addressOf("/memory/items", { params: { query: { ...query, offset: 0 } } });
  return (
    <Page
      title="Memories"
      lede={
        asked
          ? "by words and meaning, best first"
          : total === undefined
            ? ""
            : `${total.toLocaleString()}${count ? " found" : query.include_ended ? " in all" : " active"}${query.as_of ? ", as it was" : ""}`
      }
      json={json}
      actions={
        asked ? (
          <Link class="btn sm quiet" href={`/recall?${new URLSearchParams({ q: asked })}`}>
            Why in this order?
          </Link>
        ) : null
      }
    >
      <div class="memories-top">
        <Search address={address} />
        <AsOf address={address} />
      </div>
      <div class="memories">
        <aside class={more ? "open" : ""} aria-label="Filters">
          <Button small class="narrow-only" aria-expanded={more} onClick={() => setMore(!more)}>
            {count ? `Filters (${count})` : "Filters"}
          </Button>
          <div class="memory-filters">
            <Filters address={address} count={count} searching={asked !== ""} />
            {query.as_of ? <p class="soft small">Counts are of the present: choose “Now” to filter by them.</p> : null}
            <Shown of={facets}>
              {(data) => <Facets found={data} address={address} without={asked ? NOT_IN_SEARCH : []} />}
            </Shown>
          </div>
        </aside>
        <div class="memories-main">
          {facets.data?.notes.map((note) => (
            <p key={note} class="soft small">
              {seen(note)}
            </p>
          ))}
          {asked ? (
            <Results query={query} asked={asked} selected={selected} turn={turn} />
          ) : (
            <Browser address={address} query={query} selected={selected} turn={turn} />
          )}
          {selected.size ? (
            <Selection
              selected={selected}
              clear={() => setSelected(new Map())}
              query={query}
              choose={setSelected}
              total={asked ? undefined : total}
            />
          ) : null}
        </div>
      </div>
    </Page>
  );
}

function Search({ address }: { address: Address }) {
  const field = useRef<HTMLInputElement>(null);
  const asked = address.get("q");
  useShown(field, asked);
  useKeys("Memories", { "/": { does: "Search", run: () => field.current?.focus() } });
  return (
    <form
      role="search"
      class="memories-search"
      onSubmit={(event) => {
        event.preventDefault();
        address.set({ q: field.current?.value.trim() ?? "" }, { push: true });
      }}
    >
      <input
        ref={field}
        type="search"
        aria-label="Search by words and meaning"
        placeholder="A name, words, or a question"
        defaultValue={asked}
        maxLength={20_000}
      />
      <Button type="submit" hint="/">
        Search
      </Button>
      {asked ? (
        <Button tone="quiet" onClick={() => address.set({ q: null }, { push: true })}>
          Browse all
        </Button>
      ) : null}
    </form>
  );
}

function AsOf({ address }: { address: Address }) {
  const newest = Number(status.value?.head.split(":")[0] ?? 0);
  const named = address.get("at");
  const at = /^\d+$/.test(named) ? Math.min(Number(named), newest) : newest;
  const [value, setValue] = useState(at);
  const due = useRef<ReturnType<typeof setTimeout>>();
  useEffect(() => setValue(at), [at]);
  const commit = useGet(
    named && at ? "/memory/commits" : null,
    { params: { query: { before: at + 1, limit: 1 } } },
    null,
  );
  const move = (to: number) => {
    setValue(to);
    clearTimeout(due.current);
    due.current = setTimeout(() => address.set({ at: to >= newest ? null : to }), 140);
  };
  const shown = commit.data?.items[0];
  return (
    <div class="as-of">
      <label for="as-of">{value >= newest ? "As of now" : `As of commit ${value.toLocaleString()}`}</label>
      <input
        id="as-of"
        type="range"
        min={0}
        max={newest}
        value={value}
        onInput={(event) => move(Number(event.currentTarget.value))}
        aria-valuetext={value >= newest ? "now" : `commit ${value}`}
      />
      <span class="soft small as-of-when">
        {value < newest && value === at ? shown ? <Time at={shown.at} /> : at ? "" : "before the first commit" : null}
      </span>
      {value < newest ? (
        <Button small tone="quiet" onClick={() => address.set({ at: null })}>
          Now
        </Button>
      ) : null}
    </div>
  );
}

/** Have a field show what the address says, unless somebody is writing in it. */
function useShown(field: Ref<HTMLInputElement | null>, value: string): void {
  useEffect(() => {
    if (field.current && field.current !== document.activeElement) field.current.value = value;
  }, [field, value]);
}

function Filters({ address, count, searching }: { address: Address; count: number; searching: boolean }) {
  const due = useRef<ReturnType<typeof setTimeout>>();
  const field = useRef<HTMLInputElement>(null);
  useShown(field, address.get("text"));
  const later = (change: Record<string, string>) => {
    clearTimeout(due.current);
    due.current = setTimeout(() => address.set(change), 220);
  };
  return (
    <div class="stack filter-fields">
      {searching ? null : (
        <label class="field">
          <span>Text or key contains</span>
          <input
            type="search"
            ref={field}
            defaultValue={address.get("text")}
            onInput={(event) => later({ text: event.currentTarget.value })}
            maxLength={1000}
          />
        </label>
      )}
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
      {searching ? null : (
        <label class="line small">
          <input
            type="checkbox"
            checked={address.get("ended") === "1"}
            onChange={(event) => address.set({ ended: event.currentTarget.checked ? "1" : null })}
          />
          Show ended ones
        </label>
      )}
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

const COLUMNS = [
  { sort: null, title: "Memory", name: "" },
  { sort: null, title: "About", name: "about" },
  { sort: "author", title: "Said by", name: "author" },
  { sort: "trust", title: "Trust", name: "trust" },
  { sort: "created", title: "Said", name: "created" },
] as const;
type Sort = NonNullable<(typeof COLUMNS)[number]["sort"]>;

function Browser({
  address,
  query,
  selected,
  turn,
}: {
  address: Address;
  query: Query;
  selected: ReadonlyMap<string, Memory>;
  turn: (each: Memory) => void;
}) {
  const sort = (address.get("sort") || "created") as NonNullable<Query["sort"]>;
  const ascending = address.get("asc") === "1";
  const reading = address.get("view") !== "table";
  const [cursor, setCursor] = useState(-1);
  const name = JSON.stringify([query, sort, ascending]);
  const list = useWindow<Memory>(
    name,
    async (offset, limit, signal) => {
      const found = await ask(
        api.GET("/memory/items", { signal, params: { query: { ...query, sort, ascending, offset, limit } } }),
      );
      return found.ok ? { ...found, data: { items: found.data.items, total: found.data.total ?? 0 } } : found;
    },
    query.as_of ? null : commits,
  );
  useEffect(() => setCursor(-1), [name]);
  const total = list.total ?? 0;
  const step = (by: number) => setCursor((before) => Math.max(0, Math.min(total - 1, before + by)));
  const here = list.at(cursor);
  useKeys("Memories", {
    j: { does: "Next", run: () => step(1) },
    k: { does: "The one before", run: () => step(-1) },
    x: { does: "Select, or not any more", run: () => here && turn(here) },
    Enter: { does: "Open", run: () => here && go(placeOf(here, query.as_of)) },
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

interface BodyProps {
  list: Windowed<Memory>;
  reading: boolean;
  cursor: number;
  selected: ReadonlyMap<string, Memory>;
  turn: (each: Memory) => void;
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
            <Facts each={each} /> {each.subject ? <span>about {seen(each.subject)}</span> : null}
            <span>said by {seen(each.speaker ?? each.author)}</span> <Time at={each.created_at} />
          </div>
        </div>
      </div>
    );
  }
  return (
    <div class={name} role="listitem">
      {box}
      <span class="memory-cell">{title}</span>
      <span class="about cut soft">{each.subject ? seen(each.subject) : "–"}</span>
      <span class="author cut soft">{seen(each.speaker ?? each.author)}</span>
      <span class="trust">
        <Tag tone={each.trust === "web" || each.trust === "unknown" ? "warn" : "plain"}>{each.trust}</Tag>
      </span>
      <span class="created soft">
        <Time at={each.created_at} short />
      </span>
    </div>
  );
}

function placeOf(each: { id: string }, asOf: string | number | null | undefined): string {
  return `/memories/${encodeURIComponent(each.id)}${asOf ? `?at=${encodeURIComponent(String(asOf))}` : ""}`;
}

// --- search

// Memories that are looked for by a part of their text, and the longest text that is looked for so.
const CONTAINING = 50;
const LONGEST = 1_000;

/** A memory that was found, and by what. */
interface Finding {
  memory: Memory;
  why: string;
  weak: boolean;
}

/** Return what contains the words first, in the order of the search, and then what the search found beside it. */
function merged(hits: readonly Schemas["Hit"][], containing: readonly Memory[]): Finding[] {
  const says = new Set(containing.map((each) => each.id));
  const found = new Set(hits.map((each) => each.id));
  const byHit = (hit: Schemas["Hit"]): Finding => ({
    memory: hit.memory,
    why: `found by ${hit.why.join(" and ") || "its place"}`,
    weak: hit.weak,
  });
  return [
    ...hits.filter((hit) => says.has(hit.id)).map(byHit),
    ...containing.filter((each) => !found.has(each.id)).map((memory) => ({ memory, why: "says it", weak: false })),
    ...hits.filter((hit) => !says.has(hit.id)).map(byHit),
  ];
}

/** Return what marks the words of a search; null where it has none. */
function marksOf(asked: string): RegExp | null {
  const words = asked.match(/[\p{L}\p{N}]{3,}/gu)?.slice(0, 20) ?? [];
  return words.length ? new RegExp(`(${words.join("|")})`, "giu") : null;
}

function Results({
  query,
  asked,
  selected,
  turn,
}: {
  query: Query;
  asked: string;
  selected: ReadonlyMap<string, Memory>;
  turn: (each: Memory) => void;
}) {
  const { query: _, limit: __, ...narrowed } = searched(query, asked);
  const follow = query.as_of ? null : commits;
  const found = useGet("/memory/search", { params: { query: searched(query, asked) as never } }, follow);
  const containing = useGet(
    asked.length > LONGEST ? null : "/memory/items",
    { params: { query: { ...narrowed, text: asked, limit: CONTAINING, below: true } as never } },
    follow,
  );
  const [cursor, setCursor] = useState(-1);
  const ready = found.data && (containing.data || containing.problem || asked.length > LONGEST);
  const findings = ready ? merged(found.data?.hits ?? [], containing.data?.items ?? []) : [];
  const here = findings[cursor];
  const marks = marksOf(asked);
  useKeys("Memories", {
    j: { does: "Next", run: () => setCursor(Math.min(findings.length - 1, cursor + 1)) },
    k: { does: "The one before", run: () => setCursor(Math.max(0, cursor - 1)) },
    x: { does: "Select, or not any more", run: () => here && turn(here.memory) },
    Enter: { does: "Open", run: () => here && go(placeOf(here.memory, query.as_of)) },
  });
  return (
    <Shown of={{ ...found, data: ready ? found.data : undefined, loading: !ready && !found.problem }}>
      {(data) => {
        if (!findings.length)
          return (
            <div class="card">
              <Empty title="Nothing is found">
                {data.notes.map((note) => (
                  <p key={note}>{seen(note)}</p>
                ))}
              </Empty>
            </div>
          );
        return (
          <section class="card" aria-label="Found">
            <p class="memory-head small soft line">
              <span>
                {counted(findings.length, "memory", "memories")} found.
                {data.notes.map((note) => (
                  <> {seen(note)}.</>
                ))}
              </span>
            </p>
            <ol class="found-hits">
              {findings.map(({ memory, why, weak }, at) => (
                <li
                  key={memory.id}
                  class={`found-hit ${at === cursor ? "on" : ""} ${selected.has(memory.id) ? "picked" : ""}`}
                >
                  <input
                    type="checkbox"
                    checked={selected.has(memory.id)}
                    onChange={() => turn(memory)}
                    aria-label={`Select ${memory.text.slice(0, 60)}`}
                  />
                  <div class="stack">
                    <Link href={placeOf(memory, query.as_of)} class="memory-link">
                      <MemoryText text={memory.text} limit={600} marks={marks} />
                    </Link>
                    <div class="line small soft">
                      <Facts each={memory} />
                      {memory.subject ? <span>about {seen(memory.subject)}</span> : null}
                      <span>said by {seen(memory.speaker ?? memory.author)}</span>
                      <Time at={memory.created_at} />
                      <span>· {why}</span>
                      {weak ? <Tag tone="warn">unsure</Tag> : null}
                    </div>
                  </div>
                </li>
              ))}
            </ol>
          </section>
        );
      }}
    </Shown>
  );
}

// --- what is done with several

interface SelectionProps {
  selected: ReadonlyMap<string, Memory>;
  clear: () => void;
  choose: (all: ReadonlyMap<string, Memory>) => void;
  query: Query;
  total: number | undefined;
}

function Selection({ selected, clear, choose, query, total }: SelectionProps) {
  const [open, setOpen] = useState<"forget" | "contain" | null>(null);
  const items = [...selected.values()];
  const all = async () => {
    const found = await ask(api.GET("/memory/items", { params: { query: { ...query, offset: 0, limit: MOST } } }));
    if (!found.ok) return say(found.problem.detail, { tone: "bad" });
    choose(new Map(found.data.items.map((each) => [each.id, each])));
  };
  const may = mayChange();
  useKeys("Selected", {
    Escape: { does: "Select nothing", run: clear },
    c: may ? { does: "Take what is selected out of use", run: () => setOpen("contain") } : null,
    d: may ? { does: "Forget what is selected", run: () => setOpen("forget") } : null,
  });
  return (
    <div class="memory-selection" role="region" aria-label="Selected memories">
      <b>{counted(items.length, "memory", "memories")} selected</b>
      {total !== undefined && total > items.length ? (
        <Button small tone="quiet" onClick={() => void all()}>
          Select {total > MOST ? `the first ${MOST}` : `all ${total.toLocaleString()}`}
        </Button>
      ) : null}
      <span class="spread" />
      <Button small onClick={() => download(items)}>
        Export
      </Button>
      {may ? (
        <Button small hint="c" onClick={() => setOpen("contain")}>
          Take out of use…
        </Button>
      ) : null}
      {may ? (
        <Button small tone="no" hint="d" onClick={() => setOpen("forget")}>
          Forget…
        </Button>
      ) : null}
      {may && items.length <= ERASED_AT_ONCE ? (
        <Link class="btn sm no" href={`/erase?${new URLSearchParams({ ids: items.map((each) => each.id).join(" ") })}`}>
          Erase for good…
        </Link>
      ) : null}
      <Button small tone="quiet" onClick={clear}>
        Clear
      </Button>
      {open === "forget" ? <ForgetDialog items={items} onClose={() => setOpen(null)} done={clear} /> : null}
      {open === "contain" ? (
        <ContainDialog
          ways={items.map((each) => ({ memory: each.id }))}
          of={counted(items.length, "memory", "memories")}
          onClose={() => {
            setOpen(null);
            clear();
          }}
        />
      ) : null}
    </div>
  );
}

function ForgetDialog({ items, onClose, done }: { items: readonly Memory[]; onClose: () => void; done: () => void }) {
  const [reason, setReason] = useState("");
  const [busy, setBusy] = useState(false);
  const run = async () => {
    setBusy(true);
    const answer = await ask(api.POST("/memory/items/forget", { body: { ids: items.map((each) => each.id), reason } }));
    setBusy(false);
    if (!answer.ok) return say(answer.problem.detail, { tone: "bad" });
    const { outcome } = answer.data;
    notifyChanged();
    onClose();
    done();
    if (outcome?.outcome === "refused")
      return say(outcome.reasons.map((each) => each.detail).join(" "), { tone: "bad" });
    if (outcome?.outcome === "quarantined") return say("It waits for review.", { tone: "plain" });
    const commit = outcome?.commit;
    say(`Forgot ${counted(items.length, "memory", "memories")}.`, commit ? { undo: () => rollBack(commit) } : {});
  };
  return (
    <Dialog
      title={`Forget ${counted(items.length, "memory", "memories")}`}
      onClose={onClose}
      onSubmit={() => void run()}
      foot={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button tone="go" type="submit" busy={busy} disabled={!reason.trim()}>
            Forget {counted(items.length, "memory", "memories")}
          </Button>
        </>
      }
    >
      <ol class="plain-list boxed" aria-label="What would be forgotten">
        {items.map((each) => (
          <li key={each.id}>
            <MemoryText one text={each.text} />
          </li>
        ))}
      </ol>
      <label class="field">
        <span>Why; it stands in the journal</span>
        <input value={reason} maxLength={1000} onInput={(event) => setReason(event.currentTarget.value)} />
      </label>
      <p class="soft small">
        No agent sees them any more, in one commit. Nothing is deleted; restoring or a rollback brings them back.
      </p>
    </Dialog>
  );
}

/** Hand what is selected over as a file: one memory a line. */
function download(items: readonly Memory[]): void {
  const lines = items.map((each) => JSON.stringify(each)).join("\n");
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([`${lines}\n`], { type: "application/x-ndjson" }));
  link.download = `memories-${items.length}.jsonl`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
