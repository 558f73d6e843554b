"""PostgreSQL as a backend: a pool of connections, one row lock a tenant, and how its errors are put.

Invariants
(1) A writer is alone with its tenant from the first thing that it asks of it: it locks the tenant's row. Writers of
    different tenants never wait for each other. A transaction is READ COMMITTED, so that what it reads after it got
    the lock is what the writer before it left.
(2) A read of several statements is one snapshot (REPEATABLE READ).
(3) Rows of another tenant are out of reach: each session names its tenant, and the tables' row-level security shows no
    other, whatever a statement forgets. Superusers alone are above that.
(4) A store is made, and brought to a newer schema, in one transaction: nothing is ever half made.
(5) A replica answers no handle from before what that handle wrote, or read in the same way, last: its position in the
    log is asked before the snapshot is taken, and the primary answers where it is behind or away.
(6) A connection is never used on the other side of a fork: the child has its own, and a transaction is the parent's.
"""

from __future__ import annotations

import logging
import os
import re
import secrets
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from keepward.errors import KeepwardError, NewerSchema, NotAStore, StoreUnavailable
from keepward.locks import Lock
from keepward.model.blob import is_place
from keepward.store import candidates
from keepward.store.shared import TABLE, SharedState
from keepward.store.sql import Row, load_migrations, statements, text_of

try:
    import psycopg
    from psycopg import errors
    from psycopg.conninfo import make_conninfo
    from psycopg.pq import TransactionStatus
    from psycopg_pool import ConnectionPool, PoolTimeout

    from keepward.store.pipeline import PostgresSession, explained
except ImportError as fault:
    raise StoreUnavailable(
        "a store on PostgreSQL needs its driver: install `keepward[postgres]` and try again"
    ) from fault

_log = logging.getLogger(__name__)
#: Oldest server, and oldest release of its extension for vectors.
SERVER, VECTOR = 150_000, (0, 8)
#: How long a writer waits for another of the same tenant, and a caller for a connection, in seconds.
PATIENCE = 30
#: How long a reader waits for a connection to a replica before it asks the primary, and for how long it then does not
#: ask a replica again, in seconds.
SHORT, AGAIN = 1.0, 10.0
#: Connections of one process, to the primary and to replicas each.
MOST = 16
#: How long one waits that only notes what was read, in seconds.
BRIEF = 5
_CONNECTING: dict[str, Any] = {"autocommit": True, "connect_timeout": 10}
#: Partitions of each table.
PARTS = 8
#: Seconds between two looks at whether anybody else has written; see ``others``.
LOOK = 60.0
#: Locks the making of a store.
_MAKING = 0x4B454550
#: Guards the bytes of blobs; see ``Postgres.guarding``.
_BLOBS = 0x4B454552
#: What only this backend keeps in tables.
_OWN_TABLE = """CREATE TABLE blob_bytes (
    tenant TEXT NOT NULL, place TEXT NOT NULL, data BLOB NOT NULL, PRIMARY KEY (tenant, place))"""


_Pool = ConnectionPool[psycopg.Connection[Row]]


