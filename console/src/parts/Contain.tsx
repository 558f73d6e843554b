/** Containment: what a source touched, the plan of taking all of it out of use, and one step back from it. */

import { useCallback, useState } from "preact/hooks";
import { api, ask, type Answer, type Problem, type Schemas } from "../api";
import { notifyChanged } from "../events";
import { useLoad } from "../load";
import { rollBack } from "../undo";
import { Button } from "./Button";
import { Dialog } from "./Dialog";
import { MemoryText } from "./MemoryText";
import { Shown } from "./States";
import { Time } from "./Time";
import { say } from "./Toasts";
import { said, seen } from "./seen";

/** One way to name what is meant, as the API takes it. */
export type ContainSelector = { memory: string } | { source: string } | { actor: string } | { session: string };

interface Plan {
  /** What would be taken out of use, each once. */
  items: Schemas["Record"][];
  direct: number;
  contexts: number;
  waiting: number;
  damaged: number;
  /** What another writer has corrected since; it stays in use unless it is ticked. */
  corrected: Schemas["Record"][];
  /** What stays in use, in sentences. */
  notes: string[];
}

/** Ask what would be contained; several ways together. */
async function plan(ways: readonly ContainSelector[]): Promise<Answer<Plan>> {
  const items = new Map<string, Schemas["Record"]>();
  const direct = new Set<string>();
  const contexts = new Set<string>();
  const waiting = new Set<string>();
  const damaged = new Set<string>();
  const notes = new Set<string>();
  const corrected = new Map<string, Schemas["Record"]>();
  for (const way of ways) {
    const found = await ask(api.POST("/memory/contain/plan", { body: way }));
    if (!found.ok) return found;
    const { impact } = found.data;
    for (const each of found.data.notes) notes.add(each);
    for (const each of found.data.items) items.set(each.id, each);
    for (const each of impact.direct) direct.add(each.id);
    for (const each of impact.contexts) contexts.add(each.receipt);
    for (const each of impact.corrected) corrected.set(each.id, each);
    for (const each of impact.waiting) waiting.add(each);
    for (const each of impact.damaged) damaged.add(each);
  }
  const counts = {
    direct: [...items.keys()].filter((each) => direct.has(each)).length,
    contexts: contexts.size,
    waiting: waiting.size,
    damaged: damaged.size,
    notes: [...notes],
    corrected: [...corrected.values()].filter((each) => each.status === "active"),
  };
  return { ok: true, status: 200, etag: null, data: { items: [...items.values()], ...counts } };
}

/** Carry out what was shown, a commit a way; stops where there is more by now than was shown. */
async function contain(ways: readonly ContainSelector[], shown: Plan, reason: string): Promise<Answer<string[]>> {
  const known = new Set(shown.items.map((each) => each.id));
  const commits: string[] = [];
  for (const way of ways) {
    const now = await ask(api.POST("/memory/contain/plan", { body: way }));
    if (!now.ok) return now;
    if (!now.data.items.length) continue;
    if (now.data.items.some((each) => !known.has(each.id))) return { ok: false, problem: GREW };
    const done = await ask(api.POST("/memory/contain", { body: { ...way, digest: now.data.digest, reason } }));
    if (!done.ok) return done;
    if (done.data.commit) commits.push(done.data.commit.id);
  }
  return { ok: true, status: 200, etag: null, data: commits };
}

const GREW: Problem = {
  status: 409,
  code: "conflict",
  title: "There is more by now",
  detail: "Something was added since this plan was shown. Look at the new plan and decide anew.",
};

/** How much, in words. */
export function counted(count: number, one: string, many = `${one}s`): string {
  return `${count.toLocaleString()} ${count === 1 ? one : many}`;
}

