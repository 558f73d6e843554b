/** Commits: the journal, what each commit changed, its rollback with a preview, and two states compared. */

import "./maintenance.css";
import { useRef } from "preact/hooks";
import { useAddress, type Address } from "../address";
import type { Schemas } from "../api";
import { useKeys } from "../keys";
import { useGet } from "../load";
import { Button } from "../parts/Button";
import { Chip } from "../parts/Chip";
import { CommitLink } from "../parts/CommitLink";
import { Damage } from "../parts/Damage";
import { Page } from "../parts/Page";
import { Empty, Shown } from "../parts/States";
import { Typed } from "../parts/Typed";
import { Compare } from "./commits/Compare";
import { Detail } from "./commits/Detail";
import { Folded, Row } from "./commits/Row";
import { daysAgo, SPANS } from "./commits/spans";
import { grouped, reasonOf, titleOf, undoneBy } from "./commits/undone";

type Commit = Schemas["CommitView"];

const PAGE = 100;
// Rollbacks that are looked through for what they undid, the newest.
const ROLLBACKS = 200;
export const KINDS = ["write", "approve", "rollback", "contain", "erase", "job", "import"];

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
              items.length || data.damaged.length ? (
                <>
                  <Damage notes={data.notes} />
                  {data.damaged.length ? (
                    <p class="pad line small" role="group" aria-label="Damaged commits">
                      See what can be read of{" "}
                      {data.damaged.map((each) => (
                        <CommitLink key={each.seq} of={each.seq} />
                      ))}
                    </p>
                  ) : null}
                  <ol class="journal" aria-label="Commits, newest first">
                    {grouped(items).map((each) =>
                      "items" in each ? (
                        <Folded
                          key={each.items.at(-1)?.commit.id}
                          group={each}
                          cut={
                            (each.items.at(-1) === all.at(-1) && data.next_before !== null) ||
                            (each.items[0] === all[0] && Boolean(query.before))
                          }
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
