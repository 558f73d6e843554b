"""Read a table of a SQLite file that another program made.

Invariants
(1) Nothing in the file is run: a view in place of a table is none, and functions of its schema are not trusted.
(2) It ends: after a number of steps and of rows.
(3) The file and what lies beside it stay as they are; one that is not in use is read from memory.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import IO, Any

from keepward.errors import InvalidInput
from keepward.store.driver import companion

#: Steps of SQLite's machine between two looks, how many looks there are, and how many rows are read.
_STEPS, _LOOKS, _ROWS = 100_000, 20_000, 1_000_000


def read_table(
    stream: IO[bytes], path: Path | None, table: str, columns: Sequence[str]
) -> tuple[frozenset[str], list[tuple[Any, ...]]]:
    """Return the names of the tables of a file, and the columns of one in each row, in order; no rows if it is missing.

    A column that is not there is None. ``path`` is where the file lies, None for a stream.

    Raises:
        InvalidInput: it is damaged, or takes too long to read.
    """
    used = path is not None and companion(path, "-wal").exists()
    place = f"{path.resolve().as_uri()}?mode=ro" if path is not None and used else ":memory:"
    try:
        with closing(sqlite3.connect(place, uri=True)) as connection:
            if not used:
                stream.seek(0)
                image = bytearray(stream.read())
                # In memory there is no log beside the file, so it must not ask for one.
                image[18:20] = b"\1\1"
                connection.deserialize(bytes(image))
            looks = iter(range(_LOOKS))
            connection.set_progress_handler(lambda: next(looks, None) is None, _STEPS)
            connection.execute("PRAGMA trusted_schema=OFF")
            tables = frozenset(
                name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type='table'")
            )
            if table not in tables:
                return tables, []
            there = {row[1] for row in connection.execute(f"PRAGMA table_info({table})")}
            chosen = ", ".join(name if name in there else f"NULL AS {name}" for name in columns)
            # Names are those that the caller wrote, never the file's.
            return tables, connection.execute(f"SELECT {chosen} FROM {table} ORDER BY 1, 2 LIMIT {_ROWS}").fetchall()
    except (sqlite3.Error, UnicodeDecodeError) as fault:
        raise InvalidInput("the SQLite file is damaged, or too large to be read") from fault
