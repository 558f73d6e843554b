"""One transaction of PostgreSQL: it translates SQLite's statements, and the driver's errors.

Invariants
(1) A statement is the one that SQLite runs, changed by ``to_postgres_sql``, or its replacement in ``postgres.sql``.
(2) A writer locks store and tenant with its first statement about the tenant. Its transaction is READ COMMITTED, so
    that it sees everything that the previous holder of the lock committed.
(3) A connection never crosses a fork: the transaction belongs to the parent.
(4) Statements go through psycopg's pipeline: only a read of rows and the end of the transaction wait for the server,
    and raise its errors. After an error the server skips all later statements, the commit included.
(5) Settings and locks end with the transaction. A list is one array: below row-level security a cast of its elements
    would hide an index.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from hashlib import blake2b
from itertools import count
from typing import Any

import psycopg
from psycopg import errors
from psycopg.pq import TransactionStatus

from keepward.errors import Conflict, InvalidInput, KeepwardError, NotAStore, StoreUnavailable, Tampered
from keepward.storage.forks import FORKED_IN_USE_MESSAGE
from keepward.storage.postgres_pool import PooledConnection
from keepward.storage.sql import CONFLICT_MESSAGES, SQL, Row, Values, parse_queries, read_sql

#: Rows that the first FETCH returns, enough for the first page of a list, and most that a later one returns.
_FIRST_PAGE_ROWS, _PAGE_ROWS = 64, 1_000
_POSTGRES_STATEMENTS = parse_queries("".join(map(read_sql, ("queries.sql", "postgres.sql", "candidates.sql"))))
#: Statements that take all rows at once, one array for each column.
_BY_COLUMN = frozenset(name for name, text in _POSTGRES_STATEMENTS.items() if "unnest(CAST(?" in text)
#: Lists of numbers; other lists have texts.
_NUMBERS = frozenset({"arrivals", "marks", "positions", "seqs"})
_ARRAY = re.compile(r"CAST\(%\((\w+)\)s AS (TEXT|BIGINT)\[\]\)")
_names = count()
_BUSY = "another transaction holds the tenant for too long; try again, nothing was stored"
_TAKEN_BACK = "the database rolled the transaction back; try again, nothing was stored"
READ_ONLY = "the store can only be read: its database takes no writes here"
_FORBIDDEN = "this database role lacks a privilege; grant it those of the store's owner"
_FULL = "the database has no room; free some space and try again: nothing was lost"
_TABLES = "the database does not have the tables of a Keepward store; check its name and schema"
_CHARACTER = "text has a character that a database cannot store, such as NUL; remove it"
_POOLED = (
    "a pooler between here and the database does not keep the statements of a session; use its session mode, or "
    "connect without it; acknowledged writes are safe"
)
_STOPPED = "the database cancelled a statement; raise this role's statement_timeout, or try again"
#: Our error and its message, by the driver's error.
_ERRORS: dict[type, tuple[type[KeepwardError], str]] = {
    errors.LockNotAvailable: (StoreUnavailable, _BUSY),
    errors.DeadlockDetected: (StoreUnavailable, _BUSY),
    errors.SerializationFailure: (StoreUnavailable, _BUSY),
    errors.InFailedSqlTransaction: (StoreUnavailable, _TAKEN_BACK),
    errors.PipelineAborted: (StoreUnavailable, _TAKEN_BACK),
    errors.ReadOnlySqlTransaction: (StoreUnavailable, READ_ONLY),
    errors.QueryCanceled: (StoreUnavailable, _STOPPED),
    errors.DiskFull: (StoreUnavailable, _FULL),
    errors.OutOfMemory: (StoreUnavailable, _FULL),
    errors.InsufficientPrivilege: (StoreUnavailable, _FORBIDDEN),
    errors.UndefinedTable: (NotAStore, _TABLES),
    errors.UndefinedColumn: (NotAStore, _TABLES),
    errors.UntranslatableCharacter: (InvalidInput, _CHARACTER),
    errors.CharacterNotInRepertoire: (InvalidInput, _CHARACTER),
    errors.NumericValueOutOfRange: (InvalidInput, "a number is too large for the database; name a smaller one"),
    errors.DuplicatePreparedStatement: (StoreUnavailable, _POOLED),
    errors.InvalidSqlStatementName: (StoreUnavailable, _POOLED),
    errors.InvalidCursorName: (StoreUnavailable, _POOLED),
    errors.NoActiveSqlTransaction: (StoreUnavailable, _POOLED),
    errors.ProtocolViolation: (StoreUnavailable, _POOLED),
}


def translate_error(fault: Exception) -> KeepwardError:
    """Return our error for one of the driver's."""
    for kind in type(fault).__mro__:
        if kind in _ERRORS:
            ours, said = _ERRORS[kind]
            return ours(said)
    if isinstance(fault, errors.UniqueViolation):
        taken = CONFLICT_MESSAGES.get(fault.diag.table_name or "")
        if taken is not None:
            return Conflict(taken)
    if isinstance(fault, psycopg.DataError) and fault.sqlstate is None and "NUL" in str(fault):
        return InvalidInput(_CHARACTER)
    if isinstance(fault, (psycopg.OperationalError, psycopg.InterfaceError)):
        why = next(iter(str(fault).strip().splitlines()), "the connection was lost")
        return StoreUnavailable(
            f"the database cannot be reached ({why}); check its address, and how many connections it allows, or try "
            "again: what was acknowledged is kept"
        )
    return Tampered(f"the database refused what a store asks of it ({type(fault).__name__}); run `keepward verify`")


