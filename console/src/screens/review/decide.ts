/** Decisions: the calls, what is said of them, and how they are taken back. */

import { api, ask, commitOf, type Outcome, type Problem, type Schemas } from "../../api";
import { notifyChanged } from "../../events";
import { say } from "../../parts/Toasts";
import { mayChange } from "../../session";
import { summaryOf, headline, type Proposal } from "./labels";

const SHORT = 60;

function named(item: Proposal): string {
  const text = summaryOf(item);
  return text ? `“${text.length > SHORT ? `${text.slice(0, SHORT)}…` : text}”` : headline(item);
}

/** Approve exactly what was seen but the changes of `leave_out`; returns whether that worked, and says what happened. */
export async function approve(item: Proposal, leave_out: readonly string[] = []): Promise<boolean> {
  if (leave_out.length) {
    const wrong = await amend(item, { leave_out: [...leave_out] });
    return wrong ? failed(wrong) : true;
  }
  const done = await ask(
    api.POST("/memory/quarantine/{id}/approve", {
      params: { path: { id: item.id }, header: { "If-Match": tag(item) } },
    }),
  );
  return done.ok ? stored(`Approved ${named(item)}`, done.data) : failed(done.problem);
}

/** What a reviewer changes of a proposal. */
interface Amendment {
  /** Other words, stored as the reviewer's own, of the memory that `memory` names. */
  text?: string;
  memory?: string;
  /** The version that a stale proposal's memory has now. */
  if_version?: number;
  /** Memories whose changes are not made. */
  leave_out?: string[];
}

/** Approve with changes; returns what is wrong with them. */
export async function amend(item: Proposal, changes: Amendment): Promise<Problem | null> {
  const done = await ask(
    api.POST("/memory/quarantine/{id}/amend", {
      params: { path: { id: item.id }, header: { "If-Match": tag(item) } },
      body: changes,
    }),
  );
  if (!done.ok) return done.problem;
  // What the gates refuse is an answer, and the proposal goes on waiting.
  if (done.data.outcome === "refused") return refusal(done.data);
  stored(changes.text === undefined ? `Approved in part: ${named(item)}` : "Stored your words in its place", done.data);
  return null;
}

function refusal({ reasons }: Outcome): Problem {
  return { status: 200, code: "refused", title: "Refused", detail: reasons.map((reason) => reason.detail).join("; ") };
}

/** Reject; the proposer is told why. */
export async function reject(items: readonly Proposal[], reason: string): Promise<boolean> {
  const [only] = items;
  if (items.length === 1 && only) {
    const done = await ask(
      api.POST("/memory/quarantine/{id}/reject", { params: { path: { id: only.id } }, body: { reason } }),
    );
    if (!done.ok) return failed(done.problem);
    say(`Rejected ${named(only)}; the proposer is told why`, { undo: () => reopen([only.id]) });
  } else {
    const done = await ask(
      api.POST("/memory/quarantine/reject", { body: { ids: items.map((each) => each.id), reason } }),
    );
    if (!done.ok) return failed(done.problem);
    const rejected = done.data.results.filter((each) => each.error === null).map((each) => each.id);
    summed(`Rejected ${done.data.rejected}`, done.data.results, () => reopen(rejected));
  }
  notifyChanged();
  return true;
}

// Proposals that are approved by one call; after each call the screen says how many are done.
const AT_ONCE = 20;

/**
 * Approve many, each by the digest that was seen; returns those that were sent.
 *
 * Each one is a commit of its own, so what is approved stays so when a later call fails. `onDone` gets how many are done.
 */
export async function approveAll(items: readonly Proposal[], onDone: (count: number) => void): Promise<Proposal[]> {
  const results: Schemas["DecisionResult"][] = [];
  let problem: Problem | undefined;
  while (results.length < items.length && !problem) {
    const part = items.slice(results.length, results.length + AT_ONCE);
    const body = { items: part.map(({ id, digest }) => ({ id, digest })) };
    const done = await ask(api.POST("/memory/quarantine/approve", { body }));
    if (done.ok) results.push(...done.data.results);
    else problem = done.problem;
    onDone(results.length);
  }
  if (problem && !results.length) {
    failed(problem);
    return [];
  }
  const commits = results.flatMap((each) => commitOf(each.outcome) ?? []);
  const taken = mayChange() ? () => undo(commits) : undefined;
  const approved = results.filter((each) => each.error === null).length;
  if (problem) say(`Approved ${approved} of ${items.length}; then: ${problem.detail}`, { tone: "bad", undo: taken });
  else summed(`Approved ${approved}`, results, taken);
  notifyChanged();
  return items.slice(0, results.length);
}

/** Put rejected proposals back into the queue; returns what came of it. */
async function reopen(ids: readonly string[]): Promise<string> {
  for (const [count, id] of ids.entries()) {
    const body = { reason: "taken back in the console" };
    const done = await ask(api.POST("/memory/quarantine/{id}/reopen", { params: { path: { id } }, body }));
    if (!done.ok) return count ? `Took back ${count} of ${ids.length}: ${done.problem.detail}` : done.problem.detail;
  }
  notifyChanged();
  return ids.length === 1 ? "Taken back; it waits again" : `Took back all ${ids.length}; they wait again`;
}

function tag(item: Proposal): string {
  return `"${item.digest}"`;
}

function stored(text: string, outcome: Outcome): true {
  const commit = commitOf(outcome);
  // A rollback is the owner's: a reviewer decides, and what was decided stands.
  say(text, commit && mayChange() ? { undo: () => undo([commit]) } : {});
  notifyChanged();
  return true;
}

function failed(problem: Problem): false {
  say(problem.detail, { tone: "bad" });
  notifyChanged();
  return false;
}

function summed(text: string, results: readonly Schemas["DecisionResult"][], taken?: () => Promise<string>): void {
  const wrong = results.filter((each) => each.error !== null);
  const why = wrong[0]?.error?.detail;
  if (!wrong.length) say(text, { undo: taken });
  else say(`${text}; ${wrong.length} not: ${why ?? "see the queue"}`, { tone: "bad", undo: taken });
}

/** Undo commits by ordinary rollbacks, the newest first; returns what came of it. */
async function undo(commits: readonly string[]): Promise<string> {
  for (const [count, commit] of [...commits].reverse().entries()) {
    const now = await ask(api.GET("/memory/commits/{commit_id}", { params: { path: { commit_id: commit } } }));
    if (!now.ok) return now.problem.detail;
    const done = await ask(
      api.POST("/memory/rollback/{commit_id}", {
        params: { path: { commit_id: commit }, header: { "If-Match": now.etag ?? "" } },
        body: {},
      }),
    );
    notifyChanged();
    if (!done.ok) return count ? `Undid ${count} of ${commits.length}: ${done.problem.detail}` : done.problem.detail;
  }
  return commits.length === 1 ? "Undone by a rollback" : `Undid all ${commits.length} by rollbacks`;
}
