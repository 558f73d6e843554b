"""The driver of SQLite: one connection, the named statements on it, and how its errors are put."""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

from keepward.errors import Conflict, KeepwardError, NotAStore, StoreUnavailable, Tampered
from keepward.storage import forks
from keepward.storage.sql import CONFLICT_MESSAGES, SQL, Row, Values

#: How long a writer waits for another, in seconds.
LOCK_TIMEOUT_S = 30.0
#: How long one waits that only notes what was read, in seconds: the reader waits for the answer.
BRIEF_LOCK_TIMEOUT_S = 5.0
#: What a writer says that gave up waiting.
LOCKED_MESSAGE = "the store is locked by another process; close it or try again"
#: What a handle says whose file is no longer at its place.
FILE_MOVED_MESSAGE = (
    "the file of the store was moved away, or another was put in its place, while it was open: what is written now "
    "would be lost. Put it back, and the files beside it that have its name, or open the store again; start a server "
    "again"
)
#: What a read says that another's write came into.
FILE_CHANGED_MESSAGE = "the store was written while it was read without a lock; try again"
#: What a write gets on a full disk.
DISK_FULL_MESSAGE = "the disk is full; free some space and try again: nothing was lost"
#: What the driver answers where there is no room for the index that readers share, or for its name.
NO_ROOM_ERRORS = frozenset({"SQLITE_FULL", "SQLITE_IOERR_SHMSIZE", "SQLITE_IOERR_SHMOPEN"})
#: Rows that are inserted by one statement.
_MAX_MULTI_ROWS = 8
# Readers come by the dozen, and each drops its pages when anybody wrote: a large cache of theirs takes memory and saves
# nothing. The writer keeps its own.
_PRAGMAS = ("trusted_schema=OFF", "foreign_keys=ON", "secure_delete=ON", "synchronous=FULL", "cache_size=-4096")


@cache
def _multi_row_insert(name: str, rows: int) -> str:
    """Return a statement that inserts one row as one that inserts several."""
    head, _, rest = SQL[name].partition("VALUES (")
    cells, _, rest = rest.partition(")")
    return f"{head}VALUES {', '.join([f'({cells})'] * rows)}{rest}"


class SqliteConnection(sqlite3.Connection):
    """A connection that knows the named statements."""

    fault: type[Exception] = sqlite3.Error
    searchable: bool = False

    def run(self, name: str, values: Values = (), /, **named: Any) -> sqlite3.Cursor:
        return self.execute(SQL[name], named or values)

    def stream(self, name: str, **named: Any) -> Iterator[Row]:
        return self.execute(SQL[name], named)

    def many(self, name: str, rows: Iterable[Sequence[Any]]) -> None:
        """Run a named statement once for each row; a few rows are inserted by one statement."""
        rows = list(rows)
        if 1 < len(rows) <= _MAX_MULTI_ROWS and "VALUES (" in SQL[name]:
            self.execute(_multi_row_insert(name, len(rows)), [*chain.from_iterable(rows)])
        elif rows:
            self.executemany(SQL[name], rows)

    def translate_error(self, exc: Exception) -> KeepwardError:
        return translate_error(exc)

    def select_tenant(self, tenant: str | None) -> None:
        """Do nothing: one writer has the whole file."""


def connect(path: str, *, mode: str = "rw", pragmas: tuple[str, ...] = _PRAGMAS) -> SqliteConnection:
    """Open one connection; ``mode`` is ``rw``, ``ro``, ``rwc`` or ``immutable``.

    Raises:
        StoreUnavailable: this process was forked off while the file was in use; see ``forks``.
    """
    forks.check(path)
    if path == ":memory:":
        target = path
    else:
        query = "mode=ro&immutable=1" if mode == "immutable" else f"mode={mode}"
        target = f"{Path(path).absolute().as_uri()}?{query}"
    connection = sqlite3.connect(
        target,
        uri=True,
        isolation_level=None,
        check_same_thread=False,
        timeout=LOCK_TIMEOUT_S,
        cached_statements=256,
        factory=SqliteConnection,
    )
    try:
        for pragma in pragmas:
            connection.execute(f"PRAGMA {pragma}")
    except UnicodeDecodeError as fault:
        # The driver wants to say that the schema is damaged, in words of the schema.
        connection.close()
        raise sqlite3.DatabaseError("the schema is damaged") from fault
    except sqlite3.Error:
        connection.close()
        raise
    return connection


