/** Proposals that are read by their ids, such as the snoozed ones. */

import { api, ask, type Answer } from "../../api";
import { whole, type Listed } from "../../listed";
import { snooze, snoozed } from "./snooze";
import type { Proposal } from "./labels";

/** Stop hiding what was decided since: it does not wait any more. */
export async function forgetDecided(): Promise<void> {
  const ids = [...snoozed.peek().keys()];
  const found = await readEach(ids);
  if (!found.ok) return;
  const waiting = new Set(found.data.shown.map((each) => each.id));
  const decided = ids.filter((id) => !waiting.has(id));
  if (decided.length) snooze(decided, null);
}

/** Read proposals by their ids; what was decided since is left out. */
export async function readEach(ids: readonly string[]): Promise<Answer<Listed<Proposal>>> {
  const answers = await Promise.all(
    ids.map((id) => ask(api.GET("/memory/quarantine/{id}", { params: { path: { id } } }))),
  );
  const lost = answers.find((answer) => !answer.ok && answer.problem.status !== 404);
  if (lost && !lost.ok) return lost;
  const items = answers.flatMap((answer) => (answer.ok && answer.data.state === "pending" ? [answer.data] : []));
  return { ok: true, data: whole(items), status: 200, etag: null };
}
