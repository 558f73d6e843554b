"""Read every readable row of a damaged SQLite file, from a copy."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from contextlib import suppress
from itertools import chain
from pathlib import Path

from keepward.errors import InvalidInput, NotAStore
from keepward.storage import forks
from keepward.storage.driver import connected, sidecar_path
from keepward.storage.file import id_file, read_id
from keepward.storage.sql import Row

_COLUMNS = {
    "commits": "tenant, seq, id, at, kind, actor_kind, prev, events_hash, salt, payload, hash, seal, receipt",
    "events": "tenant, seq, n, op, memory_id, version, salt, payload, payload_commit, seal",
    "documents": "tenant, kind, id, body",
    "records": "tenant, id, version",
}
#: Most row numbers to try one by one at each end of a damaged part, because a forged number could be huge.
MAX_TRIES = 50_000
_UNREADABLE = (sqlite3.Error, UnicodeDecodeError, OverflowError)


def read_damaged(path: Path, folder: Path) -> tuple[str, dict[str, list[Row]], tuple[str, ...]]:
    """Return the id of a store, the readable rows of its tables, and the row numbers that were not tried.

    It reads a copy that it creates in ``folder``.

    Raises:
        NotAStore: its first page or its schema cannot be read.
        InvalidInput: this process has it open.
    """
    if not path.is_file():
        raise NotAStore(f"there is no file at {path}")
    forks.refuse_if_open(path)
    with tempfile.TemporaryDirectory(dir=folder, prefix=f".{path.name}.") as aside:
        copy = Path(aside) / "copy.db"
        for suffix in ("", "-wal"):
            with suppress(FileNotFoundError):
                shutil.copyfile(sidecar_path(path, suffix), sidecar_path(copy, suffix))
        _pad(copy)
        try:
            with connected(copy, pragmas=("trusted_schema=OFF",)) as db:
                # Damaged text fails its hash later.
                db.text_factory = lambda raw: raw.decode("utf-8", "replace")
                names = {name for (name,) in db.execute("SELECT name FROM sqlite_schema")}
                if not names >= _COLUMNS.keys():
                    raise sqlite3.DatabaseError("a table is missing")
                skipped: list[str] = []
                tables = {table: _rows(db, table, columns, skipped) for table, columns in _COLUMNS.items()}
                store_id = _store_id(db, path)
        except _UNREADABLE as exc:
            raise NotAStore(
                f"nothing of {path} can be read as a store: its first page or its schema is damaged; restore a backup"
            ) from exc
    return store_id, tables, tuple(skipped)


def _pad(copy: Path) -> None:
    """Pad a cut off file with zeros, because SQLite refuses a file that ends before its last page."""
    with copy.open("r+b") as file:
        header = file.read(100)
        size, pages = int.from_bytes(header[16:18], "big"), int.from_bytes(header[28:32], "big")
        length = file.seek(0, 2)
        if 512 <= size <= 32_768 and length < size * pages < 4 * length:
            file.truncate(size * pages)


def _store_id(db: sqlite3.Connection, path: Path) -> str:
    with suppress(*_UNREADABLE):
        return str(db.execute("SELECT value FROM meta WHERE name = 'store_id'").fetchone()[0])
    with suppress(OSError, InvalidInput):
        return read_id(id_file(path))
    return ""


def _rows(db: sqlite3.Connection, table: str, columns: str, skipped: list[str]) -> list[Row]:
    """Return the readable rows of a table: in ranges from both ends up to the damage, and one by one within it.

    Only the ends of a long damaged part are tried; the rest is added to ``skipped``.
    """
    query = f"SELECT rowid, {columns} FROM {table} NOT INDEXED"
    found: dict[int, Row] = {}
    first = last = 0
    try:
        for row in db.execute(f"{query} ORDER BY rowid"):
            found[first := row[0]] = row[1:]
    except _UNREADABLE:
        with suppress(*_UNREADABLE):
            for row in db.execute(f"{query} ORDER BY rowid DESC"):
                found[last := row[0]] = row[1:]
        tried = chain(range(first + 1, last))
        low, high = first + MAX_TRIES, last - MAX_TRIES
        if low < high:
            tried = chain(range(first + 1, low + 1), range(high, last))
            skipped.append(f"{table}, rows {low + 1} to {high - 1}")
        for number in tried:
            with suppress(*_UNREADABLE):
                found.update((row[0], row[1:]) for row in db.execute(f"{query} WHERE rowid = ?", (number,)))
    return [found[number] for number in sorted(found)]
