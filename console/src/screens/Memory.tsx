/** One memory: everything of it, where it came from, where it went, and what can be done with it. */

import "./memory.css";
import { useState } from "preact/hooks";
import { Link, useParams } from "wouter-preact";
import { useAddress } from "../address";
import { addressOf, type Schemas } from "../api";
import { changesOf, type Change } from "../changes";
import { useKeys } from "../keys";
import { commits } from "../events";
import { useGet } from "../load";
import { mayChange } from "../session";
import { Button } from "../parts/Button";
import { ContainDialog, counted } from "../parts/Contain";
import { Copy } from "../parts/Copy";
import { CommitLink } from "../parts/CommitLink";
import { Damage } from "../parts/Damage";
import { Diff } from "../parts/Diff";
import { MemorySummary } from "../parts/MemorySummary";
import { Lineage } from "../parts/Lineage";
import { Media } from "../parts/Media";
import { MemoryText } from "../parts/MemoryText";
import { Page } from "../parts/Page";
import { Empty, Shown } from "../parts/States";
import { Tag } from "../parts/Tag";
import { Time } from "../parts/Time";
import { aboutOf, Who } from "../parts/Who";
import { seen, written } from "../parts/seen";
import { MEMORY_ACTIONS, ActionDialog, type MemoryAction } from "./actions";
import { OPS } from "./review/labels";

type Item = Schemas["Record"];

export function Memory() {
  const { id: raw = "" } = useParams<{ id: string }>();
  const id = decodeURIComponent(raw);
  const asOf = useAddress().get("at") || undefined;
  const path = { id };
  const found = useGet("/memory/items/{id}", { params: { path, query: { as_of: asOf } } }, asOf ? null : commits);
  const json = addressOf("/memory/items/{id}", { params: { path, query: { as_of: asOf } } });
  return (
    <Page title={titled(found.data)} lede={<span class="mono small">{seen(id)}</span>} json={json}>
      <Shown of={found}>{(item) => <Whole item={item} asOf={asOf} />}</Shown>
      {found.data === undefined && found.problem?.code === "tampered" ? <Earlier id={id} /> : null}
    </Page>
  );
}

/** What can be read of a memory whose newest version cannot. */
function Earlier({ id }: { id: string }) {
  const history = useGet("/memory/items/{id}/history", { params: { path: { id } } });
  return (
    <section class="card pad stack" aria-labelledby="versions">
      <h2 id="versions">Versions</h2>
      <Shown of={history}>{(data) => <Versions of={data} />}</Shown>
    </section>
  );
}

// Characters of its first line that stand for a memory.
const TITLE = 60;

function titled(item: Item | undefined): string {
  const first = item?.text.split("\n")[0]?.trim() ?? "";
  return first ? written(first.length > TITLE ? `${first.slice(0, TITLE)}…` : first) : "Memory";
}

function Whole({ item, asOf }: { item: Item; asOf: string | undefined }) {
  const path = { id: item.id };
  const lineage = useGet("/memory/items/{id}/lineage", { params: { path } });
  const history = useGet("/memory/items/{id}/history", { params: { path } });
  return (
    <div class="memory-page">
      {asOf ? (
        <p class="banner">
          As it was at {seen(asOf)}. <Link href={`/memories/${encodeURIComponent(item.id)}`}>Look at it now</Link>
        </p>
      ) : null}
      <div class="stack memory-page-main">
        <section class="card pad stack" aria-label="What it says">
          {mayChange() && !asOf ? (
            <>
              <Actions item={item} />
              <Ways />
            </>
          ) : null}
          <MemoryText text={item.text} limit={1_200} class="memory-page-text" />
          {item.blob ? <Media reference={item.blob} text={item.text} /> : null}
          <div class="line small">
            <MemorySummary memory={item} />
            {item.tags.map((tag) => (
              <Link key={tag} href={`/memories?tag=${encodeURIComponent(tag)}`}>
                <Tag tone="accent">{tag}</Tag>
              </Link>
            ))}
          </div>
        </section>
        <section class="card pad stack" aria-labelledby="versions">
          <h2 id="versions">Versions</h2>
          <Shown of={history}>{(data) => <Versions of={data} />}</Shown>
        </section>
        <section class="card pad stack" aria-labelledby="lineage">
          <h2 id="lineage">Lineage</h2>
          <Shown of={lineage}>{(data) => <Lineage found={data} />}</Shown>
        </section>
      </div>
      <div class="stack memory-page-side">
        <section class="card pad stack" aria-labelledby="fields">
          <h2 id="fields">Fields, and who made each</h2>
          <Fields item={item} />
        </section>
        <section class="card pad stack" aria-labelledby="use">
          <h2 id="use">Use</h2>
          {item.uses ? (
            <p>
              Used by agents {counted(item.uses, "time")}, last <Time at={item.last_used} short />.
            </p>
          ) : (
            <p class="soft">No agent used it yet.</p>
          )}
          <Contexts id={item.id} />
        </section>
      </div>
    </div>
  );
}

