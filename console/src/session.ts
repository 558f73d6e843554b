/** The session: opened by the one-time code of the link, found again by its cookie. */

import { signal } from "@preact/signals";
import { api, ask, csrf, online, shut, type Answer, type Problem, type Schemas } from "./api";

export type Session =
  | { state: "opening" }
  | { state: "open"; principal: string; owner: boolean; until: number }
  /** Reads are open to all on this server; nothing can be changed. */
  | { state: "reading" }
  | { state: "closed"; why: Problem | null }
  | { state: "unreachable" };

export const session = signal<Session>({ state: "opening" });

/** Open the session that the address has a code for, or go on with the one of the cookie. */
export async function enter(): Promise<void> {
  const code = new URLSearchParams(location.hash.slice(1)).get("code");
  // The code works once, so it need not stay in the address and the history.
  if (code) history.replaceState(null, "", location.pathname + location.search);
  const opened = code ? await ask(api.POST("/session", { body: { code } })) : null;
  const found: Answer<Schemas["Opened"]> = opened?.ok ? opened : await ask(api.GET("/session"));
  if (found.ok) {
    csrf.value = found.data.csrf;
    shut.value = false;
    session.value = { state: "open", principal: found.data.principal, owner: found.data.owner, until: Date.now() + found.data.expires_in * 1000 };
    return;
  }
  if (!online.value) {
    session.value = { state: "unreachable" };
    return;
  }
  const open = await ask(api.GET("/memory/status"));
  if (open.ok) {
    shut.value = false;
    session.value = { state: "reading" };
  } else {
    session.value = { state: "closed", why: opened && !opened.ok ? opened.problem : null };
  }
}

/** Whether this page may decide on what waits: it is the owner's or a reviewer's. */
export function mayDecide(): boolean {
  return session.value.state === "open";
}

/** Whether this page may change anything: it is the owner's. */
export function mayChange(): boolean {
  return session.value.state === "open" && session.value.owner;
}

/** End the session here and at the server. */
export async function leave(): Promise<void> {
  await ask(api.DELETE("/session"));
  csrf.value = null;
  session.value = { state: "closed", why: null };
}
