"""Contradictions: pairs of memories that say nearly the same but differ in a detail."""

from __future__ import annotations

from typing import Unpack

from keepward.core.journal import Contradiction, Contradictions
from keepward.core.query import SearchFilters
from keepward.jobs.runner import candidates
from keepward.services.reading.lists import list_page
from keepward.services.reading.queries import search_filters
from keepward.services.recorded_reads import record_read
from keepward.services.request_context import RequestContext

#: Lowest score of a pair that may be a contradiction.
MIN_SCORE = 0.6


def contradictions(context: RequestContext, /, *, limit: int = 50, **filters: Unpack[SearchFilters]) -> Contradictions:
    """Return pairs of active memories that say nearly the same but differ in a detail, the closest first.

    They are the merge candidates that do not state the same. A person decides which one is right. A pair is shown if a
    list with the same filters shows both memories.
    """
    listed = list_page(context, *search_filters(context, filters))
    records = {record.id: record for record in listed}
    pairs = []
    for pair in candidates(context, floor=MIN_SCORE, limit=None, scopes={record.scope for record in listed}):
        if pair.differs and not pair.same and pair.first.id in records and pair.second.id in records:
            older, newer = sorted(
                (records[pair.first.id], records[pair.second.id]),
                key=lambda record: (record.said_at, record.text_at, record.id),
            )
            pairs.append(Contradiction(older=older, newer=newer, differs=pair.differs, score=pair.score))
    total = len(pairs)
    del pairs[limit:]
    record_read(context, [record for pair in pairs for record in (pair.older, pair.newer)])
    return Contradictions(
        items=tuple(pairs),
        total=total,
        compared=len(records),
        withheld=listed.withheld,
        notes=tuple(listed.notes),
    )
