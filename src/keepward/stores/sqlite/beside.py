"""Beside the journal: a keyed sum over the rows of each table there, so that none goes, comes or returns unnoticed.

The sum of a table is the number of its rows, and the sum modulo 2^256 of a keyed hash of every row's seal: it can be
kept up to date row by row in any order, and nobody without the key finds other rows with the same sum.
Source: Clarke, Devadas, van Dijk, Gassend, Suh (2003), "Incremental multiset hash functions" (MSet-Add-Hash).

Invariants
(1) One row a tenant holds the sums of all these tables, the number of transactions that changed any, and a MAC.
(2) It is written in the transaction whose rows it counts.
(3) Without a key there are no sums: seals say nothing there either, and accepting the store makes them anew.
(4) Number and digest are noted outside the store: an older state of everything does not pass for the newest.
(5) Records have sums as well, core memory apart from the rest: what a filter passes over because its row was edited
    or is gone is missed all the same; see ``withheld.py``.
"""

from __future__ import annotations

import sqlite3
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from keepward.errors import Tampered
from keepward.model.commit import Head
from keepward.model.journal import Fault
from keepward.model.memory import Tier
from keepward.stores.sql import load_queries
from keepward.stores.sqlite.rows import WIDTH, Row, record_at, record_row
from keepward.stores.sqlite.seals import Sealer, sha256

SQL = load_queries("keepward.stores.sqlite")
#: Tables whose rows are sealed one by one, and have sums.
TABLES = ("receipts", "proposals", "artefacts", "usage", "feedback", "tokens", "blobs")
#: The records of core memory, and all others.
RECORDS = ("core", "records")
#: All sums, in the order in which they stand in the row; one more goes to the end.
SUMS = (*TABLES, *RECORDS)
_SUM = struct.Struct(">Q32s")
_WHOLE = 1 << 256
_LOST = "what stands beside the journal does not carry this machine's seal; run `keepward verify`"


@dataclass(slots=True)
class Sums:
    """What a tenant's row says."""

    #: Transactions that changed any of the tables.
    writes: int = 0
    counts: list[int] = field(default_factory=lambda: [0] * len(SUMS))
    totals: list[int] = field(default_factory=lambda: [0] * len(SUMS))
    #: How many of the sums the row holds: an older release wrote none of records.
    held: int = len(SUMS)

    def packed(self) -> bytes:
        """Return the sums as they are stored."""
        both = list(zip(self.counts, self.totals, strict=True))[: self.held]
        return b"".join(_SUM.pack(count, total.to_bytes(32, "big")) for count, total in both)

    def head(self, tenant: str) -> Head:
        """Return number and digest, as they are noted outside the store."""
        return Head(seq=self.writes, hash=sha256(b"keepward/beside/v1\0", tenant.encode(), b"\0", self.packed()))


class Ledger:
    """Keeps the sums of one transaction."""

    __slots__ = ("_db", "_open", "_sealer")

    def __init__(self, connection: sqlite3.Connection, sealer: Sealer) -> None:
        self._db = connection
        self._sealer = sealer
        self._open: dict[str, Sums] = {}

    def turn(self, table: str, tenant: str, before: bytes | None, after: bytes | None) -> None:
        """Count a row with the seal ``after`` in place of one with the seal ``before``; None for no row."""
        if not self._sealer.active:
            return
        sums = self._sums(tenant)
        at = SUMS.index(table)
        sums.counts[at] += (after is not None) - (before is not None)
        for sign, seal in ((-1, before), (1, after)):
            if seal is not None:
                sums.totals[at] = (sums.totals[at] + sign * self._sealer.term(table, seal)) % _WHOLE

    def begin(self, tenant: str) -> None:
        """Read a tenant's sums before its journal grows: those of records may have to be made from it."""
        if self._sealer.active:
            self._sums(tenant)

    def turn_records(self, tenant: str, before: Iterable[Row], after: Iterable[Row]) -> None:
        """Count some rows of ``records`` in place of others."""
        if not self._sealer.active:
            return
        sums = self._sums(tenant)
        for sign, rows in ((-1, before), (1, after)):
            for row in rows:
                _count(sums, self._sealer, row, sign)

    def recount_records(self, tenant: str) -> None:
        """Count the rows of ``records`` anew, as the journal calls for them."""
        if self._sealer.active:
            _count_records(self._db, self._sealer, tenant, self._sums(tenant))

    def _sums(self, tenant: str) -> Sums:
        sums = self._open.get(tenant)
        if sums is None:
            found = read(self._db, self._sealer, tenant)
            sums = self._open[tenant] = found or Sums()
            if found is not None and found.held < len(SUMS):
                found.held = len(SUMS)
                _count_records(self._db, self._sealer, tenant, found)
        return sums

    def write(self) -> dict[str, Head]:
        """Write what has changed; return by tenant what is to be noted once the transaction is durable."""
        for tenant, sums in self._open.items():
            sums.writes += 1
            put(self._db, self._sealer, tenant, sums)
        return {tenant: sums.head(tenant) for tenant, sums in self._open.items()}


def put(connection: sqlite3.Connection, sealer: Sealer, tenant: str, sums: Sums) -> None:
    """Write a tenant's row."""
    values = (tenant, sums.writes, sums.packed())
    connection.execute(SQL["set_beside"], (*values, sealer.row("beside", *values)))


