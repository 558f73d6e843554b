"""Compact: working memory past its term goes, and of a long thread the oldest notes become a summary.

Invariants
(1) A thread is of one scope and session; keyed state and what a job made are no part of it.
(2) A thread of more than ``thread_length`` keeps half of that, the newest, as they are; so a second run finds nothing.
"""

from __future__ import annotations

from keepward.jobs.deriving import groups, is_source, named_after, portions, summed_up
from keepward.jobs.desk import Ask, Desk, Plan
from keepward.jobs.expire import lapsed
from keepward.model.commit import Reason
from keepward.model.memory import Tier

#: Notes of one summary.
_PORTION = 20


def plan(desk: Desk) -> Plan:
    """Ask to expire working memories, and to sum up long threads."""
    asks: list[Ask] = list(lapsed(desk, Tier.WORKING))
    told: list[Reason] = []
    notes = [record for record in desk.live(Tier.WORKING) if record.key is None and is_source(desk, record)]
    for group in groups(notes, lambda each: (each.session or "",)):
        length = desk.policy.thread_length
        if len(group) <= length:
            continue
        old = group[: len(group) - length // 2]
        for part in portions(old, 2, _PORTION):
            of = named_after(part[0].session, f"Notes of {part[0].scope}")
            ask, said = summed_up(desk, part, of=of, reason="summed up the oldest notes of a long thread")
            asks.append(ask)
            told += said
    return Plan(asks=tuple(asks), reasons=tuple(dict.fromkeys(told)))
