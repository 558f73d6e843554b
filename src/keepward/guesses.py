"""How many texts of a call may have been guesses at what was erased.

A proposal or a batch that is refused because of erased text tells its sender which text it was. All its texts count
as guesses then; one that holds no erased text counts as none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_counted: ContextVar[list[int] | None] = ContextVar("counted", default=None)


@contextmanager
def count_guesses() -> Iterator[Callable[[], int]]:
    """Count the guesses of the block; yield what returns how many there were so far."""
    found: list[int] = []
    token = _counted.set(found)
    try:
        yield lambda: sum(found)
    finally:
        _counted.reset(token)


def add_guesses(texts: int) -> None:
    """Count so many guesses, where anybody counts."""
    found = _counted.get()
    if found is not None:
        found.append(texts)