// --- what can be done

function Actions({ item }: { item: Item }) {
  const [open, setOpen] = useState<MemoryAction | "contain" | null>(null);
  const actions = MEMORY_ACTIONS.filter((each) => each.fits(item));
  useKeys(
    "This memory",
    Object.fromEntries([
      ...actions.flatMap((each) =>
        each.key ? [[each.key, { does: each.title, run: () => setOpen(each) }] as const] : [],
      ),
      ["c", { does: "Take out of use", run: () => setOpen("contain") }] as const,
    ]),
  );
  return (
    <div class="line memory-page-acts">
      {actions.map((each) => (
        <Button
          key={each.name}
          small
          tone={each.name === "revise" ? "go" : each.name === "forget" ? "no" : undefined}
          hint={each.key}
          onClick={() => setOpen(each)}
        >
          {each.title}
        </Button>
      ))}
      <Button small hint="c" onClick={() => setOpen("contain")}>
        Take out of use
      </Button>
      <Link class="btn sm quiet" href={`/erase?ids=${encodeURIComponent(item.id)}`}>
        Erase for good…
      </Link>
      {open === "contain" ? (
        <ContainDialog ways={[{ memory: item.id }]} of="this memory" onClose={() => setOpen(null)} />
      ) : null}
      {open && open !== "contain" ? <ActionDialog action={open} item={item} onClose={() => setOpen(null)} /> : null}
    </div>
  );
}

/** Four ways to be rid of a memory, with what sets them apart. */
function Ways() {
  return (
    <details class="small">
      <summary class="soft">Forget, archive, take out of use, or erase?</summary>
      <dl class="facts">
        <dt>Forget</dt>
        <dd>It is no longer true or wanted. It stays in the history.</dd>
        <dt>Archive</dt>
        <dd>It is true and not needed now.</dd>
        <dt>Take out of use</dt>
        <dd>
          It is not to be trusted: it goes with all that was made from it, in one step that is undone in one step.
        </dd>
        <dt>Erase for good</dt>
        <dd>Nobody is to have it: the words are destroyed, and nothing brings them back.</dd>
      </dl>
    </details>
  );
}

// --- what it is

const NAMES: Record<string, string> = {
  content_type: "content",
  derived_from: "made from",
  superseded_by: "replaced by",
  occurred_at: "happened",
  expires_at: "expires",
};
// What the card above shows already, or another part of the screen.
const ELSEWHERE = new Set(["tags", "derived_from", "superseded_by"]);

