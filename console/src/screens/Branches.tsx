/** Branches: changes that main does not have, compared with it, merged into it or discarded. */

import "./maintenance.css";
import "./branches/branches.css";
import { useState } from "preact/hooks";
import { useAddress, type Address } from "../address";
import { api, ask, type Problem } from "../api";
import { notifyChanged } from "../events";
import { useKeys } from "../keys";
import { useGet } from "../load";
import { mayChange } from "../session";
import { Button } from "../parts/Button";
import { Chip } from "../parts/Chip";
import { Dialog } from "../parts/Dialog";
import { Page } from "../parts/Page";
import { Empty, Shown } from "../parts/States";
import { Tag } from "../parts/Tag";
import { Time } from "../parts/Time";
import { say } from "../parts/Toasts";
import { said, seen } from "../parts/seen";
import { Detail } from "./branches/Detail";
import { changesOfBranch, STATES, type Branch } from "./branches/words";

// Branches of a page: more than can be open at once.
const PAGE = 50;

export function Branches() {
  const address = useAddress();
  const closed = address.get("closed") === "1";
  const offset = Number(address.get("offset")) || 0;
  const found = useGet("/memory/branches", { params: { query: { closed, offset, limit: PAGE } } });
  const making = address.get("new") === "1" && mayChange();
  const setMaking = (open: boolean) => address.set({ new: open ? "1" : null });
  const items = found.data?.items.shown ?? [];
  const name = address.get("name");
  const named = items.filter((each) => each.name === name);
  const chosen = name ? (named.find((each) => each.created_at === address.get("made")) ?? named[0]) : items[0];
  const choose = (branch: Branch | undefined) => {
    if (branch) address.set({ name: branch.name, made: branch.created_at }, { push: !name });
  };
  const move = (by: number) => {
    const at = chosen ? items.indexOf(chosen) + by : 0;
    choose(items[Math.max(0, Math.min(items.length - 1, at))]);
  };
  useKeys("Branches", {
    j: { does: "Next branch", run: () => move(1) },
    k: { does: "Previous branch", run: () => move(-1) },
    n: mayChange() ? { does: "Make a branch", run: () => setMaking(true) } : null,
    Escape: name ? { does: "Back to the list", run: () => address.set({ name: null, made: null }) } : null,
  });
  return (
    <Page
      title="Branches"
      lede={
        found.data
          ? found.data.items.named(closed ? "branch" : "open branch", closed ? "branches" : "open branches")
          : ""
      }
      json={found.url}
      actions={
        mayChange() ? (
          <Button small tone="go" hint="n" onClick={() => setMaking(true)}>
            Make a branch…
          </Button>
        ) : null
      }
    >
      <div class="line compare-spans" role="group" aria-label="Which branches">
        <Chip on={!closed} onClick={() => address.set({ closed: null, offset: null, name: null, made: null })}>
          Open
        </Chip>
        <Chip on={closed} onClick={() => address.set({ closed: "1", offset: null, name: null, made: null })}>
          Closed too
        </Chip>
      </div>
      <div class={name ? "two journal-page branches at" : "two journal-page branches"}>
        <div class="card">
          <Shown of={found} rows={4}>
            {({ items: listed, offset: first, next_offset: next }) =>
              listed.isEmpty ? (
                <None closed={closed} />
              ) : (
                <>
                  <ol class="journal" aria-label="Branches">
                    {listed.shown.map((each) => (
                      <Row
                        key={`${each.name} ${each.created_at}`}
                        branch={each}
                        on={each === chosen}
                        onChoose={() => choose(each)}
                      />
                    ))}
                  </ol>
                  {first || next ? <Turn address={address} first={first} next={next} total={listed.count} /> : null}
                </>
              )
            }
          </Shown>
        </div>
        {chosen ? (
          <Detail
            key={`${chosen.name} ${chosen.created_at}`}
            branch={chosen}
            isNewest={!items.some((each) => each.name === chosen.name && each.created_at > chosen.created_at)}
            onClose={name ? () => address.set({ name: null, made: null }) : undefined}
          />
        ) : name && found.data ? (
          <section class="card" aria-label="No such branch">
            <Empty title={closed ? "There is no such branch" : "There is no open branch of that name"}>
              {closed ? null : (
                <Button small onClick={() => address.set({ closed: "1" })}>
                  Look among the closed ones
                </Button>
              )}
            </Empty>
          </section>
        ) : null}
      </div>
      {making ? (
        <Make
          onClose={() => setMaking(false)}
          onMade={(branch) =>
            address.set({ new: null, closed: null, offset: null, name: branch.name, made: branch.created_at })
          }
        />
      ) : null}
    </Page>
  );
}

