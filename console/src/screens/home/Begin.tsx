/** What there is to do with an empty store: connect an agent, take a file in, write a memory. */

import { useState } from "preact/hooks";
import { Link } from "wouter-preact";
import { api, ask, csrf } from "../../api";
import { notifyChanged } from "../../events";
import { Button } from "../../parts/Button";
import { Command } from "../../parts/Command";
import { counted } from "../../parts/Contain";
import { say } from "../../parts/Toasts";
import { seen } from "../../parts/seen";

export function Begin() {
  return (
    <div class="begin">
      <section class="card pad stack" aria-label="Connect an agent">
        <h2>Connect an agent</h2>
        <p class="soft">
          Run this line on this machine. For another program put its name in place of <code>claude</code>:{" "}
          <code>codex</code>, <code>gemini</code>, <code>cursor</code>, <code>vscode</code>.
        </p>
        <Command text="keepward connect claude" />
        <p class="soft small">
          For an agent elsewhere, <Link href="/tokens">make a token</Link>.
        </p>
      </section>
      <section class="card pad stack" aria-label="Import a file">
        <h2>Import a file</h2>
        <p class="soft">Memories of another program, a talk, or a text: the form is recognised.</p>
        <Import />
      </section>
      <section class="card pad stack" aria-label="Write a memory">
        <h2>Write a memory</h2>
        <Write />
      </section>
    </div>
  );
}

function Write() {
  const [text, setText] = useState("");
  const [busy, setBusy] = useState(false);
  const send = async () => {
    if (!text.trim() || busy) return;
    setBusy(true);
    const done = await ask(
      api.POST("/memory/items", { body: { text: text.trim(), reason: "written in the console" } }),
    );
    setBusy(false);
    if (!done.ok) return say(done.problem.detail, { tone: "bad" });
    setText("");
    notifyChanged();
    say("Remembered.");
  };
  return (
    <form
      class="stack"
      onSubmit={(event) => {
        event.preventDefault();
        void send();
      }}
    >
      <label class="field">
        <span>What agents are to know</span>
        <textarea
          rows={3}
          value={text}
          dir="auto"
          placeholder="Ana prefers tabs"
          onInput={(event) => setText(event.currentTarget.value)}
        />
      </label>
      <div>
        <Button type="submit" tone="go" busy={busy} disabled={!text.trim()}>
          Remember it
        </Button>
      </div>
    </form>
  );
}

interface Taken {
  new: number;
  same: number;
  waiting: number;
  refused: number;
}

function Import() {
  const [file, setFile] = useState<File | null>(null);
  const [busy, setBusy] = useState(false);
  const [told, setTold] = useState("");
  const send = async () => {
    if (!file || busy) return;
    setBusy(true);
    setTold(await imported(file));
    setBusy(false);
    notifyChanged();
  };
  return (
    <form
      class="stack"
      onSubmit={(event) => {
        event.preventDefault();
        void send();
      }}
    >
      <label class="field">
        <span>File</span>
        <input type="file" onChange={(event) => setFile(event.currentTarget.files?.[0] ?? null)} />
      </label>
      <div>
        <Button type="submit" busy={busy} disabled={!file}>
          Import it
        </Button>
      </div>
      {told ? (
        <p role="status" class="small">
          {seen(told)}
        </p>
      ) : null}
    </form>
  );
}

/** Send a file; returns what came of it, as a sentence. */
async function imported(file: File): Promise<string> {
  try {
    const answer = await fetch(
      `/memory/import?${new URLSearchParams({ name: file.name.replaceAll("/", " ") || "file" })}`,
      {
        method: "POST",
        credentials: "same-origin",
        headers: { "Content-Type": "text/plain", ...(csrf.value ? { "Keepward-Csrf": csrf.value } : {}) },
        body: await file.text(),
      },
    );
    const lines = (await answer.text())
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as Record<string, unknown>);
    const last = lines.at(-1) ?? {};
    if (!answer.ok)
      return typeof last["detail"] === "string" ? last["detail"] : `The server answered ${answer.status}.`;
    const error = last["error"] as { detail?: string } | undefined;
    if (error) return error.detail ?? "The import stopped.";
    const summary = (last["summary"] ?? {}) as Partial<Taken> & Record<string, unknown>;
    return summarised(summary);
  } catch {
    return "The file could not be sent.";
  }
}

function summarised(summary: Record<string, unknown>): string {
  const counts = Object.entries(summary).filter(
    (entry): entry is [string, number] => typeof entry[1] === "number" && entry[1] > 0,
  );
  return counts.length
    ? counts.map(([name, count]) => `${name.replaceAll("_", " ")}: ${counted(count, "line")}`).join(", ")
    : "Nothing in it was new.";
}
