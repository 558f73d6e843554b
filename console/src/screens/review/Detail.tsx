/** One proposal: what would change, why it is held, and what bears on the decision. */

import { Link } from "wouter-preact";
import type { Schemas } from "../../api";
import { useGet } from "../../load";
import { queueMoves } from "../../events";
import { mayDecide } from "../../session";
import { Button } from "../../parts/Button";
import { MemoryText } from "../../parts/MemoryText";
import { Shown } from "../../parts/States";
import { Tag } from "../../parts/Tag";
import { Time } from "../../parts/Time";
import { Who } from "../../parts/Who";
import { said, seen } from "../../parts/seen";
import { tierWord } from "../../words";
import { Changes } from "./Changes";
import { useViewTracking, viewed } from "./viewed";
import { leftOutOf, toggleLeftOut } from "./leftOut";
import { snoozed, snoozeTimes } from "./snooze";
import {
  approvable,
  editable,
  gateName,
  grouped,
  headline,
  mayEdit,
  OTHER_APPROVER_NEEDED,
  type Proposal,
  proposerLabel,
} from "./labels";

interface Props {
  id: string;
  /** What the list knows of it, to be shown at once. */
  listed: Proposal | undefined;
  busy: boolean;
  onApprove: (item: Proposal) => void;
  onEdit: (item: Proposal) => void;
  onReject: (item: Proposal) => void;
  /** Hide it until a time; null shows it again. */
  onSnooze: (until: number | null) => void;
  onBack: () => void;
}

export function Detail({ id, listed, ...acts }: Props) {
  const found = useGet("/memory/quarantine/{id}", { params: { path: { id } } }, queueMoves);
  const item = found.data ?? listed;
  if (!item)
    return (
      <article class="card proposal">
        <Shown of={found} rows={6}>
          {() => null}
        </Shown>
      </article>
    );
  return (
    <One
      key={item.digest}
      item={item}
      stored={found.data?.shown}
      back={found.data?.review_context ?? undefined}
      {...acts}
    />
  );
}

