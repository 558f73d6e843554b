/** One candidate: where it comes from, why it is in or out, and what to do about it. */

import { useEffect, useRef, useState } from "preact/hooks";
import { Link } from "wouter-preact";
import { api, ask, commitOf, type Schemas } from "../../api";
import type { Context } from "../../contexts";
import { notifyChanged } from "../../events";
import { useGet } from "../../load";
import { mayChange } from "../../session";
import { rollBack } from "../../undo";
import { Button } from "../../parts/Button";
import { CommitLink } from "../../parts/CommitLink";
import { Dialog } from "../../parts/Dialog";
import { Diff } from "../../parts/Diff";
import { MemoryText } from "../../parts/MemoryText";
import { Tag } from "../../parts/Tag";
import { Time } from "../../parts/Time";
import { say } from "../../parts/Toasts";
import { Who } from "../../parts/Who";
import { said, seen } from "../../parts/seen";
import { toneOf, wordOf } from "./Candidates";
import { textMadeAt } from "./differences";

interface Props {
  candidate: Schemas["Considered"];
  told: Context;
  onClose: () => void;
}

export function Chosen({ candidate, told, onClose }: Props) {
  const waits = candidate.code === "quarantine";
  const blame = useGet(waits || !candidate.text ? null : "/memory/blame/{name}", {
    params: { path: { name: candidate.id } },
  });
  const [open, setOpen] = useState<"" | "correct" | "forget">("");
  const origin = blame.data?.origins.find((each) => each.field === "text");
  const memory = blame.data?.record;
  // What a receipt shows may have been changed since: then its own version says who said it.
  const changedSince = candidate.now !== null;
  const history = useGet(changedSince && !waits ? "/memory/items/{id}/history" : null, {
    params: { path: { id: candidate.id } },
  });
  const made = changedSince ? textMadeAt(history.data?.items ?? [], candidate.version) : origin?.made;
  const actor = changedSince ? made?.details.actor : origin?.actor;
  const [found, setFound] = useState<Schemas["Bisection"] | null>(null);
  const since = async () => {
    const body = {
      query: told.objective,
      contains: candidate.text.split("\n")[0]?.slice(0, 200) ?? "",
      purpose: told.purpose,
    };
    const done = await ask(api.POST("/memory/bisect", { body: body }));
    if (done.ok) setFound(done.data);
    else say(done.problem.detail, { tone: "bad" });
  };
  const live = memory?.status === "active";
  const box = useRef<HTMLElement>(null);
  useEffect(() => box.current?.scrollIntoView({ block: "nearest" }), []);
  return (
    <section ref={box} class="card pad stack lab-chosen" aria-label="Chosen memory">
      <div class="line">
        <Tag tone={toneOf(candidate)}>{candidate.section === null ? "out" : "in"}</Tag>
        <b>{wordOf(candidate)}</b>
        <span class="spread" />
        <Button small tone="quiet" aria-label="Close" onClick={onClose}>
          ×
        </Button>
      </div>
      <p class="lab-chosen-text">
        <MemoryText text={candidate.text || "[erased]"} />
      </p>
      <p class="small soft">{said(candidate.why)}.</p>
      <dl class="facts small">
        {candidate.source ? (
          <>
            <dt>Source</dt>
            <dd>
              <Tag tone={candidate.trust === "web" || candidate.trust === "unknown" ? "warn" : "plain"}>
                {candidate.source}
              </Tag>{" "}
              trusted as {candidate.trust}
            </dd>
          </>
        ) : null}
        {made && actor ? (
          <>
            <dt>Said by</dt>
            <dd>
              <Who name={actor} />, <Time at={made.commit.at} /> in <CommitLink of={made.commit.seq} />
              {made.details.approved_by && made.details.approved_by !== actor ? (
                <>
                  , approved by <Who name={made.details.approved_by} />
                </>
              ) : null}
            </dd>
          </>
        ) : null}
        {changedSince ? (
          <>
            <dt>Now</dt>
            <dd>
              <MemoryText text={candidate.now || "[erased]"} />
              {origin ? (
                <span class="soft">
                  since <CommitLink of={origin.made.commit.seq} />, <Who name={origin.actor} />
                </span>
              ) : null}
            </dd>
          </>
        ) : null}
        {memory?.evidence.length ? (
          <>
            <dt>Evidence</dt>
            <dd class="stack tight">
              {memory.evidence.map((each) => (
                <Link key={each} href={`/sources?${new URLSearchParams({ list: "references", name: each })}`}>
                  {seen(each)}
                </Link>
              ))}
            </dd>
          </>
        ) : null}
        {memory?.derived_from.length ? (
          <>
            <dt>Made from</dt>
            <dd class="stack tight">
              {memory.derived_from.map((each) => (
                <MadeFrom key={each} id={each} />
              ))}
            </dd>
          </>
        ) : null}
        {candidate.tokens === null ? null : (
          <>
            <dt>Tokens</dt>
            <dd class="num">{candidate.tokens}</dd>
          </>
        )}
        {candidate.score === null ? null : (
          <>
            <dt>Score</dt>
            <dd class="num">{candidate.score.toFixed(3)}</dd>
          </>
        )}
        {memory && !live ? (
          <>
            <dt>By now</dt>
            <dd>
              <Tag tone="warn">{memory.status}</Tag>
            </dd>
          </>
        ) : null}
      </dl>
      {found ? (
        <p class="small">
          It came in with <CommitLink of={found.commit.commit.seq} />, <Time at={found.commit.commit.at} />, by{" "}
          {seen(found.commit.details.actor)}: {seen(found.commit.details.reason)}
        </p>
      ) : null}
      <div class="line">
        {mayChange() && memory && live ? (
          <>
            <Button small onClick={() => setOpen("correct")}>
              Correct…
            </Button>
            <Button small tone="no" onClick={() => setOpen("forget")}>
              Forget…
            </Button>
          </>
        ) : null}
        {candidate.section !== null && told.receipt === null && told.objective ? (
          <Button small onClick={() => void since()}>
            When did it come in?
          </Button>
        ) : null}
        <span class="spread" />
        {waits ? (
          <Link href={`/review?at=${candidate.id}`}>Review it</Link>
        ) : (
          <Link href={`/memories/${candidate.id}`}>Open</Link>
        )}
      </div>
      {open && memory ? <Change memory={memory} what={open} onClose={() => setOpen("")} /> : null}
    </section>
  );
}

