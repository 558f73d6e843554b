"""State: what a server remembers between requests, each thing under a kind, an owner and a name, for its time.

The protocol is what several servers of one store share, in their database (``store.shared``). ``LocalState`` is one
server's own memory.

Invariants
(1) Each call is atomic: of two that add the same name one adds it and the other finds it.
(2) An entry is gone when its time is over, and where its kind is full the one changed longest ago goes first.
(3) Nothing in here can be read on a disk: drafts and answers hold text that no gate has judged, or that may be erased.
(4) A principal has one allowance for all its calls; it fills up evenly, to the whole of a minute at most.
(5) A call that is sent again under its ``Idempotency-Key`` within a day is answered again; the same key with another
    call is refused, and one that a server which runs still carries out is a conflict. An erasure empties all answers.
    What says nothing of the call itself (credential, rate, size, a fault of the server) is not held.
"""

from __future__ import annotations

import hashlib
import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from keepward.http.problems import Problem
from keepward.model.state import Kind


class State(Protocol):
    """Entries that end by themselves."""

    @property
    def me(self) -> int:
        """Return the number of this server."""

    def alive(self, number: int) -> bool:
        """Whether the server of a number runs."""

    def now(self) -> float:
        """Return the seconds of the clock by which entries end."""

    def get(self, kind: Kind, name: str, *, owner: str = "") -> Any:
        """Return the value of an entry; None where there is none."""

    def change(self, kind: Kind, name: str, new: Callable[[Any], Any], *, owner: str = "") -> Any:
        """Put what ``new`` makes of an entry's value (None where there is none) in its place, and return it.

        None removes the entry; what ``new`` raises leaves it as it was.
        """

    def count(self, kind: Kind, *, owner: str | None = None) -> int:
        """Return how many entries there are, of one owner or of all."""

    def clear(self, kind: Kind) -> None:
        """Remove all entries of a kind."""


@dataclass(slots=True)
class _Entry:
    value: Any
    until: float
    size: int


@dataclass(slots=True)
class _Entries:
    #: By owner and name, the one changed longest ago first.
    held: OrderedDict[tuple[str, str], _Entry] = field(default_factory=OrderedDict)
    size: int = 0

    def pop(self, key: tuple[str, str]) -> _Entry | None:
        entry = self.held.pop(key, None)
        self.size -= entry.size if entry else 0
        return entry

    def put(self, key: tuple[str, str], entry: _Entry) -> None:
        self.pop(key)
        self.held[key] = entry
        self.size += entry.size


class Shares(State, Protocol):
    """The state of all servers of one database, and news of their commits."""

    @property
    def name(self) -> str:
        """Name the store, in a few characters."""

    @property
    def hears(self) -> bool:
        """Whether news of commits come at once."""

    def hearing(self, hear: Callable[[str], None]) -> AbstractContextManager[None]:
        """Call a function with the tenant of each commit, from another thread; empty for any tenant's."""


