/** Since when there is news for this browser. */

const VISITED = "keepward-visited";
// Minutes after which a page that is opened is a new visit.
const VISIT = 30;
// Days that news go back where this is the first visit.
const FIRST_DAYS = 7;

function visitBefore(now: number): number {
  let kept: { seen: number; before: number } = { seen: 0, before: 0 };
  try {
    kept = { ...kept, ...(JSON.parse(localStorage.getItem(VISITED) ?? "{}") as object) };
    const before = now - kept.seen > VISIT * 60_000 ? kept.seen : kept.before;
    localStorage.setItem(VISITED, JSON.stringify({ seen: now, before }));
    return before;
  } catch {
    return 0;
  }
}

/** When the visit before this one ended, in milliseconds; 0 where this is the first. */
const lastVisit = visitBefore(Date.now());

/** Since when something is news, in words. */
export const SINCE = lastVisit ? "since your last visit" : "in the last seven days";

/** From when on something is news, in milliseconds. */
export const since = lastVisit || Date.now() - FIRST_DAYS * 86_400_000;
