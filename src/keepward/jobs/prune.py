"""Prune: room in full tiers, an end to what is past its term, and questions about what only the owner can let go.

Invariants
(1) A tier over its capacity gives up its least useful memories, in the order in which a write to a full tier would.
(2) What is to be deleted is proposed, one memory a proposal, each with its reason; nothing is deleted by asking.
(3) At most ``QUESTIONS`` such proposals wait at a time.
"""

from __future__ import annotations

from collections.abc import Iterator

from keepward.engine.look import least_useful
from keepward.jobs.decay import faded
from keepward.jobs.desk import Ask, Desk, Plan, batches
from keepward.jobs.expire import lapsed
from keepward.model.change import Archive, Retire
from keepward.model.memory import Tier, confidence_at
from keepward.model.trust import Trust

QUESTIONS = 20


def plan(desk: Desk) -> Plan:
    """Ask to expire, to make room, and to be told what of the owner's may go."""
    return Plan(asks=(*lapsed(desk), *_room(desk), *_questions(desk)))


def _room(desk: Desk) -> Iterator[Ask]:
    tally = desk.reader.tally(desk.tenant)
    for tier in (Tier.WORKING, Tier.EPISODIC, Tier.ARCHIVAL):
        limit = desk.policy.capacity.get(tier)
        if limit is None or tally.get(tier.value, 0) <= limit:
            continue
        lapsed_ones = desk.reader.lapsed(desk.tenant, desk.now, limit=-1).records
        excess = tally[tier.value] - sum(1 for each in lapsed_ones if each.tier is tier) - limit
        spares = [record for record in desk.live(tier) if record.trust is not Trust.OWNER]
        spares = least_useful(desk.reader, desk.tenant, spares, desk.now)
        changes = [Archive(id=record.id, if_version=record.version) for record in spares[: max(excess, 0)]]
        yield from batches(changes, f"the {tier.value} tier is over its capacity", removes=True)


def _questions(desk: Desk) -> Iterator[Ask]:
    owned = [record for record in faded(desk) if record.trust is Trust.OWNER]
    for record in owned[: max(0, QUESTIONS - desk.waiting)]:
        idle, sure = (desk.now - record.reinforced_at).days, confidence_at(record, desk.now)
        yield Ask(
            changes=(Retire(id=record.id, if_version=record.version),),
            reason=f"nobody confirmed it for {idle} days; its confidence has faded from {record.confidence:g} to "
            f"{sure:g}: is it still needed?",
            whole=True,
        )
