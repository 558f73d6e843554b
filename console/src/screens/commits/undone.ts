/** Which commits are undone, which only keep the books, and what a commit is called. */

import type { Schemas } from "../../api";
import { counted } from "../../parts/Contain";
import { REASONS } from "../erase/selection";
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
  if (item.commit.kind === "erase") return `erased ${counted(steps.length, "memory", "memories")}`;
  const title = firstWords(steps.map((step) => step.after.text || step.before?.text).find(Boolean));
  if (!title) return reasonOf(item, listed);
  return steps.length > 1 ? `${title} and ${steps.length - 1} more` : title;
}

/** Whether a commit of a job only counted uses; what somebody confirmed is a statement like another. */
export function isBookkeeping(item: Commit): boolean {
  return item.commit.kind === "job" && item.steps.length > 0 && item.steps.every((step) => step.op === "reinforce");
}

/** Commits that follow each other and are one act, or tell nothing one by one. */
export interface Group {
  what: "uses" | "approvals";
  /** At least two, newest first. */
  items: Commit[];
}

// Milliseconds between two approvals of one act.
const ONE_ACT_MS = 10_000;

/** Return what a commit is one of many of, and whose; null where it stands alone. */
function sortOf(item: Commit): [what: Group["what"], by: string] | null {
  if (isBookkeeping(item)) return ["uses", ""];
  return item.commit.kind === "approve" ? ["approvals", item.details.approved_by ?? item.details.actor] : null;
}

/** Return commits in their order; those that only count uses, and the approvals of one act, are a group each. */
export function grouped(items: readonly Commit[]): (Commit | Group)[] {
  const found: (Commit | Group)[] = [];
  for (const item of items) {
    const sort = sortOf(item);
    const last = found.at(-1);
    const before = last && "items" in last ? last.items.at(-1) : last;
    const same = sort && before ? sortOf(before) : null;
    const near = before ? Date.parse(before.commit.at) - Date.parse(item.commit.at) <= ONE_ACT_MS : false;
    if (!sort || !last || !before || same?.join(" ") !== sort.join(" ") || (sort[0] === "approvals" && !near))
      found.push(item);
    else if ("items" in last) last.items.push(item);
    else found[found.length - 1] = { what: sort[0], items: [last, item] };
  }
  return found;
}

/** Return the reason of a commit, with the numbers of commits in place of their ids where they are listed. */
export function reasonOf(item: Commit, listed: readonly Commit[]): string {
  if (item.commit.kind === "erase") {
    const reasons: Record<string, string> = REASONS;
    return reasons[item.details.reason] ?? item.details.reason;
  }
  return item.details.reason.replace(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, (id) => {
    const named = listed.find((each) => each.commit.id === id);
    return named ? `commit ${named.commit.seq}` : item.details.undoes.includes(id) ? "an earlier commit" : id;
  });
}