function None({ closed }: { closed: boolean }) {
  return (
    <Empty title={closed ? "There was no branch so far" : "No branch is open"}>
      On a branch an agent tries changes, and main stays as it is until you merge them. Make one here, or with{" "}
      <code>keepward branch create try-x</code>.
    </Empty>
  );
}

function Turn({
  address,
  first,
  next,
  total,
}: {
  address: Address;
  first: number;
  next: number | null;
  total: string;
}) {
  return (
    <div class="pages">
      {first ? (
        <Button small onClick={() => address.set({ offset: first - PAGE || null, name: null }, { push: true })}>
          Newer
        </Button>
      ) : (
        <span />
      )}
      <span class="soft small">
        from {(first + 1).toLocaleString()} of {total}
      </span>
      {next ? (
        <Button small onClick={() => address.set({ offset: next, name: null }, { push: true })}>
          Older
        </Button>
      ) : (
        <span />
      )}
    </div>
  );
}

function Row({ branch, on, onChoose }: { branch: Branch; on: boolean; onChoose: () => void }) {
  const { tone, means } = STATES[branch.state];
  return (
    <li class={on ? "branch-row on" : "branch-row"}>
      <button type="button" aria-pressed={on} onClick={onChoose}>
        <b class="cut" dir="auto">
          {seen(branch.name)}
        </b>
        <Tag tone={tone} title={means}>
          {branch.state}
        </Tag>
        <span class="soft small">{changesOfBranch(branch)}</span>
        <span class="soft small">
          by {seen(branch.author)}, <Time at={branch.created_at} short />
        </span>
      </button>
    </li>
  );
}

const TERMS = [
  ["", "as long as a proposal"],
  ["7d", "7 days"],
  ["30d", "30 days"],
  ["90d", "90 days"],
  ["365d", "a year"],
] as const;

function Make({ onClose, onMade }: { onClose: () => void; onMade: (branch: Branch) => void }) {
  const [name, setName] = useState("");
  const [reason, setReason] = useState("");
  const [expires, setExpires] = useState("");
  const [problem, setProblem] = useState<Problem | null>(null);
  const [busy, setBusy] = useState(false);
  const send = async () => {
    if (!name.trim() || busy) return;
    setBusy(true);
    const body = { name: name.trim(), reason: reason.trim(), expires: expires || undefined };
    const done = await ask(api.POST("/memory/branches", { body }));
    setBusy(false);
    if (!done.ok) return setProblem(done.problem);
    notifyChanged();
    say(`Made the branch ${done.data.name}. Main stays as it is.`);
    onMade(done.data);
  };
  return (
    <Dialog
      title="Make a branch"
      onClose={onClose}
      onSubmit={() => void send()}
      foot={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" tone="go" busy={busy} disabled={!name.trim()}>
            Make it
          </Button>
        </>
      }
    >
      <label class="field">
        <span>Name: letters, digits and . _ -</span>
        <input
          autofocus
          value={name}
          placeholder="try-x"
          autocomplete="off"
          spellcheck={false}
          aria-invalid={problem ? true : undefined}
          onInput={(event) => {
            setName(event.currentTarget.value);
            setProblem(null);
          }}
        />
      </label>
      {problem ? (
        <p class="bad" role="alert">
          {said(problem.detail)}
        </p>
      ) : null}
      <label class="field">
        <span>What it is for</span>
        <input value={reason} maxLength={900} onInput={(event) => setReason(event.currentTarget.value)} />
      </label>
      <label class="field">
        <span>It is open for</span>
        <select value={expires} onChange={(event) => setExpires(event.currentTarget.value)}>
          {TERMS.map(([value, title]) => (
            <option key={value} value={value}>
              {title}
            </option>
          ))}
        </select>
      </label>
      <p class="soft small">
        Agents work on it with <code>--branch {seen(name.trim() || "try-x")}</code> or the header{" "}
        <code>Keepward-Branch</code>.
      </p>
    </Dialog>
  );
}
