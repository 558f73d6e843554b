/** The bar of what is selected: hand over, take out of use, forget, erase. */

import { useState } from "preact/hooks";
import { Link } from "wouter-preact";
import { api, ask, commitOf, type Schemas } from "../../api";
import type { Query } from "../../browse";
import { useKeys } from "../../keys";
import { get } from "../../load";
import { notifyChanged } from "../../events";
import { mayChange } from "../../session";
import { rollBack } from "../../undo";
import { Button } from "../../parts/Button";
import { ContainDialog, counted } from "../../parts/Contain";
import { Dialog } from "../../parts/Dialog";
import { MemoryText } from "../../parts/MemoryText";
import { say } from "../../parts/Toasts";
import { MOST } from "./picked";

type Memory = Schemas["Record"];

// Most whose ids fit an address.
const ERASED_AT_ONCE = 200;

interface SelectionProps {
  selected: ReadonlyMap<string, Memory>;
  clear: () => void;
  choose: (all: ReadonlyMap<string, Memory>) => void;
  query: Query;
  total: number | undefined;
}

export function Selection({ selected, clear, choose, query, total }: SelectionProps) {
  const [open, setOpen] = useState<"forget" | "contain" | null>(null);
  const [selecting, setSelecting] = useState(false);
  const items = [...selected.values()];
  const all = async () => {
    setSelecting(true);
    const found = await get("/memory/items", { params: { query: { ...query, offset: 0, limit: MOST } } });
    setSelecting(false);
    if (!found.ok) return say(found.problem.detail, { tone: "bad" });
    choose(new Map(found.data.items.shown.map((each) => [each.id, each])));
  };
  // Until all are selected, nothing is done with a part of them.
  const may = mayChange() && !selecting;
  useKeys("Selected", {
    Escape: selecting ? null : { does: "Select nothing", run: clear },
    c: may ? { does: "Take what is selected out of use", run: () => setOpen("contain") } : null,
    d: may ? { does: "Forget what is selected", run: () => setOpen("forget") } : null,
  });
  if (selecting)
    return (
      <div class="memory-selection" role="region" aria-label="Selected memories">
        <b>Selecting…</b>
      </div>
    );
  return (
    <div class="memory-selection" role="region" aria-label="Selected memories">
      <b>{counted(items.length, "memory", "memories")} selected</b>
      {total !== undefined && total > items.length ? (
        <Button small tone="quiet" onClick={() => void all()}>
          Select {total > MOST ? `the first ${MOST}` : `all ${total.toLocaleString()}`}
        </Button>
      ) : null}
      <span class="spread" />
      <Button small onClick={() => download(items)}>
        Export
      </Button>
      {may ? (
        <Button small hint="c" onClick={() => setOpen("contain")}>
          Take out of use…
        </Button>
      ) : null}
      {may ? (
        <Button small tone="no" hint="d" onClick={() => setOpen("forget")}>
          Forget…
        </Button>
      ) : null}
      {may && items.length <= ERASED_AT_ONCE ? (
        <Link class="btn sm no" href={`/erase?${new URLSearchParams({ ids: items.map((each) => each.id).join(" ") })}`}>
          Erase for good…
        </Link>
      ) : null}
      <Button small tone="quiet" onClick={clear}>
        Clear
      </Button>
      {open === "forget" ? <ForgetDialog items={items} onClose={() => setOpen(null)} done={clear} /> : null}
      {open === "contain" ? (
        <ContainDialog
          ways={items.map((each) => ({ memory: each.id }))}
          of={counted(items.length, "memory", "memories")}
          onClose={() => {
            setOpen(null);
            clear();
          }}
        />
      ) : null}
    </div>
  );
}

function ForgetDialog({ items, onClose, done }: { items: readonly Memory[]; onClose: () => void; done: () => void }) {
  const [reason, setReason] = useState("");
  const [busy, setBusy] = useState(false);
  const run = async () => {
    setBusy(true);
    const answer = await ask(api.POST("/memory/items/forget", { body: { ids: items.map((each) => each.id), reason } }));
    setBusy(false);
    if (!answer.ok) return say(answer.problem.detail, { tone: "bad" });
    const { outcome } = answer.data;
    notifyChanged();
    onClose();
    done();
    if (outcome?.outcome === "refused")
      return say(outcome.reasons.map((each) => each.detail).join(" "), { tone: "bad" });
    if (outcome?.outcome === "quarantined") return say("It waits for review.", { tone: "plain" });
    const commit = commitOf(outcome);
    say(`Forgot ${counted(items.length, "memory", "memories")}.`, commit ? { undo: () => rollBack(commit) } : {});
  };
  return (
    <Dialog
      title={`Forget ${counted(items.length, "memory", "memories")}`}
      onClose={onClose}
      onSubmit={() => void run()}
      foot={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button tone="go" type="submit" busy={busy} disabled={!reason.trim()}>
            Forget {counted(items.length, "memory", "memories")}
          </Button>
        </>
      }
    >
      <ol class="plain-list boxed" aria-label="What would be forgotten">
        {items.map((each) => (
          <li key={each.id}>
            <MemoryText one text={each.text} />
          </li>
        ))}
      </ol>
      <label class="field">
        <span>Reason (recorded in the journal)</span>
        <input value={reason} maxLength={1000} onInput={(event) => setReason(event.currentTarget.value)} />
      </label>
      <p class="soft small">
        No agent sees them any more, in one commit. Nothing is deleted; restoring or a rollback brings them back.
      </p>
    </Dialog>
  );
}

/** Hand what is selected over as a file: one memory a line. */
function download(items: readonly Memory[]): void {
  const lines = items.map((each) => JSON.stringify(each)).join("\n");
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([`${lines}\n`], { type: "application/x-ndjson" }));
  link.download = `memories-${items.length}.jsonl`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
