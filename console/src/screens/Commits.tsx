/** Commits: the journal, what each commit changed, its rollback with a preview, and two states compared. */

import "./maintenance.css";
import type { ComponentChildren } from "preact";
import { useRef, useState } from "preact/hooks";
import { Link } from "wouter-preact";
import { BASE, go, useAddress, type Address } from "../address";
import type { Schemas } from "../api";
import { dayBegins } from "../browse";
import { changesOf } from "../changes";
import { useKeys } from "../keys";
import { useGet } from "../load";
import { mayChange } from "../session";
import { Button } from "../parts/Button";
import { Chip } from "../parts/Chip";
import { CommitLink } from "../parts/CommitLink";
import { Differences, type Differing } from "../parts/Differences";
import { Page } from "../parts/Page";
import { ReceiptLink } from "../parts/Receipt";
import { Empty, Shown } from "../parts/States";
import { Tag, type Tone } from "../parts/Tag";
import { Time } from "../parts/Time";
import { Typed } from "../parts/Typed";
import { Who } from "../parts/Who";
import { seen } from "../parts/seen";
import { RollBackDialog } from "./commits/RollBack";
import { grouped, reasonOf, titleOf, undoneBy, type Group } from "./commits/undone";
import { OPS, proposerLabel } from "./review/labels";

type Commit = Schemas["CommitView"];

const PAGE = 100;
// Rollbacks that are looked through for what they undid, the newest.
const ROLLBACKS = 200;
export const KINDS = ["write", "approve", "rollback", "contain", "erase", "job", "import"];
const TONES: Record<string, Tone> = { approve: "good", rollback: "warn", contain: "warn", erase: "bad" };

export function Commits() {
  const address = useAddress();
  const comparing = address.get("compare") !== "";
  return comparing ? <Compare address={address} /> : <Journal address={address} />;
}

function Journal({ address }: { address: Address }) {
  const query = {
    limit: PAGE,
    actor: address.get("actor") || undefined,
    kind: address.get("kind") || undefined,
    until: address.get("until") || undefined,
    before: Number(address.get("before")) || undefined,
  };
  const found = useGet("/memory/commits", { params: { query } });
  const rollbacks = useGet("/memory/commits", { params: { query: { kind: "rollback", limit: ROLLBACKS } } });
  const undone = undoneBy(rollbacks.data?.items.shown ?? []);
  const chosen = address.get("at");
  const since = address.get("since");
  const all = found.data?.items.shown ?? [];
  const items = since ? all.filter((each) => Date.parse(each.commit.at) >= Date.parse(since)) : all;
  const ends = items.length < all.length;
  // Where nothing was chosen the newest is open; what is being read stays when another one comes.
  const newest = useRef("");
  newest.current ||= String(items[0]?.commit.seq ?? "");
  const current = chosen || newest.current;
  const place = items.findIndex((each) => String(each.commit.seq) === current);
  const move = (by: number) => {
    const next = items[Math.max(0, Math.min(items.length - 1, place + by))];
    if (next) address.set({ at: next.commit.seq });
  };
  useKeys("Commits", {
    j: { does: "Next commit", run: () => move(1) },
    k: { does: "Previous commit", run: () => move(-1) },
    c: { does: "Compare two states", run: () => address.set({ compare: "yes" }, { push: true }) },
  });
  const filtered = Boolean(query.actor || query.kind || query.until || since);
  const row = (each: Commit) => (
    <Row
      key={each.commit.id}
      item={each}
      title={titleOf(each, all)}
      reason={reasonOf(each, all)}
      undone={undone.get(each.commit.id)}
      on={String(each.commit.seq) === current}
      address={address}
    />
  );
  return (
    <Page
      title="Commits"
      lede="every change, who made it and why"
      json={found.url}
      actions={
        <Button small onClick={() => address.set({ compare: "yes", at: null }, { push: true })}>
          Compare two states
        </Button>
      }
    >
      <Filters address={address} />
      <div class={chosen ? "two journal-page at" : "two journal-page"}>
        <div class="card">
          <Shown of={found} rows={8}>
            {(data) =>
              items.length ? (
                <>
                  <ol class="journal" aria-label="Commits, newest first">
                    {grouped(items).map((each) =>
                      "items" in each ? (
                        <Folded
                          key={each.items.at(-1)?.commit.id}
                          group={each}
                          open={each.items.some((item) => String(item.commit.seq) === chosen)}
                        >
                          {each.items.map(row)}
                        </Folded>
                      ) : (
                        row(each)
                      ),
                    )}
                  </ol>
                  {query.before || (data.next_before && !ends) ? (
                    <div class="pages">
                      {query.before ? (
                        <Button small onClick={() => address.set({ before: null }, { push: true })}>
                          Newest
                        </Button>
                      ) : (
                        <span />
                      )}
                      {data.next_before && !ends ? (
                        <Button small onClick={() => address.set({ before: data.next_before }, { push: true })}>
                          Older
                        </Button>
                      ) : null}
                    </div>
                  ) : null}
                </>
              ) : (
                <Empty title={filtered ? "No such commit" : "Nothing was written yet"}>
                  {filtered ? "Remove a filter." : "Each change is listed here, with who made it and why."}
                </Empty>
              )
            }
          </Shown>
        </div>
        {current ? (
          <Detail key={current} name={current} undone={undone} chosen={chosen !== ""} address={address} />
        ) : null}
      </div>
    </Page>
  );
}

