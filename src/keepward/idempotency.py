"""The idempotency key of a call: what the call commits is committed once, however often it is sent.

The key goes with the call, as ``guesses`` and ``deadline`` do; ``storage.writer`` writes it with the commit.
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
    """The key of one call, and everything that tells this call from another."""

    #: The key, and the actor whose key it is.
    name: tuple[str, str]
    #: Digest of the call.
    request: bytes
    #: Whether a commit of the call has it already.
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
    """Return the key for the next commit; None where there is none, or a commit has it."""
    key = _current.get()
    return None if key is None or key.used else key
