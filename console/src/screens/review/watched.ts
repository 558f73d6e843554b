/**
 * What was on screen long enough to be decided: nothing is approved that a person had no chance to read.
 *
 * A proposal counts by its digest, so that one that changed has to be seen again.
 */

import { signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";

/** Milliseconds without a break. */
export const LONG_ENOUGH = 400;
/** Digests that were on screen for so long. */
export const watched = signal<ReadonlySet<string>>(new Set());

/** Watch an element that shows all of a proposal; give the result to it as `ref`. */
export function useWatched<E extends HTMLElement>(digest: string | undefined) {
  const element = useRef<E>(null);
  useEffect(() => {
    const shown = element.current;
    if (!shown || !digest) return undefined;
    let inView = false;
    let due: ReturnType<typeof setTimeout> | undefined;
    const look = () => {
      clearTimeout(due);
      if (!inView || document.visibilityState !== "visible" || watched.peek().has(digest)) return;
      due = setTimeout(() => {
        watched.value = new Set(watched.peek()).add(digest);
      }, LONG_ENOUGH);
    };
    const observer = new IntersectionObserver(
      (entries) => {
        const entry = entries.at(-1);
        // Half of it, or as much as the window holds.
        inView = !!entry && (entry.intersectionRatio >= 0.5 || entry.intersectionRect.height >= innerHeight * 0.4);
        look();
      },
      { threshold: [0, 0.1, 0.25, 0.5, 0.75, 1] },
    );
    observer.observe(shown);
    document.addEventListener("visibilitychange", look);
    return () => {
      clearTimeout(due);
      observer.disconnect();
      document.removeEventListener("visibilitychange", look);
    };
  }, [digest]);
  return element;
}
