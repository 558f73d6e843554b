/** The state of the store in numbers, read once for all who show it. */

import { signal } from "@preact/signals";
import { api, ask, type Problem, type Schemas } from "./api";
import { commits, following, queueVersion } from "./events";
import { session, type Session } from "./session";

export const status = signal<Schemas["StatusReport"] | null>(null);
export const statusProblem = signal<Problem | null>(null);

let took = 0;

async function read(): Promise<void> {
  const began = performance.now();
  const found = await ask(api.GET("/memory/status"));
  took = performance.now() - began;
  if (found.ok) {
    status.value = found.data;
    statusProblem.value = null;
  } else statusProblem.value = found.problem;
}

/** Read it now, and again whenever something happened. */
export function followStatus(): void {
  const again = () => {
    if (readable(session.peek())) void read();
  };
  following(commits, () => took, again);
  following(queueVersion, () => took, again);
  session.subscribe((now) => {
    if (readable(now)) void read();
  });
}

function readable(now: Session): boolean {
  return now.state === "open" || now.state === "reading";
}