class Postgres:
    """The connections to one database; see ``sql.Connector``."""

    def __init__(self, url: str, *, create: bool, read_only: bool) -> None:
        """Make sure that a store is there.

        Raises:
            StoreUnavailable, NotAStore, NewerSchema: the message says what to do.
        """
        self._url, self._replicas_url = _addresses(url)
        with _connected(self._url) as connection:
            (recovering,) = connection.execute("SELECT pg_is_in_recovery()").fetchone() or (False,)
            (shut,) = connection.execute("SHOW default_transaction_read_only").fetchone() or ("off",)
            self.writable = not (read_only or recovering or shut == "on")
            self.store_id = _prepare(connection, create=create and self.writable, writable=self.writable)
        self._lock = Lock()
        self._pid = os.getpid()
        self._closed = False
        self._open()
        self._writing = threading.local()
        self._channel = f"keepward_{self.store_id[:16]}"
        self._shared: SharedState | None = None
        self._mark, self._last, self._own, self._looked = 0, -1, 0, -LOOK
        #: Position in the log that a replica must have reached to answer: of the newest that this handle wrote, or read
        #: where a replica might have answered. None where that is not known.
        self._reached: int | None = None
        #: Until when replicas are not asked, since there was none.
        self._alone = 0.0

    def _open(self) -> None:
        self._pool = self._made(self._url, PATIENCE)
        self._replicas = self._made(self._replicas_url, SHORT) if self._replicas_url else None

    def _made(self, url: str, patience: float) -> _Pool:
        def configure(connection: psycopg.Connection[Row]) -> None:
            connection.execute(f"SET lock_timeout = '{PATIENCE}s'")
            if url != self._url:
                row = connection.execute("SELECT value FROM meta WHERE name = 'store_id'").fetchone()
                if row != (self.store_id,):
                    raise NotAStore("the address after `read=` is of another store; name a replica of this one")

        return ConnectionPool(
            url,
            min_size=0,
            max_size=MOST,
            timeout=patience,
            # Who asks next tries again: a pool that tries by itself waits longer each time, also once it could.
            reconnect_timeout=0,
            kwargs=_CONNECTING,
            configure=configure,
            open=True,
        )

    def explained(self, fault: Exception) -> KeepwardError:
        return explained(fault)

    @contextmanager
    def _connection(self, *, replica: bool = False) -> Iterator[tuple[psycopg.Connection[Row], _Pool]]:
        """Lend a connection and its pool, to be given back without a transaction; never on two sides of a fork."""
        if self._pid != os.getpid():
            self._pid = os.getpid()
            self._open()
        if self._closed:
            raise StoreUnavailable("the store is closed; open it again")
        pool = self._replicas if replica and self._replicas else self._pool
        with _clear():
            connection, pid = self._taken(pool), os.getpid()
            try:
                yield connection, pool
            finally:
                if pid == os.getpid():
                    pool.putconn(connection)

    def _taken(self, pool: _Pool) -> psycopg.Connection[Row]:
        """Take a connection out of a pool; where the database lets nobody in, say so instead of waiting."""
        until = time.monotonic() + pool.timeout
        while True:
            try:
                return pool.getconn(SHORT)
            except PoolTimeout:
                late = time.monotonic() > until
                if pool is self._pool and (late or pool.get_stats()["pool_size"] <= 1):
                    # It answers that itself: refused, too many connections, another password.
                    with _connected(self._url):
                        pass
                if late:
                    raise

    @contextmanager
    def _lent(self, level: str, *, writes: bool, replica: bool = False) -> Iterator[PostgresSession]:
        with self._connection(replica=replica) as (connection, pool):
            session, pid = PostgresSession(connection, level, writes=writes), os.getpid()
            try:
                yield session
                if writes:
                    self._own += session.commit(self._channel, located=self._replicas is not None)
                    if session.begun and session.tenants:
                        self._reach(session.position)
                elif session.begun and pid == os.getpid():
                    connection.execute("ROLLBACK")
            except BaseException:
                if pid != os.getpid():
                    raise
                if connection.info.transaction_status != TransactionStatus.IDLE:
                    with suppress(psycopg.Error):
                        connection.execute("ROLLBACK")
                if connection.broken:
                    # Those that lie idle are gone too, if the server was stopped: nobody else shall find that out.
                    pool.check()
                raise

    def shared(self, key: bytes | None, monotonic: Callable[[], float]) -> SharedState | None:
        """Return what servers of this database share, under a key; None without one, or where nothing is written."""
        if key is None or not self.writable:
            return None
        if self._shared is None:
            self._shared = SharedState(self, self.store_id, key, monotonic)
        return self._shared

    def lending(self) -> AbstractContextManager[PostgresSession]:
        """Lend a session inside one transaction that is of no tenant."""
        return self._lent("READ COMMITTED", writes=True)

    @contextmanager
    def listening(self, channel: str, number: int) -> Iterator[Callable[[float], Iterator[str]]]:
        """Listen on a connection that holds the lock of a number; what is lent yields what came within some seconds."""
        with _connected(self._url) as connection:
            connection.execute("SELECT pg_advisory_lock(%s)", (number,))
            connection.execute(f'LISTEN "{channel}"')
            yield lambda seconds: (each.payload for each in connection.notifies(timeout=seconds))

    def held(self, number: int) -> bool:
        """Whether somebody holds the lock of a number."""
        with self.lending() as db:
            return db.execute("SELECT pg_try_advisory_xact_lock_shared(?)", (number,)).fetchone() != (True,)

    @contextmanager
    def reading(self, tenant: str | None = None, *, spread: bool = False) -> Iterator[PostgresSession]:
        """Lend a session that sees one snapshot, of one tenant or of all; see (5) for ``spread``."""
        spread = spread and self._replicas is not None
        with ExitStack() as stack:
            session = self._from_replica(stack, tenant) if spread else None
            if session is None:
                session = stack.enter_context(self._lent("REPEATABLE READ", writes=False))
                session.enter(tenant)
                if spread:
                    self._reach(session.place()[1])
            yield session

    def _from_replica(self, stack: ExitStack, tenant: str | None) -> PostgresSession | None:
        """Return a session on a replica that has reached what it must have; None where there is none."""
        due = self._reached
        if due is None or time.monotonic() < self._alone:
            return None
        try:
            with ExitStack() as own:
                session = own.enter_context(self._lent("REPEATABLE READ", writes=False, replica=True))
                session.enter(tenant)
                before, after = session.place()
                if before is None or before < due:
                    return None
                self._reach(after)
                session.replica = True
                stack.push(own.pop_all())
                return session
        except KeepwardError as fault:
            _log.warning("no replica answers: %s", fault, extra={"action": "replica_lost"})
            self._alone = time.monotonic() + AGAIN
            return None

    def _reach(self, position: int | None) -> None:
        """Note a position that is not to be gone behind any more; None where it is not known."""
        with self._lock:
            known = position is not None and (self._reached is None or position > self._reached)
            self._reached = position if known or position is None else self._reached

    @contextmanager
    def writing(self, *, brief: bool = False) -> Iterator[PostgresSession]:
        """Lend a session inside one transaction, which commits when the block ends.

        Raises:
            StoreUnavailable: read-only, or another held the lock of the tenant for half a minute; ``brief``, for 5 s.
        """
        if not self.writable:
            raise StoreUnavailable("the store can only be read: its database takes no writes here")
        if getattr(self._writing, "open", False):
            raise StoreUnavailable("a transaction is open already on this thread; finish it first")
        self._writing.open = True
        try:
            with self._lent("READ COMMITTED", writes=True) as session:
                if brief:
                    session.wait_for(BRIEF)
                session.enter(None)
                yield session
            self._own += 1
        finally:
            self._writing.open = False

    def others(self) -> int | None:
        """Return a number that is another one once somebody else has changed the database; see ``LOOK``.

        Every writing transaction takes the next number of the server: more of them than this handle has made are
        those of somebody else.
        """
        with self._lock:
            now = time.monotonic()
            if now - self._looked >= LOOK:
                with self.reading() as db:
                    query = "SELECT CAST(CAST(pg_snapshot_xmax(pg_current_snapshot()) AS TEXT) AS BIGINT)"
                    (last,) = db.execute(query).fetchone() or (0,)
                self._mark += last != self._last + self._own
                self._last, self._own, self._looked = last, 0, now
            return self._mark

    def outside(self, statement: str) -> None:
        with self._connection() as (connection, _):
            connection.execute(statement)

    def check(self) -> Iterator[tuple[str, str]]:
        """Yield tables without row-level security, their parts too, lost indexes, and candidates that are missing."""
        with self.reading() as db:
            query = """
                SELECT relname FROM pg_class AS c WHERE relnamespace = to_regnamespace(current_schema())
                   AND relkind IN ('p', 'r') AND (relkind = 'p' OR relispartition)
                   AND NOT (relrowsecurity AND relforcerowsecurity AND ARRAY['own'] = ARRAY(
                       SELECT CAST(polname AS TEXT) FROM pg_policy WHERE polrelid = c.oid))
                 ORDER BY relname"""
            for (name,) in db.execute(query).fetchall():
                yield f"schema {name}", "its row-level security is off"
            query = "SELECT indexname FROM pg_indexes WHERE schemaname = current_schema()"
            held = {name for (name,) in db.execute(query).fetchall()}
            for (tenant,) in db.run("search_lacking"):
                yield f"search_rows {tenant}", "candidates are missing or too many: recall misses what it should find"
        for step in load_migrations():
            for name in re.findall(r"CREATE (?:UNIQUE )?INDEX (\w+)", step.sql):
                if name not in held:
                    yield f"schema {name}", "it is not what the migrations make"

    def size(self) -> int:
        query = """
            SELECT CAST(coalesce(sum(pg_total_relation_size(oid)), 0) AS BIGINT) FROM pg_class
             WHERE relnamespace = to_regnamespace(current_schema()) AND relkind = 'r'"""
        with self.reading() as db:
            return int((db.execute(query).fetchone() or (0,))[0])

    def scrub(self) -> str | None:
        """Write the tables anew from what is live; what its log holds is for the database to let go of."""
        if not self.writable:
            return "the store can only be read"
        try:
            with self._connection() as (connection, _):
                for table in (*_tables(), "server_state"):
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
        return PostgresBlobs(self)

    @contextmanager
    def guarding(self, *, alone: bool) -> Iterator[None]:
        """Hold the bytes of blobs against those that remove some, ``alone`` against those that add some as well."""
        kind = "" if alone else "_shared"
        with _connected(self._url) as connection:
            connection.execute(f"SELECT pg_advisory_lock{kind}({_BLOBS})")
            # The lock goes with the connection.
            yield

    def close(self) -> None:
        """Close every connection that is not lent; a second call does nothing."""
        if not self._closed and self._pid == os.getpid():
            if self._shared is not None:
                self._shared.close()
            self._pool.close()
            if self._replicas is not None:
                self._replicas.close()
        self._closed = True