def read(connection: sqlite3.Connection, sealer: Sealer, tenant: str) -> Sums | None:
    """Return what a tenant's row says, None when there is no row.

    Raises:
        Tampered: it does not match its seal.
    """
    row = connection.execute(SQL["beside"], {"tenant": tenant}).fetchone()
    if row is None:
        return None
    writes, packed, seal = row
    if not sealer.holds_row(seal, "beside", tenant, writes, packed):
        raise Tampered(_LOST)
    sums = Sums(writes=writes, held=len(packed) // _SUM.size)
    for at, (count, total) in enumerate(_SUM.iter_unpack(packed)):
        sums.counts[at], sums.totals[at] = count, int.from_bytes(total, "big")
    return sums


def counted(connection: sqlite3.Connection, sealer: Sealer, tenant: str) -> Sums:
    """Return the sums of the rows that are there."""
    sums = Sums()
    for at, table in enumerate(TABLES):
        for (seal,) in connection.execute(f"SELECT seal FROM {table} WHERE tenant = ?", (tenant,)):
            sums.counts[at] += 1
            sums.totals[at] += sealer.term(table, seal) if isinstance(seal, bytes) else 0
        sums.totals[at] %= _WHOLE
    return sums


def _count(sums: Sums, sealer: Sealer, row: Row, sign: int) -> None:
    at = SUMS.index("core" if row[8] == Tier.CORE else "records")
    sums.counts[at] += sign
    sums.totals[at] = (sums.totals[at] + sign * sealer.row_term(row)) % _WHOLE


def due_records(connection: sqlite3.Connection, sealer: Sealer, tenant: str) -> Iterator[tuple[str, Row | None]]:
    """Yield each memory of the journal, and the row of ``records`` that its newest event calls for.

    None where that event does not hold.
    """
    raw = tenant.encode()
    for row in connection.execute(SQL["due_records"], {"tenant": tenant}):
        try:
            record = record_at(sealer, raw, row[:9])
        except Tampered:
            yield row[3], None
            continue
        yield row[3], record_row(tenant, row[0], row[1], row[0] * WIDTH + row[1] if row[9] is None else row[9], record)


def _count_records(connection: sqlite3.Connection, sealer: Sealer, tenant: str, sums: Sums) -> None:
    for name in RECORDS:
        sums.counts[SUMS.index(name)] = sums.totals[SUMS.index(name)] = 0
    for _, row in due_records(connection, sealer, tenant):
        if row is not None:
            _count(sums, sealer, row, 1)


def count_of_records(connection: sqlite3.Connection, sealer: Sealer, tenant: str) -> Sums:
    """Return the sums of the records that are there; those of other tables are left at nothing."""
    sums = Sums()
    term = sealer.row_term
    core, others = (SUMS.index(name) for name in RECORDS)
    for row in connection.execute(SQL["whole_records"], {"tenant": tenant}):
        at = core if row[8] == "core" else others
        sums.counts[at] += 1
        sums.totals[at] += term(row)
    for at in (core, others):
        sums.totals[at] %= _WHOLE
    return sums


def same_records(one: Sums, other: Sums) -> bool:
    """Whether two sums are of the same records."""
    return all(
        (one.counts[at], one.totals[at]) == (other.counts[at], other.totals[at]) for at in map(SUMS.index, RECORDS)
    )


def count_anew(connection: sqlite3.Connection, sealer: Sealer) -> dict[str, Head]:
    """Write the sums of every tenant from the rows that are there; return by tenant what is to be noted."""
    before = dict(connection.execute("SELECT tenant, writes FROM beside").fetchall())
    tenants = {
        name for table in (*TABLES, "commits") for (name,) in connection.execute(f"SELECT DISTINCT tenant FROM {table}")
    }
    heads = {}
    for tenant in sorted(tenants | before.keys()):
        sums = counted(connection, sealer, tenant)
        _count_records(connection, sealer, tenant, sums)
        sums.writes = before.get(tenant, 0) + 1
        put(connection, sealer, tenant, sums)
        heads[tenant] = sums.head(tenant)
    return heads


def against_noted(connection: sqlite3.Connection, sealer: Sealer, tenant: str, noted: Head | None) -> str | None:
    """Return what is wrong with a tenant's row, given what this machine noted before it is read; None if nothing.

    Raises:
        Tampered: it does not match its seal.
    """
    if noted is None or not sealer.active:
        return None
    sums = read(connection, sealer, tenant)
    if sums is None or sums.writes < noted.seq:
        return (
            "what stands beside the journal (receipts, review queue, tokens, uses) is older than this machine has "
            "seen: an older copy was put in its place"
        )
    if sums.writes == noted.seq and sums.head(tenant).hash != noted.hash:
        return "what stands beside the journal is not what this machine has seen"
    return None


def check(connection: sqlite3.Connection, sealer: Sealer, tenant: str) -> Iterator[Fault]:
    """Yield the tables whose rows are not the ones that were written, in order."""
    if not sealer.active:
        return
    try:
        # A row that is gone is named by what was noted of it; see ``against_noted``.
        said = read(connection, sealer, tenant) or Sums()
    except Tampered as fault:
        yield Fault(check="beside", row=f"beside {tenant}", detail=str(fault))
        return
    held = counted(connection, sealer, tenant)
    if said.held == len(SUMS):
        present = count_of_records(connection, sealer, tenant)
        for at in map(SUMS.index, RECORDS):
            held.counts[at], held.totals[at] = present.counts[at], present.totals[at]
    for at, table in enumerate(SUMS[: said.held]):
        rows, due = held.counts[at], said.counts[at]
        if rows != due:
            detail = f"it holds {rows} rows where {due} were written"
            yield Fault(check="beside", row=f"{table} {tenant}", detail=detail)
        elif held.totals[at] != said.totals[at]:
            detail = "its rows are not the newest ones: one was exchanged for another or put back as it once was"
            yield Fault(check="beside", row=f"{table} {tenant}", detail=detail)
