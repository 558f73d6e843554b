/** How often the client sends a request whose connection breaks after the server has read it, for each operation. */

import { Client, InvalidInput, StoreUnavailable } from "keepward";
import assert from "node:assert/strict";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { type AddressInfo } from "node:net";
import { after, test } from "node:test";
import { freePort } from "./server.ts";

interface Asked {
  path: string;
  key: string | undefined;
}

type Answer = (request: IncomingMessage, response: ServerResponse, count: number) => void;

/** Start a server that reads each request and then does something of the kind that networks do. */
async function server(answer: Answer): Promise<{ asked: Asked[]; client: Client; url: string }> {
  const asked: Asked[] = [];
  const listening = createServer((request, response) => {
    request.resume().on("end", () => {
      asked.push({ path: request.url ?? "", key: request.headers["idempotency-key"] as string | undefined });
      answer(request, response, asked.length);
    });
  });
  await new Promise<void>((resolve) => listening.listen(0, "127.0.0.1", resolve));
  after(() => {
    listening.close();
    listening.closeAllConnections();
  });
  const url = `http://127.0.0.1:${(listening.address() as AddressInfo).port}`;
  return { asked, url, client: new Client(url, `kw_${"A".repeat(43)}`, { timeout: 5 }) };
}

const broken: Answer = (_, response) => response.socket?.destroy();

/** Call an operation by its name in Python, with no arguments: the server reads none. */
function call(client: Client, operation: string): Promise<unknown> {
  return (client as unknown as { call(name: string, args: object): Promise<unknown> }).call(operation, {});
}

/** What the server commits once under a key, and what does something each time that it is read; see api.py. */
const KEYED = new Set(
  (
    "remember revise append forget archive restore reinforce move promote supersede merge propose approve amend " +
    "update_identity"
  ).split(" "),
);
const ONCE = new Set(
  (
    "remember_many add forget_many forget_matching feedback reject reopen approve_many reject_many rollback contain erase " +
    "adopt train_reranker run_jobs rebuild reindex create_token revoke_token notices check create_branch merge_branch " +
    "discard_branch"
  ).split(" "),
);
const READS = (
  "recall list_memories get history facets activity sources news users projects lineage context snapshot memory_block " +
  "replay receipts receipt doctor status identity plan_forget_matching pending proposal branches branch_changes log show " +
  "diff verify impact export_subject plan_contain blame contradictions bisect run_tests context_diff plan_erase " +
  "certificate plan_adopt jobs merge_candidates tokens"
).split(" ");

test("no request that does something is sent twice without a key", async () => {
  const { asked, client } = await server(broken);
  const names = [...KEYED, ...ONCE, ...READS];
  await Promise.all(names.map((name) => assert.rejects(call(client, name), StoreUnavailable, name)));
  for (const name of names) {
    const sent = asked.filter((each) => each.path === `/memory/call/${name}`);
    assert.equal(sent.length, ONCE.has(name) ? 1 : 3, name);
    // A repeated write is the same one, under the same key.
    assert.equal(new Set(sent.map((each) => each.key)).size, 1, name);
    assert.equal(sent[0]?.key !== undefined, KEYED.has(name), name);
  }
});

test("two writes have two keys", async () => {
  const { asked, client } = await server(broken);
  await assert.rejects(client.remember("one"));
  await assert.rejects(client.remember("one"));
  assert.equal(new Set(asked.map((each) => each.key)).size, 2);
});

test("a recall with a receipt is sent once", async () => {
  const { asked, client } = await server(broken);
  await assert.rejects(client.recall("tea", { receipt: true }));
  assert.equal(asked.length, 1);
});

test("a blob is sent again, an import and an export are not", async () => {
  const { asked, client } = await server(broken);
  await assert.rejects(client.putBlob(new Uint8Array([1])), StoreUnavailable);
  assert.equal(asked.length, 3);
  await assert.rejects(client.import("{}"), StoreUnavailable);
  await assert.rejects(client.export().next(), StoreUnavailable);
  assert.equal(asked.length, 5);
});

