/** The HTTP API, typed by its own description; what goes wrong is a value. */

import createClient from "openapi-fetch";
import type { components, paths } from "./schema";
import { signal } from "@preact/signals";

/** The shapes of the API by name, as in `docs/reference/http.md`. */
export type Schemas = components["schemas"];

/** What became of a write. */
export type Outcome = Schemas["Committed"] | Schemas["Quarantined"] | Schemas["Refused"] | Schemas["Duplicate"];

/** Return the id of the commit that a write made. */
export function commitOf(outcome: Outcome | null): string | undefined {
  return outcome && "commit" in outcome ? outcome.commit?.id : undefined;
}

/** What went wrong, as the server says it; `offline` where it did not answer. */
export interface Problem {
  status: number;
  code: string;
  title: string;
  detail: string;
  [more: string]: unknown;
}

/** What a call came to. */
export type Answer<T> = { ok: true; data: T; status: number; etag: string | null } | { ok: false; problem: Problem };

/** Whether the server answers. */
export const online = signal(true);
/** What a changing call has to carry; null while there is no session. */
export const csrf = signal<string | null>(null);
/** The problem of a call that was answered with 401: the session has ended, or there never was one. */
export const shut = signal<Problem | null>(null);

/** The calls, as `api.GET(path, init)`; pass what they return to `ask`. */
export const api = createClient<paths>({ baseUrl: location.origin, credentials: "same-origin" });
api.use({
  onRequest({ request }) {
    if (csrf.value && request.method !== "GET") request.headers.set("Keepward-Csrf", csrf.value);
    return request;
  },
});

/** Wait for a call; returns its answer or its problem, and never throws. */
export async function ask<T>(
  call: Promise<{ data?: T; error?: unknown; response: Response }>,
): Promise<Answer<Exclude<T, undefined>>> {
  try {
    const { data, error, response } = await call;
    online.value = true;
    if (response.ok) {
      const etag = response.headers.get("etag");
      return { ok: true, data: data as Exclude<T, undefined>, status: response.status, etag };
    }
    const problem = problemOf(error, response.status);
    if (response.status === 401) shut.value = problem;
    return { ok: false, problem };
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") return { ok: false, problem: { ...CANCELLED } };
    online.value = false;
    return { ok: false, problem: { ...OFFLINE } };
  }
}

const OFFLINE: Problem = {
  status: 0,
  code: "offline",
  title: "The server does not answer",
  detail: "The server does not answer. Nothing was lost; this page goes on as soon as it is back.",
};

const CANCELLED: Problem = {
  status: 0,
  code: "cancelled",
  title: "The call was cancelled",
  detail: "The call was cancelled: nothing waits for its answer.",
};

function problemOf(error: unknown, status: number): Problem {
  const said = typeof error === "object" && error !== null ? (error as Partial<Problem>) : {};
  const title = said.title ?? "The call failed";
  return {
    ...said,
    status,
    code: said.code ?? "error",
    title,
    detail: said.detail ?? `The server answered ${status}.`,
  };
}

/** Return the address of a call, to be shown or opened; `undefined`, null and empty lists are left out. */
export function addressOf(path: string, init?: { params?: { path?: object; query?: object } }): string {
  const names: Record<string, unknown> = { ...init?.params?.path };
  const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(String(names[name])));
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(init?.params?.query ?? {})) {
    for (const each of Array.isArray(value) ? value : [value]) {
      if (each !== undefined && each !== null) query.append(name, String(each));
    }
  }
  const text = query.toString();
  return text ? `${filled}?${text}` : filled;
}
