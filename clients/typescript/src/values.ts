/** The values that people name most; `Schemas` has every type of the API. */

import type { Schemas } from "./operations.js";

/** A memory, as `get` and `recall` return it. */
export type MemoryRecord = Schemas["Record"];
export type Committed = Schemas["Committed"];
export type Quarantined = Schemas["Quarantined"];
export type Refused = Schemas["Refused"];
export type Duplicate = Schemas["Duplicate"];
/** What became of a write; `outcome` says which of the four it is. */
export type Outcome = Committed | Quarantined | Refused | Duplicate;
export type CompiledContext = Schemas["CompiledContext"];
export type Proposal = Schemas["Proposal"];
/** The arguments of `remember`. */
export type NewMemory = Omit<Schemas["RememberArguments"], "reason">;
/** A change of a proposal; `op` says which. */
export type Change = Schemas["ProposeArguments"]["changes"][number];
/** A message of `add`. */
export type Message = Schemas["TalkMessage"];

/** A commit, as far as the token may know it: names, no texts. */
export interface CommitEvent {
  /** Number of the commit; `events({ after: seq })` continues after it. */
  seq: number;
  /** Name of the event. */
  event: string;
  facts: {
    seq: number;
    id: string;
    at: string;
    kind: string;
    actor: string;
    changes: Array<{ op: string; id: string; version: number; tier: string }>;
  };
}

/** The result of one line of an import. */
export interface ImportedLine {
  /** Number of the line or item, from 1. */
  number: number;
  outcome: "committed" | "duplicate" | "quarantined" | "refused" | "failed";
  reasons?: Schemas["Reason"][];
  /** One sentence: why it was not stored. */
  detail?: string | null;
}
