/** Who writes unusually much: of what holds, and without what a person approved. */

import type { Answer, Schemas } from "../../api";
import { get, useGet, useLoad, type Found } from "../../load";
import type { Warning } from "./warnings";

type Series = Schemas["Activity"]["series"][number];

// What is written on one day, and how many times the usual, so that it is worth a look.
const MANY = 20;
const TIMES = 8;
// Commits of one day that are looked through.
const COMMITS = 200;
// The store's own jobs are no writers to be contained.
const OWN = /^(job|system):/;

function usualOf(series: Series): number {
  const before = series.counts.slice(0, -1);
  return before.reduce((sum, count) => sum + count, 0) / Math.max(1, before.length);
}

/** Return the series in which `today` is unusual; jobs of the store are left out. */
export function suspects(series: readonly Series[], today: (each: Series) => number): Series[] {
  return series.filter((each) => {
    const count = today(each);
    return !OWN.test(each.name) && count >= MANY && count >= usualOf(each) * TIMES;
  });
}

/** Return how many memories an actor changed since an instant by commits of its own, without approvals. */
export function unapproved(commits: readonly Schemas["CommitView"][], name: string, since: number): number {
  return commits
    .filter((each) => each.details.actor === name && !each.details.approved_by && Date.parse(each.commit.at) >= since)
    .reduce((sum, each) => sum + each.steps.length, 0);
}

async function ownWrites(names: readonly string[], since: number): Promise<Answer<Map<string, number>>> {
  const found = new Map<string, number>();
  for (const name of names) {
    const commits = await get("/memory/commits", { params: { query: { actor: name, limit: COMMITS } } });
    if (!commits.ok) return commits;
    const { shown, isWhole } = commits.data.items;
    const known = isWhole || Date.parse(shown.at(-1)?.commit.at ?? "") < since;
    found.set(name, known ? unapproved(shown, name, since) : Infinity);
  }
  return { ok: true, status: 200, etag: null, data: found };
}

/** The warnings about who wrote unusually much today. `activity` counts what has ended too. */
export function useUnusual(
  activity: Found<"/memory/activity"> | undefined,
  query: { days: number; zone: number },
): Warning[] {
  const last = (each: Series) => each.counts.at(-1) ?? 0;
  const maybe = suspects(activity?.series.shown ?? [], last);
  const holds = useGet(maybe.length ? "/memory/activity" : null, {
    params: { query: { ...query, by: "author", below: true, status: ["active"] } },
  });
  const midnight = new Date().setHours(0, 0, 0, 0);
  const names = maybe.map((each) => each.name);
  const own = useLoad(names.length ? `own writes of ${names.join(" ")}` : "", () => ownWrites(names, midnight));
  if (!holds.data || !own.data) return [];
  const held = new Map(holds.data.series.shown.map((each) => [each.name, last(each)]));
  const count = (each: Series) => Math.min(held.get(each.name) ?? 0, own.data?.get(each.name) ?? 0);
  return suspects(maybe, count).map((each) => {
    const usual = usualOf(each);
    const times = usual >= 1 ? `${Math.round(count(each) / usual)} times its usual` : "and hardly anything before";
    return {
      id: `much-${each.name}`,
      tone: "warn",
      text: `\`${each.name}\` wrote ${count(each)} memories today that hold, ${times}`,
      help: "nobody approved them; see whom they reached, and contain them as one",
      to: { path: `/sources?${new URLSearchParams({ name: each.name })}`, title: "See its impact" },
    };
  });
}