@contextmanager
def connected(path: Path | str, *, mode: str = "rw", pragmas: tuple[str, ...] = _PRAGMAS) -> Iterator[SqliteConnection]:
    """Open a connection for the block."""
    with forks.using(None), closing(connect(str(path), mode=mode, pragmas=pragmas)) as connection:
        yield connection


def sidecar_path(file: str | Path, suffix: str) -> Path:
    """Return what SQLite keeps beside a store, such as its log: beside what a link leads to, not beside the link."""
    return Path(f"{os.path.realpath(file)}{suffix}")


def has_wal(file: str) -> bool:
    """Whether there is a log that holds what is not in the file yet."""
    log = sidecar_path(file, "-wal")
    return log.exists() and log.stat().st_size > 0


def read_mode(file: str) -> tuple[str, object]:
    """Return the mode in which a file is read, and as what it stands where nobody is writing."""
    if has_wal(file) or sidecar_path(file, "-shm").exists():
        return "ro", None
    try:
        about = Path(file).stat()
    except OSError:
        return "immutable", None
    return "immutable", (about.st_mtime_ns, about.st_size)


def first_unwritable_path(file: Path) -> Path | None:
    """Return what this user may not write of a store: its file, its folder, or what SQLite keeps beside it; or None."""
    real = sidecar_path(file, "")
    needed = (real, real.parent, sidecar_path(file, "-wal"), sidecar_path(file, "-shm"))
    return next((each for each in needed if each.exists() and not os.access(each, os.W_OK)), None)


@contextmanager
def translated_errors() -> Iterator[None]:
    """Turn the driver's errors into ours."""
    try:
        yield
    except sqlite3.Error as fault:
        raise translate_error(fault) from fault


def translate_error(fault: Exception) -> KeepwardError:
    """Return our error for one of the driver's."""
    name = getattr(fault, "sqlite_errorname", None) or ""
    family = "SQLITE_FULL" if name in NO_ROOM_ERRORS else "_".join(name.split("_")[:2])
    match family:
        case "SQLITE_BUSY" | "SQLITE_LOCKED":
            return StoreUnavailable(LOCKED_MESSAGE)
        case "SQLITE_READONLY":
            return StoreUnavailable("the store can only be read: its file or folder is not writable by this user")
        case "SQLITE_FULL":
            return StoreUnavailable(DISK_FULL_MESSAGE)
        case "SQLITE_IOERR":
            return StoreUnavailable("the disk gave an error; check it and try again, what was acknowledged is kept")
        case "SQLITE_CANTOPEN" | "SQLITE_PERM" | "SQLITE_AUTH":
            return StoreUnavailable("the store's file cannot be opened; check that it exists and may be read")
        case "SQLITE_NOTADB":
            return NotAStore(
                "the file is not a Keepward store, or its beginning is damaged; "
                "`keepward store recover` copies what holds"
            )
        case "SQLITE_NOMEM":
            return StoreUnavailable("out of memory; free some and try again")
    taken = re.match(r"UNIQUE constraint failed: (\w+)", str(fault))
    if taken and taken[1] in CONFLICT_MESSAGES:
        return Conflict(CONFLICT_MESSAGES[taken[1]])
    if isinstance(fault, sqlite3.ProgrammingError) and "closed" in str(fault):
        return StoreUnavailable("the store is closed; open it again")
    return Tampered("the store's file is damaged; `keepward store recover` copies what still holds")
