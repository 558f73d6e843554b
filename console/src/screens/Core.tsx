/** Core: what stands in every prompt, block by block, with its budget, its editor and its history. */

import "./core.css";
import { useEffect, useState } from "preact/hooks";
import { Link } from "wouter-preact";
import { type Answer, api, ask, commitOf, type Outcome, type Schemas } from "../api";
import { useAddress } from "../address";
import { useKeys } from "../keys";
import { notifyChanged } from "../events";
import { noteOf, previewed } from "../contexts";
import { useGet, useLoad } from "../load";
import { mayChange } from "../session";
import { rollBack } from "../undo";
import { BLOCKS } from "../words";
import { Button } from "../parts/Button";
import { Command } from "../parts/Command";
import { CommitLink } from "../parts/CommitLink";
import { Diff } from "../parts/Diff";
import { MemoryText } from "../parts/MemoryText";
import { Meter } from "../parts/Meter";
import { Page } from "../parts/Page";
import { Shown } from "../parts/States";
import { Tag } from "../parts/Tag";
import { Time } from "../parts/Time";
import { say } from "../parts/Toasts";
import { Who } from "../parts/Who";
import { said, seen } from "../parts/seen";

type Block = Schemas["CoreBlock"];

// Sections of a context that do not depend on the question, and a budget that has room for them.
const EVERYWHERE = new Set(["identity", "core"]);
const ENOUGH = 100_000;

export function Core() {
  const address = useAddress();
  const core = useGet("/memory/core");
  const blocks = core.data?.blocks ?? [];
  const chosen = address.get("block") || blocks[0]?.key || "";
  const move = (by: number) => {
    const at = blocks.findIndex((each) => each.key === chosen);
    const next = blocks[Math.min(blocks.length - 1, Math.max(0, at + by))];
    if (!next) return;
    address.set({ block: next.key });
    document.getElementById(`block-${next.key}`)?.scrollIntoView({ block: "nearest" });
  };
  const editable = blocks.find((each) => each.key === chosen && mayEdit(each));
  useKeys("Core", {
    j: { does: "Next block", run: () => move(1) },
    k: { does: "Block before", run: () => move(-1) },
    e: editable ? { does: "Edit the block", run: () => address.set({ block: chosen, open: "edit" }) } : null,
    h: { does: "History of the block", run: () => address.set({ block: chosen, open: "history" }) },
  });
  // A compiled context has headings too, which the budgets of blocks do not count.
  const prompt = useLoad(blocks.length ? "/memory/compile of nothing" : "", () =>
    previewed({ objective: "", budget_tokens: ENOUGH, purpose: "answer" }),
  );
  const used = prompt.data?.sections
    .filter((each) => EVERYWHERE.has(each.name))
    .reduce((sum, each) => sum + each.tokens, 0);
  const lede =
    used === undefined
      ? "what stands in every prompt"
      : `${used.toLocaleString()} tokens in every prompt, with their headings`;
  return (
    <Page title="Core" lede={lede} json={core.url}>
      <Shown of={core} rows={6}>
        {(data) => (
          <div class="core-blocks">
            {data.notes.map((each) => (
              <div key={each} class="banner">
                {said(noteOf(each))}
              </div>
            ))}
            {data.blocks.map((each) => (
              <BlockCard
                key={each.key}
                block={each}
                on={each.key === chosen}
                open={each.key === chosen ? address.get("open") : ""}
                onOpen={(open) => address.set({ block: each.key, open })}
              />
            ))}
          </div>
        )}
      </Shown>
    </Page>
  );
}

interface Draft {
  text: string;
  reason: string;
  base: number | null;
}

/** What was written and not saved, by block: it waits until it is saved or given up, wherever one goes meanwhile. */
const drafts = new Map<string, Draft>();

function mayEdit(block: Block): boolean {
  return mayChange() && block.key !== "persona";
}

function BlockCard({
  block,
  on,
  open,
  onOpen,
}: {
  block: Block;
  on: boolean;
  open: string;
  onOpen: (open: string) => void;
}) {
  const memory = block.memory;
  return (
    <section id={`block-${block.key}`} class={`card pad core-block ${on ? "on" : ""}`} aria-label={block.key}>
      <div class="line">
        <h2>{seen(BLOCKS[block.key]?.word ?? block.key)}</h2>
        <span class="soft small">{BLOCKS[block.key]?.means ?? "a block of your own"}</span>
        <span class="spread" />
        {memory && memory.trust !== "owner" ? (
          <Tag tone="warn" title="Least trusted of who wrote it">
            {memory.trust}
          </Tag>
        ) : null}
        <span class="small soft num">
          {block.tokens} of {block.budget} tokens
        </span>
      </div>
      <Meter value={block.tokens} max={block.budget} label={`Budget of ${block.key}`} />
      {open === "edit" && mayEdit(block) ? (
        <Editor block={block} onDone={() => onOpen("")} />
      ) : (
        <>
          {block.key === "persona" && mayChange() ? (
            <Command
              does="Show the text; `keepward identity propose -f FILE` writes a new one"
              text="keepward identity"
            />
          ) : null}
          {block.text ? (
            <p class="core-text">
              <MemoryText text={block.text} />
            </p>
          ) : (
            <p class="faint">{block.key === "persona" && block.tokens ? "From the identity file." : "Empty"}</p>
          )}
          <div class="line small soft">
            {memory ? (
              <span>
                version {memory.version}, <Who name={memory.text_by} />, <Time at={memory.text_at} short />
              </span>
            ) : null}
            <span class="spread" />
            {block.id ? <Link href={`/memories/${block.id}`}>Open</Link> : null}
            {block.id ? (
              <Button
                small
                tone="quiet"
                aria-expanded={open === "history"}
                onClick={() => onOpen(open === "history" ? "" : "history")}
              >
                History
              </Button>
            ) : null}
            {mayEdit(block) ? (
              <Button small onClick={() => onOpen("edit")} hint={on ? "e" : undefined}>
                {block.text ? "Edit" : "Write"}
              </Button>
            ) : null}
          </div>
          {open === "history" && block.id ? <History id={block.id} /> : null}
        </>
      )}
    </section>
  );
}

