"""The row of a tenant: its head, how many rows each table holds, and a keyed sum over the sealed rows of each.

A sum is that modulo 2^256 of a keyed hash of each row: it can be kept up to date row by row in any order, and nobody
without the key finds other rows with the same sum.
Source: Clarke, Devadas, van Dijk, Gassend, Suh (2003), "Incremental multiset hash functions" (MSet-Add-Hash).

Invariants
(1) The row's head is the newest commit, and the row carries a seal; anything else is Tampered.
(2) It is written in the transaction whose rows it counts, once, and counts the transactions that wrote it.
(3) Without a key the sums are 0: seals say nothing there either, and accepting the store makes them anew.
(4) The head, and a digest of counts and sums, are noted outside the store: an older state of everything does not pass
    for the newest. What was noted is never ahead of the store.
(5) Documents are counted by kind, records by tier and status: what a filter passes over because its row was edited or
    is gone is missed all the same; see ``integrity.py``.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from keepward.core.commit import EMPTY_HASH, Head
from keepward.core.journal import Fault
from keepward.core.memory import Record, Status
from keepward.core.serialization import digest
from keepward.errors import Tampered
from keepward.storage.rows import MAX_EVENTS_PER_COMMIT, EventRow, FeatureRow, RecordRow, record_at, record_row
from keepward.storage.seals import Sealer, pack
from keepward.storage.sql import Connection, Row

_SUM_BYTES = 32
_SUM_MODULUS = 1 << (8 * _SUM_BYTES)
_UNSEALED_HEAD_MESSAGE = (
    "the head of the journal does not carry this machine's seal; run `keepward verify`, and accept the store "
    "with `adopt` if it was meant to be written elsewhere"
)


@dataclass(slots=True, kw_only=True)
class TableSum:
    """How many rows a table holds of each kind, and their keyed sum."""

    counts: Counter[str] = field(default_factory=Counter)
    total: int = 0

    def add(self, sealer: Sealer, table: str, kind: str, content: bytes, sign: int = 1) -> None:
        """Add a row, or take it away with a ``sign`` of -1; ``content`` is what names it, such as its seal."""
        self.counts[kind] += sign
        self.total = (self.total + sign * sealer.term(table, content)) % _SUM_MODULUS

    def cells(self) -> dict[str, int]:
        """Return the counts that are not 0, by kind."""
        return {kind: count for kind, count in sorted(self.counts.items()) if count}


@dataclass(slots=True, kw_only=True)
class TenantHead:
    """What a tenant's row says, or is to say."""

    tenant: str
    head: Head
    #: Up to this seq the journal was restored from an export.
    restored: int = 0
    #: Transactions that changed anything of the tenant.
    writes: int = 0
    #: By kind.
    documents: TableSum = field(default_factory=TableSum)
    #: By tier and status, with a blank between.
    records: TableSum = field(default_factory=TableSum)
    #: Name of the key of the store's seals; None where its settings are gone.
    sealed_by: str | None = None
    #: Whether candidates of recall have tables, which change with the memories.
    searched: bool = False

    def tallies(self) -> str:
        """Return the counts as they are stored."""
        return json.dumps([self.documents.cells(), self.records.cells()])

    def sums(self) -> bytes:
        """Return the sums as they are stored."""
        return b"".join(each.total.to_bytes(_SUM_BYTES, "big") for each in (self.documents, self.records))

    def sums_head(self) -> Head:
        """Return number and digest of counts and sums, as they are noted outside the store."""
        content = self.tallies().encode() + b"\0" + self.sums()
        return Head(seq=self.writes, hash=digest("beside", self.tenant.encode(), b"\0", content))

    def replace_document(self, sealer: Sealer, kind: str, before: bytes | None, after: bytes | None) -> None:
        """Count a document with the seal ``after`` in place of one with the seal ``before``; None for none."""
        for sign, seal in ((-1, before), (1, after)):
            if seal is not None:
                self.documents.add(sealer, "documents", kind, seal, sign)

    def replace_records(self, sealer: Sealer, before: Iterable[RecordRow], after: Iterable[RecordRow]) -> None:
        """Count some rows of ``records`` in place of others."""
        for sign, rows in ((-1, before), (1, after)):
            for row in rows:
                content = pack("records", self.tenant, row[:-1])
                self.records.add(sealer, "records", f"{row.tier} {row.status}", content, sign)

    def active(self) -> dict[str, int]:
        """Return how many active memories there are by tier."""
        pairs = (kind.split() for kind in sorted(self.records.counts))
        found = {tier: self.records.counts[f"{tier} {status}"] for tier, status in pairs if status == Status.ACTIVE}
        return {tier: count for tier, count in found.items() if count}

    def same_records(self, other: TenantHead) -> bool:
        """Whether both count the same records."""
        return self.records.total == other.records.total and self.records.cells() == other.records.cells()


