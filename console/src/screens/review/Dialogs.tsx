/** The dialogs of a decision: why it is rejected, other words for it, and what is in a batch. */

import { useRef, useState } from "preact/hooks";
import type { Answer, Problem } from "../../api";
import { get, useLoad } from "../../load";
import { Button } from "../../parts/Button";
import { Dialog } from "../../parts/Dialog";
import { Diff } from "../../parts/Diff";
import { Tag } from "../../parts/Tag";
import { said, seen, written } from "../../parts/seen";
import { Changes } from "./Changes";
import { amend, approveAll, reject } from "./decide";
import { leftOutOf } from "./leftOut";
import { useViewTracking, viewed } from "./viewed";
import { codeName, currentOf, editable, firstWords, headline, proposer, severityOf, type Proposal } from "./labels";

interface Props {
  onClose: () => void;
  /** Called once it was decided. */
  onDone: () => void;
}

const OFFERED = 6;
const LOOKED_AT = 60;

/** Return the reasons that were given lately, the newest first. */
async function reasonsGiven(): Promise<Answer<string[]>> {
  const query = { state: "rejected" as const, limit: 1 };
  const count = await get("/memory/quarantine", { params: { query } });
  if (!count.ok) return count;
  const offset = Math.max(0, (count.data.items.total ?? 0) - LOOKED_AT);
  const found = await get("/memory/quarantine", { params: { query: { ...query, offset, limit: LOOKED_AT } } });
  if (!found.ok) return found;
  const newest = [...found.data.items.shown].sort((one, other) =>
    (other.decided_at ?? "").localeCompare(one.decided_at ?? ""),
  );
  return { ...found, data: [...new Set(newest.flatMap((each) => each.decision ?? []))].slice(0, OFFERED) };
}

export function RejectDialog({ items, onClose, onDone }: Props & { items: readonly Proposal[] }) {
  const [reason, setReason] = useState("");
  const [busy, setBusy] = useState(false);
  const given = useLoad("reasons given", reasonsGiven, null);
  const send = async () => {
    if (!reason.trim() || busy) return;
    setBusy(true);
    const done = await reject(items, reason.trim());
    setBusy(false);
    if (done) onDone();
  };
  const [only] = items;
  return (
    <Dialog
      title={items.length === 1 && only ? `Reject: ${headline(only)}` : `Reject ${items.length} proposals`}
      onClose={onClose}
      onSubmit={() => void send()}
      foot={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" tone="no" busy={busy} disabled={!reason.trim()}>
            Reject
          </Button>
        </>
      }
    >
      <label class="field">
        <span>Reason (the proposer reads it)</span>
        <input autofocus value={reason} maxLength={500} onInput={(event) => setReason(event.currentTarget.value)} />
      </label>
      {given.data?.length ? (
        <div class="line" role="group" aria-label="Reasons given lately">
          {given.data.map((each) => (
            <Button key={each} small onClick={() => setReason(each)}>
              {seen(each)}
            </Button>
          ))}
        </div>
      ) : null}
    </Dialog>
  );
}

