/** What a token would see, in a sentence. */

import { counted } from "../../parts/Contain";

interface Asked {
  rights: "owner" | "reviewer" | "agent";
  /** Path of its scope. */
  at: string;
  sensitive: boolean;
}

/** Numbers of memories at a scope, in those above it, and in those below it. */
export interface Counts {
  own: number;
  above: number;
  below: number;
}

/** Return the scopes above one, the root first: `/` and `/agents` for `/agents/lab`. */
export function above(at: string): string[] {
  const names = at.split("/").filter(Boolean).slice(0, -1);
  return at === "/" ? [] : ["/", ...names.map((_, end) => `/${names.slice(0, end + 1).join("/")}`)];
}

/** Return what a token sees; without numbers while `counts` is not known. */
export function sightOf({ rights, at, sensitive }: Asked, counts: Counts | null): string {
  if (rights === "owner") return "It sees everything.";
  const number = (name: keyof Counts) => (counts ? counted(counts[name], "memory", "memories") : "the memories");
  const own = at === "/" ? `${number("own")} that all share` : `${number("own")} at ${at}`;
  const shared = at === "/" ? "" : ` and ${number("above")} shared above it`;
  const beneath =
    rights === "reviewer"
      ? `, and ${number("below")} in scopes below`
      : counts?.below
        ? `; ${number("below")} in scopes below only where it opens the scope by its name`
        : "";
  return `It reads ${own}${shared}${beneath}. ${sensitive ? "Sensitive ones are among them." : "Sensitive ones are left out."}`;
}
