/**
 * Mastra on Keepward: a store of its threads, messages and resources, and a processor that gives an agent what is
 * remembered.
 *
 * - A message is an event of the session that has the id of its thread, with the message as its metadata: every other
 *   surface finds it by what it says.
 * - What Mastra's own store in memory makes of a call is what is written, in one commit, based on the versions that
 *   were read.
 * - A refused write, and a thread or resource that waits for a person, is a `NotStored`; a message that waits, and a
 *   changed one, is a note.
 */

import type { Processor, ProcessInputArgs } from "@mastra/core/processors";
import { InMemoryDB, InMemoryMemory, MastraCompositeStore, MemoryStorage } from "@mastra/core/storage";
import { NotStored, contextFor, keyOf, notesFor, warn, type AdapterOptions } from "./adapters.js";
import { StaleVersion } from "./errors.js";
import type { Handle } from "./handle.js";
import { PEOPLE_AND_AGENTS, type Schemas } from "./operations.js";
import type { Change, MemoryRecord } from "./values.js";

export { NotStored };

/** Most changes of one commit, and most ids of one filter. */
const CHANGES = 500;
const OPERANDS = 64;
/** Most characters of the text by which a message is found; the message itself is complete. */
const TEXT = 1200;
/** Tag of a message that replaced another one of its id. */
const CHANGED = "mastra-changed";
/** How often a write begins again, because another one changed the same rows. */
const ATTEMPTS = 3;
const TABLES = ["threads", "messages", "resources"] as const;

type Table = (typeof TABLES)[number];
type StoredMessage = InMemoryDB["messages"] extends Map<string, infer Each> ? Each : never;
type Listing = NonNullable<Parameters<Handle["listMemories"]>[0]>;
/** What a call needs: rows by their ids, messages of threads, or all that pass a filter. */
interface Needs {
  threads?: Array<string | undefined> | Listing;
  messages?: string[];
  resources?: string[];
  /** Threads, or a resource, whose messages are all needed. */
  messagesOf?: string[];
  messagesOfResource?: string;
}

/** Options of the store. */
export type StorageOptions = Pick<AdapterOptions, "onNote">;

/**
 * Return a store for `new Memory({ storage })` of `@mastra/memory`: its threads, messages and resources are at the scope
 * of the handle.
 */
export function keepwardStorage(memory: Handle, options: StorageOptions = {}): MastraCompositeStore {
  return new MastraCompositeStore({ id: "keepward", domains: { memory: new KeepwardMemoryStorage(memory, options) } });
}

/** A processor for `inputProcessors` of an agent: what is remembered that bears on the message, as a system message. */
export class KeepwardContext implements Processor<"keepward-context"> {
  readonly id = "keepward-context";
  readonly name = "Keepward context";
  readonly #memory: Handle;
  readonly #options: Pick<AdapterOptions, "budgetTokens">;

  constructor(memory: Handle, options: Pick<AdapterOptions, "budgetTokens"> = {}) {
    this.#memory = memory;
    this.#options = options;
  }

  async processInput({ messages, messageList }: ProcessInputArgs) {
    const asked = messages.findLast(({ role }) => role === "user");
    const objective = asked === undefined ? "" : textsIn(asked.content).join("\n");
    const context = objective ? await contextFor(this.#memory, objective, this.#options) : "";
    return context ? messageList.addSystem(context, this.id) : messageList;
  }
}

/** Mastra's storage of threads, messages and resources. */
export class KeepwardMemoryStorage extends MemoryStorage {
  override readonly supportsPartialThreadUpdate = true;
  readonly #memory: Handle;
  readonly #onNote: (note: string) => void;
  #scope: Promise<string> | undefined;

  constructor(memory: Handle, { onNote = warn }: StorageOptions = {}) {
    super();
    this.#memory = memory;
    this.#onNote = onNote;
  }

  // --- reading: the rows that a call needs, and what Mastra's own store makes of them

