"""Files of SQLite across a fork of the process.

SQLite notes in tables of the process what the process has locked. A child inherits the tables and none of the locks:
what it opens of a file that was open at the fork locks nothing, so that another process empties the log while the child
writes to it, and acknowledged commits are gone.

Invariants
(1) At a fork none of our files is open: idle connections are closed, and what is under way is waited for. Nothing is
    opened until it is over, and no new file is made.
(2) Where that takes too long, as it does in a block of the very thread that forks, and after a fork that Python does
    not know of, or not before it happened, the child is refused every use of that file.
(3) At a fork no thread is inside SQLite for one of our handles, also of those that have no file: the locks of its own
    that it held there would never be free in the child.
(4) At a fork no thread is loading a part of this package: in the child that part would stay half loaded for ever.
"""

from __future__ import annotations

import os
import sys
import threading
import time
import weakref
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

from keepward.errors import InvalidInput, StoreUnavailable

if TYPE_CHECKING:
    from keepward.store.sqlite import Connections

#: Seconds that a fork waits for what is under way on one handle.
PATIENCE = 1.0
_PACKAGE = __name__.partition(".")[0]
#: Why a child is refused.
REFUSED = (
    "the store was in use as this process was forked off, and what is written here could be lost; "
    "fork outside of its blocks, or start processes by spawn"
)
#: Device and inode of a file.
Identity = tuple[int, int]


#: By the handle's id. Other threads add to it while a fork goes through it, so it is copied in one step.
_all: weakref.WeakValueDictionary[int, Connections] = weakref.WeakValueDictionary()
#: Held by the thread that forks, from before to after, and by what no fork may come between.
_forking = threading.RLock()
#: What is paused while the process forks, and whether nothing of its file is open.
_paused: list[tuple[Connections, bool]] = []
#: Device and inode of the files that were open as this process, or one that it comes from, was forked off.
_refused: set[Identity] = set()
#: The process that all this is of.
_pid = os.getpid()


def watch(connections: Connections) -> None:
    """Close what a handle has open before each fork from now on."""
    with _forking:
        _all[id(connections)] = connections


def unforked() -> AbstractContextManager[object]:
    """Return a context in which no other thread forks; those that want to wait, so it is to be short."""
    return _forking


def notice() -> None:
    """See to (2) in a child of which Python does not know."""
    if _pid != os.getpid():
        _in_child()


def check(path: str) -> None:
    """Refuse a file that was in use as this process was forked off.

    Raises:
        StoreUnavailable: see (2).
    """
    notice()
    if _refused and identity_of(path) in _refused:
        raise StoreUnavailable(REFUSED)


def spare(path: Path) -> None:
    """Refuse to read a file otherwise than by SQLite, where it is a store that this process has open, or a link to one.

    Raises:
        InvalidInput: it is one: to close the file would drop the locks that the process has on it.
    """
    identity = identity_of(str(path))
    if identity and any(each.has_open and each.identity == identity for each in _handles()):
        raise InvalidInput(
            f"{path.name} is a store that is open, and what is written to it could be lost if its file was read beside "
            "that: close it first, or take an export of it, or a backup"
        )


def identity_of(path: str) -> Identity | None:
    """Return which file is at a path; None where there is none."""
    try:
        about = os.stat(path)  # noqa: PTH116 - each use of a store asks, and a Path costs more than the question
    except OSError:
        return None
    return about.st_dev, about.st_ino


def _handles() -> list[Connections]:
    return [each for ref in _all.valuerefs() if (each := ref()) is not None]


def _before() -> None:
    _forking.acquire()
    # An interrupt ends the waiting, and the fork goes on: what is not calm is refused.
    _paused.extend((each, each.pause(PATIENCE)) for each in _handles())
    until = time.monotonic() + PATIENCE
    while _loading() and time.monotonic() < until:
        time.sleep(0.001)


def _loading() -> bool:
    """Whether a thread is loading a module of this package, as the import system has it."""
    return any(
        name.startswith(_PACKAGE) and getattr(getattr(module, "__spec__", None), "_initializing", False)
        for name, module in list(sys.modules.items())
    )


def _in_parent() -> None:
    for each, calm in _paused:
        if calm:
            each.resume()
    _paused.clear()
    _forking.release()


def _in_child() -> None:
    global _forking, _pid
    _forking, _pid = threading.RLock(), os.getpid()
    calm = {id(each) for each, calm in _paused if calm}
    for each in _handles():
        if id(each) not in calm and each.has_open and each.identity is not None:
            _refused.add(each.identity)
        each.renew()
    _paused.clear()


os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)
