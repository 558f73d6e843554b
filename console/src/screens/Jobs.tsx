/** Jobs: what the store does by itself, when, and what came of it. */

import "./maintenance.css";
import { useState } from "preact/hooks";
import { BASE } from "../address";
import { api, ask, type Schemas } from "../api";
import { useKeys } from "../keys";
import { notifyChanged } from "../events";
import { useGet } from "../load";
import { mayChange } from "../session";
import { Button } from "../parts/Button";
import { counted } from "../parts/Contain";
import { Page } from "../parts/Page";
import { ReceiptLink } from "../parts/Receipt";
import { Shown } from "../parts/States";
import { Tag, type Tone } from "../parts/Tag";
import { Time } from "../parts/Time";
import { say } from "../parts/Toasts";
import { said } from "../parts/seen";

type Job = Schemas["JobState"];
type Run = Schemas["Run"];

const TONES: Record<string, Tone> = { run: "good", failed: "bad", skipped: "plain" };

export function Jobs() {
  const jobs = useGet("/memory/jobs");
  const [busy, setBusy] = useState("");
  const [runs, setRuns] = useState<ReadonlyMap<string, Run>>(new Map());
  const note = (made: readonly Run[]) => {
    setRuns(new Map([...runs, ...made.map((each): [string, Run] => [each.job, each])]));
    notifyChanged();
    jobs.reload();
  };
  const runDue = async () => {
    setBusy("*");
    const done = await ask(api.POST("/memory/jobs/{name}/run", { params: { path: { name: "due" } } }));
    setBusy("");
    if (!done.ok) return say(done.problem.detail, { tone: "bad" });
    note(done.data.items);
    say(done.data.items.length ? `Ran ${counted(done.data.items.length, "job")}.` : "No job is due.");
  };
  const run = async (name: string) => {
    setBusy(name);
    const done = await ask(api.POST("/memory/jobs/{name}/run", { params: { path: { name } }, body: { force: true } }));
    setBusy("");
    if (!done.ok) return say(done.problem.detail, { tone: "bad" });
    note(done.data.items);
    for (const each of done.data.items)
      say(`${name}: ${each.why}`, { tone: each.outcome === "failed" ? "bad" : "good" });
  };
  useKeys("Jobs", { r: mayChange() ? { does: "Run what is due", run: () => void runDue() } : null });
  return (
    <Page
      title="Jobs"
      lede="what the store does by itself; a commit of a job is undone like any other"
      json={jobs.url}
      actions={
        mayChange() ? (
          <Button small hint="r" busy={busy === "*"} onClick={() => void runDue()}>
            Run what is due
          </Button>
        ) : null
      }
    >
      <div class="card">
        <Shown of={jobs} rows={8}>
          {(data) =>
            data.items.map((each) => (
              <Row
                key={each.name}
                job={each}
                run={runs.get(each.name)}
                busy={busy === each.name}
                onRun={() => void run(each.name)}
              />
            ))
          }
        </Shown>
      </div>
    </Page>
  );
}

function Row({ job, run, busy, onRun }: { job: Job; run: Run | undefined; busy: boolean; onRun: () => void }) {
  return (
    <section class="job" aria-label={job.name}>
      <div class="line">
        <h2>{job.name.replaceAll("_", " ")}</h2>
        {job.running_until ? <Tag tone="accent">running</Tag> : job.due ? <Tag tone="accent">due</Tag> : null}
      </div>
      {mayChange() ? (
        <div class="acts-inline">
          <Button small busy={busy} onClick={onRun} aria-label={`Run now: ${job.name}`}>
            Run now
          </Button>
        </div>
      ) : (
        <span />
      )}
      <p class="soft">{job.does}</p>
      <div class="line small soft">
        <span>{job.schedule}</span>
        {job.due_at && !job.due ? (
          <span>
            · next <Time at={job.due_at} short />
          </span>
        ) : null}
        <span>
          · last <Time at={job.last_at} short />
        </span>
        {job.last_outcome ? (
          <Tag tone={TONES[job.last_outcome] ?? "plain"}>{job.last_outcome === "run" ? "done" : job.last_outcome}</Tag>
        ) : null}
        {job.last_receipt ? <ReceiptLink id={job.last_receipt} /> : null}
      </div>
      {run ? (
        <div class="line small" role="status">
          <Tag tone={TONES[run.outcome] ?? "plain"}>{run.outcome === "run" ? "done" : run.outcome}</Tag> {said(run.why)}
          {run.commits.map((each) => (
            <a key={each} href={`${BASE}/commits?at=${each}`}>
              commit
            </a>
          ))}
          {run.proposals.length ? (
            <a href={`${BASE}/review?at=${run.proposals[0]}`}>{counted(run.proposals.length, "proposal")} for you</a>
          ) : null}
        </div>
      ) : null}
    </section>
  );
}
