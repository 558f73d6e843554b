"""Consolidate: which live memories resemble each other; those that state the same become one, old ones are merged.

Invariants
(1) Two memories are compared only within one scope, tier, sensitivity, subject, kind and stability.
(2) Likely pairs come from the marks that their texts share, so that the work grows with the memories and not with
    their pairs; a mark that more than ``CROWD`` memories share compares each with the newest of them.
(3) Of memories that state the same, the most trusted, then the most important, stays word for word; the others are
    archived and their evidence goes to it. Nothing is written anew, so text and vector agree.
(4) Two texts that differ in a number, a date, a name, a unit, a negation or any other word but a filler stay two.
(5) A merge is of one scope, subject, sensitivity and tier; its sources are archived and one rollback brings them back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from keepward.gates.detect.likeness import compare
from keepward.jobs.plan import Ask, Plan, Planning
from keepward.jobs.summaries import MOST, SPREAD, groups, is_source, portions, summed_up
from keepward.model.change import Archive, Change, Replace
from keepward.model.commit import Reason
from keepward.model.job import Alike
from keepward.model.memory import Kind, Record, Stability, Tier, confidence_at, importance_at
from keepward.ports.store import Features, Indexed
from keepward.store.reads import CROWD, SHARED


def pairs(on: Planning, *, floor: float, scopes: Iterable[str] | None = None) -> list[Alike]:
    """Return pairs of unkeyed memories that score ``floor`` or more or state the same, best first, ties by id."""
    within = None if scopes is None else frozenset(scopes)
    entries = [
        each
        for each in on.reader.indexed(on.tenant)
        if _counts(on, each.record) and (within is None or each.record.scope in within)
    ]
    judged = (_judged(on, a, b, floor) for a, b in _likely(entries))
    found = [pair for pair in judged if pair is not None and (pair.same or pair.score >= floor)]
    return sorted(found, key=lambda pair: (-pair.score, pair.first.id, pair.second.id))


def _counts(on: Planning, record: Record) -> bool:
    comparable = record.tier in {Tier.ARCHIVAL, Tier.EPISODIC} and record.kind is not Kind.EVENT
    return comparable and record.key is None and record.is_live(on.now) and on.mine(record)


def _likely(entries: list[Indexed]) -> list[tuple[Indexed, Indexed]]:
    entries = sorted(entries, key=lambda each: (each.record.created_at, each.record.id))
    buckets: dict[tuple[Any, ...], list[int]] = {}
    likely: list[tuple[Indexed, Indexed]] = []
    for at, entry in enumerate(entries):
        record = entry.record
        place = (record.scope, record.tier, record.sensitivity, record.subject, record.kind, record.stability)
        shared: Counter[int] = Counter()
        for mark in (entry.features.digest, *entry.features.marks):
            bucket = buckets.setdefault((*place, mark), [])
            # An equal digest is an equal text, and enough.
            shared.update(dict.fromkeys(bucket[-CROWD:], SHARED if isinstance(mark, bytes) else 1))
            bucket.append(at)
        likely += [(entries[other], entry) for other in sorted(shared) if shared[other] >= SHARED]
    return likely


def _judged(on: Planning, a: Indexed, b: Indexed, floor: float) -> Alike | None:
    """Return how two memories compare; None where their vectors say at once that they are neither."""
    policy, model = on.policy, on.embedder.id if on.embedder else None
    comparable = model is not None and a.features.model == b.features.model == model
    cosine = _cosine(a.features, b.features) if comparable else None
    equal = a.features.digest == b.features.digest
    if cosine is not None and not equal and cosine < min(floor, policy.merge_cosine):
        return None
    like = compare(a.record.text, b.record.text)
    same = equal or (
        not like.differs
        and like.ratio >= policy.similarity_threshold
        and (cosine is None or cosine >= policy.merge_cosine)
    )
    score = round(like.ratio, 4) if cosine is None else cosine
    score = min(max(score, 0.0), 1.0)
    return Alike(first=a.record, second=b.record, score=score, same=same, differs=tuple(like.differs))


def _cosine(a: Features, b: Features) -> float | None:
    """Return the cosine of two memories' own vectors, None where one has none."""
    from keepward.retrieval.vectors import unpack

    if not (a.units and b.units):
        return None
    # Rounded here, so that a floor taken from a score keeps that score in.
    return round(float(unpack(a.vectors)[0] @ unpack(b.vectors)[0]), 4)


def consolidate(on: Planning) -> Plan:
    """Ask to let one of several stand, and to merge what is old and passing."""
    doubles = list(_doubles(on))
    touched = {change.id for ask in doubles for change in ask.changes}
    return Plan.of([*((ask, ()) for ask in doubles), *_merges(on, touched)])


def _doubles(on: Planning) -> Iterator[Ask]:
    same = [pair for pair in pairs(on, floor=on.policy.merge_cosine) if pair.same]
    records = {record.id: record for pair in same for record in (pair.first, pair.second)}
    near: dict[str, set[str]] = {}
    for pair in same:
        near.setdefault(pair.first.id, set()).add(pair.second.id)
        near.setdefault(pair.second.id, set()).add(pair.first.id)

    def worth(record: Record) -> tuple[object, ...]:
        faded = importance_at(record, on.now), confidence_at(record, on.now)
        return record.trust, *faded, record.created_at, record.id

    taken: set[str] = set()
    for best in sorted(records.values(), key=worth, reverse=True):
        if best.id in taken:
            continue
        others = [each for name in sorted(near[best.id] - taken) if _may_go(on, best, each := records[name])]
        if not others:
            continue
        taken |= {best.id, *(each.id for each in others)}
        changes: list[Change] = [Archive(id=each.id, if_version=each.version) for each in others]
        evidence = {item for each in others if each.trust >= best.trust for item in each.evidence}
        added = {*best.evidence, *evidence}
        if evidence - set(best.evidence) and len(added) <= MOST:
            changes.append(Replace(id=best.id, evidence=tuple(sorted(added)), if_version=best.version))
        yield Ask(changes=tuple(changes), reason=f"memory {best.id} states the same", whole=True, heir=best.id)


def _may_go(on: Planning, best: Record, other: Record) -> bool:
    """Whether what stays holds about as long as what goes would have, and nobody keeps the two apart."""
    lasts = best.expires_at is None
    if best.expires_at is not None and other.expires_at is not None:
        lasts = other.expires_at <= best.expires_at + SPREAD
    return lasts and not on.brought_back(best) and not on.brought_back(other)


def _merges(on: Planning, touched: set[str]) -> Iterator[tuple[Ask, tuple[Reason, ...]]]:
    old = [
        record
        for record in on.live(Tier.EPISODIC, Tier.ARCHIVAL)
        if record.stability is Stability.VOLATILE
        and record.reinforced_at <= on.now - on.policy.merge_after
        and record.key is None
        and record.id not in touched
        # The events of a session are summed up as a session.
        and not (record.kind is Kind.EVENT and record.session)
        and is_source(on, record)
    ]
    for group in groups(old, lambda each: (each.tier.value,)):
        if len(group) < min(on.policy.merge_least, on.policy.merge_most):
            continue
        # The small rest goes first: what a crash leaves behind is enough for the next run to go on with.
        for part in reversed(list(portions(group, 2, on.policy.merge_most))):
            of = f"Notes about {part[0].subject}" if part[0].subject else "Notes"
            yield summed_up(on, part, of=of, reason="merged old passing memories")
