"""Erasing: what would go, under a digest, and the destruction of exactly that.

Invariants
(1) Only a plan that was shown is carried out: whatever it names must still be so, and nothing may have joined it.
    A commit elsewhere in the tenant does not void it.
(2) An erasure is a commit of kind ``erase``: one tombstone an erased memory, and in its details every place whose
    content went. The chain stays whole; the content does not come back by any verb.
(3) All of it is one transaction. What recall needs, uses, proposals, receipts, kept texts and what was learned go
    with it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

from keepward.engine.certificate import COUNTS, counts
from keepward.engine.checkpoints import drop as drop_checkpoints
from keepward.engine.commit import Moved, store_steps
from keepward.engine.erase_plan import Beside, Gathered, Seen, beside_of, gather, plan_digest, told
from keepward.engine.kit import Kit, Who
from keepward.engine.learned import KEY
from keepward.engine.lift import lifted
from keepward.engine.tombstones import marks_of
from keepward.engine.traces import remains, traces_of
from keepward.engine.unlearn import stopped
from keepward.engine.view import fetch
from keepward.errors import Conflict, StoreUnavailable
from keepward.model.commit import OWN, CommitDetails, Place, Step, place_name, tombstone
from keepward.model.journal import Erased, ErasePlan, Selection
from keepward.model.memory import Record, Status
from keepward.ports.erasing import Destruction
from keepward.ports.store import Writer

__all__ = ["ErasePlan", "Erased", "Selection", "erase", "plan", "replay"]


def plan(kit: Kit, who: Who, chosen: Selection, *, reason: str) -> ErasePlan:
    """Return what erasing would destroy; change nothing.

    Raises:
        NotFound: nothing is selected.
        Conflict: all of it was erased already.
        InvalidInput: no selection, or an unknown reason.
    """
    return gather(kit, who, chosen, reason).plan


def erase(kit: Kit, who: Who, named: str, chosen: Selection, *, reason: str) -> Erased:
    """Carry out the plan with this digest.

    Raises:
        Conflict: what would go is not what was planned; nothing was changed.
        Otherwise as ``plan``.
    """
    found = gather(kit, who, chosen, reason)
    if found.plan.digest != named:
        raise Conflict("what would be erased has changed since it was planned; look at the new plan")
    return _apply(kit, who, found, sources=chosen.source)


def _apply(
    kit: Kit,
    who: Who,
    found: Gathered,
    *,
    sources: str | None = None,
    bearer: Record | None = None,
    unmarked: Collection[str] = (),
) -> Erased:
    plan, now = found.plan, kit.clock.now()
    key = _key(kit)
    marks: dict[str, tuple[str, ...]] = {}
    for target in plan.targets:
        versions = found.histories[target.id]
        refs = [sources] if sources and any(sources in (*each.evidence, *each.aliases) for each in versions) else []
        refs += [each.blob for each in versions if each.blob is not None and each.blob in plan.blobs]
        marks[target.id] = marks_of(key, who.tenant, versions, refs) if key else ()
    allowed = {each for name in unmarked for each in marks.get(name, ())}
    steps = []
    for name, own in marks.items():
        last, left = found.histories[name][-1], tuple(each for each in own if each not in allowed)
        before = None if name in found.proposed else last
        after = tombstone(last if before else replace(last, version=0), now=now, by=who.actor.label, marks=left)
        steps.append(Step(op="erase", before=before, after=after))
    ids = set(marks)
    if not ids and bearer is None:
        bearer = _bearer(kit, who, found)
    if bearer is not None:
        # Only versions of memories that live on lose content: one of them carries the commit, unchanged.
        steps.append(Step(op="redact", before=bearer, after=replace(bearer, version=bearer.version + 1)))
    learned = stopped(kit, who, [name for kind, name in plan.artefacts if kind == KEY])
    if learned is not None:
        steps.append(learned)
    places = [*plan.versions, *((seq, OWN) for seq in plan.details)]

    def destroy(writer: Writer) -> None:
        # Nobody writes meanwhile: what stands beside the journal is as planned, or the plan is void.
        again = beside_of(kit, who, ids, found.traces, found.queued)
        if not again.matches(found.beside):
            raise Conflict("what would be erased has changed since it was planned; look at the new plan")
        writer.destroy(
            who.tenant,
            Destruction(
                ids=tuple(sorted(ids)),
                events=plan.versions,
                details=found.seen.details,
                receipts=again.receipts,
                proposals=tuple(again.proposals),
                artefacts=plan.artefacts,
                feedback=again.feedback,
            ),
        )
        drop_checkpoints(writer, who.tenant)
        if any(not writer.drop_blob(who.tenant, ref) and writer.has_blob(who.tenant, ref) for ref in plan.blobs):
            raise Conflict("what would be erased has changed since it was planned; look at the new plan")
        writer.put_artefact(
            who.tenant,
            COUNTS,
            steps[0].after.id,
            counts(plan.receipts, plan.proposals, plan.artefacts, plan.feedback, plan.blobs),
        )

    for name in ids:
        kit.uses.pop((who.tenant, name), None)
        kit.used_at.pop((who.tenant, name), None)
    try:
        stored = store_steps(
            kit,
            who,
            steps,
            base={step.after.id: step.after.version - 1 for step in steps},
            reason=plan.reason,
            kind="erase",
            details={"erased": tuple(place_name(place) for place in places)},
            receipt_kind="erase",
            also=destroy,
        )
    except Moved as fault:
        raise Conflict("what would be erased has changed since it was planned; look at the new plan") from fault
    kit.indexes.forget(who.tenant)
    kit.rerankers.forget(who.tenant)
    return Erased(plan=plan, commit=stored.commit, receipt=stored.receipt)


def _bearer(kit: Kit, who: Who, found: Gathered) -> Record:
    """Return a memory that what goes was proposed for: it lives on and carries the commit, unchanged."""
    items = (kit.store.waiting(who.tenant, name) for name in sorted(found.queued))
    names = sorted({step.after.id for item in items if item is not None for step in item.steps})
    return kit.store.records(who.tenant, names).records[0]


def _key(kit: Kit) -> bytes | None:
    """Return the key of this machine's marks, made when there is none; None where it cannot be kept."""
    if kit.erasures is None:
        return None
    try:
        return kit.erasures.key(make=True)
    except OSError as fault:
        raise StoreUnavailable("the configuration folder cannot be written, so an erasure could not be kept") from fault


