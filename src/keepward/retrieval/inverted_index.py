"""The words of an index: inverted lists, the statistics of a reader's visible rows, and BM25 scores.

Invariants
(1) A posting is hash << 32 | row << 8 | count; a segment is a sorted array of postings, so a term is one slice. Each
    segment is at least twice as long as the next, so an append costs O(log n) amortised. The postings of a file are a
    segment of their own, the first.
(2) Rows of removed memories stay until `renumber`; readers mask them out first. Statistics are computed of visible
    rows only, so a hidden memory changes neither scores nor order.
(3) A score is a share of the maximum: the sum of the idf of all query terms, unseen ones included, and of one further
    unseen word.
(4) A window is a message together with the message before it. A memory without a session gets a fixed weight instead,
    so that it competes on equal terms with messages.
(5) Additions happen term by term in hash order, so a score does not depend on the row number.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt

from keepward.core.principals import Trust
from keepward.core.query import Filter
from keepward.ports.index_parts import Part, StoredPart
from keepward.retrieval.columns import (
    Columns,
    Floats,
    GrowableArray,
    Indices,
    Mask,
    Rows,
    SortedArray,
    sorted_parts,
)
from keepward.retrieval.tokenizer import is_gram, term_hash, unpack_many
from keepward.retrieval.vector_index import SignStatistics

Postings = npt.NDArray[np.uint64]

#: Rows have 24 bits in a posting.
MAX_ROWS: Final = 1 << 24
_ROW: Final = np.uint64(0xFF_FFFF)
_TAIL: Final = 8_192
#: Maximum number of unsorted postings, so that the first read after a bulk load needs no second copy of all.
_LONGEST_TAIL: Final = 131_072
#: BM25: saturation of repetitions, and weight of the length. A b of 0.25 or 0.75 loses recall on some set.
K1: Final = 0.9
B: Final = 0.4
#: Weight of the session. The memory's own text and its window have weight 1.
SESSION_WEIGHT: Final = np.float32(0.3)
#: Weight of the own text of a memory without a session.
LONE_MEMORY_WEIGHT: Final = np.float32(1.5)
#: Window and session count in full if a message and its neighbours have at most this many terms together. In longer
#: texts any word occurs by chance.
FULL_CONTEXT_TERMS: Final = np.float32(100.0)
#: Number of unseen words that are added to every query. Without them a query of one common word would be fully covered
#: by each memory that contains the word.
QUERY_SMOOTHING: Final = 1.0
#: An unseen pair of characters is probably no word but the end of one and the start of another.
UNSEEN_GRAM_WEIGHT: Final = 0.1


class InvertedIndex:
    """Postings of one tenant. Names are stored again by ascending row, so the names of a row are one slice."""

    __slots__ = ("_named", "_naming", "_segments", "_stored", "_tail", "_tail_len")

    def __init__(self, parts: Mapping[str, StoredPart] | None = None) -> None:
        stored = parts or {}
        #: Hashes of names, and the row that has each.
        self._named = GrowableArray(np.uint32, stored=stored.get("named"))
        self._naming = GrowableArray(np.int32, stored=stored.get("naming"))
        self._stored = None if parts is None else SortedArray(parts["postings"], parts["postings.firsts"])
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
        """Merge the postings added since the last read into the segments; return the segments."""
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
        low, high = term << 32, (term << 32) | 0xFFFF_FFFF
        ends = np.array((low, high), dtype=np.uint64)
        found = [] if self._stored is None else [self._stored.between(low, high)]
        return found + [s[slice(*s.searchsorted(ends).tolist())] for s in self._merge_tail()]

    def postings(self, term: int) -> tuple[Indices, Floats]:
        """Rows that contain the term hash and their counts, by segment and ascending row."""
        slices = [found for found in self._slices(term) if len(found)]
        if not slices:
            return np.empty(0, dtype=np.intp), np.empty(0, dtype=np.float32)
        found = slices[0] if len(slices) == 1 else np.concatenate(slices)
        return ((found >> np.uint64(8)) & _ROW).astype(np.intp), (found & np.uint64(0xFF)).astype(np.float32)

    def contains_terms(self, rows: Indices, terms: Iterable[int]) -> npt.NDArray[np.bool_]:
        """Whether each row contains each term hash: shape (terms, rows)."""
        keys = (np.array([*terms], dtype=np.uint64) << np.uint64(24))[:, None] | rows.astype(np.uint64)
        found = np.zeros(keys.shape, dtype=np.bool_)
        if self._stored is not None and len(self._stored):
            found |= self._stored.last_before((keys << np.uint64(8)) | np.uint64(0xFF)) >> np.uint64(8) == keys
        for segment in filter(len, self._merge_tail()):
            # Counts are at least 1, so a posting sorts right behind the same posting without a count.
            indices = np.minimum(segment.searchsorted(keys << np.uint64(8)), len(segment) - 1)
            found |= segment[indices] >> np.uint64(8) == keys
        return found

    def contains_other_names(self, rows: Indices, others: Iterable[int]) -> npt.NDArray[np.bool_]:
        """Whether each row contains a name whose hash is not among `others`."""
        sought, naming = rows.astype(np.int32), self._naming.view
        first, last = naming.searchsorted(sought), naming.searchsorted(sought, side="right")
        owners = np.repeat(np.arange(len(rows)), last - first)
        ahead = np.cumsum(last - first)
        indices = np.arange(len(owners)) + np.repeat(last - ahead, last - first)
        hashes = self._named.view[indices]
        found = np.zeros(len(rows), dtype=np.bool_)
        found[owners[~np.isin(hashes, np.fromiter(others, dtype=np.uint32))]] = True
        return found

    def are_names(self, terms: Sequence[int], visible: npt.NDArray[np.bool_]) -> list[bool]:
        """Return which term hashes are a name in any visible row."""
        names = self._named.view[visible[self._naming.view]]
        found: list[bool] = np.isin(np.array(terms, dtype=np.uint32), names).tolist()
        return found

    def renumber(self, new_rows: Rows) -> None:
        """Change the row numbers; ``new_rows`` maps old to new, and to -1 for rows to drop."""
        self._segments, self._stored = [np.concatenate([*self._moved(new_rows)])], None
        naming = new_rows[self._naming.view]
        self._named.put(self._named.view[naming >= 0])
        self._naming.put(naming[naming >= 0])

    def _moved(self, new_rows: Rows) -> Iterator[Postings]:
        """Yield all postings in order, a part at a time, with changed row numbers."""
        segments, taken = self._merge_tail(), [0] * (len(self._segments))
        stored = iter(()) if self._stored is None else self._stored.chunks()
        chunk = next(stored, None)
        while chunk is not None or any(at < len(s) for at, s in zip(taken, segments, strict=True)):
            following = next(stored, None)
            parts = [] if chunk is None else [chunk]
            # What is merged with a chunk of the file ends where the next one begins.
            for number, segment in enumerate(segments):
                end = len(segment) if following is None else int(segment.searchsorted(following[0]))
                parts.append(segment[taken[number] : end])
                taken[number] = end
            merged = np.concatenate(parts)
            rows = new_rows[((merged >> np.uint64(8)) & _ROW).astype(np.intp)]
            moved = merged[rows >= 0] & np.uint64(0xFFFF_FFFF_0000_00FF)
            moved |= rows[rows >= 0].astype(np.uint64) << np.uint64(8)
            moved.sort(kind="stable")
            yield moved
            chunk = following
        yield np.zeros(0, dtype=np.uint64)

    def parts(self, new_rows: Rows) -> Iterator[Part]:
        """Yield what a file has; ``new_rows`` maps each row to its new number, or to -1 for rows to drop."""
        naming = new_rows[self._naming.view]
        yield Part(name="named", chunks=[self._named.view[naming >= 0]], grows=True)
        yield Part(name="naming", chunks=[naming[naming >= 0]], grows=True)
        yield from sorted_parts("postings", self._moved(new_rows))


def idf(count: int, df: int) -> float:
    """Weight of a term, never negative: ln(1 + (count - df + 0.5) / (df + 0.5)).

    Source: Robertson, Zaragoza (2009), "The Probabilistic Relevance Framework: BM25 and Beyond".
    """
    return float(np.log1p((count - df + 0.5) / (df + 0.5)))


def length_norm(lengths: Floats, average: float) -> Floats:
    """The k1 * (1 - b + b * length / average) of BM25, float32 of the shape of `lengths`."""
    return np.asarray(K1 * (1.0 - B + B * lengths / max(average, 1e-9)), dtype=np.float32)


def saturated(counts: Floats, norms: Floats) -> Floats:
    """Share of a term's maximum, 0..1: count / (count + norm)."""
    return np.asarray(counts / (counts + norms), dtype=np.float32)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Statistics:
    """Statistics of all visible memories, for an index that contains a part of them."""

    #: Number of memories, and of those without a comparable vector.
    count: int
    lacking: int
    #: Mean number of terms: of a memory, and of a memory with the message before it.
    lengths: tuple[float, float]
    #: Number of memories that contain each counted term, by its hash.
    document_frequency: dict[int, int]
    #: Signs of all vectors of the query's model.
    signs: SignStatistics | None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class VisibleRows:
    """The rows that one reader sees: arrays over all rows; cells of hidden rows have no meaning (2).

    If no row has a session, the arrays of neighbours are views of a single cell.
    """

    mask: Mask
    #: Whether every row is visible.
    unfiltered: bool
    #: Number of visible rows.
    count: int
    #: The mask is valid for since <= now < until.
    since: int
    until: int
    #: BM25 length norms of the memory, and of the memory with the message before it.
    norm: Floats
    norm_before: Floats
    #: Weight of window and session of each row, 0..1; 1 among short texts.
    context: Floats
    #: Row before and after in the same session, or the row count (one past the end) if there is none.
    before: Rows
    after: Rows
    #: Session number of each row, or `sessions` if it has none.
    session: Rows
    sessions: int
    #: BM25 length norm of each session.
    session_norm: Floats
    #: Statistics of all visible memories, if the rows are a part of them.
    statistics: Statistics | None
    #: Names of speakers that are roles, in lower case, by code.
    roles: Mapping[int, str] = field(default_factory=dict)
    #: Row that answers the question of each row, or the row count if there is none.
    answers: Rows = field(default_factory=lambda: np.zeros(0, dtype=np.int32))
    #: Subjects of the visible rows.
    subjects: frozenset[str] = frozenset()
    #: Cached sign statistics, by the id of the model.
    signs: dict[str, SignStatistics] = field(default_factory=dict)
    #: Cached number of visible rows without a vector, by model and dimension.
    lacking: dict[tuple[str, int], int] = field(default_factory=dict)

    def document_frequency(self, term: int, here: int) -> int:
        """Return the number of visible memories with a term; ``here`` is the number of these rows with it."""
        return here if self.statistics is None else self.statistics.document_frequency.get(term, 0)


