"""Named statements, numbered migrations, and what a backend's session can do with them.

Invariants
(1) A statement is named by a line ``-- name --``; a fragment is a statement that others include as ``{{name}}``.
(2) Statements are written for SQLite in the SQL that PostgreSQL has too; ``postgres.py`` says what it writes otherwise.
(3) Migrations are numbered without a gap and never edited: the hash of each is recorded when it runs and compared
    afterwards.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from keepward.errors import KeepwardError
from keepward.ports.world import BlobStore
from keepward.storage.seals import Sealer

if TYPE_CHECKING:
    from keepward.storage.server_state import SharedState

#: Where the files of SQL are.
SQL_FOLDER = Path(__file__).parent
#: What no id begins with: the end of a range of ids that begin alike.
MAX_CHARACTER = "\U0010ffff"
#: What is said where a row of a table is there already.
CONFLICT_MESSAGES = {
    "records": "the key is taken by another memory; revise that one instead",
    "commits": "a call under this idempotency key was carried out in the meantime; send it again",
    "documents": "a receipt is written once; this one is there already",
}
_NAME = re.compile(r"^-- (\w+) --$", re.MULTILINE)
_FRAGMENT = re.compile(r"\{\{(\w+)\}\}")
_FILE = re.compile(r"(\d{4})_(\w+)\.sql")

Row: TypeAlias = tuple[Any, ...]
#: Named or in order.
Values: TypeAlias = Mapping[str, Any] | Sequence[Any]


class Cursor(Protocol):
    """What a statement has found."""

    def fetchone(self) -> Any: ...

    def fetchall(self) -> list[Any]: ...

    def __iter__(self) -> Iterator[Any]: ...


class Connection(Protocol):
    """One transaction or snapshot of a backend; what is wrong with a write may be raised by a later statement."""

    #: The base class of the driver's errors.
    fault: type[Exception]
    #: Whether there are tables that candidates of recall come from; see ``candidates.py``.
    searchable: bool

    def run(self, name: str, values: Values = (), /, **named: Any) -> Cursor:
        """Run a named statement."""
        ...

    def stream(self, name: str, **named: Any) -> Iterator[Row]:
        """Yield the rows of a named statement without holding all of them."""
        ...

    def many(self, name: str, rows: Iterable[Sequence[Any]]) -> object:
        """Run a named statement once for each row."""
        ...

    def execute(self, text: str, values: Values = (), /) -> Cursor:
        """Run a statement that has no name, since a table's name is put into it."""
        ...

    def translate_error(self, exc: Exception) -> KeepwardError:
        """Return our error for one of the driver's."""
        ...

    def select_tenant(self, tenant: str | None) -> None:
        """Work for a tenant from here on, or for all; a writer is alone with the tenant until its transaction ends."""
        ...


class DatabaseServer(Protocol):
    """What a database adds that several servers of a store share."""

    def shared_state(self, key: bytes | None, monotonic: Callable[[], float]) -> SharedState | None:
        """Return what the servers share between requests, sealed under a key; None without a key or when read-only."""
        ...

    def blob_store(self) -> BlobStore:
        """Return where the database stores the bytes of blobs."""
        ...

    def execute_autocommit(self, statement: str) -> None:
        """Run a statement that PostgreSQL rejects inside a transaction, for example CREATE INDEX CONCURRENTLY."""
        ...


