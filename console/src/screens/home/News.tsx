/** What happened since the last visit: what was learned, changed, taken away, decided and refused, and by whom. */

import { Link } from "wouter-preact";
import { api, ask, type Answer, type Schemas } from "../../api";
import { queueVersion } from "../../events";
import { get, useGet, useLoad } from "../../load";
import { MemoryText } from "../../parts/MemoryText";
import { ReceiptLink } from "../../parts/Receipt";
import { Shown } from "../../parts/States";
import { Time } from "../../parts/Time";
import { Who } from "../../parts/Who";
import { said } from "../../parts/seen";
import { OPS } from "../review/labels";
import { lastVisit, since } from "./visits";

interface Item {
  key: string;
  text: string;
  to?: string;
  /** Id of the receipt that says more, where no page does. */
  receipt?: string;
  who: string;
  at: string;
  /** What was done, where the heading does not say it. */
  done?: string;
}

interface Group {
  title: string;
  items: Item[];
}

// Commits that are looked through, and what is listed under each heading.
const COMMITS = 50;
const LISTED = 3;
const LEARNED = new Set(["insert", "promote"]);
const GONE = new Set(["retire", "archive", "expire", "supersede", "evict", "contain", "redact"]);

/** Return what commits of people and agents did, by heading. */
function written(commits: readonly Schemas["CommitView"][]): Group[] {
  const groups: Record<string, Item[]> = { Learned: [], Changed: [], "No longer in use": [] };
  for (const commit of commits) {
    for (const event of commit.steps) {
      const gone = GONE.has(event.op) || (event.before?.status === "active" && event.after.status !== "active");
      const title = gone ? "No longer in use" : LEARNED.has(event.op) ? "Learned" : "Changed";
      groups[title]?.push({
        key: `${commit.commit.id} ${event.after.id}`,
        text: event.after.text || event.before?.text || commit.details.reason,
        to: `/memories/${encodeURIComponent(event.after.id)}`,
        who: commit.details.actor,
        at: commit.commit.at,
        done: title === "Learned" ? undefined : (OPS[event.op] ?? event.op),
      });
    }
  }
  return Object.entries(groups).map(([title, items]) => ({ title, items }));
}

const DECISIONS = ["approval", "rejection"] as const;

/** Return what was decided and refused, each refusal with its reason. */
async function receipts(): Promise<Answer<Group[]>> {
  const query = (kind: readonly string[], limit: number) =>
    get("/memory/receipts", { params: { query: { kind: kind as never, limit } } });
  const [decided, refused] = await Promise.all([query(DECISIONS, COMMITS), query(["refusal"], COMMITS)]);
  if (!decided.ok) return decided;
  if (!refused.ok) return refused;
  const isOld = (receipt: { at: string }) => Date.parse(receipt.at) <= since;
  const refusals = refused.data.items.before(isOld).shown;
  const reasons = await Promise.all(
    refusals.slice(0, LISTED).map(({ id }) => ask(api.GET("/memory/receipts/{id}", { params: { path: { id } } }))),
  );
  return {
    ...refused,
    data: [
      {
        title: "Decided",
        items: decided.data.items.before(isOld).shown.map((receipt) => ({
          key: receipt.id,
          text: receipt.kind === "approval" ? "Approved a proposal" : "Rejected a proposal",
          to: receipt.commit ? `/commits?at=${receipt.commit}` : "/review?state=rejected",
          who: receipt.actor,
          at: receipt.at,
        })),
      },
      {
        title: "Refused",
        items: refusals.map((receipt, at) => {
          const full = reasons[at];
          return {
            key: receipt.id,
            text: (full?.ok ? full.data.reasons[0]?.detail : "") || "A write was refused",
            receipt: receipt.id,
            who: receipt.actor,
            at: receipt.at,
          };
        }),
      },
    ],
  };
}

export function News() {
  const commits = useGet("/memory/commits", { params: { query: { limit: COMMITS } } });
  const others = useLoad("news of receipts", receipts, queueVersion);
  return (
    <section class="card" aria-label="News">
      <header class="card-head">
        <h2>{lastVisit ? "Since your last visit" : "In the last seven days"}</h2>
        <Link class="small" href="/commits?compare=yes">
          What changed this week
        </Link>
      </header>
      <Shown of={commits}>
        {(data) => {
          const made = data.items.shown.filter(({ commit }) => commit.kind !== "job" && Date.parse(commit.at) > since);
          const groups = [...(others.data ?? []), ...written(made)].filter((group) => group.items.length);
          if (!groups.length) return <p class="soft none">Nothing was written, decided or refused.</p>;
          return groups.map((group) => <Heading key={group.title} group={group} />);
        }}
      </Shown>
    </section>
  );
}

function Heading({ group }: { group: Group }) {
  const { title, items } = group;
  return (
    <section class="news-group" aria-label={title}>
      <h3>
        {title} <span class="num">{items.length.toLocaleString()}</span>
      </h3>
      <ul class="news">
        {items.slice(0, LISTED).map((item) => (
          <li key={item.key}>
            {item.to ? (
              <Link href={item.to}>
                <MemoryText text={item.text} one />
              </Link>
            ) : (
              <span>
                {said(item.text)} {item.receipt ? <ReceiptLink id={item.receipt} /> : null}
              </span>
            )}
            <span class="soft small">
              {item.done ? `${item.done} by ` : ""}
              <Who name={item.who} />, <Time at={item.at} short />
            </span>
          </li>
        ))}
      </ul>
    </section>
  );
}
