/** Home: whether all is well, what happened since the last visit, what waits, and what to do where something is wrong. */

import "./home/home.css";
import { Link } from "wouter-preact";
import { queueVersion } from "../events";
import { useGet } from "../load";
import { mayChange } from "../session";
import { statusProblem, useStatus } from "../status";
import { counted } from "../parts/Contain";
import { MemoryText } from "../parts/MemoryText";
import { Page } from "../parts/Page";
import { Failed, Loading, Shown } from "../parts/States";
import { Time, present } from "../parts/Time";
import { Who } from "../parts/Who";
import { Begin } from "./home/Begin";
import { LookAt } from "./home/LookAt";
import { News } from "./home/News";
import { Agents, BlockList, Jobs, Tiers } from "./home/Store";
import { DAYS, Integrity, Memories, Prompts, Waiting } from "./home/Tiles";
import { useUnusual } from "./home/unusual";
import { warningsOf, type Warning } from "./home/warnings";
import { headline, proposerLabel, summaryOf } from "./review/labels";

export function Home() {
  const now = useStatus();
  // The numbers first: what takes longer comes after them.
  const checks = useGet(now ? "/memory/doctor" : null);
  const jobs = useGet(now ? "/memory/jobs" : null);
  const zone = -new Date().getTimezoneOffset();
  const activity = useGet(now ? "/memory/activity" : null, {
    params: { query: { days: DAYS, by: "author", zone, include_ended: true, below: true } },
  });
  const unusual = useUnusual(activity.data, { days: DAYS, zone });
  const settings = useGet(now && mayChange() ? "/memory/settings" : null);
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
        unusual,
        file: settings.data?.file ?? null,
        now: present.value,
      })
    : [];
  const empty = now.commits === 0 || (now.total === 0 && !now.quarantine.depth);
  return (
    <Page
      title="Home"
      lede={ready ? <Verdict warnings={warnings} waiting={now.quarantine.depth} /> : "looking…"}
      json="/memory/status"
    >
      {empty && mayChange() ? <Begin /> : null}
      <div class="tiles">
        <Waiting now={now} />
        <Memories now={now} counts={activity.data?.counts} />
        <Prompts />
        <Integrity now={now} checks={checks} />
      </div>
      <div class="home">
        {warnings.length || now.quarantine.depth ? (
          <div class="stack">
            {warnings.length ? <LookAt warnings={warnings} /> : null}
            {now.quarantine.depth ? <Queue /> : null}
          </div>
        ) : null}
        {empty ? null : <News />}
      </div>
      {empty ? null : (
        <div class="home-store">
          <Agents activity={activity} />
          <Tiers now={now} />
          <BlockList now={now} />
          <Jobs jobs={jobs} />
        </div>
      )}
    </Page>
  );
}

/** Whether all is well, in a few words: the first thing to read on this page. */
function Verdict({ warnings, waiting }: { warnings: readonly Warning[]; waiting: number }) {
  const bad = warnings.filter((warning) => warning.tone === "bad").length;
  const parts = [];
  if (bad) parts.push(bad === 1 ? "one thing is wrong" : `${bad} things are wrong`);
  if (waiting) parts.push(`${counted(waiting, "proposal")} ${waiting === 1 ? "waits" : "wait"} for you`);
  if (!bad && warnings.length)
    parts.push(warnings.length === 1 ? "one thing to look at" : `${warnings.length} things to look at`);
  const text = parts.join(", ") || "all is well";
  return (
    <strong
      class={`home-verdict ${bad ? "bad" : parts.length ? "warn" : "good"}`}
      role="status"
      aria-label="How things are"
    >
      {text.charAt(0).toUpperCase() + text.slice(1)}
    </strong>
  );
}

// Of what waits, the first.
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
            {data.items.shown.map((each) => (
              <li key={each.id}>
                <Link href={`/review?at=${each.id}`}>
                  <MemoryText text={summaryOf(each) || headline(each)} one />
                </Link>
                <span class="soft small">
                  <Who name={proposerLabel(each)} />, <Time at={each.created_at} short />
                </span>
              </li>
            ))}
          </ul>
        )}
      </Shown>
    </section>
  );
}
