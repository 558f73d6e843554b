/** Undo by an ordinary rollback: what one commit did, or several, the newest first. */

import { api, ask } from "./api";
import { notifyChanged } from "./events";

/** Roll commits back, in the order given; returns what came of it, as a sentence. */
export async function rollBack(...commits: readonly string[]): Promise<string> {
  for (const commit of commits) {
    const now = await ask(api.GET("/memory/commits/{commit_id}", { params: { path: { commit_id: commit } } }));
    if (!now.ok) return now.problem.detail;
    const done = await ask(
      api.POST("/memory/rollback/{commit_id}", {
        params: { path: { commit_id: commit }, header: { "If-Match": now.etag ?? "" } },
        body: { with_later: false, dry_run: false },
      }),
    );
    if (!done.ok) return `Not undone. ${done.problem.detail}`;
  }
  notifyChanged();
  return "Undone.";
}
