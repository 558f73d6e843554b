"""Tombstones: what was erased is recognised when it comes again, and refused.

Invariants
(1) Recognising takes the key of this machine; a store and its tombstones say nothing without it.
(2) A text is recognised when it is equal under the declared normalisation, whatever the scope and whoever says it;
    a memory also by a foreign name or reference that went with the erased one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from keepward.engine.kit import Kit
from keepward.errors import Conflict
from keepward.gates.detect.likeness import normalise
from keepward.model.commit import MARK, Commit, Event, Reason, mark
from keepward.model.memory import Record, Status


def marks_of(key: bytes, tenant: str, records: Iterable[Record], names: Iterable[str] = ()) -> tuple[str, ...]:
    """Return the marks of versions of a memory: their texts, their foreign names, and further references, sorted."""
    found = {mark(key, tenant, "name", name.encode()) for name in names}
    for record in records:
        if record.status is Status.ERASED:
            found.update(name for name in record.aliases if name.startswith(MARK))
            continue
        found.add(mark(key, tenant, "text", normalise(record.text).encode()))
        found.update(mark(key, tenant, "name", alias.encode()) for alias in record.aliases)
    return tuple(sorted(found))


def revived(kit: Kit, tenant: str, *records: Record) -> Reason | None:
    """Return why records must not be stored: an erasure named what they say; None when nothing stands against it."""
    if any(alias.startswith(MARK) for record in records for alias in record.aliases):
        return Reason(gate="erased", code="reserved", detail=f"names that begin with {MARK!r} are the store's own")
    key = kit.erasures.key() if kit.erasures else None
    if key is None:
        return None
    names = {name for record in records for name in (*record.aliases, *record.evidence)}
    names |= {record.blob for record in records if record.blob is not None}
    found = kit.store.records(tenant, marks_of(key, tenant, records, names)).records
    stones = sorted(record.id for record in found if record.status is Status.ERASED)
    if not stones:
        return None
    detail = f"this was erased and is not stored again: tombstone {stones[0]}"
    return Reason(gate="erased", code="erased", detail=detail)


def unerased(kit: Kit, commits: Iterable[tuple[Commit, list[Event]]]) -> Iterator[tuple[Commit, list[Event]]]:
    """Pass on a journal that is to be restored.

    Raises:
        Conflict: it holds content that this machine erased; names the tombstone.
    """
    stones = erased_commitments(kit)
    for commit, events in commits:
        held = [event.payload_commit for event in events if event.payload is not None]
        if commit.payload is not None:
            held.append(commit.commitment())
        for promise in held:
            stone = stones.get(promise.hex())
            if stone is not None:
                raise Conflict(
                    f"this journal holds content that was erased since: tombstone {stone}; export the store again"
                )
        yield commit, events


def erased_commitments(kit: Kit) -> dict[str, str]:
    """Return, by commitment to erased content in hex, the id of the memory that was erased."""
    if kit.erasures is None:
        return {}
    return {
        promise: entry["memories"][0]
        for entry in kit.erasures.entries()
        if entry.get("entry") == "erasure"
        for _, _, promise in entry["places"]
    }
