/** What just happened, said once at the foot of the page; for ten seconds it can be undone where it can. */

import "./toasts.css";
import { signal } from "@preact/signals";
import { useEffect, useRef, useState } from "preact/hooks";
import { Button } from "./Button";
import { said as withNames, seen } from "./seen";

interface Said {
  id: number;
  text: string;
  tone: "good" | "bad" | "plain";
  /** Take it back; returns what came of that, to be said in its place. */
  undo?: () => Promise<string>;
}

/** Milliseconds that it stands there, and that it can be undone. */
export const STANDS = 10_000;
const said = signal<readonly Said[]>([]);
let last = 0;

/** Say what happened; with `undo` a button takes it back. */
export function say(text: string, options: { tone?: Said["tone"]; undo?: () => Promise<string> } = {}): void {
  last += 1;
  said.value = [...said.value.slice(-2), { id: last, text, tone: options.tone ?? "good", undo: options.undo }];
}

/** Undo what was said last, if it can be undone. */
export function undoLast(): void {
  const item = [...said.value].reverse().find((each) => each.undo);
  if (item) void takeBack(item);
}

async function takeBack(item: Said): Promise<void> {
  drop(item.id);
  const text = await item.undo?.().catch((fault: unknown) => String(fault));
  say(text ?? "Undone.", { tone: "plain" });
}

function drop(id: number): void {
  said.value = said.value.filter((each) => each.id !== id);
}

export function Toasts() {
  return (
    <div class="toasts">
      <div role="status" aria-live="polite" class="unheard">
        {seen(said.value.at(-1)?.text ?? "")}
      </div>
      {said.value.map((each) => (
        <Toast key={each.id} item={each} />
      ))}
    </div>
  );
}

function Toast({ item }: { item: Said }) {
  const [held, setHeld] = useState(false);
  const left = useRef(STANDS);
  useEffect(() => {
    if (held) return undefined;
    const began = performance.now();
    const due = setTimeout(() => drop(item.id), left.current);
    return () => {
      clearTimeout(due);
      left.current = Math.max(1_000, left.current - (performance.now() - began));
    };
  }, [held, item.id]);
  return (
    <div class={`toast ${item.tone}`} onPointerEnter={() => setHeld(true)} onPointerLeave={() => setHeld(false)}>
      <span>{withNames(item.text)}</span>
      {item.undo ? (
        <Button small hint="u" onClick={() => void takeBack(item)}>
          Undo
        </Button>
      ) : null}
      <button type="button" class="shut" aria-label="Dismiss" onClick={() => drop(item.id)}>
        ×
      </button>
    </div>
  );
}
