/** What somebody proposed, and which contexts it was given. */

import { Link } from "wouter-preact";
import { useGet } from "../../load";
import { mayDecide } from "../../session";
import { counted } from "../../parts/Contain";
import { MemoryText } from "../../parts/MemoryText";
import { Tag } from "../../parts/Tag";
import { Time } from "../../parts/Time";
import { seen } from "../../parts/seen";
import { headline, summaryOf } from "../review/labels";

// Of each sort, the newest.
const SHOWN = 5;
const DECIDED = ["approved", "rejected"] as const;

/** `name` is that of the actor, as `kind:name`. */
export function Proposed({ name: proposer }: { name: string }) {
  const path = mayDecide() ? "/memory/quarantine" : null;
  const waiting = useGet(path, { params: { query: { proposer, limit: SHOWN } } });
  const approved = useGet(path, { params: { query: { proposer, state: "approved", limit: 1 } } });
  const rejected = useGet(path, { params: { query: { proposer, state: "rejected", limit: 1 } } });
  const counts = [approved, rejected].map((found) => found.data?.items);
  const items = waiting.data?.items;
  if (!items || (items.isEmpty && counts.every((count) => !count || count.isEmpty))) return null;
  const reviewOf = (state: string) => `/review?${new URLSearchParams({ proposer, ...(state ? { state } : {}) })}`;
  return (
    <section class="card pad stack" aria-label="What it proposed">
      <div class="line">
        <h2>What it proposed</h2>
        <span class="spread" />
        <Link class="small" href={reviewOf("")}>{`${items.count} waiting`}</Link>
        {DECIDED.map((state, at) =>
          counts[at] && !counts[at].isEmpty ? (
            <Link key={state} class="small" href={reviewOf(state)}>{`${counts[at].count} ${state}`}</Link>
          ) : null,
        )}
      </div>
      {items.isEmpty ? null : (
        <ul class="plain-list boxed" aria-label="Proposals that wait" tabIndex={0}>
          {items.shown.map((item) => (
            <li key={item.id}>
              <Link href={`/review?${new URLSearchParams({ proposer, at: item.id })}`} class="memory-link">
                <MemoryText one text={summaryOf(item) || headline(item)} />
              </Link>
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}

export function Delivered({ name }: { name: string }) {
  const found = useGet(mayDecide() ? "/memory/receipts" : null, {
    params: { query: { kind: ["compile"], actor: name, limit: SHOWN } },
  });
  const items = found.data?.items;
  if (!items || items.isEmpty) return null;
  return (
    <section class="card pad stack" aria-label="What it was given">
      <div class="line">
        <h2>What it was given</h2>
        <span class="spread" />
        <Link class="small" href={`/context?${new URLSearchParams({ view: "receipts", by: name })}`}>
          {items.named("context")}
        </Link>
      </div>
      <ul class="plain-list boxed" aria-label="Contexts, newest first" tabIndex={0}>
        {items.shown.map((row) => (
          <li key={row.id} class="line small">
            <Link href={`/context?receipt=${row.id}`} class="cut">
              {row.objective ? seen(row.objective) : (row.compiled ?? "context")}
            </Link>
            <span class="spread" />
            <Tag>{counted(row.shown ?? 0, "memory", "memories")}</Tag>
            <Time at={row.at} />
          </li>
        ))}
      </ul>
    </section>
  );
}
