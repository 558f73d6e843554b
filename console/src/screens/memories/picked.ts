/** Memories that are selected, and where one of them is shown. */

import type { Schemas } from "../../api";

/** Most that one call forgets, and so most that can be selected. */
export const MOST = 500;

/** What is selected, and how one memory is selected or not any more. */
export interface Picked {
  selected: ReadonlyMap<string, Schemas["Record"]>;
  turn: (memory: Schemas["Record"]) => void;
}

/** Return the address of a memory, as it was at a commit where one is given. */
export function placeOf(memory: { id: string }, asOf: string | number | null | undefined): string {
  return `/memories/${encodeURIComponent(memory.id)}${asOf ? `?at=${encodeURIComponent(String(asOf))}` : ""}`;
}
