/** Why a question did not bring a memory: what forbids it comes before what only counts against it. */

import type { Schemas } from "./api";
import { placeName } from "./words";

/** What may forbid that a question brings a memory, the first to be named first. */
export interface Unseen {
  code: string;
  why: string;
}

const ENDED: Record<string, string> = {
  expired: "It expired.",
  superseded: "Another memory took its place.",
  retired: "It was forgotten.",
  archived: "It was archived.",
  erased: "It was erased.",
};

/** Whether who asks at a scope is given what is stored at another one: its own and those above it. */
export function reaches(scope: string, stored: string): boolean {
  return stored === "/" || scope === stored || scope.startsWith(`${stored}/`);
}

/** Return what forbids that a question at a scope and a time brings a memory; null where nothing does. */
export function forbidden(memory: Schemas["Record"], scope: string, at?: string | null): Unseen | null {
  if (at && Date.parse(memory.created_at) > Date.parse(at)) return { code: "later", why: "It was written afterwards." };
  if (!reaches(scope, memory.scope)) {
    const own = placeName(memory.scope) ?? memory.scope;
    return { code: "other scope", why: `It is only for ${own}; the question was asked at ${scope}.` };
  }
  if (memory.status !== "active")
    return { code: memory.status, why: ENDED[memory.status] ?? `It is ${memory.status}.` };
  if (memory.sensitivity === "sensitive")
    return { code: "sensitive", why: "It is sensitive, and what is sensitive was not asked for." };
  if (!memory.text.trim()) return { code: "no text", why: "It has no text to search; it is read by its key." };
  return null;
}

/** The codes of a compiled context that forbid a memory, whatever is asked. */
const REFUSED = new Set([
  "sensitive",
  "expired",
  "superseded",
  "retired",
  "archived",
  "trust",
  "injection",
  "secret",
  "quarantine",
  "damaged",
  "textless",
  "unkeyed",
]);

/** Candidates of a context in the order in which a reader asks for them. */
export interface Sorted<T> {
  /** What is in, in its order; what is refused; what had no room or was said already. */
  shown: T[];
  /** What hardly bears on the question. */
  weak: T[];
}

/** Return candidates with the refused before those that merely lost. */
export function sortedCandidates<T extends Pick<Schemas["Considered"], "section" | "code">>(
  all: readonly T[],
): Sorted<T> {
  const out = all.filter((each) => each.section === null);
  const refused = out.filter((each) => REFUSED.has(each.code));
  const weak = out.filter((each) => each.code === "weak");
  const lost = out.filter((each) => !REFUSED.has(each.code) && each.code !== "weak");
  return { shown: [...all.filter((each) => each.section !== null), ...refused, ...lost], weak };
}
