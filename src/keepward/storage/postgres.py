"""PostgreSQL as a backend: a pool of connections, snapshots and transactions.

Invariants
(1) A read of several statements is one snapshot (REPEATABLE READ); a write is one transaction, see
    ``postgres_session.py``.
(2) A connection is never used on the other side of a fork: the child has its own.
"""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any

from keepward.core.blob import is_blob_path
from keepward.errors import StoreUnavailable
from keepward.locks import ForkSafeLock
from keepward.storage.server_state import SharedState
from keepward.storage.sql import Row, load_migrations

try:
    import psycopg
    from psycopg_pool import ConnectionPool, PoolTimeout

    from keepward.storage import postgres_schema as schema
    from keepward.storage.postgres_session import READ_ONLY, PostgresConnection, translated_errors
except ImportError as fault:
    raise StoreUnavailable(
        "a store on PostgreSQL needs its driver: install `keepward[postgres]` and try again"
    ) from fault

#: How long a writer waits for another of the same tenant, and a caller for a connection, in seconds.
LOCK_TIMEOUT_S = 30
#: How long one waits that only notes what was read, in seconds.
BRIEF_LOCK_TIMEOUT_S = 5
#: How long a caller waits for a connection before the database itself is asked why, in seconds.
POOL_PROBE_TIMEOUT_S = 1.0
#: Connections of one process.
MAX_CONNECTIONS = 16
#: Seconds between two looks at whether anybody else has written; see ``data_version``.
CHANGE_POLL_INTERVAL_S = 60.0
_CONNECT_OPTIONS: dict[str, Any] = {"autocommit": True, "connect_timeout": 10}
#: Lock of the bytes of blobs.
_BLOB_LOCK_ID = 0x4B454552


class PostgresDatabase:
    """The connections to one database; see ``sql.Database`` and ``sql.DatabaseServer``."""

    def __init__(self, url: str, *, create: bool, read_only: bool) -> None:
        """Make sure that a store is there.

        Raises:
            StoreUnavailable, NotAStore, NewerSchema: the message says what to do.
        """
        self._url = url
        with _connected(self._url) as connection:
            (recovering,) = connection.execute("SELECT pg_is_in_recovery()").fetchone() or (False,)
            (shut,) = connection.execute("SHOW default_transaction_read_only").fetchone() or ("off",)
            self.writable = not (read_only or recovering or shut == "on")
            self.store_id = schema.prepare(connection, create=create and self.writable, writable=self.writable)
        self._lock = ForkSafeLock()
        self._pid = os.getpid()
        self._closed = False
        self._open()
        self._writing = threading.local()
        self._shared: SharedState | None = None
        self._mark, self._last, self._own, self._looked = 0, -1, 0, -CHANGE_POLL_INTERVAL_S

    def _open(self) -> None:
        def configure(connection: psycopg.Connection[Row]) -> None:
            connection.execute(f"SET lock_timeout = '{LOCK_TIMEOUT_S}s'")

        self._pool: ConnectionPool[psycopg.Connection[Row]] = ConnectionPool(
            self._url,
            min_size=0,
            max_size=MAX_CONNECTIONS,
            timeout=LOCK_TIMEOUT_S,
            # Who asks next tries again: a pool that tries by itself waits longer each time, also once it could.
            reconnect_timeout=0,
            kwargs=_CONNECT_OPTIONS,
            configure=configure,
            open=True,
        )

    @contextmanager
    def _connection(self) -> Iterator[psycopg.Connection[Row]]:
        """Lend a connection, to be given back without a transaction; never on two sides of a fork."""
        if self._pid != os.getpid():
            self._pid = os.getpid()
            self._open()
        if self._closed:
            raise StoreUnavailable("the store is closed; open it again")
        with translated_errors():
            connection, pool, pid = self._taken(), self._pool, os.getpid()
            try:
                yield connection
            finally:
                if pid == os.getpid():
                    pool.putconn(connection)

    def _taken(self) -> psycopg.Connection[Row]:
        """Take a connection out of the pool; where the database lets nobody in, say so instead of waiting."""
        until = time.monotonic() + LOCK_TIMEOUT_S
        while True:
            try:
                return self._pool.getconn(POOL_PROBE_TIMEOUT_S)
            except PoolTimeout:
                late = time.monotonic() > until
                if late or self._pool.get_stats()["pool_size"] <= 1:
                    # It answers that itself: refused, too many connections, another password.
                    with _connected(self._url):
                        pass
                if late:
                    raise

    @contextmanager
    def _lent(self, level: str, *, writes: bool, patience: int = LOCK_TIMEOUT_S) -> Iterator[PostgresConnection]:
        with self._connection() as connection:
            lock = self.store_id if writes else None
            session, pid = PostgresConnection(connection, f"BEGIN ISOLATION LEVEL {level}", lock, patience), os.getpid()
            try:
                yield session
                if writes:
                    taken = session.commit()
                    with self._lock:
                        self._own += taken
                else:
                    session.end()
            except BaseException:
                with suppress(psycopg.Error):
                    session.end()
                if connection.broken and pid == os.getpid():
                    # Those that lie idle are gone too, if the server was stopped: nobody else shall find that out.
                    self._pool.check()
                raise

    def shared_state(self, key: bytes | None, monotonic: Callable[[], float]) -> SharedState | None:
        """Return what servers of this database share, under a key; None without one, or where nothing is written."""
        if key is None or not self.writable:
            return None
        if self._shared is None:
            self._shared = SharedState(self, self.store_id, key, monotonic)
        return self._shared

    @property
    def server(self) -> PostgresDatabase:
        """The database itself: several servers share it."""
        return self

    def tenantless_transaction(self) -> AbstractContextManager[PostgresConnection]:
        """Lend a session inside one transaction that is of no tenant."""
        return self._lent("READ COMMITTED", writes=True)

    @contextmanager
    def reading(self, tenant: str | None = None) -> Iterator[PostgresConnection]:
        """Lend a session that sees one snapshot, of one tenant or of all."""
        with self._lent("REPEATABLE READ", writes=False) as session:
            session.select_tenant(tenant)
            yield session

    @contextmanager
    def writing(self, *, brief: bool = False) -> Iterator[PostgresConnection]:
        """Lend a session inside one transaction, which commits when the block ends.

        Raises:
            StoreUnavailable: read-only, or another held the lock of the tenant for half a minute; ``brief``, for 5 s.
        """
        if not self.writable:
            raise StoreUnavailable(READ_ONLY)
        if getattr(self._writing, "open", False):
            raise StoreUnavailable("a transaction is open already on this thread; finish it first")
        self._writing.open = True
        try:
            with self._lent(
                "READ COMMITTED", writes=True, patience=BRIEF_LOCK_TIMEOUT_S if brief else LOCK_TIMEOUT_S
            ) as session:
                session.select_tenant(None)
                yield session
        finally:
            self._writing.open = False

    def data_version(self) -> int | None:
        """Return a number that changes when another process changes the database; see ``CHANGE_POLL_INTERVAL_S``.

        Every writing transaction takes the next number of the server: more of them than this handle has made are
        those of somebody else.
        """
        with self._lock:
            now = time.monotonic()
            if now - self._looked >= CHANGE_POLL_INTERVAL_S:
                with self.reading() as db:
                    (last,) = db.run("next_transaction").fetchone() or (0,)
                self._mark += last != self._last + self._own
                self._last, self._own, self._looked = last, 0, now
            return self._mark

    def execute_autocommit(self, statement: str) -> None:
        with self._connection() as connection:
            connection.execute(statement)

    def check(self) -> Iterator[tuple[str, str]]:
        """Yield tables without row-level security, lost indexes, and candidates that are missing."""
        with self.reading() as db:
            for (name,) in db.run("unguarded_tables").fetchall():
                yield f"schema {name}", "its row-level security is off"
            held = {name for (name,) in db.run("indexes").fetchall()}
            for (tenant,) in db.run("candidates_lacking"):
                yield f"candidates {tenant}", "candidates are missing or too many: recall misses what it should find"
        for step in load_migrations():
            for name in re.findall(r"CREATE (?:UNIQUE )?INDEX (\w+)", step.sql):
                if name not in held:
                    yield f"schema {name}", "it is not what the migrations make"

    def size(self) -> int:
        with self.reading() as db:
            return int((db.run("size_of_tables").fetchone() or (0,))[0])

    def scrub(self) -> str | None:
        """Write the tables anew from what is live; what its log holds is for the database to let go of."""
        if not self.writable:
            return "the store can only be read"
        try:
            with self._connection() as connection:
                for table in (*schema.tables(), "server_state"):
                    connection.execute(f"VACUUM (FULL) {table}")
        except StoreUnavailable as fault:
            return str(fault)
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
        """Return where the bytes of blobs are kept: beside the rows, since servers share no folder."""
        return PostgresBlobs(self, self._url)

    def close(self) -> None:
        """Close every connection that is not lent; a second call does nothing."""
        if not self._closed and self._pid == os.getpid():
            self._pool.close()
        self._closed = True