/** A memory that this one was made from, by its first words. */
function MadeFrom({ id }: { id: string }) {
  const found = useGet("/memory/items/{id}", { params: { path: { id } } });
  return (
    <Link href={`/memories/${id}`}>{found.data ? <MemoryText text={found.data.text} one /> : "another memory"}</Link>
  );
}

function Change({
  memory,
  what,
  onClose,
}: {
  memory: Schemas["Record"];
  what: "correct" | "forget";
  onClose: () => void;
}) {
  const [text, setText] = useState(memory.text);
  const [reason, setReason] = useState("");
  const [busy, setBusy] = useState(false);
  const correct = what === "correct";
  const ready = reason.trim() !== "" && (!correct || (text.trim() !== "" && text !== memory.text));
  const send = async () => {
    if (!ready || busy) return;
    setBusy(true);
    const path = { id: memory.id };
    const now = await ask(api.GET("/memory/items/{id}", { params: { path } }));
    if (!now.ok || now.data.version !== memory.version) {
      setBusy(false);
      return say(now.ok ? "It was changed meanwhile. Close this and look again." : now.problem.detail, { tone: "bad" });
    }
    const header = { "If-Match": now.etag ?? "*" };
    // What the owner says rests on the owner's word, not on where the text was from.
    const done = correct
      ? await ask(
          api.PATCH("/memory/items/{id}", {
            params: { path, header },
            body: { text, reason, source: "operator", evidence: [] },
          }),
        )
      : await ask(api.DELETE("/memory/items/{id}", { params: { path, header, query: { reason } } }));
    setBusy(false);
    if (!done.ok) return say(done.problem.detail, { tone: "bad" });
    const commit = commitOf(done.data);
    notifyChanged();
    say(correct ? "Corrected. The prompt is compiled again." : "Forgotten. The prompt is compiled again.", {
      undo: commit ? () => rollBack(commit) : undefined,
    });
    onClose();
  };
  return (
    <Dialog
      title={correct ? "Correct this memory" : "Forget this memory"}
      wide
      onClose={onClose}
      onSubmit={() => void send()}
      foot={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" tone={correct ? "go" : "no"} busy={busy} disabled={!ready}>
            {correct ? "Correct" : "Forget"}
          </Button>
        </>
      }
    >
      {correct ? (
        <>
          <label class="field">
            <span>What is true</span>
            <textarea rows={4} value={text} onInput={(event) => setText(event.currentTarget.value)} />
          </label>
          {text === memory.text ? null : <Diff before={memory.text} after={text} />}
        </>
      ) : (
        <p>
          <MemoryText text={memory.text} />
        </p>
      )}
      <label class="field">
        <span>Reason (recorded in the journal)</span>
        <input value={reason} maxLength={1000} required onInput={(event) => setReason(event.currentTarget.value)} />
      </label>
      <p class="small soft">It stays in the history, and one click takes this back.</p>
    </Dialog>
  );
}
