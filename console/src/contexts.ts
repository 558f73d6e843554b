/** A compiled context as screens show it: a preview, or the context of a receipt. */

import { api, ask, type Answer, type Schemas } from "./api";

/** What a context is used for: an answer, an act, or a change of core memory. */
export type Purpose = NonNullable<Schemas["ContextRequest"]["purpose"]>;

export interface Context {
  /** Id of the receipt; null for a preview. */
  receipt: string | null;
  /** When it was compiled; null for a preview. */
  at: string | null;
  objective: string;
  purpose: Purpose;
  scope: string;
  head: string;
  budget_tokens: number | null;
  tokens: number;
  /** In the order of the text; their tokens sum to those of the context. */
  sections: readonly { name: string; tokens: number }[];
  parts: Schemas["Explanation"]["parts"];
  candidates: Schemas["Explanation"]["candidates"];
  notes: readonly string[];
}

/** What the receipt of a context records. */
interface Recorded {
  inputs: Pick<Context, "objective" | "purpose" | "scope" | "head" | "budget_tokens">;
  tokens: number;
  sections: Context["sections"];
  explanation: Schemas["Explanation"];
}

export type Asked = Partial<Schemas["ContextRequest"]> & { objective: string; budget_tokens: number; purpose: Purpose };

/** Compile a context, store nothing, and return it with its explanation. */
export async function previewed(body: Asked, headers?: Record<string, string>): Promise<Answer<Context>> {
  const done = await ask(api.POST("/memory/compile", { body: { ...body, preview: true }, headers }));
  if (!done.ok) return done;
  const { explanation, tokens, sections, notes, head } = done.data;
  const { objective, purpose, budget_tokens } = body;
  const scope = headers?.["Keepward-Scope"] ?? "/";
  const { parts, candidates } = explanation ?? { parts: [], candidates: [] };
  return {
    ...done,
    data: {
      receipt: null,
      at: null,
      objective,
      purpose,
      scope,
      head,
      budget_tokens,
      tokens,
      sections,
      parts,
      candidates,
      notes,
    },
  };
}

/** Return a note of a read as a screen says it: without the calls that read the scopes which it names. */
export function noteOf(note: string): string {
  return note.replace(/; at\(scope=.*$/s, "");
}

/** Return the context of a receipt. */
export function recorded(receipt: Schemas["AnyReceipt"]): Context {
  const { inputs, tokens, sections, explanation } = receipt as unknown as Recorded;
  const notes = receipt.reasons.filter((each) => each.gate === "recall").map((each) => each.detail);
  return { receipt: receipt.id, at: receipt.at, ...inputs, tokens, sections, ...explanation, notes };
}
