/** The client against a real server: every kind of operation, outcomes as values, problems as errors, streams. */

import {
  Client,
  Conflict,
  InvalidInput,
  KeepwardError,
  NotFound,
  StaleVersion,
  StoreUnavailable,
  Tampered,
  Unauthorised,
  newId,
  type CommitEvent,
  type ImportedLine,
  type Outcome,
} from "keepward";
import assert from "node:assert/strict";
import { test } from "node:test";
import { serve } from "./server.ts";

const server = await serve();
const { owner, url } = server;
/** What the provider gate takes for a key, made of pieces. */
const SECRET = ["AKIA", "IOSFODNN7", "EXAMPLQ"].join("");

/** Return the memory that a write stored. */
function stored(outcome: Outcome | null) {
  assert.equal(outcome?.outcome, "committed");
  const record = outcome.records[0];
  assert.ok(record);
  return record;
}

test("what is remembered is recalled, is in a context, and has a history that a rollback goes back in", async () => {
  const memory = owner.at({ scope: "/app" });
  const ferry = stored(await memory.remember("The ferry leaves at six", { tier: "archival", evidence: ["chat:1"] }));
  const { hits } = await memory.recall("When does the ferry leave?", { limit: 3 });
  assert.equal(hits[0]?.memory.text, "The ferry leaves at six");
  assert.match((await memory.context("When does the ferry leave?")).text, /ferry leaves at six/);
  const changed = await memory.revise(ferry.id, "The ferry leaves at seven", { reason: "summer", if_version: 1 });
  assert.equal(stored(changed).version, 2);
  const undone = await memory.rollback(changed.outcome === "committed" ? changed.commit.id : "", {
    reason: "it is winter",
  });
  assert.equal(undone.applied, true);
  const { items: history } = await memory.history(ferry.id);
  assert.deepEqual(
    history.map(({ record }) => record.text),
    ["The ferry leaves at six", "The ferry leaves at seven", "The ferry leaves at six"],
  );
  stored(await memory.forget(ferry.id, { reason: "no ferry any more" }));
  assert.equal((await memory.get(ferry.id)).status, "retired");
});

test("a refused write is a value with reasons, and nothing of it is stored", async () => {
  const agent = await server.agent("refused");
  const outcome = await agent.remember(`The key is ${SECRET}`, { metadata: { nested: SECRET } });
  assert.ok(outcome.outcome === "refused" || outcome.outcome === "quarantined" || outcome.outcome === "committed");
  assert.ok(outcome.reasons.length > 0);
  assert.doesNotMatch(JSON.stringify(await owner.recall(SECRET)), new RegExp(SECRET));
  const again = await agent.remember("   ");
  assert.equal(again.outcome, "refused");
});

test("what an agent proposes for core memory waits; a person approves, amends or rejects it", async () => {
  const agent = await server.agent("orion");
  const propose = async (key: string, text: string) => {
    const outcome = await agent.remember(text, { tier: "core", key, confidence: 0.95 });
    assert.equal(outcome.outcome, "quarantined");
    return outcome.item.id;
  };
  const mission = await propose("mission", "Ship the app by June");
  const rules = await propose("operating_rules", "Answer in short sentences");
  const state = await propose("workspace_state", "The tests are red");
  assert.equal((await agent.pending()).total, 3);
  await assert.rejects(agent.approve(mission), Unauthorised);
  assert.equal(stored(await owner.approve(mission)).text, "Ship the app by June");
  const { digest } = await owner.proposal(rules);
  await assert.rejects(owner.approve(rules, { digest: "0".repeat(64) }), StaleVersion);
  assert.equal(stored(await owner.amend(rules, "Answer in short, plain sentences", { digest })).version, 1);
  await owner.reject(state, { reason: "they are green" });
  const [notice] = await agent.notices();
  assert.equal(notice?.id, state);
  assert.deepEqual(await agent.notices(), []);
});

test("many proposals are decided at once, each with a result", async () => {
  const agent = await server.agent("vega");
  const ids = [];
  for (const [key, text] of [
    ["workspace_state", "The tests are green"],
    ["mission", "Ship the site by May"],
  ] as const) {
    const outcome = await agent.remember(text, { tier: "core", key, confidence: 0.95 });
    if (outcome.outcome === "quarantined") ids.push(outcome.item.id);
  }
  const [first, second] = await owner.approveMany([ids[0] ?? "", "0190ffff-0000-7000-8000-000000000000"]);
  assert.equal(first?.error, null);
  assert.equal(second?.error?.code, "not_found");
  const [rejected] = await owner.rejectMany([ids[1] ?? ""], { reason: "there is one" });
  assert.equal(rejected?.error, null);
});

