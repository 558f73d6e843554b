"""Reentrant locks that a forked child resets.

In a child only the forking thread runs. A lock that another thread held would never be released there, and the state
that it guards may be incomplete. The garbage collector may release a lock in another thread.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable


class ForkSafeLock:
    """A reentrant lock for a ``with`` block.

    ``forget`` is a method of the object that owns the lock. It is called in a child if another thread of the parent
    held the lock.
    """

    def __init__(self, forget: Callable[[], object] | None = None) -> None:
        self._lock = threading.RLock()
        # A weak reference, so that the lock does not keep its owner alive.
        self._forget = None if forget is None else weakref.WeakMethod(forget)
        _all.add(self)

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    def reset_after_fork(self) -> None:
        """Reset the lock in a child, which has one thread."""
        if self._lock.acquire(blocking=False):
            self._lock.release()
            return
        self._lock = threading.RLock()
        if self._forget is not None and (forget := self._forget()) is not None:
            forget()


class ReleasableLock:
    """A reentrant lock that any thread may release for the thread that acquired it."""

    def __init__(self) -> None:
        # Reentrant itself: the garbage collector, which releases locks, may run wherever this allocates.
        self._changed = threading.Condition(threading.RLock())
        self._owner: int | None = None
        self._depth = 0

    def __enter__(self) -> None:
        self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """Acquire the lock within ``timeout`` seconds, -1 for no limit; return whether that succeeded."""
        me = threading.get_ident()
        patience = (None if timeout < 0 else timeout) if blocking else 0
        with self._changed:
            if not self._changed.wait_for(lambda: self._owner in {None, me}, patience):
                return False
            self._owner = me
            self._depth += 1
            return True

    def release(self) -> None:
        """Release the lock once."""
        with self._changed:
            self._depth -= 1
            if self._depth == 0:
                self._owner = None
                self._changed.notify()


_all: weakref.WeakSet[ForkSafeLock] = weakref.WeakSet()


def _in_child() -> None:
    for each in list(_all):
        each.reset_after_fork()


os.register_at_fork(after_in_child=_in_child)
