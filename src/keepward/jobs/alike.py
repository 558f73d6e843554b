"""Alike: which live memories resemble each other, and whether they state the same.

Invariants
(1) Two memories are compared only within one scope, tier, sensitivity, subject, kind and stability.
(2) Likely pairs come from the marks that their texts share, so that the work grows with the memories and not with
    their pairs; a mark that more than ``CROWD`` memories share compares each with the newest of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from keepward.gates.detect.likeness import compare
from keepward.jobs.desk import Desk
from keepward.model.job import Alike
from keepward.model.memory import Kind, Record, Tier
from keepward.ports.store import Features, Indexed

CROWD = 32
#: Of six marks, how many likely pairs share.
SHARED = 2


def pairs(desk: Desk, *, floor: float, scopes: Iterable[str] | None = None) -> list[Alike]:
    """Return pairs of unkeyed memories that score ``floor`` or more or state the same, best first, ties by id."""
    within = None if scopes is None else frozenset(scopes)
    entries = [
        each
        for _, each in desk.reader.indexed(desk.tenant, after=0)
        if each is not None and _counts(desk, each.record) and (within is None or each.record.scope in within)
    ]
    judged = (_judged(desk, a, b, floor) for a, b in _likely(entries))
    found = [pair for pair in judged if pair is not None and (pair.same or pair.score >= floor)]
    return sorted(found, key=lambda pair: (-pair.score, pair.first.id, pair.second.id))


def _counts(desk: Desk, record: Record) -> bool:
    comparable = record.tier in {Tier.ARCHIVAL, Tier.EPISODIC} and record.kind is not Kind.EVENT
    return comparable and record.key is None and record.is_live(desk.now) and desk.mine(record)


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


def _judged(desk: Desk, a: Indexed, b: Indexed, floor: float) -> Alike | None:
    """Return how two memories compare; None where their vectors say at once that they are neither."""
    policy, model = desk.policy, desk.embedder.id if desk.embedder else None
    comparable = model is not None and a.features.model == b.features.model == model
    cosine = _cosine(a.features, b.features) if comparable else None
    equal = a.features.digest == b.features.digest
    if cosine is not None and not equal and cosine < min(floor, policy.merge_cosine):
        return None
    like = compare(a.record.text, b.record.text)
    same = equal or (
        not like.differs
        and (like.overlap >= policy.duplicate_overlap or like.ratio >= policy.similarity_threshold)
        and (cosine is None or cosine >= policy.merge_cosine)
    )
    score = round(like.ratio, 4) if cosine is None else cosine
    return Alike(
        first=a.record,
        second=b.record,
        score=min(max(score, 0.0), 1.0),
        same=same,
        differs=tuple(like.differs),
    )


def _cosine(a: Features, b: Features) -> float | None:
    """Return the cosine of two memories' own vectors, None where one has none."""
    from keepward.retrieval.vectors import unpack

    if not (a.units and b.units):
        return None
    # Rounded here, so that a floor taken from a score keeps that score in.
    return round(float(unpack(a.vectors)[0] @ unpack(b.vectors)[0]), 4)
