/** Who a name is: its class, its tokens with their rights, and when it was first and last seen. */

import { Link } from "wouter-preact";
import type { Schemas } from "../../api";
import { useGet } from "../../load";
import { mayChange } from "../../session";
import { Tag } from "../../parts/Tag";
import { Time } from "../../parts/Time";
import { seen } from "../../parts/seen";
import { classesOf, tokensOf } from "./classes";
import type { Named } from "./names";

interface Props {
  name: string;
  named: Named;
  /** Its own scopes that hold something. */
  places: readonly string[];
}

export function Head({ name, named, places }: Props) {
  const all = useGet(mayChange() ? "/memory/tokens" : null);
  const tokens = tokensOf(name, all.data?.items ?? []);
  const classes = classesOf(named, tokens, places);
  const [first, last] = useSpan(named);
  if (!classes.length) return null;
  return (
    <section class="card pad about-head" aria-label="Who it is">
      <dl class="facts">
        <dt>is</dt>
        <dd class="line">
          {classes.map((each) => (
            <Tag key={each}>{each}</Tag>
          ))}
        </dd>
        {first && last ? (
          <>
            <dt>first seen</dt>
            <dd>
              <Time at={first} />
            </dd>
            <dt>last seen</dt>
            <dd>
              <Time at={last} />
            </dd>
          </>
        ) : null}
        {tokens.length ? (
          <>
            <dt>tokens</dt>
            <dd>
              <ul class="plain-list" aria-label="Tokens">
                {tokens.map((token) => (
                  <li key={token.id}>
                    <Held token={token} />
                  </li>
                ))}
              </ul>
            </dd>
          </>
        ) : null}
      </dl>
    </section>
  );
}

function Held({ token }: { token: Schemas["ShownToken"] }) {
  return (
    <span class="line small">
      <Link href="/tokens">{token.rights}</Link>
      <span class="soft">
        at <span class="mono">{seen(token.scope)}</span>, may {token.can.join(", ")}
      </span>
      {token.state === "valid" ? null : <Tag tone="bad">{token.state}</Tag>}
      {token.used_at ? (
        <span class="soft">
          last used <Time at={token.used_at} short />
        </span>
      ) : null}
    </span>
  );
}

/** Return when something of a name was first and last written: by it, or else about it. */
function useSpan({ origins, subjects }: Named): [first: string | undefined, last: string | undefined] {
  const [subject] = origins.length ? [] : subjects;
  const query = { subject, below: true, include_ended: true, sort: "created", limit: 1 } as const;
  const oldest = useGet(subject ? "/memory/items" : null, { params: { query: { ...query, ascending: true } } });
  const newest = useGet(subject ? "/memory/items" : null, { params: { query } });
  if (subject) return [oldest.data?.items.shown[0]?.created_at, newest.data?.items.shown[0]?.text_at];
  const rows = origins.map(({ row }) => row);
  const byTime = (one: string, other: string) => Date.parse(one) - Date.parse(other);
  return [
    rows.map((row) => row.first).sort(byTime)[0],
    rows
      .map((row) => row.last)
      .sort(byTime)
      .at(-1),
  ];
}
