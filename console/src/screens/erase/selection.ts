/** What an erasure is to destroy, and why. */

export const REASONS = {
  request: "somebody asked for it",
  consent: "consent was withdrawn",
  retention: "it was kept for long enough",
  mistake: "it should never have been here",
  secret: "it holds a secret",
  other: "another reason",
} as const;

export type Reason = keyof typeof REASONS;
export type Chosen = { ids?: string[]; subject?: string; source?: string; reason: Reason; include_citing: boolean };
export type Way = "ids" | "subject" | "source";
/** What is to go, as the address has it. */
export type Selection = Partial<Record<Way, string>> & { also?: string[] };
