"""Contradictions: pairs of memories that say nearly the same but differ in a detail."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import nsmallest
from typing import Unpack

from keepward.core.journal import Contradiction, Contradictions
from keepward.core.query import SearchFilters
from keepward.jobs.planners import Pair, SimilarPairs, is_comparable
from keepward.jobs.runner import comparison
from keepward.services.reading.lists import list_page
from keepward.services.reading.queries import search_filters
from keepward.services.recorded_reads import record_read
from keepward.services.request_context import RequestContext

#: Lowest score of a pair that may be a contradiction.
MIN_SCORE = 0.6
#: Most pairs to compare: a second of work.
MAX_COMPARISONS = 50_000
_MORE = "{} more pairs are not listed; ask for a part of the memories, such as those about one subject"
_PARTIAL = (
    "many memories share their words, and each was compared with the newest of them, in all {} pairs: there may be "
    "more that differ; ask for a part of the memories, such as those about one subject"
)


def contradictions(context: RequestContext, /, *, limit: int = 50, **filters: Unpack[SearchFilters]) -> Contradictions:
    """Return pairs of active memories that say nearly the same but differ in a detail, the closest first.

    They are the merge candidates that do not state the same. A person decides which one is right. Only memories that a
    list with the same filters shows are compared.
    """
    listed = list_page(context, *search_filters(context, filters))
    job = comparison(context)
    compared = context.store.features(context.tenant, (each for each in listed if is_comparable(job, each)))
    pairs = SimilarPairs(job, compared, floor=MIN_SCORE, most=MAX_COMPARISONS)
    total = 0

    def differing() -> Iterator[Pair]:
        nonlocal total
        for pair in pairs:
            if not pair.same and pair.differs:
                total += 1
                yield pair

    found = [_contradiction(pair) for pair in nsmallest(limit, differing(), key=lambda pair: pair.order)]
    record_read(context, [record for pair in found for record in (pair.older, pair.newer)])
    notes = list(listed.notes)
    notes += [_MORE.format(f"{total - limit:,}")] if total > limit else []
    notes += [_PARTIAL.format(f"{pairs.compared:,}")] if pairs.is_partial else []
    return Contradictions(
        items=tuple(found),
        total=total,
        compared=len(listed),
        is_partial=pairs.is_partial,
        withheld=listed.withheld,
        notes=tuple(notes),
    )


def _contradiction(pair: Pair) -> Contradiction:
    alike = pair.alike()
    older, newer = sorted((alike.first, alike.second), key=lambda record: (record.said_at, record.text_at, record.id))
    return Contradiction(older=older, newer=newer, differs=alike.differs, score=alike.score)
