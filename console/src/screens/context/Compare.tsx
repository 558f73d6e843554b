/** Two contexts side by side, and the commit behind each difference. */

import type { Schemas } from "../../api";
import type { Address } from "../../address";
import { recorded } from "../../contexts";
import { useGet } from "../../load";
import { Button } from "../../parts/Button";
import { CommitLink } from "../../parts/CommitLink";
import { Damage } from "../../parts/Damage";
import { Diff } from "../../parts/Diff";
import { MemoryText } from "../../parts/MemoryText";
import { Prompt } from "../../parts/Prompt";
import { Empty, Shown } from "../../parts/States";
import { Tag } from "../../parts/Tag";
import { Time } from "../../parts/Time";
import { seen } from "../../parts/seen";
import { changedInputs, isNoted } from "./differences";
import { ReceiptList } from "./Receipts";

type Item = Schemas["ContextDiffItem"];
const TONES = { added: "good", removed: "bad", changed: "warn" } as const;

export function Compare({ address }: { address: Address }) {
  // The older one is always the first: ids of receipts rise with time.
  const [one, other] = [address.get("a"), address.get("b")];
  const [first, second] = one && other && one > other ? [other, one] : [one, other];
  if (!first || !second) {
    const side = first ? "b" : "a";
    return (
      <div class="stack">
        <p>
          {first ? "Choose the second context, or compile another one and keep it." : "Choose the first context."}{" "}
          {first ? (
            <Button small tone="quiet" onClick={() => address.set({ a: "" })}>
              Choose another first one
            </Button>
          ) : null}
        </p>
        <ReceiptList address={address} verb="Choose" onOpen={(id) => address.set({ [side]: id }, { push: true })} />
      </div>
    );
  }
  return <Compared first={first} second={second} address={address} />;
}

function Compared({ first, second, address }: { first: string; second: string; address: Address }) {
  const difference = useGet("/memory/receipts/{id}/diff/{other}", { params: { path: { id: first, other: second } } });
  const a = useGet("/memory/receipts/{id}", { params: { path: { id: first } } });
  const b = useGet("/memory/receipts/{id}", { params: { path: { id: second } } });
  const chosen = address.get("memory");
  const choose = (id: string) => address.set({ memory: id });
  const [before, after] = [textsOf(a.data), textsOf(b.data)];
  const noted = (item: Item) => isNoted(item, before, after);
  return (
    <div class="stack">
      <div class="line">
        <Button small onClick={() => address.set({ a: "", b: "" })}>
          Choose two others
        </Button>
      </div>
      <Shown of={difference}>
        {(found) => (
          <>
            <Damage notes={found.notes} />
            {found.same ? (
              <Empty title="The same bytes">Both contexts are the same text.</Empty>
            ) : (
              <Differences {...{ found, noted, before, after, chosen }} onChoose={choose} />
            )}
            <div class="lab-sides">
              {([a, b] as const).map((side, at) => {
                const gone = at === 0 ? "removed" : "added";
                const marks = new Map(
                  found.items
                    .filter((each) => each.change === gone || (each.change === "changed" && !noted(each)))
                    .map((each) => [each.id, each.change]),
                );
                return (
                  <section key={at} class="stack" aria-label={at === 0 ? "Older context" : "Newer context"}>
                    <Shown of={side}>
                      {(receipt) => (
                        <Side
                          receipt={receipt}
                          name={at === 0 ? "Older" : "Newer"}
                          chosen={chosen}
                          onChoose={choose}
                          marks={marks}
                        />
                      )}
                    </Shown>
                  </section>
                );
              })}
            </div>
          </>
        )}
      </Shown>
    </div>
  );
}

/** The texts that a context was made of, by memory. */
function textsOf(receipt: Schemas["AnyReceipt"] | undefined): ReadonlyMap<string, string> {
  return new Map((receipt?.explanation?.candidates ?? []).map((candidate) => [candidate.id, candidate.text]));
}

interface SideProps {
  receipt: Schemas["AnyReceipt"];
  name: string;
  chosen: string;
  onChoose: (id: string) => void;
  marks: ReadonlyMap<string, string>;
}

function Side({ receipt, name, ...rest }: SideProps) {
  const told = recorded(receipt);
  return (
    <>
      <p class="small soft">
        <b>{name}</b> <Time at={receipt.at} />, “{seen(told.objective)}”, {told.tokens.toLocaleString()} tokens, after{" "}
        <CommitLink of={told.head} />
      </p>
      <Prompt of={told} label={`${name} prompt`} {...rest} />
    </>
  );
}

interface Props {
  found: Schemas["ContextDifference"];
  /** Whether a difference is bookkeeping alone. */
  noted: (item: Item) => boolean;
  /** Texts of the older and of the newer context, by memory. */
  before: ReadonlyMap<string, string>;
  after: ReadonlyMap<string, string>;
  chosen: string;
  onChoose: (id: string) => void;
}

function Differences({ found, noted, before, after, chosen, onChoose }: Props) {
  const inputs = Object.entries(found.inputs).flatMap(([name, values]) => changedInputs(name, values[0], values[1]));
  const same = found.items.filter(noted);
  const differing = found.items.filter((item) => !noted(item));
  return (
    <section class="card" aria-label="Differences">
      <ol class="lab-differences">
        {inputs.map(([name, was, now]) => (
          <li key={name} class="small soft">
            Different settings: <b>{name}</b> {seen(was)} → {seen(now)}
          </li>
        ))}
        {differing.map((each) => (
          <li key={each.id} class={each.id === chosen ? "on" : ""}>
            <Tag tone={TONES[each.change]}>{each.change}</Tag>
            <div class="stack tight">
              <button type="button" class="lab-link" onClick={() => onChoose(each.id === chosen ? "" : each.id)}>
                <MemoryText text={after.get(each.id) || before.get(each.id) || "[erased]"} one />
              </button>
              {each.change === "changed" ? (
                <Diff before={before.get(each.id) || "[erased]"} after={after.get(each.id) || "[erased]"} />
              ) : null}
              <span class="small soft">
                {each.commit ? (
                  <>
                    <CommitLink of={each.commit.commit.seq} />, <Time at={each.commit.commit.at} />,{" "}
                    {seen(each.commit.details.actor)}: {seen(each.commit.details.reason)}
                  </>
                ) : (
                  seen(each.why)
                )}
              </span>
            </div>
          </li>
        ))}
        {same.length ? (
          <li class="small soft">
            {same.length === 1 ? "One memory was" : `${same.length} memories were`} confirmed or used in between; what
            they say is the same.
          </li>
        ) : null}
        {found.items.length === 0 ? (
          <li class="small soft">The same memories, in another order or under other headings.</li>
        ) : null}
      </ol>
    </section>
  );
}
