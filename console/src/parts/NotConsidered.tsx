/** Memories that say some words and were no candidates of a question, each with the reason. */

import { Link } from "wouter-preact";
import { useGet } from "../load";
import type { Schemas } from "../api";
import { forbidden, type Unseen } from "../unseen";
import { MemoryText } from "./MemoryText";
import { Shown } from "./States";
import { Tag } from "./Tag";

// Memories that are looked at.
const LOOKED_AT = 50;

interface Props {
  words: string;
  /** Where the question was asked. */
  scope: string;
  /** When it was asked; now where it is left out. */
  at?: string | null;
  /** Ids of those that have been shown. */
  known: ReadonlySet<string>;
  /** What is said of one that nothing forbids. */
  otherwise: (memory: Schemas["Record"]) => Unseen;
  /** What is said where there is none. */
  none: string;
}

export function NotConsidered({ words, scope, at, known, otherwise, none }: Props) {
  const found = useGet("/memory/items", {
    params: { query: { text: words, below: true, include_ended: true, include_sensitive: true, limit: LOOKED_AT } },
  });
  return (
    <Shown of={found}>
      {({ items }) => {
        const judged = items.shown
          .filter((memory) => !known.has(memory.id))
          .map((memory) => ({ memory, refused: forbidden(memory, scope, at) }))
          .sort((one, other) => Number(!one.refused) - Number(!other.refused));
        if (!judged.length) return <p class="soft small pad">{none}</p>;
        return (
          <ul class="plain-list boxed" aria-label="Not considered" tabIndex={0}>
            {judged.map(({ memory, refused }) => {
              const { code, why } = refused ?? otherwise(memory);
              return (
                <li key={memory.id} class="stack tight">
                  <Link href={`/memories/${encodeURIComponent(memory.id)}`} class="memory-link">
                    <MemoryText one text={memory.text || memory.key} />
                  </Link>
                  <span class="line small soft">
                    <Tag tone={refused ? "bad" : "plain"}>{code}</Tag> <span>{why}</span>
                  </span>
                </li>
              );
            })}
            {items.rest ? <li class="soft small">{items.rest} say it: write more of its words.</li> : null}
          </ul>
        );
      }}
    </Shown>
  );
}