function One({
  item,
  stored,
  back,
  busy,
  onApprove,
  onEdit,
  onReject,
  onSnooze,
  onBack,
}: Omit<Props, "id" | "listed"> & {
  item: Proposal;
  stored: Schemas["ProposedStep"][] | undefined;
  back: Schemas["ReviewContext"] | undefined;
}) {
  const what = useViewTracking<HTMLDivElement>(item.digest);
  const after = item.steps[0]?.after;
  const open = item.state === "pending";
  const read = viewed.value.has(item.digest);
  const out = leftOutOf(item.digest);
  const ids = new Set(item.steps.map((step) => step.after.id));
  const taken = [...ids].filter((id) => !out.has(id)).length;
  const parts = open && mayDecide() && approvable(item) && ids.size > 1;
  const hidden = snoozed.value.get(item.id);
  return (
    <article class="card proposal" aria-label={`Proposal: ${headline(item)}`}>
      <div class="proposal-body">
        <Button small tone="quiet" class="back" onClick={onBack}>
          ← Queue
        </Button>
        <header>
          <h2>{seen(headline(item))}</h2>
          <p class="soft small">
            <Who name={proposerLabel(item)} />, <Time at={item.created_at} />
            {after?.session ? (
              <>
                {" "}
                · session{" "}
                <Link href={`/memories?${new URLSearchParams({ session: after.session })}`}>{seen(after.session)}</Link>
              </>
            ) : null}{" "}
            ·{" "}
            <a href={`/memory/quarantine/${item.id}`} target="_blank" rel="noreferrer">
              JSON
            </a>
          </p>
        </header>
        {open ? null : <Settled item={item} />}
        <section class="why" aria-label="Reasons to wait">
          <b>Why it waits for a person</b>
          <ul>
            {grouped(item.reasons).map((each) => (
              <li key={each.text}>
                {said(each.text)}
                {each.signs.length ? <span class="soft">: {each.signs.join(", ")}</span> : null}
                {each.count > 1 && !each.signs.length ? <span class="soft num"> ({each.count} times)</span> : null}
              </li>
            ))}
          </ul>
          <p class="small soft">
            {[...new Set(item.reasons.map((each) => each.gate))].map((gate) => (
              <span key={gate}>
                <Tag>{gateName(gate)}</Tag> {back?.meaning[gate] ?? ""}{" "}
              </span>
            ))}
          </p>
        </section>
        {item.stale ? <Stale item={item} /> : null}
        <div ref={what} class="stack">
          {item.stale ? null : (
            <Changes
              steps={item.steps}
              flagged={back?.flagged}
              leftOut={out}
              onToggle={parts ? (memory) => toggleLeftOut(item.digest, memory) : undefined}
            />
          )}
        </div>
        <dl class="facts">
          {item.steps.some((step) => step.before) ? (
            <>
              <dt>{item.steps.length === 1 ? "Memory" : "Memories"}</dt>
              <dd>
                <Touched steps={item.steps} />
              </dd>
            </>
          ) : null}
          <dt>Reason given</dt>
          <dd>{seen(item.reason)}</dd>
          <dt>Comes from</dt>
          <dd>
            {after ? (
              <>
                {seen(after.source)}; once approved it counts as said by: {after.trust}
              </>
            ) : null}
          </dd>
          <dt>Evidence</dt>
          <dd>
            <Evidence of={back?.evidence} named={after?.evidence ?? []} />
          </dd>
          <dt>Similar</dt>
          <dd>
            <Similar of={back?.similar} />
          </dd>
          {back?.reached ? (
            <>
              <dt>Seen by</dt>
              <dd>
                <Reached of={back.reached} />
              </dd>
            </>
          ) : null}
          <dt>If approved</dt>
          <dd>
            {after ? (
              <>
                {after.kind} · {tierWord(after.tier)} · {seen(after.scope)} · confidence {after.confidence}
                {after.sensitivity === "sensitive" ? " · sensitive" : ""}
              </>
            ) : null}
          </dd>
        </dl>
        <details class="small">
          <summary>All that would be stored</summary>
          <p class="soft mono">digest {item.digest}</p>
          {(stored ?? []).map((each) => (
            <div key={each.id} class="proposal-words mono">
              <MemoryText text={each.payload} limit={8_000} />
            </div>
          ))}
        </details>
      </div>
      {open && mayDecide() ? (
        <div class="proposal-acts">
          {approvable(item) ? (
            <Button tone="go" hint="a" busy={busy} aria-disabled={!read || !taken} onClick={() => onApprove(item)}>
              {taken < ids.size ? `Approve ${taken} of ${ids.size}` : "Approve"}
            </Button>
          ) : item.may_approve ? null : (
            <span class="soft small">{OTHER_APPROVER_NEEDED}</span>
          )}
          {mayEdit(item) ? (
            <Button hint="e" busy={busy} onClick={() => onEdit(item)}>
              {item.stale ? "Edit against the current text" : "Edit and approve"}
            </Button>
          ) : null}
          {item.may_approve && !editable(item).length ? <span class="soft small">It has no text to edit.</span> : null}
          {parts ? (
            <span class="soft small">
              {taken ? "Untick a change to leave it out." : "Every change is left out: reject it instead."}
            </span>
          ) : null}
          <span class="spread" />
          <SnoozeMenu id={item.id} until={hidden} onSnooze={onSnooze} />
          <Button tone="no" hint="r" busy={busy} onClick={() => onReject(item)}>
            {item.stale ? "Reject as outdated…" : "Reject…"}
          </Button>
        </div>
      ) : null}
    </article>
  );
}

function SnoozeMenu({ id, until, onSnooze }: { id: string; until: number | undefined; onSnooze: Props["onSnooze"] }) {
  if (until !== undefined)
    return (
      <>
        <span class="soft small">
          snoozed until <Time at={new Date(until).toISOString()} />
        </span>
        <Button onClick={() => onSnooze(null)}>Show again</Button>
      </>
    );
  return (
    <select
      key={id}
      class="snooze"
      aria-label="Snooze"
      value=""
      onChange={(event) => onSnooze(Number(event.currentTarget.value))}
    >
      <option value="">Snooze…</option>
      {snoozeTimes(new Date()).map(([title, time]) => (
        <option key={title} value={time}>
          {title}
        </option>
      ))}
    </select>
  );
}

