"""Fading of confidence and importance, computed at read and never written.

Invariants
(1) The result depends on the stored base, the last reinforcement and the clock alone, so that
    computing it any number of times changes nothing.
(2) Core and permanent memories do not fade.
"""

from __future__ import annotations

import math
from datetime import datetime, timedelta

from keepward.domain.memory import Kind, Record, Stability, Tier, share

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


def confidence_at(record: Record, now: datetime) -> float:
    """Return confidence at an instant, 0..1: ``base * 0.5 ** (idle / half_life)``."""
    span = half_life(record)
    if span is None:
        return record.confidence
    idle = max(now - record.reinforced_at, timedelta(0))
    return share(record.confidence * 0.5 ** (idle / span))


def importance_at(record: Record, now: datetime, last_used: datetime | None = None) -> float:
    """Return importance at an instant: ``base * exp(-0.01 * idle days)``, at least 0.01."""
    if half_life(record) is None:
        return record.importance
    since = max(record.reinforced_at, last_used) if last_used else record.reinforced_at
    days = max((now - since) / _DAY, 0.0)
    return share(max(FLOOR, record.importance * math.exp(-IDLE_RATE * days)))
