"""Read a table of a SQLite file that another program made.

Invariants
(1) Nothing in the file is run: views and virtual tables are not read, and functions of its schema are not trusted.
(2) Reading is limited: a time for each row, a number of bytes, the items of an import. One row is in memory at a time.
(3) The file and the files next to it are not changed.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Collection, Iterator
from contextlib import closing, contextmanager
from typing import Any

from keepward.errors import InvalidInput
from keepward.interchange.parsing import ROW_LIMIT, SQLITE_MAGIC, TOTAL_LIMIT, Source
from keepward.storage.driver import sidecar_path

#: Steps of SQLite's virtual machine between two checks of the time limit, and the time limit of a row.
_PROGRESS_INTERVAL_STEPS, _ROW_TIMEOUT_S = 1_000, 30


def columns_in(source: Source) -> dict[str, frozenset[str]]:
    """Return the columns of each table of a file, by its name.

    Raises:
        InvalidInput: it is no SQLite file, damaged, or too large.
    """
    with _open_database(source) as (base, _):
        names = base.execute("SELECT name FROM sqlite_master WHERE type='table' AND sql NOT LIKE 'CREATE VIRTUAL%'")
        return {
            name: frozenset(row[1] for row in base.execute(f"PRAGMA table_info({_quoted(name)})")) for (name,) in names
        }


def find_table(source: Source, columns: Collection[str], usual: str) -> str | None:
    """Return a table with these columns, preferably the one with the usual name; raises as ``columns_in``."""
    found = [name for name, there in columns_in(source).items() if there.issuperset(columns)]
    return usual if usual in found else next(iter(found), None)


def rows_in(source: Source, table: str) -> Iterator[dict[str, Any]]:
    """Yield each row of a table, unchanged; raises as ``columns_in``."""
    size = 0
    with _open_database(source) as (base, renew):
        # Sorting would read all rows into memory.
        found = base.execute(f"SELECT * FROM {_quoted(table)}")
        names = [each[0] for each in found.description]
        for row in found:
            size += sum(len(value) for value in row if isinstance(value, str | bytes))
            if size > TOTAL_LIMIT:
                raise InvalidInput(f"the rows of the SQLite file are more than {TOTAL_LIMIT // 10**6} MB")
            yield dict(zip(names, row, strict=True))
            renew()


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


@contextmanager
def _open_database(source: Source) -> Iterator[tuple[sqlite3.Connection, Any]]:
    """Open a file; yield the connection, and a function that restarts the time limit for the next row."""
    if not source.begins(SQLITE_MAGIC):
        raise InvalidInput(f"{source.name} is no SQLite file")
    database, path = ":memory:", source.path
    if path is not None:
        # A file in use has a log next to it with its newest rows.
        how = "mode=ro" if sidecar_path(path, "-wal").exists() else "mode=ro&immutable=1"
        database = f"{path.resolve().as_uri()}?{how}"
    ends = [0.0]

    def renew() -> None:
        ends[0] = time.monotonic() + _ROW_TIMEOUT_S

    renew()
    try:
        with closing(sqlite3.connect(database, uri=True)) as base:
            base.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, ROW_LIMIT)
            base.set_progress_handler(lambda: time.monotonic() > ends[0], _PROGRESS_INTERVAL_STEPS)
            if path is None:
                source.stream.seek(0)
                image = bytearray(source.stream.read(TOTAL_LIMIT + 1))
                if len(image) > TOTAL_LIMIT:
                    raise InvalidInput("the SQLite file is too large for a stream: import it by its path")
                # In memory there is no log, so the header must not ask for one.
                image[18:20] = b"\1\1"
                base.deserialize(image)
                del image
            base.execute("PRAGMA trusted_schema=OFF")
            yield base, renew
    except (sqlite3.Error, UnicodeDecodeError) as exc:
        raise InvalidInput("the SQLite file is damaged, or too large to be read") from exc
