/** What happened since the last visit: what was learned, changed, taken away, decided and refused, and by whom. */

import { Link } from "wouter-preact";
import type { Schemas } from "../../api";
import { queueMoves } from "../../events";
import { useGet } from "../../load";
import { Damage } from "../../parts/Damage";
import { MemoryText } from "../../parts/MemoryText";
import { ReceiptLink } from "../../parts/Receipt";
import { Shown } from "../../parts/States";
import { Time } from "../../parts/Time";
import { Who } from "../../parts/Who";
import { said } from "../../parts/seen";
import { OPS } from "../review/labels";
import { SINCE, since } from "./visits";

// What is listed under each heading.
const LISTED = 3;
const GROUPS = [
  ["Decided", "decisions"],
  ["Refused", "refusals"],
  ["Learned", "learned"],
  ["Changed", "changed"],
  ["No longer in use", "ended"],
  ["Erased", "erased"],
] as const;

export function News() {
  const news = useGet(
    "/memory/news",
    { params: { query: { since: new Date(since).toISOString(), most: LISTED } } },
    queueMoves,
  );
  return (
    <section class="card" aria-label="News">
      <header class="card-head">
        <h2>{SINCE.charAt(0).toUpperCase() + SINCE.slice(1)}</h2>
        <Link class="small" href="/commits?compare=yes">
          What changed this week
        </Link>
      </header>
      <Shown of={news}>
        {(data) => {
          const groups = GROUPS.filter(([, name]) => data[name].shown[0]);
          if (!groups.length && !data.notes.length)
            return <p class="soft none">Nothing was written, decided or refused.</p>;
          const listed = groups.map(([title, name]) => (
            <section key={name} class="news-group" aria-label={title}>
              <h3>
                {title} <span class="num">{data[name].count}</span>
              </h3>
              <ul class="news">
                {data[name].shown.map((each) => (
                  <Item key={`${each.receipt} ${each.memory}`} item={each} doing={name !== "learned"} />
                ))}
              </ul>
            </section>
          ));
          return (
            <>
              <Damage notes={data.notes} />
              {listed}
            </>
          );
        }}
      </Shown>
    </section>
  );
}

/** What was done, where the heading does not say it. */
const DONE: Record<string, string> = { ...OPS, expire: "expired", approval: "approved", rejection: "rejected" };

function Item({ item, doing }: { item: Schemas["Happening"]; doing: boolean }) {
  const { memory, text, op, actor, at, commit, receipt } = item;
  const title = memory ? text || "A memory, without its words" : op === "refusal" ? text || "A write was refused" : "";
  return (
    <li>
      {memory ? (
        <Link href={`/memories/${encodeURIComponent(memory)}`}>
          <MemoryText text={title} one />
        </Link>
      ) : title ? (
        <span>
          {said(title)} {receipt ? <ReceiptLink id={receipt} /> : null}
        </span>
      ) : (
        <Link href={commit ? `/commits?at=${commit}` : "/review?state=rejected"}>
          {op === "approval" ? "Approved a proposal" : "Rejected a proposal"}
        </Link>
      )}
      <span class="soft small">
        {doing && memory ? `${DONE[op] ?? op}${actor ? " by " : ""}` : ""}
        {actor ? <Who name={actor} /> : null}, <Time at={at} short />
      </span>
    </li>
  );
}
