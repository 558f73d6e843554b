"""Bringing an export back: as it was by its owner's word, or memory by memory through the gates.

Invariants
(1) Importing is never restoring: what an import brings passes the gates as new text, whoever imports it.
(2) An export is restored by an owner who saw its core blocks and gives the digest of exactly that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal

from keepward.errors import Conflict, InvalidInput, Tampered, Unauthorised
from keepward.interchange import vault
from keepward.interchange.formats import recognise
from keepward.interchange.items import Flaw, Item, Plan
from keepward.interchange.reading import Source, opened
from keepward.interchange.sidecar import Sidecar, folder_of
from keepward.memory import write_weights
from keepward.model.codec import canonical, digest
from keepward.model.commit import Commit, Event
from keepward.model.copies import AdoptedBlock, ExportPlan, RestoredExport
from keepward.model.memory import Record, Tier
from keepward.model.trust import RESERVED

if TYPE_CHECKING:
    from keepward.memory import Memory


def plan_restore_export(mem: Memory, target: str | Path | IO[str] | IO[bytes]) -> ExportPlan:
    """Return what bringing an export of one's own back as it was would restore, under a digest; change nothing.

    Raises:
        Unauthorised: the handle is not an owner's.
        InvalidInput: it is no export, is damaged or cut, holds a secret, or is of a tenant that the handle is not at.
        Conflict: the tenant is not empty, or memory is switched off.
    """
    _owned(mem)
    with opened(target) as source:
        return _planned(mem, source)[0]


def restore_export(
    mem: Memory,
    target: str | Path | IO[str] | IO[bytes],
    digest: str,
    *,
    on_progress: Callable[[int, int], None] | None = None,
) -> RestoredExport:
    """Write the journal of an export into an empty tenant as it is, given the digest of its plan.

    Ids, versions, core blocks and the head are those of the file. With the tenant ``default`` of the handle it goes to
    the tenant that the file names.

    Raises:
        Conflict: it is not the file that was planned for; else as ``plan_restore_export``.
        Tampered: the journal does not hold.
    """
    _owned(mem)
    with opened(target) as source:
        plan, place, found = _planned(mem, source)
        if plan.digest != digest:
            raise Conflict("the export is not the one that was shown; look at it again")
        return _restored(mem, place, source, found, on_progress)


def _owned(mem: Memory) -> None:
    if not mem.actor.is_owner:
        raise Unauthorised("restoring an export takes the owner; anyone may import it, through the gates")


def _planned(mem: Memory, source: Source) -> tuple[ExportPlan, Memory, vault.Survey]:
    if recognise(source) != "vault":
        raise InvalidInput("the file is no export of Keepward; import it instead")
    found = vault.survey(source)
    if not _writes(mem):
        raise Conflict("memory is switched off by policy; switch it on first")
    if mem.tenant not in {found.tenant, "default"}:
        raise InvalidInput(f"the export is of tenant {found.tenant}; name that one, or import the file")
    place = mem if mem.tenant == found.tenant else mem.at(tenant=found.tenant)
    if place.log(limit=1):
        raise Conflict("the tenant is not empty; name another store, or import the file through the gates")
    now = mem.now
    newest = [record for _, record in vault.records(source, frozenset(found.newest.values())) if record.is_live(now)]
    blocks = [
        AdoptedBlock(tenant=found.tenant, scope=each.scope, key=each.key, text=each.text)
        for each in newest
        if each.tier is Tier.CORE
    ]
    named = digest("restore-export", canonical([found.tenant, found.head.seq, found.head.hash.hex()])).hex()
    plan = ExportPlan(
        digest=named,
        tenant=found.tenant,
        head=found.head.name,
        versions=found.lines,
        live=len(newest),
        core=tuple(sorted(blocks, key=lambda each: (each.scope, each.key or "", each.text))),
        blobs=len(found.blobs),
        weights=len(found.weights),
    )
    return plan, place, found


def _restored(
    mem: Memory, place: Memory, source: Source, found: vault.Survey, report: Callable[[int, int], None] | None
) -> RestoredExport:
    beside = Sidecar(folder=source.path and folder_of(source.path))
    for ref in sorted(found.blobs):
        # Before the journal: what refers to them is stored only when they are there.
        beside.take(place, ref)
    for name, text in vault.weights(source, found):
        write_weights(place, name, text)
    head = place.restore_journal(_told(vault.journal(source, found.head), found.lines, report))
    if head != found.head:
        raise Tampered("the restored journal does not end in the head of the file; run `keepward verify`")
    notes = [f"the whole history was restored; the head is {head.name}", *beside.notes()]
    if found.weights:
        notes.append(f"weights of the learned reranker came with it: {len(found.weights)}")
    lacking = place.status()["reranker"]["error"]
    if lacking:
        notes.append(f"the learned reranker does not serve here: {lacking}; recall is in the plain order")
    if place is not mem:
        notes.append(f"the file is of tenant {found.tenant} and was restored there")
    return RestoredExport(tenant=found.tenant, head=head.name, versions=found.lines, notes=tuple(notes))


def _writes(mem: Memory) -> bool:
    return mem.policy.enabled and mem.policy.capture


def _told(
    commits: Iterator[tuple[Commit, list[Event]]], total: int, report: Callable[[int, int], None] | None
) -> Iterator[tuple[Commit, list[Event]]]:
    done = 0
    for commit, events in commits:
        yield commit, events
        done += len(events)
        if report is not None:
            report(done, total)


def live_plan(mem: Memory, source: Source, found: vault.Survey) -> Plan:
    """Read the live memories of a surveyed file into items; old ids become aliases."""
    came = "the live memories were imported as new ones, without their history"
    notes = [f"{came}; `keepward restore-export` brings back an export of your own as it was"]
    now = mem.now
    wanted = frozenset(found.newest.values())
    newest = [(record.is_live(now), record.scope == RESERVED) for _, record in vault.records(source, wanted)]
    live, own = sum(holds for holds, _ in newest), sum(reserved for _, reserved in newest)
    if live + own < len(wanted):
        notes.append(f"memories that no longer hold left out: {len(wanted) - live - own}")
    if found.weights:
        notes.append("the learned reranker was left out: it goes with its history alone")
    beside = Sidecar(folder=source.path and folder_of(source.path))
    return Plan(total=live, entries=_entries(mem, source, wanted, now, beside), notes=notes)


def _entries(
    mem: Memory, source: Source, wanted: frozenset[int], now: datetime, beside: Sidecar
) -> Iterator[Item | Flaw]:
    for number, record in vault.records(source, wanted):
        if not record.is_live(now):
            continue
        if record.blob is not None and not beside.take(mem, record.blob):
            yield Flaw(number=number, reason=f"it refers to a blob: {beside.flaws[record.blob]}")
            continue
        yield Item(number=number, fields=_fields(record, now), named=True, review=_review(record))


def _review(record: Record) -> Literal["no", "unless_owner", "always"]:
    # A block that is there already must not be overwritten by a file without anybody looking.
    if record.tier is Tier.CORE:
        return "always"
    return "unless_owner" if record.pinned else "no"


def _fields(record: Record, now: datetime) -> dict[str, Any]:
    return {
        "text": record.text,
        "tier": record.tier.value,
        "kind": record.kind.value,
        "key": record.key,
        "scope": record.scope,
        "subject": record.subject,
        "category": record.category,
        "tags": record.tags,
        "content_type": record.content_type.value,
        "blob": record.blob,
        "metadata": record.metadata or None,
        "evidence": record.evidence,
        # A core block was judged by a person there, and is judged again here: its floor is not in question.
        "confidence": None if record.tier is Tier.CORE else record.confidence,
        "importance": record.importance,
        "ttl": None if record.expires_at is None else record.expires_at - now,
        "stability": record.stability.value,
        "sensitivity": record.sensitivity.value,
        "access": None if record.access is None else record.access.value,
        "session": record.session,
        "speaker": record.speaker,
        "job": record.job,
        "aliases": (record.id, *record.aliases),
        "occurred_at": record.occurred_at,
    }