test("a branch is read and written apart from main until it is merged", async () => {
  const memory = owner.at({ scope: "/branches" });
  const tea = stored(await memory.remember("Tea is served at four", { tier: "archival" }));
  await memory.createBranch("later-tea", { reason: "try it" });
  const branch = memory.branch("later-tea");
  assert.equal(branch.branchName, "later-tea");
  await branch.revise(tea.id, "Tea is served at five");
  assert.equal((await branch.get(tea.id)).text, "Tea is served at five");
  assert.equal((await memory.get(tea.id)).text, "Tea is served at four");
  assert.equal((await branch.branch(null).get(tea.id)).text, "Tea is served at four");
  assert.deepEqual(
    (await memory.branches({ limit: null })).items.map(({ name }) => name),
    ["later-tea"],
  );
  assert.equal((await memory.branchChanges("later-tea", { limit: null })).changes.length, 1);
  await memory.mergeBranch("later-tea");
  assert.equal((await memory.get(tea.id)).text, "Tea is served at five");
});

test("handles of users, projects and agents write at their scopes", async () => {
  const ana = owner.project("shop").user("ana", { names: ["Ana Silva", "Aña, the first"] });
  const record = stored(await ana.remember("I prefer tabs", { tier: "archival" }));
  assert.deepEqual([record.scope, record.subject], ["/projects/shop/users/ana", "ana"]);
  assert.equal(stored(await owner.agent("planner").remember("Plans are made on Mondays")).scope, "/agents/planner");
  assert.equal(stored(await ana.at({ scope: "/elsewhere" }).remember("This is of no user")).scope, "/elsewhere");
});

test("a list without a limit has all pages, and one with a limit has so many", async () => {
  const memory = owner.at({ scope: "/many" });
  const outcomes = await memory.rememberMany(
    Array.from({ length: 512 }, (_, number) => `Shelf ${number} has ${number * 7} books`),
  );
  assert.equal(outcomes.filter(({ outcome }) => outcome === "committed").length, 512);
  const { items } = await memory.listMemories({ scopes: ["/many"], limit: null });
  assert.equal(new Set(items.map(({ id }) => id)).size, 512);
  assert.equal((await memory.listMemories({ scopes: ["/many"], limit: 501 })).items.length, 501);
  assert.equal((await memory.recall("Which shelf has books?", { limit: 505 })).hits.length, 505);
  const { total, items: some } = await memory.listMemories({ scopes: ["/many"], offset: 0, limit: 3 });
  assert.deepEqual([total, some.length], [512, 3]);
  assert.ok((await owner.log({ limit: 2 })).items.length === 2);
  assert.ok((await owner.diff("0", undefined, { limit: null })).items.length > 512);
});

test("changes of a draft are committed together, and name a new memory by its id", async () => {
  const memory = owner.at({ scope: "/drafts" });
  const old = stored(await memory.remember("The door code is blue", { tier: "archival" }));
  const draft = memory.draft({ reason: "tidy up" });
  const fresh = draft.insert("The door code is green", { tier: "archival" });
  draft.stage({ op: "supersede", id: old.id, by: fresh });
  assert.equal(draft.length, 2);
  assert.equal((await draft.send())?.outcome, "committed");
  assert.equal((await memory.get(old.id)).status, "superseded");
  assert.throws(() => draft.insert("too late"), InvalidInput);
  assert.equal(await memory.draft().send(), null);
  assert.equal(stored(await memory.propose([{ op: "insert", id: newId(), text: "A new door was built" }])).version, 1);
});

test("messages are added with the facts in them, each once", async () => {
  const memory = owner.user("bo");
  const messages = [{ role: "user" as const, content: "Remember that I am allergic to nuts.", id: "m-1" }];
  const { turns, facts } = await memory.add(messages, { session: "kitchen" });
  assert.deepEqual([turns.length, facts.length], [1, 1]);
  await memory.add(messages, { session: "kitchen" });
  assert.equal((await memory.listMemories({ session: "kitchen", kinds: ["event"] })).items.length, 1);
});

test("filters by metadata are an object", async () => {
  const memory = owner.at({ scope: "/where" });
  await memory.remember("The red car is fast", { metadata: { doors: 2 } });
  await memory.remember("The blue car is slow", { metadata: { doors: 4 } });
  const { items } = await memory.listMemories({ where: { doors: { $gt: 2 } }, scopes: ["/where"] });
  assert.deepEqual(
    items.map(({ text }) => text),
    ["The blue car is slow"],
  );
});

test("a plan shows what would be forgotten or erased, and its digest does it", async () => {
  const memory = owner.user("cleo");
  await memory.remember("My favourite tea is Earl Grey", { tier: "archival" });
  const plan = await memory.planForgetMatching("favourite tea Earl Grey");
  assert.equal(plan.matches.length, 1);
  const done = await memory.forgetMatching("favourite tea Earl Grey", plan.digest);
  assert.equal(done.outcome?.outcome, "committed");
  const erasing = await memory.erase();
  const { certificate } = await memory.erase(erasing.digest);
  assert.ok(certificate);
  await assert.rejects(memory.erase(erasing.digest), Conflict);
});

