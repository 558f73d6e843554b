"""The inverted index: sorted 64-bit postings in a few segments, and the BM25 that reads them.

Invariants
(1) a posting is hash << 32 | row << 8 | count; a segment is a sorted array of them, so a term is one slice.
(2) segments shrink geometrically: each is at least twice the next, so an append costs O(log n) amortised.
(3) rows of removed memories stay until `renumber`; readers mask them out before counting anything.
(4) document frequencies are counted over the rows a reader may see, never over the segment.
(5) names stand once more by row, ascending, so that what a row names is one slice too.
"""

from collections.abc import Iterable
from typing import Final

import numpy as np
import numpy.typing as npt

from keepward.retrieval.analyze import unpack_many
from keepward.retrieval.growable import Growable

Rows = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float32]
Postings = npt.NDArray[np.uint64]

#: Rows have 24 bits in a posting.
MAX_ROWS: Final = 1 << 24
_TAIL: Final = 8_192
#: Unsorted postings held at most, so that a bulk load needs no second copy of everything at the first read.
_LONGEST_TAIL: Final = 131_072
#: BM25: how soon repetitions stop counting, and how much length does. A b of 0.25 or 0.75 loses on one set
#: or another; between them it hardly matters.
K1: Final = 0.9
B: Final = 0.4


class TermStore:
    """Postings of one tenant."""

    __slots__ = ("_named", "_naming", "_segments", "_tail", "_tail_len")

    def __init__(self) -> None:
        #: Hashes of names, and the row that has each.
        self._named = Growable(np.uint32)
        self._naming = Growable(np.int32)
        self._segments: list[Postings] = []
        self._tail: list[Postings] = []
        self._tail_len = 0

    @property
    def nbytes(self) -> int:
        postings = sum(array.nbytes for array in (*self._segments, *self._tail))
        return postings + self._named.nbytes + self._naming.nbytes

    def extend(self, first_row: int, blobs: Iterable[bytes]) -> npt.NDArray[np.float32]:
        """Add packed terms of consecutive rows; returns their document lengths."""
        hashes, counts, named, sizes, lengths = unpack_many(list(blobs))
        if len(sizes):
            rows = np.repeat(np.arange(first_row, first_row + len(sizes), dtype=np.uint64), sizes)
            self._named.extend(hashes[named])
            self._naming.extend(rows[named])
            hashes, counts = hashes.astype(np.uint64), counts.astype(np.uint64)
            self._tail.append((hashes << np.uint64(32)) | (rows << np.uint64(8)) | counts)
            self._tail_len += len(hashes)
            if self._tail_len > _LONGEST_TAIL:
                self._settle()
        return lengths

    def _settle(self) -> None:
        """Sort what was added since the last read into the segments."""
        if not self._tail:
            return
        fresh = np.concatenate(self._tail)
        fresh.sort()
        self._tail.clear()
        self._tail_len = 0
        segments = self._segments
        segments.append(fresh)
        while len(segments) > 1 and (len(segments[-2]) < 2 * len(segments[-1]) or len(segments[-2]) < _TAIL):
            last = segments.pop()
            # Two sorted halves: the stable sort finds them and merges.
            merged = np.concatenate((segments[-1], last))
            merged.sort(kind="stable")
            segments[-1] = merged

    def postings(self, term: int) -> tuple[Rows, Floats]:
        """Rows holding the term hash and their counts, by segment and ascending row."""
        self._settle()
        low, high = np.uint64(term << 32), np.uint64((term << 32) | 0xFFFF_FFFF)
        slices = [s[int(np.searchsorted(s, low)) : int(np.searchsorted(s, high, side="right"))] for s in self._segments]
        slices = [s for s in slices if len(s)]
        if not slices:
            return np.empty(0, dtype=np.int32), np.empty(0, dtype=np.float32)
        found = slices[0] if len(slices) == 1 else np.concatenate(slices)
        rows = ((found >> np.uint64(8)) & np.uint64(0xFF_FFFF)).astype(np.int32)
        return rows, (found & np.uint64(0xFF)).astype(np.float32)

    def count(self, term: int) -> int:
        """Number of rows that hold the term hash, dead ones included."""
        self._settle()
        low, high = np.uint64(term << 32), np.uint64((term << 32) | 0xFFFF_FFFF)
        return sum(int(np.searchsorted(s, high, side="right") - np.searchsorted(s, low)) for s in self._segments)

    def holding(self, rows: npt.NDArray[np.intp], term: int) -> npt.NDArray[np.bool_]:
        """Whether each row holds the term hash; however many others do."""
        self._settle()
        wanted = np.uint64(term << 24) | rows.astype(np.uint64)
        found = np.zeros(len(rows), dtype=np.bool_)
        for segment in filter(len, self._segments):
            # Counts are at least 1, so a posting stands right behind the same one without a count.
            places = np.minimum(np.searchsorted(segment, wanted << np.uint64(8)), len(segment) - 1)
            found |= segment[places] >> np.uint64(8) == wanted
        return found

    def names(self, row: int) -> list[int]:
        """Hashes of the names in a row, ascending."""
        first, last = np.searchsorted(self._naming.view, (row, row + 1)).tolist()
        hashes: list[int] = self._named.view[first:last].tolist()
        return hashes

    def renumber(self, new_rows: Rows) -> None:
        """Move to new row numbers (index: old row; -1: forget it and its terms)."""
        self._settle()
        moved: list[Postings] = []
        for segment in self._segments:
            rows = new_rows[((segment >> np.uint64(8)) & np.uint64(0xFF_FFFF)).astype(np.int64)]
            kept = rows >= 0
            base = segment[kept] & np.uint64(0xFFFF_FFFF_0000_00FF)
            moved.append(base | (rows[kept].astype(np.uint64) << np.uint64(8)))
        self._segments = [np.sort(np.concatenate(moved))] if moved else []
        naming = new_rows[self._naming.view]
        left = np.flatnonzero(naming >= 0)
        self._named.keep(left)
        self._naming.keep(np.arange(0))
        self._naming.extend(naming[left])


def idf(count: int, df: int) -> float:
    """Weight of a term, never negative: ln(1 + (count - df + 0.5) / (df + 0.5)).

    Source: Robertson, Zaragoza (2009), "The Probabilistic Relevance Framework: BM25 and Beyond".
    """
    return float(np.log1p((count - df + 0.5) / (df + 0.5)))


def length_norm(lengths: Floats, average: float) -> Floats:
    """The k1 * (1 - b + b * length / average) of BM25, float32 of the shape of `lengths`."""
    return np.asarray(K1 * (1.0 - B + B * lengths / max(average, 1e-9)), dtype=np.float32)


def saturated(counts: Floats, norms: Floats) -> Floats:
    """Share of what a term can give at most, 0..1: count / (count + norm)."""
    return np.asarray(counts / (counts + norms), dtype=np.float32)
