"""The idempotency key of a request: its commit is written once, however often the request is sent.

The key is a context variable, as in ``guesses`` and ``deadline``; ``storage.writer`` writes it with the commit.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from keepward.errors import InvalidInput

_current: ContextVar[IdempotencyKey | None] = ContextVar("idempotency_key", default=None)


@dataclass(slots=True)
class IdempotencyKey:
    """The key of one request, and a digest of its content."""

    #: The key, and the actor who sent it.
    name: tuple[str, str]
    #: Digest of the request.
    request: bytes
    #: Whether a commit of the request has the key already.
    used: bool = False


class IdempotencyReused(InvalidInput):
    """This Idempotency-Key was sent with another call; take a new one."""


@contextmanager
def with_key(key: IdempotencyKey) -> Iterator[None]:
    """Write the first commit of the block under a key."""
    token = _current.set(key)
    try:
        yield
    finally:
        _current.reset(token)


def unused_key() -> IdempotencyKey | None:
    """Return the key for the next commit; None without one, or if a commit already has it."""
    key = _current.get()
    return None if key is None or key.used else key
