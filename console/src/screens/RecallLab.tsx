/** Recall lab: what each signal adds to each hit, feedback by a click, and the state of the learned ranking. */

import "./recall.css";
import { useState } from "preact/hooks";
import { Link } from "wouter-preact";
import { api, ask, type Schemas } from "../api";
import { useAddress, type Address } from "../address";
import type { ApiCall } from "../snippets";
import { useKeys } from "../keys";
import { noteOf } from "../contexts";
import { notifyChanged } from "../events";
import { get, useGet, type Found } from "../load";
import { mayChange } from "../session";
import { useDebounced } from "../debounce";
import { status } from "../status";
import { Bars, inScaleOf, reach } from "../parts/Bars";
import { Button } from "../parts/Button";
import { CallForms } from "../parts/CallForms";
import { Chip } from "../parts/Chip";
import { NotConsidered } from "../parts/NotConsidered";
import { MemoryText } from "../parts/MemoryText";
import { Page } from "../parts/Page";
import { Empty, Shown } from "../parts/States";
import { Tag } from "../parts/Tag";
import { say } from "../parts/Toasts";
import { said } from "../parts/seen";

const ORDERS = [
  { name: "learned", title: "as agents get it" },
  { name: "fused", title: "without feedback" },
  { name: "cosine", title: "by meaning alone" },
] as const;
type Order = (typeof ORDERS)[number]["name"];
/** What `status` says of the learned ranking. */
interface Facts {
  serving: boolean;
  why: string;
  version: string | null;
  feedback: number;
  unseen: number;
  held_out: number;
  pairs: number;
  gain: number;
  from_agents: number;
  agents_at_most: number;
}
/** What was said of each hit: true for used, false for beside the point. */
type Said = Readonly<Record<string, boolean>>;

export function RecallLab() {
  const address = useAddress();
  const asked = address.get("q");
  const query = useDebounced(asked);
  const order = ORDERS.find((each) => each.name === address.get("order"))?.name ?? "learned";
  const limit = Math.min(50, Number(address.get("limit")) || 10);
  const found = useGet(query.trim() ? "/memory/search" : null, { params: { query: { query, order, limit } } });
  useKeys("Recall lab", {
    "/": { does: "Go to the question", run: () => document.getElementById("query")?.focus() },
    o: {
      does: "Next order",
      run: () =>
        address.set({ order: ORDERS[(ORDERS.findIndex((each) => each.name === order) + 1) % ORDERS.length]?.name }),
    },
  });
  const spoken: ApiCall = {
    method: "GET",
    path: `/memory/search?${new URLSearchParams({ query, order, limit: String(limit) })}`,
    verb: "recall",
    first: query,
    named: { order, limit },
  };
  return (
    <Page
      title="Recall lab"
      lede="why each hit is where it is"
      json={found.url || "/memory/status"}
      actions={query.trim() ? <CallForms of={spoken} /> : null}
    >
      <form class="card pad recall-asked" onSubmit={(event) => event.preventDefault()}>
        <label class="field">
          <span>Question</span>
          <input
            id="query"
            type="search"
            value={asked}
            placeholder="A question, as an agent would put it"
            onInput={(event) => address.set({ q: event.currentTarget.value })}
          />
        </label>
        <label class="field">
          <span>Order</span>
          <select value={order} onChange={(event) => address.set({ order: event.currentTarget.value })}>
            {ORDERS.map((each) => (
              <option key={each.name} value={each.name}>
                {each.title}
              </option>
            ))}
          </select>
        </label>
        <label class="field">
          <span>Hits</span>
          <select value={String(limit)} onChange={(event) => address.set({ limit: event.currentTarget.value })}>
            {[5, 10, 20, 50].map((each) => (
              <option key={each} value={each}>
                {each}
              </option>
            ))}
          </select>
        </label>
      </form>
      <div class="recall-split">
        {query.trim() ? (
          <Shown of={found} rows={8}>
            {(data) => <Hits key={query} of={data} query={query} order={order} limit={limit} />}
          </Shown>
        ) : (
          <Empty title="Ask something">
            Each hit is then taken apart: words, meaning, session, and what feedback has taught.
          </Empty>
        )}
        <div class="stack recall-side">
          {query.trim() && found.data ? (
            <Expected address={address} query={query} order={order} hits={found.data.hits.shown} />
          ) : null}
          <Learning />
        </div>
      </div>
    </Page>
  );
}

interface HitsProps {
  of: Found<"/memory/search">;
  query: string;
  order: Order;
  limit: number;
}