class PostgresBlobs:
    """Keeps bytes in a table, by place; see ``ports.world.BlobStore``."""

    def __init__(self, database: PostgresDatabase, url: str) -> None:
        self._database, self._url = database, url

    @contextmanager
    def holding(self, *, alone: bool = False) -> Iterator[None]:
        """Hold the bytes against those that remove some, ``alone`` against those that add some as well."""
        kind = "" if alone else "_shared"
        with _connected(self._url) as connection:
            connection.execute(f"SELECT pg_advisory_lock{kind}({_BLOB_LOCK_ID})")
            # The lock goes with the connection.
            yield

    def keep(self, place: str, data: bytes) -> None:
        with self._database.writing() as db:
            db.run("put_blob_bytes", (*_key(place), data))

    def read(self, place: str) -> bytes | None:
        row = self._row("blob_bytes", place)
        return None if row is None else bytes(row[0])

    def size(self, place: str) -> int | None:
        row = self._row("size_of_blob", place)
        return None if row is None else int(row[0])

    def remove(self, place: str) -> None:
        with self._database.writing() as db:
            db.run("drop_blob_bytes", _key(place))

    def places(self) -> list[str]:
        with self._database.reading() as db:
            return [place for (place,) in db.run("blob_places")]

    def _row(self, name: str, place: str) -> Row | None:
        with self._database.reading() as db:
            return db.run(name, _key(place)).fetchone()


def _key(place: str) -> tuple[str, str]:
    """Return the tenant's part of a place, and the rest."""
    if not is_blob_path(place):
        raise ValueError("that is no place of a blob")
    tenant, _, rest = place.partition("/")
    return tenant, rest


def holds_store(url: str) -> bool:
    """Whether there is a store in a database.

    Raises:
        StoreUnavailable: it cannot be reached.
    """
    with _connected(url) as connection:
        return schema.has_table(connection, "migrations")


@contextmanager
def _connected(url: str) -> Iterator[psycopg.Connection[Row]]:
    """Connect for a while, apart from the pool."""
    with translated_errors(), psycopg.connect(url, **_CONNECT_OPTIONS) as connection:
        connection.execute(f"SET lock_timeout = '{LOCK_TIMEOUT_S}s'")
        yield connection
