/** Which commits are undone, which only keep the books, and what a commit is called. */

import type { Schemas } from "../../api";
import { firstWords } from "../review/labels";

type Commit = Schemas["CommitView"];

/** Return the rollback that undid each commit, by the commit's id; a rollback that was itself undone counts for nothing. */
export function undoneBy(rollbacks: readonly Commit[]): ReadonlyMap<string, Commit> {
  const found = new Map<string, Commit>();
  for (const each of [...rollbacks].sort((one, other) => other.commit.seq - one.commit.seq)) {
    if (found.has(each.commit.id)) continue;
    for (const id of each.details.undoes) if (!found.has(id)) found.set(id, each);
  }
  return found;
}

/** Return what a list calls a commit: the first words of what it changed, or which commits it undoes. */
export function titleOf(item: Commit, listed: readonly Commit[]): string {
  const { undoes } = item.details;
  if (undoes.length) {
    const names = undoes.map((id) => listed.find((each) => each.commit.id === id)?.commit.seq);
    const known = names.filter((seq) => seq !== undefined).map((seq) => `commit ${seq}`);
    const rest = names.length - known.length;
    const unknown = rest === 0 ? [] : [rest === 1 ? "an earlier commit" : `${rest} earlier commits`];
    return `rollback of ${[...known, ...unknown].join(", ")}`;
  }
  const { steps } = item;
  const title = firstWords(steps.map((step) => step.after.text || step.before?.text).find(Boolean));
  if (!title) return reasonOf(item, listed);
  return steps.length > 1 ? `${title} and ${steps.length - 1} more` : title;
}

/** Whether a commit of a job only counted uses; what somebody confirmed is a statement like another. */
export function isBookkeeping(item: Commit): boolean {
  return item.commit.kind === "job" && item.steps.length > 0 && item.steps.every((step) => step.op === "reinforce");
}

/** Return commits in their order, with those that follow each other and only keep the books as one group. */
export function grouped(items: readonly Commit[]): (Commit | Commit[])[] {
  const found: (Commit | Commit[])[] = [];
  let run: Commit[] = [];
  const close = () => {
    const [only] = run;
    if (run.length > 1) found.push(run);
    else if (only) found.push(only);
    run = [];
  };
  for (const item of items) {
    if (isBookkeeping(item)) run.push(item);
    else {
      close();
      found.push(item);
    }
  }
  close();
  return found;
}

/** Return the reason of a commit, with the numbers of commits in place of their ids where they are listed. */
export function reasonOf(item: Commit, listed: readonly Commit[]): string {
  return item.details.reason.replace(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, (id) => {
    const named = listed.find((each) => each.commit.id === id);
    return named ? `commit ${named.commit.seq}` : item.details.undoes.includes(id) ? "an earlier commit" : id;
  });
}
