/** The contexts that agents were given: a list of receipts, and one of them explained. */

import { useState } from "preact/hooks";
import type { Schemas } from "../../api";
import type { Address } from "../../address";
import { get, useGet } from "../../load";
import { useDebounced } from "../../debounce";
import { Button } from "../../parts/Button";
import { Damage, damageOf } from "../../parts/Damage";
import { Empty, Shown } from "../../parts/States";
import { Table } from "../../parts/Table";
import { Time } from "../../parts/Time";
import { say } from "../../parts/Toasts";
import { Who } from "../../parts/Who";
import { seen } from "../../parts/seen";
import { ReceiptShown } from "../ContextLab";

type Line = Schemas["ReceiptLine"];

export function Receipts({ address }: { address: Address }) {
  const receipt = address.get("receipt");
  if (receipt) {
    return (
      <div class="stack">
        <div>
          <Button small onClick={() => address.set({ view: "receipts", receipt: "", memory: "" })}>
            ← All receipts
          </Button>
        </div>
        <ReceiptShown id={receipt} address={address} />
      </div>
    );
  }
  return <ReceiptList address={address} onOpen={(id) => address.set({ receipt: id, memory: "" }, { push: true })} />;
}

interface Props {
  address: Address;
  onOpen: (id: string) => void;
  /** What a click on a receipt does. */
  verb?: string;
}

export function ReceiptList({ address, onOpen, verb = "Open" }: Props) {
  const objective = useDebounced(address.get("asked"));
  const actor = useDebounced(address.get("by"));
  const query = { kind: ["compile" as const], objective: objective || undefined, actor: actor || undefined, limit: 50 };
  const first = useGet("/memory/receipts", { params: { query } });
  const name = `${objective} ${actor} ${first.data?.items.shown[0]?.id ?? ""}`;
  const [more, setMore] = useState<{ name: string; items: Line[]; before: string | null }>({
    name: "",
    items: [],
    before: null,
  });
  const own = more.name === name ? more : { name, items: [], before: first.data?.before ?? null };
  const next = async () => {
    const page = await get("/memory/receipts", { params: { query: { ...query, before: own.before ?? undefined } } });
    if (page.ok) setMore({ name, items: [...own.items, ...page.data.items.shown], before: page.data.before });
    else say(page.problem.detail, { tone: "bad" });
  };
  return (
    <div class="stack">
      <div class="lab-filters">
        <label class="field">
          <span>Asked about</span>
          <input
            type="search"
            value={address.get("asked")}
            onInput={(event) => address.set({ asked: event.currentTarget.value })}
          />
        </label>
        <label class="field">
          <span>Asked by</span>
          <input
            type="search"
            value={address.get("by")}
            placeholder="support-bot"
            onInput={(event) => address.set({ by: event.currentTarget.value })}
          />
        </label>
      </div>
      <Shown of={first}>
        {(page) => {
          const rows = [...page.items.shown, ...own.items];
          return rows.length ? (
            <section class="card" aria-label="Receipts">
              <Damage notes={damageOf(page.damaged.length, "receipt", "receipts")} />
              <Table
                label="Contexts that were compiled, newest first"
                rows={rows}
                keyOf={(row) => row.id}
                columns={[
                  { title: "When", cell: (row) => <Time at={row.at} /> },
                  {
                    title: "Asked",
                    cell: (row) => (
                      <button
                        type="button"
                        class="lab-link"
                        aria-label={`${verb}: ${row.objective ?? row.compiled}`}
                        onClick={() => onOpen(row.id)}
                      >
                        {row.objective ? seen(row.objective) : row.compiled}
                      </button>
                    ),
                  },
                  { title: "By", cell: (row) => <Who name={row.actor} /> },
                  { title: "Purpose", wide: true, cell: (row) => row.purpose },
                  { title: "Memories", num: true, wide: true, cell: (row) => row.shown },
                  { title: "Left out", num: true, wide: true, cell: (row) => row.left_out },
                  { title: "Tokens", num: true, cell: (row) => row.tokens?.toLocaleString() },
                ]}
              />
            </section>
          ) : (
            <Empty title="No context was compiled yet">
              An agent's next call of `get_context` leaves a receipt here.
            </Empty>
          );
        }}
      </Shown>
      {own.before ? (
        <div>
          <Button small onClick={() => void next()}>
            Older ones
          </Button>
        </div>
      ) : null}
    </div>
  );
}
