"""Candidates from the database: the part of a large tenant's index that a query needs, with statistics of the whole.

Invariants
(1) What ranks is always an ``Index``: the tenant's whole, or a part that was gathered for one query. A part ranks as
    the whole would, as far as it holds what the whole would have ranked first.
(2) Whether a memory may be shown is decided by the profiles of the part, which are checked; the tables of candidates
    only say where to look. Statistics are summed over the classes that the reader may see.
(3) One snapshot serves a whole search.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from keepward.model.query import Filter
from keepward.retrieval import fusion, vectors
from keepward.retrieval.advice import requests_action
from keepward.retrieval.analyze import PREFERENCE, term_hash
from keepward.retrieval.index import Allowed, Index, Query, direction_of
from keepward.retrieval.postings import Statistics, idf, length_norm, saturated
from keepward.store.candidates import COUNT_BITS, FULL, LENGTH_BITS, LENGTH_STEP, SCANNED, SHIFT, Visible, space_of

if TYPE_CHECKING:
    from keepward.ports.store import Profile
    from keepward.store.store import Store

#: Memories looked at for the signs of their vectors, and taken by their vectors and by their words, at least.
SIGNS, VECTORS, WORDS = 200, 100, 120
#: Postings read for the words of a query; what is left out is common and tells little.
POSTINGS = 20_000
#: So many memories are all taken in, where a search is narrowed to them.
FEW = 1_000
#: The same, where the memories are known by id.
SOME = 20_000
#: Best of a first ranking around whose turns more is taken in, and how many turns before and after.
LEADING, REACH = 24, 6


def gather(store: Store, tenant: str, query: Query, allowed: Allowed, filters: Filter, limit: int) -> Index:
    """Return the part of a tenant's index that ranks the best ``limit`` of a query."""
    with store.together(tenant):
        return _Gathering(store, tenant, query, allowed, filters).index(limit)


