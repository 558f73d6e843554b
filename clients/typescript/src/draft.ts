/** Changes that are collected here and sent to the server together. */

import { InvalidInput } from "./errors.js";
import type { Change, NewMemory, Outcome } from "./values.js";

/** A draft; `Handle.draft` makes one. Nothing is stored before `send`. */
export class Draft {
  readonly #send: (changes: Change[]) => Promise<Outcome>;
  #changes: Change[] | null = [];

  constructor(send: (changes: Change[]) => Promise<Outcome>) {
    this.#send = send;
  }

  /** How many changes are staged. */
  get length(): number {
    return this.#changes?.length ?? 0;
  }

  /** Stage a new memory; return its id, which later changes of the draft may name. */
  insert(text: string, fields: Omit<NewMemory, "text"> = {}): string {
    const id = newId();
    this.stage({ op: "insert", id, text, ...fields });
    return id;
  }

  /** Stage any change, such as `{ op: "retire", id }` or `{ op: "supersede", id, by }`. */
  stage(change: Change): void {
    if (this.#changes === null) throw new InvalidInput("the draft was sent: make another one");
    this.#changes.push(change);
  }

  /** Drop all staged changes. */
  discard(): void {
    this.#changes = [];
  }

  /** Propose all staged changes; null where nothing was staged. The draft takes no more changes. */
  async send(): Promise<Outcome | null> {
    const changes = this.#changes ?? [];
    this.#changes = null;
    return changes.length === 0 ? null : this.#send(changes);
  }
}

/** Return a new id, a UUIDv7, for an `insert` that other changes of the same proposal name. */
export function newId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  new DataView(bytes.buffer).setBigUint64(
    0,
    (BigInt(Date.now()) << 16n) | 0x7000n | (BigInt(bytes[6] ?? 0) << 4n) | BigInt((bytes[7] ?? 0) & 15),
  );
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80;
  const hex = Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
}
