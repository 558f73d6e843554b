"""A clock that tests set by hand."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

#: Where test time begins.
START = datetime(2026, 3, 1, 9, 30, tzinfo=UTC)


class SteppingClock:
    """Stands still until it is moved."""

    def __init__(self, start: datetime = START) -> None:
        self._now = start

    def now(self) -> datetime:
        """Return the instant it stands at."""
        return self._now

    def advance(self, span: timedelta) -> datetime:
        """Move by a span, which may be negative; return the new instant."""
        self._now += span
        return self._now

    def move(self, **span: float) -> None:
        """Move by a span that is named, such as ``hours=1``."""
        self._now += timedelta(**span)

    def set(self, instant: datetime) -> None:
        """Move to an instant."""
        self._now = instant
