/**
 * Focus: where what has it goes away or is switched off, it goes to the last place that is still there, never to nowhere.
 *
 * Who leaves it on purpose, by a click beside everything, is not called back.
 */

const MANY = 30;
// The newest first.
let places: readonly HTMLElement[] = [];
let left = false;

/** Give it to a place, of a section to the first thing that takes it; returns whether it did. */
function takes(place: HTMLElement): boolean {
  const into = place.matches("section") ? place.querySelector<HTMLElement>("button:enabled, a[href]") : place;
  into?.focus({ preventScroll: true });
  return into !== null && document.activeElement === into;
}

function look(): void {
  const [was] = places;
  if (left || !was || document.activeElement !== document.body) return;
  // A button that is busy gets it back.
  if (was.isConnected && was.matches(":disabled")) return;
  const dialog = [...document.querySelectorAll("dialog[open]")].at(-1);
  const first = (dialog ?? document).querySelector<HTMLElement>(dialog ? "input, textarea, select, button" : "h1");
  [...places, first].some((each) => each?.isConnected && takes(each));
}

/** Begin to look after it. */
export function keepFocus(): void {
  document.addEventListener("focusin", ({ target }) => {
    if (!(target instanceof HTMLElement)) return;
    left = false;
    // A row that scrolls away leaves its list, and an editor that closes its section.
    const now = [target, target.closest<HTMLElement>(".virtual, section")].filter((each) => each !== null);
    places = [...now, ...places.filter((each) => !now.includes(each))].slice(0, MANY);
  });
  document.addEventListener("pointerdown", () => (left = true), true);
  document.addEventListener("pointerup", () => (left = document.activeElement === document.body), true);
  new MutationObserver(look).observe(document.body, { childList: true, subtree: true, attributeFilter: ["disabled"] });
}
