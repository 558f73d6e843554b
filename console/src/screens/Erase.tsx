/** Erase: what goes, what stays and why, typed confirmation, and the certificate. */

import "./maintenance.css";
import { useState } from "preact/hooks";
import { Link } from "wouter-preact";
import { useAddress } from "../address";
import { api, ask, type Answer, type Problem, type Schemas } from "../api";
import { notifyChanged } from "../events";
import { useGet, useLoad } from "../load";
import { useDebounced } from "../debounce";
import { mayChange } from "../session";
import { Button } from "../parts/Button";
import { counted } from "../parts/Contain";
import { MemoryText } from "../parts/MemoryText";
import { Page } from "../parts/Page";
import { Empty, Failed, Shown } from "../parts/States";
import { Time } from "../parts/Time";
import { say } from "../parts/Toasts";
import { seen } from "../parts/seen";

type Reason = keyof typeof REASONS;
type Chosen = { ids?: string[]; subject?: string; source?: string; reason: Reason; include_citing: boolean };

const REASONS = {
  request: "somebody asked for it",
  consent: "consent was withdrawn",
  retention: "it was kept for long enough",
  mistake: "it should never have been here",
  secret: "it holds a secret",
  other: "another reason",
} as const;
type Way = "ids" | "subject" | "source";

export function Erase() {
  const address = useAddress();
  const way: Way = (["subject", "source"] as const).find((each) => address.get(each)) ?? "ids";
  const value = address.get(way);
  const reason = (address.get("reason") || "request") as Reason;
  const ids = address
    .get("ids")
    .split(/[\s,]+/)
    .filter(Boolean);
  const include_citing = address.get("citing") === "1";
  const chosen: Chosen | null = !value
    ? null
    : way === "ids"
      ? { ids, reason, include_citing }
      : { [way]: value, ids: address.all("also"), reason, include_citing };
  const choose = (to: Partial<Record<Way, string>>) =>
    address.set({ ids: null, subject: null, source: null, also: null, ...to }, { push: true });
  return (
    <Page title="Erase" lede="for good: nothing brings it back" json="/memory/commits?kind=erase">
      <div class="two plan">
        <div class="card pad stack">
          <form class="stack" onSubmit={(event) => event.preventDefault()}>
            {chosen ? (
              <p class="line">
                <b>
                  {way === "ids" ? (
                    counted(ids.length, "memory", "memories")
                  ) : way === "subject" ? (
                    <>All about {seen(value)}</>
                  ) : (
                    <>All from {seen(value)}</>
                  )}
                </b>
                <Button small tone="quiet" onClick={() => choose({})}>
                  Choose something else
                </Button>
              </p>
            ) : (
              <Finder begin={address.get("who")} onChoose={choose} />
            )}
            <label class="field">
              <span>Why; the certificate says it</span>
              <select value={reason} onChange={(event) => address.set({ reason: event.currentTarget.value })}>
                {Object.entries(REASONS).map(([name, title]) => (
                  <option key={name} value={name}>
                    {title}
                  </option>
                ))}
              </select>
            </label>
            <label class="line">
              <input
                type="checkbox"
                checked={include_citing}
                onChange={(event) => address.set({ citing: event.currentTarget.checked ? "1" : null })}
              />
              Also erase memories that derive from it or cite it
            </label>
          </form>
          {chosen ? (
            <Plan
              key={JSON.stringify(chosen)}
              chosen={chosen}
              onMore={(id) =>
                address.set(way === "ids" ? { ids: [...ids, id].join(" ") } : { also: [...address.all("also"), id] })
              }
            />
          ) : (
            <Empty title="Name what is to go">
              Then comes the plan: what would be destroyed and what would stay. Nothing is changed before you type its
              confirmation. To keep something and have no agent see it, forget it or take it out of use instead.
            </Empty>
          )}
        </div>
        <Certificates />
      </div>
    </Page>
  );
}

// Memories that are chosen one by one: more would not fit an address.
const MOST = 200;
const ID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const OFFERED = 8;

interface Offer {
  title: string;
  count: number;
  choose: () => void;
}