def visible_rows(
    columns: Columns, lengths: Floats, allowed: Filter, statistics: Statistics | None = None
) -> VisibleRows:
    """Compute the rows that a reader sees; `lengths` is the number of terms of each row."""
    mask = columns.mask(allowed)
    expires = columns["expires_at"]
    limits = expires[mask]
    if allowed.valid_at is not None:
        if allowed.valid_at == allowed.now:
            limits = np.concatenate((limits, columns["valid_from"][mask], columns["valid_until"][mask]))
        mask &= columns.holds(allowed.valid_at)
    past, future = limits[limits <= allowed.now], limits[limits > allowed.now]
    since = int(past.max()) if len(past) else int(np.iinfo(np.int64).min)
    until = int(future.min()) if len(future) else allowed.now + 1
    if allowed.min_importance:
        # Importance decays all the time, so the mask is valid for one instant only.
        since, until = allowed.now, allowed.now + 1
    mask &= expires > allowed.now
    count = int(np.count_nonzero(mask))
    if statistics is not None and count >= statistics.count:
        # The index contains all visible memories.
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
        in_session_rows = np.flatnonzero(mask & (session < sessions))
        totals = np.bincount(session[in_session_rows], weights=lengths[in_session_rows], minlength=sessions).astype(
            np.float32
        )
    return VisibleRows(
        mask=mask,
        unfiltered=count == len(mask),
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
        none = np.broadcast_to(np.int32(n), n)
        return none, none, np.broadcast_to(np.int32(0), n), 0
    before, after = np.full(n, n, dtype=np.int32), np.full(n, n, dtype=np.int32)
    # Texts of one session whose sources are trusted less than an agent form separate sessions, one per trust level.
    agent = int(Trust.AGENT)
    session_keys = codes[rows].astype(np.int64) * (agent + 1) + np.minimum(columns["trust"][rows], agent)
    if np.all(positions[rows[1:]] >= positions[rows[:-1]]):
        # Rows mostly arrive in order and session by session: a stable sort of nearly sorted codes is linear.
        sorting = np.argsort(session_keys, kind="stable")
    else:
        sorting = np.lexsort((positions[rows], session_keys))
    order, ordered = rows[sorting], session_keys[sorting]
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
    """Share of the query that each row covers, float32; 0 for hidden rows."""

    #: By the memory's own text, 0..1.
    own: Floats
    #: With window and session, 0..2.3.
    full: Floats
    #: Number of visible memories that contain each term, by its hash.
    document_frequency: Mapping[int, int]


def bm25_shares(terms: tuple[str, ...], postings: InvertedIndex, visible: VisibleRows) -> Bm25Shares | None:
    """Score the visible rows; None if no visible row contains any of the terms."""
    n = len(visible.mask)
    keys = {term_hash(term): is_gram(term) for term in terms}
    own = np.zeros(n, dtype=np.float32)
    full = np.zeros(n + 1, dtype=np.float32)
    in_session = np.zeros(visible.sessions + 1, dtype=np.float32)
    scratch = np.zeros(n + 1, dtype=np.float32)
    max_score = QUERY_SMOOTHING * idf(visible.count, 0)
    document_frequency: dict[int, int] = {}
    for key, gram in sorted(keys.items()):
        rows, counts = postings.postings(key)
        if not visible.unfiltered:
            seen = visible.mask[rows]
            rows, counts = rows[seen], counts[seen]
        document_frequency[key] = visible.document_frequency(key, len(rows))
        weight = idf(visible.count, document_frequency[key])
        if not document_frequency[key]:
            max_score += weight * (UNSEEN_GRAM_WEIGHT if gram else 1.0)
            continue
        max_score += weight
        gain = np.float32(weight)
        share = gain * saturated(counts, visible.norm[rows])
        own[rows] += share
        if not visible.sessions:
            full[rows] += LONE_MEMORY_WEIGHT * share
            continue
        in_session_rows = visible.session[rows] < visible.sessions
        full[rows] += np.where(in_session_rows, np.float32(1.0), LONE_MEMORY_WEIGHT) * share
        rows, counts = rows[in_session_rows], counts[in_session_rows]
        _window(rows, counts, gain, visible, full, scratch)
        totals = np.bincount(visible.session[rows], weights=counts, minlength=visible.sessions)
        present = np.flatnonzero(totals)
        in_session[present] += (
            SESSION_WEIGHT * gain * saturated(totals[present].astype(np.float32), visible.session_norm[present])
        )
    if not any(document_frequency.values()):
        return None
    if visible.sessions:
        full[:n] += in_session[visible.session]
        full[:n] = visible.context * full[:n] + (np.float32(1.0) - visible.context) * LONE_MEMORY_WEIGHT * own
        if not visible.unfiltered:
            full[:n] *= visible.mask
    scale = np.float32(1.0 / max_score)
    return Bm25Shares(own=own * scale, full=full[:n] * scale, document_frequency=document_frequency)


def _window(
    rows: Indices, counts: Floats, gain: np.float32, visible: VisibleRows, full: Floats, scratch: Floats
) -> None:
    """Add one term's share of the window to `full`. `scratch` (one cell more than rows) is zero before and after."""
    last = len(scratch) - 1
    after = visible.after[rows]
    scratch[rows] += counts
    scratch[after] += counts
    # A row may occur twice here; an indexed assignment adds its share once, as it should.
    touched = np.concatenate((rows, after[after < last]))
    full[touched] += gain * saturated(scratch[touched], visible.norm_before[touched])
    scratch[touched] = 0.0
    scratch[last] = 0.0
