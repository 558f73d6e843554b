"""Detect memories whose rows are missing or were edited outside of Keepward, and report them with every read.

A filter passes over an edited row, and a deleted row leaves nothing behind. Keyed sums of all records (see
``tenant.py``) show that rows changed; the journal shows which memories.

Invariants
(1) The first read of a handle sums all records, in the pass that builds its index where there is one. Later reads sum
    them again only after another handle has changed the store.
(2) Findings are checked again after every write, so that a repaired store is reported as intact.
(3) Whether a memory passes a filter is decided by the journal, never by its row.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from keepward.core.memory import Record, Tier
from keepward.core.query import Filter
from keepward.locks import ForkSafeLock
from keepward.ports.store import UnreadableMemory
from keepward.storage import tenant as tenants
from keepward.storage.rows import FeatureRow, RecordRow, matches_filter
from keepward.storage.seals import Sealer
from keepward.storage.sql import Connection, Database
from keepward.storage.tenant import TenantHead

_MISSING = "its record is missing"
_EDITED = "its record was edited outside of Keepward"


@dataclass(frozen=True, slots=True, kw_only=True)
class CorruptRecord:
    """One memory whose row is missing or is not the one that was written."""

    id: str | None
    #: From the journal; None if its event is damaged as well.
    record: Record | None
    core: bool
    why: str

    def passes(self, filters: Filter, live_at: datetime | None) -> bool:
        """Whether a read with this filter would have shown it, or might have; see (3)."""
        if self.record is None:
            return not filters.tiers or Tier.CORE.value not in filters.tiers or self.core
        return matches_filter(self.record, filters) and (live_at is None or self.record.is_live(live_at))

    def as_unreadable(self) -> UnreadableMemory:
        """Return it as a result for the reader."""
        key = self.record.key if self.record else None
        return UnreadableMemory(id=self.id, key=key, core=self.core, why=self.why)


class IntegrityMonitor:
    """Caches, for one handle, which records of each tenant are corrupt."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._lock = ForkSafeLock()
        #: By tenant: the data version and write count that were checked, with the corrupt records.
        self._checked: dict[str, tuple[int | None, int, list[CorruptRecord]]] = {}

    def change_counter(self) -> int | None:
        """Return the data version; call it before the snapshot is taken."""
        return self._database.data_version()

    def _intact_at(self, tenant: str) -> int | None:
        """Return the data version at which all records were intact; None if they were corrupt or not checked."""
        version, _, corrupt = self._checked.get(tenant, (None, 0, ()))
        return None if corrupt else version

    def corrupt_records(self, db: Connection, sealer: Sealer, tenant: str, version: int | None) -> list[CorruptRecord]:
        """Return the memories whose rows are corrupt, by id, those without an id last."""
        if not sealer.active:
            return []
        known = self._intact_at(tenant)
        # While this handle writes there is no data version; the next read checks again.
        if known is not None and (version is None or known == version):
            return []
        written_row = tenants.read(db, sealer, tenant)
        before = self._checked.get(tenant)
        if version is not None and before is not None and before[:2] == (version, written_row.writes):
            return before[2]
        found = _compared(db, sealer, written_row)
        with self._lock:
            self._checked[tenant] = (version, written_row.writes, found)
        return found

    def check_while_reading(
        self,
        db: Connection,
        sealer: Sealer,
        tenant: str,
        version: int | None,
        rows: Iterator[tuple[RecordRow, FeatureRow | None]],
    ) -> Iterator[tuple[RecordRow, FeatureRow | None]]:
        """Yield all records with their features. At the end, store whether they match the sums."""
        if not sealer.active or version is None or self._intact_at(tenant) == version:
            yield from rows
            return
        written_row = tenants.read(db, sealer, tenant)
        stored = TenantHead(tenant=tenant, head=written_row.head)
        yield from tenants.count_while_reading(sealer, stored, rows)
        if written_row.same_records(stored):
            with self._lock:
                self._checked[tenant] = (version, written_row.writes, [])


def _compared(db: Connection, sealer: Sealer, written_row: TenantHead) -> list[CorruptRecord]:
    tenant = written_row.tenant
    stored = TenantHead(tenant=tenant, head=written_row.head)
    tenants.count_records(db, sealer, stored)
    if written_row.same_records(stored):
        return []
    rows = {row.id: row for row in map(RecordRow._make, db.run("all_records", tenant=tenant))}
    due, wrong, core, unread = set[str](), dict[str, Record | None](), 0, 0
    for name, row, record in tenants.project_records(db, sealer, tenant):
        due.add(name)
        unread += row is None
        core += row is not None and row.tier == Tier.CORE
        # A read of an intact row reports its damaged event by itself.
        if name not in rows or (row is not None and rows[name] != row):
            wrong[name] = record
    # An unreadable memory may be core memory while the counts miss one.
    written = written_row.records.counts
    written_core = sum(count for kind, count in written.items() if kind.startswith(f"{Tier.CORE} "))
    open_core = written_core > core

    def corrupt(name: str, why: str, record: Record | None = None) -> CorruptRecord:
        return CorruptRecord(id=name, record=record, core=record.tier is Tier.CORE if record else open_core, why=why)

    strange = sorted(rows.keys() - due)
    found = [corrupt(name, _EDITED if name in rows else _MISSING, wrong[name]) for name in sorted(wrong)]
    found += [corrupt(name, "no event in the journal names it") for name in strange]
    lost = written.total() - len(due) - len(strange)
    if lost > 0:
        # Neither a record nor an event of these is left.
        many = "a memory is" if lost == 1 else f"{lost} memories are"
        why = f"{many} missing from the records and from the journal"
        unknown = written_core > core + unread + len(strange)
        found.append(CorruptRecord(id=None, record=None, core=unknown, why=why))
    return found
