"""SQLite as a backend: one file, its connections shared between threads, and how its errors are put.

Invariants
(1) One connection writes, behind a lock, in ``BEGIN IMMEDIATE``; WAL with ``synchronous=FULL``, so that
    what was acknowledged survives a power cut.
(2) A read of several statements is one snapshot on a connection of its own.
(3) Every error of the driver leaves as one of ours.
(4) Of the processes that wait to write, one at a time holds a file lock and tries often; the others try seldom. Only
    SQLite's own lock protects data, so a process that hangs or dies with the file lock delays no one.
(5) A connection is never used on the other side of a fork; see ``forks``.
(6) Who waits for another process for longer than a second says so in the log, once.
(7) On a full disk what is open can be read, and a store cannot be opened.
(8) ``scrub`` leaves no byte in the file and its log that is not live: the file is written anew, since what SQLite
    overwrites on deletion is the newest place of a cell and not one that it stood at before.
(9) A handle is of one file: once another is at its path, or none, it opens, reads and writes nothing.
(10) Who may not write the file makes nothing beside it, which its writers could not write either. Where nobody is
    writing, it is read as it stands, and opened anew once somebody has written.
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path

from keepward import durable
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
from keepward.storage.sql import Migration, load_migrations, statements

#: "KEEP" in the file's header.
APPLICATION_ID = 0x4B454550
#: How long a scrub waits for other processes, in milliseconds.
SCRUB_TIMEOUT_MS = 5_000
#: Seconds after which a writer that waits says so in the log.
REPORT_AFTER_S = 1.0
#: Mean seconds between two tries of the first waiting writer, and of the others.
FIRST_RETRY_S, RETRY_S = 0.0005, 0.015
#: Pages that the writer keeps, and bytes that stay of a log which one large transaction made long.
_WRITER_PRAGMAS = ("cache_size=-16384", "journal_size_limit=16777216")
#: Connections of a parent process: kept, since closing them here would disturb the parent's locks.
_connections_of_parent: list[object] = []
_log = logging.getLogger(__name__)


def create_schema(connection: SqliteConnection) -> None:
    """Make an empty database a store: all migrations and a fresh id."""
    connection.execute(f"PRAGMA application_id={APPLICATION_ID}")
    migrate(connection)
    query = "INSERT INTO meta (name, value) VALUES ('store_id', lower(hex(randomblob(16)))), ('sealed_by', '')"
    connection.execute(query)


def migrate(connection: SqliteConnection) -> None:
    """Bring a store to the newest schema, each step in a transaction; a second call does nothing."""
    for step in load_migrations():
        if step.number <= connection.execute("PRAGMA user_version").fetchone()[0]:
            continue
        # executescript would commit first; the statements of a migration hold no semicolon of their own.
        connection.execute("BEGIN IMMEDIATE")
        try:
            if connection.execute("PRAGMA user_version").fetchone()[0] < step.number:
                apply_migration(connection, step)
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                # On a disk that fails this can fail as well; the first error is the one to tell.
                with contextlib.suppress(sqlite3.Error):
                    connection.execute("ROLLBACK")
            raise


def apply_migration(connection: SqliteConnection, step: Migration) -> None:
    """Take one step of the schema, and record it."""
    for statement in statements(step.sql):
        connection.execute(statement)
    query = "INSERT INTO migrations (number, name, sha256) VALUES (?, ?, ?)"
    connection.execute(query, (step.number, step.name, step.sha256))
    connection.execute(f"PRAGMA user_version={step.number}")


class SqliteDatabase:
    """The connections to one file, or the single one to ``:memory:``; see ``sql.Database``."""

    server: None = None

    def __init__(self, path: str, *, mode: str) -> None:
        self.path = path if path == ":memory:" else str(Path(path).absolute())
        #: Of the file that was opened first, see (9); None where there is none.
        self.identity: forks.FileIdentity | None = None
        self.mode, self.writable = mode, mode == "rw"
        #: How the file was opened last, and as what it stood then; see (10).
        self._opening = self._now()
        #: Held for a whole write; reads of a file never wait for it.
        self._lock: ReleasableLock | threading.RLock = ReleasableLock() if self.in_memory else threading.RLock()
        #: The collector may give back the connection of an abandoned reader while this thread holds it.
        self._pool_lock = threading.RLock()
        self._pool: list[SqliteConnection] = []
        self._pid = os.getpid()
        self._closed = False
        self._writing: int | None = None
        self._writer: SqliteConnection | None = None
        #: Connections that have been the writer's so far; of each, the number of others' changes begins anew.
        self._writers = 0
        forks.close_before_fork(self)
        with forks.using(self):
            self._pool.append(self._open())

    @property
    def in_memory(self) -> bool:
        """Whether there is no file."""
        return self.path == ":memory:"

    @property
    def has_open(self) -> bool:
        """Whether the file may be open: readers that are under way outlast the closing."""
        return not self._closed or self.has_connections

    @property
    def has_connections(self) -> bool:
        """Whether a connection is open, or being opened."""
        return bool(self._pool or self._writer or forks.in_use(self))

    def check(self) -> Iterator[tuple[str, str]]:
        """Yield what SQLite itself finds wrong: pages, indexes, uniqueness, and a schema that is not as released."""
        with self.reading() as db:
            for (line,) in db.execute("PRAGMA integrity_check(20)").fetchall():
                if line != "ok":
                    yield "file", str(line).replace("\n", " ")
            query = "SELECT type || ' ' || name, sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
            held = dict(db.execute(query).fetchall())
            with connected(":memory:") as fresh:
                create_schema(fresh)
                wanted = dict(fresh.execute(query).fetchall())
        for name in sorted(wanted.keys() | held.keys()):
            if wanted.get(name) != held.get(name):
                yield f"sqlite_schema {name}", "it is not what the migrations make"

    def size(self) -> int:
        self._assert_file_in_place()
        return 0 if self.in_memory else Path(self.path).stat().st_size

    def _open(self) -> SqliteConnection:
        with translated_errors(), ExitStack() as opening:
            connection = opening.enter_context(contextlib.closing(connect(self.path, mode=self._opening[0])))
            try:
                # The first statement opens the file; before it, its errors lie hidden.
                connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
            except UnicodeDecodeError as exc:
                # The driver cannot even tell what is wrong with the schema.
                raise Tampered(
                    "the store's schema is damaged; `keepward store recover` copies what still holds"
                ) from exc
            self._assert_file_in_place()
            opening.pop_all()
            return connection

    def _now(self) -> tuple[str, object]:
        """Return how to open the file now, and as what it stands where it is read as it stands; see (10)."""
        return ("rw", None) if self.mode == "rw" else read_mode(self.path)

    def _reopen_if_changed(self) -> None:
        """Let go of what was opened before others wrote a file that this process may only read."""
        if self.mode == "rw":
            return
        self._assert_file_in_place()
        with self._lock, self._pool_lock:
            if (now := self._now()) != self._opening:
                self._opening = now
                for each in self._take_idle():
                    each.close()

    def _assert_file_in_place(self) -> None:
        """See to (9)."""
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
        """Begin anew in a child, with nothing open; what is in memory is the parent's alone."""
        _connections_of_parent.extend(self._take_idle())
        self._closed = self._closed or self.in_memory
        self._lock, self._pool_lock = threading.RLock(), threading.RLock()
        self._writing, self._pid = None, os.getpid()

    def _take_idle(self) -> list[SqliteConnection]:
        """Take out the connections that are not lent; the caller holds the locks."""
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
        """Refuse what was read of a file as it stands, once it was written meanwhile.

        Raises:
            StoreUnavailable: it was.
        """
        try:
            yield
        finally:
            if self._now() != opening:
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
        """Lend the writing connection inside one transaction, which commits when the block ends.

        Raises:
            StoreUnavailable: read-only, or another process held the lock for half a minute; ``brief``, for 5 seconds.
        """
        self._check()
        if not self.writable:
            shut = first_unwritable_path(Path(self.path))
            why = f": this user may not write {shut}; change that, and open it again" if shut else ""
            raise StoreUnavailable(f"the store was opened for reading{why or '; open it again to write'}")
        with ExitStack() as held:
            if not self._lock.acquire(timeout=BRIEF_LOCK_TIMEOUT_S if brief else -1):
                raise StoreUnavailable(LOCKED_MESSAGE)
            held.callback(self._lock.release)
            held.enter_context(forks.using(self))
            if self._writing is not None:
                raise StoreUnavailable("a transaction is open already on this thread; finish it first")
            connection = self._own()
            self._assert_file_in_place()
            self._begin(connection, BRIEF_LOCK_TIMEOUT_S if brief else LOCK_TIMEOUT_S)
            self._writing, pid = threading.get_ident(), self._pid
            try:
                with translated_errors():
                    yield connection
                    if pid != os.getpid():
                        # The transaction is the parent's, which commits it, or does not.
                        raise StoreUnavailable(forks.FORKED_IN_USE_MESSAGE)
                    connection.execute("COMMIT")
            except BaseException:
                if pid == os.getpid():
                    self._roll_back(connection)
                raise
            finally:
                self._writing = None

    def _own(self) -> SqliteConnection:
        """Return the connection that writes; the caller holds the lock."""
        if self._writer is None:
            self._writer = self._pool[0] if self.in_memory else self._open()
            self._writers += 1
            # Waiting is done here, in short steps: the driver's own steps grow to a tenth of a second.
            self._writer.execute("PRAGMA busy_timeout=0")
            for pragma in _WRITER_PRAGMAS:
                self._writer.execute(f"PRAGMA {pragma}")
        return self._writer

    def data_version(self) -> int | None:
        """Return a number that is another one once other handles have changed the file; None while this one writes."""
        self._check()
        if self.in_memory:
            return 0
        if not self._lock.acquire(blocking=False):
            return None
        try:
            if self._writing is not None:
                return None
            with forks.using(self), translated_errors():
                (version,) = self._own().execute("PRAGMA data_version").fetchone()
                return int(self._writers << 32 | version)
        finally:
            self._lock.release()

    @contextmanager
    def maintenance_connection(self) -> Iterator[SqliteConnection]:
        """Lend a connection of its own for what cannot stand in a transaction, while this process writes nothing."""
        self._check()
        with self._lock, forks.using(self), translated_errors(), contextlib.closing(self._open()) as connection:
            yield connection

    def _begin(self, connection: SqliteConnection, patience: float) -> None:
        """Begin to write, or try again until ``patience`` seconds have passed; see (4)."""
        if self._begun(connection):
            return
        began, is_reported = time.monotonic(), False
        with _writer_queue(sidecar_path(self.path, ".id")) as is_first:
            while not self._begun(connection, last=(waited := time.monotonic() - began) > patience):
                if waited > REPORT_AFTER_S and not is_reported:
                    is_reported = True
                    text = "another process is writing to the store; waiting for it, %d seconds at most"
                    _log.warning(text, patience, extra={"action": "waiting"})
                # Random, so that waiting processes do not try at the same moments.
                time.sleep((0.5 + os.urandom(1)[0] / 256) * (FIRST_RETRY_S if is_first() else RETRY_S))

    @staticmethod
    def _begun(connection: SqliteConnection, *, last: bool = False) -> bool:
        """Begin; return False when another writes, unless this is the ``last`` try."""
        try:
            connection.execute("BEGIN IMMEDIATE")
        except sqlite3.Error as fault:
            name = getattr(fault, "sqlite_errorname", None) or ""
            if last or not name.startswith("SQLITE_BUSY"):
                raise translate_error(fault) from fault
            return False
        return True

    def _roll_back(self, connection: SqliteConnection) -> None:
        try:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        except sqlite3.Error:
            # The first error is the one to tell; the journal file undoes what was begun. The next write opens another.
            connection.close()
            self._writer = None

    def scrub(self) -> str | None:
        """Write the file anew and empty its log; return None, or why that has to wait; see (8)."""
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
        except StoreUnavailable as fault:
            return str(fault)

    def backup(self, target: Path) -> None:
        with self.reading() as db:
            write_copy(db, target)

    def close(self) -> None:
        """Close every connection that is not lent; a second call does nothing."""
        forks.detect_fork()
        if self._closed:
            return
        with self._lock, self._pool_lock:
            self._closed = True
            for connection in self._take_idle():
                connection.close()