  override getThreadById: MemoryStorage["getThreadById"] = async (args) =>
    (await this.#load({ threads: [args.threadId] })).store.getThreadById(args);

  override listThreads: MemoryStorage["listThreads"] = async (args) => {
    const { resourceId } = args.filter ?? {};
    return (await this.#load({ threads: resourceId === undefined ? {} : { where: { resourceId } } })).store.listThreads(
      args,
    );
  };

  override listMessages: MemoryStorage["listMessages"] = async (args) => {
    const { threadId, include = [], includeTotal, filter, resourceId, page = 0, perPage, orderBy } = args;
    const plain = !include.length && !filter && !resourceId && page === 0 && orderBy?.direction === "DESC";
    // An agent reads the newest messages before each answer: their number is not asked for, nor are the others read.
    const limit = plain && includeTotal === false && typeof perPage === "number" ? perPage + 1 : null;
    const messagesOf = [...[threadId].flat(), ...(await this.#threadsOf(include.map(({ id }) => id)))];
    let rows = await this.#load({ messagesOf }, limit);
    // A message that was changed is a newer memory than later messages are.
    if (limit !== null && !rows.areNewest()) rows = await this.#load({ messagesOf });
    return rows.store.listMessages(args);
  };

  override listMessagesByResourceId: MemoryStorage["listMessagesByResourceId"] = async (args) => {
    const messagesOf = await this.#threadsOf((args.include ?? []).map(({ id }) => id));
    const loaded = await this.#load({ messagesOfResource: args.resourceId, messagesOf });
    return loaded.store.listMessagesByResourceId(args);
  };

  override listMessagesById: MemoryStorage["listMessagesById"] = async (args) =>
    (await this.#load({ messages: args.messageIds })).store.listMessagesById(args);

  override getResourceById: MemoryStorage["getResourceById"] = async (args) =>
    (await this.#load({ resources: [args.resourceId] })).store.getResourceById(args);

  // --- writing: what Mastra's own store changes in these rows

  override saveThread: MemoryStorage["saveThread"] = (args) =>
    this.#change({ threads: [args.thread.id] }, (store) => store.saveThread(args));

  override updateThread: MemoryStorage["updateThread"] = (args) =>
    this.#change({ threads: [args.id] }, (store) => store.updateThread(args));

  override updateThreadResourceId: MemoryStorage["updateThreadResourceId"] = (args) =>
    this.#change({ threads: [args.threadId], messagesOf: [args.threadId] }, (store) =>
      store.updateThreadResourceId(args),
    );

  override deleteThread: MemoryStorage["deleteThread"] = (args) =>
    this.#change({ threads: [args.threadId], messagesOf: [args.threadId] }, (store) => store.deleteThread(args));

  override copyThread: MemoryStorage["copyThread"] = (args) => {
    const needs = { threads: [args.sourceThreadId, args.newThreadId], messagesOf: [args.sourceThreadId] };
    return this.#change(needs, (store) => store.copyThread(args));
  };

  override cloneThread: MemoryStorage["cloneThread"] = async (args) => {
    const copied = await this.copyThread(args);
    const { messages } = await this.listMessages({ threadId: copied.thread.id, perPage: false });
    return { ...copied, clonedMessages: messages };
  };

  override saveMessages: MemoryStorage["saveMessages"] = (args) => {
    const needs = { threads: args.messages.map((each) => each.threadId), messages: args.messages.map(({ id }) => id) };
    return this.#change(needs, (store) => store.saveMessages(args));
  };

  override updateMessages: MemoryStorage["updateMessages"] = async (args) => {
    const messages = args.messages.map(({ id }) => id);
    const threads = [...args.messages.map((each) => each.threadId), ...(await this.#threadsOf(messages))];
    return this.#change({ messages, threads }, (store) => store.updateMessages(args));
  };

  override deleteMessages: MemoryStorage["deleteMessages"] = async (ids) =>
    this.#change({ messages: ids, threads: await this.#threadsOf(ids) }, (store) => store.deleteMessages(ids));

  override saveResource: MemoryStorage["saveResource"] = (args) =>
    this.#change({ resources: [args.resource.id] }, (store) => store.saveResource(args));

  override updateResource: MemoryStorage["updateResource"] = (args) =>
    this.#change({ resources: [args.resourceId] }, (store) => store.updateResource(args));

  /** Retire every thread, message and resource at the scope of the handle; each can be restored. */
  override async dangerouslyClearAll(): Promise<void> {
    for (const table of TABLES) {
      const found = await this.#list({ tags: [tagOf(table)] });
      for (let start = 0; start < found.length; start += CHANGES) {
        const ids = found.slice(start, start + CHANGES).map(({ id }) => id);
        await this.#memory.forgetMany(ids, { reason: "all were cleared" });
      }
    }
  }

  /** Return the threads of messages. */
  async #threadsOf(messages: string[]): Promise<string[]> {
    return (await this.#messages(messages)).map(({ metadata }) => (metadata as unknown as StoredMessage).thread_id);
  }

  /** Run a call of Mastra's own store on the rows that it needs, and write what it changed. */
  async #change<T>(needs: Needs, call: (store: InMemoryMemory) => Promise<T>): Promise<T> {
    for (let attempt = 1; ; attempt++) {
      const rows = await this.#load(needs);
      const result = await call(rows.store);
      try {
        await this.#write(rows.changes());
        return result;
      } catch (error) {
        if (!(error instanceof StaleVersion) || attempt === ATTEMPTS) throw error;
      }
    }
  }

  async #write(changes: Change[]): Promise<void> {
    // Rows that need each other, such as a message and its thread, come first: a call has few of them.
    for (let start = 0; start < changes.length; start += CHANGES) {
      const part = changes.slice(start, start + CHANGES);
      const outcome = await this.#memory.propose(part, { reason: "threads of an agent" });
      const waits = outcome.outcome === "quarantined" && part.some((each) => "key" in each);
      if (outcome.outcome === "refused" || waits) throw new NotStored(outcome);
      notesFor([outcome]).forEach(this.#onNote);
    }
  }

  /** Read the rows that a call needs; of the messages of a thread the newest so many. */
  async #load(needs: Needs, limit: number | null = null): Promise<Rows> {
    const { threads = [], messages = [], resources = [], messagesOf = [], messagesOfResource: resourceId } = needs;
    const rows = new Rows();
    const keyed = (table: Table, ids: Array<string | undefined>) =>
      [...new Set(ids)].map(async (id) => {
        if (id !== undefined) rows.add(table, await this.#list({ key: rowKey(table, id), tags: [tagOf(table)] }));
      });
    const listed = async (table: Table, filter: Listing) =>
      rows.add(table, await this.#list({ ...filter, tags: [tagOf(table)] }, limit));
    await Promise.all([
      ...(Array.isArray(threads) ? keyed("threads", threads) : [listed("threads", threads)]),
      ...keyed("resources", resources),
      this.#messages(messages).then((found) => rows.add("messages", found)),
      ...[...new Set(messagesOf)].map((id) => listed("messages", { session: keyOf(id) })),
      ...(resourceId === undefined ? [] : [listed("messages", { where: { resourceId } })]),
    ]);
    return rows;
  }

  async #list(filter: Listing, limit: number | null = null): Promise<MemoryRecord[]> {
    this.#scope ??= this.#memory.status().then(({ scope }) => scope);
    const scopes = [await this.#scope];
    // What a page or a tool wrote is no message: a message says its own role, which may be `system`.
    const sources = [...PEOPLE_AND_AGENTS];
    return (await this.#memory.listMemories({ ...filter, scopes, sources, content_types: ["structured"], limit }))
      .items;
  }

  /** Return the memories of messages, by their ids. */
  async #messages(ids: string[]): Promise<MemoryRecord[]> {
    const found: MemoryRecord[] = [];
    for (let start = 0; start < ids.length; start += OPERANDS) {
      const where = { id: { $in: ids.slice(start, start + OPERANDS) } };
      found.push(...(await this.#list({ where, tags: [tagOf("messages")] })));
    }
    return found;
  }
}

/** Rows in Mastra's own store, and the memories that they were read from. */
class Rows {
  readonly #db = new InMemoryDB();
  readonly store = new InMemoryMemory({ db: this.#db });
  readonly #read = new Map<string, { record: MemoryRecord; row: string }>();

  add(table: Table, records: MemoryRecord[]): void {
    // Oldest first, since equal times keep this order.
    for (const record of records.toReversed()) {
      const row = rowOf(table, record);
      this.#table(table).set(row.id, row);
      this.#read.set(`${table} ${row.id}`, { record, row: JSON.stringify(row) });
    }
  }

  /** Whether no message that was not read is newer than one of these, of the newest memories of a thread. */
  areNewest(): boolean {
    const times = [...this.#db.messages.values()].map(({ createdAt }) => createdAt.getTime());
    const [oldest] = this.#db.messages.keys();
    // What was stored before a message that was never changed was also said before it.
    const changed = this.#read.get(`messages ${oldest}`)?.record.tags.includes(CHANGED) ?? false;
    return !changed && times.every((time, index) => index === 0 || time >= (times[index - 1] ?? 0));
  }

  /** Return what was changed since the rows were read. */
  changes(): Change[] {
    const changes: Change[] = [];
    const left = new Map(this.#read);
    for (const table of TABLES) {
      for (const [id, row] of this.#table(table)) {
        const before = left.get(`${table} ${id}`);
        left.delete(`${table} ${id}`);
        if (before?.row === JSON.stringify(row)) continue;
        const seen = before && { id: before.record.id, if_version: before.record.version };
        if (seen && table !== "messages") changes.push({ op: "replace", ...seen, ...fieldsOf(table, row) });
        // An event is not changed after the fact: another one replaces it.
        if (seen && table === "messages") changes.push({ op: "retire", ...seen });
        if (!seen || table === "messages") {
          const tags = seen ? [tagOf(table), CHANGED] : [tagOf(table)];
          changes.push({ op: "insert", ...fieldsOf(table, row), ...namesOf(table, row), tags });
        }
      }
    }
    for (const { record } of left.values()) changes.push({ op: "retire", id: record.id, if_version: record.version });
    return changes;
  }

  #table(table: Table): Map<string, Row> {
    return this.#db[table];
  }
}

interface Row {
  id: string;
  [field: string]: unknown;
}

/** Return a row from the memory that it is stored in. */
function rowOf(table: Table, record: MemoryRecord): Row {
  const row: Row = { id: "", ...record.metadata };
  for (const name of ["createdAt", "updatedAt"]) if (typeof row[name] === "string") row[name] = new Date(row[name]);
  if (table === "messages") row.content = JSON.stringify(row.content);
  return row;
}

/** Return the fields of a row's memory that change with it. */
function fieldsOf(table: Table, row: Row): { text: string; metadata: { [name: string]: unknown } } {
  const content: unknown = table === "messages" ? JSON.parse(row.content as string) : undefined;
  const metadata = JSON.parse(JSON.stringify(content === undefined ? row : { ...row, content })) as {
    [name: string]: unknown;
  };
  return { text: printable(textsIn(content)), metadata };
}

/** Return the fields of a row's memory by which it is found. */
function namesOf(table: Table, row: Row): Omit<Schemas["InsertOp"], "text" | "op"> {
  const every = { content_type: "structured" as const };
  if (table !== "messages") return { ...every, key: rowKey(table, row.id), kind: "fact", tier: "archival" };
  return {
    ...every,
    kind: "event",
    tier: "episodic",
    stability: "stable",
    session: keyOf(row.thread_id as string),
    speaker: row.role as string,
  };
}

function tagOf(table: Table): string {
  return `mastra-${table}`;
}

function rowKey(table: Table, id: string): string {
  return keyOf(`${table}:${id}`);
}

/** Return what is said in a message, without calls of tools and their results. */
function textsIn(content: unknown): string[] {
  const { parts, content: text } = (content ?? {}) as {
    parts?: Array<{ type: string; text?: string }>;
    content?: string;
  };
  const texts = (parts ?? []).flatMap((each) => (each.type === "text" && each.text ? [each.text] : []));
  return texts.length > 0 || !text ? texts : [text];
}

function printable(texts: string[]): string {
  const text = texts.join("\n").replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g, " ");
  return text.slice(0, TEXT).toWellFormed();
}
