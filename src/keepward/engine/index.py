"""The in-process indexes: one for each tenant, kept level with the journal.

Invariants
(1) An index is level with the journal's position at every search: commits of other processes are taken in
    first, so that what was written is found by the very next recall.
(2) An index holds active memories alone; the clock decides about expiry at search.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field
from threading import RLock
from typing import TYPE_CHECKING

from keepward.domain.instant import to_micros
from keepward.domain.memory import Kind, Sensitivity
from keepward.engine.features import words
from keepward.ports.store import Indexed, Reader

if TYPE_CHECKING:
    from keepward.retrieval.index import Entry, Index

#: States of the past kept at hand.
PAST = 2


@dataclass(slots=True)
class _Live:
    index: Index
    #: Seq of the last commit taken in.
    seq: int = 0
    position: int = 0


@dataclass(slots=True)
class Indexes:
    """The indexes of one opened store. Searches hold ``lock``."""

    lock: RLock = field(default_factory=RLock)
    _live: dict[str, _Live] = field(default_factory=dict)
    _past: OrderedDict[tuple[str, int], Index] = field(default_factory=OrderedDict)

    def level(self, store: Reader, tenant: str) -> Index:
        """Return the index of the tenant's present state; the caller holds ``lock``."""
        from keepward.retrieval.index import Index

        live = self._live.get(tenant)
        if live is None:
            live = self._live[tenant] = _Live(Index())
        head = store.head(tenant)
        if head.seq != live.seq:
            added, removed, position = _collect(store.indexed(tenant, after=live.position))
            live.index.apply(added, removed)
            live.position = max(live.position, position)
            live.seq = head.seq
        return live.index

    def at(self, store: Reader, tenant: str, seq: int) -> Index:
        """Return the index of the state after a commit; the caller holds ``lock``."""
        from keepward.retrieval.index import Index

        kept = self._past.get((tenant, seq))
        if kept is None:
            added, _, _ = _collect(store.indexed(tenant, after=0, as_of=seq))
            kept = Index()
            kept.apply(added)
            self._past[tenant, seq] = kept
            while len(self._past) > PAST:
                self._past.popitem(last=False)
        else:
            self._past.move_to_end((tenant, seq))
        return kept

    def forget(self, tenant: str) -> None:
        """Drop a tenant's indexes, so that the next search reads them anew."""
        with self.lock:
            self._live.pop(tenant, None)
            for key in [key for key in self._past if key[0] == tenant]:
                del self._past[key]


def _collect(rows: Iterable[tuple[str, Indexed | None]]) -> tuple[list[Entry], list[str], int]:
    added: dict[str, Entry] = {}
    removed: list[str] = []
    position = 0
    for memory_id, indexed in rows:
        if indexed is None:
            added.pop(memory_id, None)
            removed.append(memory_id)
        else:
            position = max(position, indexed.position)
            added[memory_id] = _entry(indexed)
    return list(added.values()), removed, position


def _entry(indexed: Indexed) -> Entry:
    from keepward.retrieval.index import Entry

    record, features = indexed.record, indexed.features
    # A version whose features were not kept (an earlier state, a restored journal) is found by its words.
    terms = features.terms or words(record).terms
    vectors = features.vectors if features.model is not None and features.units else None
    return Entry(
        id=record.id,
        version=record.version,
        position=indexed.arrival,
        scope=record.scope,
        tier=record.tier.value,
        kind=record.kind.value,
        content_type=record.content_type.value,
        key=record.key,
        subject=record.subject,
        category=record.category,
        session=record.session if record.kind is Kind.EVENT else None,
        speaker=record.speaker,
        tags=record.tags,
        trust=int(record.trust),
        sensitive=record.sensitivity is Sensitivity.SENSITIVE,
        importance=record.importance,
        confidence=record.confidence,
        created_at=to_micros(record.occurred_at or record.created_at),
        expires_at=None if record.expires_at is None else to_micros(record.expires_at),
        terms=terms,
        vector_model=features.model if vectors is not None else None,
        units=vectors,
    )
