/** What screens state about memories, proposals and the store: each sentence follows from its data. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { undoneBy, titleOf } from "../src/screens/commits/undone";
import { changedInputs, isNoted } from "../src/screens/context/differences";
import { warningsOf } from "../src/screens/home/warnings";
import { approvable, codeName, currentOf, editable, grouped, headline } from "../src/screens/review/words";

const ID = "01a148e9-1fc0-7000-8000-000000000001";

/** A value of a type that the test fills as far as it is read. */
function partial<T>(value: unknown): T {
  return value as T;
}

function difference(op: string) {
  return partial<Parameters<typeof isNoted>[0]>({ id: ID, change: "changed", commit: { changes: [{ id: ID, op }] } });
}

function proposal(steps: object[], more: object = {}) {
  const diff = steps.map((step) => ({ id: ID, before: null, changed: [], ...step }));
  return partial<Parameters<typeof headline>[0]>({ diff, current: [], may_approve: true, stale: false, ...more });
}

const fact = { text: "The rye bread is sold out.", kind: "fact", tier: "working", key: null };

test("a memory with another text is never called the same", () => {
  const first = new Map([[ID, "It costs 5.20 euros."]]);
  assert.equal(isNoted(difference("reinforce"), first, new Map([[ID, "It costs 5.60 euros."]])), false);
  assert.equal(isNoted(difference("reinforce"), first, new Map()), false);
});

test("a memory with the same text that was confirmed is bookkeeping", () => {
  const texts = new Map([[ID, "It costs 5.20 euros."]]);
  assert.equal(isNoted(difference("reinforce"), texts, texts), true);
  assert.equal(isNoted(difference("replace"), texts, texts), false);
});

test("differing settings of two contexts are named by their parts", () => {
  assert.deepEqual(changedInputs("relevance", { words: 1, meaning: 0 }, { words: 1, meaning: 6 }), [
    ["meaning", "0", "6"],
  ]);
  assert.deepEqual(changedInputs("budget_tokens", 700, 900), [["budget tokens", "700", "900"]]);
  assert.deepEqual(changedInputs("head", "1:a", "2:b"), []);
  assert.deepEqual(changedInputs("scope", "/", "/"), []);
});

test("a headline says what a proposal does and to how many", () => {
  assert.equal(headline(proposal([{ op: "insert", after: fact }])), "Remember a fact");
  const block = { ...fact, tier: "core", key: "mission" };
  assert.equal(headline(proposal([{ op: "replace", after: block }])), "Change the mission");
  const retire = { op: "retire", after: fact };
  assert.equal(headline(proposal([retire, retire])), "Forget 2 memories");
  const merged = [
    { op: "insert", after: fact },
    { op: "supersede", after: fact },
    { op: "supersede", after: fact },
  ];
  assert.equal(headline(proposal(merged)), "Merge 2 memories into one");
});

test("a stale proposal or another person's is not approvable", () => {
  const steps = [{ op: "insert", after: fact }];
  assert.equal(approvable(proposal(steps)), true);
  assert.equal(approvable(proposal(steps, { stale: true })), false);
  assert.equal(approvable(proposal(steps, { may_approve: false })), false);
});

test("a stale proposal with several current memories has no single one", () => {
  const steps = [{ op: "replace", after: fact }];
  assert.equal(currentOf(proposal(steps, { current: [{ id: ID }, { id: ID }] })), undefined);
  assert.deepEqual(currentOf(proposal(steps, { current: [{ id: ID }] })), { id: ID });
});

test("only a proposed text can be edited, and not the identity", () => {
  assert.equal(editable(proposal([{ op: "insert", after: fact }]))?.op, "insert");
  assert.equal(editable(proposal([{ op: "promote", after: fact }])), undefined);
  assert.equal(editable(proposal([{ op: "replace", after: { ...fact, kind: "identity" } }])), undefined);
});

test("reasons that say the same are one with a count", () => {
  const reason = (code: string, detail: string) => ({ gate: "authority", code, detail });
  const same = reason("lower_trust", "an agent changes what a user said");
  assert.deepEqual(grouped([same, same]), [{ text: same.detail, count: 2, signs: [] }]);
  const [one] = grouped([reason("bidi_control", "it is hidden (bidi_control)"), reason("x_y", "it is hidden (x_y)")]);
  assert.deepEqual(one, { text: "it is hidden", count: 2, signs: ["reversed text", "x y"] });
});

test("a code without a name of its own is read with blanks", () => {
  assert.equal(codeName("lower_trust"), "less trusted source");
  assert.equal(codeName("some_new_code"), "some new code");
});

test("a commit is undone unless its rollback was undone as well", () => {
  const commit = (seq: number, undoes: string[]) =>
    partial<Parameters<typeof undoneBy>[0][number]>({ seq, id: `c${seq}`, undoes });
  assert.equal(undoneBy([commit(5, ["c3"])]).get("c3")?.seq, 5);
  assert.equal(undoneBy([commit(5, ["c3"]), commit(6, ["c5"])]).has("c3"), false);
});

test("a title names a listed commit by its number", () => {
  const listed = [partial<Parameters<typeof titleOf>[0]>({ id: ID, seq: 123, undoes: [], reason: "" })];
  const item = { reason: `rollback of ${ID}`, undoes: [ID], changes: [] };
  assert.equal(titleOf(partial(item), listed), "rollback of commit 123");
  assert.equal(titleOf(partial(item), []), "rollback of an earlier commit");
});

test("warnings name failed checks and unaccepted settings, worst first", () => {
  const given = { jobs: [], activity: undefined, now: Date.parse("2026-11-26T12:00:00Z") };
  const file = { path: "/srv/keepward.toml", accepted: false, accept_with: null };
  const found = warningsOf(
    partial({ ...given, file, checks: [{ name: "seal", ok: false, warning: false, detail: "", fix: null }] }),
  );
  assert.deepEqual(
    found.map((warning) => warning.tone),
    ["bad", "warn"],
  );
  assert.match(found[1]?.text ?? "", /not in force/);
  assert.deepEqual(warningsOf(partial({ ...given, file: null, checks: [] })), []);
});
