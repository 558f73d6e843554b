/** Context lab: what the model would see, why, and what made two contexts differ. */

import "./context.css";
import { addressOf, api, ask } from "../api";
import { useAddress, type Address } from "../address";
import type { ApiCall } from "../snippets";
import { noteOf, previewed, recorded, type Context, type Purpose } from "../contexts";
import { useKeys } from "../keys";
import { useGet, useLoad } from "../load";
import { useDebounced } from "../debounce";
import { status } from "../status";
import { Button } from "../parts/Button";
import { CallForms } from "../parts/CallForms";
import { CommitLink } from "../parts/CommitLink";
import { Page } from "../parts/Page";
import { Empty, Failed, Loading } from "../parts/States";
import { Time } from "../parts/Time";
import { said, seen } from "../parts/seen";
import { Candidates } from "./context/Candidates";
import { Chosen } from "./context/Chosen";
import { Compare } from "./context/Compare";
import { Receipts } from "./context/Receipts";
import { BudgetBar, Prompt } from "../parts/Prompt";
import { say } from "../parts/Toasts";

const VIEWS = [
  { name: "", title: "Compile" },
  { name: "receipts", title: "Receipts" },
  { name: "compare", title: "Compare" },
];
// The budget's slider moves by powers of two, from 64 tokens to 65,536.
const LEAST = 6;
const STEPS = 10;

export function ContextLab() {
  const address = useAddress();
  // Links to a receipt need not name its view.
  const view = address.get("view") || (address.get("receipt") ? "receipts" : "");
  const choose = (name = "") => address.set(name ? { view: name } : { view: null, receipt: null, memory: null });
  useKeys("Context lab", {
    "/": { does: "Go to the question", run: () => document.getElementById("objective")?.focus() },
    v: {
      does: "Next view",
      run: () => choose(VIEWS[(VIEWS.findIndex((each) => each.name === view) + 1) % VIEWS.length]?.name),
    },
  });
  return (
    <Page
      title="Context lab"
      lede="what the model would see, and why"
      json={addressOf("/memory/receipts", { params: { query: { kind: "compile" } } })}
    >
      <div class="lab-views" role="tablist" aria-label="Views">
        {VIEWS.map((each) => (
          <button
            key={each.name}
            type="button"
            role="tab"
            aria-selected={view === each.name}
            class="lab-view"
            onClick={() => choose(each.name)}
          >
            {each.title}
          </button>
        ))}
      </div>
      {view === "receipts" ? (
        <Receipts address={address} />
      ) : view === "compare" ? (
        <Compare address={address} />
      ) : (
        <Compile address={address} />
      )}
    </Page>
  );
}

/** What is asked, as the address has it. */
function askedOf(address: Address) {
  return {
    objective: address.get("q"),
    budget: Math.max(1, Number(address.get("budget")) || 1_200),
    purpose: (address.get("purpose") || "answer") as Purpose,
    at: address.get("at"),
    scope: address.get("scope"),
  };
}

function Compile({ address }: { address: Address }) {
  const asked = askedOf(address);
  const wanted = useDebounced(JSON.stringify(asked));
  const { objective, budget, purpose, at, scope } = JSON.parse(wanted) as typeof asked;
  const body = { objective, budget_tokens: budget, purpose, as_of: at || null };
  const headers = scope ? { "Keepward-Scope": scope } : undefined;
  const told = useLoad(`preview ${wanted}`, () => previewed(body, headers));
  const head = Number(status.value?.head.split(":")[0] ?? 0);
  const spoken: ApiCall = {
    method: "POST",
    path: "/memory/compile",
    body: { objective, budget_tokens: budget, purpose, ...(at ? { as_of: at } : {}) },
    scope,
    verb: "context",
    first: objective,
    named: { budget_tokens: budget, purpose, as_of: at || undefined },
  };
  const keep = async () => {
    const kept = await ask(api.POST("/memory/compile", { body: body, headers }));
    if (!kept.ok) return say(kept.problem.detail, { tone: "bad" });
    const first = address.get("a");
    const second = address.get("b");
    const next = first && !second ? { b: kept.data.receipt?.id } : { a: kept.data.receipt?.id, b: "" };
    address.set({ ...next, view: first && !second ? "compare" : "" }, { push: true });
    say(
      first && !second
        ? "Kept as the second context."
        : "Kept as the first context. Change something and keep another.",
    );
  };
  return (
    <>
      <form class="card pad lab-asked" onSubmit={(event) => event.preventDefault()}>
        <label class="field lab-objective">
          <span>What the model is about to do</span>
          <input
            id="objective"
            type="search"
            value={asked.objective}
            placeholder="A question or a task, as an agent would put it"
            onInput={(event) => address.set({ q: event.currentTarget.value })}
          />
        </label>
        <label class="field">
          <span title="answer takes any origin, act takes agents and people, core takes people alone">Purpose</span>
          <select value={asked.purpose} onChange={(event) => address.set({ purpose: event.currentTarget.value })}>
            <option value="answer">answer</option>
            <option value="act">act</option>
            <option value="core">core</option>
          </select>
        </label>
        <label class="field">
          <span>Scope</span>
          <input
            value={asked.scope}
            placeholder="/"
            onInput={(event) => address.set({ scope: event.currentTarget.value })}
          />
        </label>
        <label class="field">
          <span>
            Budget <b class="num">{asked.budget.toLocaleString()}</b> tokens
          </span>
          <input
            type="range"
            min={0}
            max={STEPS}
            step={0.05}
            aria-valuetext={`${asked.budget} tokens`}
            value={Math.log2(asked.budget) - LEAST}
            onInput={(event) => address.set({ budget: tidy(2 ** (Number(event.currentTarget.value) + LEAST)) })}
          />
        </label>
        <label class="field">
          <span>As of {asked.at && asked.at !== String(head) ? <b class="num">commit {asked.at}</b> : <b>now</b>}</span>
          <input
            type="range"
            min={1}
            max={Math.max(1, head)}
            aria-valuetext={asked.at ? `commit ${asked.at}` : "now"}
            value={Number(asked.at) || head}
            disabled={head < 2}
            onInput={(event) =>
              address.set({ at: Number(event.currentTarget.value) >= head ? "" : event.currentTarget.value })
            }
          />
        </label>
      </form>
      {told.problem && !told.data ? <Failed problem={told.problem} retry={told.reload} /> : null}
      {told.problem && told.data ? (
        <div class="banner" role="alert">
          {said(told.problem.detail)}
        </div>
      ) : null}
      {told.data ? (
        <Explained
          told={told.data}
          address={address}
          actions={
            <>
              <Button small onClick={() => void keep()}>
                {address.get("a") && !address.get("b") ? "Keep and compare" : "Keep for comparison"}
              </Button>
              <CallForms of={spoken} />
            </>
          }
        />
      ) : told.loading ? (
        <Loading rows={8} />
      ) : null}
    </>
  );
}

