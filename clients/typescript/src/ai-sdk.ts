/**
 * Middleware of the Vercel AI SDK: before a call the model is given what is remembered that bears on the message; after
 * it, what was said is added to a session, with the facts in it.
 *
 * - A context is compiled once for each message of the user: the steps of a loop with tools share it.
 * - A quarantined, refused or changed write is a note, and no call fails by it.
 */

import type { LanguageModelMiddleware } from "ai";
import { addTo, contextFor, type AdapterOptions } from "./adapters.js";
import type { Handle } from "./handle.js";
import type { Message } from "./values.js";

export interface MiddlewareOptions extends AdapterOptions {
  /** Name of the conversation; a call can name its own in `providerOptions: { keepward: { session } }`. */
  session?: string;
  /** Whether what was said is remembered. Default: true. */
  remember?: boolean;
  /**
   * Gets an error of the memory: the call then goes on without a context, or without remembering.
   * Default: the call fails with it.
   */
  onError?: (error: unknown) => void;
}

type Params = Parameters<NonNullable<LanguageModelMiddleware["transformParams"]>>[0]["params"];
type Prompted = Params["prompt"][number];

/** How many contexts of loops that still run are remembered. */
const LOOPS = 100;

/**
 * Return middleware for `wrapLanguageModel({ model, middleware })`.
 *
 * `memory` is the handle that reads and writes, such as `client.user("ana")`.
 */
export function keepwardMiddleware(memory: Handle, options: MiddlewareOptions = {}): LanguageModelMiddleware {
  const { remember = true, onError } = options;
  const contexts = new Map<string, Promise<string>>();

  async function tolerant<T>(work: Promise<T>, otherwise: T): Promise<T> {
    if (onError === undefined) return work;
    return work.catch((error: unknown) => {
      onError(error);
      return otherwise;
    });
  }

  /** Return the context of the newest message of the user. */
  function contextOf(params: Params): Promise<string> {
    const users = params.prompt.filter((each) => each.role === "user");
    const objective = textOf(users.at(-1));
    if (!objective) return Promise.resolve("");
    const key = JSON.stringify([sessionOf(params), users.length, objective]);
    const known = params.prompt.at(-1)?.role === "user" ? undefined : contexts.get(key);
    if (known !== undefined) return known;
    const compiled = tolerant(contextFor(memory, objective, options), "");
    contexts.delete(key);
    contexts.set(key, compiled);
    for (const oldest of [...contexts.keys()].slice(0, -LOOPS)) contexts.delete(oldest);
    return compiled;
  }

  function sessionOf(params: Params): string | undefined {
    const { session } = params.providerOptions?.keepward ?? {};
    return typeof session === "string" ? session : options.session;
  }

  /** Add the message that the call answers, and the answer; a call of tools is no answer. */
  async function said(params: Params, answer: string, reason: string): Promise<void> {
    const last = params.prompt.at(-1);
    const asked = last?.role === "user" ? textOf(last) : "";
    const messages: Message[] = [];
    if (asked) messages.push({ role: "user", content: asked });
    if (answer && reason !== "tool-calls") messages.push({ role: "assistant", content: answer });
    if (remember) await tolerant(addTo(memory, messages, { ...options, session: sessionOf(params) }), undefined);
  }

  return {
    specificationVersion: "v4",
    async transformParams({ params }) {
      const context = await contextOf(params);
      if (!context) return params;
      // Behind the instructions of the application, which come first.
      const first = params.prompt.findIndex((each) => each.role !== "system");
      const at = first === -1 ? params.prompt.length : first;
      return { ...params, prompt: params.prompt.toSpliced(at, 0, { role: "system", content: context }) };
    },
    async wrapGenerate({ doGenerate, params }) {
      const result = await doGenerate();
      const answer = result.content.flatMap((each) => (each.type === "text" ? [each.text] : [])).join("");
      await said(params, answer, result.finishReason.unified);
      return result;
    },
    async wrapStream({ doStream, params }) {
      const { stream, ...rest } = await doStream();
      let answer = "";
      let reason: string | undefined;
      const listening: typeof stream = stream.pipeThrough(
        new TransformStream({
          transform(part, controller) {
            if (part.type === "text-delta") answer += part.delta;
            if (part.type === "finish") reason = part.finishReason.unified;
            controller.enqueue(part);
          },
          // A stream that ended too early has no answer to remember.
          async flush() {
            if (reason !== undefined && reason !== "error" && reason !== "interrupted")
              await said(params, answer, reason);
          },
        }),
      );
      return { stream: listening, ...rest };
    },
  };
}

/** Return what a message says, without files and calls of tools. */
function textOf(message: Prompted | undefined): string {
  if (message === undefined) return "";
  if (typeof message.content === "string") return message.content;
  return message.content.flatMap((each) => (each.type === "text" ? [each.text] : [])).join("\n");
}
