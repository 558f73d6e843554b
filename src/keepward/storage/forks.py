"""Forks of a process that has files of SQLite open.

SQLite records for a process which locks it holds. A child inherits the record and none of the locks: another process
may then empty the log while the child writes to it, and acknowledged commits are lost.

Invariants
(1) Before a fork each handle closes its connections, unless one of them is in use.
(2) A child is refused every file that was open at the fork, also where Python did not announce the fork.
(3) A child is refused all of SQLite if another thread was inside SQLite at the fork: that thread may have held a mutex
    of the library, and nothing releases the mutex in the child.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from keepward.errors import InvalidInput, StoreUnavailable

#: Messages of a refusal in a child.
FORKED_IN_USE_MESSAGE = (
    "the store was in use as this process was forked off, and what is written here could be lost; "
    "fork outside of its blocks, or start processes by spawn"
)
FORKED_INSIDE_SQLITE_MESSAGE = (
    "another thread was inside SQLite as this process was forked off, and each use of SQLite could wait for ever; "
    "fork while no thread uses a store, or start processes by spawn"
)
#: Device and inode of a file.
FileIdentity = tuple[int, int]


class FileHandle(Protocol):
    """An open file of SQLite with its connections."""

    identity: FileIdentity | None

    @property
    def has_open(self) -> bool:
        """Whether the file may be open: a running read outlasts ``close``."""
        ...

    @property
    def has_connections(self) -> bool:
        """Whether a connection is open or being opened."""
        ...

    def close_idle(self) -> None:
        """Close the connections, unless one is in use."""
        ...

    def reset_after_fork(self) -> None:
        """Forget the connections of the parent, in a forked child."""
        ...


#: By id of the handle. Other threads add to it during a fork, so it is copied in one step.
_databases: weakref.WeakValueDictionary[int, FileHandle] = weakref.WeakValueDictionary()
#: Blocks that use SQLite: the thread of each, with its handle or the file that it creates.
_blocks: dict[object, tuple[int, object]] = {}
#: Serialises forks: closing the connections before a fork uses SQLite as well.
_fork_lock = threading.RLock()
#: Files that were open when this process, or an ancestor, was forked.
_refused: set[FileIdentity | None] = set()
#: Whether this process was forked while another thread was inside SQLite; see (3).
_is_stuck = False
#: The process that this state belongs to.
_pid = os.getpid()


def close_before_fork(connections: FileHandle) -> None:
    """Close the idle connections of a handle before each fork from now on."""
    _databases[id(connections)] = connections


@contextmanager
def using(what: object = None) -> Iterator[None]:
    """Register a block that uses SQLite, on a handle or on a file that it creates."""
    block = object()
    _blocks[block] = threading.get_ident(), identity_of(str(what)) if isinstance(what, Path) else what
    try:
        yield
    finally:
        # A child has reset the blocks.
        _blocks.pop(block, None)


def in_use(connections: FileHandle) -> bool:
    """Whether a block uses a connection of a handle, or opens one."""
    return any(what is connections for _, what in list(_blocks.values()))


def detect_fork() -> None:
    """Refuse files as in (2), in a child that Python's fork hooks missed."""
    if _pid != os.getpid():
        _in_child()


def check(path: str) -> None:
    """Refuse a file that was in use when this process was forked.

    Raises:
        StoreUnavailable: see (2) and (3).
    """
    detect_fork()
    if _refused and identity_of(path) in _refused:
        raise StoreUnavailable(FORKED_IN_USE_MESSAGE)
    if _is_stuck:
        raise StoreUnavailable(FORKED_INSIDE_SQLITE_MESSAGE)


def refuse_if_open(path: Path) -> None:
    """Refuse to read the file of a store that this process has open, unless SQLite reads it.

    Raises:
        InvalidInput: the store is open. Closing the file would drop the locks that the process has on it.
    """
    identity = identity_of(str(path))
    if identity and any(each.has_open and each.identity == identity for each in _handles()):
        raise InvalidInput(
            f"{path.name} is a store that is open, and what is written to it could be lost if its file was read at the "
            "same time: close it first, or take an export of it, or a backup"
        )


def identity_of(path: str) -> FileIdentity | None:
    """Return the device and inode of the file at a path; None without a file."""
    try:
        about = os.stat(path)  # noqa: PTH116 - each use of a store asks, and a Path costs more than the question
    except OSError:
        return None
    return about.st_dev, about.st_ino


def _handles() -> list[FileHandle]:
    return [each for ref in _databases.valuerefs() if (each := ref()) is not None]


def _before() -> None:
    _fork_lock.acquire()
    for each in _handles():
        each.close_idle()


def _in_child() -> None:
    global _pid, _fork_lock, _is_stuck
    _pid, _fork_lock = os.getpid(), threading.RLock()
    _is_stuck = _is_stuck or any(thread != threading.get_ident() for thread, _ in _blocks.values())
    _refused.update(what for _, what in _blocks.values() if isinstance(what, tuple))
    for each in _handles():
        # Another thread may have opened one between (1) and the fork.
        if each.has_connections:
            _refused.add(each.identity)
        each.reset_after_fork()
    _blocks.clear()
    _refused.discard(None)


def _in_parent() -> None:
    _fork_lock.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)
