/** Characters that no reader sees, drawn: the one place that decides which they are and how they look. */

import "./seen.css";
import type { ComponentChild } from "preact";

// Characters without a sign of their own: controls, formats, surrogates, private and unassigned ones, odd separators
// and blanks, fillers and variation selectors.
const UNSEEN =
  /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}\p{Zl}\p{Zp}\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\uffa0\ufe00-\ufe0f\u{e0100}-\u{e01ef}]/gu;

const NAMES: Record<string, string> = {
  "00A0": "NBSP",
  "00AD": "SHY",
  "034F": "CGJ",
  "061C": "ALM",
  "115F": "FILLER",
  "200B": "ZWSP",
  "200C": "ZWNJ",
  "200D": "ZWJ",
  "200E": "LRM",
  "200F": "RLM",
  "2028": "LS",
  "2029": "PS",
  "202A": "LRE",
  "202B": "RLE",
  "202C": "PDF",
  "202D": "LRO",
  "202E": "RLO",
  "2060": "WJ",
  "2066": "LRI",
  "2067": "RLI",
  "2068": "FSI",
  "2069": "PDI",
  "3164": "FILLER",
  FEFF: "BOM",
};

// An emoji as Unicode recommends it, whole: the joiners and selectors in it are seen, as the one picture that they make.
// As a text, since a browser that does not know the set refuses to read the file otherwise.
const EMOJI = emoji();

function emoji(): RegExp | null {
  try {
    return new RegExp("\\p{RGI_Emoji}", "gv");
  } catch {
    return null;
  }
}

/** Return the characters of a text that no reader sees, in order. */
function* unseen(text: string): Generator<RegExpExecArray> {
  const whole = EMOJI ? [...text.matchAll(EMOJI)].filter((each) => each[0].length > 1) : [];
  let next = 0;
  for (const match of text.matchAll(UNSEEN)) {
    const ends = (each: RegExpExecArray) => each.index + each[0].length;
    for (let each = whole[next]; each && ends(each) <= match.index; each = whole[next]) next += 1;
    const around = whole[next];
    if (!around || match.index < around.index) yield match;
  }
}

/** Return text as pieces in which every invisible character is written out; line breaks and tabs stay as they are. */
export function seen(text: string): ComponentChild[] {
  const pieces: ComponentChild[] = [];
  let at = 0;
  for (const match of unseen(text)) {
    const character = match[0];
    if (character === "\n" || character === "\t" || (character === "\r" && text[match.index + 1] === "\n")) continue;
    if (match.index > at) pieces.push(text.slice(at, match.index));
    const code = (character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0");
    pieces.push(
      <span class="unseen" title={`An invisible character, U+${code}`}>
        {NAMES[code] ?? `U+${code}`}
      </span>,
    );
    at = match.index + character.length;
  }
  if (at < text.length) pieces.push(text.slice(at));
  return pieces;
}

/** Return a sentence of the server: what stands between backticks is a name. */
export function said(text: string): ComponentChild[] {
  return text.split("`").map((each, at) => (at % 2 ? <code>{seen(each)}</code> : <>{seen(each)}</>));
}

/** Whether a text has characters that no reader sees. */
export function hasUnseen(text: string): boolean {
  return seen(text).some((each) => typeof each !== "string");
}

/** Return text for a place that takes no elements, such as a tooltip or a label. */
export function written(text: string): string {
  return text.replace(UNSEEN, (character) =>
    character === "\n" || character === "\t"
      ? " "
      : `⟦U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}⟧`,
  );
}