def read(db: Connection, sealer: Sealer, tenant: str) -> TenantHead:
    """Return what a tenant's row says; nothing where it has neither a row nor a commit.

    Raises:
        Tampered: see (1).
    """
    *row, last, last_hash, sealed_by, searched = db.run("tenant", tenant=tenant).fetchone()
    if row[0] is None and last is None:
        return TenantHead(tenant=tenant, head=Head(seq=0, hash=EMPTY_HASH), sealed_by=sealed_by)
    if (row[0], row[1]) != (last or 0, last_hash or EMPTY_HASH):
        raise Tampered("the end of the journal is missing or was replaced; run `keepward verify`")
    state = head_of_row(sealer, (tenant, *row))
    state.sealed_by, state.searched = sealed_by, bool(searched)
    return state


def head_of_row(sealer: Sealer, row: Row) -> TenantHead:
    """Return the state of a row of ``tenant_rows``.

    Raises:
        Tampered: it does not match its seal.
    """
    tenant, seq, digest, restored, writes, tallies, sums, seal = row
    if not sealer.matches_row(seal, "tenants", *row[:-1]):
        raise Tampered(_UNSEALED_HEAD_MESSAGE)
    state = TenantHead(tenant=tenant, head=Head(seq=seq, hash=digest), restored=restored, writes=writes)
    try:
        for at, (each, counts) in enumerate(zip((state.documents, state.records), json.loads(tallies), strict=True)):
            each.counts.update(counts)
            each.total = int.from_bytes(sums[at * _SUM_BYTES : (at + 1) * _SUM_BYTES], "big")
    except (ValueError, TypeError) as fault:
        raise Tampered(_UNSEALED_HEAD_MESSAGE) from fault
    return state


def write(db: Connection, sealer: Sealer, state: TenantHead) -> None:
    """Write a tenant's row, and count that; see (2)."""
    state.writes += 1
    cells = (
        state.tenant,
        state.head.seq,
        state.head.hash,
        state.restored,
        state.writes,
        state.tallies(),
        state.sums(),
    )
    db.many("set_tenant", [(*cells, sealer.row("tenants", *cells))])


def compare_head_with_anchor(db: Connection, state: TenantHead, noted: Head | None) -> str | None:
    """Return what is wrong with a head, given what this machine noted before it was read; None if nothing."""
    if noted is None or noted.seq == 0:
        return None
    if noted.seq > state.head.seq:
        return (
            f"the store ends at commit {state.head.seq} but this machine has seen commit {noted.seq}: an older copy "
            "was put in its place, or its end was cut off"
        )
    row = db.run("commit_hash_at", tenant=state.tenant, seq=noted.seq).fetchone()
    if row is None or row[0] != noted.hash:
        return f"commit {noted.seq} is not the one this machine has seen: the journal was rewritten"
    return None


def compare_sums_with_anchor(sealer: Sealer, state: TenantHead, noted: Head | None) -> str | None:
    """Return what is wrong with a tenant's sums, given what this machine noted before; None if nothing."""
    if noted is None or not sealer.active:
        return None
    if state.writes < noted.seq:
        return (
            "what stands beside the journal (receipts, review queue, tokens, uses) is older than this machine has "
            "seen: an older copy was put in its place"
        )
    if state.writes == noted.seq and state.sums_head().hash != noted.hash:
        return "what stands beside the journal is not what this machine has seen"
    return None


