"""Locks that are free in a forked child, whoever held them as it was forked off.

The thread that held one does not run in the child: nobody would ever release it there, and what it guards may be half
changed.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable


class Lock:
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

    def renew(self) -> None:
        """Be free, in a child that has one thread as yet."""
        if self._lock.acquire(blocking=False):
            self._lock.release()
            return
        self._lock = threading.RLock()
        if self._forget is not None and (forget := self._forget()) is not None:
            forget()


_all: weakref.WeakSet[Lock] = weakref.WeakSet()


def _in_child() -> None:
    for each in list(_all):
        each.renew()


os.register_at_fork(after_in_child=_in_child)
