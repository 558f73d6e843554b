/** A merge: what is asked for, and what became of each change. */

import { useState } from "preact/hooks";
import { Link } from "wouter-preact";
import { api, ask, type Problem, type Schemas } from "../../api";
import { notifyChanged } from "../../events";
import { whole, type Listed } from "../../listed";
import { rollBack } from "../../undo";
import { Button } from "../../parts/Button";
import { counted } from "../../parts/Contain";
import { Dialog } from "../../parts/Dialog";
import { MemoryText } from "../../parts/MemoryText";
import { Tag, type Tone } from "../../parts/Tag";
import { say } from "../../parts/Toasts";
import { said, seen } from "../../parts/seen";
import { atScope, type Branch, type Side } from "./words";

export type BranchMerge = Schemas["BranchMerge"];
type MergedChange = Schemas["MergedChange"];

// Changes that are listed of each result.
const SHOWN = 20;

const RESULTS: readonly {
  name: "landed" | "waiting" | "refused" | "dropped";
  word: string;
  means: string;
  tone: Tone;
}[] = [
  { name: "landed", word: "landed", means: "It is on main now.", tone: "good" },
  {
    name: "waiting",
    word: "waiting",
    means: "A person decides on it in Review; until then it is on the branch.",
    tone: "warn",
  },
  { name: "refused", word: "refused", means: "A gate did not take it; it is on the branch.", tone: "bad" },
  { name: "dropped", word: "given up", means: "Main keeps what it has.", tone: "plain" },
];

/** Return what a merge did in a line: `2 landed, 1 waiting, 1 conflict left`. */
export function summaryOf(merge: BranchMerge): string {
  const parts = RESULTS.flatMap(({ name, word }) =>
    merge[name].length ? [`${merge[name].length.toLocaleString()} ${word}`] : [],
  );
  if (merge.conflicts.length) parts.push(`${counted(merge.conflicts.length, "conflict")} left`);
  return parts.join(", ") || "nothing to merge";
}

interface Props {
  branch: Branch;
  sides: Readonly<Record<string, Side>>;
  onClose: () => void;
  /** Called with what was done, and with null when it was undone. */
  onDone: (merge: BranchMerge | null) => void;
}

export function MergeDialog({ branch, sides, onClose, onDone }: Props) {
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<Problem | null>(null);
  const chosen = Object.values(sides);
  const taken = (side: Side) => chosen.filter((each) => each === side).length;
  const run = async () => {
    if (busy) return;
    setBusy(true);
    const done = await ask(
      api.POST("/memory/branches/{name}/merge", {
        params: { path: { name: branch.name } },
        headers: atScope(branch),
        body: { take: sides },
      }),
    );
    setBusy(false);
    if (!done.ok) return setProblem(done.problem);
    notifyChanged();
    const { commits, receipt } = done.data;
    // The newest first: the changes return to the branch, then main is as it was.
    const undone = [...(receipt ? [receipt] : []), ...[...commits].reverse()];
    const undo = () => {
      onDone(null);
      return rollBack(...undone);
    };
    say(`Merged ${branch.name}: ${summaryOf(done.data)}.`, undone.length ? { undo } : {});
    onDone(done.data);
    onClose();
  };
  return (
    <Dialog
      title={`Merge ${branch.name} into main`}
      onClose={onClose}
      onSubmit={() => void run()}
      foot={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" tone="go" busy={busy}>
            Merge
          </Button>
        </>
      }
    >
      <p>
        <b>{counted(branch.changes, "change")}</b> of <b dir="auto">{seen(branch.name)}</b> now. Every gate judges each
        again, as a write of its author: what passes is on main at once, and what needs a person waits in Review.
      </p>
      {chosen.length ? (
        <p>
          You decided on {counted(chosen.length, "conflict")}: main&#39;s text counts for {taken("main")}, the
          branch&#39;s for {taken("branch")}.
        </p>
      ) : null}
      <p class="soft">A conflict that is not decided stays on the branch, as does what is refused.</p>
      {problem ? (
        <p class="bad" role="alert">
          {said(problem.detail)}
        </p>
      ) : null}
    </Dialog>
  );
}

/** What became of the changes of the newest merge. */
export function Merged({ of: merge, onClose }: { of: BranchMerge; onClose: () => void }) {
  return (
    <section class="card pad stack" aria-label="What the merge did">
      <div class="line">
        <h2>Merged: {summaryOf(merge)}</h2>
        <span class="spread" />
        <Button small tone="quiet" onClick={onClose}>
          Hide
        </Button>
      </div>
      {RESULTS.map(({ name, word, means, tone }) =>
        merge[name].length ? (
          <section key={name} class="stack tight" aria-label={word}>
            <p class="line">
              <Tag tone={tone}>{`${merge[name].length.toLocaleString()} ${word}`}</Tag>
              <span class="soft small">{means}</span>
            </p>
            <Results of={whole(merge[name]).first(SHOWN)} />
          </section>
        ) : null,
      )}
      {merge.conflicts.length ? (
        <p class="line">
          <Tag tone="warn">{`${counted(merge.conflicts.length, "conflict")} left`}</Tag>
          <span class="soft small">Decide on each below, then merge again.</span>
        </p>
      ) : null}
    </section>
  );
}

function Results({ of }: { of: Listed<MergedChange> }) {
  return (
    <ul class="merged">
      {of.shown.map((each) => (
        <li key={each.id}>
          {each.proposal ? (
            <Link href={`/review?at=${each.proposal}`}>
              <MemoryText text={each.text} one />
            </Link>
          ) : each.main_id ? (
            <Link href={`/memories/${each.main_id}`}>
              <MemoryText text={each.text} one />
            </Link>
          ) : (
            <MemoryText text={each.text} one />
          )}
          {each.reasons.map((reason) => (
            <p key={reason.detail} class="soft small">
              {said(reason.detail)}
            </p>
          ))}
        </li>
      ))}
      {of.isWhole ? null : <li class="soft small">and {of.rest}</li>}
    </ul>
  );
}
