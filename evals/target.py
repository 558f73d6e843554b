"""What the security evals attack: a file or a schema of a database, with every way to change its bytes and rows."""

from __future__ import annotations

import mmap
import re
import shutil
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import keepward.drill.target as drill
from keepward.locations import DatabaseUrl, Location


class Column(NamedTuple):
    name: str
    #: ``integer``, ``text`` or ``bytes``.
    sort: str
    #: Whether it is part of the table's key.
    in_key: bool


def words_in(folders: Sequence[Path], words: Mapping[str, str]) -> set[str]:
    """Return the names of those words that stand in any file below these folders, as UTF-8 or UTF-16."""
    forms = {name: (word.encode(), word.encode("utf-16-le")) for name, word in words.items()}
    found = set()
    for file in (each for place in folders for each in sorted(place.rglob("*"))):
        if file.is_file() and file.stat().st_size and not file.name.endswith("-shm"):
            with file.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as content:
                found |= {name for name, each in forms.items() if any(content.find(form) >= 0 for form in each)}
    return found


class Target(drill.DrillTarget):
    """A file with a store; below its folder lie the store, a configuration folder, and the states that were saved.

    The store has to be closed before its state is saved or restored.
    """

    #: SQL that appends a byte to a value of bytes.
    longer = "CAST(coalesce({0}, x'') || x'78' AS BLOB)"
    #: What the driver raises for a statement that the database refuses.
    refused: tuple[type[Exception], ...] = (sqlite3.IntegrityError,)

    def __init__(self, folder: Path, source: Any = None) -> None:
        super().__init__(folder, source)
        self._states = folder / "states"

    def save_state(self, name: str) -> None:
        """Keep everything under a name, with the configuration folder."""
        self._forget(name)
        shutil.copytree(self.home, self._states / name)
        self._save_rows(name)

    def restore_state(self, name: str, *, home: bool = False, tables: Sequence[str] | None = None) -> None:
        """Put the rows of all or some tables back as they were, or the configuration folder as well."""
        self._restore_rows(name, tables)
        if home:
            shutil.rmtree(self.home)
            shutil.copytree(self._states / name, self.home)

    def _forget(self, name: str) -> None:
        shutil.rmtree(self._states / name, ignore_errors=True)

    def _save_rows(self, name: str) -> None:
        shutil.copyfile(self.path, self._states / f"{name}.db")

    def _restore_rows(self, name: str, tables: Sequence[str] | None) -> None:
        older = self._states / f"{name}.db"
        if tables is None:
            self.write(b"")
            shutil.copyfile(older, self.path)
            return
        back = [f"DELETE FROM main.{each}; INSERT INTO main.{each} SELECT * FROM older.{each}" for each in tables]
        self.execute("; ".join(["ATTACH :older AS older", *back]), {"older": str(older)})

    def write(self, content: bytes) -> None:
        """Put other bytes in place of the file's."""
        for beside in ("-wal", "-shm"):
            self.path.with_name(self.path.name + beside).unlink(missing_ok=True)
        self.path.write_bytes(content)

    def destroy(self) -> None:
        """Leave nothing of the store."""
        self.write(b"")

    @property
    def is_destroyed(self) -> bool:
        """Whether nothing has been made in place of what was destroyed."""
        return not self.path.stat().st_size

    @contextmanager
    def _connected(self) -> Iterator[Any]:
        with closing(sqlite3.connect(self.path, isolation_level=None)) as connection:
            yield connection

    def execute(self, statements: str, values: Mapping[str, Any] | None = None) -> int:
        """Run statements behind the store's back, without its key; return how many rows the last one changed.

        A value is named ``:so``. A statement that the database refuses changes no row.
        """
        changed = 0
        with self._connected() as connection:
            for statement in statements.split(";"):
                try:
                    changed = connection.execute(self._worded(statement), values or {}).rowcount
                except self.refused:
                    return 0
        return changed

    def rows(self, query: str, values: Mapping[str, Any] | None = None) -> list[Any]:
        """Return the rows of a query."""
        with self._connected() as connection:
            return list(connection.execute(self._worded(query), values or {}).fetchall())

    @staticmethod
    def _worded(statement: str) -> str:
        """Return a statement with its values named as the driver takes them."""
        return statement

    def tables(self) -> dict[str, list[Column]]:
        """Return the columns of each table, by its name, in order."""
        names = self.rows("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")
        sorts = {"INTEGER": "integer", "TEXT": "text"}
        return {
            name: [
                Column(column, sorts.get(sort, "bytes"), bool(part))
                for _, column, sort, _, _, part in self.rows(f"PRAGMA table_info({name})")
            ]
            for (name,) in names
            if not name.startswith("sqlite_")
        }

    def holding(self, words: Mapping[str, str]) -> set[str]:
        """Return the names of those words that stand in any file of the store or its home."""
        return words_in((self.store, self.home), words)


