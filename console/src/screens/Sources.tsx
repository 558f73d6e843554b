/** Sources: what each agent, source, page and session wrote, what it touched, and how all of it is taken out of use. */

import "./sources.css";
import { Fragment } from "preact";
import { useState } from "preact/hooks";
import { Link } from "wouter-preact";
import { useAddress } from "../address";
import { addressOf, type Schemas } from "../api";
import { listOf, zone } from "../browse";
import { useDebounced } from "../debounce";
import { useKeys } from "../keys";
import { whole } from "../listed";
import { useGet } from "../load";
import { mayChange } from "../session";
import { Button } from "../parts/Button";
import { ContainDialog, counted, type ContainSelector } from "../parts/Contain";
import { Damage, damageOf } from "../parts/Damage";
import { MemorySummary } from "../parts/MemorySummary";
import { MemoryText } from "../parts/MemoryText";
import { Page } from "../parts/Page";
import { Spark } from "../parts/Spark";
import { Empty, Shown } from "../parts/States";
import { Tag } from "../parts/Tag";
import { Time } from "../parts/Time";
import { Who } from "../parts/Who";
import { seen, written } from "../parts/seen";
import type { List } from "./about/names";

/** The lists, by what the API calls them: which activity shows them, and how `impact` and `contain` name one. */
const LISTS = {
  actors: { title: "Agents and people", way: "actor", by: "author", filter: "author" },
  sources: { title: "Kinds of source", way: "source", by: "source", filter: "source" },
  references: { title: "Pages and records", way: "source", by: null, filter: null },
  sessions: { title: "Sessions", way: "session", by: "session", filter: "session" },
} as const;
type Origins = Schemas["SourceActivity"];

// Rows from which there is a box to find one.
const MANY = 12;
// Memories up to which an impact is looked at without being asked for.
const AT_ONCE = 2_000;
const QUERY = { below: true } as const;
// Contexts of an impact that are listed, the newest ones.
const CONTEXTS = 100;

export function Sources() {
  const address = useAddress();
  const named = address.get("list");
  const list: List = named in LISTS ? (named as List) : "actors";
  const all = useGet("/memory/sources", { params: { query: QUERY } });
  const sought = useDebounced(address.get("find").trim());
  const narrowed = useGet(sought ? "/memory/sources" : null, { params: { query: { ...QUERY, name: sought } } });
  const found = { ...all, data: (sought && narrowed.data) || all.data };
  const { by } = LISTS[list];
  const activity = useGet(by ? "/memory/activity" : null, {
    params: { query: { ...QUERY, by: by ?? "author", days: 30, zone: zone() } },
  });
  const chosen = address.get("name");
  const groups = grouped(list, [...(found.data?.[list].shown ?? [])]);
  const rows = groups.flatMap((group) => group.rows);
  const here = rows.findIndex((each) => each.name === chosen);
  const choose = (at: number) => {
    const row = rows[Math.max(0, Math.min(rows.length - 1, at))];
    if (row) address.set({ name: row.name });
  };
  useKeys("Sources", {
    j: { does: "Next", run: () => choose(here + 1) },
    k: { does: "The one before", run: () => choose(here - 1) },
  });
  // What is not among those that are listed is looked up by its name.
  const other = useGet(chosen && found.data && here < 0 ? "/memory/sources" : null, {
    params: { query: { ...QUERY, name: chosen } },
  });
  const row = rows[here] ?? other.data?.[list].shown.find((each) => each.name === chosen);
  return (
    <Page
      title="Sources"
      lede="what each wrote, at what trust, and where it went"
      json={addressOf("/memory/sources", { params: { query: QUERY } })}
    >
      <div class="source-tabs" role="group" aria-label="What to list">
        {(Object.keys(LISTS) as List[]).map((each) => (
          <button
            key={each}
            type="button"
            aria-pressed={each === list}
            onClick={() =>
              address.set({ list: each === "actors" ? null : each, name: null, find: null }, { push: true })
            }
          >
            {LISTS[each].title} <span class="num">{all.data?.[each].count}</span>
          </button>
        ))}
      </div>
      <div class={row || chosen ? "sources opened" : "sources"}>
        <Shown of={found}>
          {(data) =>
            data[list].shown[0] || sought || data.damaged ? (
              <section class="card" aria-label={LISTS[list].title}>
                <Damage notes={damageOf(data.damaged, "memory", "memories")} />
                {(data[list].total ?? 0) > MANY || sought ? (
                  <div class="pad">
                    <input
                      type="search"
                      aria-label="Find a source"
                      placeholder="A part of its name"
                      value={address.get("find")}
                      onInput={(event) => address.set({ find: event.currentTarget.value, name: null })}
                    />
                  </div>
                ) : null}
                {rows.length ? null : <Empty title="None has such a name" />}
                {groups.map((group) => (
                  <Fragment key={group.host}>
                    {group.host ? <Host host={group.host} rows={group.rows} /> : null}
                    <ul class="plain-list" aria-label={written(group.host) || LISTS[list].title}>
                      {group.rows.map((each) => (
                        <Row
                          key={each.name}
                          each={each}
                          on={each.name === chosen}
                          days={activity.data?.series.shown.find((one) => one.name === each.name)?.counts}
                          choose={() => address.set({ name: each.name === chosen ? null : each.name })}
                        />
                      ))}
                    </ul>
                  </Fragment>
                ))}
                {data[list].isWhole ? null : <p class="pad soft small">and {data[list].rest} that wrote less</p>}
              </section>
            ) : (
              <div class="card">
                <Empty title="Nothing of the sort">
                  Once something is remembered, it is said here where that came from.
                </Empty>
              </div>
            )
          }
        </Shown>
        {row ? <Detail key={`${list} ${row.name}`} list={list} row={row} /> : null}
        {found.data && chosen && !row && !other.loading ? <Unknown list={list} name={chosen} /> : null}
      </div>
    </Page>
  );
}

