/** What a memory is, in a few words: tier, kind, key, trust, and whether it holds. */

import { Tag } from "./Tag";

interface Props {
  each: { tier: string; kind: string; trust: string; status?: string; key?: string | null };
}

export function Facts({ each }: Props) {
  return (
    <>
      <Tag>{each.tier}</Tag>
      {each.kind === "fact" ? null : <Tag>{each.kind}</Tag>}
      {each.key ? <Tag>{each.key}</Tag> : null}
      {each.trust === "web" || each.trust === "unknown" ? (
        <Tag tone="warn">{`from ${each.trust}`}</Tag>
      ) : (
        <Tag>{each.trust}</Tag>
      )}
      {each.status && each.status !== "active" ? <Tag tone="bad">{each.status}</Tag> : null}
    </>
  );
}
