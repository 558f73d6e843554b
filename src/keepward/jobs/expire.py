"""Expire: what is past its term is noted as expired, so that it frees its key, its place and its vector.

A memory stops to hold at the instant of its term, whether or not this job has run; the job only tidies up.
"""

from __future__ import annotations

from collections.abc import Iterator

from keepward.jobs.desk import Ask, Desk, Plan, batches
from keepward.model.change import Expire
from keepward.model.memory import Tier

#: Memories of one run; the rest is for the next.
MOST = 20_000


def plan(desk: Desk) -> Plan:
    """Ask to expire what is past its term, in every tier but core."""
    return Plan(asks=tuple(lapsed(desk)))


def lapsed(desk: Desk, *tiers: Tier) -> Iterator[Ask]:
    """Yield asks for what is past its term, in some tiers or in all but core."""
    found = desk.reader.lapsed(desk.tenant, desk.now, limit=MOST).records
    mine = [record for record in found if desk.mine(record) and (not tiers or record.tier in tiers)]
    changes = [Expire(id=record.id, if_version=record.version) for record in mine]
    yield from batches(changes, "its term is over")
