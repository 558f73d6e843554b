/** One commit: who made it and why, what it changed, and its rollback. */

import { useState } from "preact/hooks";
import { Link } from "wouter-preact";
import { BASE, go, type Address } from "../../address";
import type { Schemas } from "../../api";
import { useKeys } from "../../keys";
import { useGet } from "../../load";
import { mayChange } from "../../session";
import { Button } from "../../parts/Button";
import { CommitLink } from "../../parts/CommitLink";
import { Damage } from "../../parts/Damage";
import { ReceiptLink } from "../../parts/Receipt";
import { Shown } from "../../parts/States";
import { Tag } from "../../parts/Tag";
import { Time } from "../../parts/Time";
import { Who } from "../../parts/Who";
import { seen } from "../../parts/seen";
import { proposerLabel } from "../review/labels";
import { Compared } from "./Compare";
import { RollBackDialog } from "./RollBack";
import { TONES } from "./Row";
import { reasonOf } from "./undone";

type Commit = Schemas["CommitView"];

export function Detail({
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
  const damaged = Boolean(found.data?.damage.length);
  const reversible = mayChange() && !by && !damaged && found.data?.commit.kind !== "erase";
  useKeys("This commit", {
    Escape: chosen ? { does: "Close the commit", run: () => address.set({ at: null }) } : null,
    z: reversible ? { does: "Roll it back, with a preview first", run: () => setUndoing(true) } : null,
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
              {reversible ? (
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
            <Damage notes={data.damage} />
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
                An erasure cannot be rolled back: what was erased no longer exists.{" "}
                <a href={`${BASE}/erase`}>Its certificate</a> proves it.
              </p>
            ) : null}
            {undoing && reversible ? <RollBackDialog commit={data.commit} onClose={() => setUndoing(false)} /> : null}
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
