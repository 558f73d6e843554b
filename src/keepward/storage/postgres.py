"""PostgreSQL as a database: a pool of connections, snapshots and transactions.

A read of several statements is one snapshot (REPEATABLE READ). A write is one transaction, see
``postgres_connection.py``. A connection never crosses a fork: the child opens its own.

Late imports: an extra may be missing.
"""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from keepward.core.blob import is_blob_path
from keepward.errors import InvalidInput, StoreUnavailable
from keepward.locks import ForkSafeLock
from keepward.storage.server_state import SharedState
from keepward.storage.sql import Row, load_migrations

try:
    import psycopg

    from keepward.storage import postgres_schema as schema
    from keepward.storage.postgres_connection import READ_ONLY, PostgresConnection, translated_errors
    from keepward.storage.postgres_pool import Pool, PooledConnection
except ImportError as exc:
    raise StoreUnavailable(
        "a store on PostgreSQL needs its driver: install `keepward[postgres]` and try again"
    ) from exc

#: Seconds that a writer waits for another of the same tenant, and a caller for a connection.
LOCK_TIMEOUT_S = 30
#: Seconds that a read waits to write its receipt.
BRIEF_LOCK_TIMEOUT_S = 5
#: Seconds that the rewrite of a table waits for a lock at a time, and between two tries.
REWRITE_LOCK_TIMEOUT_S, _REWRITE_PAUSE_S = 1, 0.2
#: Most connections of one process.
MAX_CONNECTIONS = 16
#: Seconds between two queries for changes by other processes; see ``data_version``.
CHANGE_POLL_INTERVAL_S = 60.0
#: Without statements that the server prepares: they would outlive a transaction, see ``_pooled``.
_CONNECT_OPTIONS: dict[str, Any] = {"autocommit": True, "connect_timeout": 10, "prepare_threshold": None}
_HAS_VECTORS = "SELECT to_regclass('candidate_vectors') IS NOT NULL"
#: Advisory lock of the blobs.
_BLOB_LOCK_ID = 0x4B454552


