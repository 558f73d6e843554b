/** Whether the store is intact, in a word and in a sentence, by what verifications found. */

import { api, ask, type Answer, type Schemas } from "../../api";
import { notifyChanged } from "../../events";
import { counted } from "../../parts/Contain";
import { Time } from "../../parts/Time";

/**
 * Return the word for the state of the store and its colour. `failed` are the names of the checks that failed; null
 * while they are not known.
 */
export function integrityOf(
  state: Schemas["VerificationState"]["state"],
  failed: ReadonlySet<string> | null,
): { word: string; tone: "good" | "bad" | "faint" } {
  if (state === "damaged" || failed?.has("records")) return { word: "damaged", tone: "bad" };
  if (!failed) return { word: "…", tone: "faint" };
  if (failed.has("seal")) return { word: "not sealed", tone: "bad" };
  return state === "intact" ? { word: "intact", tone: "good" } : { word: "not verified", tone: "faint" };
}

export function faultsFound(count: number, first = ""): string {
  return `${counted(count, "fault")} found${first ? `: ${first}` : ""}`;
}

/** How many of the commits the newest verification covered, and when; before that, since when there are faults. */
export function Covered({ now }: { now: Schemas["StatusReport"] }) {
  const { state, at, commits, faults, damaged_since: since } = now.verification;
  if (state === "unverified") return <span>{counted(now.commits, "commit")}, none verified so far</span>;
  return (
    <span>
      {state === "damaged" ? (
        <b class="bad">
          {faultsFound(faults)}
          {since ? (
            <>
              {" "}
              <Time at={since} short />
            </>
          ) : null}
          ;{" "}
        </b>
      ) : null}
      {commits.toLocaleString()} of {counted(now.commits, "commit")} verified{at ? " " : ""}
      {at ? <Time at={at} short /> : null}
    </span>
  );
}

/** How old the newest backup is, and how much of the store it has. */
export function Saved({ now }: { now: Schemas["StatusReport"] }) {
  const { state, at, commits, missing } = now.backups;
  if (state === "unknown") return <span>copied by its database or host, not by Keepward</span>;
  return (
    <span class={state === "due" ? "warn" : ""}>
      {at ? (
        <>
          backup of {commits.toLocaleString()} of {counted(now.commits, "commit")}, <Time at={at} short />
        </>
      ) : (
        "no backup by this machine"
      )}
      {missing ? `; ${counted(missing, "newer one is", "newer ones are")} missing` : ""}
    </span>
  );
}

/** Verify the journal and all that is computed from it; a fault is an answer like another. */
export async function verify(): Promise<Answer<Schemas["Verification"]>> {
  const found = await ask(api.POST("/memory/verify"));
  // Its result is part of the status.
  notifyChanged();
  return found;
}
