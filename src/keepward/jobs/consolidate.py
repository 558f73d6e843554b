"""Consolidate: memories that state the same become one, and old passing ones are merged.

Invariants
(1) Of memories that state the same, the most trusted, then the surest, stays word for word; the others are archived
    and their evidence goes to it. Nothing is written anew, so text and vector agree.
(2) Two texts that differ in a number, a date, a name, a unit, a negation or any other word stay two.
(3) A merge is of one scope, subject, sensitivity and tier; its sources are archived and one rollback brings them back.
"""

from __future__ import annotations

from collections.abc import Iterator

from keepward.jobs.alike import pairs
from keepward.jobs.deriving import MOST, SPREAD, groups, is_source, portions, summed_up
from keepward.jobs.desk import Ask, Desk, Plan
from keepward.model.change import Archive, Change, Replace
from keepward.model.commit import Reason
from keepward.model.memory import Kind, Record, Stability, Tier, confidence_at, importance_at


def plan(desk: Desk) -> Plan:
    """Ask to let one of several stand, and to merge what is old and passing."""
    doubles = list(_doubles(desk))
    touched = {change.id for ask in doubles for change in ask.changes}
    asks = list(doubles)
    told: list[Reason] = []
    for ask, notes in _merges(desk, touched):
        asks.append(ask)
        told += notes
    return Plan(asks=tuple(asks), reasons=tuple(dict.fromkeys(told)))


def _doubles(desk: Desk) -> Iterator[Ask]:
    same = [pair for pair in pairs(desk, floor=desk.policy.merge_cosine) if pair.same]
    records = {record.id: record for pair in same for record in (pair.first, pair.second)}
    near: dict[str, set[str]] = {}
    for pair in same:
        near.setdefault(pair.first.id, set()).add(pair.second.id)
        near.setdefault(pair.second.id, set()).add(pair.first.id)

    def worth(record: Record) -> tuple[object, ...]:
        faded = confidence_at(record, desk.now), importance_at(record, desk.now)
        return record.trust, *faded, record.created_at, record.id

    taken: set[str] = set()
    for best in sorted(records.values(), key=worth, reverse=True):
        if best.id in taken:
            continue
        others = [each for name in sorted(near[best.id] - taken) if _may_go(desk, best, each := records[name])]
        if not others:
            continue
        taken |= {best.id, *(each.id for each in others)}
        changes: list[Change] = [Archive(id=each.id, if_version=each.version) for each in others]
        evidence = {item for each in others if each.trust >= best.trust for item in each.evidence}
        added = {*best.evidence, *evidence}
        if evidence - set(best.evidence) and len(added) <= MOST:
            changes.append(Replace(id=best.id, evidence=tuple(sorted(added)), if_version=best.version))
        yield Ask(changes=tuple(changes), reason=f"memory {best.id} states the same", whole=True, heir=best.id)


def _may_go(desk: Desk, best: Record, other: Record) -> bool:
    """Whether what stays holds about as long as what goes would have, and nobody keeps the two apart."""
    lasts = best.expires_at is None
    if best.expires_at is not None and other.expires_at is not None:
        lasts = other.expires_at <= best.expires_at + SPREAD
    return lasts and not desk.brought_back(best) and not desk.brought_back(other)


def _merges(desk: Desk, touched: set[str]) -> Iterator[tuple[Ask, tuple[Reason, ...]]]:
    old = [
        record
        for record in desk.live(Tier.EPISODIC, Tier.ARCHIVAL)
        if record.stability is Stability.VOLATILE
        and record.reinforced_at <= desk.now - desk.policy.merge_after
        and record.key is None
        and record.id not in touched
        # The events of a session are summed up as a session.
        and not (record.kind is Kind.EVENT and record.session)
        and is_source(desk, record)
    ]
    for group in groups(old, lambda each: (each.tier.value,)):
        if len(group) < min(desk.policy.merge_least, desk.policy.merge_most):
            continue
        # The small rest goes first: what a crash leaves behind is enough for the next run to go on with.
        for part in reversed(list(portions(group, 2, desk.policy.merge_most))):
            of = f"Notes about {part[0].subject}" if part[0].subject else "Notes"
            yield summed_up(desk, part, of=of, reason="merged old passing memories")
