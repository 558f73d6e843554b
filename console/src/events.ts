/** What happens in the store, as it happens: signals that move with the stream of events. */

import { effect, signal, untracked, type Signal } from "@preact/signals";
import { api, ask, online, shut } from "./api";
import { enter, expireSession, session } from "./session";

/** Counts what was committed since the page was opened. */
export const commits = signal(0);
/** Counts the changes of the review queue. */
export const queueVersion = signal(0);
/** Counts both: a commit may make a proposal stale. */
export const queueMoves = signal(0);
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
    due ??= setTimeout(
      () => {
        due = undefined;
        run();
      },
      Math.min(SLOWEST, Math.max(SOON, 3 * took())),
    );
  });
  return () => {
    clearTimeout(due);
    stop();
  };
}

const SOON = 120;
const SLOWEST = 10_000;
const AGAIN = 2_000;
/** What the tabs of one browser tell each other; `join` asks whoever has the stream whether it is connected. */
type News = "opened" | "commit" | "review" | "lost" | "join" | "connected";
const NAME = "keepward events";
const channel = new BroadcastChannel(NAME);
/** The stream, in the one tab that has it. */
let source: EventSource | null = null;
let waiting: ReturnType<typeof setTimeout> | undefined;
/** Ends the wait for the stream, or gives it to another tab; null while this page does not follow the store. */
let leave: (() => void) | null = null;
/** Whether this page was connected before: what happened since then it has not heard. */
let known = false;

/** Say that this page itself changed something, so that what it shows is read again at once. */
export function notifyChanged(): void {
  commits.value += 1;
  queueVersion.value += 1;
  queueMoves.value += 1;
}

function take(news: News): void {
  switch (news) {
    case "opened":
      connected.value = online.value = true;
      if (known) notifyChanged();
      known = true;
      break;
    case "connected":
      connected.value = online.value = known = true;
      break;
    case "commit":
      commits.value += 1;
      queueMoves.value += 1;
      break;
    case "review":
      queueVersion.value += 1;
      queueMoves.value += 1;
      break;
    case "lost":
      connected.value = false;
      break;
    case "join":
      if (source && connected.value) channel.postMessage("connected" satisfies News);
  }
}

channel.addEventListener("message", (event: MessageEvent<News>) => {
  if (leave) take(event.data);
});

/** Take in news of the stream, and tell the other tabs. */
function tell(news: News): void {
  take(news);
  channel.postMessage(news);
}

function listen(): void {
  clearTimeout(waiting);
  source?.close();
  source = new EventSource("/memory/events?reviews=true");
  source.addEventListener("open", () => tell("opened"));
  source.addEventListener("commit", () => tell("commit"));
  source.addEventListener("review", () => tell("review"));
  source.addEventListener("error", () => {
    tell("lost");
    source?.close();
    waiting = setTimeout(retry, AGAIN);
  });
}

async function retry(): Promise<void> {
  const found = await ask(api.GET("/health"));
  if (!source) return;
  if (!found.ok) {
    waiting = setTimeout(retry, AGAIN);
    return;
  }
  const still = await ask(api.GET("/memory/status"));
  if (source && (still.ok || !shut.value)) listen();
}

function stop(): void {
  clearTimeout(waiting);
  source?.close();
  source = null;
}

/** Follow the store. A browser allows few connections to a server, so one tab has the stream and tells the others. */
function join(): void {
  if (leave) return;
  // A page that is not from this machine and comes by plain HTTP has no locks: it listens while it is looked at.
  if (!navigator.locks) return alone();
  const giveUp = new AbortController();
  leave = () => giveUp.abort();
  channel.postMessage("join" satisfies News);
  void navigator.locks
    .request(NAME, { signal: giveUp.signal }, () => {
      listen();
      return new Promise<void>((done) => {
        leave = () => {
          stop();
          done();
        };
      });
    })
    .catch(() => undefined);
}

function alone(): void {
  const turn = () => {
    if (document.hidden) stop();
    else listen();
  };
  document.addEventListener("visibilitychange", turn);
  leave = () => {
    document.removeEventListener("visibilitychange", turn);
    stop();
  };
  turn();
}

/** Ask until the server answers again: the stream may be open although a call failed. */
async function probe(): Promise<void> {
  if (online.peek()) return;
  const found = await ask(api.GET("/health"));
  if (!found.ok) setTimeout(probe, AGAIN);
}

/** Load again what is shown once the server answers after it did not. */
function followConnection(): void {
  let away = false;
  effect(() => {
    if (!online.value) {
      away = true;
      setTimeout(probe, AGAIN);
    } else if (away) {
      away = false;
      untracked(notifyChanged);
    }
  });
}

/** Listen for as long as there is a session. */
export function followSession(): void {
  followConnection();
  // A backup, a job or a memory test of the terminal is no commit: whoever comes back from there sees what it did.
  addEventListener("focus", () => {
    if (known) notifyChanged();
  });
  effect(() => {
    const { state } = session.value;
    if (state === "open" || state === "reading") join();
    else {
      leave?.();
      leave = null;
      connected.value = false;
    }
  });
  effect(() => {
    if (shut.value && session.peek().state === "open") expireSession();
  });
  addEventListener("focus", () => {
    const now = session.peek();
    if (now.state === "closed" && now.ended) void enter();
  });
}
