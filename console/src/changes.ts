/** What differs between two versions of a memory. */

import type { Schemas } from "./api";

type Memory = Schemas["Record"];

/** One field that differs. */
export interface Change {
  field: string;
  before: unknown;
  after: unknown;
}

// Of who wrote a version and when; and what a read adds.
const BOOKKEEPING = new Set([
  ...["id", "version", "created_at", "updated_at", "reinforced_at", "author", "text_by", "text_at"],
  ...["base_confidence", "base_importance", "uses", "last_used", "children"],
]);

/** Return the fields that differ; of a new or removed memory, those that are not empty. */
export function changesOf(before: Memory | null, after: Memory | null): Change[] {
  const old = (before ?? {}) as Record<string, unknown>;
  const now = (after ?? {}) as Record<string, unknown>;
  return Object.keys(after ?? before ?? {})
    .filter((field) => !BOOKKEEPING.has(field) && text(old[field]) !== text(now[field]))
    .map((field) => ({ field, before: old[field] ?? null, after: now[field] ?? null }));
}

function text(value: unknown): string {
  const isEmpty = value === null || value === undefined || value === "" || (Array.isArray(value) && !value.length);
  return isEmpty ? "" : JSON.stringify(value);
}
