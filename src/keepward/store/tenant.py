"""The row of a tenant: its head, how many memories each tier has, and sums over all sealed rows.

The sum of a kind of rows is their number, and the sum modulo 2^256 of a keyed hash of each: it can be kept up to date
row by row in any order, and nobody without the key finds other rows with the same sum.
Source: Clarke, Devadas, van Dijk, Gassend, Suh (2003), "Incremental multiset hash functions" (MSet-Add-Hash).

Invariants
(1) The row's head is the newest commit, and the row carries a seal; anything else is Tampered.
(2) It is written in the transaction whose rows it counts, once, and counts the transactions that wrote it.
(3) Without a key there are no sums: seals say nothing there either, and accepting the store makes them anew.
(4) The head, and number and digest of the sums, are noted outside the store: an older state of everything does not
    pass for the newest. What was noted is never ahead of the store.
(5) Records have sums as well, core memory apart from the rest: what a filter passes over because its row was edited
    or is gone is missed all the same; see ``withheld.py``.
"""

from __future__ import annotations

import json
import struct
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from keepward.errors import Tampered
from keepward.model.codec import digest
from keepward.model.commit import EMPTY_HASH, Head
from keepward.model.journal import Fault
from keepward.model.memory import Record, Tier
from keepward.store.rows import WIDTH, EventRow, FeatureRow, RecordRow, record_at, record_row
from keepward.store.seals import Sealer
from keepward.store.sql import Row, Session

#: Kinds of documents; each has a sum.
SUMMED = ("receipts", "proposals", "artefacts", "usage", "feedback", "tokens", "blobs", "jobs", "erased")
#: The records of core memory, and all others.
RECORDS = ("core", "records")
#: All sums, in the order in which they stand in the row.
SUMS = (*SUMMED, *RECORDS)
_CORE, _OTHERS = len(SUMMED), len(SUMMED) + 1
_SUM = struct.Struct(">Q32s")
_WHOLE = 1 << 256
_LOST = (
    "the head of the journal does not carry this machine's seal; run `keepward verify`, and accept the store "
    "with `adopt` if it was meant to be written elsewhere"
)


@dataclass(slots=True, kw_only=True)
class State:
    """What a tenant's row says, or is to say."""

    tenant: str
    head: Head
    #: Up to this seq the journal was restored from an export.
    restored: int = 0
    #: Transactions that changed anything of the tenant.
    writes: int = 0
    #: Active memories by tier.
    tallies: dict[str, int] = field(default_factory=dict)
    counts: list[int] = field(default_factory=lambda: [0] * len(SUMS))
    totals: list[int] = field(default_factory=lambda: [0] * len(SUMS))
    #: Name of the key of the store's seals; None where its settings are gone.
    sealed_by: str | None = None
    #: Whether candidates of recall have tables, which change with the memories.
    searched: bool = False

    def sums(self) -> bytes:
        """Return the sums as they are stored."""
        both = zip(self.counts, self.totals, strict=True)
        return b"".join(_SUM.pack(count, total.to_bytes(32, "big")) for count, total in both)

    def sums_head(self) -> Head:
        """Return number and digest of the sums, as they are noted outside the store."""
        return Head(seq=self.writes, hash=digest("beside", self.tenant.encode(), b"\0", self.sums()))

    def turn(self, sealer: Sealer, kind: str, before: bytes | None, after: bytes | None) -> None:
        """Count a document with the seal ``after`` in place of one with the seal ``before``; None for none."""
        if not sealer.active or kind not in SUMMED:
            return
        at = SUMS.index(kind)
        self.counts[at] += (after is not None) - (before is not None)
        for sign, seal in ((-1, before), (1, after)):
            if seal is not None:
                self.totals[at] = (self.totals[at] + sign * sealer.term(kind, seal)) % _WHOLE

    def turn_records(self, sealer: Sealer, before: Iterable[RecordRow], after: Iterable[RecordRow]) -> None:
        """Count some rows of ``records`` in place of others."""
        if not sealer.active:
            return
        for sign, rows in ((-1, before), (1, after)):
            for row in rows:
                at = _CORE if row.tier == Tier.CORE else _OTHERS
                self.counts[at] += sign
                self.totals[at] = (self.totals[at] + sign * sealer.row_term((self.tenant, *row[:-1]))) % _WHOLE

    def move(self, tier: str, count: int) -> None:
        """Count so many more active memories of a tier."""
        if count:
            self.tallies[tier] = self.tallies.get(tier, 0) + count

    def count(self, kind: str) -> int:
        """Return how many rows of a kind were written."""
        return self.counts[SUMS.index(kind)]

    def same_records(self, other: State) -> bool:
        return all(
            (self.counts[at], self.totals[at]) == (other.counts[at], other.totals[at]) for at in (_CORE, _OTHERS)
        )


def read(db: Session, sealer: Sealer, tenant: str) -> State:
    """Return what a tenant's row says; nothing where it has neither a row nor a commit.

    Raises:
        Tampered: see (1).
    """
    *row, last, last_hash, sealed_by, searched = db.run("tenant", tenant=tenant).fetchone()
    if row[0] is None and last is None:
        return State(tenant=tenant, head=Head(seq=0, hash=EMPTY_HASH), sealed_by=sealed_by)
    if (row[0], row[1]) != (last or 0, last_hash or EMPTY_HASH):
        raise Tampered("the end of the journal is missing or was replaced; run `keepward verify`")
    state = of_row(sealer, (tenant, *row))
    state.sealed_by, state.searched = sealed_by, bool(searched)
    return state


