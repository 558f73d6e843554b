/** What a proposal is about, in a few words. */

import type { Schemas } from "../../api";
import { changesOf, type Change } from "../../changes";
import type { Tone } from "../../parts/Tag";

export type Proposal = Schemas["Reviewed"];
export type Step = Schemas["Step"] & {
  /** The fields to show, if not all that differ. */
  changed?: Change[];
};

/** What is said of a proposal that whoever reads it may reject and not approve. */
export const OTHER_APPROVER_NEEDED = "You may reject this; to approve it takes somebody else.";

const DOES: Record<string, [one: string, many: string]> = {
  insert: ["Remember", "Remember"],
  replace: ["Change", "Change"],
  append: ["Add to", "Add to"],
  retire: ["Forget", "Forget"],
  archive: ["Archive", "Archive"],
  restore: ["Restore", "Restore"],
  move: ["Move", "Move"],
  promote: ["Promote", "Promote"],
  supersede: ["Replace", "Replace"],
  reinforce: ["Confirm", "Confirm"],
  expire: ["Expire", "Expire"],
};

/** What became of a memory, in a word. */
export const OPS: Record<string, string> = {
  insert: "new",
  replace: "changed",
  append: "added to",
  reinforce: "confirmed",
  revert: "undone",
  retire: "forgotten",
  archive: "archived",
  restore: "restored",
  move: "moved",
  promote: "promoted",
  supersede: "replaced",
  expire: "expired",
  contain: "out of use",
  erase: "erased",
};

/** Return what would happen, as a heading: `Change the mission`, `Merge 3 memories into one`. */
export function headline(item: Proposal): string {
  const steps = item.steps;
  const [first] = steps;
  if (!first) return "A proposal without a change";
  if (steps.length > 1) {
    const ops = new Set(steps.map((each) => each.op));
    if (ops.has("insert") && ops.has("supersede")) return `Merge ${steps.length - 1} memories into one`;
    const [does] = DOES[first.op] ?? [first.op];
    return ops.size === 1 ? `${does} ${steps.length} memories` : `${steps.length} changes at once`;
  }
  const [does] = DOES[first.op] ?? [first.op];
  const { key, tier, kind } = first.after;
  if (tier === "core" && key) return `${does} the ${key}`;
  return key ? `${does} ${key}` : `${does} ${article(kind)}`;
}

function article(kind: string): string {
  return /^[aeiou]/.test(kind) ? `an ${kind}` : `a ${kind}`;
}

/** Return what the memory of a stale proposal says now; undefined where there is no such memory any more, or several. */
export function currentOf(item: Proposal): Schemas["Record"] | undefined {
  return item.current.length === 1 ? item.current[0] : undefined;
}

/** Whether a proposal can be approved as it is. */
export function approvable(item: Proposal): boolean {
  return item.may_approve && !item.stale;
}

// Characters that stand for a whole text.
const TITLE = 80;

/** Return the first words of a text, as its title. */
export function firstWords(text: string | null | undefined): string {
  const line = (text ?? "").trim().split("\n")[0] ?? "";
  if (line.length <= TITLE) return line;
  const cut = line.slice(0, TITLE);
  return `${cut.slice(0, cut.lastIndexOf(" ") > TITLE / 2 ? cut.lastIndexOf(" ") : TITLE)}…`;
}

/** Return the words that a list shows of a proposal. */
export function summaryOf(item: Proposal): string {
  const step = item.steps.find((each) => each.after.text) ?? item.steps[0];
  return step ? (step.after.text ?? step.before?.text ?? "") : "";
}

/** Return who proposed it, without the kind of actor. */
export function proposer(item: Proposal): string {
  return item.proposer.name;
}

// What a gate is called where its name says little.
const GATES: Record<string, string> = {
  authority: "not allowed alone",
  confidence: "unsure",
  duplicate: "known already",
  injection: "gives orders",
  jobs: "automatic step",
  privacy: "personal data",
  shape: "incomplete",
};

/** Return what a gate is called. */
export function gateName(gate: string): string {
  return GATES[gate] ?? gate.replaceAll("_", " ");
}

// What a reason is called in a list, where its code says little to who did not write it.
const CODES: Record<string, string> = {
  lower_trust: "less trusted source",
  below_floor: "unsure",
  permanence_needs_approval: "would be permanent",
  needs_approval: "needs a person",
  rule_below_floor: "unsure for a rule",
  rule_without_evidence: "rule without evidence",
  addressed_to_model: "gives orders",
  override_instructions: "overrides instructions",
  bidi_control: "reversed text",
  invisible_text: "hidden characters",
};

/** Return what a reason is called in a list. */
export function codeName(code: string): string {
  return CODES[code] ?? code.replaceAll("_", " ");
}

/** Return reasons that say the same as one: the sentence, how often it stands there, and the signs it names in brackets. */
export function grouped(reasons: readonly Schemas["Reason"][]): { text: string; count: number; signs: string[] }[] {
  const found = new Map<string, { text: string; count: number; signs: string[] }>();
  for (const each of reasons) {
    const text = each.detail.replace(` (${each.code})`, "");
    const group = found.get(`${each.gate} ${text}`) ?? { text, count: 0, signs: [] };
    group.count += 1;
    if (text !== each.detail && !group.signs.includes(codeName(each.code))) group.signs.push(codeName(each.code));
    found.set(`${each.gate} ${text}`, group);
  }
  return [...found.values()];
}

const BAD = new Set(["injection", "secrets", "poisoning", "content", "recall_poison"]);

/** How much a reason is to be looked at. */
export function severityOf(reason: Schemas["Reason"]): Tone {
  if (BAD.has(reason.gate)) return "bad";
  return reason.gate === "authority" ? "warn" : "plain";
}

/** Return the fields of a step to show. */
export function changed(step: Step): Change[] {
  return step.changed ?? changesOf(step.before, step.after);
}

/** Return `kind:name` of who proposed it. */
export function proposerLabel(item: Proposal): string {
  return `${item.proposer.kind}:${item.proposer.name}`;
}

/** Return the steps whose text a reviewer may edit; of the identity there is none. */
export function editable(item: Proposal): Step[] {
  return item.steps.filter(
    (step) => ["insert", "replace", "append"].includes(step.op) && step.after.text && step.after.kind !== "identity",
  );
}

/** Whether a proposal can be approved with other words; of a stale one it must be clear what it says now. */
export function mayEdit(item: Proposal): boolean {
  const steps = editable(item).length;
  return item.may_approve && (item.stale ? steps === 1 && currentOf(item) !== undefined : steps > 0);
}