const busy =
  (status: number, headers: Record<string, string> = {}): Answer =>
  (_, response, count) => {
    if (count === 1) response.writeHead(status, headers).end();
    else response.writeHead(200, { "Content-Type": "application/json" }).end("{}");
  };

test("a 429 lets every call be sent again, since nothing was done", async () => {
  const { asked, client } = await server(busy(429));
  await call(client, "rebuild");
  assert.equal(asked.length, 2);
});

test("a 503 lets only calls be sent again that may be", async () => {
  const once = await server(busy(503));
  await assert.rejects(call(once.client, "rebuild"), StoreUnavailable);
  assert.equal(once.asked.length, 1);
  const keyed = await server(busy(503));
  await call(keyed.client, "remember");
  assert.equal(keyed.asked.length, 2);
});

test("nobody waits longer than the timeout, because a server asks for it", async () => {
  const { asked, client } = await server(busy(429, { "Retry-After": "3600" }));
  await assert.rejects(call(client, "get"), StoreUnavailable);
  assert.equal(asked.length, 1);
});

test("a wait can be an instant, by the clock of the server", async () => {
  const date = "Mon, 30 Nov 2026 10:00:00 GMT";
  const later = await server(busy(429, { Date: date, "Retry-After": "Mon, 30 Nov 2026 11:00:00 GMT" }));
  await assert.rejects(call(later.client, "get"), StoreUnavailable);
  const soon = await server(busy(429, { Date: date, "Retry-After": date }));
  await call(soon.client, "get");
  assert.equal(soon.asked.length, 2);
});

test("no retries means one request", async () => {
  const { asked, url } = await server(broken);
  await assert.rejects(new Client(url, undefined, { retries: 0 }).get("x"), StoreUnavailable);
  assert.equal(asked.length, 1);
});

test("a redirect is not followed, so that no other server gets the token", async () => {
  const other = await server(broken);
  const { client } = await server((_, response) => response.writeHead(307, { Location: other.url }).end());
  await assert.rejects(client.get("x"), /answered 307 and not as Keepward does/);
  assert.equal(other.asked.length, 0);
});

test("a server that answers nothing ends the call in time, and a signal ends it at once", async () => {
  const { asked, url } = await server(() => undefined);
  await assert.rejects(new Client(url, undefined, { timeout: 0.2, retries: 1 }).get("x"), /did not answer in time/);
  assert.equal(asked.length, 2);
  const ends = new AbortController();
  const called = new Client(url, undefined, { signal: ends.signal }).get("x");
  ends.abort(new Error("enough"));
  await assert.rejects(called, /enough/);
});

test("an address that no server has names the command that starts one", async () => {
  const free = await freePort();
  const client = new Client(`http://127.0.0.1:${free}`, undefined, { retries: 0 });
  await assert.rejects(client.get("x"), /start one with `keepward serve`/);
});

test("a token goes over TLS or to this machine", () => {
  assert.throws(() => new Client("http://memory.example", "kw_x"), InvalidInput);
  assert.throws(() => new Client("http://127.0.0.1.example", "kw_x"), InvalidInput);
  for (const url of ["https://memory.example", "http://localhost:1", "http://127.0.0.1:1", "http://[::1]:1"])
    new Client(url, "kw_x");
  new Client("http://memory.example", "kw_x", { allowInsecure: true });
  new Client("http://memory.example");
});

test("a wrong address, token, name or number says what is right", () => {
  for (const url of ["memory.example", "ftp://memory.example", "http://127.0.0.1:1?x=1", "http://ana:pw@127.0.0.1:1"]) {
    assert.throws(() => new Client(url), InvalidInput, url);
  }
  assert.throws(() => new Client("http://127.0.0.1:1", "kw x"), /keepward token create/);
  assert.throws(() => new Client("http://127.0.0.1:1", "kw_x", { retries: -1 }), InvalidInput);
  assert.throws(() => new Client("http://127.0.0.1:1", "kw_x", { timeout: 0 }), InvalidInput);
  assert.throws(() => new Client("http://127.0.0.1:1").user("ana@example.org"), /use an id such as u-1042/);
});
