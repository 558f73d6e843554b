"""The process that reads a SQLite file of another program: run as a script, with the standard library alone.

The first line of the standard input is a request in JSON; the bytes of the database follow if it has no path. The
process answers with lines of JSON: the tables, then the rows of the table that the next line of the input names. The
last line is an object with ``end`` or ``error``.

Invariants
(1) SQLite runs the ``SELECT`` of columns of a table and one pragma, and nothing else that the file contains: no view,
    no function, no generated column, no index.
(2) Memory is limited, and the process ends when its parent does.

Late imports: not every system has it.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import queue
import sqlite3
import sys
import threading
from collections.abc import Iterator
from typing import IO, Any

#: Most bytes of memory of SQLite and of the process, and most seconds of computing, where the system can limit them.
_HEAP_BYTES, _PROCESS_BYTES, _CPU_S = 300_000_000, 1_500_000_000, 120
#: Our error by the first words of SQLite's name of its error, as in ``SQLITE_BUSY_SNAPSHOT``. The rest is ``damaged``.
_ERRORS = {
    "SQLITE_BUSY": "locked",
    "SQLITE_LOCKED": "locked",
    "SQLITE_READONLY": "unfinished",
    "SQLITE_TOOBIG": "large",
    "SQLITE_NOMEM": "large",
    "SQLITE_AUTH": "code",
    "SQLITE_CANTOPEN": "closed",
    "SQLITE_PERM": "closed",
}


def _authorize(action: int, first: str | None, _second: str | None, _base: str | None, source: str | None) -> int:
    """Allow what (1) names; ``source`` is the view or trigger that asks."""
    reads = action in {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ}
    asks = action == sqlite3.SQLITE_PRAGMA and first == "table_xinfo"
    return sqlite3.SQLITE_OK if source is None and (reads or asks) else sqlite3.SQLITE_DENY


def _open(request: dict[str, Any], given: IO[bytes]) -> sqlite3.Connection:
    base = sqlite3.connect(request["database"], uri=True, timeout=request["timeout"])
    base.execute(f"PRAGMA hard_heap_limit={_HEAP_BYTES}")
    base.execute("PRAGMA trusted_schema=OFF")
    if size := request["bytes"]:
        image = bytearray(size)
        if given.readinto(image) != size:  # type: ignore[attr-defined]
            raise EOFError
        # In memory there is no log, so the header must not ask for one.
        image[18:20] = b"\1\1"
        base.deserialize(image)
    base.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, request["row_limit"])
    base.set_authorizer(_authorize)
    return base


def _answers(base: sqlite3.Connection, chosen: queue.SimpleQueue[str]) -> Iterator[Any]:
    """Yield the columns of each table, by whether they are generated; then each row of the chosen table."""
    found: dict[str, dict[str, bool]] = {}
    for kind, name, text in base.execute("SELECT type, name, sql FROM sqlite_master").fetchall():
        if kind == "table" and text.startswith("CREATE TABLE "):
            columns = base.execute(f"PRAGMA table_xinfo({_quoted(name)})")
            found[name] = {column[1]: column[6] != 0 for column in columns}
    yield found
    table = chosen.get()
    plain = [name for name, generated in found[table].items() if not generated]
    # Sorting would read all rows into memory, and an index could contain something else than the table.
    yield from base.execute(f"SELECT {', '.join(map(_quoted, plain))} FROM main.{_quoted(table)} NOT INDEXED")


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _main() -> None:
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        resource.setrlimit(resource.RLIMIT_CPU, (_CPU_S, _CPU_S))
        resource.setrlimit(resource.RLIMIT_AS, (_PROCESS_BYTES, _PROCESS_BYTES))
    given, output = sys.stdin.buffer, sys.stdout.buffer
    chosen: queue.SimpleQueue[str] = queue.SimpleQueue()

    def follow_parent() -> None:
        for line in given:
            chosen.put(json.loads(line))
        # The parent has ended, or needs no more.
        os._exit(0)

    def tell(value: Any) -> None:
        text = json.dumps(value, ensure_ascii=False, default=lambda data: {"base64": base64.b64encode(data).decode()})
        output.write(text.encode() + b"\n")

    try:
        base = _open(json.loads(given.readline()), given)
        threading.Thread(target=follow_parent, daemon=True).start()
        for answer in _answers(base, chosen):
            tell(answer)
            if isinstance(answer, dict):
                output.flush()
        tell({"end": True})
    except (sqlite3.Error, UnicodeError, MemoryError, AttributeError) as exc:
        name = getattr(exc, "sqlite_errorname", None) or ""
        known = _ERRORS.get("_".join(name.split("_")[:2]), "damaged")
        tell({"error": "large" if isinstance(exc, MemoryError) else known})
    output.flush()
    # The thread may hold a lock of the standard input, which an ordinary end would wait for.
    os._exit(0)


if __name__ == "__main__":
    _main()
