"""One SQLite connection: it runs the named statements and translates the driver's errors."""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from keepward.errors import Conflict, KeepwardError, NotAStore, StoreUnavailable, Tampered
from keepward.storage import forks
from keepward.storage.sql import CONFLICT_MESSAGES, SQL, Row, Values

#: Seconds that a writer waits for another.
LOCK_TIMEOUT_S = 30.0
#: Seconds that a read waits to write its receipt: the caller waits for the result meanwhile.
BRIEF_LOCK_TIMEOUT_S = 5.0
#: Message of a writer that timed out.
LOCKED_MESSAGE = "the store is locked by another process; close it or try again"
#: Message of a handle whose file is no longer at its path.
FILE_MOVED_MESSAGE = (
    "the file of the store was moved away, or another was put in its place, while it was open: what is written now "
    "would be lost. Put it back, and the files next to it that have its name, or open the store again; start a server "
    "again"
)
#: Message of a read that overlapped a write of another process.
FILE_CHANGED_MESSAGE = "the store was written while it was read without a lock; try again"
#: Message of a write on a full disk.
DISK_FULL_MESSAGE = "the disk is full; free some space and try again: nothing was lost"
#: Errors of the driver when a full disk prevents SQLite from creating or growing its shared-memory file.
NO_ROOM_ERRORS = frozenset({"SQLITE_FULL", "SQLITE_IOERR_SHMSIZE", "SQLITE_IOERR_SHMOPEN"})
# A process has many reader connections, and a write of another process empties the page cache of each.
# So a large cache for readers costs memory and saves nothing.
_PRAGMAS = ("trusted_schema=OFF", "foreign_keys=ON", "secure_delete=ON", "synchronous=FULL", "cache_size=-4096")


class SqliteConnection(sqlite3.Connection):
    """A connection that runs the named statements."""

    fault: type[Exception] = sqlite3.Error
    searchable: bool = False
    has_statistics: bool = False

    def __del__(self) -> None:
        # To end without ``close`` is allowed: every commit is on disk. Python 3.13 and newer would warn of it.
        self.close()

    def run(self, name: str, values: Values = (), /, **named: Any) -> sqlite3.Cursor:
        return self.execute(SQL[name], named or values)

    def ask_ahead(self, name: str, *, pages: bool = False, **named: Any) -> bool:
        """Return False: a statement of this process has no round trip."""
        del name, pages, named
        return False

    def stream(self, name: str, **named: Any) -> Iterator[Row]:
        return self.execute(SQL[name], named)

    def run_many(self, name: str, rows: Iterable[Sequence[Any]]) -> None:
        """Run a named statement once for each row."""
        self.executemany(SQL[name], rows)

    def translate_error(self, exc: Exception) -> KeepwardError:
        return translate_error(exc)

    def select_tenant(self, tenant: str | None) -> None:
        """Do nothing: a writer locks the complete file."""


def connect(path: str, *, mode: str = "rw", pragmas: tuple[str, ...] = _PRAGMAS) -> SqliteConnection:
    """Open one connection; ``mode`` is ``rw``, ``ro``, ``rwc`` or ``immutable``.

    Raises:
        StoreUnavailable: this process was forked while the file was in use; see ``forks``.
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
    except UnicodeDecodeError as exc:
        # The driver cannot decode the damaged schema that it wants to report.
        connection.close()
        raise sqlite3.DatabaseError("the schema is damaged") from exc
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
    """Return the path of a sidecar file of SQLite, such as the log. It is next to the target of a link."""
    return Path(f"{os.path.realpath(file)}{suffix}")


def has_wal(file: str) -> bool:
    """Whether a log has changes that are not in the file yet."""
    log = sidecar_path(file, "-wal")
    return log.exists() and log.stat().st_size > 0


def read_mode(file: str) -> tuple[str, object]:
    """Return the mode in which to read a file; for ``immutable`` also its modification time and size."""
    if has_wal(file) or sidecar_path(file, "-shm").exists():
        return "ro", None
    try:
        about = Path(file).stat()
    except OSError:
        return "immutable", None
    return "immutable", (about.st_mtime_ns, about.st_size)


def first_unwritable_path(file: Path) -> Path | None:
    """Return the first path of a store that this user may not write: file, folder or sidecar file. None if all are."""
    real = sidecar_path(file, "")
    needed = (real, real.parent, sidecar_path(file, "-wal"), sidecar_path(file, "-shm"))
    return next((path for path in needed if path.exists() and not os.access(path, os.W_OK)), None)


@contextmanager
def translated_errors() -> Iterator[None]:
    """Turn the driver's errors into ours."""
    try:
        yield
    except sqlite3.Error as exc:
        raise translate_error(exc) from exc


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
                "`keepward store recover` copies what is intact"
            )
        case "SQLITE_NOMEM":
            return StoreUnavailable("out of memory; free some and try again")
    taken = re.match(r"UNIQUE constraint failed: (\w+)", str(fault))
    if taken and taken[1] in CONFLICT_MESSAGES:
        return Conflict(CONFLICT_MESSAGES[taken[1]])
    if isinstance(fault, sqlite3.ProgrammingError) and "closed" in str(fault):
        return StoreUnavailable("the store is closed; open it again")
    return Tampered("the store's file is damaged; `keepward store recover` copies what is intact")
