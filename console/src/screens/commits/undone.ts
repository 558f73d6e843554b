/** Which commits are undone, and what a commit is called. */

import type { Schemas } from "../../api";

type Commit = Schemas["Commit"];

/** Return the rollback that undid each commit, by the commit's id; a rollback that was itself undone counts for nothing. */
export function undoneBy(rollbacks: readonly Commit[]): ReadonlyMap<string, Commit> {
  const found = new Map<string, Commit>();
  for (const each of [...rollbacks].sort((one, other) => other.seq - one.seq)) {
    if (found.has(each.id)) continue;
    for (const id of each.undoes) if (!found.has(id)) found.set(id, each);
  }
  return found;
}

/** Return what a list calls a commit: its reason, with the numbers of commits in place of their ids where they are listed. */
export function titleOf(item: Commit, listed: readonly Commit[]): string {
  return item.reason.replace(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, (id) => {
    const named = listed.find((each) => each.id === id);
    return named ? `commit ${named.seq}` : item.undoes.includes(id) ? "an earlier commit" : id;
  });
}
