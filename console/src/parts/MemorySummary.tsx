/** What a memory is, in words that need no glossary, and what to heed of it. */

import type { Schemas } from "../api";
import { signsOf, TIERS, TRUSTS, type Word } from "../words";
import { Tag } from "./Tag";
import { present } from "./Time";

type Memory = Schemas["Record"];

export function MemorySummary({ memory }: { memory: Memory }) {
  return (
    <>
      <Signs memory={memory} />
      <Term of={TIERS} name={memory.tier} />
      {memory.kind === "fact" ? null : <Tag>{memory.kind}</Tag>}
      {memory.key ? <Tag>{memory.key}</Tag> : null}
      <Trust memory={memory} />
    </>
  );
}

export function Trust({ memory }: { memory: Memory }) {
  return <Term of={TRUSTS} name={memory.trust} />;
}

/** What to heed before one believes it: sensitive, unsure, old, of another place. */
export function Signs({ memory }: { memory: Memory }) {
  return (
    <>
      {signsOf(memory, present.value).map((sign) => (
        <Tag key={sign.word} tone={sign.tone} title={sign.means}>
          {sign.word}
        </Tag>
      ))}
    </>
  );
}

function Term({ of, name }: { of: Record<string, Word>; name: string }) {
  const term = of[name];
  return (
    <Tag tone={term?.tone} title={term?.means}>
      {term?.word ?? name}
    </Tag>
  );
}
