"""Slots: limits of concurrent work for each token, so that no token starves the others.

A request over its limit waits without a worker thread. All tokens together, except owners', have a limit too: the
other workers are reserved for owners. A free slot goes to the waiting token with the fewest slots.
"""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from keepward.http.requests import Problem

#: Maximum seconds of waiting for a slot, and waiting requests of one token.
SLOT_TIMEOUT_S = 10.0
MAX_WAITERS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """One kind of work and its limits in one server."""

    name: str
    #: Slots of one token, and of all tokens together except owners'.
    token: int
    agents: int
    #: Whether a request over a limit waits for a slot; else it is refused at once.
    waits: bool = True


CALL = Work(name="calls", token=8, agents=16)
#: Requests that read much of the store. With calls and imports they leave 16 of 40 worker threads to owners.
COSTLY = Work(name="costly calls", token=2, agents=4)
IMPORT = Work(name="imports", token=2, agents=4, waits=False)
STREAM = Work(name="event streams", token=8, agents=64, waits=False)


@dataclass(slots=True, eq=False)
class _Waiter:
    work: Work
    token: str
    owner: bool
    granted: asyncio.Future[None]


class Slots:
    """The slots of one server."""

    def __init__(self) -> None:
        # Reentrant: the garbage collector may release a slot while this thread acquires another.
        self._lock = threading.RLock()
        self._in_use: Counter[tuple[Work, str]] = Counter()
        self._agents: Counter[Work] = Counter()
        self._waiting: list[_Waiter] = []

    def in_use(self, work: Work) -> int:
        """Return the number of used slots of a kind."""
        with self._lock:
            return sum(count for (kind, _), count in self._in_use.items() if kind is work)

    async def acquire(self, work: Work, token: str, *, owner: bool = False) -> Callable[[], None]:
        """Take a slot for a token's request, waiting for one if the work allows it. Return a function that releases it.

        Raises:
            Problem: 429, no slot became free in time.
        """
        waiter = _Waiter(work, token, owner, asyncio.get_running_loop().create_future())
        release = partial(self._release, waiter)
        with self._lock:
            if self._fits(waiter):
                self._count(waiter, 1)
                return release
            if not work.waits or sum(waiter.token == token for waiter in self._waiting) >= MAX_WAITERS:
                raise _too_many_requests(work)
            self._waiting.append(waiter)
        try:
            await asyncio.wait_for(asyncio.shield(waiter.granted), SLOT_TIMEOUT_S)
        except BaseException as exc:
            with self._lock:
                if waiter not in self._waiting:
                    release()
                else:
                    self._waiting.remove(waiter)
            if isinstance(exc, TimeoutError):
                raise _too_many_requests(work) from None
            raise
        return release

    def _fits(self, waiter: _Waiter) -> bool:
        own = self._in_use[waiter.work, waiter.token] < waiter.work.token
        return own and (waiter.owner or self._agents[waiter.work] < waiter.work.agents)

    def _count(self, waiter: _Waiter, change: int) -> None:
        key = (waiter.work, waiter.token)
        self._in_use[key] += change
        self._agents[waiter.work] += 0 if waiter.owner else change
        if not self._in_use[key]:
            del self._in_use[key]

    def _release(self, waiter: _Waiter) -> None:
        with self._lock:
            self._count(waiter, -1)
            ready = [
                candidate for candidate in self._waiting if candidate.work is waiter.work and self._fits(candidate)
            ]
            if not ready:
                return
            following = min(ready, key=lambda candidate: self._in_use[candidate.work, candidate.token])
            self._waiting.remove(following)
            self._count(following, 1)
            following.granted.get_loop().call_soon_threadsafe(_grant, following.granted)


def _grant(granted: asyncio.Future[None]) -> None:
    if not granted.done():
        granted.set_result(None)


def _too_many_requests(work: Work) -> Problem:
    detail = f"this token or the server has too many concurrent {work.name}; retry when one has ended"
    return Problem(429, "rate_limited", detail, headers={"Retry-After": "5"})
