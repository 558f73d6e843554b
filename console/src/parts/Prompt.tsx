/** A compiled context: how its budget is used, and its text in coloured sections, memory by memory. */

import "./prompt.css";
import { useEffect, useRef } from "preact/hooks";
import type { Context } from "../contexts";
import { MemoryText } from "./MemoryText";

const NAMES: Record<string, string> = {
  identity: "identity",
  core: "core",
  pinned: "pinned",
  state: "state",
  working: "working",
  recalled: "recalled",
};

/** The bar of the budget: what each section takes, and what is free. */
export function BudgetBar({ of }: { of: Context }) {
  const free = of.budget_tokens === null ? 0 : Math.max(0, of.budget_tokens - of.tokens);
  const shares = of.sections.filter((each) => each.tokens > 0);
  const words = shares.map((each) => `${each.name} ${each.tokens}`).join(", ");
  return (
    <div class="prompt-budget">
      <div class="prompt-bar" role="img" aria-label={`${of.tokens} tokens: ${words}, free ${free}`}>
        {shares.map((each) => (
          <span key={each.name} class={`of-${each.name}`} style={{ flexGrow: each.tokens }} />
        ))}
        <span class="prompt-free" style={{ flexGrow: free }} />
      </div>
      <p class="shares small soft">
        {shares.map((each) => (
          <span key={each.name}>
            <i class={`of-${each.name}`} />
            {NAMES[each.name] ?? each.name} <b class="num">{each.tokens.toLocaleString()}</b>
          </span>
        ))}
        <span>
          free <b class="num">{free.toLocaleString()}</b>
        </span>
      </p>
    </div>
  );
}

interface Props {
  of: Context;
  /** Id of the memory that is chosen. */
  chosen: string;
  onChoose: (id: string) => void;
  /** Ids that differ from another context, and how. */
  marks?: ReadonlyMap<string, string>;
  label?: string;
}

// From this width on the prompt stands beside what is chosen in it.
const BESIDE = "(min-width: 1101px)";

/** The prompt itself; each memory is a button that chooses it. */
export function Prompt({ of, chosen, onChoose, marks, label = "The prompt" }: Props) {
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (chosen && matchMedia(BESIDE).matches)
      box.current?.querySelector("[aria-pressed=true]")?.scrollIntoView({ block: "nearest" });
  }, [chosen]);
  if (!of.parts.length)
    return (
      <p class="soft pad">
        {of.objective
          ? "The context is empty: nothing is remembered that bears on this."
          : "The context is empty: no question is asked, and no core block has a text."}
      </p>
    );
  return (
    <div ref={box} class="prompt" role="group" aria-label={label}>
      {of.parts.map((each) => {
        const mark = marks?.get(each.id);
        const named = ["prompt-part", `of-${each.section}`, each.id === chosen && "on", mark && `is-${mark}`]
          .filter(Boolean)
          .join(" ");
        return (
          <button
            key={`${each.section} ${each.id}`}
            type="button"
            class={named}
            aria-pressed={each.id === chosen}
            onClick={() => onChoose(each.id === chosen ? "" : each.id)}
          >
            <span class="prompt-text">
              <MemoryText text={each.text.replace(/^\n+/, "")} limit={1_500} />
            </span>
            <span class="prompt-side small faint">
              {mark ? <b>{mark}</b> : null}
              <span class="num">{each.tokens}</span>
            </span>
          </button>
        );
      })}
    </div>
  );
}