test("nothing to merge or to forget is no request", async () => {
  assert.equal(await owner.merge([]), null);
  assert.deepEqual(await owner.forgetMany([]), { outcome: null, missing: [] });
});

test("a problem is an error of the same name as in Python, with its code and status", async () => {
  const problem = async (called: Promise<unknown>): Promise<KeepwardError> => {
    const error: unknown = await called.then(
      () => undefined,
      (thrown: unknown) => thrown,
    );
    assert.ok(error instanceof KeepwardError);
    return error;
  };
  const missing = await problem(owner.get("nothing"));
  assert.ok(missing instanceof NotFound);
  assert.deepEqual([missing.name, missing.code, missing.status], ["NotFound", "not_found", 404]);
  const wrong = await problem(owner.remember("Ana prefers tabs", { teir: "archival" } as object));
  assert.ok(wrong instanceof InvalidInput);
  assert.match(wrong.message, /tier/);
  const { id } = stored(await owner.remember("The version counts"));
  const stale = await problem(owner.revise(id, "It does", { if_version: 7 }));
  assert.ok(stale instanceof StaleVersion && stale instanceof Conflict);
  const nobody = await problem(new Client(url, "kw_" + "A".repeat(43)).status());
  assert.ok(nobody instanceof Unauthorised);
  assert.deepEqual([nobody.code, nobody.problem?.code], ["unauthenticated", "unauthenticated"]);
});

test("a server that is none of Keepward says so", async () => {
  const other = (text: string, headers: object = {}, status = 200) =>
    new Client(url, undefined, { fetch: () => Promise.resolve(new Response(text, { status, ...headers })) });
  await assert.rejects(other("<html>").get("x"), /no Keepward server/);
  await assert.rejects(other("{}").users(), /no Keepward server/);
  await assert.rejects(other("Not here", {}, 404).get("x"), NotFound);
});

test("bytes come back as they went, and their hash is checked", async () => {
  const bytes = new TextEncoder().encode("A picture of a door, in words");
  const { ref, media_type } = await owner.putBlob(new Blob([bytes]), { media_type: "text/plain" });
  assert.equal(media_type, "text/plain");
  assert.deepEqual(await owner.readBlob(ref), bytes);
  const liar = new Client(url, undefined, { fetch: () => Promise.resolve(new Response("something else")) });
  await assert.rejects(liar.readBlob(ref), Tampered);
  await assert.rejects(owner.readBlob("../status"), InvalidInput);
});

test("commits arrive while they happen, and go on after a restart of the server", async () => {
  const memory = owner.at({ scope: "/events" });
  await memory.remember("The first of the events", { tier: "archival" });
  const head = Number((await owner.status()).head.split(":")[0]);
  const events = owner.events({ after: head - 1 });
  const next = async (): Promise<CommitEvent> => (await events.next()).value as CommitEvent;
  const first = await next();
  assert.deepEqual([first.seq, first.event, first.facts.changes[0]?.op], [head, "commit", "insert"]);
  const coming = next();
  await memory.remember("The second of the events", { tier: "archival" });
  assert.equal((await coming).seq, head + 1);
  const later = next();
  await server.stop();
  await server.start();
  await memory.remember("The third of the events", { tier: "archival" });
  assert.equal((await later).seq, head + 2);
  await events.return();
});

test("a stream of events ends with its signal, and without a server", async () => {
  const ends = new AbortController();
  const events = owner.events({ after: 0, signal: ends.signal });
  await events.next();
  ends.abort(new Error("enough"));
  await assert.rejects(async () => {
    for await (const _ of events);
  }, /enough/);
  const away = new Client("http://127.0.0.1:1", undefined, { retries: 0 });
  await assert.rejects(away.events({ after: 0 }).next(), StoreUnavailable);
});

test("an import reports each line; an export is what a new store is restored from", async () => {
  const lines: ImportedLine[] = [];
  const notes = [
    { id: "1", text: "The attic has a window" },
    { id: "2", text: "" },
  ]
    .map((each) => JSON.stringify(each))
    .join("\n");
  const summary = await owner.import(new Blob([notes]), {
    format: "records",
    user: "dora",
    onResult: (line) => lines.push(line),
  });
  assert.deepEqual(lines.map(({ number, outcome }) => `${number} ${outcome}`).sort(), ["1 committed", "2 failed"]);
  assert.equal(summary.committed, 1);
  await assert.rejects(owner.import("\u0000", { format: "json" }), KeepwardError);
  const exported = [];
  for await (const line of owner.export()) exported.push(line);
  assert.ok(exported.some((line) => line.includes("The attic has a window")));
  const other = await serve();
  const file = exported.join("\n") + "\n";
  const plan = await other.owner.planRestoreExport(file);
  await other.owner.restoreExport(file, plan.digest);
  assert.equal((await other.owner.listMemories({ text: "attic", below: true })).items.length, 1);
});
