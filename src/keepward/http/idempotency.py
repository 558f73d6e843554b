"""Idempotency: a call that is sent again under its key is answered again and not carried out again.

Invariants
(1) An answer is kept for 24 hours, in memory alone; at most 1,000 of one principal, and 10,000 or 64 MB of all.
(2) The same key with another call is refused; one that is still being carried out is a conflict.
(3) An erasure empties everything that is kept.
(4) What says nothing of the call itself (credential, rate, size, a fault of the server) is not kept.
"""

from __future__ import annotations

import hashlib
import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from keepward.http.problems import Problem

HEADER = "Idempotency-Key"
REPLAYED = "Idempotency-Replayed"
#: Seconds that an answer is kept, and how much is kept at most.
TERM = 24 * 3600.0
MOST = 10_000
MOST_EACH = 1_000
MOST_BYTES = 64 << 20
_KEY = re.compile(r"[\x21-\x7e]{1,255}")
_PASSING = frozenset({401, 403, 408, 413, 415, 429})


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """An answer as it was given."""

    status: int
    headers: tuple[tuple[bytes, bytes], ...]
    body: bytes = field(repr=False)
    #: Tenant that it was about, and the number of its newest commit when the answer was kept.
    tenant: str
    seq: int


@dataclass(slots=True, kw_only=True)
class _Entry:
    fingerprint: bytes
    until: float
    #: None while the call is being carried out.
    kept: Kept | None = None


class Answers:
    """The answers of one server."""

    def __init__(self, *, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._entries: OrderedDict[tuple[str, str], _Entry] = OrderedDict()
        self._bytes = 0

    def begin(self, principal: str, key: str, fingerprint: bytes) -> Kept | None:
        """Return the answer that was given under a key; None when the call is to be carried out now.

        After None, ``keep`` or ``drop`` has to follow.

        Raises:
            Problem: see (2); or the key is not 1 to 255 printable ASCII characters.
        """
        if not _KEY.fullmatch(key):
            raise Problem(400, "bad_request", f"{HEADER} is 1 to 255 printable ASCII characters")
        with self._lock:
            self._forget_old()
            entry = self._entries.get((principal, key))
            if entry is None:
                self._make_room(principal)
                self._entries[principal, key] = _Entry(fingerprint=fingerprint, until=self._monotonic() + TERM)
                return None
            if entry.fingerprint != fingerprint:
                raise Problem(422, "idempotency_reused", f"this {HEADER} was sent with another call; take a new one")
            if entry.kept is None:
                detail = "the call under this key is being carried out; ask again"
                raise Problem(409, "idempotency_in_progress", detail, headers={"Retry-After": "1"})
            return entry.kept

    def keep(self, principal: str, key: str, kept: Kept) -> None:
        """Keep the answer of a call that was begun, unless it says nothing of the call (4)."""
        with self._lock:
            entry = self._entries.get((principal, key))
            # Gone where an erasure came in between (3).
            if entry is None:
                return
            if kept.status >= 500 or kept.status in _PASSING:
                del self._entries[principal, key]
                return
            entry.kept = kept
            self._bytes += len(kept.body)
            while self._bytes > MOST_BYTES and len(self._entries) > 1:
                self._remove(next(iter(self._entries)))

    def drop(self, principal: str, key: str) -> None:
        """Forget a call, whatever became of it."""
        with self._lock:
            if (principal, key) in self._entries:
                self._remove((principal, key))

    def clear(self) -> None:
        """Forget everything; see (3)."""
        with self._lock:
            self._entries.clear()
            self._bytes = 0

    def _forget_old(self) -> None:
        now = self._monotonic()
        # Terms are equal, so the first entries are the oldest.
        while self._entries:
            name, entry = next(iter(self._entries.items()))
            if entry.until > now:
                return
            self._remove(name)

    def _make_room(self, principal: str) -> None:
        own = [name for name in self._entries if name[0] == principal]
        # One that sends many keys pushes out its own first.
        if len(own) >= MOST_EACH:
            self._remove(own[0])
        elif len(self._entries) >= MOST:
            self._remove(next(iter(self._entries)))

    def _remove(self, name: tuple[str, str]) -> None:
        kept = self._entries.pop(name).kept
        self._bytes -= len(kept.body) if kept else 0


def fingerprint(parts: Iterable[str | bytes | None]) -> bytes:
    """Return the SHA-256 that tells calls apart: of each part with its length, in order."""
    state = hashlib.sha256()
    for part in parts:
        data = b"\0" if part is None else part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part
        state.update(len(data).to_bytes(8, "big") + data)
    return state.digest()
