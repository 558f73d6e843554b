/** What a score is made of: a bar of what each part adds, and the same in numbers. */

import "./bars.css";

/** The parts in the order in which they are drawn, and what they mean. */
export const PARTS: readonly { name: string; word: string; means: string }[] = [
  { name: "cover", word: "words", means: "words of the question that it holds" },
  { name: "meaning", word: "meaning", means: "closeness in meaning" },
  { name: "feature", word: "fit", means: "the right role, day, kind of answer or preference" },
  { name: "session", word: "session", means: "what stands beside it in the same session" },
  { name: "newer", word: "newer", means: "of two very similar statements the newer one comes first" },
  { name: "learned", word: "learned", means: "what feedback has taught" },
];

interface Props {
  parts: Readonly<Record<string, number>>;
  /** What fills the whole width. */
  most: number;
}

export function Bars({ parts, most }: Props) {
  const shown = PARTS.map((each) => ({ ...each, value: parts[each.name] ?? 0 })).filter(
    (each) => Math.abs(each.value) >= 0.0005,
  );
  const words = shown.map((each) => `${each.word} ${signed(each.value)}`).join(", ") || "nothing";
  return (
    <div class="bars">
      <div class="bars-line" role="img" aria-label={words}>
        {shown
          .filter((each) => each.value > 0)
          .map((each) => (
            <span
              key={each.name}
              class={`adds-${each.name}`}
              title={`${each.word} ${signed(each.value)}: ${each.means}`}
              style={{ width: `${(each.value / Math.max(most, 1e-6)) * 100}%` }}
            />
          ))}
      </div>
      <p class="shares small soft">
        {shown.map((each) => (
          <span key={each.name} title={each.means}>
            <i class={`adds-${each.name}`} />
            {each.word} <b class={`num ${each.value < 0 ? "bad" : ""}`}>{signed(each.value)}</b>
          </span>
        ))}
      </p>
    </div>
  );
}

/** Return the parts of a score in its own scale, so that they sum to it. */
export function inScaleOf(score: number, parts: Readonly<Record<string, number>>): Record<string, number> {
  const sum = PARTS.reduce((total, each) => total + (parts[each.name] ?? 0), 0);
  const scale = sum > 0 ? score / sum : 0;
  return Object.fromEntries(PARTS.map((each) => [each.name, (parts[each.name] ?? 0) * scale]));
}

/** Return the sum of what adds, without what takes away: the width of a bar. */
export function reach(parts: Readonly<Record<string, number>>): number {
  return PARTS.reduce((sum, each) => sum + Math.max(0, parts[each.name] ?? 0), 0);
}

function signed(value: number): string {
  return `${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(2)}`;
}
