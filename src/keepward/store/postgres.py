"""PostgreSQL as a backend: a pool of connections, one lock a tenant, and how its errors are put.

Invariants
(1) A writer is alone with its tenant from the first thing that it asks of it: it holds a lock of the tenant's name.
    Writers of different tenants never wait for each other. A transaction is READ COMMITTED, so that what it reads
    after it got the lock is what the writer before it left.
(2) A read of several statements is one snapshot (REPEATABLE READ).
(3) Rows of another tenant are out of reach: each session names its tenant, and the tables' row-level security shows no
    other, whatever a statement forgets. Superusers alone are above that.
(4) A store is made, and brought to a newer schema, in one transaction: nothing is ever half made.
(5) A connection is never used on the other side of a fork: the child has its own, and a transaction is the parent's.
(6) A statement is the one that SQLite runs, with the changes that ``translated`` makes and those of ``postgres.sql``.
"""

from __future__ import annotations

import os
import re
import secrets
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import cache
from hashlib import blake2b
from itertools import count
from pathlib import Path
from typing import Any

from keepward.errors import (
    Conflict,
    InvalidInput,
    KeepwardError,
    NewerSchema,
    NotAStore,
    StoreUnavailable,
    Tampered,
)
from keepward.locks import Lock
from keepward.model.blob import is_place
from keepward.store import candidates
from keepward.store.forks import REFUSED
from keepward.store.server_state import TABLE, SharedState
from keepward.store.sql import CLASHES, SQL, Row, Values, load_migrations, parse_queries, statements, text_of

try:
    import psycopg
    from psycopg import errors
    from psycopg.pq import TransactionStatus
    from psycopg_pool import ConnectionPool, PoolTimeout
except ImportError as fault:
    raise StoreUnavailable(
        "a store on PostgreSQL needs its driver: install `keepward[postgres]` and try again"
    ) from fault

#: Oldest server, and oldest release of its extension for vectors.
SERVER, VECTOR = 150_000, (0, 8)
#: How long a writer waits for another of the same tenant, and a caller for a connection, in seconds.
PATIENCE = 30
#: How long one waits that only notes what was read, in seconds.
BRIEF = 5
#: How long a caller waits for a connection before the database itself is asked why, in seconds.
SHORT = 1.0
#: Connections of one process.
MOST = 16
#: Partitions of each table.
PARTS = 8
#: Seconds between two looks at whether anybody else has written; see ``others``.
LOOK = 60.0
#: Rows of a stream that are fetched together.
_PAGE = 1_000
_CONNECTING: dict[str, Any] = {"autocommit": True, "connect_timeout": 10}
#: Lock of the making of a store, and lock of the bytes of blobs.
_MAKING, _BLOBS = 0x4B454550, 0x4B454552
#: What only this backend keeps in tables.
_OWN_TABLE = """CREATE TABLE blob_bytes (
    tenant TEXT NOT NULL, place TEXT NOT NULL, data BLOB NOT NULL, PRIMARY KEY (tenant, place))"""
