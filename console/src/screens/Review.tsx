/** Review: the proposals that wait for a person, one beside the list of all, decided by keys or by hand. */

import "./review/review.css";
import { useEffect, useRef, useState } from "preact/hooks";
import { api, ask, type Answer, type Problem } from "../api";
import { useAddress } from "../address";
import { useKeys } from "../keys";
import { queueMoves } from "../events";
import { whole, type Listed } from "../listed";
import { get } from "../load";
import { useWindow, without } from "../pages";
import { mayDecide } from "../session";
import { Button } from "../parts/Button";
import { MemoryText } from "../parts/MemoryText";
import { Page } from "../parts/Page";
import { Empty, Failed, Loading } from "../parts/States";
import { Tag } from "../parts/Tag";
import { Time } from "../parts/Time";
import { say } from "../parts/Toasts";
import { VirtualList } from "../parts/VirtualList";
import { seen } from "../parts/seen";
import { approve } from "./review/decide";
import { leftOutOf } from "./review/leftOut";
import { readSnoozed, snooze, snoozed, snoozeTimes } from "./review/snooze";
import { Detail } from "./review/Detail";
import { BatchDialog, EditDialog, RejectDialog } from "./review/Dialogs";
import { viewed } from "./review/viewed";
import {
  approvable,
  codeName,
  gateName,
  summaryOf,
  headline,
  mayEdit,
  OTHER_APPROVER_NEEDED,
  proposer,
  severityOf,
  type Proposal,
} from "./review/labels";

// Most that one call decides, and so most that are selected at once.
const MOST = 200;

type Open = { what: "reject" | "batch"; items: Proposal[] } | { what: "edit"; items: [Proposal] };
type Counts = Record<string, Record<string, number>>;

