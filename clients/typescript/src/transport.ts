/**
 * One request to a server, with retries and errors.
 *
 * - A token is sent only over TLS or to this machine, unless the caller sets `allowInsecure`; no redirect is followed.
 * - After a lost answer, a request is repeated only if it changes nothing or has an idempotency key. No change is made
 *   twice.
 * - It uses `fetch` and other parts of every browser, and nothing of Node.
 */

import {
  InvalidInput,
  KeepwardError,
  StoreError,
  StoreUnavailable,
  errorOf,
  foreignAnswer,
  type Problem,
} from "./errors.js";

export interface ClientOptions {
  /** Tenant and scope; default: those of the token. */
  tenant?: string;
  scope?: string;
  /** Seconds for each step of a request, and the longest wait that a server may ask for. Default: 30. */
  timeout?: number;
  /** How often a request that may be repeated is repeated. Default: 2. */
  retries?: number;
  /** Let the token go over plain HTTP to another machine. */
  allowInsecure?: boolean;
  /** A `fetch` of your own, such as one with a proxy. */
  fetch?: typeof globalThis.fetch;
  /** Ends every request of the client. */
  signal?: AbortSignal;
}

export interface Sending {
  query?: Record<string, string | number | boolean | null | undefined>;
  /** JSON of the body. */
  json?: object;
  /** Another body, with its type in `headers`. */
  body?: BodyInit | undefined;
  headers?: Record<string, string>;
  /** `keyed`: again, under its idempotency key; `repeats`: again; `once`: again only after a 429. */
  sent: "keyed" | "repeats" | "once";
}

/** The headers that name a handle. */
export const HANDLE_HEADERS = {
  tenant: "Keepward-Tenant",
  scope: "Keepward-Scope",
  user: "Keepward-User",
  names: "Keepward-User-Names",
  agent: "Keepward-Agent",
  project: "Keepward-Project",
  branch: "Keepward-Branch",
} as const;

export type HandleNames = Partial<Record<keyof typeof HANDLE_HEADERS, string>>;

/** The error of an answer from another server than Keepward, or from another version. */
export const UNREADABLE = "the server's answer cannot be read: it speaks another version, or it is no Keepward server";
/** Seconds before the first repetition; the delay doubles each time. */
export const RETRY_DELAY = 0.1;
const RETRYABLE = new Set([429, 502, 503, 504]);
/** Errors after which the request may be repeated: the server was out of reach, or its answer was lost. */
const LOST = new WeakSet<object>();
const ADDRESS = "a server's address looks like http://127.0.0.1:8321";

export class Transport {
  readonly url: string;
  readonly timeout: number;
  readonly retries: number;
  readonly signal: AbortSignal | undefined;
  readonly #headers: Record<string, string>;
  readonly #fetch: typeof globalThis.fetch;

  constructor(url: string, token: string | undefined, options: ClientOptions) {
    this.url = validUrl(url, token, options.allowInsecure ?? false);
    this.timeout = options.timeout ?? 30;
    this.retries = options.retries ?? 2;
    this.signal = options.signal;
    if (!(this.timeout > 0)) throw new InvalidInput("`timeout` is a number of seconds above 0");
    if (!(Number.isInteger(this.retries) && this.retries >= 0))
      throw new InvalidInput("`retries` is an integer, 0 or more");
    this.#headers = token === undefined ? {} : { Authorization: `Bearer ${token}` };
    // A browser's `fetch` has to be called as a function of the page.
    const given = options.fetch;
    this.#fetch = given ?? ((input, init) => globalThis.fetch(input, init));
  }

  /** Send one request and return its answer, as text. A refusal by a gate is an answer, not an error. */
  async request(
    method: string,
    path: string,
    names: HandleNames,
    sending: Sending,
  ): Promise<{ text: string; status: number }> {
    return this.#repeated(method, path, names, sending, (response) => response.text(), "application/json");
  }

