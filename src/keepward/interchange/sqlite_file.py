"""Read a table of a SQLite file that another program made.

Invariants
(1) The file is read in a process of its own, see ``sqlite_process``; nothing in the file is run.
(2) Reading is limited: the time of waiting for the process, the bytes of a row and in total, the items of an import.
    One row is in memory at a time.
(3) The file and the files next to it are not changed.
"""

from __future__ import annotations

import base64
import json
import subprocess
import sys
import threading
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, cast

from keepward.errors import InvalidInput, StoreUnavailable
from keepward.interchange.parsing import ROW_LIMIT, SQLITE_MAGIC, TOTAL_LIMIT, ImportSource
from keepward.storage.driver import sidecar_path

#: Seconds of waiting for the process in one pass over a file, for the lock of the file, and between two checks.
_TIMEOUT_S, _LOCK_TIMEOUT_S, _TICK_S = 60.0, 5.0, 0.1
_PROGRAM = Path(__file__).with_name("sqlite_process.py")
_CAUSES = {
    "damaged": "is damaged, or its text is not UTF-8; save it again with the program that wrote it",
    "locked": "is locked by another program; close that and import again",
    "unfinished": "has changes that were never finished; open it once with the program that wrote it",
    "large": "has a row of more than {row} MB: it is too large; export the other rows to a new file",
    "code": "computes what it contains; copy its rows to an ordinary table of a new file",
    "closed": "cannot be opened; check that this user may read it",
    "endless": "has rows of more than {total} MB; export a part of them to a new file",
    "ended": "ended the process that reads it: it is damaged or too large; export its rows to a new file",
    "late": "took too long to be read; export its rows to a new file",
}


def columns_in(source: ImportSource) -> dict[str, frozenset[str]]:
    """Return the columns of each table of a file, by its name; views and virtual tables are left out.

    Raises:
        InvalidInput: it is no SQLite file, damaged, locked or too large, or takes too long.
        StoreUnavailable: no process can be started.
    """
    with _Process.reading(source) as process:
        return {name: frozenset(columns) for name, columns in process.tables.items()}


def rows_in(source: ImportSource, columns: Collection[str], usual: str) -> Iterator[dict[str, Any]]:
    """Yield each row of a table with these columns, preferably the one with the usual name; raises as ``columns_in``.

    A table with a generated column is an ``InvalidInput``.
    """
    with _Process.reading(source) as process:
        found = [name for name, there in process.tables.items() if there.keys() >= set(columns)]
        table = usual if usual in found else next(iter(found), None)
        if table is None:
            raise InvalidInput(f"{source.name} has no table with the columns {', '.join(sorted(columns))}")
        if computed := sorted(name for name, generated in process.tables[table].items() if generated):
            raise InvalidInput(
                f"{source.name}: the table {table!a:.60} has the generated column {computed[0]!a:.60}, which is not "
                "computed here; copy the other columns to a table of a new file and import that"
            )
        names = list(process.tables[table])
        process.choose(table)
        while isinstance(row := process.answer(), list):
            yield {
                name: base64.b64decode(value["base64"]) if isinstance(value, dict) else value
                for name, value in zip(names, row, strict=True)
            }


class _Process:
    """The process that reads one file, and its limits (2)."""

    def __init__(self, source: ImportSource) -> None:
        self._name, self._size = source.name, 0
        try:
            self._process = subprocess.Popen(  # noqa: S603 - no shell; the program is ours
                ["" if getattr(sys, "frozen", False) else sys.executable or "", "-I", "-S", str(_PROGRAM)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
            )
        except (OSError, ValueError) as exc:
            raise StoreUnavailable(
                f"no process can be started to read {source.name}; it takes a Python at sys.executable"
            ) from exc
        self._waiting, self._late, self._ended = False, False, threading.Event()
        threading.Thread(target=self._watch, daemon=True).start()
        self.tables: dict[str, dict[str, bool]] = {}

    @classmethod
    @contextmanager
    def reading(cls, source: ImportSource) -> Iterator[_Process]:
        """Start a process for the block, and read the names of tables and columns."""
        if not source.begins(SQLITE_MAGIC):
            raise InvalidInput(f"{source.name} is no SQLite file")
        image, database = b"", ":memory:"
        if source.path is None:
            source.stream.seek(0)
            image = source.stream.read(TOTAL_LIMIT + 1)
            if len(image) > TOTAL_LIMIT:
                raise InvalidInput(f"{source.name} is too large for a stream: import it by its path")
        else:
            source.stream.seek(18)
            logged = source.stream.read(1) == b"\2"
            # Without locks only if SQLite would create a log next to the file.
            unlocked = logged and not sidecar_path(source.path, "-wal").exists()
            database = f"{source.path.resolve().as_uri()}?mode=ro{'&immutable=1' if unlocked else ''}"
        process = cls(source)
        try:
            request = {"database": database, "bytes": len(image), "row_limit": ROW_LIMIT, "timeout": _LOCK_TIMEOUT_S}
            process.send(json.dumps(request).encode() + b"\n" + image)
            process.tables = process.answer()
            yield process
        finally:
            process.end()

    def choose(self, table: str) -> None:
        self.send(json.dumps(table).encode() + b"\n")

    def send(self, data: bytes) -> None:
        self._waiting = True
        # If the process has ended, its last answer says why.
        with suppress(OSError):
            given = cast("IO[bytes]", self._process.stdin)
            given.write(data)
            given.flush()
        self._waiting = False

    def answer(self) -> Any:
        """Return the next answer of the process."""
        self._waiting = True
        line = cast("IO[bytes]", self._process.stdout).readline(ROW_LIMIT + 1)
        self._waiting = False
        self._size += len(line)
        if self._size > TOTAL_LIMIT:
            raise self._unreadable("endless")
        if len(line) > ROW_LIMIT:
            raise self._unreadable("large")
        if not line.endswith(b"\n"):
            raise self._unreadable("late" if self._late else "ended")
        answer = json.loads(line)
        if isinstance(answer, dict) and isinstance(answer.get("error"), str):
            raise self._unreadable(answer["error"])
        return answer

    def _unreadable(self, cause: str) -> InvalidInput:
        why = _CAUSES[cause].format(row=ROW_LIMIT // 10**6, total=TOTAL_LIMIT // 10**6)
        return InvalidInput(f"the SQLite file {self._name} {why}. Nothing was imported")

    def _watch(self) -> None:
        """Kill the process when it was waited for too long."""
        left = _TIMEOUT_S
        while not self._ended.wait(_TICK_S):
            left -= _TICK_S * self._waiting
            if left <= 0:
                self._late = True
                self._process.kill()
                return

    def end(self) -> None:
        self._ended.set()
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            with suppress(OSError):
                cast("IO[bytes]", stream).close()