def project_records(
    db: Connection, sealer: Sealer, tenant: str
) -> Iterator[tuple[str, RecordRow | None, Record | None]]:
    """Yield each memory of the journal with the row of ``records`` that its newest event calls for, and its record.

    Both are None where that event does not hold.
    """
    raw = tenant.encode()
    for *cells, arrival in db.stream("newest_as_of", tenant=tenant, as_of=2**62):
        event = EventRow._make(cells)
        try:
            record = record_at(sealer, raw, event)
        except Tampered:
            yield event.memory_id, None, None
            continue
        position = event.seq * MAX_EVENTS_PER_COMMIT + event.n
        first = position if arrival is None else arrival
        yield event.memory_id, record_row(sealer, tenant, position, first, record, event.payload or b""), record


def count_documents(db: Connection, sealer: Sealer, state: TenantHead) -> None:
    """Count the documents that are there."""
    state.documents = TableSum()
    for kind, seal in db.stream("document_seals", tenant=state.tenant):
        state.replace_document(sealer, kind, None, seal if isinstance(seal, bytes) else b"")


def count_records(db: Connection, sealer: Sealer, state: TenantHead) -> None:
    """Count the records that are there."""
    rows = map(RecordRow._make, db.stream("whole_records", tenant=state.tenant))
    for _ in count_while_reading(sealer, state, ((row, None) for row in rows)):
        pass


def count_while_reading(
    sealer: Sealer, state: TenantHead, rows: Iterable[tuple[RecordRow, FeatureRow | None]]
) -> Iterator[tuple[RecordRow, FeatureRow | None]]:
    """Yield records with their features and, once all of them are read, count them as the records that are there."""
    # A handle counts all of them before its first read: what the loop needs is at hand.
    term, tenant = sealer.term, state.tenant
    counts, total = Counter[str](), 0
    for each in rows:
        row = each[0]
        counts[f"{row.tier} {row.status}"] += 1
        total += term("records", pack("records", tenant, row[:-1]))
        yield each
    state.records = TableSum(counts=counts, total=total % _SUM_MODULUS)


def recount_records(db: Connection, sealer: Sealer, state: TenantHead) -> None:
    """Count the records that the journal calls for; one whose event does not hold is none of them."""
    state.records = TableSum()
    state.replace_records(
        sealer, (), (row for _, row, _ in project_records(db, sealer, state.tenant) if row is not None)
    )


def recount(db: Connection, sealer: Sealer, state: TenantHead) -> None:
    """Count everything anew."""
    count_documents(db, sealer, state)
    recount_records(db, sealer, state)


def check(db: Connection, sealer: Sealer, tenant: str, held: TenantHead) -> Iterator[Fault]:
    """Yield a fault for each table whose rows differ from those that were written.

    ``held`` has the sums of the rows that are there.
    """
    try:
        row = db.run("tenant", tenant=tenant).fetchone()[:7]
        # A row that is gone is named by what was noted of it; see ``compare_head_with_anchor``.
        gone = TenantHead(tenant=tenant, head=Head(seq=0, hash=EMPTY_HASH))
        said = gone if row[0] is None else head_of_row(sealer, (tenant, *row))
    except Tampered as fault:
        yield Fault(check="tenants", row=f"tenants {tenant}", detail=str(fault))
        return
    for table, here, due in (
        ("documents", held.documents, said.documents),
        ("records", held.records, said.records),
    ):
        for kind in sorted(here.counts.keys() | due.counts.keys()):
            if here.counts[kind] != due.counts[kind]:
                detail = f"{table} hold {here.counts[kind]} rows of {kind} where {due.counts[kind]} were written"
                name = kind if table == "documents" else table
                yield Fault(check="beside", row=f"{name} {tenant}", detail=detail)
        # Without the key there are no sums to compare; see (3).
        if sealer.active and here.cells() == due.cells() and here.total != due.total:
            detail = "its rows are not the newest ones: one was exchanged for another or put back as it once was"
            yield Fault(check="beside", row=f"{table} {tenant}", detail=detail)
