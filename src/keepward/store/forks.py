"""Files of SQLite across a fork of the process.

SQLite notes in tables of the process what the process has locked. A child inherits the tables and none of the locks:
what it opens of a file that was open at the fork locks nothing, so that another process empties the log while the child
writes to it, and acknowledged commits are gone.

Invariants
(1) At a fork none of our files is open: idle connections are closed, and what is under way is waited for.
(2) Where that takes too long, as it does in a block of the very thread that forks, and after a fork that Python does
    not know of, the child is refused every use of that file.
"""

from __future__ import annotations

import os
import threading
import weakref
from functools import cache
from pathlib import Path
from typing import Protocol

from keepward.errors import InvalidInput, StoreUnavailable

#: Seconds that a fork waits for what is under way on one handle.
PATIENCE = 1.0


class Forkable(Protocol):
    """The connections of one handle to a file."""

    path: str

    @property
    def has_open(self) -> bool:
        """Whether the file may be open."""
        ...

    def pause(self, patience: float) -> bool:
        """Close what is idle and let nobody open more; return whether nothing of the file is open."""
        ...

    def resume(self) -> None:
        """Let readers and writers in again; the caller has paused."""
        ...

    def renew(self) -> None:
        """Begin anew in a child, with nothing open."""
        ...


_all: weakref.WeakSet[Forkable] = weakref.WeakSet()
#: Held by the thread that forks, from before to after.
_forking = threading.RLock()
#: What is paused while the process forks, and whether nothing of its file is open.
_paused: list[tuple[Forkable, bool]] = []
#: Device and inode of the files that were open as this process, or one that it comes from, was forked off.
_refused: set[tuple[int, int]] = set()


def watch(connections: Forkable) -> None:
    """Close what a handle has open before each fork from now on."""
    _register()
    _all.add(connections)


def check(path: str) -> None:
    """Refuse a file that was in use as this process was forked off.

    Raises:
        StoreUnavailable: see (2).
    """
    if _refused and _identity(path) in _refused:
        raise StoreUnavailable(
            "the store was in use as this process was forked off, and what is written here could be lost; "
            "fork outside of its blocks, or start processes by spawn"
        )


def spare(path: Path) -> None:
    """Refuse to read a file otherwise than by SQLite, where it is a store that this process has open, or a link to one.

    Raises:
        InvalidInput: it is one: to close the file would drop the locks that the process has on it.
    """
    identity = _identity(str(path))
    if identity and any(each.has_open and _identity(each.path) == identity for each in list(_all)):
        raise InvalidInput(
            f"{path.name} is a store that is open, and what is written to it could be lost if its file was read beside "
            "that: close it first, or take an export of it, or a backup"
        )


def refuse(path: str) -> None:
    """Refuse every use of a file in this process."""
    if (identity := _identity(path)) is not None:
        _refused.add(identity)


@cache
def _register() -> None:
    os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)


def _identity(path: str) -> tuple[int, int] | None:
    try:
        about = Path(path).stat()
    except OSError:
        return None
    return about.st_dev, about.st_ino


def _before() -> None:
    _forking.acquire()
    _paused.extend((each, each.pause(PATIENCE)) for each in list(_all))


def _in_parent() -> None:
    for each, calm in _paused:
        if calm:
            each.resume()
    _paused.clear()
    _forking.release()


def _in_child() -> None:
    global _forking
    _forking = threading.RLock()
    for each, calm in _paused:
        each.renew()
        if not calm:
            refuse(each.path)
    _paused.clear()
