/** What happens in the store, as it happens: signals that move with the stream of events. */

import { effect, signal } from "@preact/signals";
import { api, ask, online, shut } from "./api";
import { session } from "./session";

/** Counts what was committed since the page was opened. */
export const commits = signal(0);
/** Counts the changes of the review queue. */
export const reviews = signal(0);
/** Whether changes arrive as they happen. */
export const connected = signal(false);

const AGAIN = 2_000;
let source: EventSource | null = null;
let waiting: ReturnType<typeof setTimeout> | undefined;

/** Say that this page itself changed something, so that what it shows is read again at once. */
export function changed(): void {
  commits.value += 1;
  reviews.value += 1;
}

function listen(): void {
  clearTimeout(waiting);
  source?.close();
  source = new EventSource("/memory/events?reviews=true");
  source.addEventListener("open", () => {
    const missed = !connected.value;
    connected.value = online.value = true;
    // Whatever happened while nobody listened was not told.
    if (missed) changed();
  });
  source.addEventListener("commit", () => {
    commits.value += 1;
  });
  source.addEventListener("review", () => {
    reviews.value += 1;
  });
  source.addEventListener("error", () => {
    connected.value = false;
    source?.close();
    waiting = setTimeout(retry, AGAIN);
  });
}

async function retry(): Promise<void> {
  const found = await ask(api.GET("/health"));
  if (!found.ok) {
    waiting = setTimeout(retry, AGAIN);
    return;
  }
  const still = await ask(api.GET("/memory/status"));
  if (still.ok || !shut.value) listen();
}

/** Listen for as long as there is a session. */
export function followSession(): void {
  effect(() => {
    const { state } = session.value;
    if (state === "open" || state === "reading") listen();
    else {
      clearTimeout(waiting);
      source?.close();
      connected.value = false;
    }
  });
  effect(() => {
    if (shut.value && session.peek().state === "open") session.value = { state: "closed", why: null };
  });
}