class PostgresBlobs:
    """Keeps bytes in a table, by place; see ``ports.world.BlobStore``."""

    def __init__(self, database: Postgres) -> None:
        self._database = database

    def holding(self, *, alone: bool = False) -> AbstractContextManager[None]:
        return self._database.guarding(alone=alone)

    def keep(self, place: str, data: bytes) -> None:
        query = """
            INSERT INTO blob_bytes (tenant, place, data) VALUES (?, ?, ?)
                ON CONFLICT (tenant, place) DO UPDATE SET data = excluded.data WHERE blob_bytes.data <> excluded.data"""
        with self._database.writing() as db:
            db.execute(query, (*_key(place), data))

    def read(self, place: str) -> bytes | None:
        return next(map(bytes, self._values("data", place)), None)

    def size(self, place: str) -> int | None:
        return next(map(int, self._values("length(data)", place)), None)

    def remove(self, place: str) -> None:
        with self._database.writing() as db:
            db.execute("DELETE FROM blob_bytes WHERE tenant = ? AND place = ?", _key(place))

    def places(self) -> list[str]:
        with self._database.reading() as db:
            query = "SELECT tenant || '/' || place FROM blob_bytes ORDER BY tenant, place"
            return [place for (place,) in db.execute(query).fetchall()]

    def _values(self, what: str, place: str) -> list[Any]:
        with self._database.reading() as db:
            query = f"SELECT {what} FROM blob_bytes WHERE tenant = ? AND place = ?"
            return [value for (value,) in db.execute(query, _key(place)).fetchall()]