_OWN = parse_queries("".join(map(text_of, ("queries.sql", "postgres.sql", "candidates.sql"))))
#: Statements that take all their rows at once, as an array a column.
_BY_COLUMN = frozenset(name for name, text in _OWN.items() if "unnest(CAST(?" in text)
_names = count()
_BUSY = "another writes to the same tenant for long; try again, nothing was stored"
_TAKEN_BACK = "the database took the transaction back; try again, nothing was stored"
_READ_ONLY = "the store can only be read: its database takes no writes here"
_FORBIDDEN = "this role of the database may not do that; grant it what the store's owner has"
_FULL = "the database has no room; free some space and try again: nothing was lost"
_TABLES = "the database does not hold the tables of a Keepward store; check its name and schema"
_STOPPED = "the database broke off a statement; raise this role's statement_timeout, or try again"
#: Our error for each of the driver's, and what it says.
_ERRORS: dict[type, tuple[type[KeepwardError], str]] = {
    errors.LockNotAvailable: (StoreUnavailable, _BUSY),
    errors.DeadlockDetected: (StoreUnavailable, _BUSY),
    errors.SerializationFailure: (StoreUnavailable, _BUSY),
    errors.InFailedSqlTransaction: (StoreUnavailable, _TAKEN_BACK),
    errors.ReadOnlySqlTransaction: (StoreUnavailable, _READ_ONLY),
    errors.QueryCanceled: (StoreUnavailable, _STOPPED),
    errors.DiskFull: (StoreUnavailable, _FULL),
    errors.OutOfMemory: (StoreUnavailable, _FULL),
    errors.InsufficientPrivilege: (StoreUnavailable, _FORBIDDEN),
    errors.UndefinedTable: (NotAStore, _TABLES),
    errors.UndefinedColumn: (NotAStore, _TABLES),
    psycopg.DataError: (InvalidInput, "text holds what a database cannot keep, such as a NUL character; remove it"),
}


def explained(fault: Exception) -> KeepwardError:
    """Return our error for one of the driver's."""
    for kind in type(fault).__mro__:
        if kind in _ERRORS:
            ours, said = _ERRORS[kind]
            return ours(said)
    if isinstance(fault, errors.UniqueViolation):
        taken = CLASHES.get((fault.diag.table_name or "").rpartition("_")[0])
        if taken is not None:
            return Conflict(taken)
    if isinstance(fault, psycopg.ProgrammingError) and fault.sqlstate is None:
        return InvalidInput("the address of the database cannot be read; it looks like postgresql://ana@host/name")
    if isinstance(fault, (psycopg.OperationalError, psycopg.InterfaceError)):
        why = next(iter(str(fault).strip().splitlines()), "the connection was lost")
        return StoreUnavailable(
            f"the database cannot be reached ({why}); check its address, and how many connections it allows, or try "
            "again: what was acknowledged is kept"
        )
    return Tampered(f"the database refused what a store asks of it ({type(fault).__name__}); run `keepward verify`")


@cache
def translated(text: str) -> str:
    """Return a statement as PostgreSQL and its driver take it."""
    text = text.replace("%", "%%")
    text = re.sub(r" INDEXED BY \w+", "", text)
    text = re.sub(r"instr\(([\w.]+), (CAST\(\S+ AS) BLOB\)\)", r"position(\2 BYTEA) IN \1)", text)
    text = text.replace(" AS BLOB)", " AS BYTEA)")
    text = re.sub(
        r"json_each\((:\w+)\)(?: AS (\w+))?",
        lambda match: f"jsonb_array_elements_text(CAST({match[1]} AS jsonb)) AS {match[2] or 'item'}(value)",
        text,
    )
    return re.sub(r"(?<!:):(\w+)", r"%(\1)s", text).replace("?", "%s")


@cache
def _named(name: str) -> str:
    return translated(_OWN.get(name) or SQL[name])


