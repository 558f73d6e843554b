/** What happens in the store, as it happens: signals that move with the stream of events. */

import { effect, signal, type Signal } from "@preact/signals";
import { api, ask, online, shut } from "./api";
import { enter, lapse, session } from "./session";

/** Counts what was committed since the page was opened. */
export const commits = signal(0);
/** Counts the changes of the review queue. */
export const reviews = signal(0);
/** Whether changes arrive as they happen. */
export const connected = signal(false);

/**
 * Call a function when a signal moves, not when it is first read; several moves at once are one, and moves without
 * end do not put it off.
 *
 * `took` says how many milliseconds the last call took: what is slow is not asked for again at every commit.
 */
export function following(signal: Signal<unknown>, took: () => number, run: () => void): () => void {
  let due: ReturnType<typeof setTimeout> | undefined;
  let first = true;
  const stop = signal.subscribe(() => {
    if (first) {
      first = false;
      return;
    }
    due ??= setTimeout(() => {
      due = undefined;
      run();
    }, Math.min(SLOWEST, Math.max(SOON, 3 * took())));
  });
  return () => {
    clearTimeout(due);
    stop();
  };
}

const SOON = 120;
const SLOWEST = 10_000;
const AGAIN = 2_000;
let lost = false;
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
    connected.value = online.value = true;
    // Whatever happened while nobody listened was not told.
    if (lost) changed();
    lost = false;
  });
  source.addEventListener("commit", () => {
    commits.value += 1;
  });
  source.addEventListener("review", () => {
    reviews.value += 1;
  });
  source.addEventListener("error", () => {
    connected.value = false;
    lost = true;
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
    if (shut.value && session.peek().state === "open") lapse();
  });
  addEventListener("focus", () => {
    const now = session.peek();
    if (now.state === "closed" && now.ended) void enter();
  });
}
