/** Lists too long to load at once: the part in view is read, the rest is read when it comes into view. */

import { useCallback, useEffect, useReducer, useRef } from "preact/hooks";
import type { Signal } from "@preact/signals";
import type { Answer, Problem } from "./api";
import { following } from "./events";
import type { Listed } from "./listed";

export interface Windowed<T> {
  /** How many there are in all; undefined until it is known. */
  total: number | undefined;
  /** The item at a place, if it was read. */
  at: (index: number) => T | undefined;
  /** Whether the part of a place was read: an item that is missing there cannot be shown. */
  read: (index: number) => boolean;
  /** What went wrong with the part of a place, until it is read. */
  problemAt: (index: number) => Problem | undefined;
  /** Items that were read, each with its place, in order. */
  items: () => [number, T][];
  /** The place of the first item that was read and passes a test; -1 where there is none. */
  find: (test: (item: T) => boolean) => number;
  /** Have a part read. */
  need: (first: number, last: number) => void;
  problem: Problem | undefined;
  reload: () => void;
}

// Items that are read in one go.
const SIZE = 100;

/**
 * Read a list by parts. `name` stands for the list: where it changes, everything is read anew. When `follow` moves,
 * the parts in view are read again and take the place of the old ones, and the others are forgotten.
 */
export function useWindow<T>(
  name: string,
  read: (offset: number, limit: number, signal: AbortSignal) => Promise<Answer<Listed<T>>>,
  follow: Signal<unknown> | null,
): Windowed<T> {
  const [, redraw] = useReducer((turn: number) => turn + 1, 0);
  const state = useRef({
    name,
    parts: new Map<number, readonly T[]>(),
    asked: new Set<number>(),
    view: [0, 0] as [number, number],
    total: undefined as number | undefined,
    problems: new Map<number, Problem>(),
    requests: new AbortController(),
  });
  const took = useRef(0);
  const reading = useRef(read);
  reading.current = read;
  if (state.current.name !== name) {
    state.current.requests.abort();
    state.current = {
      name,
      parts: new Map(),
      asked: new Set(),
      view: [0, 0],
      total: undefined,
      problems: new Map(),
      requests: new AbortController(),
    };
  }
  const get = useCallback((part: number) => {
    const { asked, requests } = state.current;
    const began = performance.now();
    asked.add(part);
    void reading.current(part * SIZE, SIZE, requests.signal).then((answer) => {
      const now = state.current;
      if (requests.signal.aborted) return;
      took.current = performance.now() - began;
      if (answer.ok) {
        now.parts.set(part, answer.data.shown);
        now.total = answer.data.total ?? now.total;
        now.problems.delete(part);
      } else {
        now.asked.delete(part);
        now.problems.set(part, answer.problem);
      }
      redraw(undefined);
    });
  }, []);
  const need = useCallback(
    (first: number, last: number) => {
      const now = state.current;
      now.view = [first, last];
      for (let part = Math.floor(first / SIZE); part <= Math.floor(Math.max(first, last) / SIZE); part++) {
        if (!now.asked.has(part)) get(part);
      }
    },
    [get],
  );
  const reload = useCallback(() => {
    const now = state.current;
    const [first, last] = now.view;
    const from = Math.floor(first / SIZE);
    const to = Math.floor(Math.max(first, last) / SIZE);
    now.requests.abort();
    now.requests = new AbortController();
    now.asked = new Set();
    for (const part of now.problems.keys()) if (part < from || part > to) now.problems.delete(part);
    for (const part of [...now.parts.keys()]) if (part < from || part > to) now.parts.delete(part);
    for (let part = from; part <= to; part++) get(part);
  }, [get]);
  useEffect(() => {
    need(0, 0);
  }, [name, need]);
  useEffect(() => () => state.current.requests.abort(), []);
  useEffect(() => {
    if (!follow) return undefined;
    return following(follow, () => took.current, reload);
  }, [follow, reload]);
  const { parts, total, problems } = state.current;
  const find = (test: (item: T) => boolean) => {
    for (const part of [...parts.keys()].sort((one, other) => one - other)) {
      const place = parts.get(part)?.findIndex(test) ?? -1;
      if (place >= 0) return part * SIZE + place;
    }
    return -1;
  };
  const items = () =>
    [...parts.keys()]
      .sort((one, other) => one - other)
      .flatMap((part) => (parts.get(part) ?? []).map((item, index): [number, T] => [part * SIZE + index, item]));
  const has = (index: number) => parts.has(Math.floor(index / SIZE));
  return {
    total,
    problem: problems.values().next().value,
    problemAt: (index) => problems.get(Math.floor(index / SIZE)),
    need,
    reload,
    items,
    find,
    read: has,
    at: (index) => parts.get(Math.floor(index / SIZE))?.[index % SIZE],
  };
}

/** Return a list without the items that pass a test; what was not read yet counts as shown. */
export function without<T>(list: Windowed<T>, hides: (item: T) => boolean): Windowed<T> {
  const hidden = list.items().flatMap(([index, item]) => (hides(item) ? [index] : []));
  if (!hidden.length) return list;
  // The place in the whole list of a place among those that are shown, and the other way round.
  const whole = (index: number) => hidden.reduce((place, gone) => (gone <= place ? place + 1 : place), index);
  const shown = (index: number) => index - hidden.filter((gone) => gone < index).length;
  return {
    ...list,
    total: list.total === undefined ? undefined : list.total - hidden.length,
    at: (index) => list.at(whole(index)),
    read: (index) => list.read(whole(index)),
    problemAt: (index) => list.problemAt(whole(index)),
    need: (first, last) => list.need(whole(first), whole(last)),
    items: () => list.items().flatMap(([index, item]): [number, T][] => (hides(item) ? [] : [[shown(index), item]])),
    find: (test) => {
      const place = list.items().find(([, item]) => !hides(item) && test(item));
      return place ? shown(place[0]) : -1;
    },
  };
}