function Fields({ item }: { item: Item }) {
  const blame = useGet("/memory/blame/{name}", { params: { path: { name: item.id } } });
  return (
    <Shown of={blame}>
      {(data) => (
        <>
          <Damage notes={data.notes} />
          {byCommit(data.origins).map((origins) => (
            <section key={origins[0].made.commit.id} class="stack memory-blame">
              <Damage notes={origins[0].made.damage} />
              <p class="small soft">
                <Who name={origins[0].actor} />
                {origins[0].approved_by ? (
                  <>
                    , approved by <Who name={origins[0].approved_by} />
                  </>
                ) : null}{" "}
                in <CommitLink of={origins[0].made.commit.seq} />, <Time at={origins[0].made.commit.at} short />
              </p>
              <dl class="facts">
                {origins.map((each) => (
                  <>
                    <dt>{NAMES[each.field] ?? each.field.replaceAll("_", " ")}</dt>
                    <dd>
                      {each.field === "text" ? (
                        <span class="soft">the words above</span>
                      ) : (
                        <Value
                          field={each.field}
                          value={each.value}
                          now={
                            each.field === "confidence"
                              ? item.confidence
                              : each.field === "importance"
                                ? item.importance
                                : undefined
                          }
                        />
                      )}
                    </dd>
                  </>
                ))}
              </dl>
            </section>
          ))}
          <details>
            <summary class="soft small">When, and its id</summary>
            <dl class="facts">
              <dt>written</dt>
              <dd>
                <Time at={item.created_at} />{" "}
                <span class="soft small">
                  <Who name={item.author} />
                </span>
              </dd>
              <dt>changed</dt>
              <dd>
                <Time at={item.updated_at} />
              </dd>
              <dt>confirmed</dt>
              <dd>
                <Time at={item.reinforced_at} />
              </dd>
              <dt>version</dt>
              <dd>{item.version}</dd>
              <dt>id</dt>
              <dd>
                <span class="mono">{item.id}</span> <Copy text={item.id} />
              </dd>
              {item.heard ? (
                <>
                  <dt>heard</dt>
                  <dd>{item.heard}</dd>
                </>
              ) : null}
            </dl>
          </details>
        </>
      )}
    </Shown>
  );
}

type Some<T> = readonly [T, ...T[]];

/** Return the origins of what is shown, those of one commit together, the newest first. */
function byCommit(origins: readonly Schemas["Origin"][]): Some<Schemas["Origin"]>[] {
  const found = new Map<string, [Schemas["Origin"], ...Schemas["Origin"][]]>();
  for (const each of origins) {
    if (ELSEWHERE.has(each.field)) continue;
    const held = found.get(each.made.commit.id);
    if (held) held.push(each);
    else found.set(each.made.commit.id, [each]);
  }
  return [...found.values()].sort((a, b) => b[0].made.commit.seq - a[0].made.commit.seq);
}

function Value({ field, value, now }: { field: string; value: unknown; now: number | undefined }) {
  if (now !== undefined && typeof value === "number" && now.toFixed(2) !== value.toFixed(2))
    return (
      <>
        {now.toFixed(2)} <span class="soft small">now; {value.toFixed(2)} when it was set</span>
      </>
    );
  if (field === "source" || field === "session" || field === "subject" || field === "author" || field === "speaker")
    return <Who name={String(value)} />;
  if (field === "scope" || field === "category") {
    return <Link href={`/memories?${field}=${encodeURIComponent(String(value))}`}>{seen(String(value))}</Link>;
  }
  if (field === "evidence" && Array.isArray(value)) {
    return (
      <>
        {value.map((each) => (
          <Link key={String(each)} href={aboutOf(String(each))}>
            <Tag tone="accent">{String(each)}</Tag>
          </Link>
        ))}
      </>
    );
  }
  if (typeof value === "string" && /_at$/.test(field)) return <Time at={value} />;
  if (Array.isArray(value))
    return (
      <>
        {value.map((each) => (
          <Tag key={String(each)}>{String(each)}</Tag>
        ))}
      </>
    );
  if (value !== null && typeof value === "object") return <code>{seen(JSON.stringify(value))}</code>;
  return <>{seen(String(value))}</>;
}

