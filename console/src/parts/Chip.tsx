/** A small switch among others. */

import "./chip.css";
import type { ComponentChildren } from "preact";

export function Chip({ on, onClick, children }: { on: boolean; onClick: () => void; children: ComponentChildren }) {
  return (
    <button type="button" class="chip" aria-pressed={on} onClick={onClick}>
      {children}
    </button>
  );
}