class DatabaseTarget(drill.DatabaseTarget, Target):
    """A schema of its own in a database."""

    longer = "coalesce({0}, CAST('' AS BYTEA)) || CAST('x' AS BYTEA)"
    execute = Target.execute

    def __init__(self, folder: Path, database: DatabaseUrl) -> None:
        super().__init__(folder, database)
        import psycopg

        self.refused = (psycopg.IntegrityError, psycopg.DataError)

    def _fill(self, schema: str, source: str, tables: Sequence[str]) -> None:
        """Replace the rows of tables of a schema by those of another."""
        columns = self.tables()
        moves = []
        for each in tables:
            names = ", ".join(column.name for column in columns[each])
            moves.append(f"DELETE FROM {schema}.{each}")
            moves.append(f"INSERT INTO {schema}.{each} ({names}) SELECT {names} FROM {source}.{each}")
        self._run(f"BEGIN ISOLATION LEVEL REPEATABLE READ; {'; '.join(moves)}; COMMIT")

    def _forget(self, name: str) -> None:
        super()._forget(name)
        self._run(f"DROP SCHEMA IF EXISTS {self._name}_{name} CASCADE")

    def _save_rows(self, name: str) -> None:
        aside = f"{self._name}_{name}"
        made = [f"CREATE TABLE {aside}.{each} AS TABLE {self._name}.{each}" for each in self.tables()]
        self._run(f"BEGIN; CREATE SCHEMA {aside}; {'; '.join(made)}; COMMIT")

    def _restore_rows(self, name: str, tables: Sequence[str] | None) -> None:
        if self.rows("SELECT to_regnamespace(:name) IS NOT NULL", {"name": self._gone}) == [(True,)]:
            self.empty()
            self._run(f"DROP SCHEMA {self._name}; ALTER SCHEMA {self._gone} RENAME TO {self._name}")
        self._fill(self._name, f"{self._name}_{name}", list(self.tables()) if tables is None else tables)

    def empty(self) -> None:
        """Drop every table, and keep the schema."""
        self._run(f"DROP SCHEMA {self._name} CASCADE; CREATE SCHEMA {self._name}")

    @property
    def _gone(self) -> str:
        return f"{self._name}_gone"

    def destroy(self) -> None:
        """Leave nothing of the store but an empty schema."""
        self._run(f"ALTER SCHEMA {self._name} RENAME TO {self._gone}; CREATE SCHEMA {self._name}")

    @property
    def is_destroyed(self) -> bool:
        return not self.tables()

    @contextmanager
    def _connected(self) -> Iterator[Any]:
        import psycopg

        with psycopg.connect(self.address, autocommit=True, connect_timeout=10) as connection:
            # An attacker with the store's role is kept apart from no tenant.
            connection.execute("SET synchronous_commit = off; SELECT set_config('keepward.all', 'on', false)")
            yield connection

    @staticmethod
    def _worded(statement: str) -> str:
        return re.sub(r"(?<!:):(\w+)", r"%(\1)s", statement.replace("%", "%%"))

    def tables(self) -> dict[str, list[Column]]:
        """Return the columns of each table that outlives a crash, by its name, in order."""
        found: dict[str, list[Column]] = {}
        query = """
            SELECT c.relname, a.attname, a.atttypid::regtype::text, coalesce(a.attnum = ANY(i.indkey), false)
              FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0
                   AND NOT a.attisdropped AND a.attgenerated = ''
              LEFT JOIN pg_index i ON i.indrelid = c.oid AND i.indisprimary
             WHERE c.relnamespace = to_regnamespace(:schema) AND c.relkind IN ('r', 'p') AND NOT c.relispartition
               AND c.relpersistence = 'p'
             ORDER BY c.relname, a.attnum"""
        sorts = {"bigint": "integer", "text": "text"}
        for table, name, sort, in_key in self.rows(query, {"schema": self._name}):
            found.setdefault(table, []).append(Column(name, sorts.get(sort, "bytes"), in_key))
        return found

    def holding(self, words: Mapping[str, str]) -> set[str]:
        """Return the names of those words that stand in any row of the schema, or in any file; see ``Target``."""
        found = super().holding(words)
        with self._connected() as connection:
            for table in self.tables():
                with connection.cursor().copy(f"COPY (SELECT * FROM {table}) TO STDOUT (FORMAT binary)") as rows:
                    for row in rows:
                        found |= {name for name, word in words.items() if word.encode() in bytes(row)}
        return found

    def close(self) -> None:
        """Drop the schema, and the states that were saved."""
        names = self.rows("SELECT nspname FROM pg_namespace WHERE starts_with(nspname, :name)", {"name": self._name})
        self._run("; ".join(f"DROP SCHEMA {name} CASCADE" for (name,) in names))


def target_of(place: Location, folder: Path) -> Target:
    """Return an empty target in a temporary folder: a file, or a schema in the database that ``place`` names."""
    return DatabaseTarget(folder, place) if isinstance(place, DatabaseUrl) else Target(folder)
