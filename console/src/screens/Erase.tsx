/** Erase: what goes, what stays and why, typed confirmation, and the certificate. */

import "./maintenance.css";
import { useState } from "preact/hooks";
import { Link } from "wouter-preact";
import { useAddress } from "../address";
import { api, ask, type Answer, type Problem, type Schemas } from "../api";
import { everywhere } from "../browse";
import { notifyChanged } from "../events";
import { Listed, whole } from "../listed";
import { get, useGet, useLoad, type Found } from "../load";
import { useDebounced } from "../debounce";
import { mayChange } from "../session";
import { Button } from "../parts/Button";
import { counted } from "../parts/Contain";
import { MemoryText } from "../parts/MemoryText";
import { Page } from "../parts/Page";
import { Empty, Failed, Shown } from "../parts/States";
import { Time } from "../parts/Time";
import { say } from "../parts/Toasts";
import { Who } from "../parts/Who";
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
/** What is to go, as the address has it. */
type Selection = Partial<Record<Way, string>> & { also?: string[] };

export function Erase() {
  const address = useAddress();
  const way: Way = (["subject", "source"] as const).find((each) => address.get(each)) ?? "ids";
  const value = address.get(way);
  const reason = (address.get("reason") || "request") as Reason;
  const ids = address
    .get("ids")
    .split(/[\s,]+/)
    .filter(Boolean);
  const also = address.all("also");
  const include_citing = address.get("citing") === "1";
  const chosen: Chosen | null = !value
    ? null
    : way === "ids"
      ? { ids, reason, include_citing }
      : { [way]: value, ids: also, reason, include_citing };
  const choose = (to: Selection) =>
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
                  {way !== "ids" && also.length ? `, and ${counted(also.length, "memory", "memories")} more` : ""}
                </b>
                <Button small tone="quiet" onClick={() => choose({})}>
                  Choose something else
                </Button>
              </p>
            ) : (
              <Finder begin={address.get("who")} onChoose={choose} />
            )}
            <label class="field">
              <span>Reason (the certificate repeats it)</span>
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
              onMore={(id) => address.set(way === "ids" ? { ids: [...ids, id].join(" ") } : { also: [...also, id] })}
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
const OFFERED = 12;

/** Memories that go together by what they have in common. */
interface Offer {
  title: string;
  /** What a search has to be like. */
  name: string;
  count: number;
  /** How the plan names them; those without are named by their ids. */
  way?: { subject: string } | { source: string };
  /** Filters that find them. */
  filters: Record<string, string | string[]>;
  /** Whether it is a person of that name, and so ticked where the name alone is written. */
  person?: boolean;
}

/** Return how much of so many memories an offer without a name of its own can be: a plan names few ids. */
function allOf(count: number): string {
  return count > MOST ? `The first ${MOST}` : "All";
}

/** Return what has a part of its name in common with a search, and how much there is of it. */
function offersOf(
  facets: Found<"/memory/facets"> | undefined,
  sources: Found<"/memory/sources"> | undefined,
  users: readonly Schemas["Member"][],
  projects: readonly Schemas["Member"][],
): Listed<Offer> {
  const about = (subject: Schemas["Count"]): Offer => ({
    title: `All about ${subject.value}`,
    name: subject.value,
    count: subject.count,
    way: { subject: subject.value },
    filters: { subject: subject.value },
    person: true,
  });
  const kept =
    (place: "users" | "projects") =>
    (member: Schemas["Member"]): Offer => ({
      title: `${allOf(member.memories)} kept for the ${place === "users" ? "user" : "project"} ${member.name}`,
      name: member.name,
      count: member.memories,
      filters: { within: `/${place}/${member.name}` },
      person: place === "users",
    });
  const from = (row: Schemas["SourceActivity"]): Offer => ({
    title: `All from ${row.name}`,
    name: row.name,
    count: row.memories,
    way: { source: row.name },
    filters: {},
  });
  const by = (row: Schemas["SourceActivity"]): Offer => ({
    title: `${allOf(row.memories)} that ${row.name} wrote`,
    name: row.name,
    count: row.memories,
    filters: { author: row.name },
    person: row.name.startsWith("user:"),
  });
  const subjects = facets?.facets["subject"] ?? whole([]);
  const { actors, sources: kinds, references } = sources ?? NO_SOURCES;
  const offers = [
    ...subjects.shown.map(about),
    ...users.map(kept("users")),
    ...projects.map(kept("projects")),
    ...actors.shown.map(by),
    ...kinds.shown.map(from),
    ...references.shown.map(from),
  ];
  const isWhole = [subjects, actors, kinds, references].every((list) => list.isWhole);
  return new Listed(offers, isWhole ? offers.length : undefined);
}

