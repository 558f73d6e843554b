/** A short word about something: its state, its tier, its trust. */

import "./tag.css";
import type { ComponentChildren } from "preact";
import { seen } from "./seen";

export type Tone = "plain" | "good" | "warn" | "bad" | "accent";

export function Tag({ tone = "plain", title, children }: { tone?: Tone; title?: string; children: ComponentChildren }) {
  const text = typeof children === "string" ? seen(children) : children;
  return (
    <span class={`tag ${tone}`} title={title}>
      {text}
    </span>
  );
}
