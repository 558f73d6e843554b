/** Integrity: whether the store is what was written, whether its defences hold, and what to do where they do not. */

import "./maintenance.css";
import { useState } from "preact/hooks";
import type { Answer, Schemas } from "../api";
import { useKeys } from "../keys";
import { useGet } from "../load";
import { mayChange } from "../session";
import { status, useStatus } from "../status";
import { Button } from "../parts/Button";
import { CommitLink } from "../parts/CommitLink";
import { Command } from "../parts/Command";
import { Page } from "../parts/Page";
import { ReceiptLink } from "../parts/Receipt";
import { Failed, Loading, Shown } from "../parts/States";
import { Tag } from "../parts/Tag";
import { Time } from "../parts/Time";
import { Who } from "../parts/Who";
import { said, seen } from "../parts/seen";
import { Covered, Saved, integrityOf, verify } from "./home/verification";

export function Integrity() {
  const [running, setRunning] = useState(false);
  const [answer, setAnswer] = useState<Answer<Schemas["Verification"]> | null>(null);
  const begin = async () => {
    if (running) return;
    setRunning(true);
    setAnswer(await verify());
    setRunning(false);
  };
  useKeys("Integrity", {
    v: mayChange() ? { does: "Verify everything", run: begin } : null,
  });
  return (
    <Page title="Integrity" lede="whether the store is what was written to it" json="/memory/doctor">
      <div class="cards">
        <div class="stack">
          <section class="card pad stack" aria-label="Verify">
            <h2>Verify</h2>
            <p class="soft">
              Recomputes every hash, seal and projection of every tenant. Compares the head with the anchor, which this
              machine stores elsewhere.
            </p>
            <Newest withFaults={!answer || running} />
            <LastAudit />
            {mayChange() ? (
              <div class="line">
                <Button tone="go" hint="v" busy={running} onClick={() => void begin()}>
                  Verify now
                </Button>
              </div>
            ) : null}
            {answer && !running ? (
              answer.ok ? (
                <Verified found={answer.data} />
              ) : (
                <Failed problem={answer.problem} retry={() => void begin()} />
              )
            ) : null}
          </section>
          <Backups />
          <MemoryTests />
          <section class="card pad stack" aria-label="Drill">
            <h2>Drill</h2>
            <p class="soft">
              Attacks a copy of this store, poisoned pages and edited rows among them, and shows which defence stopped
              each. The store itself is not changed.
            </p>
            <Command does="Run it on the server's machine" text="keepward drill" />
          </section>
          <section class="card pad stack" aria-label="Recovery">
            <h2>When something is broken</h2>
            <p class="soft">
              These read or replace the store's file. Run them on its machine, while no server has it open.
            </p>
            <Command does="Rebuild the records from an intact journal" text="keepward rebuild" />
            <Command does="Recover what is intact into a new store" text="keepward store recover BROKEN.db NEW.db" />
            <Command does="Export the sealing key for another machine" text="keepward key export HOME.key" />
          </section>
        </div>
        <div class="stack">
          <Seal />
          <Doctor />
        </div>
      </div>
    </Page>
  );
}

// Faults in sight, and faults that are listed at all; the JSON has the others.
const SHOWN = 8;
const MAX_FAULTS = 200;

function Fault({ fault }: { fault: Schemas["Verification"]["faults"][number] }) {
  return (
    <li>
      <Tag tone="bad">{fault.check}</Tag>
      <span>
        <span class="mono">{seen(fault.row)}</span> {said(fault.detail)}
      </span>
    </li>
  );
}

/** Faults, of how many; those beyond the first are folded. */
function Faults({ of, count }: { of: readonly Schemas["Fault"][]; count: number }) {
  return (
    <>
      <ul class="checks" aria-label="Faults">
        {of.slice(0, SHOWN).map((fault) => (
          <Fault key={fault.row + fault.detail} fault={fault} />
        ))}
      </ul>
      {count > SHOWN ? (
        <details>
          <summary class="soft">{count - SHOWN} more</summary>
          <ul class="checks" aria-label="More faults">
            {of.slice(SHOWN, MAX_FAULTS).map((fault) => (
              <Fault key={fault.row + fault.detail} fault={fault} />
            ))}
          </ul>
        </details>
      ) : null}
    </>
  );
}

function Verified({ found }: { found: Schemas["Verification"] }) {
  const rows = Object.entries(found.checked).filter(([, count]) => count);
  return (
    <div class="stack" role="status">
      <p class={found.ok ? "good" : "bad"}>
        <b>
          {found.ok
            ? "Everything is intact."
            : `${found.faults.length} ${found.faults.length === 1 ? "fault was" : "faults were"} found.`}
        </b>
      </p>
      {found.faults.length ? <Faults of={found.faults} count={found.faults.length} /> : null}
      {found.notes.map((each) => (
        <p key={each} class="warn">
          {said(each)}
        </p>
      ))}
      <p class="soft small num">
        {rows.map(([name, count]) => `${count.toLocaleString()} ${name.replaceAll("_", " ")}`).join(" · ")}
      </p>
    </div>
  );
}