class PostgresDatabase:
    """The connections to one database; see ``sql.Database``."""

    def __init__(self, url: str, *, create: bool, read_only: bool) -> None:
        """Connect, and create or migrate the store.

        Raises:
            StoreUnavailable, NotAStore, NewerSchema: the message says what to do.
        """
        self._url = url
        with _connected(self._url) as connection:
            query = "SELECT pg_is_in_recovery(), pg_backend_pid()"
            recovering, process = connection.execute(query).fetchone() or (False, 0)
            # A pooler answers with a number of its own. It may give each transaction another connection to the server.
            self._pooled = process != connection.info.backend_pid
            (shut,) = connection.execute("SHOW default_transaction_read_only").fetchone() or ("off",)
            self.writable = not (read_only or recovering or shut == "on")
            self.store_id = schema.prepare(connection, create=create and self.writable, writable=self.writable)
        self._lock = ForkSafeLock()
        self._pid = os.getpid()
        self._closed = False
        self._open()
        self._writing = threading.local()
        self._shared: SharedState | None = None
        self._version, self._last, self._own, self._polled_at = 0, -1, 0, -CHANGE_POLL_INTERVAL_S

    def _open(self) -> None:
        options = _CONNECT_OPTIONS if self._pooled else {**_CONNECT_OPTIONS, "prepare_threshold": 5}
        connect = partial(psycopg.connect, self._url, **options)
        self._pool = Pool(connect, size=MAX_CONNECTIONS, patience_s=LOCK_TIMEOUT_S, waits=self._pooled)

    @contextmanager
    def _connection(self) -> Iterator[PooledConnection]:
        """Yield a pooled connection for the block; the block leaves no transaction open."""
        if self._pid != os.getpid():
            self._pid = os.getpid()
            self._open()
        if self._closed:
            raise StoreUnavailable("the store is closed; open it again")
        with translated_errors():
            pool, pid = self._pool, os.getpid()
            pooled = pool.take()
            try:
                yield pooled
            finally:
                if pid == os.getpid():
                    pool.give_back(pooled)

    @contextmanager
    def _transaction(self, level: str, *, writes: bool, patience: int = LOCK_TIMEOUT_S) -> Iterator[PostgresConnection]:
        with self._connection() as pooled:
            lock = self.store_id if writes else None
            connection, pid = PostgresConnection(pooled, f"BEGIN ISOLATION LEVEL {level}", lock, patience), os.getpid()
            try:
                yield connection
                if writes:
                    taken = connection.commit()
                    with self._lock:
                        self._own += taken
                else:
                    connection.end()
            except BaseException:
                with suppress(psycopg.Error):
                    connection.roll_back()
                if pooled.connection.broken and pid == os.getpid():
                    # If the server was stopped, the idle connections are broken too: drop them before the next caller.
                    self._pool.drop_idle()
                raise

    def shared_state(self, key: bytes | None, monotonic: Callable[[], float]) -> SharedState | None:
        """Return the state that servers of this database share; None without a key or when read-only."""
        if key is None or not self.writable:
            return None
        if self._shared is None:
            self._shared = SharedState(self.tenantless_transaction, self.store_id, key, monotonic)
        return self._shared

    @property
    def concurrent(self) -> bool:
        return True

    @property
    def server(self) -> PostgresDatabase:
        """The database itself: several servers share it."""
        return self

    def tenantless_transaction(self) -> AbstractContextManager[PostgresConnection]:
        """Open one transaction without a tenant for the block."""
        return self._transaction("READ COMMITTED", writes=True)

    @contextmanager
    def reading(self, tenant: str | None = None) -> Iterator[PostgresConnection]:
        """Open one snapshot for the block, of one tenant or of all."""
        with self._transaction("REPEATABLE READ", writes=False) as connection:
            connection.select_tenant(tenant)
            yield connection

    @contextmanager
    def writing(self, *, brief: bool = False) -> Iterator[PostgresConnection]:
        """Open one transaction for the block. It commits when the block ends.

        Raises:
            StoreUnavailable: read-only, or another held the tenant's lock for 30 s; with ``brief``, for 5 s.
        """
        if not self.writable:
            raise StoreUnavailable(READ_ONLY)
        if getattr(self._writing, "open", False):
            raise StoreUnavailable("a transaction is open already on this thread; finish it first")
        self._writing.open = True
        try:
            with self._transaction(
                "READ COMMITTED", writes=True, patience=BRIEF_LOCK_TIMEOUT_S if brief else LOCK_TIMEOUT_S
            ) as connection:
                connection.select_tenant(None)
                yield connection
        finally:
            self._writing.open = False

    def data_version(self) -> int | None:
        """Return a number that changes when another process changes the database; see ``CHANGE_POLL_INTERVAL_S``.

        The server numbers every writing transaction. If the numbers advance by more than this handle's transactions,
        another handle has written.
        """
        with self._lock:
            now = time.monotonic()
            if now - self._polled_at >= CHANGE_POLL_INTERVAL_S:
                with self.reading() as db:
                    (last,) = db.run("next_transaction").fetchone() or (0,)
                self._version += last != self._last + self._own
                self._last, self._own, self._polled_at = last, 0, now
            return self._version

    def create_vectors(self) -> None:
        """Create what candidates from the database need.

        Raises:
            StoreUnavailable: the database lacks pgvector; the message says what to install.
        """
        with _connected(self._url) as connection:
            schema.create_vectors(connection)

    def execute_autocommit(self, statement: str) -> None:
        """Run a statement that PostgreSQL rejects inside a transaction, for example CREATE INDEX CONCURRENTLY."""
        with _connected(self._url) as connection:
            connection.execute(statement)

    def check(self) -> Iterator[tuple[str, str]]:
        """Yield tables without row-level security, missing indexes, and wrong candidate rows."""
        with self.reading() as db:
            for (name,) in db.run("unguarded_tables").fetchall():
                yield f"schema {name}", "its row-level security is off"
            existing = {name for (name,) in db.run("indexes").fetchall()}
            # Without vectors no tenant has candidates.
            lacking = db.run("candidates_lacking") if db.execute(_HAS_VECTORS).fetchone() == (True,) else ()
            for (tenant,) in lacking:
                yield f"candidates {tenant}", "candidates are missing or too many: recall misses what it should find"
        for step in load_migrations():
            for name in re.findall(r"CREATE (?:UNIQUE )?INDEX (\w+)", step.sql):
                if name not in existing:
                    yield f"schema {name}", "it is not what the migrations make"

    def size(self, db: PostgresConnection) -> int:
        return int((db.run("size_of_tables").fetchone() or (0,))[0])

    def scrub(self) -> str | None:
        """Rewrite the tables from their live rows. The database itself recycles its write-ahead log."""
        if not self.writable:
            return "the store can only be read"
        try:
            with _connected(self._url) as connection:
                if not self._pooled:
                    # VACUUM runs outside transactions. A pooler would keep the setting for others.
                    connection.execute(f"SET lock_timeout = '{REWRITE_LOCK_TIMEOUT_S}s'")
                until = time.monotonic() + LOCK_TIMEOUT_S
                for table in (*schema.tables(), "server_state"):
                    if schema.has_table(connection, table):
                        _rewrite(connection, table, until)
        except StoreUnavailable as exc:
            return str(exc)
        return None

    def backup(self, target: Path) -> None:
        """Refuse: a database is copied by its own tools.

        Raises:
            StoreUnavailable: always.
        """
        raise StoreUnavailable(
            f"{target.name} is not written: a store on PostgreSQL is copied with `pg_dump`, or with `keepward export`"
        )

    def blob_store(self) -> PostgresBlobs:
        """Return where the bytes of blobs are stored: in a table, because servers share no folder."""
        return PostgresBlobs(self, self._url)

    def close(self) -> None:
        """Close every idle connection. A second call does nothing."""
        if not self._closed and self._pid == os.getpid():
            self._pool.close()
        self._closed = True