class Database(Protocol):
    """A backend: its snapshots, its transactions and its maintenance."""

    writable: bool

    @property
    def server(self) -> DatabaseServer | None:
        """What several servers share; None for a file, which one process serves."""
        ...

    def reading(self, tenant: str | None = None) -> AbstractContextManager[Connection]:
        """Open one snapshot for the block, of one tenant, or of all tenants for an owner's tools."""
        ...

    def writing(self, *, brief: bool = False) -> AbstractContextManager[Connection]:
        """Open one transaction for the block, which commits at its end. ``brief`` waits at most 5 s for a lock."""
        ...

    def data_version(self) -> int | None:
        """Return a number that changes when another handle writes; None while this handle writes."""
        ...

    def check(self) -> Iterator[tuple[str, str]]:
        """Yield what the backend itself finds wrong, as (row, detail)."""
        ...

    def size(self) -> int:
        """Return how many bytes the store takes."""
        ...

    def scrub(self) -> str | None:
        """Leave no byte of what was erased; return None, or why that has to wait."""
        ...

    def backup(self, target: Path) -> None:
        """Write a consistent copy to a new file."""
        ...

    def close(self) -> None:
        """Release everything; a second call does nothing."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Migration:
    """One step of the schema."""

    #: Also the schema number of a store after it.
    number: int
    name: str
    sql: str
    #: Hex digest of the file.
    sha256: str


def parse_queries(text: str) -> dict[str, str]:
    """Return the statements of a queries file by name, fragments filled in."""
    parts = _NAME.split(text)
    raw = {
        name: "\n".join(line for line in body.splitlines() if not line.startswith("--")).strip().rstrip(";")
        for name, body in zip(parts[1::2], parts[2::2], strict=True)
    }

    def filled(body: str) -> str:
        return _FRAGMENT.sub(lambda match: filled(raw[match[1]]), body)

    return {name: filled(body) for name, body in raw.items()}


def read_sql(name: str) -> str:
    """Return one of the files of SQL beside this module."""
    return SQL_FOLDER.joinpath(name).read_text("utf-8")


SQL = parse_queries(read_sql("queries.sql"))
#: The tables of a tenant but for its own row, with the number of their columns.
COLUMN_COUNTS = {
    "commits": 15,
    "events": 10,
    "records": 20,
    "features": 12,
    "marks": 3,
    "links": 4,
    "deliveries": 4,
    "documents": 10,
}
SQL |= {f"all_of_{table}": f"SELECT * FROM {table} WHERE tenant = :tenant" for table in COLUMN_COUNTS}
SQL |= {f"put_into_{table}": f"INSERT INTO {table} VALUES ({', '.join('?' * n)})" for table, n in COLUMN_COUNTS.items()}


@cache
def load_migrations(folder: Path = SQL_FOLDER) -> tuple[Migration, ...]:
    """Return the migrations of a folder, in order.

    Raises:
        ValueError: a number is missing or used twice.
    """
    found = []
    for entry in folder.joinpath("migrations").iterdir():
        if match := _FILE.fullmatch(entry.name):
            body = entry.read_bytes()
            sha256 = hashlib.sha256(body).hexdigest()
            found.append(Migration(number=int(match[1]), name=match[2], sql=body.decode(), sha256=sha256))
    found.sort(key=lambda each: each.number)
    if [each.number for each in found] != list(range(1, len(found) + 1)):
        raise ValueError("migrations must be numbered without a gap")
    return tuple(found)


def statements(sql: str) -> list[str]:
    """Return the statements of a migration; each ends with a semicolon at the end of a line."""
    lines = (line for line in sql.splitlines() if not line.startswith("--"))
    return [f"{each.strip()};" for each in re.split(r";\n", "\n".join(lines) + "\n") if each.strip()]


class Snapshot:
    """One state: of the store as it is when asked, or, of a writer, as its own transaction sees it."""

    _sealer: Sealer
    #: Opens a snapshot of a tenant that was held against what this machine has seen of it.
    _reading: Callable[[str], AbstractContextManager[Connection]]
    #: Opens a snapshot of all tenants, for what is asked before a tenant is known and for an owner's tools.
    _everywhere: Callable[[], AbstractContextManager[Connection]]

    def _run(self, name: str, tenant: str, **values: Any) -> list[Any]:
        """Return all rows of a named statement."""
        with self._reading(tenant) as db:
            return db.run(name, tenant=tenant, **values).fetchall()


def prefix_range(prefix: str) -> dict[str, str]:
    """Return the range of ids that begin so."""
    return {"low": prefix, "high": prefix + MAX_CHARACTER}
