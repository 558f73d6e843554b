"""The line in which processes wait to write to one file of SQLite."""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import threading
from collections.abc import Callable
from pathlib import Path

#: Seconds of waiting after which that is logged.
WORD = 1.0
_log = logging.getLogger(__name__)


class Turns:
    """The line in which processes that want to write wait, asleep, at a lock on a file beside the store.

    SQLite has no line: whoever finds the file locked sleeps and tries again, so that of many writers some wait for
    seconds. Nothing is safe because of this lock, which ends with its process: SQLite's own is taken all the same, and
    where this one cannot be had (no file, a file system without locks, a holder that hangs) a writer tries without it.
    One thread at a time asks.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._pid = os.getpid()
        self._handle: int | None = None

    def take(self, patience: float, tell: Callable[[], None] = lambda: None) -> bool:
        """Wait for the turn, at most so many seconds; return whether it has come.

        ``tell`` is called where it takes longer than a second.
        """
        handle = self._opened()
        if handle is None:
            return False
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return _wait(handle, patience, tell)
        except OSError:
            return False
        return True

    def give(self) -> None:
        """Let the next one in; does nothing when the turn was not had."""
        if self._handle is not None and self._pid == os.getpid():
            with contextlib.suppress(OSError):
                fcntl.flock(self._handle, fcntl.LOCK_UN)

    def close(self) -> None:
        """Leave the line for good."""
        handle, self._handle = self._handle, None
        if handle is not None:
            with contextlib.suppress(OSError):
                os.close(handle)

    # Whoever forgot to close it leaves the line all the same.
    __del__ = close

    def _opened(self) -> int | None:
        if self._pid != os.getpid():
            # The handle of before a fork is one with the parent's: its turns would be ours.
            self.close()
            self._pid = os.getpid()
        if self._handle is None and self._path is not None:
            try:
                self._handle = os.open(self._path, os.O_RDONLY)
            except OSError:
                return None
        return self._handle


def waits(patience: float) -> None:
    """Say in the log that a writer waits."""
    text = "another process is writing to the store; waiting for it, %d seconds at most"
    _log.warning(text, patience, extra={"action": "waiting"})


def _wait(handle: int, patience: float, tell: Callable[[], None]) -> bool:
    """Wait in the kernel's line; in a thread, since only a thread can be left waiting."""
    came, lock = threading.Event(), threading.Lock()
    left = False
    # Closed by nobody else: the number of the other may be another file's by the time that the turn comes.
    try:
        own = os.dup(handle)
    except OSError:
        return False

    def stand() -> None:
        with contextlib.suppress(OSError):
            fcntl.flock(own, fcntl.LOCK_EX)
            with lock:
                if not left:
                    came.set()
            if not came.is_set():
                fcntl.flock(own, fcntl.LOCK_UN)
        os.close(own)

    threading.Thread(target=stand, name="keepward-turn", daemon=True).start()
    try:
        if not came.wait(min(WORD, patience)) and patience > WORD:
            tell()
            came.wait(patience - WORD)
    except BaseException:
        # Who is interrupted writes nothing, and would have the turn until the process ends.
        with lock:
            left = True
            if came.is_set():
                fcntl.flock(handle, fcntl.LOCK_UN)
        raise
    with lock:
        left = not came.is_set()
    return not left
