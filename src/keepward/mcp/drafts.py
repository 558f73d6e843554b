"""Drafts of an agent: edits collected over several calls, proposed as one.

Invariants
(1) A draft is kept in this process alone: a text that no gate has judged is never written to disk.
(2) Only the principal that began a draft sees it, from the tenant and scope where it was begun.
(3) A draft ends by being finished, by being discarded, or by itself after an hour; there is room for a limited
    number, and who begins one too many is told, while nothing of others is dropped.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from keepward.errors import InvalidInput, NotFound

if TYPE_CHECKING:
    from keepward.calls.draft import Draft
    from keepward.memory import Memory

#: How long a draft is kept, in seconds.
TERM = 3_600.0
#: Most drafts of all principals, and of one; most edits in one.
MOST, MOST_EACH, MOST_EDITS = 1_024, 16, 100


@dataclass(slots=True)
class Edits:
    """One draft and what the blocks in it would read."""

    draft: Draft
    until: float
    #: Id and text of each block touched.
    staged: dict[str, tuple[str, str]] = field(default_factory=dict)


class Drafts:
    """The drafts begun in this process."""

    def __init__(self, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._kept: dict[tuple[str, ...], dict[str, Edits]] = {}

    def begin(self, memory: Memory, reason: str) -> str:
        """Begin a draft; return its id.

        Raises:
            InvalidInput: there is no room for one more.
        """
        with self._lock:
            self._expire()
            own = self._kept.setdefault(_owner(memory), {})
            if len(own) >= MOST_EACH or sum(map(len, self._kept.values())) >= MOST:
                raise InvalidInput("too many edits are begun; finish or discard one first")
            name = secrets.token_hex(8)
            own[name] = Edits(memory.draft(reason=reason), self._monotonic() + TERM)
            return name

    def of(self, memory: Memory, name: str) -> Edits:
        """Return a draft of the caller's own.

        Raises:
            NotFound: there is none by that id, or it has ended.
        """
        with self._lock:
            self._expire()
            found = self._kept.get(_owner(memory), {}).get(name)
        if found is None:
            raise NotFound("there are no such edits here; they end after an hour: begin them again")
        if len(found.draft) >= MOST_EDITS:
            raise InvalidInput(f"{MOST_EDITS} edits go together at most; finish these first")
        return found

    def take(self, memory: Memory, name: str) -> Edits:
        """Return a draft of the caller's own and end it."""
        with self._lock:
            self._expire()
            found = self._kept.get(_owner(memory), {}).pop(name, None)
        if found is None:
            raise NotFound("there are no such edits here; they end after an hour: begin them again")
        return found

    def put_back(self, memory: Memory, name: str, edits: Edits) -> None:
        """Keep a draft that was taken and could not be proposed; its hour goes on."""
        with self._lock:
            self._kept.setdefault(_owner(memory), {})[name] = edits

    def _expire(self) -> None:
        now = self._monotonic()
        for owner, own in list(self._kept.items()):
            left = {name: edits for name, edits in own.items() if edits.until > now}
            if left:
                self._kept[owner] = left
            else:
                del self._kept[owner]


def _owner(memory: Memory) -> tuple[str, ...]:
    actor = memory.actor
    return (actor.label, actor.credential or "", memory.tenant, memory.scope)
