/** Words of a text that are pointed at. */

/** A half-open span of a text, in UTF-16 units, and why it is pointed at. */
export interface Span {
  start: number;
  end: number;
  title: string;
}

/** A piece of a text; `title` says why it is pointed at. */
export interface Piece {
  text: string;
  title?: string;
}

/** Return the place in a text of so many code points, in UTF-16 units. */
export function unitsOf(text: string, points: number): number {
  let units = 0;
  for (const character of text) {
    if (points <= 0) break;
    points -= 1;
    units += character.length;
  }
  return units;
}

/** Cut a part of a text, which begins at `offset` in it, where spans begin and end; of overlapping spans the first counts. */
export function piecesOf(text: string, offset: number, spans: readonly Span[]): Piece[] {
  const pieces: Piece[] = [];
  let at = 0;
  for (const span of [...spans].sort((one, other) => one.start - other.start)) {
    const start = Math.max(span.start - offset, at);
    const end = Math.min(span.end - offset, text.length);
    if (start >= end) continue;
    if (start > at) pieces.push({ text: text.slice(at, start) });
    pieces.push({ text: text.slice(start, end), title: span.title });
    at = end;
  }
  if (at < text.length) pieces.push({ text: text.slice(at) });
  return pieces;
}