@contextmanager
def translated_errors() -> Iterator[None]:
    """Turn the driver's errors into ours."""
    try:
        yield
    except psycopg.Error as exc:
        raise translate_error(exc) from exc


@cache
def to_postgres_sql(text: str) -> str:
    """Return a statement in PostgreSQL's dialect and with the driver's placeholders."""
    text = text.replace("%", "%%")
    text = re.sub(r" INDEXED BY \w+", "", text)
    text = text.replace("CAST(value AS BLOB)", "convert_to(value, 'UTF8')").replace(" AS BLOB)", " AS BYTEA)")
    text = re.sub(r"instr\(([\w.]+), ((?:CAST|convert_to)\([^)]+\))\)", r"position(\2 IN \1)", text)
    # A list is one array, never elements that a condition casts: below row-level security a cast hides the index.
    for name in set(re.findall(r"json_each\(:(\w+)\)", text)):
        array = f"CAST(:{name} AS {'BIGINT' if name in _NUMBERS else 'TEXT'}[])"
        listed = f"IN (SELECT value FROM json_each(:{name}))"
        text = text.replace(f"NOT {listed}", f"<> ALL({array})").replace(listed, f"= ANY({array})")
        text = text.replace(f":{name} = '[]'", f"{array} = '{{}}'").replace(f"CAST(:{name} AS TEXT) IS", f"{array} IS")
        text = re.sub(
            rf"json_each\(:{name}\)(?: AS (\w+))?",
            lambda match, array=array: f"unnest({array}) AS {match[1] or 'item'}(value)",  # type: ignore[misc]
            text,
        )
    # A new table has no statistics. This form makes the planner find features by the full key.
    keyed = r"LEFT JOIN features f ON (f\.tenant = \S+ AND f\.id = \S+ AND f\.version = \S+)"
    text = re.sub(keyed, r"LEFT JOIN LATERAL (SELECT * FROM features f WHERE \1 OFFSET 0) AS f ON TRUE", text)
    text = text.replace("lower(r.scope)", "r.folded").replace("lower(j.value)", 'lower(j.value COLLATE "C")')
    refs = "jsonb_array_elements_text(CAST(documents.refs AS jsonb)) AS named(value)"
    text = text.replace("json_each(documents.refs) AS named", refs)
    return re.sub(r"(?<!:):(\w+)", r"%(\1)s", text).replace("?", "%s")


