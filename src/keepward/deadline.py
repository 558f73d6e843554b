"""A time limit for a request that only reads: each read of the store checks it.

``DeadlineExceeded`` is not a ``KeepwardError``: code that tolerates a failed read must not return a partial result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar


class DeadlineExceeded(Exception):
    """The request exceeded the time limit of its token."""

    def __init__(self) -> None:
        super().__init__("the call took longer than this token may use; ask for less, for example fewer commits")


#: End of the request of this context, and the clock that measures it.
_until: ContextVar[tuple[float, Callable[[], float]] | None] = ContextVar("until", default=None)


@contextmanager
def time_limit(seconds: float, clock: Callable[[], float]) -> Iterator[None]:
    """Limit the block to ``seconds``.

    Raises:
        DeadlineExceeded: it took longer; its result is discarded.
    """
    token = _until.set((clock() + seconds, clock))
    try:
        yield
        check()
    finally:
        _until.reset(token)


def check() -> None:
    """Raise ``DeadlineExceeded`` if the time limit of this context has passed."""
    until = _until.get()
    if until is not None and until[1]() > until[0]:
        raise DeadlineExceeded
