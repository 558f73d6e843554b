/** Home: whether all is well, in five seconds, and what to do where it is not. */

import "./home/home.css";
import { useState } from "preact/hooks";
import { Link } from "wouter-preact";
import type { Schemas } from "../api";
import { notifyChanged, queueVersion } from "../events";
import { useGet, type Loaded } from "../load";
import { screens } from "../screens";
import { mayChange } from "../session";
import { status, statusProblem } from "../status";
import { Button } from "../parts/Button";
import { counted } from "../parts/Contain";
import { Copy } from "../parts/Copy";
import { Meter } from "../parts/Meter";
import { Page } from "../parts/Page";
import { Failed, Loading, Shown } from "../parts/States";
import { Spark } from "../parts/Spark";
import { Tag } from "../parts/Tag";
import { Time, present, span } from "../parts/Time";
import { say } from "../parts/Toasts";
import { MemoryText } from "../parts/MemoryText";
import { Who } from "../parts/Who";
import { said, seen } from "../parts/seen";
import { Begin } from "./home/Begin";
import { summaryOf, headline } from "./review/labels";
import { verify, warningsOf, type Warning } from "./home/warnings";

type Status = Schemas["Status"];
type Audit = { at: string; faults: number } | null;
const DAYS = 14;
const AGENTS = 8;

export function Home() {
  const now = status.value;
  // The numbers first: what takes longer comes after them.
  const checks = useGet(now ? "/memory/doctor" : null);
  const jobs = useGet(now ? "/memory/jobs" : null);
  const zone = -new Date().getTimezoneOffset();
  const activity = useGet(now ? "/memory/activity" : null, {
    params: { query: { days: DAYS, by: "author", zone, include_ended: true, below: true } },
  });
  const settings = useGet(now && mayChange() ? "/memory/settings" : null);
  const audited = jobs.data?.items.find((each) => each.name === "integrity_audit");
  const receipt = useGet(
    audited?.last_receipt ? "/memory/receipts/{id}" : null,
    { params: { path: { id: audited?.last_receipt ?? "" } } },
    queueVersion,
  );
  const audit: Audit = receipt.data ? { at: receipt.data.at, faults: faultsOf(receipt.data) } : null;
  if (!now) {
    return (
      <Page title="Home">{statusProblem.value ? <Failed problem={statusProblem.value} /> : <Loading rows={6} />}</Page>
    );
  }
  const ready = checks.data && jobs.data;
  const warnings = ready
    ? warningsOf({
        checks: ready && checks.data!.items,
        jobs: jobs.data!.items,
        activity: activity.data,
        file: settings.data?.file ?? null,
        now: present.value,
      })
    : [];
  if (audit?.faults)
    warnings.unshift({
      id: "audit",
      tone: "bad",
      text: `The last verification found ${audit.faults} faults`,
      help: "verify again to see which, then decide what to bring back",
      to: { path: "/integrity", title: "See them" },
      act: { title: "Verify again", run: verify, done: "Verified" },
    });
  const empty = now.commits === 0 || (now.total === 0 && !now.quarantine.depth);
  return (
    <Page title="Home" lede={ready ? verdict(warnings, now.quarantine.depth) : "looking…"} json="/memory/status">
      {empty && mayChange() ? <Begin /> : null}
      <div class="tiles">
        <Waiting now={now} />
        <Memories now={now} counts={activity.data?.counts} />
        <Blocks now={now} />
        <Integrity now={now} audit={audit} jobs={jobs} checks={checks} />
      </div>
      <div class="home">
        <div class="stack">
          {warnings.length ? <LookAt warnings={warnings} /> : null}
          {now.quarantine.depth ? <Queue /> : null}
          {empty ? null : <News />}
          <Agents activity={activity} />
        </div>
        <div class="stack">
          <Tiers now={now} />
          <BlockList now={now} />
          <Jobs jobs={jobs} />
        </div>
      </div>
    </Page>
  );
}

function faultsOf(receipt: Schemas["AnyReceipt"]): number {
  const counts = receipt.counts as { faults?: number } | undefined;
  return counts?.faults ?? 0;
}

