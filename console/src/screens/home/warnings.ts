/** What is not as it should be, in order of weight, each with what to do about it. */

import { api, ask, type Answer, type Schemas } from "../../api";
import { onThisStore } from "../../commands";
import { span } from "../../parts/Time";
import { verify } from "./verification";

export interface Warning {
  id: string;
  tone: "bad" | "warn";
  /** What there is to know, in a sentence; backticks stand around names. */
  text: string;
  /** What it means, or what helps. */
  help: string;
  /** A screen that shows it. */
  to?: { path: string; title: string };
  /** What mends it. */
  act?: { title: string; run: () => Promise<Answer<unknown>>; done: string };
  /** A command that mends it where no button can. */
  command?: string;
}

type Facts = {
  checks: readonly Schemas["Check"][];
  jobs: readonly Schemas["JobState"][];
  /** Warnings about who wrote unusually much. */
  unusual: readonly Warning[];
  /** The settings file, where there is one and who looks may see it. */
  file: Schemas["SettingsFile"] | null;
  now: number;
};

// Checks that say that something is wrong, not merely unfinished.
const GRAVE = new Set(["store", "seal", "records", "erasures", "blobs", "writable", "adopted", "verification"]);
// Hours that a job may be late: a server that slept over night is no fault.
const LATE = 36;

export function warningsOf({ checks, jobs, unusual, file, now }: Facts): Warning[] {
  const without = checks.some((each) => each.name === "embedder" && !each.ok);
  // Without an embedder nothing can give them vectors.
  const wrong = checks.filter((each) => (!each.ok || each.warning) && !(without && each.name === "vectors"));
  const found = [
    ...wrong.map(ofCheck),
    ...jobs.flatMap((each) => ofJob(each, now)),
    ...unusual,
    ...(file && !file.accepted ? [notInForce(file)] : []),
  ];
  for (const each of found) if (each.command) each.command = onThisStore(each.command);
  return found.sort((one, other) => Number(other.tone === "bad") - Number(one.tone === "bad"));
}

function notInForce(file: Schemas["SettingsFile"]): Warning {
  return {
    id: "settings",
    tone: "warn",
    text: "The settings file is not in force: nobody accepted it",
    help: `read ${file.path} first; until it is accepted none of it applies`,
    to: { path: "/settings", title: "See what it says" },
    command: file.accept_with ?? undefined,
  };
}

function ofCheck(check: Schemas["Check"]): Warning {
  const plain: Warning = {
    id: check.name,
    tone: GRAVE.has(check.name) ? "bad" : "warn",
    text: check.detail,
    help: check.remedy,
  };
  switch (check.name) {
    case "review":
      return { ...plain, to: { path: "/review", title: "Review them" } };
    case "vectors":
      return {
        ...plain,
        help: "recall finds them by words until then",
        act: {
          title: "Embed them now",
          run: () => ask(api.POST("/memory/reindex")),
          done: "Every memory has a vector",
        },
      };
    case "embedder":
      return {
        ...plain,
        text: "There is no embedder: recall finds memories by their words alone",
        command: "keepward model install",
      };
    case "blocks":
      return { ...plain, to: { path: "/core", title: "Edit the blocks" } };
    case "verification":
      return {
        ...plain,
        help: "verify again after it is repaired, or restore a backup",
        to: { path: "/integrity", title: "See the faults" },
        act: { title: "Verify again", run: verify, done: "Verified" },
      };
    case "backups":
      return { ...plain, command: "keepward backup COPY.db", to: { path: "/integrity", title: "See backups" } };
    case "records":
      return { ...plain, act: { title: "Verify now", run: verify, done: "Verified" } };
    default:
      return { ...plain, command: /`(keepward[^`]*)`/.exec(check.remedy)?.[1] };
  }
}

function ofJob(job: Schemas["JobState"], now: number): Warning[] {
  const run = { title: "Run it now", run: () => runJob(job.name), done: `Ran ${job.name}` };
  if (job.last_outcome === "failed") {
    return [
      {
        id: `job-${job.name}`,
        tone: "bad",
        text: `The job \`${job.name}\` failed`,
        help: job.does,
        act: run,
        to: { path: "/jobs", title: "See its receipt" },
      },
    ];
  }
  const late = job.due_at ? now - Date.parse(job.due_at) : 0;
  if (late > LATE * 3_600_000) {
    return [
      {
        id: `job-${job.name}`,
        tone: "warn",
        text: `The job \`${job.name}\` is ${span(late)} late`,
        help: job.does,
        act: run,
      },
    ];
  }
  return [];
}

async function runJob(name: string): Promise<Answer<unknown>> {
  const done = await ask(api.POST("/memory/jobs/{name}/run", { params: { path: { name } }, body: { force: true } }));
  if (!done.ok) return done;
  const failed = done.data.items.find((each) => each.outcome === "failed");
  return failed
    ? {
        ok: false,
        problem: { status: done.status, code: "failed", title: `The job ${name} failed`, detail: failed.why },
      }
    : done;
}
