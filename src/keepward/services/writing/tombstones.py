"""Tombstones: what was erased on this machine is not stored again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from keepward.core.commit import (
    ERASED_ALIAS_PREFIX,
    Commit,
    Event,
    Reason,
    erasure_fingerprint,
)
from keepward.core.memory import Record, Status
from keepward.errors import Conflict
from keepward.gates.detectors.near_duplicate import fold, normalise
from keepward.services.reading.visible import VisibleReader
from keepward.services.request_context import Engine, RequestContext


def fingerprints(key: bytes, tenant: str, records: Iterable[Record], names: Iterable[str] = ()) -> tuple[str, ...]:
    """Return the fingerprints of versions of a memory: of their texts, aliases and further references, sorted."""
    found = {erasure_fingerprint(key, tenant, "name", name.encode()) for name in names}
    for record in records:
        if record.status is Status.ERASED:
            found.update(name for name in record.aliases if name.startswith(ERASED_ALIAS_PREFIX))
            continue
        found.add(erasure_fingerprint(key, tenant, "text", normalise(record.text).encode()))
        found.add(erasure_fingerprint(key, tenant, "folded", fold(record.text).encode()))
        found.update(erasure_fingerprint(key, tenant, "name", alias.encode()) for alias in record.aliases)
    return tuple(sorted(found))


def blocked_by_erasure(context: RequestContext, *records: Record) -> Reason | None:
    """Return why records must not be stored, if their content was erased; None if they may be."""
    if any(alias.startswith(ERASED_ALIAS_PREFIX) for record in records for alias in record.aliases):
        return Reason(
            gate="erased", code="reserved", detail=f"names that begin with {ERASED_ALIAS_PREFIX!r} are the store's own"
        )
    names = {name for record in records for name in (*record.aliases, *record.evidence)}
    names |= {record.blob for record in records if record.blob is not None}
    tombstone = tombstone_for(context, records, names)
    if tombstone is None:
        return None
    detail = f"this was erased and is not stored again: tombstone {tombstone}"
    return Reason(gate="erased", code="erased", detail=detail)


def tombstone_for(context: RequestContext, records: Iterable[Record], names: Iterable[str]) -> str | None:
    """Return the id of a visible tombstone for these texts or names; None if there is none."""
    erasures, tenant = context.engine.erasures, context.tenant
    key = erasures.key() if erasures else None
    if key is None:
        return None
    matching = VisibleReader(context).records(fingerprints(key, tenant, records, names)).records
    return min((record.id for record in matching if record.status is Status.ERASED), default=None)


def reject_erased(
    engine: Engine, commits: Iterable[tuple[Commit, list[Event]]]
) -> Iterator[tuple[Commit, list[Event]]]:
    """Yield the commits of a journal that is being restored.

    Raises:
        Conflict: it contains content that this machine erased; the message names the tombstone.
    """
    tombstones = erased_commitments(engine)
    for commit, events in commits:
        commitments = [event.payload_commit for event in events if event.payload is not None]
        if commit.payload is not None:
            commitments.append(commit.commitment())
        tombstone = next((tombstones[item.hex()] for item in commitments if item.hex() in tombstones), None)
        if tombstone is not None:
            raise Conflict(
                f"this journal holds content that was erased since: tombstone {tombstone}; export the store again"
            )
        yield commit, events


def erased_commitments(engine: Engine) -> dict[str, str]:
    """Return, by commitment to erased content in hex, the id of the memory that was erased."""
    if engine.erasures is None:
        return {}
    return {
        commitment: entry["memories"][0]
        for entry in engine.erasures.entries()
        if entry.get("entry") == "erasure"
        for _, _, commitment in entry["places"]
    }
