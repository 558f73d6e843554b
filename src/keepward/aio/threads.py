"""Threads: where an awaited verb is at work, and what a cancellation does to it.

Invariants
(1) A cancelled await ends when what it began is over: a call that had not begun never happens, one that had is
    whole. The await is cancelled all the same.
(2) Ending waits for what is under way; nothing begins after it.
"""

from __future__ import annotations

import asyncio
import contextvars
import functools
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

from keepward.errors import InvalidInput

R = TypeVar("R")

#: Threads of one opened store; one at a time writes, the others read.
THREADS = 8


class Threads:
    """The threads of one opened store."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="keepward")

    async def run(self, call: Callable[..., R], /, *args: Any, **named: Any) -> R:
        """Call in a thread and return what comes of it; see (1)."""
        context = contextvars.copy_context()
        try:
            job = self._pool.submit(context.run, functools.partial(call, *args, **named))
        except RuntimeError as fault:
            raise InvalidInput("the store is closed; open it again") from fault
        return await over(job)

    async def end(self, last: Callable[[], None]) -> None:
        """Wait for what is under way, then make the last call; a second time does nothing; see (2)."""

        def ending() -> None:
            self._pool.shutdown(wait=True)
            last()

        # A pool cannot wait for itself.
        with ThreadPoolExecutor(1, thread_name_prefix="keepward-end") as other:
            await over(other.submit(ending))


async def over(job: Future[R]) -> R:
    """Wait for a call; a cancellation is passed on once the call is over, or will never begin."""
    waiter = asyncio.wrap_future(job)
    try:
        return await asyncio.shield(waiter)
    except asyncio.CancelledError:
        if not job.cancel():
            while not waiter.done():
                try:
                    await asyncio.wait([waiter])
                except asyncio.CancelledError:
                    # Cancelled again: the first one is passed on below.
                    continue
            if not waiter.cancelled():
                # Seen here, so that nobody is told of an error that nobody waited for.
                waiter.exception()
        raise
