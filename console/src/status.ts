/** The state of the store in numbers, read once for all who show it. */

import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { api, ask, type Problem, type Schemas } from "./api";
import { commits, following, queueVersion } from "./events";
import { session, type Session } from "./session";

export const status = signal<Schemas["StatusReport"] | null>(null);
export const statusProblem = signal<Problem | null>(null);

let took = 0;
let reads = 0;

async function read(): Promise<void> {
  const began = performance.now();
  reads += 1;
  const found = await ask(api.GET("/memory/status"));
  reads -= 1;
  took = performance.now() - began;
  if (found.ok) {
    status.value = found.data;
    statusProblem.value = null;
  } else statusProblem.value = found.problem;
}

/** Read it again for a screen that opens: a backup, for example, is no commit. */
export function useStatus(): typeof status.value {
  useEffect(() => {
    if (readable(session.peek()) && !reads) void read();
  }, []);
  return status.value;
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
