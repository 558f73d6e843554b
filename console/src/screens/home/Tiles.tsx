/** Four numbers: what waits, what is remembered, what was handed out, and whether all of it is intact. */

import { useState } from "preact/hooks";
import { Link } from "wouter-preact";
import type { Schemas } from "../../api";
import { queueVersion } from "../../events";
import { useGet, type Loaded } from "../../load";
import { mayChange } from "../../session";
import { Button } from "../../parts/Button";
import { Spark } from "../../parts/Spark";
import { Time, present, span } from "../../parts/Time";
import { say } from "../../parts/Toasts";
import { SINCE, since } from "./visits";
import { Covered, Saved, faultsFound, integrityOf, verify } from "./verification";

type Status = Schemas["StatusReport"];
/** Days whose writes are drawn. */
export const DAYS = 14;

export function Waiting({ now }: { now: Status }) {
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

export function Memories({ now, counts }: { now: Status; counts: readonly number[] | undefined }) {
  const written = counts?.reduce((sum, each) => sum + each, 0) ?? 0;
  return (
    <Link href="/memories" class="card tile">
      <span class="soft">Memories</span>
      <strong>{now.live.toLocaleString()}</strong>
      {counts ? (
        <Spark values={counts} label={`${written.toLocaleString()} written in ${DAYS} days`} />
      ) : (
        <span class="spark-room" />
      )}
    </Link>
  );
}

// Prompts that are counted one by one.
const COUNTED = 200;

/** How many prompts were compiled since the last visit. */
export function Prompts() {
  const found = useGet("/memory/receipts", { params: { query: { kind: ["compile"], limit: COUNTED } } }, queueVersion);
  const made = found.data?.items.before((receipt) => Date.parse(receipt.at) <= since);
  return (
    <Link href="/context?view=receipts" class="card tile">
      <span class="soft">Prompts handed out</span>
      <strong>{made?.count ?? (found.problem ? "–" : "…")}</strong>
      <span class="soft small">
        {found.data?.items.shown[0] ? (
          <>
            {SINCE}, the last <Time at={found.data.items.shown[0].at} short />
          </>
        ) : (
          "no agent asked for one so far"
        )}
      </span>
    </Link>
  );
}

/** Whether the store is intact: red from the first fault to the next verification without any. */
export function Integrity({ now, checks }: { now: Status; checks: Loaded<{ items: Schemas["Check"][] }> }) {
  const [busy, setBusy] = useState(false);
  const look = async () => {
    setBusy(true);
    const found = await verify();
    setBusy(false);
    if (!found.ok) return say(found.problem.detail, { tone: "bad" });
    const { ok, faults, checked } = found.data;
    const sum = Object.values(checked).reduce((total, each) => total + each, 0);
    say(ok ? `Intact: ${sum.toLocaleString()} things checked` : faultsFound(faults.length, faults[0]?.detail), {
      tone: ok ? "good" : "bad",
    });
  };
  const failed = new Set(checks.data?.items.filter((each) => !each.ok).map((each) => each.name));
  const { word, tone } = integrityOf(now.verification.state, checks.data ? failed : null);
  return (
    <div class="card tile" role="group" aria-label="Integrity">
      <span class="soft">Integrity</span>
      <strong class={tone}>{word}</strong>
      <span class="soft small line">
        <Covered now={now} />
        {mayChange() ? (
          <Button small tone="quiet" busy={busy} onClick={() => void look()}>
            Verify now
          </Button>
        ) : null}
      </span>
      <span class="soft small">
        <Saved now={now} />
      </span>
    </div>
  );
}
