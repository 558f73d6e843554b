"""Upkeep of a SQLite store as a file: everything beside the journal, a clean file, a copy of it.

Invariants
(1) ``scrub`` leaves no byte in the file and its log that is not live: the file is written anew, since what SQLite
    overwrites on deletion is the newest place of a cell and not one that it stood at before.
(2) A copy is consistent, readable by its owner alone, and under its final name only when it is whole.
"""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from keepward import durable
from keepward.errors import InvalidInput, StoreUnavailable
from keepward.model.commit import Head
from keepward.stores.sql import load_queries
from keepward.stores.sqlite.connection import Connections, connect, translated
from keepward.stores.sqlite.erasing import NOTE
from keepward.stores.sqlite.seals import Sealer

SQL = load_queries("keepward.stores.sqlite")
#: How long a scrub waits for other processes, in milliseconds.
PATIENCE = 5_000


class Upkeep:
    """A part of ``SqliteStore``; see ``ports.erasing.Erasable``."""

    _connections: Connections
    _sealer: Sealer
    _admit: Callable[[], None]

    def receipts(self, tenant: str) -> Iterator[dict[str, Any]]:
        """Yield every receipt whose seal holds, by id."""
        self._admit()
        query = "SELECT id, kind, at, body, seal FROM receipts WHERE tenant = ? ORDER BY id"
        with self._connections.reading() as connection:
            for *row, seal in connection.execute(query, (tenant,)):
                if self._sealer.holds_row(seal, "receipts", tenant, *row):
                    yield json.loads(row[3])

    def artefacts(self, tenant: str) -> list[tuple[str, str, str]]:
        """Return (kind, version, text) of every kept text whose seal holds."""
        self._admit()
        query = "SELECT kind, version, text, seal FROM artefacts WHERE tenant = ? ORDER BY kind, version"
        with self._connections.reading() as connection:
            return [
                (kind, version, text)
                for kind, version, text, seal in connection.execute(query, (tenant,))
                if self._sealer.holds_row(seal, "artefacts", tenant, kind, version, text)
            ]

    def unclean(self) -> bool:
        """Whether destroyed content may still lie in the file."""
        with self._connections.reading() as connection:
            return connection.execute(SQL["meta"], {"name": NOTE}).fetchone() is not None

    def scrub(self) -> str | None:
        """Write the file anew and empty its log; return None, or why that has to wait."""
        if self._connections.in_memory:
            return None
        if not self._connections.writable:
            return "the store can only be read"
        try:
            with self._connections.rewriting() as connection:
                return _scrub(connection)
        except StoreUnavailable as fault:
            return str(fault)

    def backup(self, target: Path) -> None:
        """Write a consistent copy to a new file; see the port."""
        self._admit()
        if target.exists():
            raise InvalidInput(f"{target.name} is there already; name another file")
        with self._connections.reading() as source:
            write_copy(source, target)

    def erasing(self, tenant: str) -> list[str]:
        """Return the ids of the commits that erased something, oldest first."""
        with self._connections.reading() as connection:
            return [row[2] for row in connection.execute(SQL["erasures"], {"tenant": tenant})]

    def tails(self) -> dict[str, Head]:
        """Return each tenant's head as the file has it, unchecked."""
        with self._connections.reading() as connection:
            return {row[0]: Head(seq=row[1], hash=row[2]) for row in connection.execute(SQL["heads"])}


def _scrub(connection: sqlite3.Connection) -> str | None:
    connection.execute(f"PRAGMA busy_timeout={PATIENCE}")
    connection.execute("VACUUM")
    busy, _, _ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    return "another reader holds on to an earlier state of the file" if busy else None


def write_copy(source: sqlite3.Connection, target: Path, *, wal: bool = False) -> None:
    """Copy a whole database into a new file, flushed and then renamed; one file, without a log of its own.

    Raises:
        StoreUnavailable: it cannot be written.
    """
    aside = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        aside.unlink(missing_ok=True)
        os.close(os.open(aside, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        with translated():
            copy = connect(str(aside))
            try:
                source.backup(copy)
                # VACUUM leaves behind what lay in free pages of the source.
                copy.execute("PRAGMA journal_mode=DELETE")
                copy.execute("VACUUM")
                if wal:
                    copy.execute("PRAGMA journal_mode=WAL")
            finally:
                copy.close()
        durable.flush(aside)
        aside.rename(target)
        durable.flush(target.parent)
    except OSError as fault:
        raise StoreUnavailable(f"cannot write {target.name}: {fault.strerror or 'output error'}") from fault
    finally:
        for name in (aside, aside.with_name(aside.name + "-wal"), aside.with_name(aside.name + "-shm")):
            with contextlib.suppress(OSError):
                name.unlink()