function Versions({ of: { items, notes } }: { of: Schemas["Versions"] }) {
  const [all, setAll] = useState(false);
  const newest = [...items].reverse();
  const said = newest.filter((each) => each.damage.length || !isUpkeep(each));
  const shown = all ? newest : said.slice(0, 5);
  return (
    <>
      <Damage notes={notes} />
      <ol class="plain-list memory-versions">
        {shown.map((each) => (
          <li key={each.record.version} class="stack">
            <div class="line small">
              <b class="num">{each.record.version}</b> <Tag>{OPS[each.op] ?? each.op}</Tag>{" "}
              <Who name={each.details.actor} />
              {each.details.approved_by ? (
                <span class="soft">
                  approved by <Who name={each.details.approved_by} />
                </span>
              ) : null}
              <span class="spread" />
              <CommitLink of={each.commit.seq} /> <Time at={each.commit.at} />
            </div>
            <Damage notes={each.damage} />
            {each.details.reason ? <p class="soft small">{seen(each.details.reason)}</p> : null}
            {each.before?.text !== each.record.text ? (
              <Diff before={each.before?.text} after={each.record.text} />
            ) : null}
            <Changed items={each.before === null ? [] : changed(each).filter((one) => one.field !== "text")} />
          </li>
        ))}
      </ol>
      {newest.length > shown.length ? (
        <div>
          <Button small onClick={() => setAll(true)}>
            All {newest.length} versions
            {said.length < newest.length
              ? `, ${(newest.length - said.length).toLocaleString()} of them by maintenance`
              : ""}
          </Button>
        </div>
      ) : null}
    </>
  );
}

// What the store itself changes while a memory is used.
const UPKEEP = new Set([
  "importance",
  "base_importance",
  "base_confidence",
  "reinforced_at",
  "uses",
  "last_used",
  "updated_at",
]);

function changed(each: Schemas["Version"]): Change[] {
  return changesOf(each.before, each.record);
}

function isUpkeep(each: Schemas["Version"]): boolean {
  return (
    each.before !== null &&
    each.details.actor.startsWith("job:") &&
    changed(each).every((change) => UPKEEP.has(change.field))
  );
}

function Changed({ items }: { items: readonly Change[] }) {
  if (!items.length) return null;
  const said = (field: string, value: unknown) =>
    value === null || value === undefined ? (
      "nothing"
    ) : typeof value !== "string" ? (
      seen(JSON.stringify(value))
    ) : /_at$/.test(field) ? (
      <Time at={value} />
    ) : (
      seen(value)
    );
  return (
    <dl class="facts small">
      {items.map((each) => (
        <>
          <dt>{each.field.replaceAll("_", " ")}</dt>
          <dd>
            {said(each.field, each.before)} <span class="soft">became</span> {said(each.field, each.after)}
          </dd>
        </>
      ))}
    </dl>
  );
}

// --- what became of it

/** The contexts that held it, in the scopes that the reader sees. */
function Contexts({ id }: { id: string }) {
  const impact = useGet("/memory/impact", { params: { query: { memory: id } } });
  return <Shown of={impact}>{(data) => <Held contexts={[...data.contexts].reverse()} />}</Shown>;
}

// Contexts that are listed, the newest ones.
const LISTED = 100;

function Held({ contexts }: { contexts: readonly Schemas["Delivery"][] }) {
  if (!contexts.length) return <Empty title="In no prompt so far" />;
  return (
    <>
      <p>{counted(contexts.length, "context")} held it.</p>
      <ol class="plain-list boxed memory-contexts">
        {contexts.slice(0, LISTED).map((each) => (
          <li key={each.receipt} class="line small">
            <Link href={`/context?receipt=${each.receipt}`}>
              <Time at={each.at} />
            </Link>
            <span class="soft">
              <Who name={each.actor} /> to {each.purpose}
            </span>
            <span class="spread" />
            <span class="soft">
              version {each.items.map((item) => String((item as readonly unknown[])[1])).join(", ")}
            </span>
          </li>
        ))}
      </ol>
      {contexts.length > LISTED ? (
        <p class="soft small">{counted(contexts.length - LISTED, "older context")} not listed.</p>
      ) : null}
    </>
  );
}