class PostgresSession:
    """One transaction; see ``sql.Session``."""

    fault: type[Exception] = psycopg.Error
    searchable: bool = True

    def __init__(self, connection: psycopg.Connection[Row], begin: str, lock: str | None, patience: int) -> None:
        """Begin with a statement once something is asked; a writer locks tenants of the store that ``lock`` names."""
        self._connection, self._begin, self._lock, self._patience = connection, begin, lock, patience
        self._pid, self._begun = os.getpid(), False
        #: The statement that shows a tenant, with its values, until it was sent.
        self._show: tuple[str, Sequence[Any]] | None = None
        #: Tenants that a writer has locked.
        self._tenants: set[str] = set()

    def run(self, name: str, values: Values = (), /, **named: Any) -> psycopg.Cursor[Row]:
        return self._ask(_named(name), named or values)

    def execute(self, text: str, values: Values = (), /) -> psycopg.Cursor[Row]:
        return self._ask(translated(text), values)

    def stream(self, name: str, **named: Any) -> Iterator[Row]:
        """Yield the rows of a named statement, a page at a time."""
        with self._started().cursor(name=f"k{next(_names)}") as cursor:
            cursor.itersize = _PAGE
            cursor.execute(_named(name), named)
            yield from cursor

    def many(self, name: str, rows: Iterable[Sequence[Any]]) -> None:
        """Run a named statement once for each row, or once for all where it takes columns."""
        rows = list(rows)
        if name in _BY_COLUMN and rows:
            rows = [[list(column) for column in zip(*rows, strict=True)]]
        if len(rows) == 1:
            self._ask(_named(name), rows[0])
        elif rows:
            self._started().cursor().executemany(_named(name), rows)

    def enter(self, tenant: str | None) -> None:
        """Show the rows of a tenant alone, which a writer locks, or those of all."""
        shown: list[Any] = [tenant or "", "on" if tenant is None else ""]
        query = "SELECT set_config('keepward.tenant', %s, true), set_config('keepward.all', %s, true)"
        if self._lock is not None:
            # A writer's statements are planned once: what it looks up it looks up by key.
            query += ", set_config('plan_cache_mode', 'force_generic_plan', true), set_config('lock_timeout', %s, true)"
            shown.append(f"{self._patience}s")
            if tenant is not None:
                query += ", pg_advisory_xact_lock(%s)"
                key = blake2b(f"{self._lock}/{tenant}".encode("utf-8", "surrogatepass"), digest_size=8).digest()
                shown.append(int.from_bytes(key, "big", signed=True))
                self._tenants.add(tenant)
        self._show = query, shown

    def commit(self, channel: str) -> int:
        """Commit, tell those that listen on a channel, and return how many transactions that took.

        News are told in a transaction of their own: a notice takes a lock that all writers share until their
        transaction is on the disk. The commit stands, whatever becomes of them.
        """
        if not self._begun:
            return 0
        if self._ask("COMMIT").statusmessage != "COMMIT":
            # The server answers the commit of a transaction of which a statement had failed by rolling back.
            raise errors.InFailedSqlTransaction
        if not self._tenants:
            return 1
        (named,) = self._tenants if len(self._tenants) == 1 else ("",)
        with suppress(psycopg.Error):
            self._ask("SELECT pg_notify(%s, %s)", (channel, named))
        return 2

    def end(self) -> None:
        """Take the transaction back."""
        if self._pid == os.getpid() and self._connection.info.transaction_status != TransactionStatus.IDLE:
            self._connection.execute("ROLLBACK")

    def _ask(self, query: str, values: Values = ()) -> psycopg.Cursor[Row]:
        return self._started().execute(query, values)

    def _started(self) -> psycopg.Connection[Row]:
        """Return the connection, inside of the transaction and with the tenant shown."""
        if self._pid != os.getpid():
            # What a child says there, the server takes for the parent's.
            raise StoreUnavailable(REFUSED)
        if not self._begun:
            self._begun = True
            self._connection.execute(self._begin)
        if self._show is not None:
            show, self._show = self._show, None
            self._connection.execute(*show)
        return self._connection


