"""The system's clock, and new ids and salts from its randomness.

Invariants
(1) Ids of one source increase in the order of their creation, even if the clock stops or is set back.
(2) Two processes never share a counter: a fork resets the random part.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime

from keepward.core.value import to_micros
from keepward.locks import ForkSafeLock

_COUNTER_BITS = 74


class SystemClock:
    """Returns the current time in UTC; ``datetime`` counts microseconds already."""

    def now(self) -> datetime:
        return datetime.now(UTC)


class RandomIds:
    """UUIDv7 (RFC 9562): 48 bits of milliseconds, then 74 bits that are random and rise within a millisecond."""

    def __init__(self) -> None:
        self._lock = ForkSafeLock()
        self._last = 0
        self._pid = os.getpid()

    def new_id(self, now: datetime) -> str:
        millis = min(max(to_micros(now) // 1000, 0), 2**48 - 1)
        # The top bit is clear, so that the value can count up within one millisecond.
        fresh = (millis << _COUNTER_BITS) | (int.from_bytes(os.urandom(10), "big") & (2 ** (_COUNTER_BITS - 1) - 1))
        with self._lock:
            if self._pid != os.getpid():
                self._pid, self._last = os.getpid(), 0
            value = fresh if fresh > self._last else self._last + 1 + int.from_bytes(os.urandom(3), "big")
            self._last = value
        millis, rest = value >> _COUNTER_BITS, value & (2**_COUNTER_BITS - 1)
        high, low = rest >> 62, rest & (2**62 - 1)
        digits = f"{(millis << 80) | (7 << 76) | (high << 64) | (2 << 62) | low:032x}"
        return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"

    def salt(self) -> bytes:
        return os.urandom(16)
