/** What the store holds, in numbers: who wrote, tiers, core blocks, jobs. */

import type { Schemas } from "../../api";
import type { Found, Loaded } from "../../load";
import { status } from "../../status";
import { Meter } from "../../parts/Meter";
import { Shown } from "../../parts/States";
import { Time } from "../../parts/Time";
import { Who } from "../../parts/Who";
import { seen } from "../../parts/seen";
import { BLOCKS, tierWord } from "../../words";
import { DAYS } from "./Tiles";

type Status = Schemas["StatusReport"];

// Agents that are shown by themselves.
const AGENTS = 8;

export function Agents({ activity }: { activity: Loaded<Found<"/memory/activity">> }) {
  return (
    <section class="card" aria-label="What each wrote">
      <header class="card-head">
        <h2>Who wrote</h2>
        <span class="soft small">the last {DAYS} days</span>
      </header>
      <Shown of={activity}>
        {(data) => {
          const series = data.series.first(AGENTS);
          return series.shown[0] ? (
            <ul class="agents">
              {series.shown.map((each) => {
                const today = each.counts.at(-1) ?? 0;
                return (
                  <li key={each.name}>
                    <span class="cut">
                      <Who name={each.name} />
                    </span>
                    <span class="num soft">{today ? `${today.toLocaleString()} today` : ""}</span>
                    <b class="num">{each.total.toLocaleString()}</b>
                  </li>
                );
              })}
              {series.isWhole ? null : <li class="soft small">and {series.rest}</li>}
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

export function Tiers({ now }: { now: Status }) {
  const capacity = (now.capacity ?? {}) as Record<string, { live: number; max: number }>;
  return (
    <section class="card bars" aria-label="Tiers">
      <h2>Tiers</h2>
      {ORDER.map((tier) => {
        const { live = now.by_tier[tier] ?? 0, max = 0 } = capacity[tier] ?? {};
        return (
          <div key={tier} class="bar-row">
            <span>{tierWord(tier)}</span>
            <span class="num">
              {live.toLocaleString()}
              {max ? <span class="faint"> of {max.toLocaleString()}</span> : null}
            </span>
            {live > max * VISIBLE && max ? <Meter value={live} max={max} label={`Memories of tier ${tier}`} /> : null}
          </div>
        );
      })}
    </section>
  );
}

export function BlockList({ now }: { now: Status }) {
  return (
    <section class="card bars" aria-label="Block budgets">
      <h2>Core blocks</h2>
      {Object.entries(now.blocks).map(([name, block]) => (
        <div key={name} class="bar-row">
          <span class="cut">{seen(BLOCKS[name]?.word ?? name.replaceAll("_", " "))}</span>
          <span class="num">
            {block.tokens.toLocaleString()}
            <span class="faint"> of {block.budget.toLocaleString()}</span>
          </span>
          <Meter value={block.tokens} max={block.budget} label={`Tokens of ${name}`} />
        </div>
      ))}
    </section>
  );
}

export function Jobs({ jobs }: { jobs: Loaded<Schemas["Jobs"]> }) {
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
