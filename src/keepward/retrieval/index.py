"""The retrieval index of one tenant: columns, postings and unit vectors, ranked in process.

Invariants
(1) `search` equals the search of an index that was only ever given the entries that are allowed: filters
    come before statistics, candidates and limits, so hidden memories change neither score nor order.
(2) the answer depends on the set of live entries, not on the order or grouping in which they were applied.
(3) vectors of a model other than the query's are never compared; such entries are found by text.
(4) the terms and vectors of removed entries leave memory at the latest when a quarter of the rows is dead.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import compress, product, repeat
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from keepward.core.principals import Trust
from keepward.ports.store import RankingRow
from keepward.retrieval import ranking, reranker, vector_index
from keepward.retrieval.advice import is_advice_or_task, requests_action
from keepward.retrieval.answers import asks_name, time_terms
from keepward.retrieval.chunking import CURRENT_VERSIONS
from keepward.retrieval.columns import Columns, GrowableArray, Mask, Places, RowFilter, Rows
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
from keepward.retrieval.tokenizer import PREFERENCE_TERM, QUESTION_TERM, adds_qualifier, term_hash, terms

__all__ = ["Index", "IndexHit", "Query", "RowFilter"]

#: Returns texts by id.
Texts = Callable[[Sequence[str]], Mapping[str, str]]
Floats = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]

_SIGHTS: Final = 8
_ASKS, _PREFERENCE = map(term_hash, (QUESTION_TERM, PREFERENCE_TERM))
_DEAD_ROWS: Final = 1_024


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Query:
    """What is looked for."""

    text: str
    #: `analyze.terms(text)`; repetitions and order do not matter.
    terms: tuple[str, ...]
    #: Terms of the names of the person whom it is about; they are ranked by, and no reason to find anything.
    names: tuple[str, ...] = ()
    #: float32 (dim,), any length but zero; None for text only.
    vector: Floats | None = None
    vector_model: str | None = None
    #: Days that are named in it.
    days: tuple[Period, ...] = ()


#: Cosines below which a hit that shares no rare word with the query is weak, by the first part of the embedder's id:
#: for a memory on its own, and for a turn of a talk. Of any other embedder nothing is weak by its cosine.
WEAK_BELOW: Final = {"minilm-l6-v2": (0.33, 0.10), "hashed": (0.20, 0.0)}
#: A memory on its own is weak, too, below this share of the best cosine.
WEAK_SHARE: Final = 0.7


def centred_query_of(query: Query, signs: vector_index.SignStatistics) -> ranking.CentredQuery:
    """Return the query's vector without the mean of all visible vectors.

    A request for advice has lost its usual part already. Hashed vectors are mostly zeros, whose signs have no mean.
    """
    vector = np.asarray(query.vector, dtype=np.float32)
    if str(query.vector_model).startswith("hashed:") or is_advice_or_task(query.text):
        return ranking.CentredQuery(vector=vector)
    return ranking.centre_query(vector, signs)


class IndexHit(NamedTuple):
    """One answer. A tuple, since a context makes hundreds."""

    id: str
    version: int
    #: 0..1, see ``fusion.MAX_SCORE``; comparable between queries of one tenant.
    score: float
    #: Whether it shares no rare word with the query and its best cosine is below a threshold.
    weak: bool
    #: Rounded to 1e-6; the score is computed from the rounded parts.
    parts: dict[str, float]
    #: Signals that spoke for this entry: "text", "vector".
    used: tuple[str, ...]


@dataclass(slots=True, kw_only=True, eq=False)
class _SearchState:
    """One search on its way: candidates, the parts of their scores, and their sum."""

    query: Query
    sight: VisibleRows
    cover: Bm25Shares | None
    #: Vectors of the query's model.
    units: vector_index.VectorIndex | None
    toward: ranking.CentredQuery | None
    #: Added to preferences.
    preference: float = 0.0
    near: Candidates
    parts: dict[str, Doubles] = field(default_factory=dict)
    total: Doubles = field(default_factory=lambda: np.zeros(0))


class Index:
    """Live memories of one tenant, or a part of them; see the module's invariants. Not safe for threads."""

    __slots__ = (
        "_columns",
        "_dead",
        "_lengths",
        "_sights",
        "_stale",
        "_statistics",
        "_terms",
        "_units",
    )

    def __init__(self, statistics: Statistics | None = None) -> None:
        """Make an empty index, of a part where there are ``statistics`` of what one reader may see of the whole."""
        self._statistics = statistics
        self._columns = Columns()
        self._terms = InvertedIndex()
        self._lengths = GrowableArray(np.float32)
        self._units: dict[tuple[str, int], vector_index.VectorIndex] = {}
        #: Entries whose vectors were made by an earlier recipe.
        self._stale: set[str] = set()
        self._dead = 0
        self._sights: dict[RowFilter, VisibleRows] = {}

    def __len__(self) -> int:
        return len(self._columns) - self._dead

    @property
    def nbytes(self) -> int:
        """Bytes held in arrays."""
        return (
            self._columns.nbytes
            + self._terms.nbytes
            + self._lengths.nbytes
            + sum(store.nbytes for store in self._units.values())
        )

    # --- writing

    def apply(self, added: Iterable[RankingRow], removed: Iterable[str] = ()) -> None:
        """Remove ids (unknown ones are ignored), then add entries; an id added again replaces the old one."""
        fresh = list({entry.id: entry for entry in added}.values())
        gone = [*removed, *(entry.id for entry in fresh)]
        self._dead += self._columns.kill(gone)
        self._stale.difference_update(gone)
        self._stale.update(
            entry.id for entry in fresh if entry.units is not None and entry.recipe not in CURRENT_VERSIONS
        )
        self._sights.clear()
        if fresh:
            first = len(self._columns)
            if first + len(fresh) >= MAX_ROWS:
                raise OverflowError(f"an index holds at most {MAX_ROWS} rows")
            self._columns.extend(fresh)
            self._lengths.extend(self._terms.extend(first, (entry.terms for entry in fresh)))
            self._extend_units(first, fresh)
        if self._dead > max(_DEAD_ROWS, len(self._columns) // 4):
            self._compact()

    def _extend_units(self, first: int, entries: list[RankingRow]) -> None:
        packed: dict[str, tuple[list[int], list[bytes]]] = {}
        for row, entry in enumerate(entries, start=first):
            if entry.units is not None and entry.vector_model is not None:
                owners, blobs = packed.setdefault(entry.vector_model, ([], []))
                owners.append(row)
                blobs.append(entry.units)
        for model, (owners, blobs) in packed.items():
            for dim, places, codes, steps in vector_index.unpack_many(blobs):
                store = self._units.setdefault((model, dim), vector_index.VectorIndex(dim))
                store.extend(np.array(owners, dtype=np.int32)[places], codes, steps)

    def _compact(self) -> None:
        live = self._columns["live"]
        rows = np.flatnonzero(live)
        new_rows = np.full(len(live), -1, dtype=np.int32)
        new_rows[rows] = np.arange(len(rows), dtype=np.int32)
        self._columns.keep(rows, new_rows)
        self._lengths.put(self._lengths.view[rows])
        self._terms.renumber(new_rows)
        for store in self._units.values():
            store.renumber(new_rows)
        self._units = {name: store for name, store in self._units.items() if len(store)}
        self._dead = 0

    # --- reading

    def _visible_rows(self, allowed: RowFilter) -> VisibleRows:
        key = replace(allowed, now=0)
        sight = self._sights.get(key)
        if sight is None or not sight.since <= allowed.now < sight.until:
            sight = visible_rows(self._columns, self._lengths.view, allowed, self._statistics)
            speakers = enumerate(map(str.casefold, self._columns.names("speaker")))
            roles = {code: name for code, name in speakers if name in ROLES}
            sight = replace(sight, roles=roles, answers=self._answers_of(sight, roles))
            while len(self._sights) >= _SIGHTS:
                del self._sights[next(iter(self._sights))]
            self._sights[key] = sight
        return sight

    def _answers_of(self, sight: VisibleRows, roles: Mapping[int, str]) -> Rows:
        """Return for each row that another person answers the row of the answer, and the row count for all others."""
        last, speaker = len(self._columns), self._columns["speaker"]
        answers = np.full(last, last, dtype=np.int32)
        if sight.sessions:
            asking = self._terms.postings(_ASKS)[0]
            asking = asking[sight.mask[asking]]
            asking = asking[sight.after[asking] < last]
            following = sight.after[asking]
            others = (speaker[following] != speaker[asking]) & (speaker[following] >= 0)
            others &= ~np.isin(speaker[following], list(roles))
            answers[asking[others]] = following[others]
        return answers

    @property
    def stale(self) -> bool:
        """Whether vectors were made by an earlier recipe: they are compared until the new ones are there."""
        return bool(self._stale)

    def count_without_vector(self, query: Query, allowed: RowFilter) -> int:
        """Return how many allowed entries have no vector of the query's model; 0 for a query without a vector (3)."""
        if query.vector is None:
            return 0
        if self._statistics is not None:
            return self._statistics.lacking
        sight, space = self._visible_rows(allowed), (str(query.vector_model), len(query.vector))
        if space not in sight.lacking:
            lacking = sight.mask.copy()
            store = self._units_of(query)
            if store is not None:
                lacking[store.owners] = False
            sight.lacking[space] = int(np.count_nonzero(lacking))
        return sight.lacking[space]

    def search(
        self,
        query: Query,
        allowed: RowFilter,
        limit: int,
        *,
        weights: reranker.RerankerWeights | None = None,
        by_cosine: bool = False,
        texts: Texts | None = None,
    ) -> list[IndexHit]:
        """Rank the allowed entries, best first, at most `limit`.

        Without a vector, or where none can be compared, an entry must share a term with the query. `weights` reorder
        the best candidates; `by_cosine` orders by vectors alone; `texts` returns texts by id, for pairs of which
        the newer one may come first.
        """
        if limit < 1:
            return []
        sight = self._visible_rows(allowed)
        cover = bm25_shares((*query.terms, *query.names), self._terms, sight) if sight.count else None
        units = self._units_of(query)
        positions = self._columns["position"]
        near = toward = None
        if units is not None and query.vector is not None and (signs := self._signs(query, sight, units)).units:
            # Closeness in meaning alone is to the question as it is.
            toward = ranking.CentredQuery(vector=query.vector) if by_cosine else centred_query_of(query, signs)
            near = ranking.candidates_by_text_and_vector(units, toward, signs, sight, cover, positions, limit)
        if near is None and cover is not None:
            near = ranking.candidates_by_text(cover, positions, limit)
        if near is None or not len(near.rows):
            return []
        found = _SearchState(query=query, sight=sight, cover=cover, units=units, toward=toward, near=near)
        self._add_preferences(found)
        self._fuse(found)
        self._put_newer_first(found, texts)
        # Learned from is the fused score, whatever puts the answers in order.
        found.parts["fused"] = found.total
        if by_cosine and found.near.compared.any():
            found.total = found.near.cosine
        places = self._best(found, limit if weights is None else max(limit, reranker.MIN_CANDIDATES))
        if weights is not None:
            self._apply_reranker(found, weights, places, allowed.now)
            places = self._in_order(found, places)
        most = ranking.MAX_SCORE if found.near.compared.any() else ranking.MAX_TEXT_SCORE
        return self._hits(found, places[:limit], 1.0 if by_cosine else most)

    def _units_of(self, query: Query) -> vector_index.VectorIndex | None:
        if query.vector is None or query.vector_model is None:
            return None
        return self._units.get((query.vector_model, len(query.vector)))

    def _signs(self, query: Query, sight: VisibleRows, units: vector_index.VectorIndex) -> vector_index.SignStatistics:
        """Return the signs of all vectors that a reader may see of the query's model, in numbers."""
        if sight.statistics is not None and sight.statistics.signs is not None:
            return sight.statistics.signs
        model = str(query.vector_model)
        if model not in sight.signs:
            sight.signs[model] = units.signs(sight.mask)
        return sight.signs[model]

    def _add_preferences(self, found: _SearchState) -> None:
        """Take in preferences where something is requested: they need not be near the request."""
        units, toward = found.units, found.toward
        if units is None or toward is None or not requests_action(found.query.text):
            return
        rows = np.sort(self._terms.postings(_PREFERENCE)[0])
        rows = rows[found.sight.mask[rows]]
        if not (holders := found.sight.holders(_PREFERENCE, len(rows))):
            return
        found.preference = ranking.preference_weight(found.sight.count, holders)
        more = np.setdiff1d(rows, found.near.rows, assume_unique=True)
        if 0 < len(more) <= ranking.MIN_CANDIDATES:
            found.near = found.near.joined(ranking.with_cosines(units, toward, more, found.near.mean))
        found.near = ranking.average_two_views(units, toward, found.near, rows)

    def _preference_boost(self, found: _SearchState) -> Doubles:
        """Reward for preferences; none for those of less trusted sources."""
        rows = found.near.rows
        if not found.preference:
            return np.zeros(len(rows))
        least = np.where(self._columns["speaker"][rows] < 0, int(Trust.USER), int(Trust.IMPORT))
        trusted = self._terms.holding(rows, [_PREFERENCE])[0] & (self._columns["trust"][rows] >= least)
        return np.asarray(found.preference * trusted, dtype=np.float64)

    def _fuse(self, found: _SearchState) -> None:
        """Sum up what the text, the vectors, the speaker and the session say of each candidate."""
        near, sight, cover = found.near, found.sight, found.cover
        covered = np.zeros(len(near.rows)) if cover is None else rounded(cover.full[near.rows])
        if near.compared.any():
            covered = rounded(ranking.words_weight(covered, advice=is_advice_or_task(found.query.text)) * covered)
        feature = self._role_penalty(found.query, sight, near.rows) + self._preference_boost(found)
        weight = ranking.cosine_weight(near.mean)
        feature += rounded(self._answered(found, covered + weight * near.cosine + feature, weight * near.mean))
        score = covered + weight * near.cosine + feature
        best = rounded(ranking.session_best(score, sight.session[near.rows], sight.sessions))
        # What is off the topic fits a question for a day or a name as well as what answers it.
        near_best = np.clip(score / max(float(score.max(initial=0.0)), 1e-9), 0.0, 1.0)
        fitting = rounded(self._fits(found.query, near.rows) * near_best)
        found.total = np.maximum(rounded(score + ranking.SESSION_BEST_WEIGHT * best + fitting), 0.0)
        feature, session = feature + fitting, rounded(ranking.SESSION_BEST_WEIGHT * best)
        # The parts sum to the total, also where that would be less than 0.
        meaning = rounded(found.total - covered - feature - session)
        found.parts = {"cover": covered, "meaning": meaning, "feature": feature, "session": session}
        found.parts |= {"newer": np.zeros(len(found.total)), "cosine": near.cosine}

    def _answered(self, found: _SearchState, scores: Doubles, usual: float) -> Doubles:
        """Change for turns that ask another person something, and for those that answer.

        A question is as near to the same question asked later as its answer is, and tells nothing.
        """
        rows, answers = found.near.rows, found.sight.answers[found.near.rows]
        asking = np.flatnonzero(answers < len(self._columns))
        answering = np.minimum(np.searchsorted(rows, answers[asking]), len(rows) - 1)
        both = rows[answering] == answers[asking]
        passed = ranking.ANSWER_TRANSFER_SHARE * np.maximum(scores[asking[both]] - usual, 0.0)
        change = np.zeros(len(scores))
        change[asking[both]] -= passed
        change[answering[both]] += passed
        return change

    def _best(self, found: _SearchState, count: int) -> Places:
        """Return places of the highest totals, best first, ties to the later position."""
        positions = self._columns["position"][found.near.rows]
        return self._in_order(found, ranking.top_k(found.total, positions, count))

    def _in_order(self, found: _SearchState, places: Places) -> Places:
        # Positions are unique, so the order is total.
        return places[np.lexsort((-self._columns["position"][found.near.rows[places]], -found.total[places]))]

    def _put_newer_first(self, found: _SearchState, texts: Texts | None) -> None:
        """Of two very similar statements put the newer one first."""
        places = self._best(found, ranking.MAX_RECENCY_CANDIDATES)
        rows, query = found.near.rows[places], found.query
        kinds = self._columns.names("kind")
        events = kinds.index("event") if "event" in kinds else -1
        lasting = self._columns["kind"][rows] != events
        if query.vector is None or query.vector_model is None or np.count_nonzero(lasting) < 2:
            return
        first, known, store = self._first(query.vector_model, len(query.vector), rows)
        if store is None:
            return
        same = ranking.newer_similarity(
            found.total[places],
            self._columns["created_at"][rows],
            self._columns["trust"][rows],
            lasting & known,
            self._terms.holding(rows, [term_hash(term) for term in dict.fromkeys(query.terms)]),
            store.pairwise_cosines(first),
        )
        older, newer = np.nonzero(same)
        if texts is not None and len(older):
            names = [self._columns.ids[row] for row in rows.tolist()]
            said = texts(sorted({names[place] for place in (*older, *newer)}))
            for old, new in zip(older.tolist(), newer.tolist(), strict=True):
                if adds_qualifier(query.terms, said.get(names[old], ""), said.get(names[new], "")):
                    same[old, new] = 0.0
        found.parts["newer"][places] = rounded(ranking.recency_boosts(found.total[places], same))
        found.total = rounded(found.total + found.parts["newer"])

    def _weak(self, found: _SearchState, rows: Places, places: Places) -> Mask:
        """Return which hits share no rare word with the query and are far from it in meaning."""
        query, most = found.query, max(ranking.MAX_RARE_MEMORIES, int(ranking.MAX_RARE_SHARE * found.sight.count))
        holders = found.cover.holders if found.cover else {}
        rare = [key for term in dict.fromkeys(query.terms) if 0 < holders.get(key := term_hash(term), 0) <= most]
        weak = ~self._terms.holding(rows, rare).any(axis=0) if rare else np.ones(len(rows), dtype=np.bool_)
        near, compared = found.near, found.near.compared[places]
        if query.vector_model is not None and compared.any():
            limits = WEAK_BELOW.get(query.vector_model.split(":")[0])
            if limits is None:
                return np.asarray(weak & ~compared, dtype=np.bool_)
            alone = max(limits[0], WEAK_SHARE * float(near.cosine[near.compared].max()))
            below = np.where(found.sight.session[rows] < found.sight.sessions, limits[1], alone)
            weak &= ~compared | (near.cosine[places] < below)
        return np.asarray(weak, dtype=np.bool_)

    def _apply_reranker(self, found: _SearchState, weights: reranker.RerankerWeights, places: Places, now: int) -> None:
        """Add what the weights say of these candidates; 0 for the others."""
        rows, query = found.near.rows[places], found.query
        near = np.zeros(len(rows))
        if query.vector is not None and weights.model is not None and query.vector_model == weights.model:
            toward = weights.query_direction(query.vector)
            first, known, store = self._first(weights.model, len(toward), rows)
            if store is not None and known.any():
                cosines = store.cosines(toward.astype(np.float32), first[known]).astype(np.float64)
                near[known] = rounded(cosines * float(np.sqrt(np.dot(toward, toward))))
        features = reranker.features_of(
            [found.parts[name][places] for name in reranker.FEATURES[:4]],
            happened=self._columns["created_at"][rows],
            now=now,
            importance=self._columns.importance(rows, now),
            trust=self._columns["trust"][rows],
        )
        found.parts["learned"] = np.zeros(len(found.total))
        found.parts["learned"][places] = weights.score_deltas(near, features)
        found.total = rounded(found.total + found.parts["learned"])

    def _hits(self, found: _SearchState, places: Places, most: float) -> list[IndexHit]:
        rows, parts, cover = found.near.rows[places], found.parts, found.cover
        signals = {"text": np.zeros(len(rows), dtype=np.bool_) if cover is None else cover.own[rows] > 0}
        signals |= {"vector": found.near.compared[places]}
        numbers = zip(*(part[places].tolist() for part in parts.values()), strict=True)
        named = map(dict, map(zip, repeat(tuple(parts)), numbers))
        # Flags are few, and answers hundreds.
        flagged = {flags: tuple(compress(signals, flags)) for flags in product((False, True), repeat=len(signals))}
        return list(
            map(
                IndexHit,
                [self._columns.ids[row] for row in rows.tolist()],
                self._columns["version"][rows].tolist(),
                rounded(np.clip(found.total[places] / most, 0.0, 1.0)).tolist(),
                self._weak(found, rows, places).tolist(),
                named,
                map(flagged.__getitem__, zip(*(each.tolist() for each in signals.values()), strict=True)),
            )
        )

    def own_vectors(self, ids: Sequence[str], model: str, dim: int) -> tuple[Floats, Mask]:
        """Return each memory's own vector, float32 (n, dim), zeros where there is none, and which have one."""
        rows = self._columns.rows(ids)
        first, known, store = self._first(model, dim, rows)
        found = np.zeros((len(rows), dim), dtype=np.float32)
        if store is not None and known.any():
            found[known] = store.floats(first[known])
        return found, known

    def _first(self, model: str, dim: int, rows: Places) -> tuple[Places, Mask, vector_index.VectorIndex | None]:
        store = self._units.get((model, dim))
        if store is None or not len(store):
            return np.zeros(len(rows), dtype=np.intp), np.zeros(len(rows), dtype=np.bool_), None
        first, counts = store.spans(rows)
        return np.minimum(first, len(store) - 1), counts > 0, store

    def _fits(self, query: Query, rows: Places) -> Doubles:
        """Reward for what happened on the days that a query names, and for the kind of answer that it asks for."""
        reward: Doubles = np.zeros(len(rows))
        if query.days:
            reward = ranking.NAMED_DAY_BOOST * closeness(query.days, self._columns["created_at"][rows])
        if is_advice_or_task(query.text):
            return reward
        if asked := time_terms(query.text):
            timed = np.zeros(len(self._columns), dtype=np.bool_)
            for term in asked:
                timed[self._terms.postings(term)[0]] = True
            reward += ranking.TIME_ANSWER_BOOST * timed[rows]
        if asks_name(query.text):
            # Who speaks is called by name in any answer; speakers of other rows may be hidden.
            speakers, codes = self._columns.names("speaker"), np.unique(self._columns["speaker"][rows])
            known = {*query.terms, *(term for code in codes[codes >= 0].tolist() for term in terms(speakers[code]))}
            reward += ranking.NAME_ANSWER_BOOST * self._terms.contains_other_names(rows, map(term_hash, sorted(known)))
        return reward

    def _role_penalty(self, query: Query, sight: VisibleRows, rows: Places) -> Doubles:
        """Penalty for what the assistant said where the user is asked for, and the other way round."""
        others = other_roles(query.text) if sight.roles else frozenset()
        other = [code for code, name in sight.roles.items() if name in others]
        return np.asarray(
            -ranking.OTHER_ROLE_PENALTY * np.isin(self._columns["speaker"][rows], other), dtype=np.float64
        )
