"""Bringing a vault file back: whole into an empty tenant, else memory by memory through the gates."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

from keepward.app.learning import take_weights
from keepward.domain.commit import Commit, Event
from keepward.domain.memory import Record, Tier
from keepward.domain.scope import RESERVED
from keepward.errors import Tampered
from keepward.interchange import vault
from keepward.interchange.items import Flaw, Item, Plan
from keepward.interchange.reading import Source
from keepward.interchange.sidecar import Sidecar, folder_of

if TYPE_CHECKING:
    from keepward.app import Memory


def restore(
    mem: Memory, source: Source, found: vault.Survey, report: Callable[[int, int], None] | None
) -> tuple[str, tuple[str, ...]] | None:
    """Write the journal of a surveyed file as it is; return (tenant, notes), or None where that cannot be.

    It can be for the owner, where the tenant of the file is the handle's own or the handle's is
    ``default``, and nothing was ever written to it. Ids, versions and the head are those of the file.
    """
    if not _writes(mem) or not mem.actor.is_owner or mem.tenant not in {found.tenant, "default"}:
        return None
    place = mem if mem.tenant == found.tenant else mem.at(tenant=found.tenant)
    if place.log(limit=1):
        return None
    beside = Sidecar(folder=source.path and folder_of(source.path))
    for ref in sorted(found.blobs):
        # Before the journal: what refers to them is stored only when they are there.
        beside.take(place, ref)
    for name, text in vault.weights(source, found):
        take_weights(place, name, text)
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
    return found.tenant, tuple(notes)


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
    why = (
        "memory is switched off by policy"
        if not _writes(mem)
        else "only the owner restores a history"
        if not mem.actor.is_owner
        else "the tenant is not empty"
        if mem.tenant in {found.tenant, "default"}
        else f"the file is of tenant {found.tenant}"
    )
    notes = [f"{why}: the live memories were imported as new ones, without their history"]
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