function Hits({ of, query, order, limit }: HitsProps) {
  const [judged, setJudged] = useState<Said>({});
  const [receipt, setReceipt] = useState<string | null>(null);
  const parts = new Map(
    of.hits.shown.map((hit) => [
      hit.memory.id,
      // By meaning alone, the score is the closeness and nothing else.
      order === "cosine" ? { meaning: hit.score } : inScaleOf(hit.score, hit.parts),
    ]),
  );
  const most = Math.max(...[...parts.values()].map(reach), 0);
  const judge = async (id: string, used: boolean) => {
    const next: Record<string, boolean> = { ...judged };
    if (next[id] === used) delete next[id];
    else next[id] = used;
    setJudged(next);
    if (!Object.keys(next).length) return;
    // Feedback names a receipt; one is kept when it is first needed.
    let name = receipt;
    if (name === null) {
      const kept = await get("/memory/search", { params: { query: { query, order, limit, receipt: true } } });
      name = kept.ok ? kept.data.receipt : null;
      if (!kept.ok || name === null)
        return say(kept.ok ? "No receipt was kept." : kept.problem.detail, { tone: "bad" });
      setReceipt(name);
    }
    const side = (wanted: boolean) => Object.keys(next).filter((each) => next[each] === wanted);
    const done = await ask(
      api.POST("/memory/feedback", { body: { receipt: name, used: side(true), ignored: side(false) } }),
    );
    if (done.ok) say("Noted. It counts at the next training.", { tone: "plain" });
    else say(done.problem.detail, { tone: "bad" });
  };
  return (
    <section class="stack" aria-label="Hits">
      {of.notes.map((each) => (
        <p key={each} class="small soft">
          {said(noteOf(each))}
        </p>
      ))}
      {of.hits.shown[0] ? (
        <ol class="card recall-hits">
          {of.hits.shown.map((hit) => (
            <li key={hit.memory.id}>
              <span class="recall-rank num soft">{hit.rank}</span>
              <div class="stack tight">
                <Link href={`/memories/${hit.memory.id}`} class="recall-text">
                  <MemoryText text={hit.memory.text} limit={300} />
                </Link>
                <span class="line small soft">
                  <b class="num">{hit.score.toFixed(2)}</b>
                  {hit.weak ? (
                    <Tag title="It hardly bears on the question: it scores much less than the best hit">weak</Tag>
                  ) : null}
                  <span>{hit.why.join(" and ")}</span>
                  <span class="faint">{hit.memory.source}</span>
                </span>
                <Bars parts={parts.get(hit.memory.id) ?? {}} most={most} />
              </div>
              {mayChange() ? (
                <span class="recall-judge" role="group" aria-label={`Feedback on hit ${hit.rank}`}>
                  <Chip on={judged[hit.memory.id] === true} onClick={() => void judge(hit.memory.id, true)}>
                    used
                  </Chip>
                  <Chip on={judged[hit.memory.id] === false} onClick={() => void judge(hit.memory.id, false)}>
                    not
                  </Chip>
                </span>
              ) : null}
            </li>
          ))}
        </ol>
      ) : (
        <Empty title="Nothing was found">
          No memory that was searched matches. Sensitive ones, and those in scopes below, can be missing.
        </Empty>
      )}
    </section>
  );
}

// The ranks up to which an expected memory is looked for.
const RANKS = 100;

interface ExpectedProps {
  address: Address;
  query: string;
  order: Order;
  hits: readonly Schemas["Hit"][];
}

/** Why a memory that somebody expected is not among the hits. */
function Expected({ address, query, order, hits }: ExpectedProps) {
  const words = address.get("expected");
  const sought = useDebounced(words.trim());
  const all = useGet(sought ? "/memory/search" : null, { params: { query: { query, order, limit: RANKS } } });
  const otherwise = (memory: Schemas["Record"]) => {
    const hit = all.data?.hits.shown.find((each) => each.memory.id === memory.id);
    if (!hit) return { code: "not found", why: "It has too little in common with the question, in words and meaning." };
    const how = hit.weak ? "It hardly bears on the question" : "Others fit better";
    return { code: `rank ${hit.rank}`, why: `${how}: its score is ${hit.score.toFixed(2)}. More hits show it.` };
  };
  return (
    <section class="card stack recall-expected" aria-label="Why not another">
      <label class="field pad">
        <span>Why not another memory? Words of the one that you expected</span>
        <input type="search" value={words} onInput={(event) => address.set({ expected: event.currentTarget.value })} />
      </label>
      {sought && (all.data ?? all.problem) ? (
        <NotConsidered
          words={sought}
          scope={status.value?.scope ?? "/"}
          known={new Set(hits.map((hit) => hit.memory.id))}
          otherwise={otherwise}
          none="No memory says it that is not among the hits."
        />
      ) : null}
    </section>
  );
}

/** Whether a learned ranking is in use, and why. */
function Learning() {
  const [busy, setBusy] = useState(false);
  const facts = status.value?.reranker as Facts | undefined;
  const train = async () => {
    setBusy(true);
    const done = await ask(api.POST("/memory/train", {}));
    setBusy(false);
    if (!done.ok) return say(done.problem.detail, { tone: "bad" });
    notifyChanged();
    say(`${done.data.serving ? "It is in use" : "It is not in use"}: ${done.data.why}.`, {
      tone: done.data.serving ? "good" : "plain",
    });
  };
  if (!facts) return null;
  return (
    <section class="card pad stack recall-learning" aria-label="Learned ranking">
      <div class="line">
        <h2>Learned ranking</h2>
        <span class="spread" />
        <Tag tone={facts.serving ? "good" : "plain"}>{facts.serving ? "in use" : "not in use"}</Tag>
      </div>
      <p class="small soft">{said(facts.why)}.</p>
      <dl class="facts small">
        <dt>Feedback</dt>
        <dd class="num">
          {facts.feedback.toLocaleString()}
          {facts.unseen ? `, ${facts.unseen} since the training` : ""}
        </dd>
        <dt>For testing</dt>
        <dd class="num">
          {facts.held_out} feedbacks, {facts.pairs} pairs
        </dd>
        {facts.pairs ? (
          <>
            <dt>Gain</dt>
            <dd class="num">
              {facts.gain >= 0 ? "+" : "−"}
              {Math.abs(facts.gain * 100).toFixed(0)} points of pairs in the right order
            </dd>
          </>
        ) : null}
        <dt>From agents</dt>
        <dd class="num">
          {(facts.from_agents * 100).toFixed(0)} %, at most {(facts.agents_at_most * 100).toFixed(0)} %
        </dd>
        {facts.version ? (
          <>
            <dt>Weights</dt>
            <dd class="mono">{facts.version}</dd>
          </>
        ) : null}
      </dl>
      {mayChange() ? (
        <div>
          <Button small busy={busy} onClick={() => void train()}>
            Train now
          </Button>
        </div>
      ) : null}
    </section>
  );
}
