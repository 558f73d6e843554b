/** Changes of a proposal that a reviewer has left out, by the proposal's digest: one that changed is decided anew. */

import { signal } from "@preact/signals";

export const leftOut = signal<ReadonlyMap<string, ReadonlySet<string>>>(new Map());

const NONE: ReadonlySet<string> = new Set();

/** Return the ids of the memories whose changes are left out. */
export function leftOutOf(digest: string): ReadonlySet<string> {
  return leftOut.value.get(digest) ?? NONE;
}

/** Leave the change of a memory out, or take it in again. */
export function toggleLeftOut(digest: string, memory: string): void {
  const ids = new Set(leftOutOf(digest));
  if (!ids.delete(memory)) ids.add(memory);
  leftOut.value = new Map(leftOut.value).set(digest, ids);
}
