"""Candidates from the database: the part of a large tenant's index that a query needs, with statistics of the whole.

Invariants
(1) What ranks is always an ``Index``: the tenant's whole, or a part that was gathered for one query. A part ranks as
    the whole would, as far as it holds what the whole would have ranked first.
(2) Whether a memory may be shown is decided by the profiles of the part, which are checked; the tables of candidates
    only say where to look. Statistics are of what the reader may see.
(3) One snapshot serves a whole search.
"""

from __future__ import annotations

from contextlib import suppress
from itertools import accumulate
from typing import TYPE_CHECKING

import numpy as np
from msgspec.structs import replace

from keepward.core.query import Filter
from keepward.retrieval import vector_index
from keepward.retrieval.advice import requests_action
from keepward.retrieval.index import Index, Query, RowFilter, centred_query_of
from keepward.retrieval.inverted_index import K1, B, Statistics, idf
from keepward.retrieval.tokenizer import PREFERENCE_TERM, term_hash
from keepward.storage.candidates import CandidateQuery, VisibleCounts, vector_space_id

if TYPE_CHECKING:
    from keepward.storage.store import EventStore

#: Memories taken by their vectors and by their words, at least.
MIN_VECTOR_HITS, MIN_WORD_HITS = 200, 120
#: Memories that hold the words of a query which are looked up; what is left out is common.
MAX_WORD_HOLDERS = 20_000
#: Vectors from whose signs the mean vector is computed, about.
MEAN_SAMPLE_SIZE = 4_000
#: So many memories are all taken in.
SMALL_SET_SIZE = 1_000
#: The same, where the memories are known by id.
SMALL_ID_SET_SIZE = 20_000
#: Best of a first ranking around whose turns more is taken in, and how many turns before and after.
LEADING_HITS, NEARBY_TURNS = 24, 6
_NARROWING = ("tiers", "kinds", "content_types", "tags", "subject", "category", "session", "min_importance")


def gather_candidates(
    store: EventStore, tenant: str, query: Query, allowed: RowFilter, filters: Filter, limit: int
) -> Index:
    """Return the part of a tenant's index that ranks the best ``limit`` of a query."""
    index = Index()
    with store.read_snapshot(tenant):
        if allowed.ids is not None and len(allowed.ids) <= SMALL_ID_SET_SIZE:
            index.apply(store.profiles_at(tenant, ids=sorted(allowed.ids)))
            return index
        asked, words, near = (
            _request(tenant, query, allowed, filters),
            max(MIN_WORD_HITS, 2 * limit),
            max(MIN_VECTOR_HITS, 2 * limit),
        )
        seen = store.seen(tenant, asked)
        few = store.matching_arrivals(tenant, asked, SMALL_SET_SIZE + 1)
        if len(few) <= SMALL_SET_SIZE:
            index.apply(store.profiles_at(tenant, few))
            return index
        statistics = _statistics(store, tenant, query, asked, seen)
        part = Index(statistics)
        arrivals = _candidates_by_words(store, tenant, asked, statistics, words)
        if query.vector is not None and seen.units:
            signs = statistics.signs
            toward = np.asarray(query.vector) if signs is None else centred_query_of(query, signs).vector
            arrivals |= store.nearest(tenant, asked, seen.units, toward.tolist(), near)
        profiles = {each.id: each for each in store.profiles_at(tenant, sorted(arrivals))}
        part.apply(sorted(profiles.values(), key=lambda each: each.position))
        leading = [profiles[each.id] for each in part.search(query, allowed, LEADING_HITS)]
        turns = [(each.session, each.position) for each in leading if each.session is not None]
        around = store.neighbouring_turns(tenant, turns, NEARBY_TURNS) - arrivals if turns else ()
        part.apply(sorted(store.profiles_at(tenant, sorted(around)), key=lambda each: each.position))
        return part


def _request(tenant: str, query: Query, allowed: RowFilter, filters: Filter) -> CandidateQuery:
    narrow = any(getattr(filters, name) for name in _NARROWING)
    space = 0
    if query.vector is not None and query.vector_model is not None:
        space = vector_space_id(tenant, query.vector_model, len(query.vector))
    return CandidateQuery(
        scopes=allowed.scopes or (),
        trust=allowed.min_trust or 0,
        include_sensitive=allowed.include_sensitive,
        now=allowed.now,
        space=space,
        filters=replace(filters, include_sensitive=allowed.include_sensitive) if narrow else None,
    )


def _statistics(store: EventStore, tenant: str, query: Query, asked: CandidateQuery, seen: VisibleCounts) -> Statistics:
    terms = {term_hash(term) for term in (*query.terms, *query.names)}
    if asked.space and requests_action(query.text):
        terms.add(term_hash(PREFERENCE_TERM))
    signs: vector_index.SignStatistics | None = None
    if query.vector is not None and asked.space and seen.units:
        packed = store.sample(tenant, asked, min(100.0, 100.0 * MEAN_SAMPLE_SIZE / seen.holders))
        # Nobody has checked these rows: a damaged one leaves the mean to the part, whose rows are checked.
        with suppress(ValueError):
            for dim, _, codes, _ in vector_index.unpack_many(packed):
                if dim == len(query.vector):
                    signs = vector_index.SignStatistics((codes >= 0).sum(axis=0, dtype=np.int64), len(codes))
    return Statistics(
        count=seen.memories,
        lacking=seen.memories - seen.holders if asked.space else 0,
        # Of a session's turns all but the first have one before.
        lengths=(seen.length / seen.memories, (seen.length + seen.turn_length) / seen.memories),
        document_frequency=store.holders(tenant, asked, terms) if terms else {},
        signs=signs,
    )


def _candidates_by_words(
    store: EventStore, tenant: str, asked: CandidateQuery, statistics: Statistics, most: int
) -> set[int]:
    """Return the memories that hold most of the query's rarer words."""
    rarest = zip(statistics.document_frequency.items(), accumulate(statistics.document_frequency.values()), strict=True)
    weights = {
        term: idf(statistics.count, holders)
        for n, ((term, holders), read) in enumerate(rarest)
        if n == 0 or read <= MAX_WORD_HOLDERS
    }
    if not weights:
        return set()
    each = K1 * B / max(statistics.lengths[0], 1e-9)
    return store.by_words(tenant, asked, weights, (K1 * (1 - B), each), most)
