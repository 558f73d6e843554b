/** What branches and their changes are called, and how a change is compared with main. */

import type { Schemas } from "../../api";
import { counted } from "../../parts/Contain";
import type { Differing } from "../../parts/Differences";
import type { Tone } from "../../parts/Tag";
import { codeName } from "../review/labels";

export type Branch = Schemas["Branch"];
export type BranchChange = Schemas["BranchChange"];
export type Side = "branch" | "main";

export const STATES: Record<Branch["state"], { tone: Tone; means: string }> = {
  open: { tone: "accent", means: "It takes changes; main does not have them before a merge." },
  merged: { tone: "good", means: "All that it changed left it in a merge." },
  discarded: { tone: "plain", means: "Its changes were retired; its commits stay in the journal." },
  expired: { tone: "warn", means: "Its time is over: it is neither read nor written." },
};

// What became of changes that no merge took.
const REST: Record<Branch["state"], string> = {
  open: "left",
  merged: "left",
  discarded: "discarded",
  expired: "left",
};

/** Return how many changes a branch has, of how many: `5 changes`, `3 of 8 changes merged, 5 left`. */
export function changesOfBranch({ changes, merged, state }: Branch): string {
  const all = counted(changes + merged, "change");
  if (!merged) return state === "discarded" && changes ? `${all} discarded` : all;
  const rest = changes ? `, ${changes.toLocaleString()} ${REST[state]}` : "";
  return `${merged.toLocaleString()} of ${all} merged${rest}`;
}

/** Return the path on main of a scope: `/users/ana` for `/@try-x/users/ana`. */
export function mainScope(scope: string): string {
  return scope.startsWith("/@") ? `/${scope.slice(2).split("/").slice(1).join("/")}` : scope;
}

/** Return a memory of a branch as main would have it after a merge; `before` is what it was made from. */
export function asOnMain(memory: Schemas["Record"], before: Schemas["Record"] | null): Schemas["Record"] {
  const made = { ...memory, scope: mainScope(memory.scope), branched_from: null };
  if (!before) return made;
  // What only decayed is no change.
  if (memory.base_confidence === before.base_confidence) made.confidence = before.confidence;
  if (memory.base_importance === before.base_importance) made.importance = before.importance;
  return made;
}

/** Return what main says of a change, and what it would say. */
export function differingOf(change: BranchChange): Differing {
  const before = change.op === "added" ? change.main : (change.base ?? change.main);
  const after = change.op === "removed" ? null : asOnMain(change.branch, before);
  const page = change.of ? `/memories/${change.of}` : null;
  return { op: change.op, before, after, page, flag: change.instructs ? codeName("addressed_to_model") : undefined };
}

/** Return the header of a call about a branch: it is found from the scope in which it was made. */
export function atScope({ scope }: Branch) {
  return { "Keepward-Scope": scope };
}