/** Commits of one act, or that only keep the books, as one line. */
function Folded({ group, open, children }: { group: Group; open: boolean; children: ComponentChildren }) {
  const { what, items } = group;
  const [newest] = items;
  const span = `${items.at(-1)?.commit.seq} to ${newest?.commit.seq}`;
  return (
    <li>
      <details open={open || undefined}>
        <summary class={what === "uses" ? "soft small" : ""}>
          {what === "uses" ? (
            `${items.length} commits that only counted uses, ${span}`
          ) : (
            <>
              {items.length} approvals at once by {seen(newest?.details.approved_by ?? newest?.details.actor ?? "")},{" "}
              <span class="soft small">
                commits {span}, <Time at={newest?.commit.at} short />
              </span>
            </>
          )}
        </summary>
        <ol class="journal">{children}</ol>
      </details>
    </li>
  );
}

function Filters({ address }: { address: Address }) {
  return (
    <>
      <div class="line compare-spans" role="group" aria-label="Since">
        {SPANS.map(([title, days]) => {
          const since = days === null ? "" : daysAgo(days);
          const set = () => address.set({ since: since || null, before: null, at: null });
          return (
            <Chip key={title} on={address.get("since") === since} onClick={set}>
              {title}
            </Chip>
          );
        })}
      </div>
      <FilterForm address={address} />
    </>
  );
}

function FilterForm({ address }: { address: Address }) {
  return (
    <form class="bar" role="search" aria-label="Filters" onSubmit={(event) => event.preventDefault()}>
      <label class="field">
        <span>Who made or approved it</span>
        <Typed
          value={address.get("actor")}
          placeholder="agent:claude"
          onSet={(actor) => address.set({ actor, before: null })}
        />
      </label>
      <label class="field">
        <span>Kind</span>
        <select
          value={address.get("kind")}
          onChange={(event) => address.set({ kind: event.currentTarget.value, before: null })}
        >
          <option value="">all</option>
          {KINDS.map((each) => (
            <option key={each}>{each}</option>
          ))}
        </select>
      </label>
      <label class="field">
        <span>Up to the day</span>
        <input
          type="date"
          value={address.get("until").slice(0, 10)}
          onChange={(event) =>
            address.set({
              until: event.currentTarget.value ? `${event.currentTarget.value}T23:59:59Z` : null,
              before: null,
            })
          }
        />
      </label>
    </form>
  );
}

function Row({
  item,
  title,
  reason,
  undone,
  on,
  address,
}: {
  item: Commit;
  title: string;
  reason: string;
  undone: Commit | undefined;
  on: boolean;
  address: Address;
}) {
  const { commit, details, steps } = item;
  const ops = [...new Set(steps.map((each) => OPS[each.op] ?? each.op))].slice(0, 3).join(", ");
  const many = steps.length > 1 ? ` × ${steps.length}` : "";
  const open = (event: MouseEvent) => {
    if (event.metaKey || event.ctrlKey) return;
    event.preventDefault();
    address.set({ at: commit.seq }, { push: !address.get("at") });
  };
  return (
    <li>
      <a href={`${BASE}/commits?at=${commit.seq}`} aria-current={on || undefined} onClick={open}>
        <span class="seq">{commit.seq}</span>
        <span class={undone ? "cut undone" : "cut"} dir="auto">
          {seen(title)}
        </span>
        <span class="soft small">
          <Time at={commit.at} short />
        </span>
        <span class="sub small soft">
          <Tag tone={TONES[commit.kind] ?? "plain"}>{commit.kind}</Tag>
          {undone ? <Tag tone="warn">{`undone by ${undone.commit.seq}`}</Tag> : null}
          <span class="cut">
            {seen(details.actor)}
            {details.approved_by && details.approved_by !== details.actor ? (
              <> · approved by {seen(details.approved_by)}</>
            ) : null}
            {reason && reason !== title ? <> · {seen(reason)}</> : null}
          </span>
          <span class="spread" />
          <span class="wide-only">
            {ops}
            {many}
          </span>
        </span>
      </a>
    </li>
  );
}

