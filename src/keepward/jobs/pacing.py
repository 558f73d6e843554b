"""Jobs compute in a thread of the host's process and let its other threads go first.

A thread that waits for the interpreter waits up to its switch interval, 5 ms, at each statement of a database. The
interval belongs to the host. So a job gives the interpreter up by itself, after each millisecond of work.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

#: A job works for the first number of seconds, then pauses for the second, so that waiting threads can run.
WORK_S, PAUSE_S = 0.001, 0.000_05
T = TypeVar("T")


class Pace:
    """Pauses a thread that computes for long."""

    def __init__(
        self, now: Callable[[], float] = time.perf_counter, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self._now, self._sleep = now, sleep
        self._since = now()

    def __call__(self, *_: object) -> None:
        """Pause if this thread has worked for ``WORK_S`` since the last pause."""
        if self._now() - self._since >= WORK_S:
            self._sleep(PAUSE_S)
            self._since = self._now()


def paced(items: Iterable[T]) -> Iterator[T]:
    """Yield items with pauses in between."""
    pace = Pace()
    for item in items:
        pace()
        yield item