/** A stale proposal: what its memory said when it was made, what that says now, and what is proposed. */
function Stale({ item }: { item: Proposal }) {
  return (
    <section class="stale" aria-label="Changed since">
      <p>
        <Tag tone="warn">outdated</Tag> Its memory has changed since it was proposed.
      </p>
      {item.steps.map((step) => {
        const now = item.current.find((each) => each.id === step.after.id);
        return (
          <dl key={step.after.id} class="facts">
            <dt>Then</dt>
            <dd>
              <MemoryText text={step.before?.text ?? ""} />
            </dd>
            <dt>Now</dt>
            <dd>
              {now ? (
                <>
                  <MemoryText text={now.text} />{" "}
                  <span class="soft small">
                    version {now.version}, <Who name={now.text_by} />, <Time at={now.text_at} />
                    {now.status === "active" ? "" : `, ${now.status}`}
                  </span>
                </>
              ) : (
                <span class="faint">{item.current.length ? "as it was" : "it cannot be shown"}</span>
              )}
            </dd>
            <dt>Proposed</dt>
            <dd>
              <MemoryText text={step.after.text ?? ""} />
            </dd>
          </dl>
        );
      })}
    </section>
  );
}

// Memories of one proposal that are linked.
const LINKED = 12;

/** The memories that it would change, each with its history a click away. */
function Touched({ steps }: { steps: Proposal["steps"] }) {
  const known = steps.filter((step) => step.before);
  return (
    <ul class="bare">
      {known.slice(0, LINKED).map((step) => (
        <li key={step.after.id}>
          <Link href={`/memories/${step.after.id}`}>
            <MemoryText text={step.before?.text || step.before?.key} one />
          </Link>
        </li>
      ))}
      {known.length > LINKED ? <li class="soft small">and {known.length - LINKED} more</li> : null}
    </ul>
  );
}

function Settled({ item }: { item: Proposal }) {
  const tone = item.state === "approved" ? "good" : "plain";
  return (
    <p class="settled" role="status">
      <Tag tone={tone}>{item.state}</Tag>{" "}
      {item.decided_by ? (
        <>
          by <Who name={item.decided_by} />{" "}
        </>
      ) : null}
      <Time at={item.decided_at ?? item.expires_at} />
      {item.decision ? <>: {seen(item.decision)}</> : null}
    </p>
  );
}

function Evidence({ of, named }: { of: Schemas["Evidence"][] | undefined; named: readonly string[] }) {
  if (!of)
    return named.length ? (
      <>
        {named.map((each) => (
          <Reference key={each} name={each} />
        ))}
      </>
    ) : (
      <span class="faint">none</span>
    );
  if (!of.length) return <span class="faint">none</span>;
  return (
    <ul class="bare">
      {of.map((each) => (
        <li key={each.reference}>
          {each.memory ? (
            <details>
              <summary>{seen(each.reference)}</summary>
              <div class="proposal-words">
                <MemoryText text={each.memory.text} />
              </div>
              <span class="soft small">
                <Who name={each.memory.text_by} />, <Time at={each.memory.text_at} /> · {seen(each.memory.source)} ·{" "}
                <Link href={`/memories/${each.memory.id}`}>Open</Link>
              </span>
            </details>
          ) : (
            <>
              <Reference name={each.reference} /> <span class="faint small">not stored here, cannot be opened</span>
            </>
          )}
        </li>
      ))}
    </ul>
  );
}

/** What evidence names, with all that rests on it. */
function Reference({ name }: { name: string }) {
  return <Link href={`/sources?${new URLSearchParams({ list: "references", name })}`}>{seen(name)}</Link>;
}

function Similar({ of }: { of: Schemas["Similar"][] | undefined }) {
  if (!of) return <span class="faint">…</span>;
  if (!of.length) return <span class="faint">nothing like it is stored</span>;
  return (
    <ul class="bare">
      {of.map((each) => (
        <li key={each.memory.id} class="similar">
          <Link href={`/memories/${each.memory.id}`}>
            <MemoryText text={each.memory.text} one />
          </Link>
          <Tag>{tierWord(each.memory.tier)}</Tag>
          <span class="num soft small" title={each.why.join(", ")}>
            {each.score.toFixed(2)}
          </span>
        </li>
      ))}
    </ul>
  );
}

function Reached({ of }: { of: Schemas["ContextExposure"] }) {
  if (!of.contexts) return <span class="faint">no context yet</span>;
  return (
    <>
      <b class="num">{of.contexts.toLocaleString()}</b> {of.contexts === 1 ? "context" : "contexts"}
      {of.last ? (
        <>
          , last{" "}
          <Link href={`/context?receipt=${of.last.receipt}`}>
            <Time at={of.last.at} short />
          </Link>
        </>
      ) : null}
    </>
  );
}
