"""Count the texts of a request that may guess at erased content.

A refusal because of erased text shows the sender which text was erased. So all texts of a refused proposal or batch
count as guesses. A request without erased text counts none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_counted: ContextVar[list[int] | None] = ContextVar("counted", default=None)


@contextmanager
def count_guesses() -> Iterator[Callable[[], int]]:
    """Count the guesses of the block; yield a function that returns their number so far."""
    found: list[int] = []
    token = _counted.set(found)
    try:
        yield lambda: sum(found)
    finally:
        _counted.reset(token)


def add_guesses(texts: int) -> None:
    """Add guesses to the count, if a block counts them."""
    found = _counted.get()
    if found is not None:
        found.append(texts)
