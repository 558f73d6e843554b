"""The words of an index: inverted lists, what a reader's share of them weighs, and how far each row covers a query.

Invariants
(1) A posting is hash << 32 | row << 8 | count; a segment is a sorted array of them, so a term is one slice. Segments
    shrink geometrically: each is at least twice the next, so an append costs O(log n) amortised.
(2) Rows of removed memories stay until `renumber`; readers mask them out before counting anything. A sight is computed
    of allowed rows alone, as if the others did not exist: a hidden memory changes neither a score nor an order.
(3) One term gives a memory at most its idf; the sum over the query's terms, unseen ones included, and one word that was
    not said, is the most that any memory could have, and scores are shares of it.
(4) A window is a memory with the turn before as if they were one text; a memory outside any session is its own
    neighbourhood, so that it competes on level terms with turns of a conversation.
(5) Additions happen term by term in hash order, so a score does not depend on where its row stands.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt

from keepward.core.principals import Trust
from keepward.retrieval.columns import Columns, GrowableArray, Mask, Places, RowFilter, Rows
from keepward.retrieval.tokenizer import is_gram, term_hash, unpack_many
from keepward.retrieval.vector_index import SignStatistics

Floats = npt.NDArray[np.float32]
Postings = npt.NDArray[np.uint64]

#: Rows have 24 bits in a posting.
MAX_ROWS: Final = 1 << 24
_ROW: Final = np.uint64(0xFF_FFFF)
_TAIL: Final = 8_192
#: Unsorted postings held at most, so that a bulk load needs no second copy of everything at the first read.
_LONGEST_TAIL: Final = 131_072
#: BM25: how soon repetitions stop counting, and how much length does. A b of 0.25 or 0.75 loses on one set
#: or another; between them it hardly matters.
K1: Final = 0.9
B: Final = 0.4
#: Weight of the session beside the memory's own text and its window, which have 1 each.
SESSION_WEIGHT: Final = np.float32(0.3)
#: What a memory without a session gets for its own text.
LONE_MEMORY_WEIGHT: Final = np.float32(1.5)
#: A turn with both neighbours of so many terms at most is read with them; of longer ones the turn itself counts for
#: more, since they hold a word of anything.
FULL_CONTEXT_TERMS: Final = np.float32(100.0)
#: Every query means more than its words: it is counted as if it held this many further ones, unseen. A
#: query of one common word can then not be covered in full by each memory that has the word.
QUERY_SMOOTHING: Final = 1.0
#: An unseen pair of characters is rather a seam between two words than a word.
UNSEEN_GRAM_WEIGHT: Final = 0.1


class InvertedIndex:
    """Postings of one tenant; names stand once more by row, ascending, so that what a row names is one slice too."""

    __slots__ = ("_named", "_naming", "_segments", "_tail", "_tail_len")

    def __init__(self) -> None:
        #: Hashes of names, and the row that has each.
        self._named = GrowableArray(np.uint32)
        self._naming = GrowableArray(np.int32)
        self._segments: list[Postings] = []
        self._tail: list[Postings] = []
        self._tail_len = 0

    @property
    def nbytes(self) -> int:
        postings = sum(array.nbytes for array in (*self._segments, *self._tail))
        return postings + self._named.nbytes + self._naming.nbytes

    def extend(self, first_row: int, blobs: Iterable[bytes]) -> Floats:
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
                self._merge_tail()
        return lengths

    def _merge_tail(self) -> list[Postings]:
        """Sort what was added since the last read into the segments; return these."""
        segments = self._segments
        if self._tail:
            fresh = np.concatenate(self._tail)
            fresh.sort()
            self._tail.clear()
            self._tail_len = 0
            segments.append(fresh)
            while len(segments) > 1 and (len(segments[-2]) < 2 * len(segments[-1]) or len(segments[-2]) < _TAIL):
                # Two sorted halves: the stable sort finds them and merges.
                merged = np.concatenate(segments[-2:])
                merged.sort(kind="stable")
                segments[-2:] = [merged]
        return segments

    def _slices(self, term: int) -> list[Postings]:
        # No posting has all of the last 32 bits: counts stop below that.
        ends = np.array((term << 32, (term << 32) | 0xFFFF_FFFF), dtype=np.uint64)
        return [s[slice(*s.searchsorted(ends).tolist())] for s in self._merge_tail()]

    def postings(self, term: int) -> tuple[Places, Floats]:
        """Rows holding the term hash and their counts, by segment and ascending row."""
        slices = [found for found in self._slices(term) if len(found)]
        if not slices:
            return np.empty(0, dtype=np.intp), np.empty(0, dtype=np.float32)
        found = slices[0] if len(slices) == 1 else np.concatenate(slices)
        return ((found >> np.uint64(8)) & _ROW).astype(np.intp), (found & np.uint64(0xFF)).astype(np.float32)

    def count(self, term: int) -> int:
        """Number of rows that hold the term hash, dead ones included."""
        return sum(map(len, self._slices(term)))

    def holding(self, rows: Places, terms: Iterable[int]) -> npt.NDArray[np.bool_]:
        """Whether each row holds each term hash, however many others do: shape (terms, rows)."""
        keys = (np.array([*terms], dtype=np.uint64) << np.uint64(24))[:, None] | rows.astype(np.uint64)
        found = np.zeros(keys.shape, dtype=np.bool_)
        for segment in filter(len, self._merge_tail()):
            # Counts are at least 1, so a posting stands right behind the same one without a count.
            places = np.minimum(segment.searchsorted(keys << np.uint64(8)), len(segment) - 1)
            found |= segment[places] >> np.uint64(8) == keys
        return found

    def contains_other_names(self, rows: Places, others: Iterable[int]) -> npt.NDArray[np.bool_]:
        """Whether each row holds a name whose hash is not among `others`."""
        sought, naming = rows.astype(np.int32), self._naming.view
        first, last = naming.searchsorted(sought), naming.searchsorted(sought, side="right")
        owners = np.repeat(np.arange(len(rows)), last - first)
        ahead = np.cumsum(last - first)
        places = np.arange(len(owners)) + np.repeat(last - ahead, last - first)
        hashes = self._named.view[places]
        found = np.zeros(len(rows), dtype=np.bool_)
        found[owners[~np.isin(hashes, np.fromiter(others, dtype=np.uint32))]] = True
        return found

    def renumber(self, new_rows: Rows) -> None:
        """Move to new row numbers (index: old row; -1: forget it and its terms)."""
        moved: list[Postings] = []
        for segment in self._merge_tail():
            rows = new_rows[((segment >> np.uint64(8)) & _ROW).astype(np.int64)]
            base = segment[rows >= 0] & np.uint64(0xFFFF_FFFF_0000_00FF)
            moved.append(base | (rows[rows >= 0].astype(np.uint64) << np.uint64(8)))
        self._segments = [np.sort(np.concatenate(moved))] if moved else []
        naming = new_rows[self._naming.view]
        self._named.put(self._named.view[naming >= 0])
        self._naming.put(naming[naming >= 0])


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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Statistics:
    """What is known of all that a reader may see, where an index holds a part of it."""

    #: Memories, and how many of them have no vector to compare.
    count: int
    lacking: int
    #: Mean number of terms: of a memory, of it with the turn before.
    lengths: tuple[float, float]
    #: How many memories hold each term, by its hash, of those that were counted; 0 of others.
    holders: dict[int, int]
    #: Of all vectors of the query's model.
    signs: SignStatistics | None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class VisibleRows:
    """What one reader sees: arrays over all rows, whose cells of hidden rows have no meaning (2).

    Where no row has a session, what tells of neighbours is one cell shown for every row.
    """

    mask: Mask
    #: Whether every row is allowed.
    whole: bool
    #: Allowed rows.
    count: int
    #: Instants for which the mask holds: since <= now < until.
    since: int
    until: int
    #: BM25 length norms of the memory, and of it with the turn before.
    norm: Floats
    norm_before: Floats
    #: What neighbours and session say of each row, as a share of what they say of a row among short ones.
    context: Floats
    #: Row before and after in the same session, or the row count (one past the end) where there is none.
    before: Rows
    after: Rows
    #: Session number of each row, or `sessions` where it has none.
    session: Rows
    sessions: int
    #: BM25 length norm of each session.
    session_norm: Floats
    #: Of all that the reader may see, where the rows are a part of it.
    statistics: Statistics | None
    #: Names of speakers who are no people, in lower case, by code.
    roles: Mapping[int, str] = field(default_factory=dict)
    #: Row that answers what each row asks, or the row count where none does.
    answers: Rows = field(default_factory=lambda: np.zeros(0, dtype=np.int32))
    #: Of the vectors of each model that was asked in, by its id.
    signs: dict[str, SignStatistics] = field(default_factory=dict)
    #: Allowed rows without a vector of each model and dimension that was asked in.
    lacking: dict[tuple[str, int], int] = field(default_factory=dict)

    def holders(self, term: int, here: int) -> int:
        """Return how many allowed memories hold a term, given how many of these rows do."""
        return here if self.statistics is None else self.statistics.holders.get(term, 0)


def visible_rows(
    columns: Columns, lengths: Floats, allowed: RowFilter, statistics: Statistics | None = None
) -> VisibleRows:
    """Compute what a reader sees; `lengths` is the number of terms of each row."""
    mask = columns.mask(allowed)
    expires = columns["expires_at"]
    limits = expires[mask]
    gone, coming = limits[limits <= allowed.now], limits[limits > allowed.now]
    since = int(gone.max()) if len(gone) else int(np.iinfo(np.int64).min)
    until = int(coming.min()) if len(coming) else allowed.now + 1
    if allowed.min_importance is not None:
        # What fades passes at one instant and not at the next.
        since, until = allowed.now, allowed.now + 1
    mask &= expires > allowed.now
    count = int(np.count_nonzero(mask))
    if statistics is not None and count >= statistics.count:
        # The part is all there is.
        statistics = None
    before, after, session, sessions = _neighbours(columns, mask)
    mean, mean_before = statistics.lengths if statistics else (_mean(lengths[mask]), None)
    norm = norm_before = length_norm(lengths, mean)
    context = np.ones(1, dtype=np.float32)
    totals = np.zeros(0, dtype=np.float32)
    if sessions:
        padded = np.append(lengths, np.float32(0.0))
        with_before = lengths + padded[before]
        norm_before = length_norm(with_before, _mean(with_before[mask]) if mean_before is None else mean_before)
        context = FULL_CONTEXT_TERMS / np.maximum(with_before + padded[after], FULL_CONTEXT_TERMS)
        spoken = np.flatnonzero(mask & (session < sessions))
        totals = np.bincount(session[spoken], weights=lengths[spoken], minlength=sessions).astype(np.float32)
    return VisibleRows(
        mask=mask,
        whole=count == len(mask),
        count=statistics.count if statistics else count,
        since=since,
        until=until,
        norm=norm,
        norm_before=norm_before,
        context=context,
        before=before,
        after=after,
        session=session,
        sessions=sessions,
        session_norm=length_norm(totals, _mean(totals)),
        statistics=statistics,
    )


def _mean(lengths: Floats) -> float:
    # Sums of whole numbers are exact in float64, so the mean does not depend on the order of rows.
    return float(lengths.sum(dtype=np.float64)) / len(lengths) if len(lengths) else 0.0


def _neighbours(columns: Columns, mask: Mask) -> tuple[Rows, Rows, Rows, int]:
    n = len(columns)
    codes, positions = columns["session"], columns["position"]
    rows = np.flatnonzero(mask & (codes >= 0))
    if not len(rows):
        nobody = np.broadcast_to(np.int32(n), n)
        return nobody, nobody, np.broadcast_to(np.int32(0), n), 0
    before, after = np.full(n, n, dtype=np.int32), np.full(n, n, dtype=np.int32)
    # What less trusted sources say under the name of a talk stands beside it: no turn of it asks or answers them.
    talks = codes[rows].astype(np.int64) * (Trust.AGENT + 1) + np.minimum(columns["trust"][rows], Trust.AGENT)
    if np.all(positions[rows[1:]] >= positions[rows[:-1]]):
        # Rows mostly arrive in order and session by session: a stable sort of nearly sorted codes is linear.
        places = np.argsort(talks, kind="stable")
    else:
        places = np.lexsort((positions[rows], talks))
    order, ordered = rows[places], talks[places]
    same = ordered[1:] == ordered[:-1]
    before[order[1:][same]] = order[:-1][same]
    after[order[:-1][same]] = order[1:][same]
    numbers = np.concatenate(([0], np.cumsum(~same)))
    sessions = int(numbers[-1]) + 1
    session = np.full(n, sessions, dtype=np.int32)
    session[order] = numbers
    return before, after, session, sessions


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Bm25Shares:
    """Shares of the query by row, float32; hidden rows have 0."""

    #: Of the memory's own text, 0..1.
    own: Floats
    #: With window and session, 0..2.3.
    full: Floats
    #: How many allowed rows hold each term, by its hash.
    holders: Mapping[int, int]


def bm25_shares(terms: tuple[str, ...], postings: InvertedIndex, sight: VisibleRows) -> Bm25Shares | None:
    """Score the allowed rows; None where no allowed row holds any of the terms."""
    n = len(sight.mask)
    keys = {term_hash(term): is_gram(term) for term in terms}
    own = np.zeros(n, dtype=np.float32)
    full = np.zeros(n + 1, dtype=np.float32)
    in_session = np.zeros(sight.sessions + 1, dtype=np.float32)
    scratch = np.zeros(n + 1, dtype=np.float32)
    most = QUERY_SMOOTHING * idf(sight.count, 0)
    holders: dict[int, int] = {}
    for key, gram in sorted(keys.items()):
        rows, counts = postings.postings(key)
        if not sight.whole:
            seen = sight.mask[rows]
            rows, counts = rows[seen], counts[seen]
        holders[key] = sight.holders(key, len(rows))
        weight = idf(sight.count, holders[key])
        if not holders[key]:
            most += weight * (UNSEEN_GRAM_WEIGHT if gram else 1.0)
            continue
        most += weight
        gain = np.float32(weight)
        share = gain * saturated(counts, sight.norm[rows])
        own[rows] += share
        if not sight.sessions:
            full[rows] += LONE_MEMORY_WEIGHT * share
            continue
        spoken = sight.session[rows] < sight.sessions
        full[rows] += np.where(spoken, np.float32(1.0), LONE_MEMORY_WEIGHT) * share
        rows, counts = rows[spoken], counts[spoken]
        _window(rows, counts, gain, sight, full, scratch)
        totals = np.bincount(sight.session[rows], weights=counts, minlength=sight.sessions)
        held = np.flatnonzero(totals)
        in_session[held] += SESSION_WEIGHT * gain * saturated(totals[held].astype(np.float32), sight.session_norm[held])
    if not any(holders.values()):
        return None
    if sight.sessions:
        full[:n] += in_session[sight.session]
        full[:n] = sight.context * full[:n] + (np.float32(1.0) - sight.context) * LONE_MEMORY_WEIGHT * own
        if not sight.whole:
            full[:n] *= sight.mask
    scale = np.float32(1.0 / most)
    return Bm25Shares(own=own * scale, full=full[:n] * scale, holders=holders)


def _window(rows: Places, counts: Floats, gain: np.float32, sight: VisibleRows, full: Floats, scratch: Floats) -> None:
    """Add one term's share of the window to `full`; `scratch` (one cell more than rows) is left zero."""
    last = len(scratch) - 1
    after = sight.after[rows]
    scratch[rows] += counts
    scratch[after] += counts
    # A row may stand here twice: assignment through an index adds its share once, as it should.
    touched = np.concatenate((rows, after[after < last]))
    full[touched] += gain * saturated(scratch[touched], sight.norm_before[touched])
    scratch[touched] = 0.0
    scratch[last] = 0.0