function Detail({
  name,
  undone,
  chosen,
  address,
}: {
  name: string;
  undone: ReadonlyMap<string, Commit>;
  chosen: boolean;
  address: Address;
}) {
  const found = useGet("/memory/commits/{commit_id}", { params: { path: { commit_id: name } } }, null);
  const proposal = found.data?.details.proposal;
  const proposed = useGet(
    proposal ? "/memory/quarantine/{id}" : null,
    { params: { path: { id: proposal ?? "" } } },
    null,
  );
  const [undoing, setUndoing] = useState(false);
  const by = found.data ? undone.get(found.data.commit.id) : undefined;
  useKeys("This commit", {
    Escape: chosen ? { does: "Close the commit", run: () => address.set({ at: null }) } : null,
    z: mayChange() && !by ? { does: "Roll it back, with a preview first", run: () => setUndoing(true) } : null,
  });
  return (
    <article class="card pad stack sticky" aria-label={`Commit ${name}`}>
      <Shown of={found}>
        {(data) => (
          <>
            <div class="line commit-head">
              <h2>Commit {data.commit.seq}</h2>
              <Tag tone={TONES[data.commit.kind] ?? "plain"}>{data.commit.kind}</Tag>
              {by ? (
                <span class="small">
                  undone by <CommitLink of={by.commit.seq} />
                </span>
              ) : null}
              <span class="spread" />
              {mayChange() && data.commit.kind !== "erase" && !by ? (
                <Button small tone="no" hint="z" onClick={() => setUndoing(true)}>
                  Roll back…
                </Button>
              ) : null}
              <Button small onClick={() => go(`/commits?compare=yes&from=${data.commit.seq}`)}>
                Compare with now
              </Button>
              {chosen ? (
                <Button small tone="quiet" onClick={() => address.set({ at: null })}>
                  Close
                </Button>
              ) : null}
            </div>
            <p dir="auto" class={by ? "undone" : ""}>
              {seen(reasonOf(data, []))}
            </p>
            <dl class="facts">
              <dt>by</dt>
              <dd>
                <Who name={data.details.actor} />
              </dd>
              {proposed.data && proposerLabel(proposed.data) !== data.details.actor ? (
                <>
                  <dt>proposed by</dt>
                  <dd>
                    <Who name={proposerLabel(proposed.data)} />
                  </dd>
                </>
              ) : null}
              {data.details.approved_by ? (
                <>
                  <dt>approved by</dt>
                  <dd>
                    <Who name={data.details.approved_by} />
                  </dd>
                </>
              ) : null}
              <dt>at</dt>
              <dd>
                <Time at={data.commit.at} />
              </dd>
              {data.details.session ? (
                <>
                  <dt>conversation</dt>
                  <dd>
                    <Link href={`/memories?${new URLSearchParams({ session: data.details.session })}`}>
                      {seen(data.details.session)}
                    </Link>
                  </dd>
                </>
              ) : null}
              {data.details.proposal ? (
                <>
                  <dt>proposal</dt>
                  <dd>
                    <Link href={`/review?at=${data.details.proposal}`}>what was proposed, and why it was held</Link>
                  </dd>
                </>
              ) : null}
              {data.details.undoes.length ? (
                <>
                  <dt>undoes</dt>
                  <dd class="line">
                    {data.details.undoes.map((each) => (
                      <Undoes key={each} id={each} />
                    ))}
                  </dd>
                </>
              ) : null}
              <dt>receipt</dt>
              <dd>
                <ReceiptLink id={data.details.receipt}>{data.details.receipt.slice(0, 13)}</ReceiptLink>
              </dd>
              <dt>hash</dt>
              <dd class="mono" title={data.commit.hash}>
                {data.commit.hash.slice(0, 16)}…
              </dd>
            </dl>
            <h3>{data.steps.length === 1 ? "What it changed" : `What it changed, in ${data.steps.length} memories`}</h3>
            <Compared items={data.steps} label="What it changed" />
            <p>
              <a class="small" href={found.url} target="_blank" rel="noreferrer">
                JSON
              </a>
            </p>
            {data.commit.kind === "erase" ? (
              <p class="soft small">
                An erasure cannot be undone: its content is gone. <a href={`${BASE}/erase`}>Its certificate</a> proves
                it.
              </p>
            ) : null}
            {undoing ? <RollBackDialog commit={data.commit} onClose={() => setUndoing(false)} /> : null}
          </>
        )}
      </Shown>
    </article>
  );
}

/** A commit that was undone, by its number. */
function Undoes({ id }: { id: string }) {
  const found = useGet("/memory/commits/{commit_id}", { params: { path: { commit_id: id } } }, null);
  return <CommitLink of={id}>{found.data ? `commit ${found.data.commit.seq}` : "an earlier commit"}</CommitLink>;
}

// What the store itself changes while a memory is used; its words stay as they are.
const UPKEEP = new Set(["importance", "base_importance", "reinforced_at", "uses", "last_used"]);
const SHOWN = 300;

function Compared({ items, label }: { items: readonly Differing[]; label: string }) {
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

const WEEK = 7;
const SPANS = [
  ["Today", 0],
  ["Last 7 days", WEEK],
  ["Last 30 days", 30],
  ["From the beginning", null],
] as const;

/** Return the instant at which the day of so many days ago began, for the reader. */
function daysAgo(days: number): string {
  const now = new Date();
  return new Date(now.getFullYear(), now.getMonth(), now.getDate() - days).toISOString();
}

/** Return the reader's day of a moment, as a date field takes it. */
function localDay(at: Date): string {
  return `${at.getFullYear()}-${String(at.getMonth() + 1).padStart(2, "0")}-${String(at.getDate()).padStart(2, "0")}`;
}

function Compare({ address }: { address: Address }) {
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
            data.count ? (
              <>
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
