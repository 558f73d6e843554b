"""A time limit for a call that only reads: each read of the store checks it.

``Passed`` is no ``KeepwardError``, so that code which tolerates a failed read does not return part of an answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar


class DeadlineExceeded(Exception):
    """A call took longer than its token may use."""

    def __init__(self) -> None:
        super().__init__("the call took longer than this token may use; ask for less, for example fewer commits")


#: Instant at which the call of this context has to end, and the clock that measures it.
_until: ContextVar[tuple[float, Callable[[], float]] | None] = ContextVar("until", default=None)


@contextmanager
def time_limit(seconds: float, clock: Callable[[], float]) -> Iterator[None]:
    """Limit the block to so many seconds.

    Raises:
        Passed: it took longer; what it read is not returned.
    """
    token = _until.set((clock() + seconds, clock))
    try:
        yield
        check()
    finally:
        _until.reset(token)


def check() -> None:
    """Raise ``Passed`` once the time limit of this context has passed."""
    until = _until.get()
    if until is not None and until[1]() > until[0]:
        raise DeadlineExceeded
