"""Connections: how the file is opened, shared between threads, and how its errors are put.

Invariants
(1) One connection writes, behind a lock, in ``BEGIN IMMEDIATE``; WAL with ``synchronous=FULL``, so that
    what was acknowledged survives a power cut.
(2) A read of several statements is one snapshot on a connection of its own.
(3) Every error of the driver leaves as one of ours.
(4) Writers of several processes that have to wait do so in line, asleep; see ``turns.py``.
(5) A connection is never used on the other side of a fork.
(6) Who waits for another process for longer than a second says so in the log, once.
(7) On a full disk what is there can be read. A store that nobody is writing is then read as it stands, and the next
    write tries whether there is space again.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from keepward.errors import KeepwardError, NotAStore, StoreUnavailable, Tampered
from keepward.stores.sqlite.turns import WORD, Turns

#: How long a writer waits for another, in seconds.
PATIENCE = 30.0
#: What a write gets on a full disk.
FULL = "the disk is full; free some space and try again: nothing was lost, and what is there can be read"
#: How often the first in line tries in short steps, before it takes longer ones: about 50 ms.
SHORT = 100
# Readers come by the dozen, and each drops its pages when anybody wrote: a large cache of theirs takes memory and saves
# nothing. The writer keeps its own.
_PRAGMAS = ("trusted_schema=OFF", "foreign_keys=ON", "secure_delete=ON", "synchronous=FULL", "cache_size=-4096")
_WRITER_CACHE = "cache_size=-16384"
#: Connections of a parent process: kept, since closing them here would disturb the parent's locks.
_left_behind: list[object] = []
_log = logging.getLogger(__name__)
#: What the driver answers where there is no room for the index that readers share, or for its name.
_NO_ROOM = frozenset({"SQLITE_FULL", "SQLITE_IOERR_SHMSIZE", "SQLITE_IOERR_SHMOPEN"})


def connect(path: str, *, mode: str = "rw", pragmas: tuple[str, ...] = _PRAGMAS) -> sqlite3.Connection:
    """Open one connection; ``mode`` is ``rw``, ``ro``, ``rwc`` or ``immutable``."""
    if path == ":memory:":
        target = path
    else:
        query = "mode=ro&immutable=1" if mode == "immutable" else f"mode={mode}"
        target = f"{Path(path).absolute().as_uri()}?{query}"
    connection = sqlite3.connect(
        target, uri=True, isolation_level=None, check_same_thread=False, timeout=PATIENCE, cached_statements=256
    )
    try:
        for pragma in pragmas:
            connection.execute(f"PRAGMA {pragma}")
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


def explained(fault: sqlite3.Error) -> KeepwardError:
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
    if isinstance(fault, sqlite3.ProgrammingError) and "closed" in str(fault):
        return StoreUnavailable("the store is closed; open it again")
    return Tampered("the store's file is damaged; `keepward rescue` copies what still holds")


def _once() -> Callable[[], None]:
    """Return what says once that another process is waited for (6)."""
    told = False

    def tell() -> None:
        nonlocal told
        if not told:
            told = True
            _log.warning(
                "another process is writing to the store; waiting for it, %d seconds at most",
                PATIENCE,
                extra={"action": "waiting"},
            )

    return tell


class Connections:
    """The connections to one file, or the single one to ``:memory:``."""

    def __init__(self, path: str, *, mode: str, sleep: Callable[[float], None] = time.sleep) -> None:
        self.path = path
        self.mode = mode
        self.writable = mode == "rw"
        #: Whether there was no room to open it for writing.
        self.full = False
        self._sleep = sleep
        #: Held for a whole write; reads of a file never wait for it.
        self._lock = threading.RLock()
        self._pool_lock = threading.Lock()
        self._pool: list[sqlite3.Connection] = []
        self._pid = os.getpid()
        self._closed = False
        self._writing: int | None = None
        self._writer: sqlite3.Connection | None = None
        self._turns = Turns(None if self.in_memory else Path(f"{path}.id"))
        self._pool.append(self._open())

    @property
    def in_memory(self) -> bool:
        """Whether there is no file."""
        return self.path == ":memory:"

    def _open(self) -> sqlite3.Connection:
        with translated():
            try:
                return self._opened()
            except sqlite3.Error as fault:
                name = getattr(fault, "sqlite_errorname", None)
                if name not in _NO_ROOM or self.mode != "rw" or self._logged():
                    raise
            # Nothing is in a log, so the file alone is the store: see (7).
            _log.warning("%s", FULL, extra={"action": "disk_full"})
            self.full, self.writable, self.mode = True, False, "immutable"
            return self._opened()

    def _logged(self) -> bool:
        """Whether there is a log that holds what is not in the file yet."""
        log = Path(f"{self.path}-wal")
        return log.exists() and log.stat().st_size > 0

    def _opened(self) -> sqlite3.Connection:
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
            _left_behind.extend((*self._pool, self._writer))
            self._lock, self._pool_lock = threading.RLock(), threading.Lock()
            self._pool, self._writer, self._pid = [], None, os.getpid()
            self._writing = None
            if self.in_memory:
                self._closed = True
        if self._closed:
            raise StoreUnavailable("the store is closed; open it again")

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Lend a connection that sees one snapshot."""
        self._check()
        if self.in_memory:
            with self._lock, translated():
                yield self._pool[0]
            return
        with self._pool_lock:
            connection = self._pool.pop() if self._pool else None
        connection = connection or self._open()
        pid = self._pid
        try:
            with translated():
                connection.execute("BEGIN")
                yield connection
        finally:
            if pid != os.getpid():
                _left_behind.append(connection)
            else:
                self._give_back(connection)

    def _give_back(self, connection: sqlite3.Connection) -> None:
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
            self.full, self.writable, self.mode = False, True, "rw"
            try:
                connection = self._opened()
            except sqlite3.Error as fault:
                self.full, self.writable, self.mode = True, False, "immutable"
                raise explained(fault) from fault
            pool, self._pool = self._pool, [connection]
            writer, self._writer = self._writer, None
        for each in (*pool, writer):
            if each is not None:
                each.close()

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Lend the writing connection inside one transaction, which commits when the block ends.

        Raises:
            StoreUnavailable: read-only, or another process held the lock for half a minute.
        """
        self._check()
        if self.full:
            self._find_room()
        if not self.writable:
            raise StoreUnavailable("the store was opened for reading; its file or folder is not writable by this user")
        with self._lock:
            if self._writing is not None:
                raise StoreUnavailable("a transaction is open already on this thread; finish it first")
            connection = self._own()
            if self.full:
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

    def _own(self) -> sqlite3.Connection:
        """Return the connection that writes; the caller holds the lock."""
        if self._writer is None:
            self._writer = self._pool[0] if self.in_memory else self._open()
            # Waiting is done here, in short steps: the driver's own steps grow to a tenth of a second.
            self._writer.execute("PRAGMA busy_timeout=0")
            self._writer.execute(f"PRAGMA {_WRITER_CACHE}")
        return self._writer

    def others(self) -> int | None:
        """Return a number that is another one once somebody else has changed the file; None while this handle writes.

        Somebody else is whoever does not write through this handle, in this process or another.
        """
        self._check()
        if self.in_memory:
            return 0
        if not self._lock.acquire(blocking=False):
            return None
        try:
            if self._writing is not None:
                return None
            with translated():
                return int(self._own().execute("PRAGMA data_version").fetchone()[0])
        finally:
            self._lock.release()

    def migrate(self, migrate: Callable[[sqlite3.Connection], None]) -> None:
        """Run something that opens transactions of its own, on a connection of its own."""
        with self._lock, translated():
            connection = self._open()
            try:
                migrate(connection)
            finally:
                connection.close()

    @contextmanager
    def rewriting(self) -> Iterator[sqlite3.Connection]:
        """Lend a connection of its own for what cannot stand in a transaction, while this process writes nothing."""
        self._check()
        with self._lock, translated():
            connection = self._open()
            try:
                yield connection
            finally:
                connection.close()

    def _begin(self, connection: sqlite3.Connection) -> None:
        if self._begun(connection):
            # Whoever is awake when the file is free takes it: to wake the first in line first would leave it idle.
            return
        until = time.monotonic() + PATIENCE
        tell = _once()
        first = self._turns.take(PATIENCE, tell)
        try:
            self._try(connection, until, tell, first=first)
        finally:
            # The next one comes to the front while this one writes: it is awake when the file is free.
            self._turns.give()

    def _try(self, connection: sqlite3.Connection, until: float, tell: Callable[[], None], *, first: bool) -> None:
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
    def _begun(connection: sqlite3.Connection, *, last: bool = False) -> bool:
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
    def _roll_back(connection: sqlite3.Connection) -> None:
        try:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        except sqlite3.Error:
            # The first error is the one to tell; the journal file undoes what was begun.
            connection.close()

    def close(self) -> None:
        """Close every connection that is not lent; a second call does nothing."""
        if self._closed or self._pid != os.getpid():
            self._closed = True
            return
        with self._lock, self._pool_lock:
            self._closed = True
            self._turns.close()
            pool, self._pool = self._pool, []
            writer, self._writer = self._writer, None
        for connection in [*pool, writer]:
            if connection is not None:
                connection.close()
