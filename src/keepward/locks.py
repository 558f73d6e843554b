"""Locks of files between processes, and reentrant locks of threads that a forked child resets.

In a child only the forking thread runs. A lock that another thread held would never be released there, and the state
that it guards may be incomplete. The garbage collector may release a lock in another thread.

Late imports: a process that locks no file starts faster.
"""

from __future__ import annotations

import errno
import os
import threading
import weakref
from collections.abc import Callable
from typing import Any

try:
    import fcntl
except ImportError:
    # Windows.
    fcntl = None  # type: ignore[assignment]

#: Whether only those who lock a file notice its lock. On Windows the lock also refuses all others, even to read.
ADVISORY = fcntl is not None


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


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)


def lock_file(handle: int, *, shared: bool = False, wait: bool = True) -> bool:
    """Lock an open file, shared or exclusively; return whether that succeeded. Closing the file unlocks it.

    ``wait`` waits until no other process has the lock. The lock of a process that dies is released.

    Raises:
        OSError: the file system has no locks.
    """
    if not ADVISORY:
        return _lock_with_portalocker(handle, shared=shared, wait=wait)
    try:
        fcntl.flock(handle, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    return True


def unlock_file(handle: int) -> None:
    """Unlock an open file at once, also for a forked child that shares it."""
    if ADVISORY:
        fcntl.flock(handle, fcntl.LOCK_UN)
    else:
        _locker().unlock(handle)


def _lock_with_portalocker(handle: int, *, shared: bool, wait: bool) -> bool:
    from portalocker import LOCK_EX, LOCK_NB, LOCK_SH, AlreadyLocked, LockException

    kind = LOCK_SH if shared else LOCK_EX
    try:
        _locker().lock(handle, kind if wait else kind | LOCK_NB)
    except AlreadyLocked:
        return False
    except LockException as exc:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK)) from exc
    return True


def _locker() -> Any:
    """Return what locks here. The default of portalocker has no shared locks, and looks for a lock once a second."""
    from portalocker import portalocker

    found = getattr(portalocker, "Win32Locker", None) or portalocker.FlockLocker
    return found()
