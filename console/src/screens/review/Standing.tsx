/** How many proposals there are, as the head of the screen says it. */

import { Time } from "../../parts/Time";

/** Numbers of proposals by facet and value. */
export type Counts = Record<string, Record<string, number>>;

/** Return how many proposals are counted by who made them: each has one proposer. */
export function countOf(counts: Counts): number {
  return Object.values(counts["proposer"] ?? {}).reduce((sum, count) => sum + count, 0);
}

interface StandingProps {
  /** What became of them; they wait without it. */
  ended: string | undefined;
  /** How many there are, whatever the filters. */
  count: number;
  /** How many pass the filters, where there are some. */
  matching: number | undefined;
  oldest: string | null;
  snoozed: number;
}

/** How many wait or were decided, whatever the filters, and how many of them are shown. */
export function Standing({ ended, count, matching, oldest, snoozed: asleep }: StandingProps) {
  if (!count) return <>{ended ? `0 ${ended.toLowerCase()}` : "nothing waits"}</>;
  return (
    <>
      {count.toLocaleString()} {ended?.toLowerCase() ?? (count === 1 ? "waits" : "wait")}
      {matching === undefined
        ? ""
        : `, ${matching.toLocaleString()} of them ${matching === 1 ? "matches" : "match"} the filters`}
      {matching === undefined && !ended ? (
        <>
          , the oldest since <Time at={oldest} />
        </>
      ) : null}
      {asleep ? `, ${asleep.toLocaleString()} of them snoozed in this browser` : ""}
    </>
  );
}
