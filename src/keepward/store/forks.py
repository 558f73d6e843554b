"""Forks of a process that has files of SQLite open.

SQLite records for a process which locks it holds. A child inherits the record and none of the locks: another process
may then empty the log while the child writes to it, and acknowledged commits are lost.

Invariants
(1) Before a fork each handle closes its connections, unless one of them is in use.
(2) A child is refused every file that was open at the fork, also where Python did not announce the fork.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from keepward.errors import InvalidInput, StoreUnavailable

if TYPE_CHECKING:
    from keepward.store.sqlite import Connections

#: Why a child is refused.
REFUSED = (
    "the store was in use as this process was forked off, and what is written here could be lost; "
    "fork outside of its blocks, or start processes by spawn"
)
#: Device and inode of a file.
Identity = tuple[int, int]

#: By the handle's id. Other threads add to it while a fork goes through it, so it is copied in one step.
_all: weakref.WeakValueDictionary[int, Connections] = weakref.WeakValueDictionary()
#: Files that are being made.
_new: list[Identity | None] = []
#: Files that were open as this process, or one that it comes from, was forked off.
_refused: set[Identity | None] = set()
#: The process that all this is of.
_pid = os.getpid()


def watch(connections: Connections) -> None:
    """Close the idle connections of a handle before each fork from now on."""
    _all[id(connections)] = connections


@contextmanager
def making(path: Path) -> Iterator[None]:
    """Count a file that is being made as open."""
    identity = identity_of(str(path))
    _new.append(identity)
    try:
        yield
    finally:
        _new.remove(identity)


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
    for each in _handles():
        each.close_idle()


def _in_child() -> None:
    global _pid
    _pid = os.getpid()
    _refused.update(_new)
    for each in _handles():
        # Another thread may have opened one between (1) and the fork.
        if each.has_connections:
            _refused.add(each.identity)
        each.renew()
    _refused.discard(None)


os.register_at_fork(before=_before, after_in_child=_in_child)