def of_row(sealer: Sealer, row: Row) -> State:
    """Return the state of a row of ``tenant_rows``.

    Raises:
        Tampered: it does not match its seal.
    """
    tenant, seq, digest, restored, writes, tallies, sums, seal = row
    if not sealer.holds_row(seal, "tenants", *row[:-1]):
        raise Tampered(_LOST)
    try:
        state = State(
            tenant=tenant,
            head=Head(seq=seq, hash=digest),
            restored=restored,
            writes=writes,
            tallies=json.loads(tallies),
        )
        for at, (count, total) in enumerate(_SUM.iter_unpack(sums)):
            state.counts[at], state.totals[at] = count, int.from_bytes(total, "big")
    except (ValueError, TypeError, struct.error, IndexError) as fault:
        raise Tampered(_LOST) from fault
    return state


def write(db: Session, sealer: Sealer, state: State) -> None:
    """Write a tenant's row, and count that; see (2)."""
    state.writes += 1
    tallies = json.dumps({tier: count for tier, count in sorted(state.tallies.items()) if count})
    cells = (state.tenant, state.head.seq, state.head.hash, state.restored, state.writes, tallies, state.sums())
    db.many("set_tenant", [(*cells, sealer.row("tenants", *cells))])


def against_noted(db: Session, state: State, noted: Head | None) -> str | None:
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


def sums_against_noted(sealer: Sealer, state: State, noted: Head | None) -> str | None:
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


def due_records(db: Session, sealer: Sealer, tenant: str) -> Iterator[tuple[str, RecordRow | None, Record | None]]:
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
        position = event.seq * WIDTH + event.n
        first = position if arrival is None else arrival
        yield event.memory_id, record_row(sealer, tenant, position, first, record, event.payload or b""), record


def count_documents(db: Session, sealer: Sealer, state: State) -> None:
    for kind, seal in db.stream("document_seals", tenant=state.tenant):
        state.turn(sealer, kind, None, seal if isinstance(seal, bytes) else b"")


def count_records(db: Session, sealer: Sealer, state: State) -> None:
    """Count the records that are there."""
    rows = map(RecordRow._make, db.stream("whole_records", tenant=state.tenant))
    deque(counted(sealer, state, ((row, None) for row in rows)), maxlen=0)


def counted(
    sealer: Sealer, state: State, rows: Iterable[tuple[RecordRow, FeatureRow | None]]
) -> Iterator[tuple[RecordRow, FeatureRow | None]]:
    """Yield records with their features and, once all of them are read, count them as the records that are there."""
    # A handle counts all of them before its first read: what the loop needs is at hand.
    term, tenant = sealer.row_term, state.tenant
    counts, totals = [0, 0], [0, 0]
    for each in rows:
        row = each[0]
        at = row.tier != "core"
        counts[at] += 1
        totals[at] += term((tenant, *row[:-1]))
        yield each
    state.counts[_CORE:], state.totals[_CORE:] = counts, [total % _WHOLE for total in totals]


def recount_records(db: Session, sealer: Sealer, state: State) -> None:
    """Count the records anew: tallies as they are there, sums as the journal calls for them."""
    state.tallies = dict(db.run("recount", tenant=state.tenant).fetchall())
    state.counts[_CORE:], state.totals[_CORE:] = [0, 0], [0, 0]
    if sealer.active:
        state.turn_records(sealer, (), (row for _, row, _ in due_records(db, sealer, state.tenant) if row is not None))


def recount(db: Session, sealer: Sealer, state: State) -> None:
    """Count everything anew."""
    state.counts, state.totals = [0] * len(SUMS), [0] * len(SUMS)
    count_documents(db, sealer, state)
    recount_records(db, sealer, state)


def check(db: Session, sealer: Sealer, tenant: str, held: State) -> Iterator[Fault]:
    """Yield the kinds of rows that are not the ones that were written, in order, and tallies that are off.

    ``held`` has the sums of the records that are there.
    """
    try:
        row = db.run("tenant", tenant=tenant).fetchone()[:7]
        # A row that is gone is named by what was noted of it; see ``against_noted``.
        gone = State(tenant=tenant, head=Head(seq=0, hash=EMPTY_HASH))
        said = gone if row[0] is None else of_row(sealer, (tenant, *row))
    except Tampered as fault:
        yield Fault(check="tenants", row=f"tenants {tenant}", detail=str(fault))
        return
    tallies = dict(db.run("recount", tenant=tenant).fetchall())
    for tier in sorted(tallies.keys() | said.tallies.keys()):
        if tallies.get(tier, 0) != said.tallies.get(tier, 0):
            yield Fault(check="tallies", row=f"tenants {tenant}/{tier}", detail="the count is off")
    if not sealer.active:
        return
    count_documents(db, sealer, held)
    for at, kind in enumerate(SUMS):
        rows, due = held.counts[at], said.counts[at]
        if rows != due:
            detail = f"it holds {rows} rows where {due} were written"
            yield Fault(check="beside", row=f"{kind} {tenant}", detail=detail)
        elif held.totals[at] != said.totals[at]:
            detail = "its rows are not the newest ones: one was exchanged for another or put back as it once was"
            yield Fault(check="beside", row=f"{kind} {tenant}", detail=detail)
