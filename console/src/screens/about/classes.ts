/** What sort of somebody a name is: an owner, a reviewer, an agent, a person whom memories are about, a project. */

import type { Schemas } from "../../api";
import { parted, type Named } from "./names";

type Token = Pick<Schemas["ShownToken"], "name" | "rights">;

const ACTORS: Record<string, string> = {
  user: "user",
  agent: "agent",
  // A reviewer decides and writes nothing: what an operator wrote, an owner wrote.
  operator: "owner",
  reviewer: "reviewer",
  job: "job of the store",
  system: "the store itself",
};
const LISTS = { sources: "kind of source", references: "page or record", sessions: "session" } as const;

/** Return what a name is, each once; `places` are its own scopes that hold something. */
export function classesOf(named: Named, tokens: readonly Token[], places: readonly string[]): string[] {
  const found = named.origins.map(({ list, row }) =>
    list === "actors" ? (ACTORS[parted(row.name)[0]] ?? "actor") : LISTS[list],
  );
  found.push(...tokens.map((token) => String(token.rights)));
  found.push(...places.map((scope) => (scope.split("/")[1] ?? "").replace(/s$/, "")));
  if (named.subjects.length) found.push("whom memories are about");
  return [...new Set(found)];
}

/** Return the tokens of a name: of `operator:rita` those of owners and reviewers, of `agent:rita` those of agents. */
export function tokensOf<T extends Token>(name: string, tokens: readonly T[]): T[] {
  const [kind, bare] = parted(name);
  const kinds: Record<string, readonly string[]> = {
    agent: ["agent"],
    operator: ["owner", "reviewer"],
    reviewer: ["reviewer"],
    user: ["agent"],
  };
  return tokens.filter(
    (token) =>
      token.name.toLowerCase() === bare.toLowerCase() && (kinds[kind] ?? [token.rights]).includes(token.rights),
  );
}
