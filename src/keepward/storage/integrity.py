"""Find memories whose rows are missing or were edited outside of Keepward, and report them with the reads they concern.

A filter passes over an edited row, and a deleted row leaves nothing behind. The sealed numbers of records (see
``tenant.py``) show that rows are missing; the journal shows which memories. Only ``verify`` and the daily audit read
all rows, so only they notice an edited row that no read returns.

Invariants
(1) The first read of a handle compares the numbers of records by tier and status with the sealed ones, and a context
    those of core memory. What another handle writes costs a reader nothing.
(2) All records are compared with the journal only if a number is wrong, or if a read of all of them found a damaged
    one. Findings are checked again after every write, so that a repaired store is reported as intact.
(3) Whether a memory passes a filter is decided by the journal, never by its row.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from keepward.core.memory import Record, Status, Tier
from keepward.core.query import Filter
from keepward.locks import ForkSafeLock
from keepward.ports.store import UnreadableMemory
from keepward.storage import tenant as tenants
from keepward.storage.rows import RecordRow, json_array
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
        return filters.passes(self.record) and (live_at is None or self.record.is_live(live_at))

    def as_unreadable(self) -> UnreadableMemory:
        """Return it as a result for the reader."""
        key = self.record.key if self.record else None
        return UnreadableMemory(id=self.id, key=key, core=self.core, why=self.why)


class IntegrityMonitor:
    """Caches, for one handle, which records of each tenant are corrupt."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._lock = ForkSafeLock()
        #: Tenants whose numbers of records were as sealed.
        self._counted: set[str] = set()
        #: By tenant with a wrong number or a damaged row: the data version and the write count of the last comparison,
        #: with the corrupt records.
        self._suspect: dict[str, tuple[int | None, int, list[CorruptRecord]] | None] = {}

    def change_counter(self) -> int | None:
        """Return the data version; call it before the snapshot is taken."""
        return self._database.data_version()

    def suspect(self, tenant: str) -> None:
        """Let the next check compare all records of a tenant, because a read found a damaged one."""
        with self._lock:
            self._suspect.setdefault(tenant, None)

    def is_suspect(self, tenant: str) -> bool:
        """Whether a number of records was wrong, or a damaged one was found."""
        return tenant in self._suspect

    def is_counted(self, tenant: str) -> bool:
        """Whether a tenant's records were counted and none is suspect; see (1)."""
        return tenant in self._counted and tenant not in self._suspect

    def corrupt_records(
        self, db: Connection, sealer: Sealer, tenant: str, version: int | None, tiers: Collection[str]
    ) -> list[CorruptRecord]:
        """Return the memories whose rows are corrupt, by id, those without an id last; see (1) and (2).

        The numbers of some ``tiers`` are compared in any case.
        """
        written_row = tenants.read(db, sealer, tenant)
        if tenant not in self._suspect:
            with self._lock:
                counted = tenant in self._counted
                self._counted.add(tenant)
            if _is_as_counted(db, written_row, tiers if counted else list(Tier)):
                return []
        before = self._suspect.get(tenant)
        # While this handle writes there is no data version; the next read compares again.
        if version is not None and before is not None and before[:2] == (version, written_row.writes):
            return before[2]
        found = _compared(db, sealer, written_row)
        with self._lock:
            if found:
                self._suspect[tenant] = (version, written_row.writes, found)
            else:
                self._suspect.pop(tenant, None)
        return found


def _is_as_counted(db: Connection, written_row: TenantHead, tiers: Collection[str]) -> bool:
    """Whether the table has as many records of each tier and status as the tenant's row says."""
    values = {"tenant": written_row.tenant, "tiers": json_array(tiers), "statuses": json_array(Status)}
    stored = {f"{tier} {status}": count for tier, status, count in db.run("counts_of_records", values) if count}
    return stored == {kind: count for kind, count in written_row.records.cells().items() if kind.split()[0] in tiers}


def _compared(db: Connection, sealer: Sealer, written_row: TenantHead) -> list[CorruptRecord]:
    tenant = written_row.tenant
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
