/** One branch: what it changes of main, its conflicts, its merge and its end. */

import { useState } from "preact/hooks";
import { Link } from "wouter-preact";
import { addressOf } from "../../api";
import { useKeys } from "../../keys";
import { get, useLoad } from "../../load";
import { mayChange } from "../../session";
import { Button } from "../../parts/Button";
import { Command } from "../../parts/Command";
import { counted } from "../../parts/Contain";
import { PagedDifferences, SHOWN } from "../../parts/Differences";
import { Empty, Shown } from "../../parts/States";
import { Tag } from "../../parts/Tag";
import { Time } from "../../parts/Time";
import { Who } from "../../parts/Who";
import { seen, written } from "../../parts/seen";
import { Conflict } from "./Conflict";
import { DiscardDialog } from "./Discard";
import { MergeDialog, Merged, type BranchMerge } from "./Merge";
import { atScope, changesOfBranch, differingOf, STATES, type Branch, type Side } from "./words";

interface Props {
  branch: Branch;
  /** Whether no later branch has its name. */
  isNewest: boolean;
  onClose: (() => void) | undefined;
}

export function Detail({ branch, isNewest, onClose }: Props) {
  const [open, setOpen] = useState<"merge" | "discard" | null>(null);
  const [sides, setSides] = useState<Readonly<Record<string, Side>>>({});
  const [merged, setMerged] = useState<BranchMerge | null>(null);
  // It was discarded here; the list says so a moment later.
  const [ended, setEnded] = useState(false);
  const isOpen = branch.closed_at === null && !ended;
  const mayMerge = isOpen && mayChange() && branch.changes > 0;
  const mayDiscard = mayChange() && (isOpen || (branch.state === "expired" && isNewest));
  useKeys("This branch", {
    m: mayMerge ? { does: "Merge it into main", run: () => setOpen("merge") } : null,
    d: mayDiscard ? { does: "Discard it", run: () => setOpen("discard") } : null,
  });
  const { tone, means } = STATES[branch.state];
  return (
    <article class="stack" aria-label={`Branch ${written(branch.name)}`}>
      <div class="card pad stack">
        <div class="line">
          <h2 class="cut" dir="auto">
            {seen(branch.name)}
          </h2>
          <Tag tone={tone} title={means}>
            {branch.state}
          </Tag>
          <span class="spread" />
          {mayMerge ? (
            <Button small tone="go" hint="m" onClick={() => setOpen("merge")}>
              Merge…
            </Button>
          ) : null}
          {mayDiscard ? (
            <Button small tone="no" hint="d" onClick={() => setOpen("discard")}>
              Discard…
            </Button>
          ) : null}
          {onClose ? (
            <Button small tone="quiet" onClick={onClose}>
              Close
            </Button>
          ) : null}
        </div>
        {branch.reason ? <p dir="auto">{seen(branch.reason)}</p> : null}
        <dl class="facts">
          <dt>changes</dt>
          <dd>{changesOfBranch(branch)}</dd>
          <dt>made by</dt>
          <dd>
            <Who name={branch.author} />, <Time at={branch.created_at} />
          </dd>
          {branch.scope === "/" ? null : (
            <>
              <dt>scope</dt>
              <dd class="mono">{seen(branch.scope)}</dd>
            </>
          )}
          {branch.closed_at ? (
            <>
              <dt>closed</dt>
              <dd>
                <Time at={branch.closed_at} />
              </dd>
            </>
          ) : branch.expires_at ? (
            <>
              <dt>expires</dt>
              <dd>
                <Time at={branch.expires_at} />
              </dd>
            </>
          ) : null}
        </dl>
        {branch.closed_at ? (
          <Closed branch={branch} />
        ) : (
          <Command
            does="What an agent on the branch reads for a question"
            text={`keepward context "What is new?" --branch ${branch.name}`}
          />
        )}
      </div>
      {merged ? <Merged of={merged} onClose={() => setMerged(null)} /> : null}
      {isOpen ? (
        <Changes branch={branch} sides={sides} onSide={(id, side) => setSides({ ...sides, [id]: side })} />
      ) : null}
      {open === "merge" && mayMerge ? (
        <MergeDialog branch={branch} sides={sides} onClose={() => setOpen(null)} onDone={setMerged} />
      ) : null}
      {open === "discard" && mayDiscard ? (
        <DiscardDialog branch={branch} onClose={() => setOpen(null)} onEnd={setEnded} />
      ) : null}
    </article>
  );
}

