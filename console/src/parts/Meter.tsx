/** How much of something is used. */

import "./meter.css";

/** `value` of `max`; over it the meter is full and red, near it amber. */
export function Meter({ value, max, label }: { value: number; max: number; label: string }) {
  const share = max > 0 ? value / max : 0;
  const tone = share > 1 ? "over" : share > 0.9 ? "near" : "";
  const width = `${Math.min(100, Math.max(value > 0 ? 1.5 : 0, share * 100))}%`;
  return (
    <div
      class={`meter ${tone}`}
      role="meter"
      aria-label={label}
      aria-valuenow={value}
      aria-valuemin={0}
      aria-valuemax={Math.max(max, value)}
    >
      <span style={{ width }} />
    </div>
  );
}