export function Review() {
  const address = useAddress();
  const state = STATES.find(([name]) => name === address.get("state"))?.[0];
  const asleep = address.get("state") === SNOOZED;
  const filters = {
    state,
    sort: address.get("sort") === "danger" ? ("danger" as const) : undefined,
    proposer: address.get("proposer") || undefined,
    gate: address.get("gate") || undefined,
    tier: tierOf(address.get("tier")),
  };
  const hidden = snoozed.value;
  const name = JSON.stringify(asleep ? [...hidden.keys()] : filters);
  const facts = useRef<{ counts: Counts; oldest: string | null }>({ counts: {}, oldest: null });
  // What was decided here and may still be in the list until it is read again.
  const gone = useRef(new Set<string>());
  const listed = useWindow<Proposal>(
    name,
    async (offset, limit, signal) => {
      if (asleep) return readEach([...hidden.keys()]);
      const found = await get("/memory/quarantine", { signal, params: { query: { ...filters, offset, limit } } });
      if (found.ok) {
        facts.current = { counts: found.data.counts, oldest: found.data.oldest_at };
        gone.current.clear();
      }
      return found.ok ? { ...found, data: found.data.items } : found;
    },
    queueMoves,
  );
  const list = asleep || state ? listed : without(listed, (each) => hidden.has(each.id));
  const [chosen, setChosen] = useState<ReadonlyMap<string, Proposal>>(new Map());
  const [open, setOpen] = useState<Open | null>(null);
  const [busy, setBusy] = useState(false);
  const place = useRef(0);
  const at = address.get("at");
  const found = at ? list.find((each) => each.id === at) : 0;
  // What was decided leaves the list; the place where it was stays.
  const index = found >= 0 ? found : Math.min(place.current, Math.max(0, (list.total ?? 1) - 1));
  place.current = index;
  const first = list.at(index);
  const current = at || first?.id;
  const item = found >= 0 ? first : undefined;

  useEffect(() => {
    readSnoozed();
    void forgetDecided();
  }, []);
  useEffect(() => {
    setChosen(new Map());
  }, [name]);

  const move = (to: number) => {
    const next = list.at(Math.max(0, Math.min((list.total ?? 1) - 1, to)));
    if (next) address.set({ at: next.id });
  };
  /** Go on with what is next to what was decided, in the list as it was. */
  const goOn = (decided: readonly Pick<Proposal, "id">[]) => {
    for (const { id } of decided) gone.current.add(id);
    const ids = gone.current;
    let next = index;
    while (list.at(next) && ids.has(list.at(next)?.id ?? "")) next += 1;
    let to = list.at(next);
    for (let before = index; !to && before >= 0; before -= 1) {
      const each = list.at(before);
      if (each && !ids.has(each.id)) to = each;
    }
    setChosen(new Map());
    address.set({ at: to?.id ?? null });
    document.querySelector<HTMLElement>("[role=listbox]")?.focus();
  };
  const show = (each: Proposal | undefined) => {
    if (!each) return false;
    address.set({ at: each.id }, { push: !at });
    return undefined;
  };
  const toggle = (each: Proposal | undefined, on?: boolean) => {
    if (!each || !mayDecide()) return;
    const next = new Map(chosen);
    if (on ?? !next.has(each.id)) next.set(each.id, each);
    else next.delete(each.id);
    setChosen(next);
  };
  const all = async () => {
    const found = await get("/memory/quarantine", { params: { query: { ...filters, offset: 0, limit: MOST } } });
    if (!found.ok) return say(found.problem.detail, { tone: "bad" });
    setChosen(new Map(found.data.items.shown.map((each) => [each.id, each])));
  };
  const extend = (by: number) => {
    const next = list.at(index + by);
    if (!item || !next || !mayDecide()) return;
    setChosen(new Map(chosen).set(item.id, item).set(next.id, next));
    move(index + by);
  };
  const approveOne = async (one: Proposal) => {
    if (busy) return;
    if (!one.may_approve) return say(OTHER_APPROVER_NEEDED, { tone: "plain" });
    if (one.stale) return say("It is outdated: edit it against the current text, or reject it", { tone: "plain" });
    if (one.steps.every((step) => leftOutOf(one.digest).has(step.after.id)))
      return say("Every change is left out: reject it instead", { tone: "plain" });
    if (!viewed.value.has(one.digest)) {
      // In a narrow window the list hides it.
      if (!at) show(one);
      return say("Not yet: look at it for a moment first", { tone: "plain" });
    }
    setBusy(true);
    const done = await approve(one, [...leftOutOf(one.digest)]);
    setBusy(false);
    if (done) goOn([one]);
  };
  const meant = chosen.size ? [...chosen.values()] : item ? [item] : [];
  const act = {
    approve: () => {
      // A batch approves proposals as they are.
      const ready = meant.filter((each) => approvable(each) && !leftOutOf(each.digest).size);
      if (chosen.size && ready.length) setOpen({ what: "batch", items: ready });
      else if (item) void approveOne(item);
    },
    edit: () => {
      if (item && mayEdit(item)) setOpen({ what: "edit", items: [item] });
    },
    reject: () => {
      if (meant.length) setOpen({ what: "reject", items: meant });
    },
  };
  const hide = (items: readonly Pick<Proposal, "id">[], until: number | null) => {
    const ids = items.map((each) => each.id);
    if (until === null) snooze(ids, null);
    else {
      goOn(items);
      snooze(ids, until);
      say(`Snoozed ${ids.length === 1 ? "it" : ids.length} in this browser until ${new Date(until).toLocaleString()}`, {
        tone: "plain",
        undo: () => {
          snooze(ids, null);
          return Promise.resolve("Shown again");
        },
      });
    }
  };
  const inList = (event: KeyboardEvent) => event.target instanceof Element && event.target.closest("[role=listbox]");
  const may = mayDecide();
  useKeys("Review", {
    j: { does: "Next", run: () => move(index + 1) },
    k: { does: "Previous", run: () => move(index - 1) },
    ArrowDown: { does: "Next, in the list", run: (event) => (inList(event) ? move(index + 1) : false) },
    ArrowUp: { does: "Previous, in the list", run: (event) => (inList(event) ? move(index - 1) : false) },
    Enter: at ? null : { does: "Open", run: () => show(item) },
    a: may ? { does: "Approve what is open, or all that are selected", run: act.approve } : null,
    r: may ? { does: "Reject, with a reason", run: act.reject } : null,
    e: may ? { does: "Edit and approve", run: act.edit } : null,
    s: meant.length
      ? { does: "Snooze until tomorrow", run: () => hide(meant, snoozeTimes(new Date())[1]?.[1] ?? null) }
      : null,
    x: may ? { does: "Select or deselect", run: () => toggle(item) } : null,
    J: may ? { does: "Select, and go on to the next", run: () => extend(1) } : null,
    K: may ? { does: "Select, and go back to the previous", run: () => extend(-1) } : null,
    Escape: chosen.size ? { does: "Deselect all", run: () => setChosen(new Map()) } : null,
  });

  const total = list.total;
  const finish = (decided: readonly Proposal[] = open?.items ?? []) => {
    goOn(decided);
    const left = open?.what === "batch" ? open.items.filter((each) => !decided.includes(each)) : [];
    setChosen(new Map(left.map((each) => [each.id, each])));
    setOpen(null);
  };
  const ended = asleep ? "Snoozed" : STATES.find(([name]) => name === state)?.[1];
  const narrowed = Boolean(filters.proposer || filters.gate || filters.tier);
  const snoozedHere = asleep || state ? 0 : hidden.size;
  const lede =
    total === undefined ? null : asleep ? (
      `${total.toLocaleString()} snoozed in this browser`
    ) : (
      <Standing
        ended={ended}
        count={countOf(facts.current.counts)}
        matching={narrowed ? listed.total : undefined}
        oldest={facts.current.oldest}
        snoozed={snoozedHere}
      />
    );
  return (
    <Page
      title="Review"
      lede={lede}
      json="/memory/quarantine"
      actions={
        <span class="soft small wide-only">
          <kbd>j</kbd> <kbd>k</kbd> move · <kbd>a</kbd> approve · <kbd>r</kbd> reject · <kbd>e</kbd> edit · <kbd>x</kbd>{" "}
          select · <kbd>?</kbd>
        </span>
      }
    >
      {total === undefined ? (
        list.problem ? (
          <Failed problem={list.problem} retry={list.reload} />
        ) : (
          <Loading rows={6} />
        )
      ) : total === 0 && !at && !asleep && !state && !narrowed ? (
        <div class="card">
          <States address={address} />
          <Empty title={snoozedHere ? "Nothing else waits for you" : "Nothing waits for you"}>
            What an agent may not decide alone comes here: a change of a core block, a web page that gives orders, a
            less trusted source.
          </Empty>
        </div>
      ) : (
        <div class={at ? "review at" : "review"}>
          <div class="card queue">
            <States address={address} />
            <Filters counts={facts.current.counts} address={address} />
            {chosen.size ? (
              <div class="chosen">
                <b class="num">{chosen.size} selected</b>
                {total > chosen.size && chosen.size < MOST ? (
                  <Button small tone="quiet" onClick={() => void all()}>
                    Select {total > MOST ? `the first ${MOST}` : `all ${total}`}
                  </Button>
                ) : null}
                <span class="spread" />
                <Button small tone="go" onClick={act.approve}>
                  Approve…
                </Button>
                <Button small tone="no" onClick={act.reject}>
                  Reject…
                </Button>
                <Button small onClick={() => hide(meant, snoozeTimes(new Date())[1]?.[1] ?? null)}>
                  Snooze
                </Button>
                <Button small tone="quiet" onClick={() => setChosen(new Map())}>
                  Clear
                </Button>
              </div>
            ) : null}
            {total === 0 ? (
              <Empty title={ended ? "There is none" : "Nothing that waits matches the filters"} />
            ) : (
              <VirtualList
                label={ended ? `Proposals: ${ended.toLowerCase()}` : "Proposals that wait"}
                role="listbox"
                class="queue-rows"
                count={total}
                estimate={59}
                current={index}
                active={current ? `row-${current}` : undefined}
                keyOf={(row) => list.at(row)?.id ?? row}
                onRange={list.need}
                row={(row) => (
                  <Row
                    item={list.at(row)}
                    problem={list.problemAt(row)}
                    onRetry={list.reload}
                    on={list.at(row)?.id === current}
                    chosen={chosen.has(list.at(row)?.id ?? "")}
                    onOpen={show}
                    onToggle={toggle}
                  />
                )}
              />
            )}
          </div>
          {current ? (
            <Detail
              key={current}
              id={current}
              listed={item}
              busy={busy}
              onApprove={(one) => void approveOne(one)}
              onEdit={(one) => setOpen({ what: "edit", items: [one] })}
              onReject={(one) => setOpen({ what: "reject", items: [one] })}
              onSnooze={(until) => hide([{ id: current }], until)}
              onBack={() => address.set({ at: null })}
            />
          ) : null}
        </div>
      )}
      {open?.what === "reject" ? (
        <RejectDialog items={open.items} onClose={() => setOpen(null)} onDone={() => finish()} />
      ) : null}
      {open?.what === "batch" ? <BatchDialog items={open.items} onClose={() => setOpen(null)} onDone={finish} /> : null}
      {open?.what === "edit" ? (
        <EditDialog item={open.items[0]} onClose={() => setOpen(null)} onDone={() => finish()} />
      ) : null}
    </Page>
  );
}

