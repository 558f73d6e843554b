"""SQLite as a backend: one file, its connections shared between threads, and how its errors are put.

Invariants
(1) One connection writes, behind a lock, in ``BEGIN IMMEDIATE``; WAL with ``synchronous=FULL``, so that
    what was acknowledged survives a power cut.
(2) A read of several statements is one snapshot on a connection of its own.
(3) Every error of the driver leaves as one of ours.
(4) Writers of several processes that have to wait do so in line, asleep; see ``Turns``.
(5) A connection is never used on the other side of a fork, and none is open at one; see ``forks``.
(6) Who waits for another process for longer than a second says so in the log, once.
(7) On a full disk what is there can be read. A store that nobody is writing is then read as it stands, and the next
    write tries whether there is space again.
(8) ``scrub`` leaves no byte in the file and its log that is not live: the file is written anew, since what SQLite
    overwrites on deletion is the newest place of a cell and not one that it stood at before.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, partial
from itertools import chain
from pathlib import Path
from typing import Any

from keepward import durable
from keepward.errors import Conflict, InvalidInput, KeepwardError, NotAStore, StoreUnavailable, Tampered
from keepward.locks import Loan
from keepward.store import forks
from keepward.store.sql import CLASHES, SQL, Migration, Row, Values, load_migrations, statements
from keepward.store.turns import WORD, Turns, waits

#: "KEEP" in the file's header.
APPLICATION_ID = 0x4B454550
#: How long a writer waits for another, in seconds.
PATIENCE = 30.0
#: How long a scrub waits for other processes, in milliseconds.
SCRUB_PATIENCE = 5_000
#: What a write gets on a full disk.
FULL = "the disk is full; free some space and try again: nothing was lost, and what is there can be read"
#: How often the first in line tries in short steps, before it takes longer ones: about 50 ms.
SHORT = 100
#: Rows that are inserted by one statement.
_FEW = 8
# Readers come by the dozen, and each drops its pages when anybody wrote: a large cache of theirs takes memory and saves
# nothing. The writer keeps its own.
_PRAGMAS = ("trusted_schema=OFF", "foreign_keys=ON", "secure_delete=ON", "synchronous=FULL", "cache_size=-4096")
_WRITER_CACHE = "cache_size=-16384"
#: Connections of a parent process: kept, since closing them here would disturb the parent's locks.
_left_behind: list[object] = []
_log = logging.getLogger(__name__)
#: What the driver answers where there is no room for the index that readers share, or for its name.
_NO_ROOM = frozenset({"SQLITE_FULL", "SQLITE_IOERR_SHMSIZE", "SQLITE_IOERR_SHMOPEN"})


@cache
def _together(name: str, rows: int) -> str:
    """Return a statement that inserts one row as one that inserts several."""
    head, _, rest = SQL[name].partition("VALUES (")
    cells, _, rest = rest.partition(")")
    return f"{head}VALUES {', '.join([f'({cells})'] * rows)}{rest}"


class SqliteSession(sqlite3.Connection):
    """A connection that knows the named statements."""

    fault: type[Exception] = sqlite3.Error
    searchable: bool = False
    replica: bool = False

    def run(self, name: str, values: Values = (), /, **named: Any) -> sqlite3.Cursor:
        return self.execute(SQL[name], named or values)

    def stream(self, name: str, **named: Any) -> Iterator[Row]:
        return self.execute(SQL[name], named)

    def many(self, name: str, rows: Iterable[Sequence[Any]]) -> None:
        """Run a named statement once for each row; a few rows are inserted by one statement."""
        rows = list(rows)
        if 1 < len(rows) <= _FEW and "VALUES (" in SQL[name]:
            self.execute(_together(name, len(rows)), [*chain.from_iterable(rows)])
        elif rows:
            self.executemany(SQL[name], rows)

    def enter(self, tenant: str | None) -> None:
        """Do nothing: one writer has the whole file."""


def connect(path: str, *, mode: str = "rw", pragmas: tuple[str, ...] = _PRAGMAS) -> SqliteSession:
    """Open one connection; ``mode`` is ``rw``, ``ro``, ``rwc`` or ``immutable``."""
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
        timeout=PATIENCE,
        cached_statements=256,
        factory=SqliteSession,
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
def translated() -> Iterator[None]:
    """Turn the driver's errors into ours."""
    try:
        yield
    except sqlite3.Error as fault:
        raise explained(fault) from fault