/** Round as a person would say it. */
function tidy(tokens: number): number {
  const unit = tokens < 200 ? 5 : tokens < 2_000 ? 10 : 100;
  return Math.round(tokens / unit) * unit;
}

/** A receipt, explained; its address is `?view=receipts&receipt=…`. */
export function ReceiptShown({ id, address }: { id: string; address: Address }) {
  const found = useGet("/memory/receipts/{id}", { params: { path: { id } } });
  const replay = async () => {
    const done = await ask(api.POST("/memory/receipts/{id}/replay", { params: { path: { id } } }));
    if (!done.ok) return say(done.problem.detail, { tone: "bad" });
    const missing = done.data.missing.length;
    say(
      done.data.same
        ? "Replayed: the same bytes as then."
        : `Replayed: not the bytes of then; ${missing} of its memories ${missing === 1 ? "is" : "are"} gone.`,
      { tone: done.data.same ? "good" : "bad" },
    );
  };
  if (!found.data)
    return found.problem ? <Failed problem={found.problem} retry={found.reload} /> : <Loading rows={8} />;
  const told = recorded(found.data);
  const { objective, budget_tokens, purpose, scope, head } = told;
  return (
    <Explained
      told={told}
      address={address}
      actions={
        <>
          <Button small onClick={() => void replay()}>
            Replay
          </Button>
          <Button
            small
            onClick={() =>
              address.set(
                {
                  view: "",
                  receipt: "",
                  memory: "",
                  q: objective,
                  budget: budget_tokens ?? "",
                  purpose,
                  at: "",
                  scope: scope === "/" ? "" : scope,
                },
                { push: true },
              )
            }
          >
            Compile it now
          </Button>
          <Button small onClick={() => address.set({ view: "compare", a: id, b: "" }, { push: true })}>
            Compare…
          </Button>
          <a class="small" href={`/memory/receipts/${id}`} target="_blank" rel="noreferrer">
            JSON
          </a>
          <span class="small">
            state after <CommitLink of={head} />
          </span>
        </>
      }
    />
  );
}

function Explained({ told, address, actions }: { told: Context; address: Address; actions: preact.ComponentChildren }) {
  const chosen = address.get("memory");
  const choose = (id: string) => address.set({ memory: id });
  const candidate = told.candidates.find((each) => each.id === chosen);
  return (
    <div class="stack lab-explained">
      <section class="card pad stack" aria-label="Budget">
        <div class="line">
          <b class="num">{told.tokens.toLocaleString()}</b>
          <span class="soft">
            {told.budget_tokens === null ? "tokens" : `of ${told.budget_tokens.toLocaleString()} tokens`}
          </span>
          {told.at ? (
            <span class="soft">
              “{seen(told.objective)}”, <Time at={told.at} />
            </span>
          ) : null}
          <span class="spread" />
          {actions}
        </div>
        <BudgetBar of={told} />
        {told.notes.map((each) => (
          <p key={each} class="small soft">
            {said(noteOf(each))}
          </p>
        ))}
      </section>
      <div class="lab-split">
        <section aria-label="Prompt">
          <Prompt of={told} chosen={chosen} onChoose={choose} />
        </section>
        <div class="stack">
          {candidate ? (
            <Chosen key={candidate.id} candidate={candidate} told={told} onClose={() => choose("")} />
          ) : null}
          {told.candidates.length ? (
            <Candidates told={told} chosen={chosen} onChoose={choose} />
          ) : (
            <Empty title="No candidates">
              {status.value?.live === 0
                ? "Nothing is remembered yet."
                : told.objective
                  ? "No memory of this scope has anything in common with it."
                  : "Write a question: then the memories that bear on it are listed, each with why it is in or out."}
            </Empty>
          )}
        </div>
      </div>
    </div>
  );
}
