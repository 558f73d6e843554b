/** Statements about somebody that disagree, side by side; one of two is kept, and takes the place of the other. */

import { useState } from "preact/hooks";
import { type Answer, api, ask, commitOf, type Schemas } from "../../api";
import { notifyChanged } from "../../events";
import { Listed } from "../../listed";
import { get, useLoad } from "../../load";
import { rollBack } from "../../undo";
import { Button } from "../../parts/Button";
import { say } from "../../parts/Toasts";
import { Statement } from "./Statement";

// Pairs that are shown.
const SHOWN = 20;

type Pair = Schemas["Contradiction"];

/** Return the pairs of a subject that stand in some scopes; each scope is asked for itself. */
async function disagreeing(subject: string, scopes: readonly string[]): Promise<Answer<Listed<Pair>>> {
  const pairs: Pair[] = [];
  let left: number | undefined = 0;
  for (const scope of scopes) {
    const found = await get("/memory/contradictions", {
      params: { query: { subject, limit: SHOWN } },
      headers: { "Keepward-Scope": scope },
    });
    if (!found.ok) return found;
    const more = found.data.items.left;
    left = left === undefined || more === undefined ? undefined : left + more;
    const known = new Set(pairs.map(({ older, newer }) => older.id + newer.id));
    pairs.push(...found.data.items.shown.filter(({ older, newer }) => !known.has(older.id + newer.id)));
  }
  return {
    ok: true,
    status: 200,
    etag: null,
    data: new Listed(pairs, left === undefined ? left : pairs.length + left),
  };
}

export function Disagreements({ subject, scopes }: { subject: string; scopes: readonly string[] }) {
  const found = useLoad(`disagreements of ${subject} in ${scopes.join(" ")}`, () => disagreeing(subject, scopes));
  if (!found.data?.shown[0]) return null;
  return (
    <section class="card pad stack" aria-label="Disagreements">
      <h2>Statements that disagree</h2>
      <ul class="plain-list boxed" aria-label="Statements that disagree" tabIndex={0}>
        {found.data.shown.map(({ older, newer }) => (
          <li key={older.id + newer.id} class="disagreeing">
            <Kept memory={older} instead={newer} />
            <Kept memory={newer} instead={older} />
          </li>
        ))}
        {found.data.isWhole ? null : <li class="soft small">and {found.data.rest}</li>}
      </ul>
    </section>
  );
}

function Kept({ memory, instead }: { memory: Schemas["Record"]; instead: Schemas["Record"] }) {
  const [busy, setBusy] = useState(false);
  const keep = async () => {
    setBusy(true);
    const done = await ask(
      api.POST("/memory/items/{id}/supersede", {
        params: { path: { id: instead.id } },
        body: { by: memory.id, reason: "the two disagreed; a person kept this one" },
      }),
    );
    setBusy(false);
    if (!done.ok) return say(done.problem.detail, { tone: "bad" });
    notifyChanged();
    const commit = commitOf(done.data);
    if (done.data.outcome === "quarantined") return say("It waits for review.", { tone: "plain" });
    say("Kept. The other one is replaced by it.", commit ? { undo: () => rollBack(commit) } : {});
  };
  return (
    <Statement memory={memory}>
      <Button small busy={busy} onClick={() => void keep()}>
        Keep this one
      </Button>
    </Statement>
  );
}
