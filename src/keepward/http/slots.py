"""Slots: limits of concurrent work for each token, so that no token starves the others.

A request over its limit waits without a worker thread. All tokens together, except owners', have a limit too: the
other workers are reserved for owners. A request first takes a slot of its token, then one of all tokens. So no more
than a token's share of requests is in front of those of another token.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass

from anyio import CapacityLimiter, WouldBlock, fail_after

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


class Slots:
    """The slots of one server, in its event loop."""

    def __init__(self) -> None:
        #: By kind of work and token; None is all tokens except owners'.
        self._limiters: dict[tuple[Work, str | None], CapacityLimiter] = {}

    def in_use(self, work: Work) -> int:
        """Return the number of used slots of a kind."""
        return sum(each.borrowed_tokens for (kind, token), each in self._limiters.items() if kind is work and token)

    async def acquire(self, work: Work, token: str, *, owner: bool = False) -> Callable[[], None]:
        """Take a slot for a token's request, waiting for one if the work allows it.

        Return a function that releases it; call it in this event loop.

        Raises:
            Problem: 429, no slot became free in time.
        """
        request = object()
        try:
            with ExitStack() as taken, fail_after(SLOT_TIMEOUT_S):
                for name, size in ((token, work.token), *(() if owner else ((None, work.agents),))):
                    limiter = self._limiters.setdefault((work, name), CapacityLimiter(size))
                    try:
                        limiter.acquire_on_behalf_of_nowait(request)
                    except WouldBlock:
                        crowded = name is not None and limiter.statistics().tasks_waiting >= MAX_WAITERS
                        if crowded or not work.waits:
                            raise
                        await limiter.acquire_on_behalf_of(request)
                    taken.callback(self._release, work, name, request)
                return taken.pop_all().close
        except (TimeoutError, WouldBlock):
            detail = f"this token or the server has too many concurrent {work.name}; retry when one has ended"
            raise Problem(429, "rate_limited", detail, headers={"Retry-After": "5"}) from None

    def _release(self, work: Work, name: str | None, request: object) -> None:
        limiter = self._limiters[work, name]
        limiter.release_on_behalf_of(request)
        if not limiter.borrowed_tokens:
            del self._limiters[work, name]
