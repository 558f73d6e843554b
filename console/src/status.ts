/** The state of the store in numbers, read once for all who show it. */

import { signal } from "@preact/signals";
import { api, ask, type Problem, type Schemas } from "./api";
import { commits, reviews } from "./live";
import { session } from "./session";

export const status = signal<Schemas["Status"] | null>(null);
export const statusProblem = signal<Problem | null>(null);

let due: ReturnType<typeof setTimeout> | undefined;

async function read(): Promise<void> {
  const found = await ask(api.GET("/memory/status"));
  if (found.ok) {
    status.value = found.data;
    statusProblem.value = null;
  } else statusProblem.value = found.problem;
}

/** Read it now, and again whenever something happened. */
export function followStatus(): void {
  const soon = () => {
    const { state } = session.value;
    if (state !== "open" && state !== "reading") return;
    clearTimeout(due);
    due = setTimeout(() => void read(), status.peek() ? 150 : 0);
  };
  commits.subscribe(soon);
  reviews.subscribe(soon);
  session.subscribe(soon);
}
