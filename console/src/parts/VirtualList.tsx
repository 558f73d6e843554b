/** A list of any length of which only the rows in view are there. */

import "./virtual-list.css";
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useReducer, useRef, useState } from "preact/hooks";
import { Virtualizer, elementScroll, observeElementOffset, observeElementRect } from "@tanstack/virtual-core";

/** The first row in view of each list that was left, by its address: going back shows it again. */
const left = new Map<string, number>();
let back = false;
addEventListener("popstate", () => (back = true));
addEventListener("pushState", () => (back = false));

interface Props {
  label: string;
  count: number;
  /** Height of a row in pixels, as far as it is known before it is drawn. */
  estimate: number;
  /** Draw a row; give it `role="option"` where the list is a listbox, `listitem` otherwise. */
  row: (index: number) => ComponentChildren;
  /** What stays the same of a row that moves. */
  keyOf?: (index: number) => string | number;
  /** Called with the first and the last row in view, so that they can be loaded. */
  onRange?: (first: number, last: number) => void;
  /** A row to be brought into view when this changes. */
  current?: number;
  /** `listbox` where one row is chosen by keys. */
  role?: "list" | "listbox";
  /** Id of the chosen row's element. */
  active?: string;
  class?: string;
}

export function VirtualList({
  label,
  count,
  estimate,
  row,
  keyOf,
  onRange,
  current,
  role = "list",
  active,
  class: own = "",
}: Props) {
  const box = useRef<HTMLDivElement>(null);
  const [, redraw] = useReducer((turn: number) => turn + 1, 0);
  const options = {
    count,
    estimateSize: () => estimate,
    getScrollElement: () => box.current,
    getItemKey: keyOf ?? ((index: number) => index),
    scrollToFn: elementScroll,
    observeElementRect,
    observeElementOffset,
    overscan: 6,
    onChange: (turned: Virtualizer<HTMLDivElement, HTMLElement>, scrolling: boolean) => {
      const top = turned.getVirtualItemForOffset(turned.scrollOffset ?? 0);
      if (scrolling && top) left.set(`${label} ${location.href}`, top.index);
      redraw(undefined);
    },
  };
  const [list] = useState(() => new Virtualizer<HTMLDivElement, HTMLElement>(options));
  list.setOptions({ ...list.options, ...options });
  useLayoutEffect(() => list._didMount(), [list]);
  useLayoutEffect(() => list._willUpdate());
  const rows = list.getVirtualItems();
  const first = rows[0]?.index ?? 0;
  const last = rows.at(-1)?.index ?? -1;
  useEffect(() => {
    if (last >= 0) onRange?.(first, last);
  }, [first, last, onRange, count]);
  useEffect(() => {
    if (current !== undefined && current >= 0 && current < count) list.scrollToIndex(current, { align: "auto" });
    // Rows that arrive later do not move the list.
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [current, list]);
  const some = count > 0;
  useEffect(() => {
    const place = back ? left.get(`${label} ${location.href}`) : undefined;
    if (some && place) list.scrollToIndex(Math.min(place, count - 1), { align: "start" });
    // The place is restored once, when the first rows are there.
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [some, list]);
  return (
    <div ref={box} class={`virtual ${own}`} role={role} aria-label={label} tabIndex={0} aria-activedescendant={active}>
      <div role="presentation" class="virtual-all" style={{ height: `${list.getTotalSize()}px` }}>
        {rows.map((item) => (
          <div
            key={item.key}
            role="presentation"
            class="virtual-row"
            data-index={item.index}
            ref={list.measureElement}
            style={{ transform: `translateY(${item.start}px)` }}
          >
            {row(item.index)}
          </div>
        ))}
      </div>
    </div>
  );
}