function verdict(warnings: readonly Warning[], waiting: number): string {
  const bad = warnings.filter((each) => each.tone === "bad").length;
  const parts = [];
  if (bad) parts.push(bad === 1 ? "one thing is wrong" : `${bad} things are wrong`);
  if (waiting) parts.push(`${counted(waiting, "proposal")} ${waiting === 1 ? "waits" : "wait"} for you`);
  if (!bad && warnings.length)
    parts.push(warnings.length === 1 ? "one thing to look at" : `${warnings.length} things to look at`);
  return parts.join(", ") || "all is well";
}

function exists(path: string): boolean {
  return screens.some((each) => each.path === path);
}

function Waiting({ now }: { now: Status }) {
  const { depth, oldest_at: oldest, expired } = now.quarantine;
  const old = oldest ? `the oldest for ${span(present.value - Date.parse(oldest))}` : "nothing to decide";
  return (
    <Link href="/review" class="card tile">
      <span class="soft">Waiting for you</span>
      <strong>{depth.toLocaleString()}</strong>
      <span class="soft small">{expired ? `${old}; ${expired.toLocaleString()} ran out undecided lately` : old}</span>
    </Link>
  );
}

function Memories({ now, counts }: { now: Status; counts: readonly number[] | undefined }) {
  const written = counts?.reduce((sum, each) => sum + each, 0) ?? 0;
  const inside = (
    <>
      <span class="soft">Memories</span>
      <strong>{now.live.toLocaleString()}</strong>
      {counts ? <Spark values={counts} label={`${written} written in ${DAYS} days`} /> : <span class="spark-room" />}
    </>
  );
  return exists("/memories") ? (
    <Link href="/memories" class="card tile">
      {inside}
    </Link>
  ) : (
    <div class="card tile">{inside}</div>
  );
}

function Blocks({ now }: { now: Status }) {
  const blocks = Object.values(now.blocks);
  const tokens = blocks.reduce((sum, each) => sum + each.tokens, 0);
  const budget = blocks.reduce((sum, each) => sum + each.budget, 0);
  const inside = (
    <>
      <span class="soft">Core blocks</span>
      <strong>
        {tokens.toLocaleString()} <small class="soft">of {budget.toLocaleString()} tokens</small>
      </strong>
      <Meter value={tokens} max={budget} label="Tokens of all core blocks" />
    </>
  );
  return exists("/core") ? (
    <Link href="/core" class="card tile">
      {inside}
    </Link>
  ) : (
    <div class="card tile">{inside}</div>
  );
}

function Integrity({
  now,
  audit,
  jobs,
  checks,
}: {
  now: Status;
  audit: Audit;
  jobs: Loaded<Schemas["Jobs"]>;
  checks: Loaded<{ items: Schemas["Check"][] }>;
}) {
  const [busy, setBusy] = useState(false);
  const sealed = checks.data?.items.find((each) => each.name === "seal")?.ok;
  const records = checks.data?.items.find((each) => each.name === "records")?.ok;
  const known = checks.data && jobs.data;
  const whole = known && sealed && records && !audit?.faults;
  const look = async () => {
    setBusy(true);
    const found = await verify();
    setBusy(false);
    if (!found.ok) return say(found.problem.detail, { tone: "bad" });
    const { ok, faults, checked } = found.data;
    const sum = Object.values(checked).reduce((total, each) => total + each, 0);
    say(ok ? `Intact: ${sum.toLocaleString()} things checked` : `${faults.length} faults: ${faults[0]?.detail ?? ""}`, {
      tone: ok ? "good" : "bad",
    });
  };
  return (
    <div class="card tile">
      <span class="soft">Integrity</span>
      <strong class={known ? (whole ? "good" : "bad") : "faint"}>
        {known ? (whole ? "intact" : sealed ? "damaged" : "not sealed") : "…"}{" "}
        <small class="soft">{now.commits.toLocaleString()} commits</small>
      </strong>
      <span class="soft small line">
        <span>
          {audit ? (
            <>
              verified <Time at={audit.at} short />
            </>
          ) : (
            "not verified yet"
          )}
        </span>
        {mayChange() ? (
          <Button small tone="quiet" busy={busy} onClick={() => void look()}>
            Verify now
          </Button>
        ) : null}
      </span>
    </div>
  );
}

