/** Memories that are selected, and where one of them is shown. */

import type { Schemas } from "../../api";

/** Most that one call forgets, and so most that can be selected. */
export const MOST = 500;

/** Id of the memories that a search found; each row has its place after it. */
export const FOUND = "found";

/** The row that keys act on, from 0; -1 for none. */
export interface Cursor {
  cursor: number;
  onCursor: (row: number) => void;
}

/** Whether a key was pressed in the box of the search or in the list. */
export function isInList(event: KeyboardEvent): boolean {
  return event.target instanceof Element && !!event.target.closest("[role=combobox], [role=grid], .memory-rows");
}

/** What is selected, and how one memory is selected or not any more. */
export interface Picked {
  selected: ReadonlyMap<string, Schemas["Record"]>;
  turn: (memory: Schemas["Record"]) => void;
}

/** Return the address of a memory, as it was at a commit where one is given. */
export function placeOf(memory: { id: string }, asOf: string | number | null | undefined): string {
  return `/memories/${encodeURIComponent(memory.id)}${asOf ? `?at=${encodeURIComponent(String(asOf))}` : ""}`;
}
