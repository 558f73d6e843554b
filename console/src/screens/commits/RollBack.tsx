/** A rollback: exactly what would change, what stands in the way, and then the one step. */

import { useState } from "preact/hooks";
import { Link } from "wouter-preact";
import { api, ask, type Problem, type Schemas } from "../../api";
import { notifyChanged } from "../../events";
import { useLoad } from "../../load";
import { rollBack } from "../../undo";
import { Button } from "../../parts/Button";
import { counted } from "../../parts/Contain";
import { Dialog } from "../../parts/Dialog";
import { Differences } from "../../parts/Differences";
import { Shown } from "../../parts/States";
import { say } from "../../parts/Toasts";
import { said } from "../../parts/seen";

type Plan = Schemas["RolledBack"];

export function RollBackDialog({ commit, onClose }: { commit: Schemas["Commit"]; onClose: () => void }) {
  const [later, setLater] = useState(false);
  const [busy, setBusy] = useState(false);
  const [reason, setReason] = useState("");
  const [problem, setProblem] = useState<Problem | null>(null);
  const path = { commit_id: commit.id };
  const plan = useLoad<Plan>(
    `rollback ${commit.id} ${later}`,
    () =>
      ask(api.POST("/memory/rollback/{commit_id}", { params: { path }, body: { dry_run: true, with_later: later } })),
    null,
  );
  const ready = plan.data && !plan.data.already && !plan.data.conflicts.length && plan.data.targets.length > 0;
  const run = async () => {
    if (!plan.data || !ready || busy) return;
    setBusy(true);
    // Bound to the versions that the preview shows.
    const header = { "If-Match": plan.data.etag };
    const done = await ask(
      api.POST("/memory/rollback/{commit_id}", {
        params: { path, header },
        body: { dry_run: false, with_later: later, reason: reason.trim() || `rollback of commit ${commit.seq}` },
      }),
    );
    setBusy(false);
    if (!done.ok) {
      setProblem(done.problem);
      plan.reload();
      return;
    }
    const made = done.data.commit;
    notifyChanged();
    say(
      `Rolled back commit ${commit.seq}. The state before it is active again.`,
      made ? { undo: () => rollBack(made.id) } : {},
    );
    onClose();
  };
  return (
    <Dialog
      wide
      title={`Roll back commit ${commit.seq}`}
      onClose={onClose}
      onSubmit={() => void run()}
      foot={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" tone="go" busy={busy} disabled={!ready}>
            Roll back
          </Button>
        </>
      }
    >
      <Shown of={plan}>
        {(data) => (
          <>
            <Standing plan={data} later={later} />
            {data.targets.length ? (
              <>
                <h3>What would change</h3>
                <Differences items={data.targets} label="What would change" />
              </>
            ) : null}
            {data.dependents.length ? (
              <p class="soft">
                Look at{" "}
                {data.dependents.slice(0, 8).map((each) => (
                  <>
                    <Link key={each} class="mono" href={`/memories/${each}`}>
                      {each.slice(0, 8)}
                    </Link>{" "}
                  </>
                ))}
                afterwards: they were made from these memories and are not changed.
              </p>
            ) : null}
            {data.reasons.map((each) => (
              <p key={each.detail} class="soft">
                {said(each.detail)}
              </p>
            ))}
          </>
        )}
      </Shown>
      {later || plan.data?.conflicts.length ? (
        <label class="tick">
          <input type="checkbox" checked={later} onChange={(event) => setLater(event.currentTarget.checked)} />
          Undo the later commits on the same memories as well
        </label>
      ) : null}
      {ready ? (
        <label class="field">
          <span>Reason (recorded in the journal)</span>
          <input
            value={reason}
            maxLength={900}
            placeholder={`rollback of commit ${commit.seq}`}
            onInput={(event) => setReason(event.currentTarget.value)}
          />
        </label>
      ) : null}
      {problem ? (
        <p class="bad" role="alert">
          {said(problem.detail)}
        </p>
      ) : null}
    </Dialog>
  );
}

function Standing({ plan, later }: { plan: Plan; later: boolean }) {
  if (plan.already) return <p>It is undone already.</p>;
  if (plan.conflicts.length) {
    return (
      <div class="conflicts" role="alert">
        <b>Later commits are in the way</b>
        <p>These commits touched the same memories later. As it is, nothing would be changed.</p>
        <ul>
          {plan.conflicts.map((each) => (
            <li key={`${each.seq}/${each.memory_id}`}>
              <Link href={`/commits?at=${each.seq}`}>commit {each.seq}</Link> on{" "}
              <Link class="mono" href={`/memories/${each.memory_id}`}>
                {each.memory_id.slice(0, 8)}
              </Link>
            </li>
          ))}
        </ul>
      </div>
    );
  }
  if (!plan.targets.length) return <p>There is nothing to change back.</p>;
  const gone = plan.targets.filter(
    (each) => !each.after || (each.after.status !== "active" && each.before?.status === "active"),
  ).length;
  const back = plan.targets.length - gone;
  const parts = [
    gone ? `${counted(gone, "memory", "memories")} ${gone === 1 ? "goes" : "go"} out of use` : "",
    back ? `${counted(back, "memory gets", "memories get")} back what ${back === 1 ? "it" : "they"} said before` : "",
  ];
  return (
    <p>
      No later commit is in the way. {parts.filter(Boolean).join(", ")}
      {later && plan.undone.length > 1 ? `, and ${plan.undone.length} commits are undone together` : ""}. It is a commit
      of its own and can itself be rolled back.
    </p>
  );
}