/** Return how many proposals are counted by who made them: each has one proposer. */
function countOf(counts: Counts): number {
  return Object.values(counts["proposer"] ?? {}).reduce((sum, count) => sum + count, 0);
}

interface StandingProps {
  /** What became of them; they wait without it. */
  ended: string | undefined;
  /** How many there are, whatever the filters. */
  count: number;
  /** How many pass the filters, where there are some. */
  matching: number | undefined;
  oldest: string | null;
  snoozed: number;
}

/** How many wait or were decided, whatever the filters, and how many of them are shown. */
function Standing({ ended, count, matching, oldest, snoozed: asleep }: StandingProps) {
  if (!count) return <>{ended ? `0 ${ended.toLowerCase()}` : "nothing waits"}</>;
  return (
    <>
      {count.toLocaleString()} {ended?.toLowerCase() ?? (count === 1 ? "waits" : "wait")}
      {matching === undefined
        ? ""
        : `, ${matching.toLocaleString()} of them ${matching === 1 ? "matches" : "match"} the filters`}
      {matching === undefined && !ended ? (
        <>
          , the oldest since <Time at={oldest} />
        </>
      ) : null}
      {asleep ? `, ${asleep.toLocaleString()} of them snoozed in this browser` : ""}
    </>
  );
}

/** Stop hiding what was decided since: it does not wait any more. */
async function forgetDecided(): Promise<void> {
  const ids = [...snoozed.peek().keys()];
  const found = await readEach(ids);
  if (!found.ok) return;
  const waiting = new Set(found.data.shown.map((each) => each.id));
  const decided = ids.filter((id) => !waiting.has(id));
  if (decided.length) snooze(decided, null);
}