def explained(fault: Exception) -> KeepwardError:
    """Return our error for one of the driver's."""
    name = getattr(fault, "sqlite_errorname", None) or ""
    family = "SQLITE_FULL" if name in _NO_ROOM else "_".join(name.split("_")[:2])
    match family:
        case "SQLITE_BUSY" | "SQLITE_LOCKED":
            return StoreUnavailable("the store is locked by another process; close it or try again")
        case "SQLITE_READONLY":
            return StoreUnavailable("the store can only be read: its file or folder is not writable by this user")
        case "SQLITE_FULL":
            return StoreUnavailable(FULL)
        case "SQLITE_IOERR":
            return StoreUnavailable("the disk gave an error; check it and try again, what was acknowledged is kept")
        case "SQLITE_CANTOPEN" | "SQLITE_PERM" | "SQLITE_AUTH":
            return StoreUnavailable("the store's file cannot be opened; check that it exists and may be read")
        case "SQLITE_NOTADB":
            return NotAStore(
                "the file is not a Keepward store, or its beginning is damaged; `keepward rescue` copies what holds"
            )
        case "SQLITE_NOMEM":
            return StoreUnavailable("out of memory; free some and try again")
    taken = re.match(r"UNIQUE constraint failed: (\w+)", str(fault))
    if taken and taken[1] in CLASHES:
        return Conflict(CLASHES[taken[1]])
    if isinstance(fault, sqlite3.ProgrammingError) and "closed" in str(fault):
        return StoreUnavailable("the store is closed; open it again")
    return Tampered("the store's file is damaged; `keepward rescue` copies what still holds")


def lay_out(connection: SqliteSession) -> None:
    """Make an empty database a store: all migrations and a fresh id."""
    connection.execute(f"PRAGMA application_id={APPLICATION_ID}")
    migrate(connection)
    query = "INSERT INTO meta (name, value) VALUES ('store_id', lower(hex(randomblob(16)))), ('sealed_by', '')"
    connection.execute(query)


def migrate(connection: SqliteSession) -> None:
    """Bring a store to the newest schema, each step in a transaction; a second call does nothing."""
    for step in load_migrations():
        if step.number <= connection.execute("PRAGMA user_version").fetchone()[0]:
            continue
        # executescript would commit first; the statements of a migration hold no semicolon of their own.
        connection.execute("BEGIN IMMEDIATE")
        try:
            if connection.execute("PRAGMA user_version").fetchone()[0] < step.number:
                apply(connection, step)
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                # On a disk that fails this can fail as well; the first error is the one to tell.
                with contextlib.suppress(sqlite3.Error):
                    connection.execute("ROLLBACK")
            raise


def apply(connection: SqliteSession, step: Migration) -> None:
    """Take one step of the schema, and record it."""
    for statement in statements(step.sql):
        connection.execute(statement)
    query = "INSERT INTO migrations (number, name, sha256) VALUES (?, ?, ?)"
    connection.execute(query, (step.number, step.name, step.sha256))
    connection.execute(f"PRAGMA user_version={step.number}")


