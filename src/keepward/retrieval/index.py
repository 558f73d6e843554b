"""The retrieval index of one tenant: columns, postings and unit vectors, ranked in process.

Invariants
(1) `search` returns the same as an index of the visible entries only. Filters apply before statistics, candidates and
    limits, so hidden memories change neither scores nor order.
(2) The result depends on the set of live entries, not on the order in which they were added.
(3) Vectors of another model than the query's are never compared; such entries are found by text.
(4) Terms and vectors of removed entries leave memory at the latest when a quarter of the rows is dead.
"""

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import compress, product, repeat
from typing import Final, NamedTuple

import numpy as np
from msgspec.structs import replace

from keepward.core.principals import Trust
from keepward.core.query import Filter
from keepward.ports.index_parts import Part, StoredPart
from keepward.ports.store import Features, IndexedMemory
from keepward.retrieval import ranking, reranker, vector_index
from keepward.retrieval.advice import is_advice_or_task, requests_action
from keepward.retrieval.answers import asks_name, time_terms
from keepward.retrieval.columns import Columns, Doubles, Floats, GrowableArray, Indices, Mask, Rows
from keepward.retrieval.inverted_index import (
    MAX_ROWS,
    Bm25Shares,
    InvertedIndex,
    Statistics,
    VisibleRows,
    bm25_shares,
    visible_rows,
)
from keepward.retrieval.ranking import Candidates, rounded
from keepward.retrieval.roles import ROLES, other_roles
from keepward.retrieval.time_expressions import Period, closeness
from keepward.retrieval.tokenizer import PREFERENCE_TERM, QUESTION_TERM, adds_qualifier, analyse, term_hash, terms

#: Returns texts by id.
Texts = Callable[[Sequence[str]], Mapping[str, str]]

#: Changes with what ``Index.parts`` yields or means.
LAYOUT: Final = 2
_MAX_CACHED_FILTERS: Final = 8
_ASKS, _PREFERENCE = map(term_hash, (QUESTION_TERM, PREFERENCE_TERM))
_DEAD_ROWS: Final = 1_024
#: The present, in the key of a cached mask, which is valid until something begins or ends.
_PRESENT: Final = -1 << 63


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Query:
    """A search."""

    text: str
    #: `tokenizer.terms(text)`; repetitions and order do not matter.
    terms: tuple[str, ...]
    #: Terms of the names of the subject. They rank a memory, but a memory that has only these is not a hit.
    names: tuple[str, ...] = ()
    #: float32 (dim,), not zero; None for a search by text only.
    vector: Floats | None = None
    vector_model: str | None = None
    #: The vector of the query with a name in place of "I", and the subject of that name; None without first person.
    named: Floats | None = None
    person: str | None = None
    #: The vector that requests for advice have in common; None for any other query.
    common: Floats | None = None
    #: What the model does with unrelated texts; see ``ModelScale``.
    scale: ranking.ModelScale = ranking.USUAL_SCALE
    #: Days that the query names.
    days: tuple[Period, ...] = ()

    def with_name(self, weight: float) -> "Query":
        """Return the query with the average of both wordings, which finds facts in the first and third person."""
        if self.vector is None or self.named is None:
            return self
        vector = self.vector + np.float32(weight) * self.named
        vector /= max(float((vector @ vector) ** 0.5), 1e-9)
        return dataclasses.replace(self, vector=vector, named=None)


def centred_query_of(query: Query, signs: vector_index.SignStatistics) -> ranking.CentredQuery:
    """Return the query's vector minus a share of the mean of all visible vectors.

    Of a request for advice, what all requests have in common is subtracted instead. Nothing is subtracted from a hashed
    vector, because most of its components are zero, nor if a model puts unrelated texts close together.
    """
    vector = np.asarray(query.vector, dtype=np.float32)
    if str(query.vector_model).startswith("hashed:") or query.scale.baseline or query.common is not None:
        return query.scale.query(vector, query.common)
    return ranking.centre_query(vector, signs)


