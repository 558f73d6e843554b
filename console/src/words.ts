/** What the terms of a memory mean to somebody who does not know them, and the signs to heed before believing it. */

import type { Schemas } from "./api";
import type { Tone } from "./parts/Tag";

/** A word, and the sentence that explains it. */
export interface Word {
  word: string;
  means: string;
  tone?: Tone;
}

export const TIERS: Record<string, Word> = {
  core: { word: "in every prompt", means: "Tier core: it stands in every context of its scope." },
  working: { word: "short-term", means: "Tier working: it expires by itself." },
  episodic: { word: "what happened", means: "Tier episodic: something that happened or was said once." },
  archival: { word: "long-term", means: "Tier archival: it is kept, and recalled when it fits a question." },
};

/** Return what a tier is called on screen: `long-term` for `archival`. */
export function tierWord(tier: string): string {
  return TIERS[tier]?.word ?? tier;
}

/** The core blocks that every store has, by key. */
export const BLOCKS: Record<string, Word> = {
  persona: { word: "Persona", means: "who the agent is; only the owner approves a new text" },
  human: { word: "People", means: "who the people are" },
  operating_rules: { word: "Rules", means: "what holds whatever is asked" },
  mission: { word: "Mission", means: "what the agent is for" },
  workspace_state: { word: "Where things stand", means: "what is under way" },
};

export const TRUSTS: Record<string, Word> = {
  owner: { word: "from the owner", means: "Trust owner: the highest." },
  user: { word: "from a user", means: "Trust user: a person said it, or approved it." },
  agent: { word: "from an agent", means: "Trust agent: an agent concluded it." },
  tool: { word: "from a tool", means: "Trust tool: the answer of a program." },
  document: { word: "from a document", means: "Trust document: it was read in a file." },
  import: { word: "imported", means: "Trust import: it came with a file of another memory.", tone: "warn" },
  web: { word: "from the web", means: "Trust web: anybody may have written the page.", tone: "warn" },
  unknown: { word: "origin unknown", means: "Trust unknown: the lowest.", tone: "warn" },
};

const DAY_MS = 86_400_000;
// Below this confidence, from 0 to 1, a memory is rather not so.
const UNSURE = 0.5;
// Days without a confirmation after which a memory is old, and days before its end in which that is said.
const OLD_DAYS = 365;
const SOON_DAYS = 7;

const OWN_PLACE = /^\/(users|agents|projects)\/([^/]+)$/;

/** Return whose a scope is, in words; null for the shared one. */
export function placeName(scope: string): string | null {
  if (scope === "/") return null;
  const [, sort, name] = OWN_PLACE.exec(scope) ?? [];
  return sort ? `${sort.slice(0, -1)} ${name}` : scope;
}

/** Return what to heed of a memory at a time in milliseconds, the gravest first; its trust is not among it. */
export function signsOf(memory: Schemas["Record"], now: number): Word[] {
  const signs: Word[] = [];
  if (memory.status !== "active") signs.push({ word: memory.status, means: "No agent gets it any more.", tone: "bad" });
  if (memory.sensitivity === "sensitive")
    signs.push({ word: "sensitive", means: "It is left out unless what is sensitive is asked for.", tone: "bad" });
  if (memory.heard) {
    const read = TRUSTS[memory.heard]?.word ?? memory.heard;
    signs.push({ word: `after reading: ${read}`, means: `It counts as ${memory.heard}.`, tone: "warn" });
  }
  if (memory.confidence < UNSURE)
    signs.push({
      word: `unsure, ${Math.round(memory.confidence * 100)} %`,
      means: "Its confidence: how likely it is true. It decays until somebody confirms it.",
      tone: "warn",
    });
  const days = Math.floor((now - Date.parse(memory.reinforced_at)) / DAY_MS);
  if (days >= OLD_DAYS)
    signs.push({ word: `not confirmed for ${days} days`, means: "It may have changed since.", tone: "warn" });
  const left = memory.expires_at ? (Date.parse(memory.expires_at) - now) / DAY_MS : Infinity;
  if (memory.status === "active" && left < SOON_DAYS)
    signs.push({ word: left < 1 ? "expires today" : `expires in ${Math.floor(left)} days`, means: "Then it ends." });
  const place = placeName(memory.scope);
  if (place) signs.push({ word: `only for ${place}`, means: `Its scope is ${memory.scope}: nobody else gets it.` });
  return signs;
}
