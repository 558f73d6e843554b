/** What a memory is, in a few words: tier, kind, key, trust, and whether it holds. */

import { Tag } from "./Tag";

interface Props {
  memory: { tier: string; kind: string; trust: string; status?: string; key?: string | null };
}

export function MemorySummary({ memory }: Props) {
  return (
    <>
      <Tag>{memory.tier}</Tag>
      {memory.kind === "fact" ? null : <Tag>{memory.kind}</Tag>}
      {memory.key ? <Tag>{memory.key}</Tag> : null}
      {memory.trust === "web" || memory.trust === "unknown" ? (
        <Tag tone="warn">{`from ${memory.trust}`}</Tag>
      ) : (
        <Tag>{memory.trust}</Tag>
      )}
      {memory.status && memory.status !== "active" ? <Tag tone="bad">{memory.status}</Tag> : null}
    </>
  );
}
