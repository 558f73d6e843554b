/** The end of a branch, after a question. */

import { useState } from "preact/hooks";
import { api, ask, type Problem } from "../../api";
import { notifyChanged } from "../../events";
import { rollBack } from "../../undo";
import { Button } from "../../parts/Button";
import { counted } from "../../parts/Contain";
import { Dialog } from "../../parts/Dialog";
import { say } from "../../parts/Toasts";
import { said, seen } from "../../parts/seen";
import { atScope, type Branch } from "./words";

interface Props {
  branch: Branch;
  onClose: () => void;
  /** Called with true when it is discarded, and with false when that is undone. */
  onEnd: (ended: boolean) => void;
}

export function DiscardDialog({ branch, onClose, onEnd }: Props) {
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<Problem | null>(null);
  const run = async () => {
    if (busy) return;
    setBusy(true);
    const done = await ask(
      api.POST("/memory/branches/{name}/discard", {
        params: { path: { name: branch.name } },
        headers: atScope(branch),
      }),
    );
    setBusy(false);
    if (!done.ok) return setProblem(done.problem);
    onEnd(true);
    notifyChanged();
    const undo = () => {
      onEnd(false);
      return rollBack(done.data.id);
    };
    say(`Discarded the branch ${branch.name}. Main is as it was.`, { undo });
    onClose();
  };
  return (
    <Dialog
      title={`Discard ${branch.name}`}
      onClose={onClose}
      onSubmit={() => void run()}
      foot={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" tone="no" busy={busy}>
            Discard it
          </Button>
        </>
      }
    >
      <p>
        {branch.changes ? (
          <>
            <b>{counted(branch.changes, "change")}</b> of <b dir="auto">{seen(branch.name)}</b>{" "}
            {branch.changes === 1 ? "is" : "are"} given up in one commit, and the branch closes.
          </>
        ) : (
          <>
            The branch <b dir="auto">{seen(branch.name)}</b> closes. It has no change that main does not have.
          </>
        )}{" "}
        Main stays as it is. A rollback of the commit opens the branch again.
      </p>
      {problem ? (
        <p class="bad" role="alert">
          {said(problem.detail)}
        </p>
      ) : null}
    </Dialog>
  );
}
