"""State: what a server remembers between requests, each thing under a kind, an owner and a name, for its time.

The protocol is what several servers of one store need to share; ``LocalState`` is one server's own memory.

Invariants
(1) Each call is atomic: of two that add the same name one adds it and the other finds it.
(2) An entry is gone when its time is over, and where its kind is full the one changed longest ago goes first.
(3) Nothing in here is written to disk: drafts and answers hold text that no gate has judged, or that may be erased.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One kind of entries: how long they last and how many there are at most."""

    name: str
    seconds: float
    #: Whether a change lets an entry last as long again.
    renewed: bool = False
    most: int
    #: Most entries of one owner, and most bytes of all; 0 is no limit.
    most_each: int = 0
    most_bytes: int = 0
    size: Callable[[Any], int] = len


class State(Protocol):
    """Entries that end by themselves."""

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


class LocalState:
    """State in the memory of this process, lost with it."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.now = clock
        self._lock = threading.RLock()
        self._kinds: dict[str, _Entries] = {}

    def get(self, kind: Kind, name: str, *, owner: str = "") -> Any:
        """Return the value of an entry; None where there is none."""
        with self._lock:
            entry = self._live(kind, (owner, name)).held.get((owner, name))
            return None if entry is None else entry.value

    def change(self, kind: Kind, name: str, new: Callable[[Any], Any], *, owner: str = "") -> Any:
        """Put what ``new`` makes of an entry's value in its place; see ``State``."""
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
        """Return how many entries there are, of one owner or of all."""
        with self._lock:
            return sum(owner in (None, each) for each, _ in self._live(kind).held)

    def clear(self, kind: Kind) -> None:
        """Remove all entries of a kind."""
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
