"""Fading of confidence and importance, computed at read and never written.

Invariants
(1) The result depends on the stored base, the last change or reinforcement and the clock alone, so that
    computing it any number of times changes nothing.
(2) Core and permanent memories do not fade.
(3) Faded values are what every read, filter, order and eviction uses, at the instant of reading.
"""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import datetime, timedelta

from keepward.model.memory import Kind, Record, Stability, Tier, share

#: Importance lost per idle day, as the exponent's rate.
IDLE_RATE = 0.01
#: Importance never falls below this.
FLOOR = 0.01
_DAY = timedelta(days=1)
_HALF_LIFE = {Kind.SUMMARY: timedelta(days=90), Kind.EVENT: timedelta(days=60)}
_DEFAULT_HALF_LIFE = timedelta(days=30)


def half_life(record: Record) -> timedelta | None:
    """Return the time in which confidence halves, or None for what does not fade."""
    if record.tier is Tier.CORE or record.stability is Stability.PERMANENT:
        return None
    return _HALF_LIFE.get(record.kind, _DEFAULT_HALF_LIFE)


def idle_since(record: Record) -> datetime | None:
    """Return when a memory last changed, was confirmed or learned from; None: it does not fade."""
    return None if half_life(record) is None else max(record.reinforced_at, record.updated_at or record.created_at)


def confidence_at(record: Record, now: datetime) -> float:
    """Return confidence at an instant, 0..1: ``base * 0.5 ** (idle / half_life)``."""
    span = half_life(record)
    if span is None:
        return record.stored_confidence
    idle = max(now - record.reinforced_at, timedelta(0))
    return share(record.stored_confidence * 0.5 ** (idle / span))


def importance_at(record: Record, now: datetime, last_used: datetime | None = None) -> float:
    """Return importance at an instant: ``base * exp(-0.01 * idle days)``, at least 0.01 unless its base is less."""
    since = idle_since(record)
    if since is None:
        return record.stored_importance
    days = max((now - (max(since, last_used) if last_used else since)) / _DAY, 0.0)
    base = record.stored_importance
    return share(max(min(FLOOR, base), base * math.exp(-IDLE_RATE * days)))


def as_read(record: Record, now: datetime) -> Record:
    """Return a record as a reader sees it at an instant: faded, with what is stored beside."""
    return replace(
        record,
        confidence=confidence_at(record, now),
        importance=importance_at(record, now),
        base_confidence=record.stored_confidence,
        base_importance=record.stored_importance,
    )