class Connections:
    """The connections to one file, or the single one to ``:memory:``; see ``sql.Connector``."""

    label = "sqlite"

    def __init__(self, path: str, *, mode: str, sleep: Callable[[float], None] = time.sleep) -> None:
        self.path = path
        self.mode = mode
        self.writable = mode == "rw"
        #: Whether there was no room to open it for writing.
        self._full = False
        self._sleep = sleep
        #: Held for a whole write; reads of a file never wait for it.
        self._lock: Loan | threading.RLock = Loan() if self.in_memory else threading.RLock()
        #: The collector may give back the connection of an abandoned reader while this thread holds it.
        self._pool_lock = threading.Condition(threading.RLock())
        self._pool: list[SqliteSession] = []
        #: Connections that readers have.
        self._lent = 0
        self._pid = os.getpid()
        self._closed = False
        self._writing: int | None = None
        self._writer: SqliteSession | None = None
        #: Connections that have been the writer's so far; of each, the number of others' changes begins anew.
        self._writers = 0
        self._turns = Turns(None if self.in_memory else Path(f"{path}.id"))
        with self._lock:
            if not self.in_memory:
                forks.watch(self)
            self._pool.append(self._open())

    @property
    def in_memory(self) -> bool:
        """Whether there is no file."""
        return self.path == ":memory:"

    @property
    def has_open(self) -> bool:
        """Whether the file may be open: readers that are under way outlast the closing."""
        return not self._closed or self._lent > 0

    def explained(self, fault: Exception) -> KeepwardError:
        return explained(fault)

    def full(self) -> str | None:
        return FULL if self._full else None

    def shared(self, key: bytes | None, monotonic: Callable[[], float]) -> None:
        """Return None: what a server remembers is its own."""

    def outside(self, statement: str) -> None:
        with self.reading() as db:
            db.execute(statement)

    def check(self) -> Iterator[tuple[str, str]]:
        """Yield what SQLite itself finds wrong: pages, indexes, uniqueness, and a schema that is not as released."""
        with self.reading() as db:
            for (line,) in db.execute("PRAGMA integrity_check(20)").fetchall():
                if line != "ok":
                    yield "file", str(line).replace("\n", " ")
            query = "SELECT type || ' ' || name, sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
            held = dict(db.execute(query).fetchall())
            with contextlib.closing(connect(":memory:")) as fresh:
                lay_out(fresh)
                wanted = dict(fresh.execute(query).fetchall())
        for name in sorted(wanted.keys() | held.keys()):
            if wanted.get(name) != held.get(name):
                yield f"sqlite_schema {name}", "it is not what the migrations make"

    def size(self) -> int:
        return 0 if self.in_memory else Path(self.path).stat().st_size

    def _open(self) -> SqliteSession:
        with translated():
            try:
                forks.check(self.path)
                return self._opened()
            except sqlite3.Error as fault:
                name = getattr(fault, "sqlite_errorname", None)
                if name not in _NO_ROOM or self.mode != "rw" or self._logged():
                    raise
            # Nothing is in a log, so the file alone is the store: see (7).
            _log.warning("%s", FULL, extra={"action": "disk_full"})
            self._full, self.writable, self.mode = True, False, "immutable"
            return self._opened()

    def _logged(self) -> bool:
        """Whether there is a log that holds what is not in the file yet."""
        log = Path(f"{self.path}-wal")
        return log.exists() and log.stat().st_size > 0

    def _opened(self) -> SqliteSession:
        connection = connect(self.path, mode=self.mode)
        try:
            # The first statement opens the file; before it, its errors lie hidden.
            connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        except UnicodeDecodeError as fault:
            # The driver cannot even tell what is wrong with the schema.
            connection.close()
            raise Tampered("the store's schema is damaged; `keepward rescue` copies what still holds") from fault
        except sqlite3.Error:
            connection.close()
            raise
        return connection

    def _check(self) -> None:
        if self._pid != os.getpid():
            # Nothing was closed before this fork; what is in memory is the parent's alone.
            self.renew()
            self._closed = self._closed or self.in_memory
            forks.refuse(self.path)
        if self._closed:
            raise StoreUnavailable("the store is closed; open it again")

    def pause(self, patience: float) -> bool:
        """Close what is idle and let nobody open more; return whether nothing is open; see ``forks``."""
        if not self._lock.acquire(timeout=patience):
            return False
        if self._writing is None and self._pool_lock.acquire(timeout=patience):
            if self._pool_lock.wait_for(lambda: not self._lent, patience):
                for connection in self._idle():
                    connection.close()
                return True
            self._pool_lock.release()
        self._lock.release()
        return False

    def resume(self) -> None:
        """Let readers and writers in again; the caller has paused."""
        self._pool_lock.release()
        self._lock.release()

    def renew(self) -> None:
        """Begin anew in a child, with nothing open."""
        _left_behind.extend(self._idle())
        self._lock, self._pool_lock = threading.RLock(), threading.Condition(threading.RLock())
        self._lent, self._writing, self._pid = 0, None, os.getpid()

    def _idle(self) -> list[SqliteSession]:
        """Take out the connections that are not lent; the caller holds the locks."""
        pool, self._pool = self._pool, []
        writer, self._writer = self._writer, None
        return pool if writer is None else [*pool, writer]

    @contextmanager
    def reading(self, tenant: str | None = None, *, spread: bool = False) -> Iterator[SqliteSession]:
        del tenant, spread
        self._check()
        if self.in_memory:
            with self._lock, translated():
                yield self._pool[0]
            return
        with self._pool_lock:
            connection = self._pool.pop() if self._pool else None
            self._lent += 1
        pid = self._pid
        try:
            connection = connection or self._open()
            with translated():
                connection.execute("BEGIN")
                yield connection
        finally:
            if pid != os.getpid():
                _left_behind.append(connection)
            else:
                if connection is not None:
                    self._give_back(connection)
                with self._pool_lock:
                    self._lent -= 1
                    self._pool_lock.notify_all()

    def _give_back(self, connection: SqliteSession) -> None:
        try:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        except sqlite3.Error:
            connection.close()
            return
        with self._pool_lock:
            if not self._closed and len(self._pool) < 16:
                self._pool.append(connection)
                return
        connection.close()

    def _find_room(self) -> None:
        """Open the store for writing again, where there is space by now.

        Raises:
            StoreUnavailable: there is not.
        """
        with self._lock, self._pool_lock:
            self._full, self.writable, self.mode = False, True, "rw"
            try:
                connection = self._opened()
            except sqlite3.Error as fault:
                self._full, self.writable, self.mode = True, False, "immutable"
                raise explained(fault) from fault
            idle = self._idle()
            self._pool.append(connection)
        for each in idle:
            each.close()

    @contextmanager
    def writing(self) -> Iterator[SqliteSession]:
        """Lend the writing connection inside one transaction, which commits when the block ends.

        Raises:
            StoreUnavailable: read-only, or another process held the lock for half a minute.
        """
        self._check()
        if self._full:
            self._find_room()
        if not self.writable:
            raise StoreUnavailable("the store was opened for reading; its file or folder is not writable by this user")
        with self._lock:
            if self._writing is not None:
                raise StoreUnavailable("a transaction is open already on this thread; finish it first")
            connection = self._own()
            if self._full:
                raise StoreUnavailable(FULL)
            self._begin(connection)
            self._writing = threading.get_ident()
            try:
                with translated():
                    yield connection
                    connection.execute("COMMIT")
            except BaseException:
                self._roll_back(connection)
                raise
            finally:
                self._writing = None

    def _own(self) -> SqliteSession:
        """Return the connection that writes; the caller holds the lock."""
        if self._writer is None:
            self._writer = self._pool[0] if self.in_memory else self._open()
            self._writers += 1
            # Waiting is done here, in short steps: the driver's own steps grow to a tenth of a second.
            self._writer.execute("PRAGMA busy_timeout=0")
            self._writer.execute(f"PRAGMA {_WRITER_CACHE}")
        return self._writer

    def others(self) -> int | None:
        """Return a number that is another one once other handles have changed the file; None while this one writes."""
        self._check()
        if self.in_memory:
            return 0
        if not self._lock.acquire(blocking=False):
            return None
        try:
            if self._writing is not None:
                return None
            with translated():
                (version,) = self._own().execute("PRAGMA data_version").fetchone()
                return int(self._writers << 32 | version)
        finally:
            self._lock.release()

    @contextmanager
    def rewriting(self) -> Iterator[SqliteSession]:
        """Lend a connection of its own for what cannot stand in a transaction, while this process writes nothing."""
        self._check()
        with self._lock, translated():
            connection = self._open()
            try:
                yield connection
            finally:
                connection.close()

    def _begin(self, connection: SqliteSession) -> None:
        if self._begun(connection):
            # Whoever is awake when the file is free takes it: to wake the first in line first would leave it idle.
            return
        until = time.monotonic() + PATIENCE
        # Said once (6).
        tell = cache(partial(waits, PATIENCE))
        first = self._turns.take(PATIENCE, tell)
        try:
            self._try(connection, until, tell, first=first)
        finally:
            # The next one comes to the front while this one writes: it is awake when the file is free.
            self._turns.give()

    def _try(self, connection: SqliteSession, until: float, tell: Callable[[], None], *, first: bool) -> None:
        """Begin, or wait and try again; ``first`` in line nobody else tries, and short steps are cheap."""
        attempt = 0
        while not self._begun(connection, last=time.monotonic() > until):
            if time.monotonic() > until - PATIENCE + WORD:
                tell()
            # Differs from process to process, so that those who wait do not return together.
            jitter = 0.5 + (os.getpid() * 7919 + attempt * 104_729) % 997 / 997
            longest = 0.0005 if first and attempt < SHORT else 0.008
            self._sleep(min(0.0004 * 2 ** min(attempt, 5), longest) * jitter)
            attempt += 1

    @staticmethod
    def _begun(connection: SqliteSession, *, last: bool = False) -> bool:
        """Begin; return False when another writes, unless this is the ``last`` try."""
        try:
            connection.execute("BEGIN IMMEDIATE")
        except sqlite3.Error as fault:
            name = getattr(fault, "sqlite_errorname", None) or ""
            if last or not name.startswith("SQLITE_BUSY"):
                raise explained(fault) from fault
            return False
        return True

    @staticmethod
    def _roll_back(connection: SqliteSession) -> None:
        try:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        except sqlite3.Error:
            # The first error is the one to tell; the journal file undoes what was begun.
            connection.close()

    def scrub(self) -> str | None:
        """Write the file anew and empty its log; return None, or why that has to wait; see (8)."""
        if self.in_memory:
            return None
        if not self.writable:
            return "the store can only be read"
        try:
            with self.rewriting() as db:
                db.execute(f"PRAGMA busy_timeout={SCRUB_PATIENCE}")
                db.execute("VACUUM")
                busy, _, _ = db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
                return "another reader holds on to an earlier state of the file" if busy else None
        except StoreUnavailable as fault:
            return str(fault)

    def blob_store(self) -> None:
        """Return None: bytes of blobs are kept in a folder beside the file."""
        return

    def backup(self, target: Path) -> None:
        with self.reading() as db:
            write_copy(db, target)

    def close(self) -> None:
        """Close every connection that is not lent; a second call does nothing."""
        if self._closed or self._pid != os.getpid():
            self._closed = True
            return
        with self._lock, self._pool_lock:
            self._closed = True
            self._turns.close()
            idle = self._idle()
        for connection in idle:
            connection.close()


def write_copy(source: sqlite3.Connection, target: Path) -> None:
    """Copy a whole database into a new file, flushed and then renamed; one file, without a log of its own.

    Raises:
        InvalidInput: the file is there.
        StoreUnavailable: it cannot be written.
    """
    if target.exists():
        raise InvalidInput(f"{target.name} is there already; name another file")
    aside = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        aside.unlink(missing_ok=True)
        os.close(os.open(aside, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        with translated():
            copy = connect(str(aside))
            try:
                source.backup(copy)
                # VACUUM leaves behind what lay in free pages of the source.
                copy.execute("PRAGMA journal_mode=DELETE")
                copy.execute("VACUUM")
            finally:
                copy.close()
        durable.flush(aside)
        aside.rename(target)
        durable.flush(target.parent)
    except OSError as fault:
        raise StoreUnavailable(f"cannot write {target.name}: {fault.strerror or 'output error'}") from fault
    finally:
        remove(aside)


def remove(file: Path, *more: str) -> None:
    """Remove a file with what SQLite keeps beside it, and what ends as ``more`` says, as far as that can be done."""
    for end in ("", "-wal", "-shm", "-journal", *more):
        with contextlib.suppress(OSError):
            file.with_name(file.name + end).unlink()