function Closed({ branch }: { branch: Branch }) {
  return (
    <p class="soft">
      {branch.state === "expired" ? (
        "It is neither read nor written any more. What it changed is stored until it is discarded."
      ) : branch.state === "merged" ? (
        STATES.merged.means
      ) : (
        <>
          Its commits stay in the journal. To have it back, roll back{" "}
          <Link href="/commits?kind=discard">the commit that discarded it</Link>.
        </>
      )}
    </p>
  );
}

/** Conflicts first, each with both sides; then what a merge brings to main. */
function Changes({
  branch,
  sides,
  onSide,
}: {
  branch: Branch;
  sides: Readonly<Record<string, Side>>;
  onSide: (id: string, side: Side) => void;
}) {
  const useRead = (offset: number, limit: number) => {
    const init = { params: { path: { name: branch.name }, query: { offset, limit } }, headers: atScope(branch) };
    const url = addressOf("/memory/branches/{name}", init);
    return useLoad(`${url} at ${branch.scope}`, (signal) => get("/memory/branches/{name}", { ...init, signal }));
  };
  const found = useRead(0, SHOWN);
  return (
    <Shown of={found} rows={6}>
      {({ changes, counts }) => {
        const total = changes.total ?? 0;
        const conflicts = counts["conflicts"] ?? 0;
        const shown = changes.shown.filter((each) => each.conflict);
        if (!total)
          return (
            <div class="card">
              <Empty title="It changes nothing of main">
                What is written on the branch is compared with main here. <code>--branch {seen(branch.name)}</code>{" "}
                writes on it.
              </Empty>
            </div>
          );
        return (
          <>
            <p>
              <b>{counted(total, "change")}</b>: {countsOf(counts)}
              {conflicts ? (
                <>
                  ; <b class="warn">{counted(conflicts, "conflict")}</b>
                </>
              ) : null}
            </p>
            {conflicts ? (
              <section class="stack" aria-label="Conflicts">
                <h2>Conflicts</h2>
                <p class="soft">
                  Main has changed as well since the branch did. Decide on each, then merge; what is undecided stays on
                  the branch.
                </p>
                {shown.map((each) => (
                  <Conflict
                    key={each.id}
                    change={each}
                    side={sides[each.id]}
                    onSide={mayChange() ? (side) => onSide(each.id, side) : undefined}
                  />
                ))}
                {conflicts > shown.length ? (
                  <p class="soft">
                    {shown.length} of {conflicts.toLocaleString()} conflicts are shown. A merge of those that you
                    decided brings the next.
                  </p>
                ) : null}
              </section>
            ) : null}
            {total > conflicts ? (
              <section class="card pad stack" aria-label="Difference from main">
                <h2>{conflicts ? "Changes without a conflict" : "Difference from main"}</h2>
                <PagedDifferences
                  useRead={useRead}
                  itemsOf={(data) => data.changes.shown.map(differingOf)}
                  from={conflicts}
                  to={total}
                  label="Difference from main"
                />
              </section>
            ) : null}
          </>
        );
      }}
    </Shown>
  );
}

function countsOf(counts: Readonly<Record<string, number>>): string {
  return ["added", "changed", "removed"]
    .flatMap((name) => (counts[name] ? [`${counts[name].toLocaleString()} ${name}`] : []))
    .join(", ");
}