function LookAt({ warnings }: { warnings: readonly Warning[] }) {
  return (
    <section class="card" aria-label="To look at">
      {warnings.map((each) => (
        <Look key={each.id} warning={each} />
      ))}
    </section>
  );
}

function Look({ warning }: { warning: Warning }) {
  const [busy, setBusy] = useState(false);
  const { act, to, command } = warning;
  const run = async () => {
    if (!act) return;
    setBusy(true);
    const done = await act.run();
    setBusy(false);
    if (done.ok) say(act.done);
    else say(done.problem.detail, { tone: "bad" });
    notifyChanged();
  };
  return (
    <div class="look">
      <Tag tone={warning.tone}>{warning.tone === "bad" ? "wrong" : "look"}</Tag>
      <div class="look-text">
        <p>{said(warning.text)}</p>
        <p class="soft small">{said(warning.help)}</p>
      </div>
      <div class="look-acts">
        {act && mayChange() ? (
          <Button small busy={busy} onClick={() => void run()}>
            {act.title}
          </Button>
        ) : null}
        {to && exists(to.path) ? (
          <Link href={to.path} class="btn sm">
            {to.title}
          </Link>
        ) : null}
        {command && !act ? (
          <Copy framed text={command}>
            Copy the command
          </Copy>
        ) : null}
      </div>
    </div>
  );
}

// Of what waits, and of what was decided and written lately, the first of each.
const FIRST = 5;

/** What waits for a person, the oldest first, each with how long. */
function Queue() {
  const found = useGet("/memory/quarantine", { params: { query: { limit: FIRST } } }, queueVersion);
  return (
    <section class="card" aria-label="What waits">
      <header class="card-head">
        <h2>What waits</h2>
        <Link class="small" href="/review">
          All of it
        </Link>
      </header>
      <Shown of={found}>
        {(data) => (
          <ul class="news">
            {data.items.map((each) => (
              <li key={each.id}>
                <Link href={`/review?at=${each.id}`}>
                  <MemoryText text={summaryOf(each) || headline(each)} one />
                </Link>
                <span class="soft small">
                  <Who name={each.proposer} />, <Time at={each.created_at} short />
                </span>
              </li>
            ))}
          </ul>
        )}
      </Shown>
    </section>
  );
}

const VISITED = "keepward-visited";
// Minutes after which a page that is opened is a new visit.
const VISIT = 30;

/** Return when the visit before this one ended, in milliseconds; 0 where this is the first. */
const lastVisit = (() => {
  const now = Date.now();
  let kept: { seen: number; before: number } = { seen: 0, before: 0 };
  try {
    kept = { ...kept, ...(JSON.parse(localStorage.getItem(VISITED) ?? "{}") as object) };
    const before = now - kept.seen > VISIT * 60_000 ? kept.seen : kept.before;
    localStorage.setItem(VISITED, JSON.stringify({ seen: now, before }));
    return before;
  } catch {
    return 0;
  }
})();

/** What was written and decided since the last visit, or lately; maintenance aside. */
function News() {
  const found = useGet("/memory/commits", { params: { query: { limit: 100 } } });
  return (
    <section class="card" aria-label="News">
      <header class="card-head">
        <h2>{lastVisit ? "Since your last visit" : "Lately"}</h2>
        <Link class="small" href="/commits?compare=yes">
          What changed this week
        </Link>
      </header>
      <Shown of={found}>
        {(data) => {
          const made = data.items.filter((each) => each.kind !== "job" && Date.parse(each.at) > lastVisit);
          return made.length ? (
            <ul class="news">
              {made.slice(0, FIRST).map((each) => (
                <li key={each.id}>
                  <Link href={`/commits?at=${each.seq}`}>
                    <MemoryText text={each.reason} one />
                  </Link>
                  <span class="soft small">
                    <Who name={each.actor} />
                    {each.approved_by && each.approved_by !== each.actor ? (
                      <>
                        , approved by <Who name={each.approved_by} />
                      </>
                    ) : null}
                    , <Time at={each.at} short />
                  </span>
                </li>
              ))}
              {made.length > FIRST ? (
                <li class="soft small">
                  and {made.length - FIRST}
                  {data.next_before ? " or" : ""} more
                </li>
              ) : null}
            </ul>
          ) : (
            <p class="soft none">Nothing was written or decided.</p>
          );
        }}
      </Shown>
    </section>
  );
}

