"""Locks that nobody waits for in vain: whoever held them is free to be gone.

A thread that held one as a child was forked off does not run in the child: nobody would ever release it there, and what
it guards may be half changed. What a thread has left to the collector ends in another thread.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable


class ForkSafeLock:
    """A reentrant lock for the block of a ``with``.

    ``forget`` is a method of who has the lock. It is called in a child, where another thread of the parent held it.
    """

    def __init__(self, forget: Callable[[], object] | None = None) -> None:
        self._lock = threading.RLock()
        # Who has the lock is let go of as soon as nobody else needs it.
        self._forget = None if forget is None else weakref.WeakMethod(forget)
        _all.add(self)

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    def reset_after_fork(self) -> None:
        """Be free, in a child that has one thread as yet."""
        if self._lock.acquire(blocking=False):
            self._lock.release()
            return
        self._lock = threading.RLock()
        if self._forget is not None and (forget := self._forget()) is not None:
            forget()


class ReleasableLock:
    """A reentrant lock that any thread may release for the one that has it."""

    def __init__(self) -> None:
        # Reentrant itself: the collector, which releases, may run wherever this allocates.
        self._changed = threading.Condition(threading.RLock())
        self._owner: int | None = None
        self._depth = 0

    def __enter__(self) -> None:
        self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """Take it, in so many seconds, or for as long as it takes with -1; return whether that was so."""
        me = threading.get_ident()
        patience = (None if timeout < 0 else timeout) if blocking else 0
        with self._changed:
            if not self._changed.wait_for(lambda: self._owner in {None, me}, patience):
                return False
            self._owner = me
            self._depth += 1
            return True

    def release(self) -> None:
        """Give it back once."""
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