class IndexHit(NamedTuple):
    """One hit. A tuple, because a context makes hundreds."""

    id: str
    version: int
    #: 0..1, see ``ranking.MAX_SCORE``; comparable between queries of one tenant.
    score: float
    #: Whether it does not bear on the query; see ``ranking.BEARING_SHARE``.
    weak: bool
    #: The parts of the score, rounded to 1e-6; the score is computed from the rounded parts.
    parts: dict[str, float]
    #: Signals that matched: "text", "vector".
    used: tuple[str, ...]
    #: What else was said about the same, later statements first; only if it was asked for.
    related: "tuple[IndexHit, ...]" = ()


@dataclass(slots=True, kw_only=True, eq=False)
class _SearchState:
    """The state of one search: candidates, the parts of their scores, and the sum."""

    query: Query
    visible: VisibleRows
    cover: Bm25Shares | None
    #: Vectors of the query's model.
    units: vector_index.VectorIndex | None
    direction: ranking.CentredQuery | None
    #: Added to preferences.
    preference: float = 0.0
    candidates: Candidates
    parts: dict[str, Doubles] = field(default_factory=dict)
    #: What the reranker reads of them, where a memory without a session is its own.
    features: dict[str, Doubles] = field(default_factory=dict)
    total: Doubles = field(default_factory=lambda: np.zeros(0))
    #: The total of a memory without a word of the query and with the mean cosine.
    background: float = 0.0
    #: Indices of candidates whose text is the query itself, such as the same question asked before.
    echoes: Indices = field(default_factory=lambda: np.zeros(0, dtype=np.intp))


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()