def replay(kit: Kit, who: Who, entries: Sequence[dict[str, Any]]) -> int:
    """Carry out, on an older copy, the erasures of this tenant that it does not know; return how many places went.

    ``entries`` are those of the list; one counts where a place still has the very content that was erased. What was
    lifted since is erased and refused no more.
    """
    allowed = lifted(entries)
    entries = [entry for entry in entries if entry["entry"] == "erasure"]
    promises = {promise for entry in entries for _, _, promise in entry["places"]}
    cells: dict[Place, str] = {}
    own: dict[int, CommitDetails] = {}
    for commit, events in kit.store.events(who.tenant):
        here = [event for event in events if event.payload and event.payload_commit.hex() in promises]
        cells |= {(event.seq, event.n): event.memory_id for event in here}
        details = told(commit)
        if details is not None and commit.commitment().hex() in promises:
            own[commit.seq] = remains(details)
            cells.setdefault((commit.seq, OWN), events[0].memory_id)
    if not cells:
        return 0
    wanted = {name for entry in entries for name in entry["memories"]}
    found = kit.store.records(who.tenant, sorted(wanted)).records
    ids = tuple(sorted(record.id for record in found if record.status is not Status.ERASED))
    gathered = gather(kit, who, Selection(ids=ids), "other") if ids else _nothing()
    seen = gathered.seen
    seen.events |= {place for place in cells if place[1] != OWN}
    seen.details = own | seen.details
    body = replace(gathered.plan, versions=tuple(sorted(seen.events)), details=tuple(sorted(seen.details)))
    gathered.plan = replace(body, digest=plan_digest(who.tenant, body))
    _apply(kit, who, gathered, bearer=None if ids else fetch(kit, who, min(cells.values())), unmarked=allowed)
    return len(body.versions) + len(body.details)


def _nothing() -> Gathered:
    empty = ErasePlan(
        digest="",
        reason="other",
        targets=(),
        derived=(),
        quoting=(),
        versions=(),
        details=(),
        receipts=(),
        proposals=(),
        artefacts=(),
    )
    beside = Beside(receipts={}, proposals=[], artefacts=[])
    return Gathered(plan=empty, seen=Seen(), beside=beside, traces=traces_of(()), histories={})