/** Read proposals by their ids; what was decided since is left out. */
async function readEach(ids: readonly string[]): Promise<Answer<Listed<Proposal>>> {
  const answers = await Promise.all(
    ids.map((id) => ask(api.GET("/memory/quarantine/{id}", { params: { path: { id } } }))),
  );
  const lost = answers.find((answer) => !answer.ok && answer.problem.status !== 404);
  if (lost && !lost.ok) return lost;
  const items = answers.flatMap((answer) => (answer.ok && answer.data.state === "pending" ? [answer.data] : []));
  return { ok: true, data: whole(items), status: 200, etag: null };
}

interface RowProps {
  item: Proposal | undefined;
  /** Why it is not there. */
  problem: Problem | undefined;
  onRetry: () => void;
  on: boolean;
  chosen: boolean;
  onOpen: (item: Proposal) => void;
  onToggle: (item: Proposal) => void;
}

function Row({ item, problem, onRetry, on, chosen, onOpen, onToggle }: RowProps) {
  if (!item)
    return (
      <div class="row" role="option" aria-selected={false}>
        {problem ? (
          <span class="small warn">
            {seen(problem.title)}.{" "}
            <Button small onClick={onRetry}>
              Try again
            </Button>
          </span>
        ) : (
          <span class="bone" />
        )}
      </div>
    );
  const [reason] = item.reasons;
  return (
    <div
      id={`row-${item.id}`}
      class={["row", on && "on", chosen && "chosen-row"].filter(Boolean).join(" ")}
      role="option"
      aria-selected={on}
      onClick={(event) => (event.shiftKey || event.ctrlKey || event.metaKey ? onToggle(item) : onOpen(item))}
    >
      <span
        class="mark"
        aria-hidden="true"
        onClick={(event) => {
          event.stopPropagation();
          onToggle(item);
        }}
      >
        {chosen ? "✓" : ""}
      </span>
      <div class="row-text">
        <MemoryText text={summaryOf(item) || headline(item)} one />
        <div class="row-sub small soft">
          <span class="cut">
            {seen(proposer(item))} · {item.steps[0]?.after.tier}
            {item.steps[0]?.after.key ? (
              <>
                {" "}
                <b>{seen(item.steps[0].after.key)}</b>
              </>
            ) : null}
          </span>
          {item.stale ? (
            <Tag tone="warn" title="its memory has changed since">
              outdated
            </Tag>
          ) : null}
          {item.state === "pending" ? null : <Tag>{item.state}</Tag>}
          {item.steps.length > 1 ? <Tag>{`${item.steps.length} changes`}</Tag> : null}
          {reason ? (
            <Tag tone={severityOf(reason)} title={`${codeName(reason.code)}: ${reason.detail}`}>
              {gateName(reason.gate)}
            </Tag>
          ) : null}
          {chosen ? <span class="unheard">, selected</span> : null}
        </div>
      </div>
    </div>
  );
}

