"""Named SQL statements, numbered migrations, and the protocols of a database and its connections.

A line ``-- name --`` names a statement. Other statements include it as ``{{name}}``. The SQL is the common part of
SQLite and PostgreSQL; ``postgres.sql`` replaces single statements. Migrations are numbered without a gap and never
edited: the hash of each is stored when it runs and compared later.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from keepward.errors import KeepwardError
from keepward.storage.seals import Sealer

if TYPE_CHECKING:
    from keepward.ports.world import BlobStore
    from keepward.storage.server_state import SharedState

#: Folder of the SQL files.
SQL_FOLDER = Path(__file__).parent
#: No id contains this character, so it ends a range of ids with the same prefix.
MAX_CHARACTER = "\U0010ffff"
#: Message for a violated unique constraint, by table.
CONFLICT_MESSAGES = {
    "records": "the key is taken by another memory; revise that one instead",
    "commits": "another call with this idempotency key was applied in the meantime; send it again",
    "documents": "this receipt already exists, and a receipt is written once",
}
_NAME = re.compile(r"^-- (\w+) --$", re.MULTILINE)
_FRAGMENT = re.compile(r"\{\{(\w+)\}\}")
_FILE = re.compile(r"(\d{4})_(\w+)\.sql")

Row: TypeAlias = tuple[Any, ...]
#: Values by name or in order.
Values: TypeAlias = Mapping[str, Any] | Sequence[Any]


class Cursor(Protocol):
    """The result of a statement."""

    def fetchone(self) -> Any: ...

    def fetchall(self) -> list[Any]: ...

    def __iter__(self) -> Iterator[Any]: ...


class Connection(Protocol):
    """One transaction or snapshot. A write may report its error at a later statement."""

    #: The base class of the driver's errors.
    fault: type[Exception]
    #: Whether the candidate tables of recall exist; see ``candidates.py``.
    searchable: bool
    #: Whether the planner knows how many rows a condition selects; otherwise a statement names its index.
    has_statistics: bool

    def run(self, name: str, values: Values = (), /, **named: Any) -> Cursor:
        """Run a named statement."""
        ...

    def ask_ahead(self, name: str, *, pages: bool = False, **named: Any) -> bool:
        """Send a statement that ``run`` asks for later, or ``stream`` with ``pages``, to get its answer with others.

        Returns False, and does nothing, if an answer takes no round trip.
        """
        ...

    def stream(self, name: str, **named: Any) -> Iterator[Row]:
        """Yield the rows of a named statement, a page at a time."""
        ...

    def run_many(self, name: str, rows: Iterable[Sequence[Any]]) -> object:
        """Run a named statement once for each row."""
        ...

    def execute(self, text: str, values: Values = (), /) -> Cursor:
        """Run a statement without a name, for example one that contains the name of a table."""
        ...

    def translate_error(self, exc: Exception) -> KeepwardError:
        """Return our error for one of the driver's."""
        ...

    def select_tenant(self, tenant: str | None) -> None:
        """Restrict the statements to one tenant, or to none. A writer locks the tenant until its transaction ends."""
        ...


class DatabaseServer(Protocol):
    """What only a database that several servers share can do."""

    def shared_state(self, key: bytes | None, monotonic: Callable[[], float]) -> SharedState | None:
        """Return the state that servers of this database share; None without a key or when read-only."""
        ...

    def create_vectors(self) -> None:
        """Create the table for candidates from the database.

        Raises:
            StoreUnavailable: the database lacks pgvector.
        """
        ...

    def execute_autocommit(self, statement: str) -> None:
        """Run a statement that cannot run in a transaction."""
        ...

    def blob_store(self) -> BlobStore:
        """Return where the database stores the bytes of blobs."""
        ...


class Database(Protocol):
    """A backend: its snapshots, its transactions and its maintenance."""

    writable: bool

    @property
    def concurrent(self) -> bool:
        """Whether other threads can use it while one has a snapshot open."""
        ...

    @property
    def server(self) -> DatabaseServer | None:
        """A database that several servers share; None for a file, which one process serves."""
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
        """Yield faults that the database itself finds, as (row, detail)."""
        ...

    def size(self, db: Any) -> int:
        """Return the size of the store in bytes; ``db`` is one of its snapshots, or of its transactions."""
        ...

    def scrub(self) -> str | None:
        """Overwrite all erased bytes. Return None, or the reason to try again later."""
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

    #: The schema number of a store after this step.
    number: int
    name: str
    sql: str
    #: SHA-256 of the file, in hex.
    sha256: str


def parse_queries(text: str) -> dict[str, str]:
    """Return the statements of a file by name, with their fragments inserted."""
    parts = _NAME.split(text)
    raw = {
        name: "\n".join(line for line in body.splitlines() if not line.startswith("--")).strip().rstrip(";")
        for name, body in zip(parts[1::2], parts[2::2], strict=True)
    }

    def filled(body: str) -> str:
        return _FRAGMENT.sub(lambda match: filled(raw[match[1]]), body)

    return {name: filled(body) for name, body in raw.items()}


def read_sql(name: str) -> str:
    """Return the text of one SQL file in this folder."""
    return SQL_FOLDER.joinpath(name).read_text("utf-8")


SQL = parse_queries(read_sql("queries.sql"))
#: The tables of a tenant except ``tenants``, with their numbers of columns.
COLUMN_COUNTS = {
    "commits": 15,
    "events": 10,
    "records": 20,
    "features": 12,
    "listed": 30,
    "marks": 3,
    "links": 4,
    "deliveries": 4,
    "documents": 10,
}
SQL |= {f"all_of_{table}": f"SELECT * FROM {table} WHERE tenant = :tenant" for table in COLUMN_COUNTS}
SQL |= {f"put_into_{table}": f"INSERT INTO {table} VALUES ({', '.join('?' * n)})" for table, n in COLUMN_COUNTS.items()}


@cache
def load_migrations(folder: Path = SQL_FOLDER) -> tuple[Migration, ...]:
    """Return the migrations of a folder in order.

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
    """Reads of one snapshot: of the current store, or of a writer's own transaction."""

    _sealer: Sealer
    #: Opens a snapshot of a tenant after the check against the anchor.
    _reading: Callable[[str], AbstractContextManager[Connection]]
    #: Opens a snapshot of all tenants, for owner tools and for reads that precede the choice of a tenant.
    _everywhere: Callable[[], AbstractContextManager[Connection]]

    @contextmanager
    def _reading_unchecked(self, tenant: str) -> Iterator[Connection]:
        """Open a snapshot in which a tenant can be read, without the check against the anchor."""
        del tenant
        with self._everywhere() as db:
            yield db

    @contextmanager
    def read_snapshot(self, tenant: str) -> Iterator[None]:
        """Give all reads of a tenant in this thread one snapshot during the block. The block writes nothing."""
        with self._reading(tenant):
            yield

    def end_snapshot(self) -> None:
        """End a snapshot that several reads share, before something slow."""

    def ask_ahead(self, name: str, tenant: str, *, pages: bool = False, **values: Any) -> None:
        """Send a statement that a later read in the same snapshot asks; see ``Connection.ask_ahead``."""

    def _run(self, name: str, tenant: str, **values: Any) -> list[Any]:
        """Return all rows of a named statement."""
        with self._reading(tenant) as db:
            return db.run(name, tenant=tenant, **values).fetchall()


def prefix_range(prefix: str) -> dict[str, str]:
    """Return the range of ids with this prefix."""
    return {"low": prefix, "high": prefix + MAX_CHARACTER}
