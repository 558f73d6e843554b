"""``AsyncDraft``: changes that are collected in an ``async with`` block."""

from __future__ import annotations

import functools
from collections.abc import Callable, Coroutine
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, TypeVar

from keepward.aio.threads import Threads
from keepward.app.writes import Draft
from keepward.domain.change import KEEP
from keepward.domain.proposal import Outcome

P = ParamSpec("P")
R = TypeVar("R")


def _stages(verb: Callable[Concatenate[Draft, P], R]) -> Callable[Concatenate[AsyncDraft, P], Coroutine[Any, Any, R]]:
    """Return what stages a change as one of ``AsyncDraft``."""

    @functools.wraps(verb)
    async def awaited(self: AsyncDraft, /, *args: P.args, **named: P.kwargs) -> R:
        return await self._threads.run(verb, self._draft, *args, **named)

    return awaited


class AsyncDraft:
    """Changes being collected; nothing is judged or visible until the block ends."""

    def __init__(self, draft: Draft, threads: Threads) -> None:
        self._draft, self._threads = draft, threads

    async def insert(self, text: str, **fields: Any) -> str:
        """Stage a new memory with the fields of ``remember``; return the id it will have."""
        return await self._threads.run(self._draft.insert, text, **fields)

    async def replace(self, memory_id: str, text: str = KEEP, **fields: Any) -> None:
        """Stage new text or fields for a memory."""
        await self._threads.run(self._draft.replace, memory_id, text, **fields)

    async def append(self, memory_id: str, text: str, **fields: Any) -> None:
        """Stage an addition."""
        await self._threads.run(self._draft.append, memory_id, text, **fields)

    async def move(self, memory_id: str, **fields: Any) -> None:
        """Stage a move to another tier, scope or key."""
        await self._threads.run(self._draft.move, memory_id, **fields)

    retire = _stages(Draft.retire)
    supersede = _stages(Draft.supersede)
    promote = _stages(Draft.promote)
    restore = _stages(Draft.restore)
    reinforce = _stages(Draft.reinforce)
    stage = _stages(Draft.stage)
    discard = _stages(Draft.discard)

    @property
    def outcome(self) -> Outcome | None:
        """What became of it; None until the block has ended without an error."""
        return self._draft.outcome

    def __len__(self) -> int:
        return len(self._draft)

    async def __aenter__(self) -> AsyncDraft:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._threads.run(self._draft.__exit__, kind, fault, trace)