@cache
def _arrays(query: str) -> tuple[tuple[str, str], ...]:
    """Return the names and types of the arrays among the parameters of a translated statement."""
    return tuple(dict.fromkeys(_ARRAY.findall(query)))


def _with_arrays(query: str, values: Values) -> Values:
    """Return values with arrays instead of lists written in JSON."""
    arrays = _arrays(query)
    if not arrays or not isinstance(values, Mapping):
        return values
    given = dict(values)
    for name, kind in arrays:
        if isinstance(listed := given[name], str):
            # The text of an array of numbers has one type, whatever their sizes.
            given[name] = json.loads(listed) if kind == "TEXT" else f"{{{listed[1:-1]}}}"
    return given


@cache
def _named(name: str) -> str:
    return to_postgres_sql(_POSTGRES_STATEMENTS.get(name) or SQL[name])


class PostgresConnection:
    """One transaction; see ``sql.Connection``."""

    fault: type[Exception] = psycopg.Error
    searchable: bool = True
    has_statistics: bool = True

    def __init__(self, pooled: PooledConnection, begin: str, lock: str | None, patience: int) -> None:
        """Start the transaction with the first statement. A writer locks tenants of the store that ``lock`` names."""
        self._pooled, self._connection = pooled, pooled.connection
        self._begin, self._lock, self._patience = begin, lock, patience
        self._pid, self._begun = os.getpid(), False
        #: Sent statements that ``run`` has not returned yet, by name and values.
        self._asked: dict[tuple[Any, ...], psycopg.Cursor[Row]] = {}
        #: The same for ``stream``, with the name of each cursor.
        self._asked_pages: dict[tuple[Any, ...], tuple[str, psycopg.Cursor[Row]]] = {}
        #: The statement that selects a tenant, with its values, until it is sent. All settings are those of the
        #: transaction: a pooler may give the next one another session.
        self._show: tuple[str, Sequence[Any]] | None
        self._show = "SELECT set_config('lock_timeout', %s, true)", (f"{patience}s",)

    def run(self, name: str, values: Values = (), /, **named: Any) -> psycopg.Cursor[Row]:
        given = named or values
        asked = self._asked.pop((name, *given.items()), None) if self._asked and isinstance(given, Mapping) else None
        return asked or self._ask(_named(name), given)

    def ask_ahead(self, name: str, *, pages: bool = False, **named: Any) -> bool:
        if pages:
            self._asked_pages[(name, *named.items())] = self._open_pages(name, named)
        else:
            self._asked[(name, *named.items())] = self._ask(_named(name), named)
        return True

    def execute(self, text: str, values: Values = (), /) -> psycopg.Cursor[Row]:
        return self._ask(to_postgres_sql(text), values)

    def stream(self, name: str, **named: Any) -> Iterator[Row]:
        """Yield the rows of a named statement, a page at a time. The cursor ends with the transaction."""
        asked = self._asked_pages.pop((name, *named.items()), None) if self._asked_pages else None
        cursor, page = asked or self._open_pages(name, named)
        size = min(_FIRST_PAGE_ROWS, _PAGE_ROWS)
        while True:
            rows = page.fetchall()
            yield from rows
            if len(rows) < size:
                return
            size = min(4 * size, _PAGE_ROWS)
            page = self._ask(f"FETCH {size} FROM {cursor}", prepare=False)

    def _open_pages(self, name: str, named: dict[str, Any]) -> tuple[str, psycopg.Cursor[Row]]:
        """Open a cursor; return its name, and its first page."""
        cursor = f"k{next(_names)}"
        self._ask(f"DECLARE {cursor} NO SCROLL CURSOR FOR {_named(name)}", named, prepare=False)
        return cursor, self._ask(f"FETCH {min(_FIRST_PAGE_ROWS, _PAGE_ROWS)} FROM {cursor}", prepare=False)

    def run_many(self, name: str, rows: Iterable[Sequence[Any]]) -> None:
        """Run a named statement once for each row, or once for all rows if it takes columns."""
        rows = list(rows)
        if name in _BY_COLUMN and rows:
            rows = [[list(column) for column in zip(*rows, strict=True)]]
        if rows:
            self._started().cursor().executemany(_named(name), rows)

    def translate_error(self, exc: Exception) -> KeepwardError:
        return translate_error(exc)

    def select_tenant(self, tenant: str | None) -> None:
        """Show only the rows of one tenant, which a writer locks, or those of all."""
        shown: list[Any] = [tenant or "", "on" if tenant is None else "", f"{self._patience}s"]
        # To compile a plan takes longer than to run it: a list of one page 90 ms instead of 2.
        query = """SELECT set_config('keepward.tenant', %s, true), set_config('keepward.all', %s, true),
                          set_config('lock_timeout', %s, true), set_config('jit', 'off', true)"""
        if self._lock is not None:
            # A writer looks rows up by key, so one generic plan fits every call.
            query += ", set_config('plan_cache_mode', 'force_generic_plan', true)"
            if tenant is not None:
                query += ", pg_advisory_xact_lock(%s)"
                key = blake2b(f"{self._lock}/{tenant}".encode("utf-8", "surrogatepass"), digest_size=8).digest()
                shown.append(int.from_bytes(key, "big", signed=True))
        self._show = query, shown

    def commit(self) -> int:
        """Commit; return the number of transaction ids that the server assigned."""
        if not self._begun:
            return 0
        self._show = None
        numbered = self._ask("SELECT pg_current_xact_id_if_assigned() IS NOT NULL")
        ended = self._ask("COMMIT")
        fault: psycopg.Error | None = None
        try:
            self._pooled.wait()
        except psycopg.Error as exc:
            fault = exc
        if ended.statusmessage != "COMMIT":
            # The server answers COMMIT with a rollback if a statement of the transaction failed.
            raise fault or errors.InFailedSqlTransaction
        return int(numbered.fetchone() == (True,))

    def end(self) -> None:
        """End a read. Nothing is awaited, unless an answer was not read, which may be an error."""
        if self._pid != os.getpid():
            self._detach()
        elif self._asked or self._asked_pages or self._pooled.waits:
            self.roll_back()
        elif self._begun:
            self._pooled.send_rollback()

    def roll_back(self) -> None:
        """Roll the transaction back, and wait for that."""
        if self._pid != os.getpid():
            self._detach()
        elif self._begun:
            with suppress(psycopg.Error):
                self._connection.execute("ROLLBACK")
            with suppress(psycopg.Error):
                self._pooled.leave()
            if self._connection.info.transaction_status != TransactionStatus.IDLE:
                # After an error the server skips the rollback as well; send it again.
                self._connection.execute("ROLLBACK")

    def _detach(self) -> None:
        """Redirect a child's descriptor, so that leaving the pipeline does not write to the parent's connection."""
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, self._connection.pgconn.socket)
        os.close(null)

    def _ask(self, query: str, values: Values = (), *, prepare: bool | None = None) -> psycopg.Cursor[Row]:
        return self._started().execute(query, _with_arrays(query, values), prepare=prepare)

    def _started(self) -> psycopg.Connection[Row]:
        """Return the connection with the transaction started and the tenant selected."""
        if self._pid != os.getpid():
            # The server would take a child's statements for the parent's.
            raise StoreUnavailable(FORKED_IN_USE_MESSAGE)
        if not self._begun:
            self._begun = True
            self._pooled.enter()
            self._connection.execute(self._begin)
        if self._show is not None:
            show, self._show = self._show, None
            self._connection.execute(*show)
        return self._connection