  /** Send one request and return its answer, as bytes. */
  async bytes(path: string, names: HandleNames): Promise<Uint8Array<ArrayBuffer>> {
    const read = async (response: Response) => new Uint8Array(await response.arrayBuffer());
    return (await this.#repeated("GET", path, names, { sent: "repeats" }, read, "*/*")).text;
  }

  /**
   * Send one request and return its answer, whose body is still to come; it is never repeated.
   *
   * `quiet` is the number of seconds without a byte after which the connection is lost.
   */
  async stream(
    method: string,
    path: string,
    names: HandleNames,
    sending: Sending,
    { quiet = this.timeout, signal }: { quiet?: number; signal?: AbortSignal | undefined } = {},
  ): Promise<AsyncGenerator<string, void>> {
    const clock = new Clock(this.signal, signal);
    try {
      clock.start(this.timeout);
      const response = await this.#send(method, path, names, sending, clock.signal);
      if (response.status >= 300 || !response.body)
        throw problemOf(response.status, typeOf(response), await response.text());
      return this.#lines(response.body, clock, quiet);
    } catch (error) {
      clock.stop();
      throw this.#explained(error, clock);
    }
  }

  /** Wait some seconds. */
  async wait(seconds: number, signal?: AbortSignal): Promise<void> {
    const ends = AbortSignal.any([this.signal, signal].filter((each) => each !== undefined));
    ends.throwIfAborted();
    await new Promise<void>((resolve, reject) => {
      const aborted = () => {
        clearTimeout(timer);
        reject(ends.reason as Error);
      };
      const timer = setTimeout(() => {
        ends.removeEventListener("abort", aborted);
        resolve();
      }, seconds * 1000);
      ends.addEventListener("abort", aborted, { once: true });
    });
  }

  async #repeated<T>(
    method: string,
    path: string,
    names: HandleNames,
    sending: Sending,
    read: (response: Response) => Promise<T>,
    accept: string,
  ): Promise<{ text: T; status: number }> {
    const headers: Record<string, string> = { Accept: accept, ...sending.headers };
    if (sending.sent === "keyed") headers["Idempotency-Key"] = randomKey();
    const body = sending.json === undefined ? sending.body : encoded(sending.json);
    if (sending.json !== undefined) headers["Content-Type"] = "application/json";
    for (let attempt = 0; ; attempt++) {
      const last = attempt === this.retries;
      let pause = RETRY_DELAY * 2 ** attempt;
      const clock = new Clock(this.signal);
      try {
        clock.start(this.timeout);
        const response = await this.#send(method, path, names, { ...sending, body, headers }, clock.signal);
        clock.start(this.timeout);
        const wait = retryDelay(response, pause);
        // A 429 means that nothing was done.
        const ends =
          wait === undefined || last || wait > this.timeout || (sending.sent === "once" && response.status !== 429);
        if (ends && response.status < 300) return { text: await read(response), status: response.status };
        const text = await response.text();
        if (ends) return { text: decided(response, text) as T, status: response.status };
        pause = wait;
      } catch (error) {
        const explained = this.#explained(error, clock);
        if (last || sending.sent === "once" || !LOST.has(explained as object)) throw explained;
      } finally {
        clock.stop();
      }
      await this.wait(pause);
    }
  }

  async #send(
    method: string,
    path: string,
    names: HandleNames,
    sending: Sending,
    signal: AbortSignal,
  ): Promise<Response> {
    const named = Object.entries(names).map(([name, value]) => [HANDLE_HEADERS[name as keyof HandleNames], value]);
    const given = Object.entries(sending.query ?? {}).filter(([, value]) => value !== null && value !== undefined);
    const query = new URLSearchParams(given.map(([name, value]) => [name, String(value)]));
    const request: RequestInit = {
      method,
      headers: { ...(Object.fromEntries(named) as Record<string, string>), ...sending.headers, ...this.#headers },
      signal,
      // A redirect could send the token to another server, and a session of the console is none of ours.
      redirect: "manual",
      credentials: "omit",
      cache: "no-store",
    };
    if (sending.body !== undefined) request.body = sending.body;
    return this.#fetch(`${this.url}${path}${given.length ? `?${query}` : ""}`, request);
  }

  async *#lines(body: ReadableStream<Uint8Array>, clock: Clock, quiet: number): AsyncGenerator<string, void> {
    const reader = body.getReader();
    const decoder = new TextDecoder();
    let rest = "";
    try {
      for (;;) {
        clock.start(quiet);
        const { done, value } = await reader.read();
        clock.start(0);
        rest += decoder.decode(value, { stream: !done });
        const lines = rest.split("\n");
        rest = lines.pop() ?? "";
        for (const line of lines) yield line.replace(/\r$/, "");
        if (done) break;
      }
      if (rest) yield rest;
    } catch (error) {
      throw this.#explained(error, clock);
    } finally {
      clock.stop();
      // A stream that is no longer read ends at the server as well.
      await reader.cancel().catch(() => undefined);
    }
  }

  /** Return an error of Keepward for what `fetch` throws; one of `LOST` if the request may be repeated. */
  #explained(error: unknown, clock: Clock): unknown {
    if (error instanceof KeepwardError) return error;
    if (clock.late) return lost(`the server at ${this.url} did not answer in time; try again`, { cause: error });
    if (clock.signal.aborted) return clock.signal.reason;
    const code = causeOf(error);
    if (code === "ECONNREFUSED" || code === "ENOTFOUND") {
      return lost(`no server answers at ${this.url}; start one with \`keepward serve\``, { cause: error });
    }
    if (error instanceof TypeError) {
      return lost(`the connection to ${this.url} broke off, or no server answers there; try again`, { cause: error });
    }
    return error;
  }
}

