"""SQLite as a database: one file and its pool of connections, shared between threads.

Invariants
(1) One connection writes, in ``BEGIN IMMEDIATE`` behind a lock. WAL with ``synchronous=FULL`` makes every acknowledged
    commit survive a power cut.
(2) A read of several statements has a connection of its own and sees one snapshot.
(3) Every error of the driver becomes one of ours.
(4) Of the processes that wait to write, one holds a file lock and retries often; the others retry seldom. SQLite's own
    lock protects the data, so a process that dies with the file lock delays no other.
(5) A connection never crosses a fork; see ``forks``.
(6) A writer that waits longer than a second logs one warning.
(7) On a full disk an open store can be read, and no store can be opened.
(8) ``scrub`` leaves only live bytes in the file and its log. It rewrites the file: SQLite overwrites a deleted cell,
    but not the earlier positions of that cell.
(9) A handle belongs to one file. Once the path names another file or none, the handle refuses to open, read and write.
(10) A process without write permission creates no sidecar file, because the writers could not write it. While no
    process writes, it reads the file as immutable, and reopens the file after a change.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path

from keepward import durable, locks
from keepward.errors import InvalidInput, StoreUnavailable, Tampered
from keepward.locks import ReleasableLock
from keepward.storage import forks
from keepward.storage.driver import (
    BRIEF_LOCK_TIMEOUT_S,
    FILE_CHANGED_MESSAGE,
    FILE_MOVED_MESSAGE,
    LOCK_TIMEOUT_S,
    LOCKED_MESSAGE,
    SqliteConnection,
    connect,
    connected,
    first_unwritable_path,
    read_mode,
    sidecar_path,
    translate_error,
    translated_errors,
)
from keepward.storage.rows import LISTED, RECORDS_WITH_FEATURES, listed_rows
from keepward.storage.sql import SQL, Migration, load_migrations, statements

#: "KEEP" in the header of the file.
APPLICATION_ID = 0x4B454550
#: Milliseconds that a scrub waits for other processes.
SCRUB_TIMEOUT_MS = 5_000
#: Seconds after which a waiting writer logs a warning.
REPORT_AFTER_S = 1.0
#: Mean seconds between two tries of the first waiting writer, and of the others.
FIRST_RETRY_S, RETRY_S = 0.0005, 0.015
#: The page cache of the writer, and the size to which a large transaction's log is truncated.
_WRITER_PRAGMAS = ("cache_size=-16384", "journal_size_limit=16777216")
#: Connections of a parent process. Closing them in the child would release the parent's locks.
_connections_of_parent: list[object] = []
_log = logging.getLogger(__name__)


def create_schema(connection: SqliteConnection) -> None:
    """Create all tables of a store in an empty database, with a new store id."""
    connection.execute(f"PRAGMA application_id={APPLICATION_ID}")
    migrate(connection)
    query = "INSERT INTO meta (name, value) VALUES ('store_id', lower(hex(randomblob(16)))), ('sealed_by', '')"
    connection.execute(query)


def migrate(connection: SqliteConnection) -> None:
    """Migrate a store to the newest schema, one transaction a step. A second call does nothing."""
    for step in load_migrations():
        if step.number <= connection.execute("PRAGMA user_version").fetchone()[0]:
            continue
        # executescript would commit first. No statement of a migration contains a semicolon of its own.
        connection.execute("BEGIN IMMEDIATE")
        try:
            if connection.execute("PRAGMA user_version").fetchone()[0] < step.number:
                apply_migration(connection, step)
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                # On a failing disk the rollback can fail as well; raise the first error.
                with contextlib.suppress(sqlite3.Error):
                    connection.execute("ROLLBACK")
            raise


def apply_migration(connection: SqliteConnection, step: Migration) -> None:
    """Apply and record one step of the schema."""
    for statement in statements(step.sql):
        connection.execute(statement)
    if step.name == LISTED:
        connection.executemany(SQL["add_listed"], listed_rows(connection.execute(RECORDS_WITH_FEATURES)))
    query = "INSERT INTO migrations (number, name, sha256) VALUES (?, ?, ?)"
    connection.execute(query, (step.number, step.name, step.sha256))
    connection.execute(f"PRAGMA user_version={step.number}")


class SqliteDatabase:
    """The connections to one file, or the single one to ``:memory:``; see ``sql.Database``."""

    server: None = None

    def __init__(self, path: str, *, mode: str) -> None:
        self.path = path if path == ":memory:" else str(Path(path).absolute())
        #: Device and inode of the file that was opened first, see (9); None without a file.
        self.identity: forks.FileIdentity | None = None
        self.mode, self.writable = mode, mode == "rw"
        #: The mode in which the file was opened last, and its state at that time; see (10).
        self._opening = self._current_mode()
        #: Locked during a complete write; reads of a file never wait for it.
        self._lock: ReleasableLock | threading.RLock = ReleasableLock() if self.in_memory else threading.RLock()
        #: Reentrant: the garbage collector may return the connection of an abandoned reader to the pool in this thread.
        self._pool_lock = threading.RLock()
        self._pool: list[SqliteConnection] = []
        self._pid = os.getpid()
        self._closed = False
        self._writing: int | None = None
        self._writer: SqliteConnection | None = None
        #: Writer connections so far. SQLite counts changes per connection, so this is part of the data version.
        self._writers = 0
        forks.close_before_fork(self)
        with forks.using(self):
            self._pool.append(self._open())

    @property
    def concurrent(self) -> bool:
        return not self.in_memory

    @property
    def in_memory(self) -> bool:
        """Whether the store is in memory."""
        return self.path == ":memory:"

    @property
    def has_open(self) -> bool:
        """Whether the file may be open: a running read outlasts ``close``."""
        return not self._closed or self.has_connections

    @property
    def has_connections(self) -> bool:
        """Whether a connection is open or being opened."""
        return bool(self._pool or self._writer or forks.in_use(self))

    def check(self) -> Iterator[tuple[str, str]]:
        """Yield faults that SQLite finds: pages, indexes, uniqueness, and a schema that differs from the migrations."""
        with self.reading() as db:
            for (line,) in db.execute("PRAGMA integrity_check(20)").fetchall():
                if line != "ok":
                    yield "file", str(line).replace("\n", " ")
            query = "SELECT type || ' ' || name, sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
            stored = dict(db.execute(query).fetchall())
            with connected(":memory:") as fresh:
                create_schema(fresh)
                wanted = dict(fresh.execute(query).fetchall())
        for name in sorted(wanted.keys() | stored.keys()):
            if wanted.get(name) != stored.get(name):
                yield f"sqlite_schema {name}", "it is not what the migrations make"

    def size(self, db: SqliteConnection) -> int:
        del db
        self._assert_file_in_place()
        return 0 if self.in_memory else Path(self.path).stat().st_size

    def _open(self) -> SqliteConnection:
        with translated_errors(), ExitStack() as opening:
            connection = opening.enter_context(contextlib.closing(connect(self.path, mode=self._opening[0])))
            try:
                # The first statement opens the file and raises its errors.
                connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
            except UnicodeDecodeError as exc:
                # The driver cannot decode its own error message about the schema.
                raise Tampered("the store's schema is damaged; `keepward store recover` copies what is intact") from exc
            self._assert_file_in_place()
            opening.pop_all()
            return connection

    def _current_mode(self) -> tuple[str, object]:
        """Return the mode in which to open the file now, and for an immutable file its state; see (10)."""
        return ("rw", None) if self.mode == "rw" else read_mode(self.path)

    def _reopen_if_changed(self) -> None:
        """Close the connections to a read-only file that another process has changed."""
        if self.mode == "rw":
            return
        self._assert_file_in_place()
        with self._lock, self._pool_lock:
            if (now := self._current_mode()) != self._opening:
                self._opening = now
                for each in self._take_idle():
                    each.close()

    def _assert_file_in_place(self) -> None:
        """Raise StoreUnavailable unless the path still names the first file; see (9)."""
        if not self.in_memory:
            found = forks.identity_of(self.path)
            self.identity = self.identity or found
            if found is None or found != self.identity:
                raise StoreUnavailable(FILE_MOVED_MESSAGE)

    def _check(self) -> None:
        if self._pid != os.getpid():
            forks.detect_fork()
        if self._closed:
            raise StoreUnavailable("the store is closed; open it again")
        self._reopen_if_changed()

    def close_idle(self) -> None:
        """Close the connections to a file, unless one is in use."""
        with self._pool_lock:
            if not self.in_memory and not forks.in_use(self):
                with forks.using(self):
                    for each in self._take_idle():
                        each.close()

    def reset_after_fork(self) -> None:
        """Reset a forked child: no connection is open, and a store in memory belongs to the parent alone."""
        _connections_of_parent.extend(self._take_idle())
        self._closed = self._closed or self.in_memory
        self._lock, self._pool_lock = threading.RLock(), threading.RLock()
        self._writing, self._pid = None, os.getpid()

    def _take_idle(self) -> list[SqliteConnection]:
        """Remove and return the connections that no block uses; the caller holds the locks."""
        pool, self._pool = self._pool, []
        writer, self._writer = self._writer, None
        return pool if writer is None else [*pool, writer]

    @contextmanager
    def reading(self, tenant: str | None = None) -> Iterator[SqliteConnection]:
        del tenant
        self._check()
        if self.in_memory:
            with self._lock, forks.using(self), translated_errors():
                yield self._pool[0]
            return
        pid = self._pid
        with forks.using(self):
            with self._pool_lock:
                connection, opening = self._pool.pop() if self._pool else None, self._opening
            try:
                if connection is None:
                    connection = self._open()
                else:
                    self._assert_file_in_place()
                with (
                    self._assert_file_unchanged(opening) if opening[0] == "immutable" else nullcontext(),
                    translated_errors(),
                ):
                    connection.execute("BEGIN")
                    yield connection
            finally:
                if pid != os.getpid():
                    _connections_of_parent.append(connection)
                elif connection is not None:
                    self._give_back(connection, opening)

    @contextmanager
    def _assert_file_unchanged(self, opening: tuple[str, object]) -> Iterator[None]:
        """Raise an error if an immutable file changed during the read.

        Raises:
            StoreUnavailable: the file changed.
        """
        try:
            yield
        finally:
            if self._current_mode() != opening:
                raise StoreUnavailable(FILE_CHANGED_MESSAGE)

    def _give_back(self, connection: SqliteConnection, opening: tuple[str, object]) -> None:
        try:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        except sqlite3.Error:
            connection.close()
            return
        with self._pool_lock:
            if not self._closed and len(self._pool) < 16 and opening == self._opening:
                self._pool.append(connection)
                return
        connection.close()

    @contextmanager
    def writing(self, *, brief: bool = False) -> Iterator[SqliteConnection]:
        """Open one transaction on the writer connection for the block. It commits when the block ends.

        Raises:
            StoreUnavailable: read-only, or another process held the lock for 30 s; with ``brief``, for 5 s.
        """
        self._check()
        if not self.writable:
            shut = first_unwritable_path(Path(self.path))
            why = f": this user may not write {shut}; change that, and open it again" if shut else ""
            raise StoreUnavailable(f"the store was opened for reading{why or '; open it again to write'}")
        with ExitStack() as stack:
            if not self._lock.acquire(timeout=BRIEF_LOCK_TIMEOUT_S if brief else -1):
                raise StoreUnavailable(LOCKED_MESSAGE)
            stack.callback(self._lock.release)
            stack.enter_context(forks.using(self))
            if self._writing is not None:
                raise StoreUnavailable("a transaction is open already on this thread; finish it first")
            connection = self._writer_connection()
            self._assert_file_in_place()
            self._begin(connection, BRIEF_LOCK_TIMEOUT_S if brief else LOCK_TIMEOUT_S)
            self._writing, pid = threading.get_ident(), self._pid
            try:
                with translated_errors():
                    yield connection
                    if pid != os.getpid():
                        # The transaction belongs to the parent process.
                        raise StoreUnavailable(forks.FORKED_IN_USE_MESSAGE)
                    connection.execute("COMMIT")
            except BaseException:
                if pid == os.getpid():
                    self._roll_back(connection)
                raise
            finally:
                self._writing = None

    def _writer_connection(self) -> SqliteConnection:
        """Return the writer connection; the caller holds the lock."""
        if self._writer is None:
            self._writer = self._pool[0] if self.in_memory else self._open()
            self._writers += 1
            # This class waits in short steps. The driver's own steps grow to 0.1 s.
            self._writer.execute("PRAGMA busy_timeout=0")
            for pragma in _WRITER_PRAGMAS:
                self._writer.execute(f"PRAGMA {pragma}")
        return self._writer

    def data_version(self) -> int | None:
        """Return a number that changes when another handle changes the file; None while this handle writes."""
        self._check()
        if self.in_memory:
            return 0
        if not self._lock.acquire(blocking=False):
            return None
        try:
            if self._writing is not None:
                return None
            with forks.using(self), translated_errors():
                (version,) = self._writer_connection().execute("PRAGMA data_version").fetchone()
                return int(self._writers << 32 | version)
        finally:
            self._lock.release()

    @contextmanager
    def maintenance_connection(self) -> Iterator[SqliteConnection]:
        """Open a separate connection for statements outside transactions; other threads cannot write meanwhile."""
        self._check()
        with self._lock, forks.using(self), translated_errors(), contextlib.closing(self._open()) as connection:
            yield connection

    def _begin(self, connection: SqliteConnection, patience: float) -> None:
        """Begin to write. Retry until ``patience`` seconds have passed; see (4)."""
        if self._try_begin(connection):
            return
        began, is_reported = time.monotonic(), False
        with _writer_queue(sidecar_path(self.path, ".id")) as is_first:
            while not self._try_begin(connection, last=(waited := time.monotonic() - began) > patience):
                if waited > REPORT_AFTER_S and not is_reported:
                    is_reported = True
                    text = "another process is writing to the store; waiting for it, %d seconds at most"
                    _log.warning(text, patience, extra={"action": "waiting"})
                # A random delay keeps waiting processes from retrying at the same moment.
                time.sleep((0.5 + os.urandom(1)[0] / 256) * (FIRST_RETRY_S if is_first() else RETRY_S))

    @staticmethod
    def _try_begin(connection: SqliteConnection, *, last: bool = False) -> bool:
        """Begin to write. Return False while another process writes, unless this is the ``last`` try."""
        try:
            connection.execute("BEGIN IMMEDIATE")
        except sqlite3.Error as exc:
            name = getattr(exc, "sqlite_errorname", None) or ""
            if last or not name.startswith("SQLITE_BUSY"):
                raise translate_error(exc) from exc
            return False
        return True

    def _roll_back(self, connection: SqliteConnection) -> None:
        try:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        except sqlite3.Error:
            # Raise the first error. The journal file undoes the transaction, and the next write opens a new connection.
            connection.close()
            self._writer = None

    def scrub(self) -> str | None:
        """Rewrite the file and empty its log. Return None, or the reason to try again later; see (8)."""
        if self.in_memory:
            return None
        if not self.writable:
            return "the store can only be read"
        try:
            with self.maintenance_connection() as db:
                db.execute(f"PRAGMA busy_timeout={SCRUB_TIMEOUT_MS}")
                db.execute("VACUUM")
                busy, _, _ = db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
                return "another reader holds on to an earlier state of the file" if busy else None
        except StoreUnavailable as exc:
            return str(exc)

    def backup(self, target: Path) -> None:
        with self.reading() as db:
            write_copy(db, target)

    def close(self) -> None:
        """Close every idle connection. A second call does nothing."""
        forks.detect_fork()
        if self._closed:
            return
        with self._lock, self._pool_lock:
            self._closed = True
            for connection in self._take_idle():
                connection.close()


@contextmanager
def _writer_queue(path: Path) -> Iterator[Callable[[], bool]]:
    """Yield a function that returns whether this process is the first of the waiting writers.

    None is the first where a lock would keep others from reading the file.
    """
    try:
        file = path.open("rb") if locks.ADVISORY else None
    except OSError:
        file = None
    if file is None:
        yield lambda: False
        return

    def is_first() -> bool:
        try:
            return locks.lock_file(file.fileno(), wait=False)
        except OSError:
            return False

    with file:
        try:
            yield is_first
        finally:
            # A forked child shares the open file, so closing it here does not unlock it.
            with contextlib.suppress(OSError):
                locks.unlock_file(file.fileno())


def write_copy(source: sqlite3.Connection, target: Path) -> None:
    """Copy a database into one new file without a log. The copy is flushed, then renamed to its path.

    Raises:
        InvalidInput: the target exists.
        StoreUnavailable: the target cannot be written.
    """
    check_free(target)
    aside = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        aside.unlink(missing_ok=True)
        os.close(os.open(aside, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        with translated_errors(), connected(aside) as copy:
            source.backup(copy)
            # VACUUM drops the free pages of the source.
            copy.execute("PRAGMA journal_mode=DELETE")
            copy.execute("VACUUM")
        durable.flush(aside)
        aside.rename(target)
        durable.flush(target.parent)
    except OSError as exc:
        raise StoreUnavailable(f"cannot write {target}: {exc.strerror or 'output error'}") from exc
    finally:
        remove(aside)


def leftover_sidecar(file: Path) -> Path | None:
    """Return the leftover log of an earlier store at this path; SQLite would read it into a new store."""
    logs = (sidecar_path(file, end) for end in ("-wal", "-journal"))
    return next((log for log in logs if log.exists() and log.stat().st_size), None)


def check_free(target: Path) -> None:
    """Check that a file can be created at a path.

    Raises:
        InvalidInput: the file exists, or the log of an earlier store does.
    """
    if target.exists() or target.is_symlink():
        raise InvalidInput(f"{target.name} is there already; move it away, or name another file")
    if log := leftover_sidecar(target):
        raise InvalidInput(
            f"{log.name} is there, with what was written last to a store that is gone: move it away, or name another "
            "file"
        )


def remove(file: Path, *more: str) -> None:
    """Remove a file, its SQLite sidecar files, and the sidecars with these suffixes, as far as permissions allow."""
    for end in ("", "-wal", "-shm", "-journal", *more):
        with contextlib.suppress(OSError):
            file.with_name(file.name + end).unlink()