export function EditDialog({ item, onClose, onDone }: Props & { item: Proposal }) {
  const out = [...leftOutOf(item.digest)];
  const steps = editable(item).filter((step) => !out.includes(step.after.id));
  const [memory, setMemory] = useState(steps[0]?.after.id ?? "");
  const step = steps.find((each) => each.after.id === memory);
  const proposed = step?.after.text ?? "";
  const now = item.stale ? currentOf(item) : undefined;
  const before = now?.text ?? step?.before?.text;
  const [text, setText] = useState(proposed);
  const [problem, setProblem] = useState<Problem | null>(null);
  const [busy, setBusy] = useState(false);
  // Of a stale proposal the proposed words may be what is wanted, over the current text.
  const same = text === (now ? now.text : proposed);
  const send = async () => {
    if (!text.trim() || same || busy) return;
    setBusy(true);
    const wrong = await amend(item, {
      text,
      memory,
      if_version: now?.version,
      leave_out: out.length ? out : undefined,
    });
    setBusy(false);
    if (wrong) setProblem(wrong);
    else onDone();
  };
  return (
    <Dialog
      wide
      title={`Edit and approve: ${headline(item)}`}
      onClose={onClose}
      onSubmit={() => void send()}
      foot={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" tone="go" busy={busy} disabled={!text.trim() || same}>
            Approve as yours
          </Button>
        </>
      }
    >
      {steps.length > 1 ? (
        <label class="field">
          <span>Which text; the others are approved as they are</span>
          <select
            value={memory}
            onChange={(event) => {
              setMemory(event.currentTarget.value);
              setText(steps.find((each) => each.after.id === event.currentTarget.value)?.after.text ?? "");
            }}
          >
            {steps.map((each) => (
              <option key={each.after.id} value={each.after.id}>
                {written(each.after.key ?? firstWords(each.after.text))}
              </option>
            ))}
          </select>
        </label>
      ) : null}
      <label class="field">
        <span>What is stored, as your own words</span>
        <textarea autofocus rows={5} value={text} dir="auto" onInput={(event) => setText(event.currentTarget.value)} />
      </label>
      {before ? (
        <>
          <h3>The current text, and yours</h3>
          <Diff before={before} after={text} />
        </>
      ) : null}
      {text === proposed || now ? null : (
        <>
          <h3>Proposed, and yours</h3>
          <Diff before={proposed} after={text} />
        </>
      )}
      {problem ? (
        <p class="bad" role="alert">
          {said(problem.detail)}
        </p>
      ) : null}
    </Dialog>
  );
}

interface BatchProps {
  items: readonly Proposal[];
  onClose: () => void;
  /** Called with what was approved; the others go on waiting. */
  onDone: (approved: readonly Proposal[]) => void;
}

/** Approve many that were read: each one was on screen for a moment. */
export function BatchDialog({ items, onClose, onDone }: BatchProps) {
  // How many are approved, while it goes on.
  const [done, setDone] = useState<number | null>(null);
  const busy = done !== null;
  const list = useRef<HTMLOListElement>(null);
  const read = items.filter((each) => viewed.value.has(each.digest));
  const all = read.length === items.length;
  const send = async () => {
    if (!read.length || busy) return;
    setDone(0);
    const approved = await approveAll(read, setDone);
    setDone(null);
    if (approved.length) onDone(approved);
  };
  /** Bring the first one that was not read to the top, so that it and those below it are read. */
  const goToUnread = () => {
    const at = items.findIndex((each) => !viewed.value.has(each.digest));
    list.current?.children[at]?.scrollIntoView({ block: "start" });
    list.current?.focus({ preventScroll: true });
  };
  return (
    <Dialog
      wide
      title={items.length === 1 ? "Approve 1 proposal" : `Approve ${items.length} proposals`}
      onClose={onClose}
      onSubmit={() => void send()}
      foot={
        <>
          <span class="small spread batch-read" role="status">
            {busy ? (
              <>
                <progress value={done} max={read.length} aria-label="Approved" />
                {`${done} of ${read.length} approved.`}
              </>
            ) : (
              <>
                <progress value={read.length} max={items.length} aria-label="Read" />
                {all
                  ? "All were read."
                  : `${read.length} of ${items.length} read, ${items.length - read.length} to go.`}
              </>
            )}
          </span>
          {all ? null : <Button onClick={goToUnread}>Go to the next unread</Button>}
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" tone="go" busy={busy} disabled={!read.length}>
            {all ? `Approve all ${items.length}` : `Approve the ${read.length} read`}
          </Button>
        </>
      }
    >
      <ol ref={list} class="batch" tabIndex={0} aria-label="What is in the batch">
        {items.map((each) => (
          <Item key={each.digest} item={each} />
        ))}
      </ol>
    </Dialog>
  );
}

function Item({ item }: { item: Proposal }) {
  const shown = useViewTracking<HTMLLIElement>(item.digest);
  return (
    <li ref={shown}>
      <div class="line small">
        <b>{seen(headline(item))}</b>
        {viewed.value.has(item.digest) ? <Tag tone="good">seen</Tag> : null}
        <span class="soft">{seen(proposer(item))}</span>
        {item.reasons.map((each) => (
          <Tag key={each.code} tone={severityOf(each)} title={each.detail}>
            {codeName(each.code)}
          </Tag>
        ))}
      </div>
      <Changes steps={item.steps} />
    </li>
  );
}
