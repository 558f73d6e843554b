/** What a name stands for: whom memories are about, who wrote them, where they came from, whose place they are in. */

import type { Schemas } from "../../api";
import type { Found } from "../../load";

// What stands before a name to say what sort of actor it is.
const KINDS = ["user", "agent", "operator", "reviewer", "job", "system"];
// What may be a part of a scope.
const PART = /^[A-Za-z0-9_][A-Za-z0-9._-]{0,63}$/;

/** The lists in which what wrote something is found, as the API calls them. */
export type List = "actors" | "sources" | "references" | "sessions";

export interface Named {
  /** The name without the sort of its actor. */
  bare: string;
  /** Values of `subject` that are it. */
  subjects: string[];
  /** What of it wrote something. */
  origins: { list: List; row: Schemas["SourceActivity"] }[];
  /** Scopes that are its own. */
  scopes: string[];
}

/** Return the sort of an actor and its name; a name alone has none. */
export function parted(name: string): [kind: string, bare: string] {
  const at = name.indexOf(":");
  const kind = name.slice(0, Math.max(0, at));
  return KINDS.includes(kind) ? [kind, name.slice(at + 1)] : ["", name];
}

const same = (one: string, other: string) => one.toLowerCase() === other.toLowerCase();

/** Return what a name stands for; `user:ana` is that actor alone, and `ana` everybody of that name. */
export function namedBy(name: string, sources: Found<"/memory/sources">, subjects: readonly Schemas["Count"][]): Named {
  const [kind, bare] = parted(name);
  const lists: List[] = ["actors", "sources", "references", "sessions"];
  const origins = lists.flatMap((list) =>
    sources[list].shown
      .filter((row) => row.name === name || (list === "actors" && !kind && same(parted(row.name)[1], bare)))
      .map((row) => ({ list, row })),
  );
  const places: Record<string, string[]> = { "": ["users", "projects", "agents"], agent: ["agents"] };
  const scopes = PART.test(bare) ? (places[kind] ?? ["users"]).map((place) => `/${place}/${bare}`) : [];
  return {
    bare,
    subjects: subjects.map((count) => count.value).filter((subject) => same(subject, bare)),
    origins,
    scopes: kind === "job" || kind === "system" ? [] : scopes,
  };
}
