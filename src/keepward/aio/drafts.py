"""``AsyncDraft``: changes that are collected in an ``async with`` block."""

from __future__ import annotations

import functools
from collections.abc import Callable, Coroutine
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, TypeVar

from keepward.aio.threads import Threads
from keepward.calls.draft import Draft
from keepward.model.proposal import Outcome

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

    insert = _stages(Draft.insert)
    replace = _stages(Draft.replace)
    append = _stages(Draft.append)
    move = _stages(Draft.move)
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