@contextmanager
def _writer_queue(path: Path) -> Iterator[Callable[[], bool]]:
    """Yield a function that returns whether this process is the first of those that wait to write."""
    try:
        file = path.open("rb")
    except OSError:
        yield lambda: False
        return

    def is_first() -> bool:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        return True

    with file:
        try:
            yield is_first
        finally:
            # A child forked meanwhile has the same file open: closing it here alone would not unlock it.
            with contextlib.suppress(OSError):
                fcntl.flock(file, fcntl.LOCK_UN)


def write_copy(source: sqlite3.Connection, target: Path) -> None:
    """Copy a whole database into a new file, flushed and then renamed; one file, without a log of its own.

    Raises:
        InvalidInput: the file is there.
        StoreUnavailable: it cannot be written.
    """
    check_free(target)
    aside = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        aside.unlink(missing_ok=True)
        os.close(os.open(aside, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        with translated_errors(), connected(aside) as copy:
            source.backup(copy)
            # VACUUM leaves behind what lay in free pages of the source.
            copy.execute("PRAGMA journal_mode=DELETE")
            copy.execute("VACUUM")
        durable.flush(aside)
        aside.rename(target)
        durable.flush(target.parent)
    except OSError as fault:
        raise StoreUnavailable(f"cannot write {target.name}: {fault.strerror or 'output error'}") from fault
    finally:
        remove(aside)


def leftover_sidecar(file: Path) -> Path | None:
    """Return what is beside a file's place of a store that was there: SQLite would read it into a new one."""
    logs = (sidecar_path(file, end) for end in ("-wal", "-journal"))
    return next((each for each in logs if each.exists() and each.stat().st_size), None)


def check_free(target: Path) -> None:
    """Make sure that a file can be made at a place.

    Raises:
        InvalidInput: one is there, or what another left beside it.
    """
    if target.exists() or target.is_symlink():
        raise InvalidInput(f"{target.name} is there already; move it away, or name another file")
    if log := leftover_sidecar(target):
        raise InvalidInput(
            f"{log.name} is there, with what was written last to a store that is gone: move it away, or name another "
            "file"
        )


def remove(file: Path, *more: str) -> None:
    """Remove a file with what SQLite keeps beside it, and what ends as ``more`` says, as far as that can be done."""
    for end in ("", "-wal", "-shm", "-journal", *more):
        with contextlib.suppress(OSError):
            file.with_name(file.name + end).unlink()
