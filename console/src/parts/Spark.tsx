/** A line of a few numbers, without axes; `label` says the same in words. `most` is the top, for lines to be compared. */

export function Spark({
  values,
  label,
  height = 28,
  most: top = 1,
}: {
  values: readonly number[];
  label: string;
  height?: number;
  most?: number;
}) {
  const most = Math.max(top, ...values);
  const step = values.length > 1 ? 120 / (values.length - 1) : 0;
  const points = values
    .map((each, at) => `${(at * step).toFixed(1)},${(26 - (each / most) * 23).toFixed(1)}`)
    .join(" ");
  return (
    <svg viewBox="0 0 120 28" width="100%" height={height} preserveAspectRatio="none" role="img" aria-label={label}>
      <polyline
        points={points}
        fill="none"
        stroke="var(--accent)"
        stroke-width="1.5"
        vector-effect="non-scaling-stroke"
      />
    </svg>
  );
}