class Postgres:
    """The connections to one database; see ``sql.Connector``."""

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
            self.store_id = _prepare(connection, create=create and self.writable, writable=self.writable)
        self._lock = Lock()
        self._pid = os.getpid()
        self._closed = False
        self._open()
        self._writing = threading.local()
        self._channel = f"keepward_{self.store_id[:16]}"
        self._shared: SharedState | None = None
        self._mark, self._last, self._own, self._looked = 0, -1, 0, -LOOK

    def _open(self) -> None:
        def configure(connection: psycopg.Connection[Row]) -> None:
            connection.execute(f"SET lock_timeout = '{PATIENCE}s'")

        self._pool: ConnectionPool[psycopg.Connection[Row]] = ConnectionPool(
            self._url,
            min_size=0,
            max_size=MOST,
            timeout=PATIENCE,
            # Who asks next tries again: a pool that tries by itself waits longer each time, also once it could.
            reconnect_timeout=0,
            kwargs=_CONNECTING,
            configure=configure,
            open=True,
        )

    def full(self) -> str | None:
        """Return None: whether there is room is not known before something is written."""
        return None

    def explained(self, fault: Exception) -> KeepwardError:
        return explained(fault)

    @contextmanager
    def _connection(self) -> Iterator[psycopg.Connection[Row]]:
        """Lend a connection, to be given back without a transaction; never on two sides of a fork."""
        if self._pid != os.getpid():
            self._pid = os.getpid()
            self._open()
        if self._closed:
            raise StoreUnavailable("the store is closed; open it again")
        with _clear():
            connection, pool, pid = self._taken(), self._pool, os.getpid()
            try:
                yield connection
            finally:
                if pid == os.getpid():
                    pool.putconn(connection)

    def _taken(self) -> psycopg.Connection[Row]:
        """Take a connection out of the pool; where the database lets nobody in, say so instead of waiting."""
        until = time.monotonic() + PATIENCE
        while True:
            try:
                return self._pool.getconn(SHORT)
            except PoolTimeout:
                late = time.monotonic() > until
                if late or self._pool.get_stats()["pool_size"] <= 1:
                    # It answers that itself: refused, too many connections, another password.
                    with _connected(self._url):
                        pass
                if late:
                    raise

    @contextmanager
    def _lent(self, level: str, *, writes: bool, patience: int = PATIENCE) -> Iterator[PostgresSession]:
        with self._connection() as connection:
            lock = self.store_id if writes else None
            session, pid = PostgresSession(connection, f"BEGIN ISOLATION LEVEL {level}", lock, patience), os.getpid()
            try:
                yield session
                if writes:
                    self._own += session.commit(self._channel)
                else:
                    session.end()
            except BaseException:
                with suppress(psycopg.Error):
                    session.end()
                if connection.broken and pid == os.getpid():
                    # Those that lie idle are gone too, if the server was stopped: nobody else shall find that out.
                    self._pool.check()
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
    def reading(self, tenant: str | None = None) -> Iterator[PostgresSession]:
        """Lend a session that sees one snapshot, of one tenant or of all."""
        with self._lent("REPEATABLE READ", writes=False) as session:
            session.enter(tenant)
            yield session

    @contextmanager
    def writing(self, *, brief: bool = False) -> Iterator[PostgresSession]:
        """Lend a session inside one transaction, which commits when the block ends.

        Raises:
            StoreUnavailable: read-only, or another held the lock of the tenant for half a minute; ``brief``, for 5 s.
        """
        if not self.writable:
            raise StoreUnavailable(_READ_ONLY)
        if getattr(self._writing, "open", False):
            raise StoreUnavailable("a transaction is open already on this thread; finish it first")
        self._writing.open = True
        try:
            with self._lent("READ COMMITTED", writes=True, patience=BRIEF if brief else PATIENCE) as session:
                session.enter(None)
                yield session
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
        with self._connection() as connection:
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
            for (tenant,) in db.run("candidates_lacking"):
                yield f"candidates {tenant}", "candidates are missing or too many: recall misses what it should find"
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
            with self._connection() as connection:
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


def holds_store(url: str) -> bool:
    """Whether there is a store in a database.

    Raises:
        StoreUnavailable: it cannot be reached.
    """
    with _connected(url) as connection:
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
    if not _holds(connection, "blob_bytes"):
        query = """
            SELECT quote_ident(n.nspname) FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace
             WHERE e.extname = 'vector'"""
        (schema,) = connection.execute(query).fetchone() or ("public",)
        tables = text_of("candidates_tables.sql").replace("HALFVEC", f"{schema}.halfvec")
        _make(connection, [_OWN_TABLE, *statements(tables)])
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
