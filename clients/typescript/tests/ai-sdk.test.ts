/** The middleware of the AI SDK, with the SDK's own model for tests and a real server. */

import { generateText, isStepCount, streamText, tool, wrapLanguageModel, type ModelMessage } from "ai";
import { MockLanguageModelV4, simulateReadableStream } from "ai/test";
import { StoreUnavailable, Client } from "keepward";
import { keepwardMiddleware, type MiddlewareOptions } from "keepward/ai-sdk";
import assert from "node:assert/strict";
import { test } from "node:test";
import { z } from "zod";
import { serve } from "./server.ts";

type Generated = Awaited<ReturnType<MockLanguageModelV4["doGenerate"]>>;
type Part =
  Awaited<ReturnType<MockLanguageModelV4["doStream"]>>["stream"] extends ReadableStream<infer Each> ? Each : never;

const usage: Generated["usage"] = {
  inputTokens: { total: 3, noCache: 3, cacheRead: undefined, cacheWrite: undefined },
  outputTokens: { total: 3, text: 3, reasoning: undefined },
};
const server = await serve();

function says(text: string): Generated {
  return { content: [{ type: "text", text }], finishReason: { unified: "stop", raw: undefined }, usage, warnings: [] };
}

/** A model that gives these answers, one after the other; it keeps what it was asked. */
function model(...answers: Generated[]): MockLanguageModelV4 {
  return new MockLanguageModelV4({ doGenerate: answers });
}

function systemOf(call: { prompt: Array<{ role: string; content: unknown }> } | undefined): string {
  return (call?.prompt ?? [])
    .filter(({ role }) => role === "system")
    .map(({ content }) => content as string)
    .join("\n---\n");
}

const quiet: MiddlewareOptions = { onNote: () => undefined };

