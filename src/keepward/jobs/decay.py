"""Decay: what has faded in the archive, and was of no use to anybody, is put away.

Fading itself is computed at every read from the last confirmation and the clock; this job writes no number.

Invariants
(1) A memory is let go of only where both its confidence and its importance have faded below policy's floors.
(2) What somebody used within its half-life is kept.
(3) The owner's own words are never put away unasked; ``prune`` asks about them.
"""

from __future__ import annotations

from datetime import datetime

from keepward.jobs.desk import Desk, Plan, batches
from keepward.model.change import Archive
from keepward.model.memory import Record, Tier, confidence_at, half_life, importance_at
from keepward.model.trust import Trust

_PAGE = 500


def plan(desk: Desk) -> Plan:
    """Ask to archive what has faded, the most faded first."""
    gone = [record for record in faded(desk) if record.trust is not Trust.OWNER]
    changes = [Archive(id=record.id, if_version=record.version) for record in gone]
    reason = "it has faded: nobody confirmed or used it"
    return Plan(asks=tuple(batches(changes, reason, removes=True)))


def faded(desk: Desk) -> list[Record]:
    """Return archival memories below both floors, least confident first, ties by age and id.

    What was used within its half-life is of use, however little its numbers say.
    """
    records = desk.live(Tier.ARCHIVAL)
    low = [each for each in records if confidence_at(each, desk.now) < desk.policy.fade_confidence]
    used: dict[str, tuple[int, datetime]] = {}
    for start in range(0, len(low), _PAGE):
        used |= desk.reader.usage(desk.tenant, [each.id for each in low[start : start + _PAGE]])

    def useless(record: Record) -> bool:
        count, last = used.get(record.id, (0, record.created_at))
        span = half_life(record)
        if count and span is not None and desk.now - last < span:
            return False
        return importance_at(record, desk.now, last if count else None) < desk.policy.fade_importance

    gone = [each for each in low if useless(each) and not desk.brought_back(each)]
    return sorted(gone, key=lambda each: (confidence_at(each, desk.now), each.created_at, each.id))