class _Gathering:
    """One search on its way: the part so far, and what it is a part of."""

    def __init__(self, store: Store, tenant: str, query: Query, allowed: Allowed, filters: Filter) -> None:
        self._store, self._tenant, self._query, self._allowed = store, tenant, query, allowed
        self._held: dict[str, Profile] = {}
        # What narrows a search beyond what a reader may see.
        narrow = ("tiers", "kinds", "content_types", "tags", "subject", "category", "session", "min_importance")
        self._filters = (
            replace(filters, include_sensitive=allowed.include_sensitive)
            if any(getattr(filters, name) for name in narrow)
            else None
        )
        self._space = 0
        if query.vector is not None and query.vector_model is not None:
            self._space = space_of(tenant, query.vector_model, len(query.vector))
        self._seen: Visible = store.visible(
            tenant,
            self._space,
            scopes=allowed.scopes or (),
            trust=allowed.min_trust or 0,
            include_sensitive=allowed.include_sensitive,
        )

    def index(self, limit: int) -> Index:
        """Return the part of the tenant's index that ranks the best ``limit``."""
        if not self._allowed.scopes or not self._seen.memories:
            return Index()
        if self._allowed.ids is not None and len(self._allowed.ids) <= SOME:
            some = Index()
            some.apply(self._store.profiles_at(self._tenant, ids=sorted(self._allowed.ids)))
            return some
        if self._filters is not None and (self._filters.session is not None or self._is_scanned()):
            found = self._store.narrowed(self._tenant, self._filters, FEW + 1)
            if len(found) <= FEW:
                whole = Index()
                whole.apply(self._store.profiles_at(self._tenant, found))
                return whole
        terms = {term_hash(term) for term in self._query.terms}
        if self._space and requests_action(self._query.text):
            terms.add(term_hash(PREFERENCE))
        statistics = self._statistics(terms)
        part = Index(statistics)
        words = self._by_words(statistics, max(WORDS, 2 * limit))
        self._take(part, words | self._by_vectors(statistics, limit))
        leading = [self._held[each.id] for each in part.search(self._query, self._allowed, LEADING)]
        turns = [(each.session, each.position) for each in leading if each.session is not None]
        more = self._store.near_turns(self._tenant, turns, REACH) if turns else set()
        self._take(part, more)
        return part

    def _is_scanned(self) -> bool:
        """Whether all memories of the tenant may be looked through."""
        return sum(self._store.tally(self._tenant).values()) <= SCANNED

    def _take(self, part: Index, arrivals: set[int]) -> None:
        missing = arrivals - {each.position for each in self._held.values()}
        found = self._store.profiles_at(self._tenant, sorted(missing)) if missing else []
        found.sort(key=lambda each: each.position)
        self._held |= {each.id: each for each in found}
        part.apply(found)

    def _statistics(self, terms: set[int]) -> Statistics:
        seen = self._seen
        signs = vectors.Signs(np.array(seen.ones, dtype=np.int64), seen.units) if self._space and seen.units else None
        return Statistics(
            count=seen.memories,
            lacking=seen.memories - seen.holders if self._space else 0,
            # Of a session's turns all but the first have one before.
            lengths=(seen.length / seen.memories, (seen.length + seen.spoken) / seen.memories),
            holders=self._store.holders(self._tenant, seen.classes, terms) if terms else {},
            signs=signs,
        )

    def _by_words(self, statistics: Statistics, most: int) -> set[int]:
        """Return the memories that hold most of the query's rarer words."""
        chosen: list[int] = []
        read = 0
        for term, holders in statistics.holders.items():
            if chosen and read + holders > POSTINGS:
                break
            chosen.append(term)
            read += holders
        if not chosen:
            return set()
        # A word that is too common stands alone, and what arrived last holds it.
        most_blocks = max(read if read <= POSTINGS else POSTINGS * 8 // FULL, 1)
        blocks = self._store.postings(self._tenant, self._seen.classes, chosen, most_blocks)
        refs = np.frombuffer(b"".join(block for _, block in blocks), dtype="<i8")
        weights = [idf(statistics.count, statistics.holders[term]) for term, _ in blocks]
        lengths = (refs >> COUNT_BITS & ((1 << LENGTH_BITS) - 1)) * LENGTH_STEP
        norms = length_norm(lengths.astype(np.float32), statistics.lengths[0])
        counts = (refs & ((1 << COUNT_BITS) - 1)).astype(np.float32)
        gains = np.repeat(weights, [len(block) // 8 for _, block in blocks]) * saturated(counts, norms)
        arrivals, places = np.unique((refs >> SHIFT).astype(np.int64), return_inverse=True)
        totals = np.bincount(places, weights=gains).astype(np.float64)
        if self._filters is None:
            return set(arrivals[fusion.strongest(totals, arrivals, most)].tolist())
        several = arrivals[fusion.strongest(totals, arrivals, 8 * most)].tolist()
        passing = self._store.passing(self._tenant, several, self._filters)
        left = np.isin(arrivals, list(passing))
        return set(arrivals[left][fusion.strongest(totals[left], arrivals[left], most)].tolist())

    def _by_vectors(self, statistics: Statistics, limit: int) -> set[int]:
        """Return the memories with the best cosines of those whose vectors differ least in their signs."""
        model = self._query.vector_model
        if model is None or statistics.signs is None:
            return set()
        vector = direction_of(self._query, statistics.signs).vector
        bits = "".join("1" if component >= 0 else "0" for component in vector.tolist())
        most, kept = max(SIGNS, 2 * limit), max(VECTORS, 2 * limit)
        near = self._store.nearest(self._tenant, self._seen, self._space, bits, most, self._filters, self._allowed.now)
        rows = self._store.vectors_at(self._tenant, set(near), model) if len(near) > kept else ()
        arrivals, units = np.array([arrival for arrival, _ in rows], dtype=np.int64), vectors.UnitStore(len(vector))
        try:
            for dim, places, codes, steps in vectors.unpack_many([packed for _, packed in rows]):
                if dim == units.dim:
                    units.extend(places.astype(np.int32), codes, steps)
        except ValueError:
            # Nobody has checked them yet; what holds is found among all of them.
            return set(near)
        if not len(units):
            return set(near)
        cosines, _ = units.best(np.asarray(vector, dtype=np.float32), np.arange(len(rows)))
        return set(arrivals[fusion.strongest(cosines, arrivals, kept)].tolist())