export function ContainDialog({
  ways,
  of,
  onClose,
}: {
  ways: readonly ContainSelector[];
  of: string;
  onClose: () => void;
}) {
  const [also, setAlso] = useState<readonly string[]>([]);
  const chosen = [...ways, ...also.map((memory) => ({ memory }))];
  const found = useLoad(`contain ${JSON.stringify(chosen)}`, () => plan(chosen), null);
  const [reason, setReason] = useState("");
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<Problem | null>(null);
  const run = async () => {
    if (!found.data || busy) return;
    setBusy(true);
    const done = await contain(chosen, found.data, reason);
    setBusy(false);
    if (!done.ok) {
      setProblem(done.problem);
      found.reload();
      return;
    }
    const commits = done.data.reverse();
    notifyChanged();
    say(
      `Took ${counted(found.data.items.length, "memory", "memories")} out of use. No context holds them from now on.`,
      { undo: () => rollBack(...commits) },
    );
    onClose();
  };
  // The dialog opens before the plan is there, and its field with it.
  const first = useCallback((field: HTMLInputElement | null) => field?.focus(), []);
  const none = found.data?.items.length === 0;
  return (
    <Dialog
      wide
      title={`Take ${of} out of use`}
      onClose={onClose}
      onSubmit={() => void run()}
      foot={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button tone="go" type="submit" busy={busy} disabled={!found.data || none || !reason.trim()}>
            {found.data && !none
              ? `Take ${counted(found.data.items.length, "memory", "memories")} out of use`
              : "Take out of use"}
          </Button>
        </>
      }
    >
      <Shown of={found}>
        {(data) => (
          <>
            <p>
              {none ? (
                "Nothing of it is in use."
              ) : (
                <>
                  <b>{counted(data.items.length, "memory", "memories")}</b> would be taken out of use:{" "}
                  {data.direct.toLocaleString()} touched directly and{" "}
                  {(data.items.length - data.direct).toLocaleString()} made from these.{" "}
                  <b>{counted(data.contexts, "context")}</b> held any of it
                  {data.waiting ? <>, and {counted(data.waiting, "proposal")} of it wait for review</> : null}.
                </>
              )}
            </p>
            {data.corrected.length ? (
              <fieldset class="stack">
                <legend>Corrected since by another writer: stays in use unless you tick it</legend>
                {data.corrected.map((each) => (
                  <label key={each.id} class="tick">
                    <input
                      type="checkbox"
                      checked={also.includes(each.id)}
                      onChange={() =>
                        setAlso(also.includes(each.id) ? also.filter((other) => other !== each.id) : [...also, each.id])
                      }
                    />
                    <Worded memory={each} />
                  </label>
                ))}
              </fieldset>
            ) : (
              data.notes.map((each) => <p key={each}>{said(each)}.</p>)
            )}
            {data.damaged ? (
              <p class="bad">
                {counted(data.damaged, "memory or receipt", "memories or receipts")} could not be looked at: verify the
                store.
              </p>
            ) : null}
            <ol class="plain-list boxed" aria-label="What would be taken out of use">
              {data.items.slice(0, 100).map((each) => (
                <li key={each.id}>
                  <Worded memory={each} />
                </li>
              ))}
              {data.items.length > 100 ? (
                <li class="soft">and {(data.items.length - 100).toLocaleString()} more</li>
              ) : null}
            </ol>
            <label class="field">
              <span>Reason (recorded in the journal)</span>
              <input
                ref={first}
                value={reason}
                maxLength={900}
                onInput={(event) => setReason(event.currentTarget.value)}
                placeholder="the page was poisoned"
              />
            </label>
            <p class="soft small">
              Nothing is deleted.{" "}
              {chosen.length === 1
                ? "One rollback brings all of it back."
                : `It takes ${chosen.length} commits at most: “Undo” brings all of it back, and later a rollback of each.`}
            </p>
          </>
        )}
      </Shown>
      {problem ? (
        <p class="bad" role="alert">
          {said(problem.detail)}
        </p>
      ) : null}
    </Dialog>
  );
}

/** A memory with who wrote its present words, and when. */
function Worded({ memory }: { memory: Schemas["Record"] }) {
  return (
    <span>
      <MemoryText one text={memory.text} />{" "}
      <span class="soft small">
        {seen(memory.text_by)}, <Time at={memory.text_at} short />
      </span>
    </span>
  );
}
