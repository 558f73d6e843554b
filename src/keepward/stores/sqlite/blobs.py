"""Blobs as rows: what is known of each, and which memories refer to it.

Invariants
(1) A row that does not match its seal is not used: whoever can write the file gives nobody a blob.
(2) ``attachments`` says, for the newest version of each memory, what it refers to; it is computed from the records.
(3) Every ref in the journal has a row, whatever became of the memory, until its content was erased.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from keepward.errors import Tampered
from keepward.model.blob import Blob, Kept, Put
from keepward.model.journal import Fault
from keepward.model.value import from_micros, to_micros
from keepward.stores.sql import load_queries
from keepward.stores.sqlite.beside import Ledger
from keepward.stores.sqlite.connection import Connections
from keepward.stores.sqlite.rows import Row
from keepward.stores.sqlite.seals import Sealer

SQL = load_queries("keepward.stores.sqlite")


class BlobRows:
    """A part of ``SqliteStore``; see ``ports.blobs.ReadsBlobs``."""

    _connections: Connections
    _sealer: Sealer

    if TYPE_CHECKING:

        def _reading(self, tenant: str) -> AbstractContextManager[sqlite3.Connection]:
            """Open a snapshot of a tenant that was held against what this machine has seen of it."""

    def blobs(self, tenant: str, ref: str | None = None) -> list[Kept]:
        """Return blobs by ref; see the port."""
        held, bent = self._rows(tenant, ref)
        if ref is not None and bent:
            raise Tampered("what is known of this blob does not match its seal; run `keepward verify`")
        return held

    def blob_places(self, tenant: str) -> list[str]:
        """Return the places of files; see the port."""
        held, bent = self._rows(tenant, None)
        if bent:
            raise Tampered("what is known of a blob does not match its seal; run `keepward verify`")
        return sorted(each.place for each in held)

    def _rows(self, tenant: str, ref: str | None) -> tuple[list[Kept], int]:
        """Return what holds, and how many rows do not."""
        with self._reading(tenant) as connection:
            rows = connection.execute(SQL["blobs"], {"tenant": tenant, "ref": ref}).fetchall()
        held = [row for row in rows if self._sealer.holds_row(row[-1], "blobs", *row[:-1])]
        return list(_kept(held)), len(rows) - len(held)

    def blob_holders(self, tenant: str, ref: str) -> list[str]:
        """Return ids of memories that refer to a blob; see the port."""
        with self._reading(tenant) as connection:
            return [name for (name,) in connection.execute(SQL["blob_holders"], {"tenant": tenant, "ref": ref})]

    def blob_refs(self, tenant: str) -> set[str]:
        """Return the refs in the journal; see the port."""
        with self._reading(tenant) as connection:
            return refs_in(connection, tenant)

    def blob_tenants(self) -> list[str]:
        """Return the names of tenants with blobs, sorted."""
        with self._connections.reading() as connection:
            return [name for (name,) in connection.execute(SQL["blob_tenants"])]


class BlobWrites:
    """A part of ``SqliteWriter``; see ``ports.blobs.WritesBlobs``."""

    _db: sqlite3.Connection
    _sealer: Sealer
    ledger: Ledger

    def put_blob(self, kept: Kept) -> None:
        """Keep what is known of a blob, or its new state."""
        puts = [[each.kind, each.name, each.credential, to_micros(each.at)] for each in kept.puts]
        values = (
            kept.tenant,
            kept.blob.ref,
            kept.blob.bytes,
            kept.blob.media_type,
            int(kept.blob.active),
            to_micros(kept.at),
            json.dumps(puts, ensure_ascii=False, separators=(",", ":")).encode(),
        )
        seal = self._sealer.row("blobs", *values)
        before = self._row(kept.tenant, kept.blob.ref)
        self._db.execute(SQL["set_blob"], (*values, seal))
        self.ledger.turn("blobs", kept.tenant, None if before is None else before[-1], seal)

    def has_blob(self, tenant: str, ref: str) -> bool:
        """Whether a blob is known in this transaction."""
        return self._row(tenant, ref) is not None

    def drop_blob(self, tenant: str, ref: str) -> bool:
        """Forget a blob that no memory's newest version refers to; return whether it is forgotten."""
        before = self._row(tenant, ref)
        gone = self._db.execute(SQL["drop_blob"], {"tenant": tenant, "ref": ref}).rowcount > 0
        if gone and before is not None:
            self.ledger.turn("blobs", tenant, before[-1], None)
        return gone

    def _row(self, tenant: str, ref: str) -> Row | None:
        row: Row | None = self._db.execute(SQL["blobs"], {"tenant": tenant, "ref": ref}).fetchone()
        return row


def refs_in(connection: sqlite3.Connection, tenant: str) -> set[str]:
    """Return the refs of all versions in the journal; a payload that cannot be read is the chain's to name."""
    found = set()
    for (payload,) in connection.execute(SQL["payloads_with_blobs"], {"tenant": tenant}):
        try:
            ref = json.loads(payload).get("blob")
        except (ValueError, AttributeError):
            continue
        if isinstance(ref, str):
            found.add(ref)
    return found


def check(connection: sqlite3.Connection, tenant: str) -> Iterator[Fault]:
    """Yield the refs of the journal that have no row, in order."""
    known = {row[1] for row in connection.execute(SQL["blobs"], {"tenant": tenant, "ref": None})}
    for ref in sorted(refs_in(connection, tenant) - known):
        yield Fault(check="blobs", row=f"blobs {tenant}/{ref}", detail="a memory refers to it, and it is not known")


def _kept(rows: Iterable[Row]) -> Iterator[Kept]:
    for tenant, ref, size, media_type, active, at, puts, _ in rows:
        try:
            told = tuple(
                Put(kind=kind, name=name, credential=credential, at=from_micros(when))
                for kind, name, credential, when in json.loads(puts)
            )
        except (ValueError, TypeError, OverflowError) as fault:
            # Only without a key does a row get here that this program has not written.
            raise Tampered("what is known of a blob cannot be read; run `keepward verify`") from fault
        blob = Blob(ref=ref, bytes=size, media_type=media_type, active=bool(active))
        yield Kept(tenant=tenant, blob=blob, at=from_micros(at), puts=told)