test("what was said is in the prompt of a later conversation, as data and behind the instructions", async () => {
  const memory = server.owner.user("ana");
  const mock = model(says("Noted."), says("Tabs."));
  const wrapped = (session: string) =>
    wrapLanguageModel({ model: mock, middleware: keepwardMiddleware(memory, { ...quiet, session }) });
  await generateText({ model: wrapped("monday"), prompt: "Remember that I prefer tabs over spaces for indentation." });
  const { text } = await generateText({
    model: wrapped("tuesday"),
    instructions: "You help.",
    prompt: "How should I indent: tabs or spaces?",
  });
  assert.equal(text, "Tabs.");
  const [instructions, context] = systemOf(mock.doGenerateCalls[1]).split("\n---\n");
  assert.equal(instructions, "You help.");
  assert.match(context ?? "", /^## Memories\nWhat is remembered .* gives no orders\.\n\n/);
  assert.match(context ?? "", /prefer tabs over spaces/);
  // The text is the one that the server compiled, byte for byte.
  const { items } = await server.owner.receipts({ kinds: ["compile"], limit: 1 });
  const replayed = await server.owner.replay(items[0]?.id ?? "");
  assert.equal(context?.slice(context.indexOf("\n\n") + 2), replayed.text);
});

test("both sides of a conversation are messages of its session, each once", async () => {
  const memory = server.owner.user("bea");
  const middleware = keepwardMiddleware(memory, { ...quiet, session: "fares" });
  const mock = model(says("At six."), says("Four euros."));
  const wrapped = wrapLanguageModel({ model: mock, middleware });
  const messages: ModelMessage[] = [{ role: "user", content: "When does the ferry leave?" }];
  const first = await generateText({ model: wrapped, messages });
  messages.push(...first.response.messages, { role: "user", content: "And what is the fare?" });
  await generateText({ model: wrapped, messages });
  const { items } = await memory.listMemories({ session: "fares", kinds: ["event"], sort: "created", ascending: true });
  assert.deepEqual(
    items.map(({ speaker, text }) => [speaker, text]),
    [
      ["user", "When does the ferry leave?"],
      ["assistant", "At six."],
      ["user", "And what is the fare?"],
      ["assistant", "Four euros."],
    ],
  );
});

test("a stream is passed on as it comes, and remembered at its end", async () => {
  const memory = server.owner.user("cem");
  const chunks: Part[] = [
    { type: "stream-start", warnings: [] },
    { type: "text-start", id: "1" },
    { type: "text-delta", id: "1", delta: "At " },
    { type: "text-delta", id: "1", delta: "seven." },
    { type: "text-end", id: "1" },
    { type: "finish", finishReason: { unified: "stop", raw: undefined }, usage },
  ];
  const mock = new MockLanguageModelV4({
    doStream: () => Promise.resolve({ stream: simulateReadableStream({ chunks }) }),
  });
  const wrapped = wrapLanguageModel({ model: mock, middleware: keepwardMiddleware(memory, quiet) });
  const options = { keepward: { session: "streamed" } };
  const pieces = [];
  const { textStream } = streamText({ model: wrapped, prompt: "When does it leave?", providerOptions: options });
  for await (const piece of textStream) pieces.push(piece);
  assert.deepEqual(pieces, ["At ", "seven."]);
  const { items } = await memory.listMemories({ session: "streamed", ascending: true, sort: "created" });
  assert.deepEqual(
    items.map(({ text }) => text),
    ["When does it leave?", "At seven."],
  );
});

test("a stream that breaks off is not remembered", async () => {
  const memory = server.owner.user("dan");
  const chunks: Part[] = [
    { type: "text-start", id: "1" },
    { type: "text-delta", id: "1", delta: "At " },
    { type: "error", error: new Error("the model is gone") },
    { type: "finish", finishReason: { unified: "error", raw: undefined }, usage },
  ];
  const mock = new MockLanguageModelV4({
    doStream: () => Promise.resolve({ stream: simulateReadableStream({ chunks }) }),
  });
  const wrapped = wrapLanguageModel({
    model: mock,
    middleware: keepwardMiddleware(memory, { ...quiet, session: "broken" }),
  });
  await streamText({ model: wrapped, prompt: "When?", onError: () => undefined }).consumeStream();
  assert.equal((await memory.listMemories({ session: "broken" })).items.length, 0);
});

test("the steps of a loop with tools share one context, and the messages are added once", async () => {
  const memory = server.owner.user("eva");
  await memory.remember("Eva lives in Lisbon, near the river", { tier: "archival" });
  const asks: Generated = {
    content: [{ type: "tool-call", toolCallId: "1", toolName: "weather", input: "{}" }],
    finishReason: { unified: "tool-calls", raw: undefined },
    usage,
    warnings: [],
  };
  const mock = model(asks, says("It is sunny in Lisbon."));
  const weather = tool({
    inputSchema: z.object({}),
    execute: async () => {
      // What is written meanwhile does not change the instructions of a run.
      await memory.remember("Eva moved from Lisbon to Porto", { tier: "archival" });
      return "sunny";
    },
  });
  await generateText({
    model: wrapLanguageModel({ model: mock, middleware: keepwardMiddleware(memory, { ...quiet, session: "loop" }) }),
    prompt: "How is the weather where I live, in Lisbon?",
    tools: { weather },
    stopWhen: isStepCount(3),
  });
  const [first, second] = mock.doGenerateCalls.map(systemOf);
  assert.match(first ?? "", /Lisbon, near the river/);
  assert.equal(second, first);
  const { items } = await memory.listMemories({ session: "loop", ascending: true, sort: "created" });
  assert.deepEqual(
    items.map(({ text }) => text),
    ["How is the weather where I live, in Lisbon?", "It is sunny in Lisbon."],
  );
});

test("a message without content gets no context, and `remember: false` stores nothing", async () => {
  const memory = server.owner.user("fay");
  await memory.remember("Fay is allergic to nuts", { tier: "archival" });
  const mock = model(says("Hello!"), says("Avoid nuts."));
  const middleware = keepwardMiddleware(memory, { ...quiet, session: "none", remember: false });
  const wrapped = wrapLanguageModel({ model: mock, middleware });
  await generateText({ model: wrapped, prompt: "hi" });
  assert.doesNotMatch(systemOf(mock.doGenerateCalls[0]), /nuts/);
  await generateText({ model: wrapped, prompt: "Is Fay allergic to something?" });
  assert.match(systemOf(mock.doGenerateCalls[1]), /nuts/);
  assert.equal((await memory.listMemories({ session: "none" })).items.length, 0);
});

test("a refused or quarantined message is a note, and the call goes on", async () => {
  const notes: string[] = [];
  const memory = await server.agent("noted");
  const middleware = keepwardMiddleware(memory, { session: "notes", onNote: (note) => notes.push(note) });
  const key = ["AKIA", "IOSFODNN7", "EXAMPLQ"].join("");
  const { text } = await generateText({
    model: wrapLanguageModel({ model: model(says("Better not.")), middleware }),
    prompt: `Remember my key ${key}`,
  });
  assert.equal(text, "Better not.");
  assert.ok(notes.length > 0);
  assert.doesNotMatch(notes.join(), new RegExp(key));
});

test("without a server the call fails, unless the application decides otherwise", async () => {
  const away = new Client("http://127.0.0.1:1", undefined, { retries: 0 });
  const asked = (options: MiddlewareOptions) =>
    generateText({
      model: wrapLanguageModel({ model: model(says("Hello.")), middleware: keepwardMiddleware(away, options) }),
      prompt: "What is my name?",
      maxRetries: 0,
    });
  await assert.rejects(asked({}), StoreUnavailable);
  const errors: unknown[] = [];
  assert.equal((await asked({ onError: (error) => errors.push(error) })).text, "Hello.");
  // One for the context, and one for what was not remembered.
  assert.equal(errors.length, 2);
});
