/** What a token would see, in a sentence. */

import { counted } from "../../parts/Contain";

interface Asked {
  rights: "owner" | "reviewer" | "agent";
  /** Path of its scope. */
  at: string;
  sensitive: boolean;
}

/** Return what a token sees, given the number of memories in each scope; null while it is not known. */
export function sightOf({ rights, at, sensitive }: Asked, scopes: ReadonlyMap<string, number> | null): string {
  if (rights === "owner") return "It sees everything.";
  const found = [...(scopes ?? [])];
  const sum = (passes: (scope: string) => boolean) =>
    found.reduce((total, [scope, count]) => total + (passes(scope) ? count : 0), 0);
  const isBelow = (scope: string) => scope !== at && (at === "/" || scope.startsWith(`${at}/`));
  const isAbove = (scope: string) => scope !== at && (scope === "/" || at.startsWith(`${scope}/`));
  const number = (count: number) => (scopes ? counted(count, "memory", "memories") : "the memories");
  const own =
    at === "/"
      ? `${number(sum((scope) => scope === at))} that all share`
      : `${number(sum((scope) => scope === at))} at ${at}`;
  const above = at === "/" ? "" : ` and ${number(sum(isAbove))} shared above it`;
  const below = sum(isBelow);
  const beneath =
    rights === "reviewer"
      ? `, and ${number(below)} in scopes below`
      : below
        ? `; ${number(below)} in scopes below only where it opens the scope by its name`
        : "";
  return `It reads ${own}${above}${beneath}. ${sensitive ? "Sensitive ones are among them." : "Sensitive ones are left out."}`;
}