const NO_SOURCES: Pick<Found<"/memory/sources">, "actors" | "sources" | "references"> = {
  actors: whole([]),
  sources: whole([]),
  references: whole([]),
};

/** Whether an offer is meant by a name before anybody ticks it. */
function isMeant(offer: Offer, name: string): boolean {
  const sought = name.toLowerCase();
  const own = offer.name.toLowerCase();
  return (
    own === sought ||
    (offer.person === true && own === `user:${sought}`) ||
    (offer.person === true && sought === `user:${own}`)
  );
}

const ALL = { below: true, include_ended: true } as const;

/** Return the ids of what some filters find. */
async function idsOf(filters: Offer["filters"]): Promise<Answer<Listed<string>>> {
  const found = await get("/memory/items", {
    params: { query: { ...ALL, ...filters, limit: MOST, include_sensitive: true } },
  });
  return found.ok ? { ...found, data: found.data.items.map((memory) => memory.id) } : found;
}

/** Return what is ticked as one selection: the first subject or source by its name, everything else by ids. */
async function selected(offers: readonly Offer[], ids: readonly string[]): Promise<Answer<Selection>> {
  const named = offers.find((offer) => offer.way);
  const others = new Set(ids);
  let left = 0;
  for (const offer of offers) {
    if (offer === named) continue;
    const filters = offer.way && "source" in offer.way ? null : offer.filters;
    const found = filters ? await idsOf(filters) : await fromSource(offer.name);
    if (!found.ok) return found;
    for (const id of found.data.shown) others.add(id);
    left += found.data.left ?? 0;
  }
  const rest = [...others].slice(0, MOST);
  left += others.size - rest.length;
  if (left)
    say(`A plan names at most ${MOST} ids. Erase these, then choose the other ${left.toLocaleString()}.`, {
      tone: "bad",
    });
  const data: Selection = named?.way ? { ...named.way, also: rest } : { ids: rest.join(" ") };
  return { ok: true, status: 200, etag: null, data };
}

/** Return the ids of what came from a source, by its class or by its address. */
async function fromSource(source: string): Promise<Answer<Listed<string>>> {
  const found = await ask(api.GET("/memory/impact", { params: { query: { source } } }));
  return found.ok ? { ...found, data: whole(found.data.direct.map((memory) => memory.id)) } : found;
}

