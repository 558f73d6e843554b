/** Keys: every screen says which ones it has; one listener carries them out, and `?` shows them all. */

import { signal } from "@preact/signals";
import { useLayoutEffect, useRef } from "preact/hooks";

/**
 * What a key does, by `KeyboardEvent.key`; two keys in a row are written with a blank, as `g h`.
 *
 * Where `run` returns false, the key was not meant for it and does what it does by itself.
 */
export type Keys = Record<string, { does: string; run: (event: KeyboardEvent) => unknown } | null>;

interface Group {
  title: string;
  keys: () => Keys;
}

const groups = signal<readonly Group[]>([]);
let before: { key: string; at: number } | null = null;
// Milliseconds within which the second key of two has to come.
const TOGETHER = 1_200;

/** Have keys for as long as a component is there; the newest of two with one key counts. Null switches a key off. */
export function useKeys(title: string, keys: Keys): void {
  const current = useRef(keys);
  current.current = keys;
  // Before it is drawn: what is on screen takes its keys.
  useLayoutEffect(() => {
    const group = { title, keys: () => current.current };
    groups.value = [...groups.peek(), group];
    return () => {
      groups.value = groups.peek().filter((each) => each !== group);
    };
  }, [title]);
}

/** Return the keys that work now, by title, in the order in which they came. */
export function keysNow(): { title: string; keys: [string, string][] }[] {
  return groups.value
    .map((each) => ({
      title: each.title,
      keys: Object.entries(each.keys()).flatMap(([key, is]): [string, string][] => (is ? [[key, is.does]] : [])),
    }))
    .filter((each) => each.keys.length > 0);
}

// What a box that finds rows of a list leaves to the list.
const OF_LIST = ["ArrowDown", "ArrowUp", "Enter", "Escape"];

/** Whether a key is written into what has the focus. */
function typing({ target, key }: KeyboardEvent): boolean {
  if (!(target instanceof HTMLElement)) return false;
  if (target.role === "combobox" && OF_LIST.includes(key)) return false;
  if (target.isContentEditable || target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement)
    return true;
  return target instanceof HTMLInputElement && !["checkbox", "radio", "button", "range"].includes(target.type);
}

function find(key: string): ((event: KeyboardEvent) => unknown) | null {
  for (const group of [...groups.peek()].reverse()) {
    const found = group.keys()[key];
    if (found) return found.run;
  }
  return null;
}

/** The one key that also works while somebody is writing, and is written `Ctrl k`. */
function onCommandKey(event: KeyboardEvent): boolean {
  if (!(event.ctrlKey || event.metaKey) || event.altKey || event.shiftKey || event.key.toLowerCase() !== "k")
    return false;
  event.preventDefault();
  if (!document.querySelector("dialog[open], .gate")) find("Ctrl k")?.(event);
  return true;
}

function onKey(event: KeyboardEvent): void {
  if (event.defaultPrevented || event.isComposing || onCommandKey(event)) return;
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (typing(event) || document.querySelector("dialog[open], .gate")) return;
  // What a button or a link does by itself stays theirs.
  const own = event.target instanceof Element && event.target.closest("button, a, summary, [role=tab]");
  if (own && (event.key === "Enter" || event.key === " ")) return;
  const both = before && event.timeStamp - before.at < TOGETHER ? find(`${before.key} ${event.key}`) : null;
  const run = both ?? find(event.key);
  before = run ? null : { key: event.key, at: event.timeStamp };
  if (!run) return;
  if (run(event) !== false) event.preventDefault();
}

/** Begin to listen. */
export function listenForKeys(): void {
  document.addEventListener("keydown", onKey);
}
