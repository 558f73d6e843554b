"""Read a table of a SQLite file that another program made.

Invariants
(1) Nothing in the file is run: a view in place of a table is none, and functions of its schema are not trusted.
(2) It ends: after a time, a number of rows, and of bytes that came out of them. One row is held at a time.
(3) The file and what lies beside it stay as they are.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import IO, Any

from keepward.errors import InvalidInput
from keepward.interchange.reading import ROW_LIMIT, TOTAL_LIMIT, few_enough
from keepward.storage.driver import companion

#: Steps of SQLite's machine between two looks at the clock, and how long the file may be read.
_STEPS, _LONGEST_S = 1_000, 30


def tables_in(stream: IO[bytes], path: Path | None, names: Sequence[str]) -> frozenset[str]:
    """Return which of these tables a file has. ``path`` is where the file lies, None for a stream.

    Raises:
        InvalidInput: it is damaged, or larger than may be read.
    """
    marks = ", ".join("?" * len(names))
    with _opened(stream, path) as base:
        found = base.execute(f"SELECT name FROM sqlite_master WHERE type='table' AND name IN ({marks})", names)
        return frozenset(name for (name,) in found)


def rows_in(stream: IO[bytes], path: Path | None, table: str, columns: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    """Yield these columns of each row of a table, as the file has them; a column that is not there is None.

    Raises:
        InvalidInput: as ``tables_in``.
    """
    size = 0
    with _opened(stream, path) as base:
        there = {row[1] for row in base.execute(f"PRAGMA table_info({table})")}
        chosen = ", ".join(name if name in there else f"NULL AS {name}" for name in columns)
        # Names are those that the caller wrote, never the file's. Sorting would hold all rows at once.
        for count, row in enumerate(base.execute(f"SELECT {chosen} FROM {table}"), 1):
            few_enough("the SQLite file", count)
            size += sum(len(value) for value in row if isinstance(value, str | bytes))
            if size > TOTAL_LIMIT:
                raise InvalidInput(f"the rows of the SQLite file are more than {TOTAL_LIMIT // 10**6} MB")
            yield row


@contextmanager
def _opened(stream: IO[bytes], path: Path | None) -> Iterator[sqlite3.Connection]:
    place = ":memory:"
    if path is not None:
        # One that is in use has a log beside it, which belongs to what it says.
        how = "mode=ro" if companion(path, "-wal").exists() else "mode=ro&immutable=1"
        place = f"{path.resolve().as_uri()}?{how}"
    end = time.monotonic() + _LONGEST_S
    try:
        with closing(sqlite3.connect(place, uri=True)) as base:
            base.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, ROW_LIMIT)
            base.set_progress_handler(lambda: time.monotonic() > end, _STEPS)
            if path is None:
                stream.seek(0)
                image = bytearray(stream.read(TOTAL_LIMIT + 1))
                if len(image) > TOTAL_LIMIT:
                    raise InvalidInput("the SQLite file is too large for a stream: import it by its path")
                # In memory there is no log beside the file, so it must not ask for one.
                image[18:20] = b"\1\1"
                base.deserialize(image)
                del image
            base.execute("PRAGMA trusted_schema=OFF")
            yield base
    except (sqlite3.Error, UnicodeDecodeError) as fault:
        raise InvalidInput("the SQLite file is damaged, or too large to be read") from fault