const SNOOZED = "snoozed";

/** What became of proposals, as the API calls it and as it is shown; without one they wait. */
const STATES = [
  ["approved", "Approved"],
  ["rejected", "Rejected"],
  ["stale", "Outdated"],
  ["expired", "Expired"],
] as const;

function States({ address }: { address: ReturnType<typeof useAddress> }) {
  return (
    <div class="filters">
      <select
        aria-label="State"
        value={address.get("state")}
        onChange={(event) => address.set({ state: event.currentTarget.value || null, at: null })}
      >
        <option value="">Waiting</option>
        {STATES.map(([name, title]) => (
          <option key={name} value={name}>
            {title}
          </option>
        ))}
        {snoozed.value.size || address.get("state") === SNOOZED ? (
          <option value={SNOOZED}>Snoozed in this browser ({snoozed.value.size})</option>
        ) : null}
      </select>
      <select
        aria-label="Sorted"
        value={address.get("sort")}
        onChange={(event) => address.set({ sort: event.currentTarget.value || null, at: null })}
      >
        <option value="">Oldest first</option>
        <option value="danger">Most dangerous first</option>
      </select>
    </div>
  );
}

const FACETS = [
  ["proposer", "Proposed by", "By anyone"],
  ["gate", "Reason", "Any reason"],
  ["tier", "Tier", "Any tier"],
] as const;
const TIERS = ["core", "working", "episodic", "archival"] as const;

function tierOf(text: string): (typeof TIERS)[number] | undefined {
  return TIERS.find((each) => each === text);
}

/** Return the values of a filter with their counts; the one in force is among them. */
function valuesOf(counts: Record<string, number> = {}, chosen: string): [string, number][] {
  return Object.entries(chosen && !(chosen in counts) ? { ...counts, [chosen]: 0 } : counts);
}

function Filters({ counts, address }: { counts: Counts; address: ReturnType<typeof useAddress> }) {
  const shown = FACETS.filter(([facet]) => Object.keys(counts[facet] ?? {}).length > 1 || address.get(facet));
  if (!shown.length) return null;
  return (
    <div class="filters">
      {shown.map(([facet, title, any]) => (
        <select
          key={facet}
          aria-label={title}
          value={address.get(facet)}
          onChange={(event) => address.set({ [facet]: event.currentTarget.value, at: null })}
        >
          <option value="">{any}</option>
          {valuesOf(counts[facet], address.get(facet)).map(([value, count]) => (
            <option key={value} value={value}>
              {facet === "gate" ? gateName(value) : value} ({count})
            </option>
          ))}
        </select>
      ))}
    </div>
  );
}
