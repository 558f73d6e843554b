/** What differs between two contexts, judged by what both say. */

import type { Schemas } from "../../api";

type Item = Schemas["ContextDiffItem"];

/** Whether only uses or confirmations made another version of a memory: its text is the same in both contexts. */
export function isNoted(item: Item, first: ReadonlyMap<string, string>, second: ReadonlyMap<string, string>): boolean {
  const before = first.get(item.id);
  return (
    item.change === "changed" &&
    before !== undefined &&
    before === second.get(item.id) &&
    (item.commit?.steps ?? []).some((step) => step.after.id === item.id && step.op === "reinforce")
  );
}

/** Return the version with which a memory got the text that it had at `version`. */
export function textMadeAt(history: readonly Schemas["Version"][], version: number): Schemas["Version"] | undefined {
  return history
    .filter((each) => each.record.version <= version && (!each.before || each.before.text !== each.record.text))
    .sort((one, other) => other.record.version - one.record.version)[0];
}

/** Return which settings of two contexts differ, as name, first and second value; of compound ones, their parts. */
export function changedInputs(name: string, first: unknown, second: unknown): [string, string, string][] {
  if (name === "now" || name === "head" || valueText(first) === valueText(second)) return [];
  if (!isParts(first) || !isParts(second)) return [[name.replaceAll("_", " "), valueText(first), valueText(second)]];
  return [...new Set([...Object.keys(first), ...Object.keys(second)])].flatMap((part) =>
    changedInputs(part, first[part], second[part]),
  );
}

function isParts(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function valueText(value: unknown): string {
  if (value === null || value === undefined) return "nothing";
  return typeof value === "string" ? value : JSON.stringify(value);
}
