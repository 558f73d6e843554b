/** A handle on the memories of a server: every operation, other handles, and streams. */

import { InvalidInput, StoreError, StaleVersion, StoreUnavailable, Tampered, errorOf, type Problem } from "./errors.js";
import { Draft } from "./draft.js";
import { CALLS, Operations, type CallFacts, type CallName, type Schemas } from "./operations.js";
import { RETRY_DELAY, UNREADABLE, Transport, parsed, type HandleNames, type Sending } from "./transport.js";
import type { Change, CommitEvent, ImportedLine, Outcome } from "./values.js";

/** Most items of a page, of commits with their events, and of many that are written or decided on at once. */
const PAGE = 500;
const COMMITS = 100;
const ITEMS = 500;
const DECISIONS = 200;
/** Most bytes of the items in one request; by default a server accepts one megabyte. */
const BODY_BYTES = 900_000;
/** Seconds without data after which a stream of events is lost; a server sends a heartbeat every 15 seconds. */
const SILENCE = 60;
/** Seconds after which an open stream counts as stable, and the longest delay between two attempts to open one. */
const STABLE = 1;
const LONGEST_DELAY = 5;
const LINES = "application/x-ndjson";
const NAME = /^[A-Za-z0-9_][A-Za-z0-9._-]{0,63}$/;

type Arguments<Name extends keyof Schemas, Positional extends string = never> = Omit<
  Schemas[Name],
  Positional | "limit"
> & {
  /** How many at most; null: all. */
  limit?: number | null;
};

/** What an import or a restore is sent as: text, bytes, or a file. */
export type Upload = string | Blob | ArrayBuffer | ArrayBufferView;

/** A handle of one actor at one scope. `user`, `project`, `branch` and the like return other ones. */
export class Handle extends Operations {
  readonly #transport: Transport;
  readonly #names: HandleNames;

  /** Use `new Client(url, token)`. */
  constructor(transport: Transport, names: HandleNames) {
    super();
    this.#transport = transport;
    this.#names = names;
  }

  /** The branch of this handle; null on main. */
  get branchName(): string | null {
    return this.#names.branch ?? null;
  }

  // --- other handles

  /** Return a handle at another scope or tenant. Its first request shows whether the token reaches it. */
  at({ tenant, scope }: { tenant?: string; scope?: string }): Handle {
    const { branch } = this.#names;
    const names: HandleNames =
      scope === undefined ? { ...this.#names } : { ...given({ branch, tenant: this.#names.tenant }) };
    return this.#with(given({ ...names, scope: scope ?? names.scope, tenant: tenant ?? names.tenant }));
  }

  /** Return a handle of a user: a person whom the agent talks with. `names` are further names of that person. */
  user(name: string, { names = [] }: { names?: string[] } = {}): Handle {
    return this.#with({ ...this.#names, user: checked("user", name), names: names.map(encodeURIComponent).join(",") });
  }

  /** Return a handle of an agent. In a project or at a user it writes there, visible to others. */
  agent(name: string): Handle {
    return this.#with({ ...this.#names, agent: checked("agent", name) });
  }

  /** Return a handle of a project, which its agents share. */
  project(name: string): Handle {
    return this.#with({ ...this.#names, project: checked("project", name) });
  }

  /** Return a handle on a branch, or with null on main. It reads main under the changes of the branch. */
  branch(name: string | null): Handle {
    const { branch: _, ...rest } = this.#names;
    return this.#with(name === null ? rest : { ...rest, branch: checked("branch", name) });
  }

  /** Collect changes and propose them together: `const draft = memory.draft(); …; await draft.send()`. */
  draft(options: { reason?: string; session?: string } = {}): Draft {
    return new Draft((changes) => this.propose(changes, options));
  }

  #with(names: HandleNames): Handle {
    return new Handle(this.#transport, names);
  }

  // --- operations that take more than one request

  override async recall(
    query = "",
    options: Omit<Schemas["RecallArguments"], "query"> = {},
  ): Promise<Schemas["Found"]> {
    const { limit = 10, receipt } = options;
    if (receipt && limit > PAGE) {
      throw new InvalidInput(`a receipt of a recall over HTTP names at most ${PAGE} memories`);
    }
    // Each request with a receipt stores another one.
    const sent = receipt ? "once" : "repeats";
    const { first, items } = await this.#pages<Schemas["Found"], "hits">(
      "recall",
      { query, ...options },
      "hits",
      limit,
      { sent },
    );
    return { ...first, hits: items, cursor: null };
  }