def _key(place: str) -> tuple[str, str]:
    """Return the tenant's part of a place, and the rest."""
    if not is_place(place):
        raise ValueError("that is no place of a blob")
    tenant, _, rest = place.partition("/")
    return tenant, rest


def _addresses(url: str) -> tuple[str, str | None]:
    """Return the address of the primary, and that of its replicas: the hosts after ``read=``; None where none is."""
    place, _, query = url.partition("?")
    pairs = [pair for pair in query.split("&") if pair]
    named = [unquote(pair.removeprefix("read=")) for pair in pairs if pair.startswith("read=")]
    primary = "?".join(filter(None, (place, "&".join(pair for pair in pairs if not pair.startswith("read=")))))
    hosts = [each.strip() for part in named for each in part.split(",") if each.strip()]
    if not hosts:
        return primary, None
    split = [re.fullmatch(r"(.*?)(?::(\d+))?", host) for host in hosts]
    more = {"load_balance_hosts": "random"} if len(hosts) > 1 else {}
    with _clear():
        replicas = make_conninfo(
            primary,
            host=",".join(match[1] for match in split if match),
            port=",".join(match[2] or "" for match in split if match),
            target_session_attrs="standby",
            **more,
        )
    return primary, replicas


def holds_store(url: str) -> bool:
    """Whether there is a store in a database.

    Raises:
        StoreUnavailable: it cannot be reached.
    """
    with _connected(_addresses(url)[0]) as connection:
        return _holds(connection, "migrations")


