"""One transaction of PostgreSQL: SQLite's statements in its words, sent together as far as no answer is needed.

Invariants
(1) A statement is the one that SQLite runs, with the changes that ``translated`` makes and those of ``postgres.sql``.
(2) What has no answer waits and goes to the server with the next statement that has one, or with the commit: each such
    batch is one round trip. Single rows of several tables are inserted by one statement.
(3) A batch ends at its first statement that fails, with the error of that one, and the transaction is rolled back.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from itertools import chain, count
from typing import Any

import psycopg
from psycopg import errors

from keepward.errors import Conflict, InvalidInput, KeepwardError, NotAStore, StoreUnavailable, Tampered
from keepward.store.forks import REFUSED
from keepward.store.sql import CLASHES, SQL, Row, Values, parse_queries, text_of

#: Rows that are fetched, or held back, together.
_PAGE = 1_000
#: Locks the first write of a tenant, which has no row yet.
_FIRST_WRITE = 0x4B454551
_OWN = parse_queries("".join(map(text_of, ("queries.sql", "postgres.sql", "candidates.sql"))))
#: Statements that take all their rows at once, as an array a column.
_BY_COLUMN = frozenset(name for name, text in _OWN.items() if "unnest(" in text)
_names = count()


def explained(fault: Exception) -> KeepwardError:
    """Return our error for one of the driver's."""
    match fault:
        case errors.UniqueViolation() if said := CLASHES.get((fault.diag.table_name or "").rpartition("_")[0]):
            return Conflict(said)
        case errors.LockNotAvailable() | errors.DeadlockDetected() | errors.SerializationFailure():
            return StoreUnavailable("another writes to the same tenant for long; try again, nothing was stored")
        case errors.InFailedSqlTransaction():
            return StoreUnavailable("the database took the transaction back; try again, nothing was stored")
        case errors.ReadOnlySqlTransaction():
            return StoreUnavailable("the store can only be read: its database takes no writes here")
        case errors.QueryCanceled():
            return StoreUnavailable(
                "the database broke off a statement; raise this role's statement_timeout, or try again"
            )
        case errors.DiskFull() | errors.OutOfMemory():
            return StoreUnavailable("the database has no room; free some space and try again: nothing was lost")
        case errors.InsufficientPrivilege():
            return StoreUnavailable("this role of the database may not do that; grant it what the store's owner has")
        case errors.UndefinedTable() | errors.UndefinedColumn():
            return NotAStore("the database does not hold the tables of a Keepward store; check its name and schema")
        case psycopg.ProgrammingError() if fault.sqlstate is None:
            return InvalidInput("the address of the database cannot be read; it looks like postgresql://ana@host/name")
        case psycopg.DataError():
            return InvalidInput("text holds what a database cannot keep, such as a NUL character; remove it")
        case psycopg.OperationalError() | psycopg.InterfaceError():
            why = str(fault).strip().splitlines()[0] if str(fault).strip() else "the connection was lost"
            what = f"the database cannot be reached ({why})"
            return StoreUnavailable(
                f"{what}; check its address, and how many connections it allows, or try again: what was acknowledged "
                "is kept"
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


@cache
def _table(query: str) -> str | None:
    """Return the table into which a statement inserts rows; None of any other statement."""
    match = re.match(r"INSERT INTO (\w+)", query)
    return match and match[1]


@cache
def _joined(queries: tuple[str, ...]) -> str:
    """Return one statement that inserts into several tables."""
    parts = ", ".join(f"_{n} AS ({query})" for n, query in enumerate(queries[:-1]))
    return f"WITH {parts} {queries[-1]}" if parts else queries[0]


_SHOW = """SELECT set_config('keepward.tenant', %s, true), set_config('keepward.all', %s, true),
       set_config('plan_cache_mode', %s, true)"""
_LOCK = "SELECT 1 FROM tenants WHERE tenant = %s FOR UPDATE"
_FIRST = f"SELECT pg_advisory_xact_lock(hashtextextended(%s, {_FIRST_WRITE}))"


class PostgresSession:
    """One transaction; see ``sql.Session``."""

    fault: type[Exception] = psycopg.Error
    searchable: bool = True

    def __init__(self, connection: psycopg.Connection[Row], level: str, *, writes: bool) -> None:
        self._lent, self._pid = connection, os.getpid()
        self._writes = writes
        #: Whether the server knows of the transaction.
        self.begun = False
        #: Statements with their rows, in order; and how many rows that are.
        self._waiting: list[tuple[str, Sequence[Sequence[Any]]]] = [(f"BEGIN ISOLATION LEVEL {level}", ((),))]
        self._rows = 0
        #: Whose rows a writer has asked for.
        self.tenants: list[str] = []

    @property
    def _connection(self) -> psycopg.Connection[Row]:
        if self._pid != os.getpid():
            # What a child says there, the server takes for the parent's.
            raise StoreUnavailable(REFUSED)
        return self._lent

    def run(self, name: str, values: Values = (), /, **named: Any) -> psycopg.Cursor[Row]:
        return self._ask(_named(name), named or values)

    def execute(self, text: str, values: Values = (), /) -> psycopg.Cursor[Row]:
        return self._ask(translated(text), values)

    def stream(self, name: str, **named: Any) -> Iterator[Row]:
        """Yield the rows of a named statement, a page at a time."""
        self._send()
        with self._connection.cursor(name=f"k{next(_names)}") as cursor:
            cursor.itersize = _PAGE
            cursor.execute(_named(name), named)
            yield from cursor

    def many(self, name: str, rows: Iterable[Sequence[Any]]) -> None:
        """Run a named statement once for each row, together with the next one that has an answer."""
        rows = list(rows)
        if not rows:
            return
        self._rows += len(rows)
        if name in _BY_COLUMN:
            rows = [[list(column) for column in zip(*rows, strict=True)]]
        self._waiting.append((_named(name), rows))
        if self._rows >= _PAGE:
            self._send()

    def wait_for(self, seconds: int) -> None:
        """Wait no longer for a lock, in this transaction."""
        self._waiting.append((f"SET LOCAL lock_timeout = '{seconds}s'", ((),)))

    def enter(self, tenant: str | None) -> None:
        """Show the rows of a tenant alone, which a writer locks, or those of all."""
        if self._waiting and self._waiting[-1][0] is _SHOW:
            self._waiting.pop()
        # A writer's statements are planned once: what it looks up it looks up by key, and planning over the partitions
        # costs more.
        plans = "force_generic_plan" if self._writes else "auto"
        self._waiting.append((_SHOW, ((tenant or "", "on" if tenant is None else "", plans),)))
        if tenant is not None and self._writes and tenant not in self.tenants:
            self.tenants.append(tenant)
            self._waiting.append((_LOCK, ((tenant,),)))

    def commit(self, told: str) -> bool:
        """Send what waits and commit; then tell those that listen on a channel of it, and return whether they were.

        News are told in a transaction of their own: a notice takes a lock that all writers share until their
        transaction is on the disk. The commit stands, whatever becomes of them.

        A transaction of which a statement had failed is an error: the server answers such a commit by rolling back.
        """
        if not (self.begun or self._rows):
            return False
        ended: psycopg.Cursor[Row] | None = None
        try:
            with self._pipeline() as pipeline:
                self._put()
                ended = self._connection.execute("COMMIT")
                if self.tenants:
                    pipeline.sync()
                    named = self.tenants[0] if len(self.tenants) == 1 else ""
                    self._connection.execute("SELECT pg_notify(%s, %s)", (told, named))
        except psycopg.Error:
            if ended is None or ended.statusmessage != "COMMIT":
                raise
            return False
        if ended.statusmessage != "COMMIT":
            raise errors.InFailedSqlTransaction
        return bool(self.tenants)

    def _ask(self, query: str, values: Values) -> psycopg.Cursor[Row]:
        """Run a statement behind those that wait, in one round trip, and return what it found."""
        if not self._waiting:
            return self._connection.execute(query, values)
        with self._pipeline():
            lock = self._put()
            answer = self._connection.execute(query, values)
        if self._missed(lock):
            # Asked without a lock; nothing else is asked first of a tenant than what its row says.
            answer = self._connection.execute(query, values)
        return answer

    def _send(self) -> None:
        """Run what waits."""
        if self._waiting:
            with self._pipeline():
                lock = self._put()
            self._missed(lock)

    def _missed(self, lock: psycopg.Cursor[Row] | None) -> bool:
        """Lock a tenant that has no row yet, and whose row was therefore not locked; return whether that was so."""
        if lock is None or lock.rowcount:
            return False
        with self._pipeline():
            self._connection.execute(_FIRST, (self.tenants[-1],))
            self._connection.execute(_LOCK, (self.tenants[-1],))
        return True

    def _put(self) -> psycopg.Cursor[Row] | None:
        """Put what waits into the open pipeline; return the cursor of a lock that is among it."""
        self.begun, lock = True, None
        inserts: dict[str | None, tuple[str, Sequence[Any]]] = {}
        for query, rows in (*self._waiting, ("", ((),))):
            table = _table(query) if len(rows) == 1 else None
            if inserts and (table is None or table in inserts):
                queries, cells = zip(*inserts.values(), strict=True)
                self._connection.execute(_joined(queries), [*chain.from_iterable(cells)])
                inserts = {}
            if table is not None:
                inserts[table] = (query, rows[0])
            elif len(rows) > 1:
                self._connection.cursor().executemany(query, rows)
            elif query:
                cursor = self._connection.execute(query, rows[0])
                lock = cursor if query is _LOCK else lock
        self._waiting, self._rows = [], 0
        return lock

    @contextmanager
    def _pipeline(self) -> Iterator[psycopg.Pipeline]:
        try:
            with self._connection.pipeline() as pipeline:
                yield pipeline
        except errors.PipelineAborted as fault:
            # Of a statement that stood behind the one that failed.
            raise fault.__context__ or fault from None