/** Return about how many tokens a text has: as many a character as the block has, or one for four characters. */
function estimate(text: string, block: Block): number {
  const before = block.text ?? "";
  if (text === before) return block.tokens;
  return Math.ceil(text.length * (before && block.tokens ? block.tokens / before.length : 0.25));
}

function Editor({ block, onDone }: { block: Block; onDone: () => void }) {
  const [draft] = useState(drafts.get(block.key));
  const [text, setText] = useState(draft?.text ?? block.text ?? "");
  const [reason, setReason] = useState(draft?.reason ?? "");
  const [busy, setBusy] = useState(false);
  // The version that was there when editing began: another's change in between is not overwritten.
  const [base] = useState(draft ? draft.base : block.version);
  const tokens = estimate(text, block);
  const over = tokens > block.budget;
  const same = text === (block.text ?? "");
  const moved = block.version !== base;
  useEffect(() => {
    if (text === (block.text ?? "") && !reason) drafts.delete(block.key);
    else drafts.set(block.key, { text, reason, base });
    // A new version of the block does not change the draft.
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [text, reason]);
  const giveUp = () => {
    drafts.delete(block.key);
    onDone();
  };
  const save = async () => {
    setBusy(true);
    const done = await saved(block, text, reason || "edited in the console", base);
    setBusy(false);
    if (!done.ok) return say(done.problem.detail, { tone: "bad" });
    const commit = commitOf(done.data);
    notifyChanged();
    say(`${block.key} was changed; it stands in every prompt from now on.`, {
      undo: commit ? () => rollBack(commit) : undefined,
    });
    giveUp();
  };
  return (
    <form
      class="stack editor"
      onSubmit={(event) => {
        event.preventDefault();
        if (!same && !busy) void save();
      }}
    >
      {draft ? (
        <p class="soft small" role="status">
          This is what you wrote before and did not save. Cancel gives it up.
        </p>
      ) : null}
      {moved ? (
        <div class="banner" role="alert">
          Somebody changed this block meanwhile. Cancel to see what it says now.
        </div>
      ) : null}
      <label class="field">
        <span>Text of {block.key}</span>
        <textarea
          rows={5}
          value={text}
          ref={(box) => {
            if (box && !box.dataset["seen"]) {
              box.dataset["seen"] = "1";
              box.focus();
            }
          }}
          onInput={(event) => setText(event.currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key === "Escape") onDone();
            if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) event.currentTarget.form?.requestSubmit();
          }}
        />
      </label>
      <Meter value={tokens} max={block.budget} label={`Tokens of the edit of ${block.key}`} />
      <p class={`small num ${over ? "bad" : "soft"}`} role="status">
        about {tokens} of {block.budget} tokens
        {over ? `: ${tokens - block.budget} too many` : `, ${block.budget - tokens} left`}
        {same ? "" : ` (${tokens - block.tokens >= 0 ? "+" : "−"}${Math.abs(tokens - block.tokens)})`}
      </p>
      {same ? null : <Diff before={block.text} after={text} />}
      <label class="field">
        <span>Reason (recorded in the journal)</span>
        <input
          value={reason}
          maxLength={1000}
          placeholder="edited in the console"
          onInput={(event) => setReason(event.currentTarget.value)}
        />
      </label>
      <div class="line">
        <span class="spread" />
        <Button onClick={giveUp}>Cancel</Button>
        <Button type="submit" tone="go" busy={busy} disabled={same || moved || !text.trim()}>
          Save
        </Button>
      </div>
    </form>
  );
}

async function saved(block: Block, text: string, reason: string, base: number | null): Promise<Answer<Outcome>> {
  if (block.id === null) {
    return ask(api.POST("/memory/items", { body: { text, tier: "core", key: block.key, reason } }));
  }
  const path = { id: block.id };
  const now = await ask(api.GET("/memory/items/{id}", { params: { path } }));
  if (!now.ok) return now;
  const header = { "If-Match": now.etag ?? "*" };
  const body = { text, reason, ...(base === null || now.data.version === base ? {} : { if_version: base }) };
  return ask(api.PATCH("/memory/items/{id}", { params: { path, header }, body: body }));
}

function History({ id }: { id: string }) {
  const versions = useGet("/memory/items/{id}/history", { params: { path: { id } } });
  return (
    <Shown of={versions}>
      {(data) => (
        <ol class="core-versions">
          {[...data.items].reverse().map((each) => (
            <li key={each.record.version} class="stack">
              <div class="line small soft">
                <b>version {each.record.version}</b>
                <span>
                  <Who name={each.details.actor} />
                  {each.details.approved_by ? (
                    <>
                      , approved by <Who name={each.details.approved_by} />
                    </>
                  ) : null}
                </span>
                <Time at={each.commit.at} />
                <span class="spread" />
                <CommitLink of={each.commit.seq} />
              </div>
              {each.details.reason ? <p class="small soft">{seen(each.details.reason)}</p> : null}
              <Diff before={each.before?.text} after={each.record.text} />
            </li>
          ))}
        </ol>
      )}
    </Shown>
  );
}
