"""Candidates from the database: for a query on a large tenant, load only the memories that may rank high.

An ``Index`` always does the ranking, over all memories of a tenant or over a part gathered for one query. A part has
the statistics of all memories that the reader may see. So it ranks as the complete index does, if it contains the
memories that the complete index would rank first.
The verified rows of the part decide which memories may be shown; the candidate tables only say where to look. A search
reads one snapshot.
"""

from __future__ import annotations

from contextlib import suppress
from itertools import accumulate
from operator import attrgetter
from typing import TYPE_CHECKING

import numpy as np

from keepward.core.query import Filter
from keepward.retrieval import vector_index
from keepward.retrieval.advice import requests_action
from keepward.retrieval.index import Index, Query, centred_query_of
from keepward.retrieval.inverted_index import K1, B, Statistics, idf
from keepward.retrieval.tokenizer import PREFERENCE_TERM, term_hash
from keepward.storage.candidates import VisibleCounts, vector_space_id

if TYPE_CHECKING:
    from keepward.storage.store import EventStore

#: Number of memories to gather by vector and by words, unless twice the limit is more.
MIN_VECTOR_HITS, MIN_WORD_HITS = 200, 120
#: Words are looked up rarest first, until their memories exceed this number in total. The rarest always is.
MAX_WORD_HOLDERS = 20_000
#: Number of vectors to estimate the mean vector from, approximately.
MEAN_SAMPLE_SIZE = 4_000
#: Up to this number, all memories are gathered.
SMALL_SET_SIZE = 1_000
#: The same if the ids of the memories are known.
SMALL_ID_SET_SIZE = 20_000
#: Best hits of a first ranking whose neighbouring messages are gathered too, and how many before and after.
LEADING_HITS, NEARBY_TURNS = 24, 6
_arrival = attrgetter("arrival")


def gather_candidates(store: EventStore, tenant: str, query: Query, allowed: Filter, limit: int) -> Index:
    """Return the part of a tenant's index that ranks the best ``limit`` memories for a query."""
    index = Index()
    with store.read_snapshot(tenant):
        if allowed.ids is not None and len(allowed.ids) <= SMALL_ID_SET_SIZE:
            index.apply(store.profiles_at(tenant, ids=sorted(allowed.ids)))
            return index
        space = _space_of(tenant, query)
        max_by_words, max_by_vector = max(MIN_WORD_HITS, 2 * limit), max(MIN_VECTOR_HITS, 2 * limit)
        visible = store.visible_counts(tenant, allowed, space)
        matching = store.matching_arrivals(tenant, allowed, space, SMALL_SET_SIZE + 1)
        if len(matching) <= SMALL_SET_SIZE:
            index.apply(store.profiles_at(tenant, matching))
            return index
        statistics = _statistics(store, tenant, query, allowed, space, visible)
        arrivals = _candidates_by_words(store, tenant, allowed, space, statistics, max_by_words)
        if query.vector is not None and visible.units:
            signs = statistics.signs
            vector = np.asarray(query.vector) if signs is None else centred_query_of(query, signs).vector
            arrivals |= store.nearest(tenant, allowed, space, visible.units, vector.tolist(), max_by_vector)
        memories = sorted(store.profiles_at(tenant, sorted(arrivals)), key=_arrival)
        part = Index(statistics)
        part.apply(memories)
        leading = {hit.id for hit in part.search(query, allowed, LEADING_HITS)}
        turns = [
            (session, memory.arrival)
            for memory in memories
            if memory.fields.id in leading and (session := memory.fields.event_session) is not None
        ]
        neighbours = store.neighbouring_turns(tenant, turns, NEARBY_TURNS) - arrivals if turns else ()
        part.apply(sorted(store.profiles_at(tenant, sorted(neighbours)), key=_arrival))
        return part


def _space_of(tenant: str, query: Query) -> int:
    """Return the id of the query's vector space; 0 for a query without a vector."""
    if query.vector is None or query.vector_model is None:
        return 0
    return vector_space_id(tenant, query.vector_model, len(query.vector))


def _statistics(
    store: EventStore, tenant: str, query: Query, allowed: Filter, space: int, visible: VisibleCounts
) -> Statistics:
    terms = {term_hash(term) for term in (*query.terms, *query.names)}
    if space and requests_action(query.text):
        terms.add(term_hash(PREFERENCE_TERM))
    signs: vector_index.SignStatistics | None = None
    if query.vector is not None and space and visible.units:
        packed = store.sample(tenant, allowed, space, min(100.0, 100.0 * MEAN_SAMPLE_SIZE / visible.holders))
        # These rows are not verified: if one is corrupt, the mean comes from the verified rows of the part.
        with suppress(ValueError):
            for dim, _, codes, _ in vector_index.unpack_many(packed):
                if dim == len(query.vector):
                    signs = vector_index.SignStatistics((codes >= 0).sum(axis=0, dtype=np.int64), len(codes))
    return Statistics(
        count=visible.memories,
        lacking=visible.memories - visible.holders if space else 0,
        # The second mean includes the message before a memory: every message but the first of a session has one.
        lengths=(visible.length / visible.memories, (visible.length + visible.turn_length) / visible.memories),
        document_frequency=store.document_frequencies(tenant, allowed, space, terms) if terms else {},
        signs=signs,
    )


def _candidates_by_words(
    store: EventStore, tenant: str, allowed: Filter, space: int, statistics: Statistics, limit: int
) -> set[int]:
    """Return the memories with most of the query's rarer words."""
    by_rarity = zip(
        statistics.document_frequency.items(), accumulate(statistics.document_frequency.values()), strict=True
    )
    weights = {
        term: idf(statistics.count, holders)
        for n, ((term, holders), total_holders) in enumerate(by_rarity)
        if n == 0 or total_holders <= MAX_WORD_HOLDERS
    }
    if not weights:
        return set()
    per_term = K1 * B / max(statistics.lengths[0], 1e-9)
    return store.by_words(tenant, allowed, space, weights, (K1 * (1 - B), per_term), limit)
