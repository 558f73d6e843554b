/** Points in a plane, to be pointed at and brushed: by mouse, by finger, or by keys. */

import "./map-canvas.css";
import { useEffect, useRef, useState } from "preact/hooks";

export interface Points {
  x: readonly number[];
  y: readonly number[];
  /** Place of each in `colours`. */
  colour: readonly number[];
  /** Values of CSS. */
  colours: readonly string[];
}

/** Left, top, right and bottom, in the measure of the points. */
export type Box = readonly [number, number, number, number];

interface Props {
  points: Points;
  label: string;
  box: Box | null;
  /** Called with what was brushed; null where that was taken back. */
  onBox: (box: Box | null) => void;
  /** Called with the point that is pointed at, -1 for none. */
  onPoint: (index: number) => void;
  onOpen: (index: number) => void;
}

// The plane goes from -EDGE to EDGE; MARGIN is left around it, in pixels.
const EDGE = 1000;
const MARGIN = 14;
// Pixels within which a point is pointed at, and below which a brush was a click.
const NEAR = 14;
const CLICK = 5;
const STEP = 40;

export function MapCanvas({ points, label, box, onBox, onPoint, onOpen }: Props) {
  const frame = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const [size, setSize] = useState<[number, number]>([0, 0]);
  const [spot, setSpot] = useState<[number, number] | null>(null);
  const [drag, setDrag] = useState<Box | null>(null);
  const begun = useRef<[number, number] | null>(null);
  const [dark, setDark] = useState(0);

  useEffect(() => {
    const place = frame.current;
    if (!place) return undefined;
    const sized = new ResizeObserver(() => setSize([place.clientWidth, place.clientHeight]));
    sized.observe(place);
    const scheme = matchMedia("(prefers-color-scheme: dark)");
    const turn = () => setDark((before) => before + 1);
    scheme.addEventListener("change", turn);
    return () => {
      sized.disconnect();
      scheme.removeEventListener("change", turn);
    };
  }, []);

  const [width, height] = size;
  const across = (value: number) => MARGIN + ((value + EDGE) / (2 * EDGE)) * (width - 2 * MARGIN);
  const down = (value: number) => MARGIN + ((EDGE - value) / (2 * EDGE)) * (height - 2 * MARGIN);
  const fromAcross = (pixel: number) => ((pixel - MARGIN) / Math.max(1, width - 2 * MARGIN)) * 2 * EDGE - EDGE;
  const fromDown = (pixel: number) => EDGE - ((pixel - MARGIN) / Math.max(1, height - 2 * MARGIN)) * 2 * EDGE;

  useEffect(() => {
    const place = canvas.current;
    const pen = place?.getContext("2d");
    if (!place || !pen || !width || !height) return;
    const scale = window.devicePixelRatio || 1;
    place.width = width * scale;
    place.height = height * scale;
    pen.setTransform(scale, 0, 0, scale, 0, 0);
    const many = points.x.length;
    const radius = many > 20_000 ? 1.2 : many > 2_000 ? 1.8 : 3.2;
    pen.globalAlpha = many > 20_000 ? 0.55 : 0.8;
    // Colour by colour: to change it costs more than to draw.
    points.colours.forEach((colour, index) => {
      // A canvas knows no variables: the element says what they are now.
      place.style.color = colour;
      pen.fillStyle = getComputedStyle(place).color;
      pen.beginPath();
      for (let at = 0; at < many; at++) {
        if (points.colour[at] !== index) continue;
        const x = across(points.x[at] ?? 0);
        const y = down(points.y[at] ?? 0);
        pen.moveTo(x + radius, y);
        pen.arc(x, y, radius, 0, 2 * Math.PI);
      }
      pen.fill();
    });
  }, [points, width, height, dark]);

  const nearest = (x: number, y: number): number => {
    let best = -1;
    let least = NEAR * NEAR;
    for (let at = 0; at < points.x.length; at++) {
      const far = (across(points.x[at] ?? 0) - x) ** 2 + (down(points.y[at] ?? 0) - y) ** 2;
      if (far < least) {
        least = far;
        best = at;
      }
    }
    return best;
  };
  const boxOf = (a: readonly [number, number], b: readonly [number, number]): Box => [
    Math.round(fromAcross(Math.min(a[0], b[0]))),
    Math.round(fromDown(Math.min(a[1], b[1]))),
    Math.round(fromAcross(Math.max(a[0], b[0]))),
    Math.round(fromDown(Math.max(a[1], b[1]))),
  ];
  const placeOf = (event: PointerEvent): [number, number] => {
    const edge = canvas.current?.getBoundingClientRect();
    return [event.clientX - (edge?.left ?? 0), event.clientY - (edge?.top ?? 0)];
  };

  const move = (event: PointerEvent) => {
    const here = placeOf(event);
    if (begun.current) setDrag(boxOf(begun.current, here));
    else onPoint(nearest(...here));
  };
  const end = (event: PointerEvent) => {
    const from = begun.current;
    begun.current = null;
    setDrag(null);
    if (!from) return;
    const here = placeOf(event);
    if (Math.abs(here[0] - from[0]) > CLICK || Math.abs(here[1] - from[1]) > CLICK) return onBox(boxOf(from, here));
    const index = nearest(...here);
    if (index >= 0) onOpen(index);
    else if (box) onBox(null);
  };
  const onKey = (event: KeyboardEvent) => {
    const [x, y] = spot ?? [width / 2, height / 2];
    const steps: Record<string, [number, number]> = { ArrowLeft: [-STEP, 0], ArrowRight: [STEP, 0], ArrowUp: [0, -STEP], ArrowDown: [0, STEP] };
    const step = steps[event.key];
    if (step) {
      const next: [number, number] = [Math.min(width, Math.max(0, x + step[0])), Math.min(height, Math.max(0, y + step[1]))];
      setSpot(next);
      const index = nearest(...next);
      onPoint(index);
    } else if (event.key === "Enter") {
      const index = nearest(x, y);
      if (index >= 0) onOpen(index);
    } else if (event.key === " ") {
      // What lies around the spot.
      onBox(boxOf([x - 2 * STEP, y - 2 * STEP], [x + 2 * STEP, y + 2 * STEP]));
    } else if (event.key === "Escape" && box) onBox(null);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };

  const shown = drag ?? box;
  return (
    <div class="map-frame" ref={frame}>
      <canvas
        ref={canvas}
        tabIndex={0}
        role="application"
        aria-label={`${label} Arrow keys move, Space lists what is around, Enter opens.`}
        onPointerDown={(event) => {
          begun.current = placeOf(event);
          canvas.current?.setPointerCapture(event.pointerId);
        }}
        onPointerMove={move}
        onPointerUp={end}
        onPointerLeave={() => onPoint(-1)}
        onKeyDown={onKey}
      />
      {shown && width ? (
        <div
          class="map-box"
          style={{ left: `${across(shown[0])}px`, top: `${down(shown[1])}px`, width: `${across(shown[2]) - across(shown[0])}px`, height: `${down(shown[3]) - down(shown[1])}px` }}
        />
      ) : null}
      {spot ? <div class="map-spot" style={{ left: `${spot[0]}px`, top: `${spot[1]}px` }} /> : null}
    </div>
  );
}
