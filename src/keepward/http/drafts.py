"""Drafts: changes that a caller collects over several calls, and proposes together.

Invariants
(1) A draft is kept in memory alone, for an hour at most: what no gate has judged is never written to disk.
(2) It is seen and used by the principal who began it and by nobody else, in the tenant and scope it was begun in.
(3) It is proposed once. When that fails by an error, as against a refusal, it stays and can be finished later.
(4) There is a limit to what one principal, and all of them together, can have begun.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from starlette.requests import Request

from keepward.calls.draft import Draft
from keepward.errors import Conflict, InvalidInput, NotFound
from keepward.http.bodies_changes import InsertOp, Op
from keepward.http.credentials import serving_of
from keepward.http.problems import Problem
from keepward.memory import Memory
from keepward.model.proposal import Outcome

#: How long a draft is kept.
TERM = timedelta(hours=1)
#: Most drafts of one principal and of all; most changes in one draft, and most characters of their JSON.
MOST_OWN = 16
MOST = 512
MOST_CHANGES = 500
MOST_CHARACTERS = 4_000_000
_making = threading.Lock()


@dataclass(slots=True, kw_only=True, eq=False)
class Begun:
    """A draft under way."""

    id: str
    principal: str
    tenant: str
    scope: str
    draft: Draft = field(repr=False)
    reason: str = field(repr=False)
    session: str | None = field(repr=False)
    #: When it ends, by the store's clock for people, and by the server's monotonic clock.
    expires_at: datetime
    until: float
    #: (op, id) of each change, in order.
    staged: list[tuple[str, str]] = field(default_factory=list)
    characters: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, changes: list[Op]) -> list[str | None]:
        """Stage changes, all or none; return the id that each new memory will have, None for other changes."""
        size = sum(len(each.model_dump_json(exclude_unset=True)) for each in changes)
        if len(self.staged) + len(changes) > MOST_CHANGES or self.characters + size > MOST_CHARACTERS:
            detail = f"a draft holds at most {MOST_CHANGES} changes and 4 MB; finish this one and begin another"
            raise Problem(413, "too_large", detail)
        # Staged aside first: a change that cannot be read must not leave half of a call behind.
        ready: list[Callable[[], str | None]] = [_reader(self.draft, each) for each in changes]
        ids = [put() for put in ready]
        named = [made or getattr(each, "id", "") for made, each in zip(ids, changes, strict=True)]
        self.staged += [(each.op, name) for each, name in zip(changes, named, strict=True)]
        self.characters += size
        return ids


class Drafts:
    """The drafts of one server."""

    def __init__(self, *, monotonic: Callable[[], float], random: Callable[[int], bytes]) -> None:
        self._monotonic, self._random = monotonic, random
        self._lock = threading.Lock()
        self._begun: OrderedDict[str, Begun] = OrderedDict()

    def begin(self, memory: Memory, *, reason: str, session: str | None) -> Begun:
        """Begin a draft of the handle's principal.

        Raises:
            InvalidInput: the reason is blank.
            Conflict: there are too many drafts; see (4).
        """
        if not reason.strip():
            raise InvalidInput("say why: a change carries a `reason`")
        principal = _principal(memory)
        with self._lock:
            self._forget_old()
            own = sum(1 for each in self._begun.values() if each.principal == principal)
            if own >= MOST_OWN:
                raise Conflict(f"there are {own} drafts of yours already; finish or discard one")
            if len(self._begun) >= MOST:
                raise Conflict("this server keeps no more drafts now; finish one, or send the changes in one edit")
            begun = Begun(
                id=self._random(16).hex(),
                principal=principal,
                tenant=memory.tenant,
                scope=memory.scope,
                draft=memory.draft(reason=reason, session=session),
                reason=reason,
                session=session,
                expires_at=memory.now + TERM,
                until=self._monotonic() + TERM.total_seconds(),
            )
            self._begun[begun.id] = begun
        return begun

    @contextmanager
    def held(self, memory: Memory, name: str) -> Iterator[Begun]:
        """Give a draft of the handle's principal, to one caller at a time.

        Raises:
            NotFound: there is none by that name, it has ended, or it is somebody else's (2).
        """
        begun = self._find(memory, name)
        with begun.lock:
            # Finished or discarded while this call waited for it.
            self._find(memory, name)
            yield begun

    def drop(self, begun: Begun) -> None:
        """Forget a draft; the caller holds it."""
        begun.draft.discard()
        with self._lock:
            self._begun.pop(begun.id, None)

    def clear(self) -> None:
        """Forget all drafts: what was erased might be in one."""
        with self._lock:
            self._begun.clear()

    def _find(self, memory: Memory, name: str) -> Begun:
        with self._lock:
            self._forget_old()
            begun = self._begun.get(name)
        here = None if begun is None else (begun.principal, begun.tenant, begun.scope)
        if begun is None or here != (_principal(memory), memory.tenant, memory.scope):
            raise NotFound("there is no draft by that id; drafts are kept for an hour, and not over a restart")
        return begun

    def _forget_old(self) -> None:
        now = self._monotonic()
        # Terms are equal, so the first ones are the oldest.
        while self._begun and next(iter(self._begun.values())).until <= now:
            self._begun.popitem(last=False)


def drafts_of(request: Request) -> Drafts:
    """Return the drafts of the server that a request came to."""
    state = request.app.state
    with _making:
        if not hasattr(state, "drafts"):
            serving = serving_of(request)
            state.drafts = Drafts(monotonic=serving.monotonic, random=serving.random)
    drafts: Drafts = state.drafts
    return drafts


def stage(draft: Draft, change: Op) -> str | None:
    """Stage a change as a body has it; return the id that a new memory will have.

    Raises:
        InvalidInput: an instant, duration or scope that cannot be read.
    """
    return _reader(draft, change)()


def _reader(draft: Draft, change: Op) -> Callable[[], str | None]:
    """Read a change, and return what stages it."""
    if isinstance(change, InsertOp):
        fields: dict[str, Any] = change.given("op", "text")
        text = change.text
        return lambda: draft.insert(text, **fields)
    made = change.change()

    def put() -> None:
        draft.stage(made)

    return put


def finished(draft: Draft) -> Outcome:
    """Propose what was staged; return what became of it.

    Raises:
        InvalidInput: nothing was.
    """
    with draft:
        pass
    if draft.outcome is None:
        raise InvalidInput("there is nothing to do: give at least one change")
    return draft.outcome


def _principal(memory: Memory) -> str:
    return memory.actor.credential or memory.actor.label
