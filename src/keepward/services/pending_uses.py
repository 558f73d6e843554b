"""Uses of memories that are counted in this process and not yet written.

A read counts uses without waiting for the store. The next write of the same tenant writes them in its transaction, and
closing the store writes the rest. A transaction that rolls back gives them back.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime

from keepward.locks import ForkSafeLock
from keepward.storage.writer import UnitOfWork

#: How often a memory was used, and when last.
Uses = tuple[int, datetime]


class PendingUses:
    """The uses that a handle has counted; threads may share it."""

    def __init__(self) -> None:
        self._lock = ForkSafeLock(self.clear)
        #: By tenant and memory id.
        self._counted: dict[str, dict[str, Uses]] = {}

    def clear(self) -> None:
        """Forget all."""
        self._counted = {}

    def count(self, tenant: str, ids: Iterable[str], at: datetime) -> None:
        """Count one use of each of these memories."""
        with self._lock:
            self._add(tenant, ((memory_id, (1, at)) for memory_id in ids))

    def _add(self, tenant: str, uses: Iterable[tuple[str, Uses]]) -> None:
        counted = self._counted.setdefault(tenant, {})
        for memory_id, (count, last) in uses:
            known, before = counted.get(memory_id, (0, last))
            counted[memory_id] = known + count, max(before, last)

    def of(self, tenant: str, memory_id: str) -> Uses | None:
        """Return the unwritten uses of one memory; None without any."""
        return self._counted.get(tenant, {}).get(memory_id)

    def tenants(self) -> list[str]:
        """Return the tenants with unwritten uses."""
        with self._lock:
            return sorted(self._counted)

    def forget(self, tenant: str, ids: Collection[str]) -> None:
        """Forget the uses of memories that were erased."""
        with self._lock:
            for memory_id in ids:
                self._counted.get(tenant, {}).pop(memory_id, None)

    def write(self, writer: UnitOfWork, tenant: str) -> None:
        """Write the uses of a tenant in a transaction; if that rolls back, they are unwritten again."""
        with self._lock:
            uses = self._counted.pop(tenant, None)
        if uses:
            writer.if_rolled_back(lambda: self._give_back(tenant, uses))
            writer.count_uses(tenant, uses)

    def _give_back(self, tenant: str, uses: Mapping[str, Uses]) -> None:
        with self._lock:
            self._add(tenant, uses.items())
