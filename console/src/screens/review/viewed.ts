/**
 * What was on screen long enough to be decided: nothing is approved that a person had no chance to read.
 *
 * A proposal counts by its digest, so that one that changed has to be seen again.
 */

import { signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";

/** Milliseconds without a break, of frames that were drawn. */
export const MIN_VIEW_MS = 400;
// As much as one frame counts at most: a page that hangs shows nothing new.
const LONGEST_FRAME = 100;
/** Digests that were on screen for so long. */
export const viewed = signal<ReadonlySet<string>>(new Set());

/** Watch an element that shows all of a proposal; give the result to it as `ref`. */
export function useViewTracking<E extends HTMLElement>(digest: string | undefined) {
  const element = useRef<E>(null);
  useEffect(() => {
    const shown = element.current;
    if (!shown || !digest) return undefined;
    let inView = false;
    let frame = 0;
    const look = () => {
      cancelAnimationFrame(frame);
      if (!inView || document.visibilityState !== "visible" || viewed.peek().has(digest)) return;
      let drawn = 0;
      let last = performance.now();
      const count = (now: number) => {
        drawn += Math.min(LONGEST_FRAME, Math.max(0, now - last));
        last = now;
        // What was scrolled away while the page was busy is heard of here first.
        if (turned(observer.takeRecords())) return look();
        if (drawn < MIN_VIEW_MS) frame = requestAnimationFrame(count);
        else viewed.value = new Set(viewed.peek()).add(digest);
      };
      frame = requestAnimationFrame(count);
    };
    /** Take in how much of it is on screen; return whether it came or went. */
    const turned = (entries: IntersectionObserverEntry[]) => {
      const entry = entries.at(-1);
      const before = inView;
      // Half of it, or as much as the window holds.
      if (entry) inView = entry.intersectionRatio >= 0.5 || entry.intersectionRect.height >= innerHeight * 0.4;
      return inView !== before;
    };
    const onTurn = (entries: IntersectionObserverEntry[]) => {
      if (turned(entries)) look();
    };
    const observer = new IntersectionObserver(onTurn, { threshold: [0, 0.1, 0.25, 0.5, 0.75, 1] });
    observer.observe(shown);
    document.addEventListener("visibilitychange", look);
    return () => {
      cancelAnimationFrame(frame);
      observer.disconnect();
      document.removeEventListener("visibilitychange", look);
    };
  }, [digest]);
  return element;
}