/** One box for people, sources and words: what has such a name is offered with counts, and memories that say it are ticked. */
function Finder({ begin, onChoose }: { begin: string; onChoose: (to: Partial<Record<Way, string>>) => void }) {
  const [text, setText] = useState(begin);
  const [ticked, setTicked] = useState<ReadonlySet<string>>(new Set());
  const sought = useDebounced(text.trim());
  const given = sought.split(/[\s,]+/).filter(Boolean);
  const ids = given.length > 0 && given.every((each) => ID.test(each)) ? given : [];
  const seek = sought !== "" && !ids.length;
  const all = { below: true, include_ended: true } as const;
  const facets = useGet(seek ? "/memory/facets" : null, { params: { query: all as never } });
  const sources = useGet(seek ? "/memory/sources" : null, { params: { query: { below: true } as never } });
  const named = useGet(seek ? "/memory/items" : null, {
    params: { query: { ...all, text: sought, limit: MOST, include_sensitive: true } as never },
  });
  const like = (name: string) => name.toLowerCase().includes(sought.toLowerCase());
  const writtenBy = async (author: string) => {
    const found = await ask(
      api.GET("/memory/items", {
        params: { query: { ...all, author: [author], limit: MOST, include_sensitive: true } as never },
      }),
    );
    if (!found.ok) return say(found.problem.detail, { tone: "bad" });
    onChoose({ ids: found.data.items.map((each) => each.id).join(" ") });
  };
  const from = (row: Schemas["Origins"]): Offer => ({
    title: `All from ${row.name}`,
    count: row.memories,
    choose: () => onChoose({ source: row.name }),
  });
  const offers: Offer[] = [
    ...(facets.data?.facets["subject"] ?? []).map((each) => ({
      title: `All about ${each.value}`,
      count: each.count,
      choose: () => onChoose({ subject: each.value }),
    })),
    ...(sources.data?.sources ?? []).map(from),
    ...(sources.data?.references ?? []).map(from),
    ...(sources.data?.actors ?? []).map((row) => ({
      title: `${row.memories > MOST ? `The first ${MOST} that` : "All that"} ${row.name} wrote`,
      count: row.memories,
      choose: () => void writtenBy(row.name),
    })),
  ].filter((each) => like(each.title.replace(/^All (about|from|that) /, "")));
  const memories = named.data?.items ?? [];
  const turn = (id: string) => {
    const next = new Set(ticked);
    if (!next.delete(id)) next.add(id);
    setTicked(next);
  };
  return (
    <>
      <label class="field">
        <span>Who or what is to go: a name, a source, words of a memory, or ids</span>
        <input
          type="search"
          value={text}
          autocomplete="off"
          spellcheck={false}
          dir="auto"
          onInput={(event) => setText(event.currentTarget.value)}
        />
      </label>
      {ids.length ? (
        <div>
          <Button onClick={() => onChoose({ ids: ids.join(" ") })}>
            Plan for {counted(ids.length, "memory", "memories")}
          </Button>
        </div>
      ) : null}
      {seek && facets.data && sources.data && named.data && !offers.length && !memories.length ? (
        <p class="soft" role="status">
          Nothing has that name, and no memory says it.
        </p>
      ) : null}
      {seek && offers.length ? (
        <ul class="plain-list boxed" aria-label="People and sources">
          {offers.slice(0, OFFERED).map((each) => (
            <li key={each.title} class="line">
              <span>{seen(each.title)}</span>
              <span class="soft small">{counted(each.count, "memory", "memories")}</span>
              <span class="spread" />
              <Button small onClick={each.choose}>
                Plan for these
              </Button>
            </li>
          ))}
        </ul>
      ) : null}
      {seek && memories.length ? (
        <>
          <p class="soft small">
            {counted(memories.length, "memory says", "memories say")} “{seen(sought)}”: tick those that are to go.
          </p>
          <ul class="plain-list boxed" aria-label="Memories that say it" tabIndex={0}>
            {memories.map((each) => (
              <li key={each.id}>
                <label class="tick">
                  <input type="checkbox" checked={ticked.has(each.id)} onChange={() => turn(each.id)} />
                  <span>
                    <MemoryText text={each.text} limit={300} />
                  </span>
                </label>
              </li>
            ))}
          </ul>
        </>
      ) : null}
      {ticked.size ? (
        <div>
          <Button onClick={() => onChoose({ ids: [...ticked].join(" ") })}>Plan for the {ticked.size} ticked</Button>
        </div>
      ) : null}
    </>
  );
}

