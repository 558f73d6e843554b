"""The row of a tenant: its head, the row counts of its tables, and a keyed sum over the sealed rows of each.

A sum is the sum modulo 2^256 of a keyed hash of each row. Single rows update it in any order, and without the key no
other rows with the same sum can be found.
Source: Clarke, Devadas, van Dijk, Gassend, Suh (2003), "Incremental multiset hash functions" (MSet-Add-Hash).

Invariants
(1) The head is the newest commit and the row has a valid seal; anything else is Tampered.
(2) A transaction that changes rows writes the tenant's row once, and adds one to its count of transactions.
(3) Without a key the sums are 0, as seals are empty too. Accepting the store recomputes them.
(4) The anchor records the head, and a digest of counts and sums. So an older copy of the complete store is noticed.
    The anchor is never ahead of the store.
(5) Documents are counted by kind, records by tier and status. So a deleted row is noticed even though it leaves nothing
    behind; see ``integrity.py``.
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
from keepward.storage.rows import MAX_EVENTS_PER_COMMIT, EventRow, RecordRow, record_at, record_row
from keepward.storage.seals import Sealer, pack
from keepward.storage.sql import Connection, Row

_SUM_BYTES = 32
SUM_MODULUS = 1 << (8 * _SUM_BYTES)
_UNSEALED_HEAD_MESSAGE = (
    "the head of the journal does not carry this machine's seal; run `keepward verify`, and accept the store "
    "with `adopt` if it was meant to be written elsewhere"
)


@dataclass(slots=True, kw_only=True)
class TableSum:
    """Row counts of a table by kind, and the keyed sum of its rows."""

    counts: Counter[str] = field(default_factory=Counter)
    total: int = 0

    def add(self, sealer: Sealer, table: str, kind: str, content: bytes, sign: int = 1) -> None:
        """Add a row, or remove it with ``sign`` -1; ``content`` identifies it, for example its seal."""
        self.counts[kind] += sign
        self.total = (self.total + sign * sealer.sum_term(table, content)) % SUM_MODULUS

    def cells(self) -> dict[str, int]:
        """Return the counts that are not 0, by kind."""
        return {kind: count for kind, count in sorted(self.counts.items()) if count}


@dataclass(slots=True, kw_only=True)
class TenantHead:
    """The content of a tenant's row."""

    tenant: str
    head: Head
    #: The journal up to this seq came from an export.
    restored: int = 0
    #: Number of transactions that changed the tenant.
    writes: int = 0
    #: Documents, by kind.
    documents: TableSum = field(default_factory=TableSum)
    #: Records, by tier and status separated by a space.
    records: TableSum = field(default_factory=TableSum)
    #: Id of the key that sealed the store; None if the setting is missing.
    sealed_by: str | None = None
    #: Whether the tenant has candidate tables, which change with its memories.
    searched: bool = False

    def tallies(self) -> str:
        """Return the counts as JSON values."""
        return json.dumps([self.documents.cells(), self.records.cells()])

    def sums(self) -> bytes:
        """Return the sums as bytes."""
        return b"".join(each.total.to_bytes(_SUM_BYTES, "big") for each in (self.documents, self.records))

    def sums_head(self) -> Head:
        """Return the number and digest of counts and sums, as the anchor records them."""
        content = self.tallies().encode() + b"\0" + self.sums()
        return Head(seq=self.writes, hash=digest("beside", self.tenant.encode(), b"\0", content))

    def replace_document(self, sealer: Sealer, kind: str, before: bytes | None, after: bytes | None) -> None:
        """Replace a document's seal in the sum; None for no document before or after."""
        for sign, seal in ((-1, before), (1, after)):
            if seal is not None:
                self.documents.add(sealer, "documents", kind, seal, sign)

    def replace_records(self, sealer: Sealer, before: Iterable[RecordRow], after: Iterable[RecordRow]) -> None:
        """Replace rows of ``records`` in the sum."""
        for sign, rows in ((-1, before), (1, after)):
            for row in rows:
                content = pack("records", self.tenant, row[:-1])
                self.records.add(sealer, "records", f"{row.tier} {row.status}", content, sign)

    def erasures(self) -> int:
        """Return a number that rises with each erasure of content."""
        erased = (count for kind, count in self.records.counts.items() if kind.split()[1] == Status.ERASED)
        return sum(erased) + self.documents.counts["erased"]

    def active(self) -> dict[str, int]:
        """Return how many active memories there are by tier."""
        pairs = (kind.split() for kind in sorted(self.records.counts))
        found = {tier: self.records.counts[f"{tier} {status}"] for tier, status in pairs if status == Status.ACTIVE}
        return {tier: count for tier, count in found.items() if count}


