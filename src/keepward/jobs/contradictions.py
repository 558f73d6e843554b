"""Contradictions: pairs of active memories that say nearly the same and differ in something, for a person to look at.

They are the merge candidates that are not the same. Nothing is changed, and nothing is said of which one holds: that
is for a person to decide. A pair is shown where a list under the same filters shows both memories to the handle.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from keepward.engine.read import find
from keepward.jobs.runner import candidates
from keepward.model.journal import Contradiction, Contradictions
from keepward.model.query import check_limit

if TYPE_CHECKING:
    from keepward.engine.session import Session
    from keepward.model.memory import Record
    from keepward.model.query import Filter

#: Least score of a pair.
FLOOR = 0.6


def contradictions(session: Session, filters: Filter, *, limit: int) -> Contradictions:
    """Return the pairs that a handle can see, the closest first.

    Raises:
        InvalidInput: a limit below 1, an unknown tier, kind or content type.
    """
    check_limit(limit)
    shown = find(session, filters, limit=None, include_ended=False)
    records = {record.id: record for record in shown}
    pairs = []
    for pair in candidates(session, floor=FLOOR, limit=None):
        if pair.differs and not pair.same and pair.first.id in records and pair.second.id in records:
            older, newer = sorted((records[pair.first.id], records[pair.second.id]), key=_date_order)
            pairs.append(Contradiction(older=older, newer=newer, differs=pair.differs, score=pair.score))
    return Contradictions(
        items=tuple(pairs[:limit]),
        total=len(pairs),
        compared=len(records),
        withheld=shown.withheld,
        notes=tuple(shown.notes),
    )


def _date_order(record: Record) -> tuple[object, ...]:
    """Return the sort key by which the older of two memories comes first."""
    return record.occurred_at or record.created_at, record.created_at, record.id