/** One box for people, sources and words: what has such a name is offered with counts, and memories that say it are ticked. */
function Finder({ begin, onChoose }: { begin: string; onChoose: (to: Selection) => void }) {
  const [text, setText] = useState(begin);
  // What a click turned away from what was offered.
  const [turned, setTurned] = useState<ReadonlySet<string>>(new Set());
  const [busy, setBusy] = useState(false);
  const sought = useDebounced(text.trim());
  const bare = sought.replace(/^(user|agent|operator):/, "");
  const given = sought.split(/[\s,]+/).filter(Boolean);
  const ids = given.length > 0 && given.every((each) => ID.test(each)) ? given : [];
  const seek = sought !== "" && !ids.length;
  const facets = useGet(seek ? "/memory/facets" : null, { params: { query: { ...ALL, of: ["subject"], name: bare } } });
  const sources = useGet(seek ? "/memory/sources" : null, { params: { query: { below: true, name: bare } } });
  const users = useGet(seek ? "/memory/users" : null, { params: { query: { name: bare } } });
  const projects = useGet(seek ? "/memory/projects" : null, { params: { query: { name: bare } } });
  const named = useGet(seek ? "/memory/items" : null, {
    params: { query: { ...ALL, text: bare, limit: MOST, include_sensitive: true } },
  });
  const spoken = useGet(seek ? "/memory/search" : null, {
    params: { query: { query: bare, limit: 100, include_sensitive: true, within: everywhere() } },
  });
  const answered = [facets, sources, users, projects, named].every((each) => each.data);
  const offers = offersOf(facets.data, sources.data, users.data?.items ?? [], projects.data?.items ?? [])
    .sorted((one, other) => Number(isMeant(other, sought)) - Number(isMeant(one, sought)))
    .first(OFFERED);
  const says = named.data?.items ?? whole([]);
  const known = new Set(says.shown.map((memory) => memory.id));
  const said = (spoken.data?.hits.shown ?? [])
    .map((hit) => hit.memory)
    .filter((memory) => memory.speaker?.toLowerCase() === bare.toLowerCase() && !known.has(memory.id));
  const memories = [...says.shown, ...said];
  const turn = (id: string) => {
    const next = new Set(turned);
    if (!next.delete(id)) next.add(id);
    setTurned(next);
  };
  const isTicked = (offer: Offer) => isMeant(offer, sought) !== turned.has(offer.title);
  const chosen = offers.shown.filter(isTicked);
  const ticked = memories.filter((memory) => turned.has(memory.id)).map((memory) => memory.id);
  const plan = async () => {
    setBusy(true);
    const found = await selected(chosen, ticked);
    setBusy(false);
    if (!found.ok) return say(found.problem.detail, { tone: "bad" });
    onChoose(found.data);
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
          onInput={(event) => {
            setText(event.currentTarget.value);
            setTurned(new Set());
          }}
        />
      </label>
      {ids.length ? (
        <div>
          <Button onClick={() => onChoose({ ids: ids.join(" ") })}>
            Plan for {counted(ids.length, "memory", "memories")}
          </Button>
        </div>
      ) : null}
      {seek && answered && !offers.shown[0] && !memories.length ? (
        <p class="soft" role="status">
          Nothing has that name, and no memory says it.
        </p>
      ) : null}
      {offers.shown[0] ? (
        <ul class="plain-list boxed" aria-label="People and sources">
          {offers.shown.map((offer) => (
            <li key={offer.title}>
              <label class="tick">
                <input type="checkbox" checked={isTicked(offer)} onChange={() => turn(offer.title)} />
                <span>{seen(offer.title)}</span>
                <span class="soft small">{counted(offer.count, "memory", "memories")}</span>
              </label>
            </li>
          ))}
          {offers.isWhole ? null : <li class="soft small">and {offers.rest}: write more of the name</li>}
        </ul>
      ) : null}
      {seek && memories.length ? (
        <>
          <p class="soft small">
            {says.plus(said).named("memory says", "memories say")} “{seen(bare)}”
            {said.length ? ", or were said by it" : ""}: tick those that are to go, too.
            {says.isWhole ? "" : ` ${counted(memories.length, "memory", "memories")} can be ticked here.`}
          </p>
          <ul class="plain-list boxed" aria-label="Memories that say it" tabIndex={0}>
            {memories.map((memory) => (
              <li key={memory.id}>
                <label class="tick">
                  <input type="checkbox" checked={turned.has(memory.id)} onChange={() => turn(memory.id)} />
                  <span>
                    <MemoryText text={memory.text} limit={300} />
                  </span>
                </label>
              </li>
            ))}
          </ul>
        </>
      ) : null}
      {chosen.length || ticked.length ? (
        <div>
          <Button busy={busy} onClick={() => void plan()}>
            Plan for what is ticked
          </Button>
        </div>
      ) : null}
    </>
  );
}

function Plan({ chosen, onMore }: { chosen: Chosen; onMore: (id: string) => void }) {
  const [done, setDone] = useState<Schemas["Destroyed"] | null>(null);
  // What is gone has no plan any more.
  const plan = useLoad<Schemas["ErasePlan"]>(done ? "" : `erase ${JSON.stringify(chosen)}`, () =>
    ask(api.POST("/memory/erase/plan", { body: chosen })),
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
        body: { ...chosen, digest: plan.data.digest },
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
        <Download commit={done.commit.id} />
        <Link href={`/commits?at=${done.commit.id}`}>The commit</Link>
      </div>
      <p class="soft small">What it said is refused when somebody says it again in the same words.</p>
    </div>
  );
}

function Download({ commit }: { commit: string }) {
  return (
    <span class="line">
      <a class="btn sm" href={`/memory/certificates/${commit}?format=html`} download={`erasure-${commit}.html`}>
        Certificate to read and print
      </a>
      <a class="btn sm quiet" href={`/memory/certificates/${commit}`} download={`erasure-${commit}.json`}>
        as JSON
      </a>
    </span>
  );
}

function Certificates() {
  const found = useGet("/memory/commits", { params: { query: { kind: "erase", limit: 500 } } });
  return (
    <section class="card" aria-label="Certificates">
      <h2 class="pad">What was erased</h2>
      <Shown of={found}>
        {(data) =>
          data.items.shown[0] ? (
            <ol class="plain-list">
              {data.items.shown.map((each) => (
                <li key={each.commit.id} class="cert">
                  <span>
                    {counted(each.steps.length, "memory", "memories")}, since{" "}
                    {(REASONS as Record<string, string>)[each.details.reason] ?? seen(each.details.reason)}
                  </span>
                  <span class="soft small">
                    <Who name={each.details.actor} /> · <Time at={each.commit.at} />
                  </span>
                  <Download commit={each.commit.id} />
                </li>
              ))}
              {data.items.isWhole ? null : <li class="pad soft small">and {data.items.rest}, in the commits</li>}
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