function Plan({ chosen, onMore }: { chosen: Chosen; onMore: (id: string) => void }) {
  const [done, setDone] = useState<Schemas["Destroyed"] | null>(null);
  // What is gone has no plan any more.
  const plan = useLoad<Schemas["ErasePlan"]>(done ? "" : `erase ${JSON.stringify(chosen)}`, () =>
    ask(api.POST("/memory/erase/plan", { body: chosen as unknown as Schemas["PlanEraseRequest"] })),
  );
  const [typed, setTyped] = useState("");
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<Problem | null>(null);
  if (done) return <Done done={done} />;
  const words = plan.data ? `erase ${plan.data.targets.length}` : "";
  const run = async () => {
    if (!plan.data || typed.trim() !== words || busy) return;
    setBusy(true);
    const answer = (await ask(
      api.POST("/memory/erase", {
        body: { ...chosen, digest: plan.data.digest } as unknown as Schemas["EraseRequest"],
      }),
    )) as Answer<Schemas["Destroyed"]>;
    setBusy(false);
    if (!answer.ok) {
      setProblem(answer.problem);
      plan.reload();
      return;
    }
    setDone(answer.data);
    notifyChanged();
    say(`Erased ${counted(answer.data.plan.targets.length, "memory", "memories")}.`);
  };
  return (
    <Shown of={plan}>
      {(data) =>
        data.targets.length === 0 ? (
          <Empty title="There is nothing of it left to erase" />
        ) : (
          <form
            class="stack"
            onSubmit={(event) => {
              event.preventDefault();
              void run();
            }}
          >
            <h2>What goes</h2>
            <ol class="plain-list boxed" aria-label="What goes">
              {data.targets.slice(0, 200).map((each) => (
                <li key={each.id}>
                  <Words id={each.id} text={each.text} />{" "}
                  <span class="faint small">
                    {counted(each.versions, "version")} · {seen(each.why)}
                  </span>
                </li>
              ))}
              {data.targets.length > 200 ? (
                <li class="soft">and {(data.targets.length - 200).toLocaleString()} more</li>
              ) : null}
            </ol>
            <p class="soft">
              With them go {counted(data.versions.length, "version")} in the journal, their words, vectors and marks
              {data.blobs.length ? `, ${counted(data.blobs.length, "file")}` : ""}
              {data.artefacts.length
                ? `, ${counted(data.artefacts.length, "kept text")} of contexts and learned weights`
                : ""}
              . {counted(data.receipts.length, "receipt")} and {counted(data.proposals.length, "proposal")} are written
              anew without them.
            </p>
            <h2>What stays</h2>
            {data.candidates.length === 0 ? (
              <p class="soft">Nothing else was made from it, cites it or quotes it.</p>
            ) : (
              <>
                <p class="soft">
                  Other memories were made from it, cite it or quote it. They say something of their own, so they stay
                  unless you name them too.
                </p>
                <ol class="plain-list boxed" aria-label="What stays">
                  {data.candidates.map((each) => (
                    <li key={each.id} class="line">
                      <Words id={each.id} text={each.text} /> <span class="faint small">{seen(each.why)}</span>
                      <span class="spread" />
                      <Button small onClick={() => onMore(each.id)}>
                        Erase it too
                      </Button>
                    </li>
                  ))}
                </ol>
              </>
            )}
            <p class="soft">
              What always stays: ids, times, names of who wrote them, and how many versions there were. The chain of
              commits has to hold. Copies made elsewhere are out of reach.
            </p>
            {mayChange() ? (
              <>
                <label class="field">
                  <span>
                    Type <b>{words}</b> to confirm
                  </span>
                  <input
                    value={typed}
                    autocomplete="off"
                    spellcheck={false}
                    onInput={(event) => setTyped(event.currentTarget.value)}
                  />
                </label>
                <div>
                  <Button type="submit" tone="no" busy={busy} disabled={typed.trim() !== words}>
                    Erase for good
                  </Button>
                </div>
              </>
            ) : null}
            {problem ? <Failed problem={problem} /> : null}
          </form>
        )
      }
    </Shown>
  );
}

function Words({ id, text }: { id: string; text: string }) {
  return (
    <>
      <MemoryText one text={text} />{" "}
      <Link class="mono small" href={`/memories/${id}`}>
        {id.slice(0, 8)}
      </Link>
    </>
  );
}

function Done({ done }: { done: Schemas["Destroyed"] }) {
  return (
    <div class="stack" role="status">
      <h2 class="good">Erased</h2>
      <p>
        {counted(done.plan.targets.length, "memory", "memories")} {done.plan.targets.length === 1 ? "is" : "are"} gone.
        The certificate says what was destroyed, what proves it, and what it cannot promise.
      </p>
      <div class="line">
        <Download commit={done.commit} />
        <Link href={`/commits?at=${done.commit}`}>The commit</Link>
      </div>
      <p class="soft small">What it said is refused when somebody says it again in the same words.</p>
    </div>
  );
}

function Download({ commit }: { commit: string }) {
  return (
    <a class="btn sm" href={`/memory/certificates/${commit}`} download={`erasure-${commit}.json`}>
      Download the certificate
    </a>
  );
}

function Certificates() {
  const found = useGet("/memory/commits", { params: { query: { kind: "erase", limit: 500 } } });
  return (
    <section class="card" aria-label="Certificates">
      <h2 class="pad">What was erased</h2>
      <Shown of={found}>
        {(data) =>
          data.items.length ? (
            <ol class="plain-list">
              {data.items.map((each) => (
                <li key={each.id} class="cert">
                  <span>
                    {counted(each.changes.length, "memory", "memories")}, since{" "}
                    {(REASONS as Record<string, string>)[each.reason] ?? seen(each.reason)}
                  </span>
                  <span class="soft small">
                    {seen(each.actor)} · <Time at={each.at} />
                  </span>
                  <Download commit={each.id} />
                </li>
              ))}
            </ol>
          ) : (
            <Empty title="Nothing was erased so far">
              Each erasure leaves a certificate here, without any of what was erased.
            </Empty>
          )
        }
      </Shown>
    </section>
  );
}