class PostgresBlobs:
    """Stores bytes in a table by path; see ``ports.world.BlobStore``."""

    def __init__(self, database: PostgresDatabase, url: str) -> None:
        self._database, self._url = database, url

    @contextmanager
    def locked(self, *, alone: bool = False) -> Iterator[None]:
        """Lock the blobs against removal during the block; ``alone`` also against additions."""
        kind = "" if alone else "_shared"
        with _connected(self._url) as connection, connection.transaction():
            connection.execute(f"SET LOCAL lock_timeout = '{LOCK_TIMEOUT_S}s'")
            # The end of the transaction releases the lock.
            connection.execute(f"SELECT pg_advisory_xact_lock{kind}({_BLOB_LOCK_ID})")
            yield

    def save(self, path: str, data: bytes) -> None:
        with self._database.writing() as db:
            db.run("put_blob_bytes", (*_key(path), data))

    def read(self, path: str) -> bytes | None:
        row = self._row("blob_bytes", path)
        return None if row is None else bytes(row[0])

    def size(self, path: str) -> int | None:
        row = self._row("size_of_blob", path)
        return None if row is None else int(row[0])

    def remove(self, path: str) -> None:
        with self._database.writing() as db:
            db.run("drop_blob_bytes", _key(path))

    def paths(self) -> list[str]:
        with self._database.reading() as db:
            return [path for (path,) in db.run("blob_paths")]

    def _row(self, name: str, path: str) -> Row | None:
        with self._database.reading() as db:
            return db.run(name, _key(path)).fetchone()


def _key(path: str) -> tuple[str, str]:
    """Split a blob path into the tenant's part and the rest."""
    if not is_blob_path(path):
        raise ValueError("that is not the path of a blob")
    tenant, _, rest = path.partition("/")
    return tenant, rest


def holds_store(url: str) -> bool:
    """Whether a database has a store.

    Raises:
        StoreUnavailable: the database cannot be reached.
    """
    with _connected(url) as connection:
        return schema.has_table(connection, "migrations")


def _rewrite(connection: psycopg.Connection[Row], table: str, until: float) -> None:
    """Rewrite a table. While that waits for a lock all calls wait behind it, so it waits often and briefly."""
    while True:
        try:
            connection.execute(f"VACUUM (FULL) {table}")
            return
        except psycopg.errors.LockNotAvailable:
            if time.monotonic() > until:
                raise
        # Calls that waited behind it go on meanwhile.
        time.sleep(_REWRITE_PAUSE_S)


@contextmanager
def _connected(url: str) -> Iterator[psycopg.Connection[Row]]:
    """Open a connection outside the pool for the block."""
    with translated_errors():
        try:
            connection = psycopg.connect(url, **_CONNECT_OPTIONS)
        except psycopg.ProgrammingError as exc:
            expected = "it looks like postgresql://ana@host/name"
            raise InvalidInput(f"the address of the database cannot be read; {expected}") from exc
        with connection:
            yield connection
