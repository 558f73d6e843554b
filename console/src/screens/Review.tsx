/** Review: the proposals that wait for a person, one beside the list of all, decided by keys or by hand. */

import "./review/review.css";
import { useEffect, useRef, useState } from "preact/hooks";
import { useAddress } from "../address";
import { useKeys } from "../keys";
import { queueMoves } from "../events";
import { get } from "../load";
import { useWindow, without } from "../pages";
import { mayDecide } from "../session";
import { Button } from "../parts/Button";
import { Page } from "../parts/Page";
import { Empty, Failed, Loading } from "../parts/States";
import { say } from "../parts/Toasts";
import { VirtualList } from "../parts/VirtualList";
import { approve } from "./review/decide";
import { leftOutOf } from "./review/leftOut";
import { readSnoozed, snooze, snoozed, snoozeTimes } from "./review/snooze";
import { Filters, SNOOZED, STATES, States, tierOf } from "./review/Filters";
import { Row } from "./review/Row";
import { Standing, countOf, type Counts } from "./review/Standing";
import { forgetDecided, readEach } from "./review/waiting";
import { Detail } from "./review/Detail";
import { BatchDialog, EditDialog, RejectDialog } from "./review/Dialogs";
import { viewed } from "./review/viewed";
import { approvable, mayEdit, OTHER_APPROVER_NEEDED, type Proposal } from "./review/labels";

// Most that one call decides, and so most that are selected at once.
const MOST = 200;
const NOT_YET_SELECTED = "Not yet: the others are still being selected";

type Open = { what: "reject" | "batch"; items: Proposal[] } | { what: "edit"; items: [Proposal] };

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
  const [selecting, setSelecting] = useState(false);
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
    setSelecting(true);
    const found = await get("/memory/quarantine", { params: { query: { ...filters, offset: 0, limit: MOST } } });
    setSelecting(false);
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
      if (selecting) return say(NOT_YET_SELECTED, { tone: "plain" });
      // A batch approves proposals as they are.
      const ready = meant.filter((each) => approvable(each) && !leftOutOf(each.digest).size);
      if (chosen.size && ready.length) setOpen({ what: "batch", items: ready });
      else if (item) void approveOne(item);
    },
    edit: () => {
      if (item && mayEdit(item)) setOpen({ what: "edit", items: [item] });
    },
    reject: () => {
      if (selecting) return say(NOT_YET_SELECTED, { tone: "plain" });
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
    s:
      meant.length && !selecting
        ? { does: "Snooze until tomorrow", run: () => hide(meant, snoozeTimes(new Date())[1]?.[1] ?? null) }
        : null,
    x: may ? { does: "Select or deselect", run: () => toggle(item) } : null,
    J: may ? { does: "Select, and go on to the next", run: () => extend(1) } : null,
    K: may ? { does: "Select, and go back to the previous", run: () => extend(-1) } : null,
    Escape: chosen.size && !selecting ? { does: "Deselect all", run: () => setChosen(new Map()) } : null,
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
            {selecting ? (
              <div class="chosen">
                <b>Selecting…</b>
              </div>
            ) : chosen.size ? (
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