class Index:
    """Live memories of one tenant, or a part of them; see the module's invariants. Not thread-safe."""

    __slots__ = (
        "_columns",
        "_dead",
        "_lengths",
        "_statistics",
        "_terms",
        "_units",
        "_visible_cache",
    )

    def __init__(self, statistics: Statistics | None = None) -> None:
        """Make an empty index. For a part of a tenant, ``statistics`` describe all that the reader may see."""
        self._statistics = statistics
        self._columns = Columns()
        self._terms = InvertedIndex()
        self._lengths = GrowableArray(np.float32)
        self._units: dict[tuple[str, int], vector_index.VectorIndex] = {}
        self._dead = 0
        self._visible_cache: dict[Filter, VisibleRows] = {}

    @classmethod
    def from_parts(cls, parts: Mapping[str, StoredPart], spaces: Sequence[tuple[str, int]]) -> "Index":
        """Return the index whose parts and vector spaces were stored; see `parts`."""
        index = cls()
        index._columns, index._terms = Columns(parts), InvertedIndex(parts)
        index._lengths = GrowableArray(np.float32, stored=parts["lengths"])
        for number, (model, dim) in enumerate(spaces):
            index._units[model, dim] = vector_index.VectorIndex(dim, parts, f"units {number} ")
        return index

    @property
    def spaces(self) -> list[tuple[str, int]]:
        """The vector spaces, by model and dimension, in the order of `parts`."""
        return list(self._units)

    def parts(self) -> Iterator[Part]:
        """Yield the arrays of the live entries, in parts, so that they need little memory of their own."""
        rows, new_rows = self._renumbering()
        yield from self._columns.parts(rows, new_rows)
        yield Part(name="lengths", chunks=self._lengths.chunks(rows), grows=True)
        yield from self._terms.parts(new_rows)
        for number, store in enumerate(self._units.values()):
            yield from store.parts(f"units {number} ", new_rows)

    def _renumbering(self) -> tuple[Indices, Rows]:
        """Return the live rows, and for each row its number among them, or -1."""
        live = self._columns["live"]
        rows = np.flatnonzero(live)
        new_rows = np.full(len(live), -1, dtype=np.int32)
        new_rows[rows] = np.arange(len(rows), dtype=np.int32)
        return rows, new_rows

    def __len__(self) -> int:
        return len(self._columns) - self._dead

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return (
            self._columns.nbytes
            + self._terms.nbytes
            + self._lengths.nbytes
            + sum(store.nbytes for store in self._units.values())
        )

    # --- writing

    def apply(self, added: Iterable[IndexedMemory], removed: Iterable[str] = ()) -> None:
        """Remove ids (unknown ones are ignored), then add memories. A new one replaces an old one with its id."""
        by_id = {memory.fields.id: memory for memory in added}
        fresh = list(by_id.values())
        removed_ids = [*removed, *by_id]
        self._dead += self._columns.mark_deleted(removed_ids)
        self._visible_cache.clear()
        if fresh:
            first = len(self._columns)
            if first + len(fresh) >= MAX_ROWS:
                raise OverflowError(f"an index has at most {MAX_ROWS} rows")
            self._columns.extend(fresh)
            self._lengths.extend(self._terms.extend(first, (memory.features.terms for memory in fresh)))
            self._extend_units(first, [memory.features for memory in fresh])
        if self._dead > max(_DEAD_ROWS, len(self._columns) // 4):
            self._compact()

    def _extend_units(self, first: int, added: list[Features]) -> None:
        packed: dict[str, tuple[list[int], list[bytes]]] = {}
        for row, features in enumerate(added, start=first):
            if features.has_vectors:
                owners, blobs = packed.setdefault(features.model or "", ([], []))
                owners.append(row)
                blobs.append(features.vectors)
        for model, (owners, blobs) in packed.items():
            for dim, blob_numbers, codes, steps in vector_index.unpack_many(blobs):
                store = self._units.setdefault((model, dim), vector_index.VectorIndex(dim))
                store.extend(np.array(owners, dtype=np.int32)[blob_numbers], codes, steps)

    def _compact(self) -> None:
        rows, new_rows = self._renumbering()
        self._columns.keep(rows, new_rows)
        self._lengths.put(self._lengths.view[rows])
        self._terms.renumber(new_rows)
        for store in self._units.values():
            store.renumber(new_rows)
        self._units = {name: store for name, store in self._units.items() if len(store)}
        self._dead = 0

    # --- reading

    def _visible_rows(self, allowed: Filter) -> VisibleRows:
        key = replace(allowed, now=0, valid_at=_PRESENT if allowed.valid_at == allowed.now else allowed.valid_at)
        visible = self._visible_cache.get(key)
        if visible is None or not visible.since <= allowed.now < visible.until:
            visible = visible_rows(self._columns, self._lengths.view, allowed, self._statistics)
            speakers = enumerate(map(str.casefold, self._columns.names("speaker")))
            roles = {code: name for code, name in speakers if name in ROLES}
            visible = dataclasses.replace(
                visible, roles=roles, answers=self._answers_of(visible, roles), subjects=self._subjects(visible)
            )
            while len(self._visible_cache) >= _MAX_CACHED_FILTERS:
                del self._visible_cache[next(iter(self._visible_cache))]
            self._visible_cache[key] = visible
        return visible

    def _subjects(self, visible: VisibleRows) -> frozenset[str]:
        """Return the subjects of the visible rows."""
        codes = self._columns["subject"][visible.mask]
        names = self._columns.names("subject")
        return frozenset(names[code] for code in np.flatnonzero(np.bincount(codes[codes >= 0])).tolist())

    def _answers_of(self, visible: VisibleRows, roles: Mapping[int, str]) -> Rows:
        """Return for each row the row of another person's answer, or the row count if there is none."""
        last, speaker = len(self._columns), self._columns["speaker"]
        answers = np.full(last, last, dtype=np.int32)
        if visible.sessions:
            asking = self._terms.postings(_ASKS)[0]
            asking = asking[visible.mask[asking]]
            asking = asking[visible.after[asking] < last]
            following = visible.after[asking]
            others = (speaker[following] != speaker[asking]) & (speaker[following] >= 0)
            others &= ~np.isin(speaker[following], list(roles))
            answers[asking[others]] = following[others]
        return answers

    @property
    def stale(self) -> bool:
        """Whether vectors have an earlier embedding version; they are compared until they are replaced."""
        return bool(np.any(self._columns["stale"] & self._columns["live"]))

    def ids_to_embed(self, query: Query) -> list[str]:
        """Return the ids of the entries without a vector of the query's model and the present embedding version."""
        missing = self._columns["live"].copy()
        store = self._units_of(query)
        if store is not None:
            missing[store.owners] = False
        missing |= self._columns["live"] & self._columns["stale"]
        return [self._columns.ids[row] for row in np.flatnonzero(missing).tolist()]

    def ids_not_holding(self, allowed: Filter) -> frozenset[str]:
        """Return the ids of the entries that the filter lets through, but that do not hold at its ``valid_at``."""
        if allowed.valid_at is None or self._columns.holds(allowed.valid_at).all():
            return frozenset()
        mask = self._visible_rows(replace(allowed, valid_at=None)).mask & ~self._columns.holds(allowed.valid_at)
        return frozenset(self._columns.ids[row] for row in np.flatnonzero(mask).tolist())

    def count_visible(self, allowed: Filter) -> int:
        """Return how many entries are visible."""
        return self._visible_rows(allowed).count

    def count_without_vector(self, query: Query, allowed: Filter) -> int:
        """Return how many visible entries have no vector of the query's model (3); 0 for a query without a vector."""
        if query.vector is None:
            return 0
        if self._statistics is not None:
            return self._statistics.lacking
        visible, space = self._visible_rows(allowed), (str(query.vector_model), len(query.vector))
        if space not in visible.lacking:
            lacking = visible.mask.copy()
            store = self._units_of(query)
            if store is not None:
                lacking[store.owners] = False
            visible.lacking[space] = int(np.count_nonzero(lacking))
        return visible.lacking[space]

    def search(
        self,
        query: Query,
        allowed: Filter,
        limit: int,
        *,
        weights: reranker.RerankerWeights | None = None,
        by_cosine: bool = False,
        texts: Texts | None = None,
        related: bool = False,
    ) -> list[IndexHit]:
        """Return at most `limit` visible entries, best first.

        Without comparable vectors, an entry must share a term with the query. `weights` reorder the best candidates.
        `by_cosine` ranks by vectors only. `texts` returns texts by id, to compare statements of different age.
        `related` adds to the best hits what else was said about the same.
        """
        if limit < 1:
            return []
        visible = self._visible_rows(allowed)
        if query.named is not None:
            # A name says little where all memories are about one person.
            others = visible.subjects - {query.person}
            query = query.with_name(1.0 if others else ranking.LONE_NAME_WEIGHT)
        cover = bm25_shares((*query.terms, *query.names), self._terms, visible) if visible.count else None
        units = self._units_of(query)
        positions = self._columns["position"]
        candidates = direction = None
        if units is not None and query.vector is not None and (signs := self._signs(query, visible, units)).units:
            # The order by cosine uses the original vector of the query.
            direction = ranking.CentredQuery(vector=query.vector) if by_cosine else centred_query_of(query, signs)
            candidates = ranking.candidates_by_text_and_vector(
                units, direction, signs, visible, cover, positions, limit
            )
        if candidates is None and cover is not None:
            candidates = ranking.candidates_by_text(cover, positions, limit)
        if candidates is None or not len(candidates.rows):
            return []
        state = _SearchState(
            query=query, visible=visible, cover=cover, units=units, direction=direction, candidates=candidates
        )
        self._add_preferences(state)
        self._fuse(state)
        self._put_newer_first(state, texts)
        # The reranker learns from the fused score, whatever the order of the hits.
        state.parts["fused"] = state.total
        if by_cosine and state.candidates.compared.any():
            state.total = state.candidates.cosine
        best = self._best(state, limit if weights is None else max(limit, reranker.MIN_CANDIDATES))
        if weights is not None:
            self._apply_reranker(state, weights, best, allowed.now)
            best = self._in_order(state, best)
        self._find_echoes(state, best[: ranking.MAX_RECENCY_CANDIDATES], texts)
        max_score = ranking.MAX_SCORE if state.candidates.compared.any() else ranking.MAX_TEXT_SCORE
        best = best[:limit]
        hits = self._hits(state, best, 1.0 if by_cosine else max_score)
        return self._with_related(state, best, hits, texts) if related and texts is not None else hits

    def _units_of(self, query: Query) -> vector_index.VectorIndex | None:
        if query.vector is None or query.vector_model is None:
            return None
        return self._units.get((query.vector_model, len(query.vector)))

    def _signs(
        self, query: Query, visible: VisibleRows, units: vector_index.VectorIndex
    ) -> vector_index.SignStatistics:
        """Return the sign statistics of all visible vectors of the query's model."""
        if visible.statistics is not None and visible.statistics.signs is not None:
            return visible.statistics.signs
        model = str(query.vector_model)
        if model not in visible.signs:
            visible.signs[model] = units.signs(visible.mask)
        return visible.signs[model]

    def _add_preferences(self, state: _SearchState) -> None:
        """Add preferences to the candidates of a request, because their vectors may be far from it."""
        units, direction = state.units, state.direction
        if units is None or direction is None or not requests_action(state.query.text):
            return
        rows = np.sort(self._terms.postings(_PREFERENCE)[0])
        rows = rows[state.visible.mask[rows]]
        if not (preferences := state.visible.document_frequency(_PREFERENCE, len(rows))):
            return
        state.preference = ranking.preference_weight(state.visible.count, preferences)
        candidates = state.candidates
        missing = np.setdiff1d(rows, candidates.rows, assume_unique=True)
        if 0 < len(missing) <= ranking.MIN_CANDIDATES:
            candidates = candidates.merge(ranking.with_cosines(units, direction, missing, candidates.mean))
        state.candidates = ranking.average_two_views(units, direction, candidates, rows)

    def _preference_boost(self, state: _SearchState) -> Doubles:
        """Boost of preferences; 0 for less trusted sources."""
        rows = state.candidates.rows
        if not state.preference:
            return np.zeros(len(rows))
        min_trust = np.where(self._columns["speaker"][rows] < 0, int(Trust.USER), int(Trust.IMPORT))
        trusted = self._terms.contains_terms(rows, [_PREFERENCE])[0] & (self._columns["trust"][rows] >= min_trust)
        return np.asarray(state.preference * trusted, dtype=np.float64)

    def _fuse(self, state: _SearchState) -> None:
        """Compute the parts of each candidate's score and their sum."""
        candidates, visible, cover = state.candidates, state.visible, state.cover
        covered = np.zeros(len(candidates.rows)) if cover is None else rounded(cover.full[candidates.rows])
        if candidates.compared.any():
            covered = rounded(ranking.words_weight(covered, advice=is_advice_or_task(state.query.text)) * covered)
        feature = self._role_penalty(state.query, visible, candidates.rows) + self._preference_boost(state)
        weight = ranking.cosine_weight(candidates.mean)
        feature += rounded(
            self._answer_transfer(state, covered + weight * candidates.cosine + feature, weight * candidates.mean)
        )
        score = covered + weight * candidates.cosine + feature
        best = rounded(ranking.session_best(score, visible.session[candidates.rows], visible.sessions))
        # Off-topic memories also contain days and names, so the boost shrinks with the score.
        share_of_best = np.clip(score / max(float(score.max(initial=0.0)), 1e-9), 0.0, 1.0)
        boost = rounded(self._answer_type_boost(state.query, candidates.rows) * share_of_best)
        state.total = np.maximum(rounded(score + ranking.SESSION_BEST_WEIGHT * best + boost), 0.0)
        state.background = (1.0 + ranking.SESSION_BEST_WEIGHT) * weight * candidates.mean
        state.features = {"cover": covered, "cosine": candidates.cosine, "feature": feature + boost}
        state.features |= {"session": rounded(ranking.SESSION_BEST_WEIGHT * best)}
        # What a memory adds to itself is no part of its session. The parts sum to the total, also if it was raised.
        session = rounded(ranking.SESSION_BEST_WEIGHT * (best - score))
        covered = rounded((1.0 + ranking.SESSION_BEST_WEIGHT) * covered)
        feature = rounded((1.0 + ranking.SESSION_BEST_WEIGHT) * feature) + boost
        meaning = rounded(state.total - covered - feature - session)
        state.parts = {"cover": covered, "meaning": meaning, "feature": feature, "session": session}
        state.parts |= {"newer": np.zeros(len(state.total)), "cosine": candidates.cosine}

    def _answer_transfer(self, state: _SearchState, scores: Doubles, mean_score: float) -> Doubles:
        """Return what moves from the score of each stored question to the score of its answer.

        A stored question is similar to the query but contains no answer.
        """
        rows, answers = state.candidates.rows, state.visible.answers[state.candidates.rows]
        asking = np.flatnonzero(answers < len(self._columns))
        answering = np.minimum(np.searchsorted(rows, answers[asking]), len(rows) - 1)
        both = rows[answering] == answers[asking]
        transfer = ranking.ANSWER_TRANSFER_SHARE * np.maximum(scores[asking[both]] - mean_score, 0.0)
        change = np.zeros(len(scores))
        change[asking[both]] -= transfer
        change[answering[both]] += transfer
        return change

    def _best(self, state: _SearchState, count: int) -> Indices:
        """Return indices of the candidates with the highest totals, best first; the newer first if totals are equal."""
        positions = self._columns["position"][state.candidates.rows]
        return self._in_order(state, ranking.top_k(state.total, positions, count))

    def _in_order(self, state: _SearchState, chosen: Indices) -> Indices:
        # Positions are unique, so the order is total.
        return chosen[np.lexsort((-self._columns["position"][state.candidates.rows[chosen]], -state.total[chosen]))]

    def _put_newer_first(self, state: _SearchState, texts: Texts | None) -> None:
        """Rank the newer of two very similar statements first."""
        best = self._best(state, ranking.MAX_RECENCY_CANDIDATES)
        rows, query = state.candidates.rows[best], state.query
        kinds = self._columns.names("kind")
        events = kinds.index("event") if "event" in kinds else -1
        lasting = self._columns["kind"][rows] != events
        if query.vector is None or query.vector_model is None or np.count_nonzero(lasting) < 2:
            return
        first, known, store = self._first(query.vector_model, len(query.vector), rows)
        if store is None:
            return
        similarity = ranking.newer_similarity(
            state.total[best],
            self._columns["created_at"][rows],
            self._columns["trust"][rows],
            lasting & known,
            self._terms.contains_terms(rows, [term_hash(term) for term in dict.fromkeys(query.terms)]),
            store.pairwise_cosines(first),
        )
        older, newer = np.nonzero(similarity)
        if texts is not None and len(older):
            ids = [self._columns.ids[row] for row in rows.tolist()]
            text_by_id = texts(sorted({ids[index] for index in (*older, *newer)}))
            for old, new in zip(older.tolist(), newer.tolist(), strict=True):
                if adds_qualifier(query.terms, text_by_id.get(ids[old], ""), text_by_id.get(ids[new], "")):
                    similarity[old, new] = 0.0
        state.parts["newer"][best] = rounded(ranking.recency_boosts(state.total[best], similarity))
        state.total = rounded(state.total + state.parts["newer"])

    def _find_echoes(self, state: _SearchState, best: Indices, texts: Texts | None) -> None:
        """Find the best candidates whose text is the query itself: they say nothing about what bears on it."""
        if texts is None or not state.query.terms or not len(best):
            return
        rows = state.candidates.rows[best]
        suspects = best[self._terms.contains_terms(rows, map(term_hash, state.query.terms)).all(axis=0)]
        if not len(suspects):
            return
        ids = [self._columns.ids[row] for row in state.candidates.rows[suspects].tolist()]
        text_by_id, query = texts(ids), _plain(state.query.text)
        echoes = [_plain(text_by_id.get(name, "")) == query for name in ids]
        state.echoes = suspects[np.array(echoes, dtype=np.bool_)]

    def _bearing(self, state: _SearchState, chosen: Indices) -> Mask:
        """Return which candidates bear on the query, judged by the best one and by the model's unrelated texts."""
        excess = state.total[chosen] - state.background
        best = max(float(np.delete(state.total, state.echoes).max(initial=0.0)) - state.background, 1e-9)
        near = state.candidates.cosine[chosen] >= ranking.BEARING_NOISE * state.query.scale.noise
        shares = np.zeros(len(chosen), dtype=np.bool_)
        if state.cover is not None:
            shares = state.cover.own[state.candidates.rows[chosen]] > 0
        bearing = (excess >= ranking.BEARING_SHARE * best) & (shares | (state.candidates.compared[chosen] & near))
        return np.asarray(bearing, dtype=np.bool_)

    def _with_related(self, state: _SearchState, best: Indices, hits: list[IndexHit], texts: Texts) -> list[IndexHit]:
        """Add to the best hits what else was said about the same, later statements first."""
        leading = [n for n, hit in enumerate(hits[: ranking.MAX_WITH_RELATED]) if not hit.weak]
        if not leading:
            return hits
        text_by_id = texts([hits[n].id for n in leading])
        for n in leading:
            row = int(state.candidates.rows[best[n]])
            nearness = self._nearness(state, row)
            keys = [term_hash(term) for term in sorted(set(analyse(text_by_id.get(hits[n].id, "")).kept))]
            for key in compress(keys, self._terms.are_names(keys, state.visible.mask)):
                holders = self._terms.postings(key)[0]
                holders = holders[state.visible.mask[holders]]
                if 1 < state.visible.document_frequency(key, len(holders)) <= ranking.MAX_NAME_MEMORIES:
                    for holder in holders.tolist():
                        nearness[holder] = nearness.get(holder, 0.0) + 1.0
            hits[n] = hits[n]._replace(related=self._nearest(state, row, nearness))
        return hits

    def _nearness(self, state: _SearchState, row: int) -> dict[int, float]:
        """Return the candidates whose meaning is close to that of a row, with their cosines."""
        first, known, store = self._first(str(state.query.vector_model), self._dim(state.query), state.candidates.rows)
        own = int(np.searchsorted(state.candidates.rows, row))
        if store is None or not known[own]:
            return {}
        cosines = store.cosines(store.floats(first[own : own + 1])[0], first).astype(np.float64)
        cosines = np.where(known, rounded(state.query.scale.rescale(cosines)), 0.0)
        near = np.flatnonzero(cosines >= ranking.RELATED_COSINE)
        return dict(zip(state.candidates.rows[near].tolist(), cosines[near].tolist(), strict=True))

    def _nearest(self, state: _SearchState, row: int, nearness: Mapping[int, float]) -> tuple[IndexHit, ...]:
        """Return the nearest statements of at least the same trust, later ones first."""
        when, trust, position = (self._columns[name] for name in ("created_at", "trust", "position"))
        found = [
            (bool(when[other] <= when[row]), -near, -int(position[other]), other)
            for other, near in nearness.items()
            if other != row and trust[other] >= trust[row]
        ]
        return tuple(
            IndexHit(self._columns.ids[other], int(self._columns["version"][other]), 0.0, True, {}, ())
            for *_, other in sorted(found)[: ranking.MAX_RELATED]
        )

    @staticmethod
    def _dim(query: Query) -> int:
        return 0 if query.vector is None else len(query.vector)

    def _apply_reranker(
        self, state: _SearchState, weights: reranker.RerankerWeights, chosen: Indices, now: int
    ) -> None:
        """Add the learned change to the scores of these candidates; 0 for the others."""
        rows, query = state.candidates.rows[chosen], state.query
        gains = np.zeros(len(rows))
        if query.vector is not None and weights.model is not None and query.vector_model == weights.model:
            direction = weights.query_direction(query.vector)
            first, known, store = self._first(weights.model, len(direction), rows)
            if store is not None and known.any():
                cosines = store.cosines(direction.astype(np.float32), first[known]).astype(np.float64)
                gains[known] = rounded(cosines * float(np.sqrt(np.dot(direction, direction))))
        features = reranker.features_of(
            [state.features[name][chosen] for name in reranker.FEATURES[:4]],
            happened=self._columns["created_at"][rows],
            now=now,
            importance=self._columns.importance(rows, now),
            trust=self._columns["trust"][rows],
        )
        state.parts["learned"] = np.zeros(len(state.total))
        state.parts["learned"][chosen] = weights.score_deltas(gains, features)
        state.total = rounded(state.total + state.parts["learned"])

    def _hits(self, state: _SearchState, chosen: Indices, max_score: float) -> list[IndexHit]:
        rows, parts, cover = state.candidates.rows[chosen], state.parts, state.cover
        signals = {"text": np.zeros(len(rows), dtype=np.bool_) if cover is None else cover.own[rows] > 0}
        signals |= {"vector": state.candidates.compared[chosen]}
        numbers = zip(*(part[chosen].tolist() for part in parts.values()), strict=True)
        named = map(dict, map(zip, repeat(tuple(parts)), numbers))
        # Hundreds of hits share four tuples, one for each combination of flags.
        flagged = {flags: tuple(compress(signals, flags)) for flags in product((False, True), repeat=len(signals))}
        return list(
            map(
                IndexHit,
                [self._columns.ids[row] for row in rows.tolist()],
                self._columns["version"][rows].tolist(),
                rounded(np.clip(state.total[chosen] / max_score, 0.0, 1.0)).tolist(),
                (~self._bearing(state, chosen)).tolist(),
                named,
                map(flagged.__getitem__, zip(*(flags.tolist() for flags in signals.values()), strict=True)),
            )
        )

    def own_vectors(self, ids: Sequence[str], model: str, dim: int) -> tuple[Floats, Mask]:
        """Return each memory's first vector, float32 (n, dim), and which memories have one; zeros for the others."""
        rows = self._columns.rows(ids)
        first, known, store = self._first(model, dim, rows)
        vectors = np.zeros((len(rows), dim), dtype=np.float32)
        if store is not None and known.any():
            vectors[known] = store.floats(first[known])
        return vectors, known

    def _first(self, model: str, dim: int, rows: Indices) -> tuple[Indices, Mask, vector_index.VectorIndex | None]:
        store = self._units.get((model, dim))
        if store is None or not len(store):
            return np.zeros(len(rows), dtype=np.intp), np.zeros(len(rows), dtype=np.bool_), None
        first, counts = store.spans(rows)
        return np.minimum(first, len(store) - 1), counts > 0, store

    def _answer_type_boost(self, query: Query, rows: Indices) -> Doubles:
        """Boost of events on the days that a query names, and of texts with the kind of answer that it asks for."""
        boost: Doubles = np.zeros(len(rows))
        if query.days:
            boost = ranking.NAMED_DAY_BOOST * closeness(query.days, self._columns["created_at"][rows])
        if is_advice_or_task(query.text):
            return boost
        if hashes := time_terms(query.text):
            has_time = np.zeros(len(self._columns), dtype=np.bool_)
            for key in hashes:
                has_time[self._terms.postings(key)[0]] = True
            boost += ranking.TIME_ANSWER_BOOST * has_time[rows]
        if asks_name(query.text):
            # Names of the candidates' speakers occur in any message; speakers of other rows may be hidden.
            speakers, codes = self._columns.names("speaker"), np.unique(self._columns["speaker"][rows])
            known = {*query.terms, *(term for code in codes[codes >= 0].tolist() for term in terms(speakers[code]))}
            boost += ranking.NAME_ANSWER_BOOST * self._terms.contains_other_names(rows, map(term_hash, sorted(known)))
        return boost

    def _role_penalty(self, query: Query, visible: VisibleRows, rows: Indices) -> Doubles:
        """Penalty of an assistant's message if the query asks for the user's words, and the other way round."""
        others = other_roles(query.text) if visible.roles else frozenset()
        other = [code for code, name in visible.roles.items() if name in others]
        return np.asarray(
            -ranking.OTHER_ROLE_PENALTY * np.isin(self._columns["speaker"][rows], other), dtype=np.float64
        )
