/** A text in which words that are pointed at are marked, with invisible characters drawn. */

import { piecesOf, type Span } from "./spans";
import { seen } from "./seen";

export function Pointed({ text, offset = 0, spans }: { text: string; offset?: number; spans: readonly Span[] }) {
  return (
    <>
      {piecesOf(text, offset, spans).map((piece, index) =>
        piece.title ? (
          <mark key={index} class="pointed" title={piece.title}>
            {seen(piece.text)}
          </mark>
        ) : (
          <span key={index}>{seen(piece.text)}</span>
        ),
      )}
    </>
  );
}