interface HostRows {
  /** Empty for what has none. */
  host: string;
  rows: Origins[];
}

/** Return pages by their host, the hosts with several pages; everything else as it comes. */
function grouped(list: List, rows: Origins[]): HostRows[] {
  if (list !== "references") return [{ host: "", rows }];
  const hosts = new Map<string, Origins[]>();
  for (const row of rows) {
    const host = /^https?:\/\/([^/?#]+)/.exec(row.name)?.[1] ?? "";
    hosts.set(host, [...(hosts.get(host) ?? []), row]);
  }
  const several = [...hosts].filter(([host, pages]) => host && pages.length > 1);
  const shared = new Set(several.map(([host]) => host));
  const rest = [...hosts].filter(([host]) => !shared.has(host)).flatMap(([, pages]) => pages);
  const groups = several.map(([host, pages]) => ({ host, rows: pages }));
  return rest.length ? [...groups, { host: "", rows: rest }] : groups;
}

/** All pages of one host, which go out of use together. */
function Host({ host, rows }: { host: string; rows: readonly Origins[] }) {
  const [open, setOpen] = useState(false);
  return (
    <div class="line pad source-host">
      <h3 class="cut" dir="auto">
        {seen(host)}
      </h3>
      <span class="soft small">{counted(rows.length, "page")}</span>
      <span class="spread" />
      {mayChange() && rows.some((row) => row.live) ? (
        <Button small onClick={() => setOpen(true)}>
          Take all of it out of use…
        </Button>
      ) : null}
      {open ? (
        <ContainDialog
          ways={rows.map((row) => ({ source: row.name }))}
          of={`what ${host} wrote`}
          onClose={() => setOpen(false)}
        />
      ) : null}
    </div>
  );
}

function Row({
  each,
  on,
  days,
  choose,
}: {
  each: Origins;
  on: boolean;
  days: readonly number[] | undefined;
  choose: () => void;
}) {
  const low = ["web", "unknown"].reduce((sum, name) => sum + (each.trust[name] ?? 0), 0);
  return (
    <li class={on ? "source-row on" : "source-row"}>
      <button type="button" onClick={choose} aria-pressed={on}>
        <b class="cut" dir="auto" title={written(each.name)}>
          {seen(each.name)}
        </b>
        <span class="soft small">
          {counted(each.memories, "memory", "memories")}
          {each.live < each.memories ? `, ${each.live.toLocaleString()} active` : ""}, last{" "}
          <Time at={each.last} short />
        </span>
      </button>
      <span class="source-trust">{low ? <Tag tone="warn">{`${low.toLocaleString()} of low trust`}</Tag> : null}</span>
      <span class="source-days">
        {days ? (
          <Spark
            values={days}
            label={`Written a day in the last 30 days: ${days.reduce((a, b) => a + b, 0).toLocaleString()} in all`}
            height={24}
          />
        ) : null}
      </span>
    </li>
  );
}

/** A name that wrote no memory that is kept, or less than what is listed. */
export function Unknown({ list, name }: { list: List; name: string }) {
  const { filter } = LISTS[list];
  return (
    <section class="card pad stack source-detail" aria-label="Impact">
      <h2 class="cut" dir="auto">
        {seen(name)}
      </h2>
      <p class="soft">It is not among those that are listed here: it wrote little, or nothing that is kept.</p>
      <div class="line">
        {filter ? <Link href={listOf({ [filter]: name, ended: "1" })}>Its memories</Link> : null}
        {list === "actors" ? <Link href={`/commits?${new URLSearchParams({ actor: name })}`}>Its commits</Link> : null}
        {list === "actors" ? (
          <Link href={`/context?${new URLSearchParams({ view: "receipts", by: name })}`}>What it asked</Link>
        ) : null}
        {list === "actors" ? (
          <Link href={`/review?${new URLSearchParams({ proposer: name })}`}>Its proposals</Link>
        ) : null}
      </div>
    </section>
  );
}

/** What one of them wrote, what that touched, and how all of it is taken out of use. */
export function Detail({ list, row }: { list: List; row: Origins }) {
  const { way, filter } = LISTS[list];
  const [asked, setAsked] = useState(row.memories <= AT_ONCE);
  const [open, setOpen] = useState(false);
  const selector = { [way]: row.name } as ContainSelector;
  const impact = useGet(asked ? "/memory/impact" : null, { params: { query: selector } });
  return (
    <section class="card pad stack source-detail" aria-label="Impact">
      <div class="line">
        <h2 class="cut" dir="auto">
          <Who name={row.name} />
        </h2>
        <span class="spread" />
        {filter ? <Link href={listOf({ [filter]: row.name, ended: "1" })}>Its memories</Link> : null}
        {list === "actors" ? (
          <Link href={`/commits?${new URLSearchParams({ actor: row.name })}`}>Its commits</Link>
        ) : null}
        {list === "actors" ? (
          <Link href={`/context?${new URLSearchParams({ view: "receipts", by: row.name })}`}>What it asked</Link>
        ) : null}
        {list === "actors" ? (
          <Link href={`/review?${new URLSearchParams({ proposer: row.name })}`}>Its proposals</Link>
        ) : null}
      </div>
      {mayChange() ? (
        <div class="line source-acts">
          <Button tone="no" disabled={!row.live} onClick={() => setOpen(true)}>
            Take out of use…
          </Button>
          <Link
            class="btn no"
            href={
              way === "source"
                ? `/erase?${new URLSearchParams({ source: row.name })}`
                : `/erase?${new URLSearchParams({ who: row.name })}`
            }
          >
            Erase for good…
          </Link>
          <span class="soft small">
            {row.live ? "The plan is shown first, and changes nothing." : "Nothing of it is in use."}
          </span>
        </div>
      ) : null}
      <dl class="facts">
        <dt>wrote</dt>
        <dd>
          {counted(row.writes, "version")} of {counted(row.memories, "memory", "memories")}; {row.live.toLocaleString()}{" "}
          active
          {row.corrected ? `; ${counted(row.corrected, "memory", "memories")} corrected since by another writer` : ""}
        </dd>
        <dt>trust</dt>
        <dd class="line">
          {Object.entries(row.trust).map(([name, count]) => (
            <Tag
              key={name}
              tone={name === "web" || name === "unknown" ? "warn" : "plain"}
            >{`${name} ${count.toLocaleString()}`}</Tag>
          ))}
        </dd>
        <dt>from</dt>
        <dd>
          <Time at={row.first} />
        </dd>
        <dt>to</dt>
        <dd>
          <Time at={row.last} />
        </dd>
      </dl>
      {asked ? (
        <Shown of={impact}>{(data) => <Touched impact={data} />}</Shown>
      ) : (
        <div>
          <Button onClick={() => setAsked(true)}>Look at what it touched</Button>
        </div>
      )}
      {open ? <ContainDialog ways={[selector]} of={`what ${row.name} wrote`} onClose={() => setOpen(false)} /> : null}
    </section>
  );
}

function Touched({ impact }: { impact: Schemas["Impact"] }) {
  const memories = [
    ...impact.direct.map((each) => ({ each, how: "" })),
    ...impact.derived.map((each) => ({ each, how: "made from it" })),
    ...impact.corrected.map((each) => ({ each, how: "corrected since" })),
  ];
  const contexts = whole([...impact.contexts].reverse()).first(CONTEXTS);
  return (
    <>
      <div class="impact-numbers">
        <Number value={impact.direct.length} word="touched directly" />
        <Number value={impact.derived.length} word="made from these" />
        <Number value={impact.corrected.length} word="corrected since" />
        <Number
          value={impact.contexts.length}
          word={impact.contexts.length === 1 ? "context held any" : "contexts held any"}
        />
        <Number value={impact.waiting.length} word="wait for review" />
      </div>
      {impact.damaged.length ? (
        <p class="bad">
          {counted(impact.damaged.length, "memory or receipt", "memories or receipts")} could not be looked at: verify
          the store.
        </p>
      ) : null}
      <h3>Memories</h3>
      <ul class="plain-list boxed">
        {memories.slice(0, 200).map(({ each, how }) => (
          <li key={each.id} class="stack impact-memory">
            <Link href={`/memories/${encodeURIComponent(each.id)}`} class="memory-link">
              <MemoryText one text={each.text} />
            </Link>
            <span class="line small soft">
              <MemorySummary memory={each} />
              {how ? <span>{how}</span> : null}
            </span>
          </li>
        ))}
        {memories.length > 200 ? <li class="soft small">and {(memories.length - 200).toLocaleString()} more</li> : null}
      </ul>
      {impact.contexts.length ? (
        <>
          <h3>Contexts</h3>
          <ul class="plain-list boxed">
            {contexts.shown.map((each) => (
              <li key={each.receipt} class="line small">
                <Link href={`/context?receipt=${each.receipt}`}>
                  <Time at={each.at} />
                </Link>
                <span class="soft">
                  <Who name={each.actor} /> to {each.purpose}, {counted(each.items.length, "memory", "memories")} of it
                </span>
              </li>
            ))}
            {contexts.isWhole ? null : <li class="soft small">and {contexts.rest}</li>}
          </ul>
        </>
      ) : null}
    </>
  );
}

function Number({ value, word }: { value: number; word: string }) {
  return (
    <div>
      <b class="num">{value.toLocaleString()}</b>
      <span class="soft small">{word}</span>
    </div>
  );
}
