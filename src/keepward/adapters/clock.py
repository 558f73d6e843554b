"""The system's clock."""

from __future__ import annotations

from datetime import UTC, datetime


class SystemClock:
    """Tells the present instant in UTC; ``datetime`` counts whole microseconds already."""

    def now(self) -> datetime:
        """Return the present instant."""
        return datetime.now(UTC)