class LocalState:
    """State in the memory of this process, lost with it; its methods are those of ``State``."""

    #: There is no other server.
    me = 0

    def __init__(self, clock: Callable[[], float]) -> None:
        self.now = clock
        self._lock = threading.RLock()
        self._kinds: dict[str, _Entries] = {}

    def get(self, kind: Kind, name: str, *, owner: str = "") -> Any:
        with self._lock:
            entry = self._live(kind, (owner, name)).held.get((owner, name))
            return None if entry is None else entry.value

    def change(self, kind: Kind, name: str, new: Callable[[Any], Any], *, owner: str = "") -> Any:
        key = (owner, name)
        with self._lock:
            entries = self._live(kind, key)
            before = entries.held.get(key)
            value = new(None if before is None else before.value)
            if value is None:
                entries.pop(key)
                return None
            until = self.now() + kind.seconds if before is None or kind.renewed else before.until
            if before is None:
                self._make_room(kind, entries, owner)
            entries.put(key, _Entry(value, until, kind.size(value) if kind.most_bytes else 0))
            while kind.most_bytes and entries.size > kind.most_bytes and len(entries.held) > 1:
                entries.pop(next(iter(entries.held)))
            return value

    def count(self, kind: Kind, *, owner: str | None = None) -> int:
        with self._lock:
            return sum(owner in (None, each) for each, _ in self._live(kind).held)

    def alive(self, number: int) -> bool:
        """Whether the server of a number runs: this one."""
        return number == self.me

    def clear(self, kind: Kind) -> None:
        with self._lock:
            self._kinds.pop(kind.name, None)

    def _live(self, kind: Kind, asked: tuple[str, str] | None = None) -> _Entries:
        """Return the entries of a kind without those at its front that are over, nor the one asked for if it is."""
        entries, now = self._kinds.setdefault(kind.name, _Entries()), self.now()
        while entries.held:
            key, entry = next(iter(entries.held.items()))
            if entry.until > now:
                break
            entries.pop(key)
        if asked and asked in entries.held and entries.held[asked].until <= now:
            entries.pop(asked)
        return entries

    def _make_room(self, kind: Kind, entries: _Entries, owner: str) -> None:
        """Let the oldest go where one more would be too many: who has many loses its own first."""
        own = [key for key in entries.held if key[0] == owner] if kind.most_each else []
        if kind.most_each and len(own) >= kind.most_each:
            entries.pop(own[0])
        elif len(entries.held) >= kind.most:
            entries.pop(next(iter(entries.held)))


HEADER = "Idempotency-Key"
REPLAYED = "Idempotency-Replayed"
_KEY = re.compile(r"[\x21-\x7e]{1,255}")
_PASSING = frozenset({401, 403, 408, 413, 415, 429})


class Rates:
    """The allowances of all principals; ``per_minute`` 0 is no limit."""

    #: What is left and when that was so; after a minute of rest it is all there again.
    KIND = Kind(name="rate", of=tuple[float, ...], seconds=60, renewed=True, most=4096)

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
    #: Number of the server that carries it out.
    by: int
    #: None while the call is being carried out.
    answer: Answered | None = None


def _size(call: _Call) -> int:
    return len(call.answer.body) if call.answer else 0


class Answers:
    """The answers that were given under a key, by principal."""

    KIND = Kind(
        name="answer", of=_Call, seconds=24 * 3600, most=10_000, most_each=1_000, most_bytes=64 << 20, size=_size
    )

    def __init__(self, state: State) -> None:
        self._state = state

    def begin(self, principal: str, key: str, fingerprint: bytes) -> Answered | None:
        """Return the answer that was given under a key; None when the call is to be carried out now.

        After None, ``hold`` or ``drop`` has to follow.

        Raises:
            Problem: see (5); or the key is not 1 to 255 printable ASCII characters.
        """
        if not _KEY.fullmatch(key):
            raise Problem(400, "bad_request", f"{HEADER} is 1 to 255 printable ASCII characters")
        found: _Call | None = None
        gone: _Call | None = None

        def begun(before: _Call | None) -> _Call:
            nonlocal found
            # What a server that died was carrying out is carried out again: the gates know what was stored already.
            found = None if before == gone else before
            return found or _Call(fingerprint, self._state.me)

        self._state.change(self.KIND, key, begun, owner=principal)
        if found and not found.answer and found.fingerprint == fingerprint and not self._state.alive(found.by):
            gone = found
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
        """Hold the answer of a call that was begun, unless it says nothing of the call (5)."""
        passing = answer.status >= 500 or answer.status in _PASSING
        # Where an erasure came in between there is no call any more, and its answer is not held either.
        self._state.change(
            self.KIND, key, lambda call: replace(call, answer=answer) if call and not passing else None, owner=principal
        )

    def drop(self, principal: str, key: str) -> None:
        """Forget a call, whatever became of it."""
        self._state.change(self.KIND, key, lambda _: None, owner=principal)

    def clear(self) -> None:
        """Forget everything; see (5)."""
        self._state.clear(self.KIND)


def fingerprint(parts: Iterable[str | bytes | None]) -> bytes:
    """Return the SHA-256 that tells calls apart: of each part with its length, in order."""
    state = hashlib.sha256()
    for part in parts:
        data = b"\0" if part is None else part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part
        state.update(len(data).to_bytes(8, "big") + data)
    return state.digest()