function Agents({ activity }: { activity: Loaded<Schemas["Activity"]> }) {
  return (
    <section class="card" aria-label="What each wrote">
      <header class="card-head">
        <h2>Who wrote</h2>
        <span class="soft small">the last {DAYS} days</span>
      </header>
      <Shown of={activity}>
        {(data) => {
          const shown = data.series.slice(0, AGENTS);
          const most = Math.max(...shown.flatMap((each) => each.counts));
          return shown.length ? (
            <ul class="agents">
              {shown.map((each) => {
                const today = each.counts.at(-1) ?? 0;
                return (
                  <li key={each.name}>
                    <span class="cut">
                      <Who name={each.name} />
                    </span>
                    <Spark
                      values={each.counts}
                      most={most}
                      height={22}
                      label={`${each.name}: ${each.counts.join(", ")}`}
                    />
                    <span class="num soft">{today ? `${today} today` : ""}</span>
                    <b class="num">{each.total.toLocaleString()}</b>
                  </li>
                );
              })}
            </ul>
          ) : (
            <p class="soft none">Nobody wrote anything in these days.</p>
          );
        }}
      </Shown>
    </section>
  );
}

// Share of a tier's capacity from which a meter says something.
const VISIBLE = 0.02;
const ORDER = ["core", "working", "episodic", "archival"];

function Tiers({ now }: { now: Status }) {
  const capacity = (now.capacity ?? {}) as Record<string, { live: number; max: number }>;
  return (
    <section class="card bars" aria-label="Tiers">
      <h2>Tiers</h2>
      {ORDER.map((tier) => {
        const { live = now.by_tier[tier] ?? 0, max = 0 } = capacity[tier] ?? {};
        return (
          <div key={tier} class="bar-row">
            <span>{tier}</span>
            <span class="num">
              {live.toLocaleString()}
              {max ? <span class="faint"> of {max.toLocaleString()}</span> : null}
            </span>
            {live > max * VISIBLE && max ? <Meter value={live} max={max} label={`Memories in ${tier}`} /> : null}
          </div>
        );
      })}
    </section>
  );
}

function BlockList({ now }: { now: Status }) {
  return (
    <section class="card bars" aria-label="Block budgets">
      <h2>Core blocks</h2>
      {Object.entries(now.blocks).map(([name, block]) => (
        <div key={name} class="bar-row">
          <span class="cut">{seen(name.replaceAll("_", " "))}</span>
          <span class="num">
            {block.tokens}
            <span class="faint"> of {block.budget}</span>
          </span>
          <Meter value={block.tokens} max={block.budget} label={`Tokens of ${name}`} />
        </div>
      ))}
    </section>
  );
}

function Jobs({ jobs }: { jobs: Loaded<Schemas["Jobs"]> }) {
  return (
    <section class="card bars" aria-label="Jobs">
      <h2>Jobs</h2>
      <Shown of={jobs}>
        {(data) => {
          const last = [...data.items].sort((one, other) => (other.last_at ?? "").localeCompare(one.last_at ?? ""))[0];
          const next = [...data.items]
            .filter((each) => each.due_at)
            .sort((one, other) => (one.due_at ?? "").localeCompare(other.due_at ?? ""))[0];
          return (
            <dl class="facts small">
              <dt>Last</dt>
              <dd>
                {last?.last_at ? (
                  <>
                    {last.name.replaceAll("_", " ")}, <Time at={last.last_at} short />
                  </>
                ) : (
                  "none ran yet"
                )}
              </dd>
              <dt>Next</dt>
              <dd>
                {next ? (
                  <>
                    {next.name.replaceAll("_", " ")}, {next.due ? "due now" : <Time at={next.due_at} short />}
                  </>
                ) : (
                  "none"
                )}
              </dd>
              <dt>Embedder</dt>
              <dd>{seen(status.value?.embedder ?? "none: recall by words")}</dd>
            </dl>
          );
        }}
      </Shown>
    </section>
  );
}
