"""Instants: aware UTC datetimes in memory, whole microseconds since 1970 on disk.

The two forms convert without rounding in both directions.
"""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime, timedelta

from keepward.errors import InvalidInput

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_DURATION = re.compile(r"(-?\d{1,12})\s*(s|m|h|d|w)", re.ASCII)
_UNIT = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
#: The longest accepted time to live.
LONGEST = timedelta(days=36_525)
#: A span of time as people give it: see ``parse_duration``.
Duration = timedelta | float | str


def to_micros(instant: datetime) -> int:
    """Return whole microseconds since 1970-01-01T00:00Z; the instant must be aware."""
    return (instant - _EPOCH) // _MICROSECOND


def from_micros(micros: int) -> datetime:
    """Return the aware UTC instant of whole microseconds since 1970."""
    return _EPOCH + _MICROSECOND * micros


def parse_instant(text: str) -> datetime:
    """Read an ISO 8601 instant; one without an offset is taken as UTC.

    Raises:
        InvalidInput: not ISO 8601, or outside the years 1 to 9999.
    """
    try:
        instant = datetime.fromisoformat(text)
        aware = instant if instant.tzinfo else instant.replace(tzinfo=UTC)
        return aware.astimezone(UTC)
    except (ValueError, OverflowError) as fault:
        raise InvalidInput("not an instant: use ISO 8601 such as 2026-03-01T09:30:00Z") from fault


def parse_duration(value: Duration) -> timedelta:
    """Read a span of time: a timedelta, a number of seconds, or text such as ``90s``, ``15m``, ``24h``, ``30d``.

    ``w`` is a week. It may be negative or zero.

    Raises:
        InvalidInput: anything else, such as text without a unit, or beyond a hundred years.
    """
    if isinstance(value, timedelta):
        return value
    if isinstance(value, str):
        match = _DURATION.fullmatch(value.strip())
        seconds: float = int(match[1]) * _UNIT[match[2]] if match else math.nan
    else:
        usable = isinstance(value, int | float) and not isinstance(value, bool)
        seconds = value if usable else math.nan
    if math.isnan(seconds):
        raise InvalidInput(
            "not a duration: use a whole number and s, m, h, d or w, such as 24h or 30d, a number of seconds, "
            "or a timedelta"
        )
    if abs(seconds) > LONGEST.total_seconds():
        raise InvalidInput("a duration is at most a hundred years")
    return timedelta(seconds=seconds)