/** Ends a request when the caller wants it, or after some seconds. */
class Clock {
  readonly signal: AbortSignal;
  late = false;
  readonly #own = new AbortController();
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(...ends: Array<AbortSignal | undefined>) {
    this.signal = AbortSignal.any([this.#own.signal, ...ends.filter((each) => each !== undefined)]);
  }

  /** Begin to wait, for so many seconds; 0 waits for nothing. */
  start(seconds: number): void {
    clearTimeout(this.#timer);
    if (seconds === 0) return;
    this.#timer = setTimeout(() => {
      this.late = true;
      this.#own.abort();
    }, seconds * 1000);
  }

  stop(): void {
    clearTimeout(this.#timer);
  }
}

/** Return the text of an answer with a result: the decision of a gate, or the conflicts of a rollback. */
function decided(response: Response, text: string): string {
  const problem = parsedProblem(typeOf(response), text);
  if (problem && ((problem as { outcome?: string }).outcome === "refused" || "applied" in problem)) return text;
  throw problemOf(response.status, typeOf(response), text);
}

function problemOf(status: number, type: string, text: string): KeepwardError {
  const problem = parsedProblem(type, text);
  return problem ? errorOf(problem, status) : foreignAnswer(status);
}

function parsedProblem(type: string, text: string): Problem | undefined {
  if (type !== "application/problem+json") return undefined;
  try {
    const found: unknown = JSON.parse(text);
    return found !== null && typeof found === "object" ? found : undefined;
  } catch {
    return undefined;
  }
}

function typeOf(response: Response): string {
  return (response.headers.get("content-type") ?? "").split(";")[0]?.trim().toLowerCase() ?? "";
}

/** Return the seconds to wait before a repetition; undefined if that would not help. */
function retryDelay(response: Response, pause: number): number | undefined {
  if (!RETRYABLE.has(response.status)) return undefined;
  const after = response.headers.get("retry-after")?.trim() ?? "";
  if (/^\d+$/.test(after)) return Math.max(Number(after), pause);
  // By the server's clock, because this one may differ.
  const seconds = (Date.parse(after) - Date.parse(response.headers.get("date") ?? "")) / 1000;
  return Number.isNaN(seconds) ? pause : Math.max(seconds, pause);
}

function lost(message: string, facts: { cause: unknown }): StoreUnavailable {
  const error = new StoreUnavailable(message, facts);
  LOST.add(error);
  return error;
}

function causeOf(error: unknown): string | undefined {
  const { cause } = error as { cause?: { code?: string; errors?: Array<{ code?: string }> } };
  return cause?.code ?? cause?.errors?.[0]?.code;
}

function randomKey(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function encoded(value: object): string {
  try {
    return JSON.stringify(value);
  } catch (error) {
    throw new InvalidInput("an argument is not a JSON value: texts, numbers, booleans, lists and objects", {
      cause: error,
    });
  }
}

/** Return the value of a JSON answer. */
export function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new StoreError(UNREADABLE, { cause: error });
  }
}

function validUrl(url: string, token: string | undefined, allowInsecure: boolean): string {
  let parts: URL;
  try {
    parts = new URL(url);
  } catch (error) {
    throw new InvalidInput(ADDRESS, { cause: error });
  }
  if (!/^https?:$/.test(parts.protocol) || parts.search || parts.hash) throw new InvalidInput(ADDRESS);
  if (parts.username || parts.password) {
    throw new InvalidInput("the address must not contain a credential: pass the token as the second argument");
  }
  if (token !== undefined) {
    if (!/^[!-~]+$/.test(token)) throw new InvalidInput("the token is not valid; `keepward token create` creates one");
    const here = /^(localhost|127(\.\d+){3}|\[::1\])$/.test(parts.hostname);
    if (parts.protocol === "http:" && !allowInsecure && !here) {
      throw new InvalidInput(
        "the token would be sent unencrypted: use https, connect to the server over loopback, or set allowInsecure " +
          "if the network is safe",
      );
    }
  }
  return parts.href.replace(/\/+$/, "");
}
