"""Ids and salts that are the same on every run."""

from __future__ import annotations

import hashlib
from datetime import datetime
from uuid import UUID

from keepward.core.value import to_micros


class CountingIds:
    """UUIDv7 whose random part is a counter; salts are hashes of it. Never for production: salts can be guessed."""

    def __init__(self, start: int = 0) -> None:
        self._next = start
        self._millis = 0

    def new_id(self, now: datetime) -> str:
        """Return the next id."""
        self._next += 1
        self._millis = max(self._millis, to_micros(now) // 1000)
        high, low = self._next >> 62, self._next & (2**62 - 1)
        return str(UUID(int=(self._millis << 80) | (7 << 76) | (high << 64) | (2 << 62) | low))

    def salt(self) -> bytes:
        """Return the next 16 bytes."""
        self._next += 1
        return hashlib.sha256(f"salt {self._next}".encode()).digest()[:16]
