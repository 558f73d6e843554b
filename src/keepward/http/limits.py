"""Limits: how often one principal may change something, and what is answered again instead of carried out again.

Invariants
(1) A principal has one allowance for all its calls; it fills up evenly, to the whole of a minute at most.
(2) A call that is sent again under its ``Idempotency-Key`` within a day is answered again; the same key with another
    call is refused, and one that is still being carried out is a conflict.
(3) An erasure empties all answers. What says nothing of the call itself (credential, rate, size, a fault of the
    server) is not held.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from keepward.http.problems import Problem
from keepward.http.state import Kind, State

HEADER = "Idempotency-Key"
REPLAYED = "Idempotency-Replayed"
_KEY = re.compile(r"[\x21-\x7e]{1,255}")
_PASSING = frozenset({401, 403, 408, 413, 415, 429})


class Rates:
    """The allowances of all principals; ``per_minute`` 0 is no limit."""

    #: What is left and when that was so; after a minute of rest it is all there again.
    KIND = Kind(name="rate", seconds=60, renewed=True, most=4096)

    def __init__(self, per_minute: int, state: State) -> None:
        self._per_minute, self._state = per_minute, state

    def take(self, principal: str) -> float:
        """Count one change; return 0, or the seconds to wait when it is one too many and was not counted."""
        if not self._per_minute:
            return 0.0
        whole, refill, now = float(self._per_minute), self._per_minute / 60, self._state.now()
        wait = 0.0

        def taken(before: tuple[float, float] | None) -> tuple[float, float]:
            nonlocal wait
            left, at = before or (whole, now)
            left = min(whole, left + (now - at) * refill)
            # Rounding must not cost the last one of a minute.
            wait = 0.0 if left >= 1 - 1e-9 else (1 - left) / refill
            return (left if wait else left - 1, now)

        self._state.change(self.KIND, principal, taken)
        return wait


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """An answer as it was given."""

    status: int
    headers: tuple[tuple[bytes, bytes], ...]
    body: bytes = field(repr=False)
    #: Tenant that it was about, and the number of its newest commit at that moment.
    tenant: str
    seq: int


@dataclass(frozen=True, slots=True)
class _Call:
    fingerprint: bytes
    #: None while the call is being carried out.
    answer: Answered | None = None


def _size(call: _Call) -> int:
    return len(call.answer.body) if call.answer else 0


class Answers:
    """The answers that were given under a key, by principal."""

    KIND = Kind(name="answer", seconds=24 * 3600, most=10_000, most_each=1_000, most_bytes=64 << 20, size=_size)

    def __init__(self, state: State) -> None:
        self._state = state

    def begin(self, principal: str, key: str, fingerprint: bytes) -> Answered | None:
        """Return the answer that was given under a key; None when the call is to be carried out now.

        After None, ``hold`` or ``drop`` has to follow.

        Raises:
            Problem: see (2); or the key is not 1 to 255 printable ASCII characters.
        """
        if not _KEY.fullmatch(key):
            raise Problem(400, "bad_request", f"{HEADER} is 1 to 255 printable ASCII characters")
        found: _Call | None = None

        def begun(before: _Call | None) -> _Call:
            nonlocal found
            found = before
            return before or _Call(fingerprint)

        self._state.change(self.KIND, key, begun, owner=principal)
        if found is None:
            return None
        if found.fingerprint != fingerprint:
            raise Problem(422, "idempotency_reused", f"this {HEADER} was sent with another call; take a new one")
        if found.answer is None:
            detail = "the call under this key is being carried out; ask again"
            raise Problem(409, "idempotency_in_progress", detail, headers={"Retry-After": "1"})
        return found.answer

    def hold(self, principal: str, key: str, answer: Answered) -> None:
        """Hold the answer of a call that was begun, unless it says nothing of the call (3)."""
        passing = answer.status >= 500 or answer.status in _PASSING
        # Where an erasure came in between there is no call any more, and its answer is not held either.
        self._state.change(
            self.KIND, key, lambda call: replace(call, answer=answer) if call and not passing else None, owner=principal
        )

    def drop(self, principal: str, key: str) -> None:
        """Forget a call, whatever became of it."""
        self._state.change(self.KIND, key, lambda _: None, owner=principal)

    def clear(self) -> None:
        """Forget everything; see (3)."""
        self._state.clear(self.KIND)


def fingerprint(parts: Iterable[str | bytes | None]) -> bytes:
    """Return the SHA-256 that tells calls apart: of each part with its length, in order."""
    state = hashlib.sha256()
    for part in parts:
        data = b"\0" if part is None else part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part
        state.update(len(data).to_bytes(8, "big") + data)
    return state.digest()