/** When the store was last copied, where to, and how to do it again. */
function Backups() {
  const now = useStatus();
  if (!now) return null;
  const { state, at, path } = now.backups;
  return (
    <section class="card pad stack" aria-label="Backups">
      <h2>Backups</h2>
      <p class="line">
        {state === "unknown" ? null : (
          <Tag tone={state === "fresh" ? "good" : state === "due" ? "warn" : "plain"}>{state}</Tag>
        )}{" "}
        <Saved now={now} />
      </p>
      {path ? <p class="mono small">{seen(path)}</p> : null}
      {at ? <p class="soft small">Its journal was verified when it was made, and its file is there.</p> : null}
      {state === "unknown" ? null : (
        <>
          <p class="soft small">
            One is due after seven days in which something was written. Only backups on the server&#39;s machine are
            known here.
          </p>
          <Command does="Make a backup" text="keepward backup COPY.db" />
        </>
      )}
    </section>
  );
}

/** The newest run of memory tests, whoever began it. */
function MemoryTests() {
  const run = status.value?.memory_tests;
  if (!run) return null;
  const unnamed = run.failed - run.failing.length;
  return (
    <section class="card pad stack" aria-label="Memory tests">
      <h2>Memory tests</h2>
      <p class="line">
        <b class={run.failed ? "bad" : "good"}>
          {run.passed.toLocaleString()} passed, {run.failed.toLocaleString()} failed
        </b>
        <span class="soft">
          {run.label ? <>{seen(run.label)} </> : null}at <CommitLink of={run.head} />, <Time at={run.at} short /> by{" "}
          <Who name={run.by} />
        </span>
      </p>
      {run.failing.length ? (
        <ul>
          {run.failing.map((name) => (
            <li key={name}>{seen(name)}</li>
          ))}
          {unnamed ? <li>and {unnamed.toLocaleString()} more</li> : null}
        </ul>
      ) : null}
      <p class="soft small">They run in a terminal, now or on a past state.</p>
      <Command does="Run them again" text="keepward test FILE" />
    </section>
  );
}

/** What the newest verification said, whoever began it. */
function Newest({ withFaults }: { withFaults: boolean }) {
  const now = status.value;
  if (!now) return null;
  const { word, tone } = integrityOf(now.verification.state, new Set());
  const faults = now.verification.first_faults;
  return (
    <div class="stack" role="group" aria-label="Newest verification">
      <p class="line">
        <b class={tone}>{word.charAt(0).toUpperCase() + word.slice(1)}</b> <Covered now={now} />
        {now.verification.by ? (
          <span class="soft">
            by <Who name={now.verification.by} />
          </span>
        ) : null}
      </p>
      {withFaults && faults.length ? <Faults of={faults} count={now.verification.faults} /> : null}
    </div>
  );
}

function LastAudit() {
  const jobs = useGet("/memory/jobs");
  const audit = jobs.data?.items.find((each) => each.name === "integrity_audit");
  if (!audit) return null;
  return (
    <p class="line small">
      <span class="soft">
        By itself last <Time at={audit.last_at} short />
      </span>
      {audit.last_receipt ? <ReceiptLink id={audit.last_receipt} /> : null}
      {audit.due ? (
        <Tag tone="accent">due</Tag>
      ) : audit.due_at ? (
        <span class="soft">
          · next <Time at={audit.due_at} short />
        </span>
      ) : null}
    </p>
  );
}

function Seal() {
  const now = status.value;
  if (!now) return <Loading />;
  const kept = now.anchor === "kept" || now.anchor === "memory";
  return (
    <section class="card pad stack" aria-label="Seal">
      <h2>Seal and anchor</h2>
      <dl class="facts">
        <dt>rows</dt>
        <dd>
          <Tag tone={now.sealed ? "good" : "bad"}>{now.sealed ? "sealed" : "not sealed"}</Tag>{" "}
          <span class="soft">
            {now.sealed
              ? "with a key that is not in the store"
              : "anybody who can write the file can change them unseen"}
          </span>
        </dd>
        <dt>anchor</dt>
        <dd>
          <Tag tone={kept ? "good" : "bad"}>{now.anchor ?? "none"}</Tag>{" "}
          <span class="soft">
            {kept ? "an older copy of the store would be noticed" : "an older copy in its place would go unnoticed"}
          </span>
        </dd>
        <dt>head</dt>
        <dd class="mono">{now.head}</dd>
        <dt>commits</dt>
        <dd class="num">{now.commits.toLocaleString()}</dd>
        <dt>schema</dt>
        <dd class="num">{now.schema ?? "?"}</dd>
        {now.path ? (
          <>
            <dt>store</dt>
            <dd class="mono">{seen(now.path)}</dd>
          </>
        ) : null}
      </dl>
      {now.read_only ? <p class="warn">It can only be read.</p> : null}
      {((now.notes ?? []) as string[]).map((each) => (
        <p key={each} class="warn">
          {said(each)}
        </p>
      ))}
    </section>
  );
}

function well(check: Schemas["Check"]) {
  return check.ok && !check.warning;
}

function Doctor() {
  const found = useGet("/memory/doctor");
  return (
    <section class="card pad stack" aria-label="Doctor">
      <h2>Health checks</h2>
      <Shown of={found} rows={6}>
        {(data) => (
          <ul class="checks">
            {[...data.items]
              .sort((one, other) => Number(well(one)) - Number(well(other)))
              .map((each) => (
                <li key={each.name}>
                  <Tag tone={well(each) ? "good" : "warn"}>{well(each) ? "OK" : "look"}</Tag>
                  <span>
                    <b>{each.name}</b> <span class="soft">{said(each.detail)}</span>
                    {well(each) || !each.remedy ? null : (
                      <>
                        <br />
                        To do: {said(each.remedy)}
                      </>
                    )}
                  </span>
                </li>
              ))}
          </ul>
        )}
      </Shown>
    </section>
  );
}
