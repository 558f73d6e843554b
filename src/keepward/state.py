"""Drafts: changes that a caller collects over several calls to a server, and proposes together.

They are entries of the server's state; see ``store.server_state``.

Invariants
(1) A draft is kept for an hour at most, and is seen and used by the principal who began it and by nobody else, in the
    tenant and scope it was begun in. Nothing staged is judged or visible before the end.
(2) A draft is proposed once. When that fails by an error, as against a refusal, it stays and can be finished later.
(3) There is a limit to what one principal, and all of them together, can have begun.
"""

from __future__ import annotations

import dataclasses
import json
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from msgspec.structs import replace

from keepward.errors import Conflict, InvalidInput, NotFound
from keepward.memory import Memory
from keepward.model.change import BY_OPERATION, Change, Insert
from keepward.model.proposal import Outcome
from keepward.store.server_state import Kind, ServerState, SharedState
from keepward.verbs import arguments
from keepward.verbs.write import new_memory

__all__ = ["Draft", "Drafts", "Kind", "ServerState", "SharedState", "principal_of", "staged"]

#: Most drafts of one principal, and of all together; most changes in one draft, and most characters of their JSON.
MOST_OWN = 16
MOST_DRAFTS = 512
MOST_CHANGES = 500
MOST_CHARACTERS = 4_000_000
#: Seconds that a call waits while another proposes its draft, and between two looks.
PATIENCE = 30
_LOOK = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """Changes that a caller collects over several calls, and proposes together."""

    id: str
    tenant: str
    scope: str
    reason: str = field(repr=False)
    session: str | None = field(repr=False)
    expires_at: datetime
    #: Each change as it was sent, as JSON, and the id of the memory that it changes or will make; in order.
    changes: tuple[str, ...] = field(default=(), repr=False)
    ids: tuple[str, ...] = ()
    #: Number of the server that proposes it now.
    by: int | None = None


DRAFT = Kind(name="draft", of=Draft, ttl_s=3600, max_entries=2 * MOST_OWN)


def principal_of(handle: Memory) -> str:
    """Return whose drafts, allowance and answers a handle's are: the token's id, or the name of who has none."""
    return handle.actor.credential or handle.actor.label


def staged(memory: Memory, given: Mapping[str, Any]) -> Change:
    """Return a change as JSON has it: an ``op`` with the fields of its change, of a new memory those of ``remember``.

    Raises:
        InvalidInput: an instant, duration or scope that cannot be read.
    """
    fields = dict(given)
    makes = BY_OPERATION[fields.pop("op")]
    if makes is Insert:
        return new_memory(memory._session, fields.pop("text"), fields)  # noqa: SLF001  a surface of the handle
    made: Change = arguments.change(makes, fields)
    return made


class TooLarge(InvalidInput):
    """A draft takes no more; finish it, and begin another."""

    code = "too_large"


class Drafts:
    """The drafts of one state; ``random`` gives that many random bytes."""

    def __init__(self, state: ServerState, random: Callable[[int], bytes] = secrets.token_bytes) -> None:
        self._state, self._random = state, random

    def begin(self, memory: Memory, reason: str, session: str | None = None) -> Draft:
        """Begin a draft.

        Raises:
            Conflict: there is no room for one more (3).
        """
        if not reason.strip():
            raise InvalidInput("say why: a change carries a `reason`")
        owner = principal_of(memory)
        own = self._state.count(DRAFT, owner=owner)
        if own >= MOST_OWN:
            raise Conflict(f"there are {own} drafts of yours already; finish or discard one")
        if self._state.count(DRAFT) >= MOST_DRAFTS:
            raise Conflict("this server keeps no more drafts now; finish one, or send the changes in one edit")
        draft = Draft(
            id=self._random(16).hex(),
            tenant=memory.tenant,
            scope=memory.scope,
            reason=reason,
            session=session,
            expires_at=memory.now + timedelta(seconds=DRAFT.ttl_s),
        )
        self._state.change(DRAFT, draft.id, lambda _: draft, owner=owner)
        return draft

    def get(self, memory: Memory, name: str) -> Draft:
        """Return a draft; see ``change``."""
        draft: Draft = self.change(memory, name, lambda draft: draft)
        return draft

    def stage(self, memory: Memory, name: str, sent: Sequence[Mapping[str, Any]]) -> tuple[Draft, list[Change]]:
        """Add changes as ``staged`` takes them; return the draft and what was added. See ``change``.

        Raises:
            InvalidInput: one of them cannot be read, and none is staged; or it would hold too many.
        """
        made = [staged(memory, each) for each in sent]
        texts = tuple(json.dumps(each, ensure_ascii=False, separators=(",", ":")) for each in sent)

        def more(draft: Draft) -> Draft:
            changes = (*draft.changes, *texts)
            if len(changes) > MOST_CHANGES or sum(map(len, changes)) > MOST_CHARACTERS:
                raise TooLarge(f"a draft holds at most {MOST_CHANGES} changes and 4 MB; finish this one, begin another")
            return dataclasses.replace(draft, changes=changes, ids=(*draft.ids, *(each.id for each in made)))

        return self.change(memory, name, more), made

    def finish(self, memory: Memory, name: str) -> Outcome:
        """Propose what was staged, together; after an error the draft is still there. See ``change``."""
        draft = self.change(memory, name, lambda draft: dataclasses.replace(draft, by=self._state.me))
        left: Draft | None = dataclasses.replace(draft, by=None)
        try:
            made = [
                replace(staged(memory, json.loads(text)), id=each)
                for text, each in zip(draft.changes, draft.ids, strict=True)
            ]
            outcome = memory.propose(made, reason=draft.reason, session=draft.session)
            left = None
        finally:
            # One that an erasure has ended meanwhile stays so.
            self._state.change(DRAFT, name, lambda there: there and left, owner=principal_of(memory))
        return outcome

    def discard(self, memory: Memory, name: str) -> Draft:
        """Drop a draft and everything staged in it; return what it was. See ``change``."""
        last: list[Draft] = []
        self.change(memory, name, last.append)
        return last[-1]

    def change(self, memory: Memory, name: str, new: Callable[[Draft], Draft | None]) -> Any:
        """Put what ``new`` makes of a draft in its place, once nobody proposes it; None ends it.

        Raises:
            NotFound: there is none by that name, it has ended, or it is somebody else's (1).
            Conflict: it is being proposed, and that takes long.
        """
        until = time.monotonic() + PATIENCE
        busy: int | None = None
        dead: set[int] = set()

        def changed(draft: Draft | None) -> Draft | None:
            nonlocal busy
            if draft is None or (draft.tenant, draft.scope) != (memory.tenant, memory.scope):
                raise NotFound("there is no draft by that id; drafts are kept for an hour, and not over a restart")
            # A server that died finishes nothing.
            busy = None if draft.by in dead else draft.by
            return new(draft) if busy is None else draft

        while True:
            after = self._state.change(DRAFT, name, changed, owner=principal_of(memory))
            if busy is None:
                return after
            if not self._state.alive(busy):
                dead.add(busy)
            elif time.monotonic() > until:
                raise Conflict("this draft is being proposed; ask for it again, or for what it has become")
            else:
                time.sleep(_LOOK)
