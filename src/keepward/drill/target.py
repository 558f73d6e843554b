"""The copy that is attacked: a file, or a schema of a database.

The store that is copied is only read, and never opened by the engine. A copy in a database is a schema with a new name,
which is dropped at the end. Only this schema is on the search path of the copy's connections, so that no statement
reaches another table.

Late imports: an extra may be missing.
"""

from __future__ import annotations

import secrets
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

from keepward.errors import StoreUnavailable
from keepward.memory import Memory


class DrillTarget:
    """A copy that is a file, next to a configuration folder of its own."""

    def __init__(self, folder: Path, source: Any = None) -> None:
        self.source, self.store, self.home = source, folder / "store", folder / "config"
        self.store.mkdir(mode=0o700)
        self.path = self.store / "copy.db"

    @property
    def address(self) -> str:
        """The path or URL that opens the copy."""
        return str(self.path)

    def copy_store(self) -> None:
        """Copy the store over an earlier copy, without leaving a file next to the store."""
        if not self.source.is_file():
            raise StoreUnavailable(
                f"there is no store at {self.source}; `keepward init` makes one, --db PATH names another"
            )
        file = self.source.resolve()
        # If no process has the store open, an ordinary reader would create shared files next to it.
        how = "mode=ro" if Path(f"{file}-wal").exists() else "immutable=1"
        try:
            with (
                closing(sqlite3.connect(f"{file.as_uri()}?{how}", uri=True)) as opened,
                closing(sqlite3.connect(self.path)) as copied,
            ):
                opened.backup(copied)
            if (id_file := Path(f"{self.source}.id")).exists():
                shutil.copyfile(id_file, f"{self.path}.id")
            if (blobs := Path(f"{self.source}.blobs")).is_dir():
                shutil.copytree(blobs, f"{self.path}.blobs", dirs_exist_ok=True)
        except (OSError, sqlite3.Error) as error:
            raise StoreUnavailable("the store cannot be copied; see that its file can be read and try again") from error

    def execute(self, statement: str, *values: Any) -> None:
        """Run a statement that bypasses the store and its key."""
        with closing(sqlite3.connect(self.path, isolation_level=None)) as connection:
            connection.execute(statement, values)

    def close(self) -> None:
        """Remove what the copy left outside the folder: nothing for a file."""


class DatabaseTarget(DrillTarget):
    """A copy that is a schema of its own in a database."""

    def __init__(self, folder: Path, database: Any) -> None:
        super().__init__(folder, database)
        self._url, self._name = str(database.url), f"keepward_drill_{secrets.token_hex(6)}"
        # This says what to install if the driver is missing.
        database.exists()
        import psycopg

        try:
            self._run(f"CREATE SCHEMA {self._name}", at=self._url)
        except psycopg.errors.InsufficientPrivilege as error:
            reason = "the drill creates a schema of its own in the database and drops it, which this role may not do"
            raise StoreUnavailable(f"{reason}: GRANT CREATE ON DATABASE to it, or name another in --db") from error

    @property
    def address(self) -> str:
        parts = urlsplit(self._url)
        query = parse_qsl(parts.query, keep_blank_values=True)
        options = [value for name, value in query if name == "options"] + [f"-csearch_path={self._name}"]
        query = [pair for pair in query if pair[0] not in {"options", "read"}] + [("options", " ".join(options))]
        return urlunsplit(parts._replace(query=urlencode(query, quote_via=quote, safe="/")))

    def copy_store(self) -> None:
        """Copy the store over an earlier copy, in one snapshot."""
        if not self.source.exists():
            raise StoreUnavailable("there is no store in this database; make one with `keepward init`")
        if not self._tables():
            # Tables of this release; their rows are replaced below.
            Memory.open(self.address, embedder=None, config_dir=self.home).close()
            shutil.rmtree(self.home, ignore_errors=True)
        ((schema,),) = self._run("SELECT current_schema()", at=self._url)
        copies = "; ".join(
            f"DELETE FROM {table}; INSERT INTO {table} ({columns}) SELECT {columns} FROM {schema}.{table}"
            for table, columns in self._tables()
        )
        self._run(f"BEGIN ISOLATION LEVEL REPEATABLE READ; {copies}; COMMIT")

    def _tables(self) -> list[tuple[str, str]]:
        """Return the tables of the copy that survive a crash with their columns, without what is computed."""
        return self._run(f"""
            SELECT c.relname, string_agg(quote_ident(a.attname), ', ' ORDER BY a.attnum)
              FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
               AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
             WHERE c.relnamespace = to_regnamespace('{self._name}')
               AND c.relkind = 'r' AND c.relpersistence = 'p' AND c.relname !~ '^candidate' GROUP BY c.relname""")

    def _run(self, statements: str, values: Any = None, *, at: str | None = None) -> list[Any]:
        import psycopg

        with psycopg.connect(at or self.address, autocommit=True, connect_timeout=10) as connection:
            # The copied role may read every tenant, as an attacker with the store's role could.
            connection.execute("SELECT set_config('keepward.all', 'on', false)")
            cursor = connection.execute(statements, values)
            return list(cursor.fetchall()) if cursor.description else []

    def execute(self, statement: str, *values: Any) -> None:
        self._run(statement.replace("?", "%s"), values)

    def close(self) -> None:
        self._run(f"DROP SCHEMA {self._name} CASCADE", at=self._url)