@contextmanager
def _clear() -> Iterator[None]:
    """Turn the driver's errors into ours."""
    try:
        yield
    except psycopg.Error as fault:
        raise explained(fault) from fault


@contextmanager
def _connected(url: str) -> Iterator[psycopg.Connection[Row]]:
    """Connect for a while, apart from the pool."""
    with _clear(), psycopg.connect(url, **_CONNECTING) as connection:
        connection.execute(f"SET lock_timeout = '{PATIENCE}s'")
        yield connection


# --- making a store


def _tables() -> list[str]:
    """Return the names of the tables that belong to tenants."""
    found = [name for step in load_migrations() for name in re.findall(r"CREATE TABLE (\w+)", step.sql)]
    return [*(name for name in found if name not in {"meta", "migrations"}), "blob_bytes", *candidates.NAMES]


def _prepare(connection: psycopg.Connection[Row], *, create: bool, writable: bool) -> str:
    """Make sure that a store is there and of this schema; return its id; see (4)."""
    server = connection.info.server_version
    if server < SERVER:
        raise StoreUnavailable(f"PostgreSQL {server // 10_000} is too old for a store; use {SERVER // 10_000} or newer")
    with connection.transaction():
        if connection.execute("SELECT current_schema()").fetchone() == (None,):
            raise StoreUnavailable("the schema that the address names does not exist; make it, or name another")
        if not _holds(connection, "migrations"):
            if _holds(connection, "meta"):
                raise NotAStore("the database is another program's; choose another database or schema")
            if not create:
                raise StoreUnavailable("there is no store in this database; make one with `keepward init`")
        if writable:
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (_MAKING,))
            _extend(connection)
            _migrate(connection)
        number = _number(connection)
        if number > load_migrations()[-1].number:
            raise NewerSchema
        if number < load_migrations()[-1].number:
            raise StoreUnavailable("the store needs a new schema and can only be read; open it once for writing")
        row = connection.execute("SELECT value FROM meta WHERE name = 'store_id'").fetchone()
    if row is None or not row[0]:
        raise NotAStore("the store has lost its id: its tables were emptied; restore it from a backup")
    return str(row[0])


