/** Lines or columns over time; what it shows stands beside in words, for those who do not see it. */

import "./chart.css";
import "uplot/dist/uPlot.min.css";
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";

export interface Line {
  label: string;
  /** One number a moment; null leaves a gap. */
  values: readonly (number | null)[];
  /** Name of a colour of `tokens.css`, such as `--accent`. */
  colour: string;
  columns?: boolean;
}

interface Props {
  /** Says what the chart shows. */
  label: string;
  /** Seconds since 1970, rising. */
  times: readonly number[];
  lines: readonly Line[];
  height?: number;
  /** Least and most of the scale; as wide as it has to be where it is left out. */
  range?: [number, number];
  /** Called with the first and last second that were brushed. */
  onBrush?: (from: number, to: number) => void;
  /** A line down at this second. */
  mark?: number;
}

// As much of a number as fits beside the axis: `20K`.
const compact = new Intl.NumberFormat(undefined, { notation: "compact" });

export function Chart({ label, times, lines, height = 140, range, onBrush, mark }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const brush = useRef(onBrush);
  brush.current = onBrush;
  const key = JSON.stringify([times, lines, height, mark]);
  useEffect(() => {
    const place = box.current;
    if (!place) return undefined;
    let plot: uPlot | null = null;
    const draw = () => {
      plot?.destroy();
      const style = getComputedStyle(document.documentElement);
      const colour = (name: string) => style.getPropertyValue(name).trim();
      const axis: uPlot.Axis = {
        stroke: colour("--soft"),
        grid: { stroke: colour("--line"), width: 1 },
        ticks: { stroke: colour("--line"), width: 1 },
        font: "11px system-ui",
      };
      const options: uPlot.Options = {
        width: Math.max(120, place.clientWidth),
        height,
        legend: { show: false },
        cursor: { drag: { x: Boolean(brush.current), y: false, setScale: false }, points: { size: 6 } },
        scales: {
          x: { time: true },
          y: range ? { range } : { range: (_, least, most) => [Math.min(0, least), Math.max(1, most * 1.08)] },
        },
        axes: [axis, { ...axis, size: 42, values: (_, ticks) => ticks.map((tick) => compact.format(tick)) }],
        series: [
          {},
          ...lines.map((each): uPlot.Series => ({
            label: each.label,
            stroke: colour(each.colour),
            fill: each.columns ? colour(each.colour) : undefined,
            width: each.columns ? 0 : 1.5,
            points: { show: false },
            paths: each.columns ? uPlot.paths.bars?.({ size: [0.8, 28, 1] }) : undefined,
          })),
        ],
        hooks: {
          draw: [
            (chart) => {
              if (mark === undefined) return;
              const at = chart.valToPos(mark, "x", true);
              chart.ctx.strokeStyle = colour("--edge");
              chart.ctx.setLineDash([4, 4]);
              chart.ctx.beginPath();
              chart.ctx.moveTo(at, chart.bbox.top);
              chart.ctx.lineTo(at, chart.bbox.top + chart.bbox.height);
              chart.ctx.stroke();
              chart.ctx.setLineDash([]);
            },
          ],
          setSelect: [
            (chart) => {
              if (chart.select.width < 3) return;
              brush.current?.(
                chart.posToVal(chart.select.left, "x"),
                chart.posToVal(chart.select.left + chart.select.width, "x"),
              );
              chart.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
            },
          ],
        },
      };
      plot = new uPlot(options, [[...times], ...lines.map((each) => [...each.values])] as uPlot.AlignedData, place);
    };
    draw();
    const sized = new ResizeObserver(() => plot?.setSize({ width: Math.max(120, place.clientWidth), height }));
    sized.observe(place);
    const dark = matchMedia("(prefers-color-scheme: dark)");
    dark.addEventListener("change", draw);
    return () => {
      sized.disconnect();
      dark.removeEventListener("change", draw);
      plot?.destroy();
    };
    // `key` names everything that is drawn.
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [key]);
  return <div ref={box} class="chart" role="img" aria-label={label} style={{ minHeight: `${height}px` }} />;
}