def read(db: Connection, sealer: Sealer, tenant: str) -> TenantHead:
    """Return a tenant's row; an empty one if it has neither a row nor a commit.

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
    """Return the content of a row of ``tenant_rows``.

    Raises:
        Tampered: its seal does not match.
    """
    tenant, seq, digest, restored, writes, tallies, sums, seal = row
    if not sealer.matches_row(seal, "tenants", *row[:-1]):
        raise Tampered(_UNSEALED_HEAD_MESSAGE)
    state = TenantHead(tenant=tenant, head=Head(seq=seq, hash=digest), restored=restored, writes=writes)
    try:
        for at, (each, counts) in enumerate(zip((state.documents, state.records), json.loads(tallies), strict=True)):
            each.counts.update(counts)
            each.total = int.from_bytes(sums[at * _SUM_BYTES : (at + 1) * _SUM_BYTES], "big")
    except (ValueError, TypeError, RecursionError) as exc:
        raise Tampered(_UNSEALED_HEAD_MESSAGE) from exc
    return state


def write(db: Connection, sealer: Sealer, state: TenantHead) -> None:
    """Write a tenant's row and count the transaction; see (2)."""
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
    db.run_many("set_tenant", [(*cells, sealer.row("tenants", *cells))])


def compare_head_with_anchor(db: Connection, state: TenantHead, noted: Head | None) -> str | None:
    """Return how a head contradicts the head that the anchor recorded; None if it does not."""
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
    """Return how a tenant's sums contradict those that the anchor recorded; None if they do not."""
    if noted is None or not sealer.active:
        return None
    if state.writes < noted.seq:
        return (
            "receipts, review queue, tokens or uses are older than this machine has seen: an older copy was put in "
            "their place"
        )
    if state.writes == noted.seq and state.sums_head().hash != noted.hash:
        return "receipts, review queue, tokens or uses are not those that this machine has seen"
    return None


def project_records(
    db: Connection, sealer: Sealer, tenant: str
) -> Iterator[tuple[str, RecordRow | None, Record | None]]:
    """Yield each memory of the journal with the row and the record that its newest event results in.

    Both are None if that event is damaged.
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
    """Count the stored documents."""
    state.documents = TableSum()
    for kind, seal in db.stream("document_seals", tenant=state.tenant):
        state.replace_document(sealer, kind, None, seal if isinstance(seal, bytes) else b"")


def recount_records(db: Connection, sealer: Sealer, state: TenantHead) -> None:
    """Count the records that result from the journal; a damaged event counts as none."""
    state.records = TableSum()
    state.replace_records(
        sealer, (), (row for _, row, _ in project_records(db, sealer, state.tenant) if row is not None)
    )


def recount(db: Connection, sealer: Sealer, state: TenantHead) -> None:
    """Count all rows again."""
    count_documents(db, sealer, state)
    recount_records(db, sealer, state)


def check(db: Connection, sealer: Sealer, tenant: str, stored: TenantHead) -> Iterator[Fault]:
    """Yield a fault for each table whose rows differ from those that were written.

    ``stored`` has the sums of the stored rows.
    """
    try:
        row = db.run("tenant", tenant=tenant).fetchone()[:7]
        # The anchor names a missing row; see ``compare_head_with_anchor``.
        empty = TenantHead(tenant=tenant, head=Head(seq=0, hash=EMPTY_HASH))
        written_row = empty if row[0] is None else head_of_row(sealer, (tenant, *row))
    except Tampered as exc:
        yield Fault(check="tenants", row=f"tenants {tenant}", detail=str(exc))
        return
    for table, here, due in (
        ("documents", stored.documents, written_row.documents),
        ("records", stored.records, written_row.records),
    ):
        for kind in sorted(here.counts.keys() | due.counts.keys()):
            if here.counts[kind] != due.counts[kind]:
                detail = f"{table} hold {here.counts[kind]} rows of {kind} where {due.counts[kind]} were written"
                name = kind if table == "documents" else table
                yield Fault(check="side_tables", row=f"{name} {tenant}", detail=detail)
        # Without a key there are no sums to compare; see (3).
        if sealer.active and here.cells() == due.cells() and here.total != due.total:
            detail = "its rows are not the newest ones: one was exchanged for another or put back as it once was"
            yield Fault(check="side_tables", row=f"{table} {tenant}", detail=detail)