def _extend(connection: psycopg.Connection[Row]) -> None:
    """Make sure that the database has the extension for vectors.

    Raises:
        StoreUnavailable: it is not there and this role cannot make it, or it is too old.
    """
    query = """
        SELECT coalesce(installed_version, default_version), installed_version IS NOT NULL
          FROM pg_available_extensions WHERE name = 'vector'"""
    row = connection.execute(query).fetchone()
    if row is None:
        raise StoreUnavailable("the database lacks the extension pgvector; install it on the server and try again")
    if tuple(int(part) for part in row[0].split(".")[:2]) < VECTOR:
        wanted = ".".join(map(str, VECTOR))
        raise StoreUnavailable(f"the database has pgvector {row[0]}, which is too old; use {wanted} or newer")
    if not row[1]:
        command = "CREATE EXTENSION IF NOT EXISTS vector WITH SCHEMA public"
        try:
            connection.execute(command)
        except errors.InsufficientPrivilege as fault:
            raise StoreUnavailable(
                f"the database lacks the extension pgvector; let a superuser run there: {command}"
            ) from fault


def _migrate(connection: psycopg.Connection[Row]) -> None:
    """Bring a store to the newest schema; the caller holds the lock of making."""
    done = _number(connection) if _holds(connection, "migrations") else 0
    for step in load_migrations():
        if step.number > done:
            _make(connection, statements(step.sql))
            query = "INSERT INTO migrations (number, name, sha256) VALUES (%s, %s, %s)"
            connection.execute(query, (step.number, step.name, step.sha256))
    if not done:
        query = "INSERT INTO meta (name, value) VALUES ('store_id', %s), ('sealed_by', '')"
        connection.execute(query, (secrets.token_hex(16),))
    own = {"blob_bytes": [_OWN_TABLE], "search_state": statements(text_of("candidates_tables.sql"))}
    for name, tables in own.items():
        if not _holds(connection, name):
            _make(connection, tables)
    if not _holds(connection, "server_state"):
        connection.execute(TABLE)


def _number(connection: psycopg.Connection[Row]) -> int:
    """Return the number of the last migration that was carried out."""
    (number,) = connection.execute("SELECT max(number) FROM migrations").fetchone() or (None,)
    return number or 0


def _holds(connection: psycopg.Connection[Row], table: str) -> bool:
    return connection.execute("SELECT to_regclass(%s)", (table,)).fetchone() != (None,)


def _make(connection: psycopg.Connection[Row], written: Iterable[str]) -> None:
    """Carry out statements of a migration."""
    for statement in written:
        for each in partitioned(statement):
            connection.execute(each)


def partitioned(statement: str) -> list[str]:
    """Return the statements that do for PostgreSQL what one does for SQLite.

    Text is in the order of its bytes, tables are in parts by tenant, each behind its wall; see (3).
    """
    text = re.sub(r"\s+STRICT(, WITHOUT ROWID)?$", "", statement.rstrip(";"))
    text = re.sub(r"\bBLOB\b", "BYTEA", re.sub(r"\bINTEGER\b", "BIGINT", text))
    text = re.sub(r"\bTEXT\b", 'TEXT COLLATE "C"', text)
    match = re.match(r"CREATE TABLE (\w+)", text)
    if match is None or match[1] in {"meta", "migrations"}:
        return [text]
    name = match[1]
    found = [f"{text} PARTITION BY HASH (tenant)"]
    found += [
        f"CREATE TABLE {name}_{n} PARTITION OF {name} FOR VALUES WITH (MODULUS {PARTS}, REMAINDER {n})"
        for n in range(PARTS)
    ]
    shown = (
        "tenant = (SELECT current_setting('keepward.tenant', true)) "
        "OR (SELECT current_setting('keepward.all', true)) = 'on'"
    )
    for each in (name, *(f"{name}_{n}" for n in range(PARTS))):
        found.append(f"ALTER TABLE {each} ENABLE ROW LEVEL SECURITY")
        found.append(f"ALTER TABLE {each} FORCE ROW LEVEL SECURITY")
        found.append(f"CREATE POLICY own ON {each} USING ({shown})")
    return found
