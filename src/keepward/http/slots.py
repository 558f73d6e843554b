"""Slots: how much work one token may do at a time in this server, so that no token starves the others.

A token over its limit waits, without a worker thread. All tokens together, owners' left out, have a limit too: the
rest of the workers is reserved for owners. A free slot goes to the waiting token that holds the fewest.
"""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from keepward.http.requests import Problem

#: Seconds that a call waits for a slot, and how many calls of one token may wait.
SLOT_TIMEOUT_S = 10.0
MAX_WAITERS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """One kind of work and its limits in one server."""

    name: str
    #: Slots of one token, and of all tokens together that are no owner's.
    token: int
    agents: int
    #: Whether a call over a limit waits for a slot; else it is refused at once.
    waits: bool = True


CALL = Work(name="calls", token=8, agents=16)
#: Calls that read much of the store. With calls and imports they leave 16 of 40 worker threads to owners.
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
        # Reentrant: the garbage collector may release a slot while this thread takes another.
        self._lock = threading.RLock()
        self._held: Counter[tuple[Work, str]] = Counter()
        self._agents: Counter[Work] = Counter()
        self._waiting: list[_Waiter] = []

    def held(self, work: Work) -> int:
        """Return how many slots of a kind are in use."""
        with self._lock:
            return sum(count for (each, _), count in self._held.items() if each is work)

    async def take(self, work: Work, token: str, *, owner: bool = False) -> Callable[[], None]:
        """Return what releases a slot of a token, once there is one.

        Raises:
            Problem: 429, there is none in time.
        """
        waiter = _Waiter(work, token, owner, asyncio.get_running_loop().create_future())
        release = partial(self._release, waiter)
        with self._lock:
            if self._fits(waiter):
                self._count(waiter, 1)
                return release
            if not work.waits or sum(each.token == token for each in self._waiting) >= MAX_WAITERS:
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
        own = self._held[waiter.work, waiter.token] < waiter.work.token
        return own and (waiter.owner or self._agents[waiter.work] < waiter.work.agents)

    def _count(self, waiter: _Waiter, change: int) -> None:
        key = (waiter.work, waiter.token)
        self._held[key] += change
        self._agents[waiter.work] += 0 if waiter.owner else change
        if not self._held[key]:
            del self._held[key]

    def _release(self, waiter: _Waiter) -> None:
        with self._lock:
            self._count(waiter, -1)
            found = [each for each in self._waiting if each.work is waiter.work and self._fits(each)]
            if not found:
                return
            following = min(found, key=lambda each: self._held[each.work, each.token])
            self._waiting.remove(following)
            self._count(following, 1)
            following.granted.get_loop().call_soon_threadsafe(_grant, following.granted)


def _grant(granted: asyncio.Future[None]) -> None:
    if not granted.done():
        granted.set_result(None)


def _too_many_requests(work: Work) -> Problem:
    detail = f"this token has too many {work.name} at a time, or the server has; send it again when one of them ended"
    return Problem(429, "rate_limited", detail, headers={"Retry-After": "5"})
