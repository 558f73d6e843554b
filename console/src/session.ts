/** The session: opened by the one-time code of the link, found again by its cookie. */

import { signal } from "@preact/signals";
import { api, ask, csrf, online, shut, type Answer, type Problem, type Schemas } from "./api";

interface Open {
  state: "open";
  principal: string;
  owner: boolean;
  until: number;
}

export type Session =
  | { state: "opening" }
  | Open
  /** Reads are open to all on this server; nothing can be changed. */
  | { state: "reading" }
  /** `ended` is the session that this page had and did not leave: its screen waits, out of the page, for the next one. */
  | { state: "closed"; why: Problem | null; ended: Open | null }
  | { state: "unreachable" };

export const session = signal<Session>({ state: "opening" });

/** Open the session that the address has a code for, or go on with the one of the cookie. */
export async function enter(): Promise<void> {
  const code = new URLSearchParams(location.hash.slice(1)).get("code");
  // The code works once, so it need not stay in the address and the history.
  if (code) history.replaceState(null, "", location.pathname + location.search);
  const opened = code ? await ask(api.POST("/session", { body: { code } })) : null;
  const found: Answer<Schemas["SessionInfo"]> = opened?.ok ? opened : await ask(api.GET("/session"));
  const before = held();
  if (found.ok) {
    // What somebody else had on the screen is not shown.
    if (before && before.principal !== found.data.principal) return location.reload();
    csrf.value = found.data.csrf;
    shut.value = null;
    session.value = {
      state: "open",
      principal: found.data.principal,
      owner: found.data.owner,
      until: Date.now() + found.data.expires_in * 1000,
    };
    return;
  }
  if (!online.value) {
    session.value = before ? { state: "closed", why: null, ended: before } : { state: "unreachable" };
    return;
  }
  const open = await ask(api.GET("/memory/status"));
  if (open.ok) {
    shut.value = null;
    session.value = { state: "reading" };
  } else {
    const why = opened && !opened.ok ? opened.problem : before ? shut.value : null;
    session.value = { state: "closed", why, ended: before };
  }
}

/** Open a session with a token; returns what is wrong with it, or nothing. */
export async function enterWith(token: string): Promise<string> {
  const link = await ask(api.POST("/session/link", { headers: { Authorization: `Bearer ${token}` } }));
  if (!link.ok) return link.problem.detail;
  history.replaceState(null, "", location.pathname + location.search + new URL(link.data.url).hash);
  await enter();
  return "";
}

/** The session of what is on the screen, also when it has ended. */
function held(): Open | null {
  const now = session.value;
  return now.state === "open" ? now : now.state === "closed" ? now.ended : null;
}

/** Take the screen out of the page until there is a session again: a link that was opened in another tab gives one to this page, too. */
export function expireSession(): void {
  session.value = { state: "closed", why: shut.value, ended: held() };
}

/** Whether this page may decide on what waits: it is the owner's or a reviewer's. */
export function mayDecide(): boolean {
  return held() !== null;
}

/** Whether this page may change anything: it is the owner's. */
export function mayChange(): boolean {
  return held()?.owner ?? false;
}

/** End the session here and at the server. */
export async function signOut(): Promise<void> {
  await ask(api.DELETE("/session"));
  csrf.value = null;
  session.value = { state: "closed", why: null, ended: null };
}