  override async listMemories(options: Arguments<"ListMemoriesArguments"> = {}): Promise<Schemas["Listed"]> {
    const { first, last, items } = await this.#pages<Schemas["Listed"], "items">(
      "list_memories",
      options,
      "items",
      options.limit,
    );
    return { ...last, total: first.total, head: first.head, items, cursor: null };
  }

  override async log(options: Schemas["LogArguments"] = {}): Promise<Schemas["CommitPage"]> {
    const on = { size: COMMITS, onward: "before" };
    const { answers, last, items } = await this.#pages<Schemas["CommitPage"], "items">(
      "log",
      options,
      "items",
      options.limit,
      on,
    );
    return {
      ...last,
      damaged: answers.flatMap((each) => each.damaged),
      notes: answers.flatMap((each) => each.notes),
      items,
    };
  }

  override async pending(options: Arguments<"PendingArguments"> = {}): Promise<Schemas["Proposals"]> {
    const on = { onward: "offset" };
    const { first, last, items } = await this.#pages<Schemas["Proposals"], "items">(
      "pending",
      options,
      "items",
      options.limit,
      on,
    );
    return { ...first, items, next_offset: last.next_offset };
  }

  override async diff(
    earlier: Schemas["DiffArguments"]["earlier"],
    later?: Schemas["DiffArguments"]["later"],
    options: Arguments<"DiffArguments", "earlier" | "later"> = {},
  ): Promise<Schemas["Compared"]> {
    const asked = { earlier, later, ...options };
    const { first, items } = await this.#pages<Schemas["Compared"], "items">("diff", asked, "items", options.limit, {
      onward: "offset",
    });
    return { ...first, items };
  }

  override async branches(options: Arguments<"BranchesArguments"> = {}): Promise<Schemas["Branches"]> {
    const on = { onward: "offset" };
    const { first, last, items } = await this.#pages<Schemas["Branches"], "items">(
      "branches",
      options,
      "items",
      options.limit,
      on,
    );
    return { ...first, items, next_offset: last.next_offset };
  }

  override async branchChanges(
    name: Schemas["BranchChangesArguments"]["name"],
    options: Arguments<"BranchChangesArguments", "name"> = {},
  ): Promise<Schemas["BranchChanges"]> {
    const asked = { name, ...options };
    const { first, last, items } = await this.#pages<Schemas["BranchChanges"], "changes">(
      "branch_changes",
      asked,
      "changes",
      options.limit,
      { onward: "offset" },
    );
    return { ...first, changes: items, next_offset: last.next_offset };
  }

  override async rememberMany(
    items: Array<string | Schemas["OneOfMany"]>,
    options: Omit<Schemas["RememberManyArguments"], "items"> = {},
  ): Promise<Outcome[]> {
    const sent = items.map((each) => (typeof each === "string" ? { text: each } : each));
    const outcomes: Outcome[] = [];
    for (const part of options.mode === "atomic" ? [sent] : batches(sent)) {
      if (part.length === 0) continue;
      const found = await this.call<Outcome[]>("remember_many", { items: part, ...options });
      // An atomic write has one outcome for all items.
      const one = options.mode === "atomic" && found.length === 1 ? found[0] : undefined;
      outcomes.push(...(one === undefined ? found : part.map(() => one)));
    }
    return outcomes;
  }

  override async merge(
    memoryIds: Schemas["MergeArguments"]["memory_ids"],
    text?: Schemas["MergeArguments"]["text"],
    options: Omit<Schemas["MergeArguments"], "memory_ids" | "text"> = {},
  ): Promise<Outcome | null> {
    return memoryIds.length === 0 ? null : super.merge(memoryIds, text, options);
  }

  override async forgetMany(
    memoryIds: Schemas["ForgetManyArguments"]["memory_ids"],
    options: Omit<Schemas["ForgetManyArguments"], "memory_ids"> = {},
  ): Promise<Schemas["Forgotten"]> {
    return memoryIds.length === 0 ? { outcome: null, missing: [] } : super.forgetMany(memoryIds, options);
  }

  /** Propose changes that are committed, quarantined or refused together. `newId()` makes the id of an `insert`. */
  override propose(changes: Change[], options: { reason?: string; session?: string } = {}): Promise<Outcome> {
    return super.propose(changes, options);
  }

  /**
   * Store exactly what was proposed. Requires a reviewer or the owner who is not the proposer.
   *
   * `digest` is that of the proposal which you saw. Without one it is read first, and the approval is bound to it.
   */
  override async approve(proposalId: string, { digest }: { digest?: string } = {}): Promise<Outcome> {
    return super.approve(proposalId, { digest: digest ?? (await this.#digestOf(proposalId)) });
  }

  /** Approve a proposal with your own changes. The gates check the result again. `digest` is as for `approve`. */
  override async amend(
    proposalId: string,
    text?: Schemas["AmendArguments"]["text"],
    options: Partial<Omit<Schemas["AmendArguments"], "proposal_id" | "text">> = {},
  ): Promise<Outcome> {
    return super.amend(proposalId, text, { ...options, digest: options.digest ?? (await this.#digestOf(proposalId)) });
  }

  /** Approve several proposals, each by id or by id and digest. Return one result for each, in order. */
  override async approveMany(items: Array<string | Schemas["Approval"]>): Promise<Schemas["DecisionResult"][]> {
    const named = [];
    for (const each of items) {
      const item = typeof each === "string" ? { id: each } : each;
      // A server answers an error for each item that is not usable.
      named.push({ id: item.id, digest: item.digest ?? (await this.#digestOf(item.id).catch(() => "0".repeat(64))) });
    }
    const results = [];
    for (const part of parts(named, DECISIONS)) results.push(...(await super.approveMany(part)));
    return results;
  }

  override async rejectMany(ids: string[], options: { reason: string }): Promise<Schemas["DecisionResult"][]> {
    const results = [];
    for (const part of parts([...new Set(ids)], DECISIONS)) results.push(...(await super.rejectMany(part, options)));
    return results;
  }

  override async rollback(
    commit: Schemas["RollbackArguments"]["commit"],
    options: Omit<Schemas["RollbackArguments"], "commit"> = {},
  ): Promise<Schemas["RolledBack"]> {
    if (options.dry_run || options.digest) return super.rollback(commit, options);
    for (let attempt = 0; ; attempt++) {
      const seen = await super.rollback(commit, { ...options, dry_run: true });
      try {
        return await super.rollback(commit, { ...options, digest: seen.digest });
      } catch (error) {
        // Another commit changed the same memories in between.
        if (!(error instanceof StaleVersion) || attempt === 2) throw error;
      }
    }
  }

  /**
   * Erase exactly what the plan with this digest lists; without a digest, return the plan.
   *
   * For the handle of a user, no selection means everything of that user: `const plan = await ana.erase()`, then
   * `await ana.erase(plan.digest)`.
   */
  override erase(
    digest?: undefined,
    ids?: Schemas["PlanEraseArguments"]["ids"],
    options?: Omit<Schemas["PlanEraseArguments"], "ids">,
  ): Promise<Schemas["ErasePlan"]>;
  override erase(
    digest: string,
    ids?: Schemas["EraseArguments"]["ids"],
    options?: Omit<Schemas["EraseArguments"], "digest" | "ids">,
  ): Promise<Schemas["Destroyed"]>;
  override erase(digest?: string, ids?: string[], options: object = {}): Promise<never> {
    return (digest === undefined ? this.planErase(ids, options) : super.erase(digest, ids, options)) as Promise<never>;
  }

  // --- blobs and streams

  /** Store 1 byte to 32 MB. A memory refers to it: `memory.remember("what it shows", { blob: blob.ref })`. */
  async putBlob(
    data: Blob | ArrayBuffer | ArrayBufferView,
    { media_type }: { media_type?: string } = {},
  ): Promise<Schemas["Blob"]> {
    const headers = { "Content-Type": media_type ?? "application/octet-stream" };
    // Equal bytes are stored once.
    const sending: Sending = { body: data as BodyInit, headers, sent: "repeats" };
    return parsed(
      (await this.#transport.request("POST", "/memory/blobs", this.#names, sending)).text,
    ) as Schemas["Blob"];
  }

  /** Return the bytes of a blob after checking their hash. */
  async readBlob(ref: string): Promise<Uint8Array> {
    const expected = /^sha256:([0-9a-f]{64})$/.exec(ref)?.[1];
    if (expected === undefined) throw new InvalidInput("a blob is named sha256: and 64 hexadecimal digits");
    const bytes = await this.#transport.bytes(`/memory/blobs/${ref}`, this.#names);
    const hash = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
    const found = Array.from(hash, (byte) => byte.toString(16).padStart(2, "0")).join("");
    if (found !== expected) throw new Tampered("the bytes differ from the uploaded ones");
    return bytes;
  }

  /**
   * Yield commits as they happen, of any process.
   *
   * `after` is the number of the last commit that you know, 0 for all; without it, the next commit is the first.
   * It ends with `StoreUnavailable` if the server is lost and not back within the timeout, and when you leave the loop.
   */
  async *events({ after, signal }: { after?: number; signal?: AbortSignal } = {}): AsyncGenerator<CommitEvent, void> {
    const transport = this.#transport;
    // There is always a position, so that no event is missed if the connection breaks before the first one.
    let seen = after ?? Number(String((await this.status()).head).split(":")[0]);
    if (!Number.isInteger(seen)) throw new StoreError(UNREADABLE);
    let known = false;
    let lost = now();
    let attempts = 0;
    let delay = RETRY_DELAY;
    for (;;) {
      // A stopping server closes the stream; another attempt shows whether it comes back.
      let problem: unknown = new StoreUnavailable("the server closed the event stream; try again");
      let opened: number | undefined;
      try {
        for await (const commit of this.#commits(seen, signal)) {
          if (commit === null) {
            opened = now();
            known = true;
          } else {
            seen = commit.seq;
            opened = -Infinity;
            yield commit;
          }
        }
      } catch (error) {
        if (!(error instanceof StoreUnavailable)) throw error;
        problem = error;
      }
      if (opened !== undefined && now() - opened >= STABLE) {
        lost = now();
        attempts = 0;
        delay = RETRY_DELAY;
      }
      const mayWait = known && transport.retries > 0 && now() + delay - lost <= transport.timeout;
      if (attempts >= transport.retries && !mayWait) throw problem;
      await transport.wait(delay, signal);
      attempts++;
      delay = Math.min(2 * delay, LONGEST_DELAY);
    }
  }

  /** Yield every version of every memory of the tenant as a line of JSON, oldest first. Requires the owner. */
  async *export(): AsyncGenerator<string, void> {
    const sending: Sending = { headers: { Accept: LINES }, sent: "once" };
    for await (const line of await this.#transport.stream("GET", "/memory/export", this.#names, sending)) {
      if (line) yield line;
    }
  }

  /**
   * Import memories from a file of any system that Keepward reads, each through the gates; return a summary.
   *
   * With `user`, all memories belong to this user. `onResult` is called with the result of each line. After
   * `StoreUnavailable`, import the same file again: nothing is stored twice.
   */
  async import(
    source: Upload,
    {
      onResult,
      ...how
    }: {
      format?: string;
      user?: string;
      session?: string;
      untrusted?: boolean;
      onResult?: (line: ImportedLine) => void;
    } = {},
  ): Promise<{ [name: string]: unknown }> {
    const sending: Sending = {
      query: { format: "auto", ...how },
      body: source as BodyInit,
      headers: { "Content-Type": LINES, Accept: LINES },
      sent: "once",
    };
    for await (const line of await this.#transport.stream("POST", "/memory/import", this.#names, sending)) {
      if (!line.trim()) continue;
      const message = parsed(line) as { error?: Problem; summary?: { [name: string]: unknown } } & Omit<
        ImportedLine,
        "number"
      > & {
          line?: number;
        };
      if (message.error) throw errorOf(message.error);
      if (message.summary) return message.summary;
      const { line: number, ...result } = message;
      if (number !== undefined) onResult?.({ ...result, number });
    }
    throw new StoreUnavailable("the import was interrupted; import the same file again, nothing is stored twice");
  }

  /** Return what restoring an export would write, with a digest. Requires the owner. */
  planRestoreExport(source: Upload): Promise<Schemas["ExportPlan"]> {
    return this.#upload("/memory/restore-export/plan", source) as Promise<Schemas["ExportPlan"]>;
  }

  /** Restore an export into an empty tenant. `digest` is that of its plan. Requires the owner. */
  restoreExport(source: Upload, digest: string): Promise<Schemas["RestoredExport"]> {
    return this.#upload("/memory/restore-export", source, { digest }) as Promise<Schemas["RestoredExport"]>;
  }

  async #upload(path: string, source: Upload, query: Record<string, string> = {}): Promise<unknown> {
    const sending: Sending = { query, body: source as BodyInit, headers: { "Content-Type": LINES }, sent: "once" };
    return parsed((await this.#transport.request("POST", path, this.#names, sending)).text);
  }

  async *#commits(after: number, signal: AbortSignal | undefined): AsyncGenerator<CommitEvent | null, void> {
    const sending: Sending = { headers: { Accept: "text/event-stream", "Last-Event-ID": String(after) }, sent: "once" };
    const lines = await this.#transport.stream("GET", "/memory/events", this.#names, sending, {
      quiet: SILENCE,
      signal,
    });
    yield null;
    let fields: Record<string, string> = {};
    for await (const line of lines) {
      if (line !== "") {
        const [, name, value] = /^(\w*):? ?(.*)$/.exec(line) ?? [];
        if (name) fields[name] = value ?? "";
        continue;
      }
      const { event = "", id = "", data = "" } = fields;
      fields = {};
      if (event === "end") throw errorOf(parsed(data) as Problem, 503);
      if (/^\d+$/.test(id) && data) yield { seq: Number(id), event, facts: parsed(data) as CommitEvent["facts"] };
    }
  }

  // --- calls

  protected override async call<T>(operation: CallName, args: object): Promise<T> {
    const answer = await this.#answer(operation, args);
    const { answer: key }: CallFacts = CALLS[operation];
    if (key === undefined) return answer as T;
    const found = (answer as Record<string, unknown> | null)?.[key];
    if (!Array.isArray(found)) throw new StoreError(UNREADABLE);
    return found as T;
  }

  async #answer(operation: CallName, args: object, more: Partial<Sending> = {}): Promise<unknown> {
    const { where } = args as { where?: unknown };
    const json = where !== null && typeof where === "object" ? { ...args, where: JSON.stringify(where) } : args;
    const sending: Sending = { json, sent: CALLS[operation].sent, ...more };
    const { text } = await this.#transport.request("POST", `/memory/call/${operation}`, this.#names, sending);
    return text === "" ? null : parsed(text);
  }

  /** Return the items of a list up to its limit, and the answers that had them. */
  async #pages<Page, Key extends keyof Page & string>(
    operation: CallName,
    args: object,
    key: Key,
    limit: number | null = 50,
    { size = PAGE, onward, sent }: { size?: number; onward?: string; sent?: Sending["sent"] } = {},
  ): Promise<{ items: Page[Key]; answers: Page[]; first: Page; last: Page }> {
    // The size stays the same, so that pages are contiguous.
    const asked: Record<string, unknown> = { ...args, limit: limit === null ? size : Math.min(size, limit) };
    const query: Sending["query"] = {};
    const answers: Page[] = [];
    const items: unknown[] = [];
    for (;;) {
      const answer = (await this.#answer(operation, asked, { query, ...(sent ? { sent } : {}) })) as Page &
        Record<string, unknown>;
      const found: unknown = answer?.[key];
      if (!Array.isArray(found)) throw new StoreError(UNREADABLE);
      answers.push(answer);
      items.push(...(found as unknown[]));
      const next = answer[onward === undefined ? "cursor" : `next_${onward}`];
      if (next === null || next === undefined || (limit !== null && items.length >= limit)) {
        const listed = (limit === null ? items : items.slice(0, limit)) as Page[Key];
        return { items: listed, answers, first: answers[0] ?? answer, last: answer };
      }
      if (onward === undefined) query.cursor = next as string;
      else asked[onward] = next;
    }
  }

  async #digestOf(proposalId: string): Promise<string> {
    return (await this.proposal(proposalId)).digest;
  }
}

function now(): number {
  return performance.now() / 1000;
}

function checked(kind: string, name: string): string {
  if (NAME.test(name)) return name;
  throw new InvalidInput(
    `the name of a ${kind} is 1 to 64 ASCII letters, digits and \`. _ -\`, and starts with none of \`. -\`: use an id ` +
      "such as u-1042, not an address",
  );
}

function given<T extends object>(values: T): { [Name in keyof T]?: Exclude<T[Name], undefined> } {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as {
    [Name in keyof T]?: Exclude<T[Name], undefined>;
  };
}

function* parts<T>(items: T[], most: number): Generator<T[]> {
  for (let start = 0; start < items.length; start += most) yield items.slice(start, start + most);
}

/** Yield the items in batches that fit into one request. */
function* batches(items: object[]): Generator<object[]> {
  let part: object[] = [];
  let size = 0;
  for (const item of items) {
    const weight = new TextEncoder().encode(JSON.stringify(item)).length + 1;
    if (part.length > 0 && (part.length === ITEMS || size + weight > BODY_BYTES)) {
      yield part;
      part = [];
      size = 0;
    }
    part.push(item);
    size += weight;
  }
  yield part;
}
