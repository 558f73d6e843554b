"""Erase memories: plan what would be destroyed, under a digest, and destroy exactly that.

Only a plan that was shown is applied: everything that it names must be unchanged, and nothing may have joined it. A
commit elsewhere in the tenant does not void it.
An erasure is a commit of kind ``erase`` with one tombstone for each erased memory; its details name every event
position whose content was destroyed. The chain stays intact, and no operation restores the content.
Everything happens in one transaction: features, uses, proposals, receipts, stored texts and learned weights go as well.
Equal texts, in normal form without case, are erased with the original, except those of other users. Such copies are
candidates, and so are memories that derive from it or cite it, and proposals that cite it: they stay unless they are
named. ``include_citing`` adds those that derive from it or cite it. No text is searched for words of a target.
What quotes, merges or sums up a target is a target too, by its provenance; see ``services.writing.following``. A
summary of quotes only loses the lines of the targets: it gets a new version, and its versions with these lines are
destroyed. Pending and decided proposals are targets like memories: by subject, source, session, lineage or their own
text. A plan reads one snapshot, by indexes: only stored receipts and replaced versions are read completely. The number
of statements does not grow with the targets. Within the transaction only what came since the plan is read.
The same state gives the same plan. The texts in a plan are for a person to read: no digest covers them, and the result
of an erasure has none.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, TypeAlias

from msgspec.structs import replace

from keepward.core.blob import StoredBlob
from keepward.core.commit import (
    DETAILS,
    ERASED,
    Commit,
    CommitDetails,
    EventPosition,
    Step,
    decode_details,
    format_event_position,
    tombstone,
)
from keepward.core.journal import Candidate, Erased, ErasePlan, Selection, Target
from keepward.core.json_form import encode
from keepward.core.memory import Record, Status
from keepward.core.principals import RESERVED_SCOPE, user_of
from keepward.core.proposal import Proposal
from keepward.core.query import EVERYTHING, Feedback
from keepward.core.quotes import lines_by_source
from keepward.core.serialization import digest
from keepward.core.value import plain_name
from keepward.errors import Conflict, InvalidInput, NotFound, StoreUnavailable
from keepward.gates.detectors.near_duplicate import fold
from keepward.ports.store import Destruction
from keepward.services.access import descendants, items_of
from keepward.services.reading.learned_order import RERANKER, TRAINING, training_data_to_remove
from keepward.services.reading.verification import VERIFICATION
from keepward.services.reading.visible import VisibleReader
from keepward.services.request_context import Engine, RequestContext
from keepward.services.transaction import store_steps
from keepward.services.undoing.erasure_references import (
    CERTIFICATE_KIND,
    COUNTS_KIND,
    ErasedText,
    erased_text_of,
    erasure_counts,
    mentions_content,
    objective_in,
    receipt_without_content,
    residual_details,
)
from keepward.services.writing.blobs import refs_of
from keepward.services.writing.following import Followers, followers, following_steps, shortened_in
from keepward.services.writing.tombstones import fingerprints
from keepward.storage.documents import ReceiptArtefact
from keepward.storage.writer import UnitOfWork

#: Most characters that a plan shows of a text.
_MAX_EXCERPT_LENGTH = 200
_PLAN_CHANGED = "what would be erased has changed since it was planned; look at the new plan"

__all__ = ["ErasePlan", "Erased", "Selection", "erase", "plan", "replay"]


def plan(context: RequestContext, *, reason: str = "request", **targets: Any) -> ErasePlan:
    """Return what an erasure would destroy; change nothing. ``targets`` are the parameters of ``_selection``.

    Raises:
        NotFound: nothing is selected.
        Conflict: everything selected was erased already.
        InvalidInput: no selection, or an unknown reason.
    """
    return collect_scope(context, _selection(context, **targets), reason).plan


def erase(context: RequestContext, digest: str, *, reason: str, **targets: Any) -> Erased:
    """Apply the plan with this digest.

    Raises:
        Conflict: the plan has another digest now; nothing was changed.
        Otherwise as in ``plan``.
    """
    chosen = _selection(context, **targets)
    found = collect_scope(context, chosen, reason)
    if found.plan.digest != digest:
        raise Conflict(_PLAN_CHANGED)
    return _apply(context, found, sources=chosen.source)


def _selection(
    context: RequestContext,
    *,
    ids: Sequence[str] = (),
    subject: str | None = None,
    source: str | None = None,
    include_citing: bool = False,
) -> Selection:
    # Without a selector at a user's scope, all memories of that user are meant.
    user = None if ids or subject or source else user_of(context.scope)
    citing = include_citing or user is not None
    return Selection(ids=tuple(ids), subject=subject, source=source, user=user, include_citing=citing)


def _apply(
    context: RequestContext,
    found: ErasureScope,
    *,
    sources: str | None = None,
    unchanged: Record | None = None,
) -> Erased:
    plan, now = found.plan, context.clock.now()
    key = _fingerprint_key(context.engine)
    prints: dict[str, tuple[str, ...]] = {}
    for target in plan.targets:
        versions = found.histories[target.id]
        refs = (
            [sources]
            if sources and any(sources in (*version.evidence, *version.aliases) for version in versions)
            else []
        )
        refs += [version.blob for version in versions if version.blob is not None and version.blob in plan.blobs]
        prints[target.id] = fingerprints(key, context.tenant, versions, refs) if key else ()
    steps = []
    for name, own in prints.items():
        last = found.histories[name][-1]
        before = None if name in found.proposed else last
        after = tombstone(
            last if before else replace(last, version=0), now=now, by=context.actor.label, fingerprints=own
        )
        steps.append(Step(op="erase", before=before, after=after))
    ids = set(prints)
    shortened = following_steps(context, Followers(shortened=found.following.shortened))
    if not ids and unchanged is None:
        unchanged = _unchanged_memory(context, found)
    steps += shortened
    if unchanged is not None:
        # Only versions of memories that stay lose content: a step of one of them, unchanged, records the commit.
        steps.append(Step(op="redact", before=unchanged, after=replace(unchanged, version=unchanged.version + 1)))
    positions = [*plan.versions, *((seq, DETAILS) for seq in plan.details)]

    def destroy(writer: UnitOfWork) -> None:
        # No other process writes meanwhile: if the side tables are not as planned, the plan is void.
        again = found.side_tables
        if writer.writes(context.tenant) != found.writes:
            again = scan_side_tables(
                context.for_transaction(writer),
                ids | found.rewritten,
                found.traces,
                found.queued,
                seqs=found.seen.seqs,
                known=found.side_tables,
            )
        if again.content() != found.side_tables.content():
            raise Conflict(_PLAN_CHANGED)
        writer.destroy(
            context.tenant,
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
        blobs = writer.documents(StoredBlob, context.tenant)
        if any(not writer.drop_blob(context.tenant, ref) and blobs.rows(id=ref) for ref in plan.blobs):
            raise Conflict(_PLAN_CHANGED)
        if any(kind == RERANKER for kind, _ in plan.artefacts):
            writer.replace_artefact(ReceiptArtefact(context.tenant, *TRAINING, ""))
        writer.put(ReceiptArtefact(context.tenant, COUNTS_KIND, steps[0].after.id, erasure_counts(plan, found.queued)))

    try:
        stored = store_steps(
            context,
            steps,
            base={step.after.id: step.after.version - 1 for step in steps},
            reason=plan.reason,
            kind="erase",
            details={"erased": tuple(format_event_position(position) for position in positions)},
            receipt_kind="erase",
            also=destroy,
        )
    except Conflict as exc:
        raise Conflict(_PLAN_CHANGED) from exc
    context.engine.uses.forget(context.tenant, ids)
    context.indexes.erase(context.store, context.tenant)
    context.engine.rerankers.clear()
    return Erased(plan=_without_texts(plan), commit=stored.commit, receipt=stored.receipt)


def _without_texts(plan: ErasePlan) -> ErasePlan:
    return replace(
        plan,
        targets=tuple(replace(target, text="") for target in plan.targets),
        shortened=tuple(replace(summary, text="") for summary in plan.shortened),
        candidates=tuple(replace(candidate, text="") for candidate in plan.candidates),
    )


def _unchanged_memory(context: RequestContext, found: ErasureScope) -> Record:
    """Return a memory that an erased proposal would have changed: its unchanged step records the commit."""
    items = context.store.documents(Proposal, context.tenant).list(ids=found.queued)
    names = sorted({step.after.id for item in items for step in item.steps})
    return context.store.records(context.tenant, names).records[0]


def _fingerprint_key(engine: Engine) -> bytes | None:
    """Return this machine's key for fingerprints, created if missing; None if it cannot be stored."""
    if engine.erasures is None:
        return None
    try:
        return engine.erasures.key(make=True)
    except OSError as exc:
        raise StoreUnavailable(
            "the configuration folder cannot be written, so an erasure could not be recorded"
        ) from exc


def replay(context: RequestContext, entries: Sequence[dict[str, Any]]) -> int:
    """Apply, to an older copy, the erasures of this tenant that it lacks; return the number of positions and proposals.

    ``entries`` are those of the erasure list. One applies if an event position still has exactly the erased content.
    """
    commitments = {commitment for entry in entries for _, _, commitment in entry["places"]}
    cells: dict[EventPosition, str] = {}
    own: dict[int, CommitDetails] = {}
    for commit, events in context.store.events(context.tenant):
        here = [event for event in events if event.payload and event.payload_commit.hex() in commitments]
        cells |= {(event.seq, event.n): event.memory_id for event in here}
        details = _details_of(commit)
        if details is not None and commit.commitment().hex() in commitments:
            own[commit.seq] = residual_details(details)
            cells.setdefault((commit.seq, DETAILS), events[0].memory_id)
    wanted = {name for entry in entries for name in (*entry["memories"], *entry.get("proposals", ()))}
    proposals = context.store.documents(Proposal, context.tenant)
    named = {item.id: item for item in (*proposals.list(ids=wanted), *proposals.list(refs=wanted)) if item.steps}
    queued = sorted(
        item.id
        for item in named.values()
        if not wanted.isdisjoint({item.id, *(record.id for record in _records_of(item))})
    )
    if not cells and not queued:
        return 0
    found = context.store.records(context.tenant, sorted(wanted)).records
    ids = (*sorted(record.id for record in found if record.status is not Status.ERASED), *queued)
    empty = ErasureScope(seen=JournalHits(), side_tables=SideTableHits(), traces=erased_text_of(()), histories={})
    gathered = collect_scope(context, Selection(ids=ids), "other") if ids else empty
    seen = gathered.seen
    seen.events |= {position for position in cells if position[1] != DETAILS}
    seen.details = own | seen.details
    gathered.plan = body = _complete_plan(context.tenant, gathered, gathered.plan)
    _apply(context, gathered, unchanged=None if ids else VisibleReader(context).fetch(min(cells.values())))
    return len(body.versions) + len(body.details) + len(queued)


#: Stored texts without words of memories: those of this module, and what was learned.
_NO_TEXTS = frozenset({COUNTS_KIND, CERTIFICATE_KIND, RERANKER, TRAINING[0], VERIFICATION[0]})


@dataclass(slots=True)
class JournalHits:
    """The findings in the journal."""

    copies: set[str] = field(default_factory=set)
    quoting: set[str] = field(default_factory=set)
    events: set[EventPosition] = field(default_factory=set)
    details: dict[int, CommitDetails] = field(default_factory=dict)
    #: The commits that made a version of a target.
    seqs: frozenset[int] = frozenset()


@dataclass(slots=True)
class SideTableHits:
    """The rows outside the journal that an erasure rewrites, in their new form."""

    receipts: dict[str, dict[str, Any]] = field(default_factory=dict)
    proposals: list[Proposal] = field(default_factory=list)
    #: The commits that stored one of these proposals.
    approving: Collection[int] = ()
    artefacts: list[tuple[str, str]] = field(default_factory=list)
    feedback: tuple[Feedback, ...] = ()
    #: How many receipts without a commit there were, and the highest id of one.
    receipt_count: int = 0
    newest_receipt: str = ""

    def content(self) -> tuple[Any, ...]:
        """Return what would be written, without times."""
        return [item.id for item in self.proposals], self.receipts, self.artefacts, self.feedback


#: Versions of a memory by position, oldest first.
Versions: TypeAlias = dict[EventPosition, Record]
#: Texts of a receipt in quotes, without those that need an escape.
_QUOTED = re.compile(rb'"([^"\\]*)"')
#: The plan before the journal was read.
_EMPTY_PLAN = ErasePlan(
    digest="",
    reason="other",
    **dict.fromkeys(("targets", "derived", "quoting", "versions", "details", "receipts", "proposals", "artefacts"), ()),
)


@dataclass(slots=True)
class ErasureScope:
    """What an erasure destroys, and what was read to find it."""

    seen: JournalHits
    side_tables: SideTableHits
    traces: ErasedText
    #: Versions by id; of a memory that was only proposed, what it would have been.
    histories: dict[str, list[Record]]
    #: Ids of targets that exist only in proposals.
    proposed: frozenset[str] = frozenset()
    #: Ids of proposals that the selection itself names.
    queued: frozenset[str] = frozenset()
    #: The summaries of quotes that stay, and the ids of those that have a version with a line of a target.
    following: Followers = field(default_factory=Followers)
    rewritten: frozenset[str] = frozenset()
    #: How many transactions had changed the tenant.
    writes: int = 0
    plan: ErasePlan = _EMPTY_PLAN


def collect_scope(context: RequestContext, chosen: Selection, reason: str) -> ErasureScope:
    """Return what an erasure destroys, read from one snapshot."""
    with nullcontext() if context.writer else context.store.read_snapshot(context.tenant):
        return _collect_scope(context, chosen, reason)


def _collect_scope(context: RequestContext, chosen: Selection, reason: str) -> ErasureScope:
    named, queued, named_proposals = _select_ids(context, chosen)
    proposed = _proposed_records(context, chosen, queued, named_proposals)
    #: By id, why a memory is included.
    why = dict.fromkeys(named, "named")
    histories: dict[str, Versions] = {}
    while True:
        ids = set(why)
        histories |= _histories(context, ids - histories.keys())
        held = [record for versions in proposed.values() for record in versions]
        traces = erased_text_of([*(record for name in sorted(ids) for record in histories[name].values()), *held])
        following = followers(context, ids, ended=True)
        if following.removed:
            why |= dict.fromkeys(following.removed, "quotes")
            continue
        extracts = {*following.shortened, *following.clean}
        lineage = set(descendants(context, ids)) - ids - extracts
        names = {*ids, *proposed, *(alias for each in held for alias in each.aliases)}
        names |= {alias for name in ids for record in histories[name].values() for alias in record.aliases}
        citing = _citing(context, names) - ids - lineage - extracts
        citing_proposals = _citing_proposals(context, names, {*ids, *lineage, *extracts, *citing}, queued)
        if chosen.include_citing and (lineage or citing or citing_proposals):
            why |= {**dict.fromkeys(citing, "cites"), **dict.fromkeys(lineage, "derived")}
            queued |= citing_proposals.keys()
            proposed |= _proposed_records(context, chosen, set(citing_proposals), set(citing_proposals))
            continue
        seen = _scan_copies(context, ids | extracts, lineage, traces)
        if not seen.copies:
            break
        why |= dict.fromkeys(seen.copies, "copy")
    quoting = _versions_with_lines(context, following, ids)
    _scan_journal(context, {name: histories[name] for name in ids}, traces, seen)
    seen.events |= {position for versions in quoting.values() for position in versions}
    rewritten = frozenset(name for name, versions in quoting.items() if versions)
    side_tables = scan_side_tables(context, {*ids, *proposed, *rewritten}, traces, queued, seqs=seen.seqs)
    _scan_approvals(context, side_tables.approving, traces, seen)
    blobs = _blobs_to_erase(context, {name: histories[name] for name in ids}, seen, side_tables)
    records = {name: list(histories[name].values()) for name in ids} | proposed
    why |= dict.fromkeys(proposed, "proposed")
    targets = tuple(
        Target(
            id=name,
            versions=0 if name in proposed else len(records[name]),
            why=why[name],
            text=_excerpt(context, records[name][-1]),
        )
        for name in sorted(records)
    )
    found = ErasureScope(
        seen=seen,
        side_tables=side_tables,
        traces=traces,
        histories=records,
        proposed=frozenset(proposed),
        queued=frozenset(queued),
        following=following,
        rewritten=rewritten,
        writes=context.store.writes(context.tenant),
    )
    derived, quotes = tuple(sorted(lineage)), tuple(sorted(seen.quoting - ids - lineage))
    stay = {
        name: word for names, word in ((quotes, "quotes"), (derived, "derived"), (citing, "cites")) for name in names
    }
    staying = context.store.records(context.tenant, list(stay)).records if stay else []
    texts = {record.id: _excerpt(context, record) for record in staying}
    stubs = {item.id for item in side_tables.proposals}
    asked = {name: _excerpt(context, after) for name, after in citing_proposals.items() if name not in stubs}
    stay, texts = stay | dict.fromkeys(asked, "cites"), texts | asked
    candidates = tuple(
        Candidate(id=name, why=word, text=texts.get(name, ""))
        for word in ("derived", "cites", "quotes")
        for name in sorted(stay)
        if stay[name] == word
    )
    plan = replace(
        _EMPTY_PLAN,
        reason=reason,
        blobs=blobs,
        targets=targets,
        candidates=candidates,
        derived=derived,
        quoting=quotes,
        shortened=shortened_in(context, following),
    )
    found.plan = _complete_plan(context.tenant, found, plan)
    return found


def _histories(context: RequestContext, ids: Collection[str]) -> dict[str, Versions]:
    """Return, by memory, its versions by position, oldest first."""
    if not ids:
        return {}
    found = context.store.versions(context.tenant, sorted(ids))
    return {name: {position: step.after for position, step in steps} for name, steps in found.items()}


def _versions_with_lines(
    context: RequestContext, found: Followers, targets: Collection[str]
) -> dict[str, list[EventPosition]]:
    """Return, by id of each summary of quotes that stays, the positions of its versions with a line of a target."""
    #: By id of a summary, the lines of targets that some version has. Sources are older than what quotes them.
    lines: dict[str, set[str]] = {}
    quoting: dict[str, list[EventPosition]] = {}
    histories = _histories(context, {*found.shortened, *found.clean}).items()
    newest = {name: [*versions.values()][-1] for name, versions in histories}
    for name, versions in sorted(histories, key=lambda each: (newest[each[0]].created_at, each[0])):
        own, positions = lines.setdefault(name, set()), quoting.setdefault(name, [])
        for position, version in versions.items():
            _, parts = lines_by_source(version) or ([], [])
            for source, part in zip(version.derived_from, parts, strict=False):
                taken = part if source in targets else [line for line in part if line in lines.get(source, ())]
                own.update(taken)
                if taken and position not in positions:
                    positions.append(position)
    return quoting


def _citing(context: RequestContext, names: Collection[str]) -> set[str]:
    """Return the ids of memories that cite one of some names."""
    ids = context.store.citing(context.tenant, names)
    cites = context.store.records(context.tenant, ids).records if ids else []
    return {record.id for record in cites if record.status is not Status.ERASED and record.scope != RESERVED_SCOPE}


def _citing_proposals(
    context: RequestContext, names: Collection[str], known: Collection[str], queued: Collection[str]
) -> dict[str, Record]:
    """Return, by proposal id, the memory it would store that cites one of these names.

    Proposals about ``known`` memories, which are erased with these, and those in ``queued`` are left out. A decided
    proposal counts as long as its content is stored.
    """
    return {
        item.id: step.after
        for item in context.store.documents(Proposal, context.tenant).list(refs=names)
        if item.state != "approved"
        and item.id not in queued
        and not any(side.id in known for side in _records_of(item))
        for step in reversed(item.steps)
        if not {*step.after.evidence, *step.after.derived_from}.isdisjoint(names)
    }


def _excerpt(context: RequestContext, record: Record) -> str:
    """Return the first characters of a text, as a plan shows them, if the handle may read it."""
    text = VisibleReader(context).hide_content(record).text
    return text if len(text) <= _MAX_EXCERPT_LENGTH else f"{text[: _MAX_EXCERPT_LENGTH - 3]}..."


def _complete_plan(tenant: str, found: ErasureScope, plan: ErasePlan) -> ErasePlan:
    """Return a plan with the findings in the journal and the side tables, under its digest."""
    side_tables = found.side_tables
    plan = replace(
        plan,
        versions=tuple(sorted(found.seen.events)),
        details=tuple(sorted(found.seen.details)),
        receipts=tuple(sorted(side_tables.receipts)),
        proposals=tuple(sorted(item.id for item in side_tables.proposals)),
        artefacts=tuple(sorted(side_tables.artefacts)),
        feedback=tuple(feedback.n for feedback in side_tables.feedback),
    )
    return replace(plan, digest=digest("erase-plan", encode([tenant, _without_texts(plan)])).hex())


def _select_ids(context: RequestContext, chosen: Selection) -> tuple[set[str], set[str], set[str]]:
    """Return ids of memories and of proposals in any state: visible ones by name, others by subject or source.

    The third set has the proposals by name alone.

    A subject or source selects in the entire tenant.
    """
    if not (chosen.ids or chosen.subject or chosen.source or chosen.user):
        raise InvalidInput("say what to erase: ids, a subject or a source; or ask at a user")
    found, named = _named_ids(context, chosen.ids)
    queued = set(named)
    if chosen.subject or chosen.source or chosen.user:
        found |= {record.id: record for record in _selected(context, chosen) if _is_chosen(record, chosen)}
        for item in context.store.documents(Proposal, context.tenant).list():
            if any(_is_chosen(side, chosen) for side in _records_of(item)):
                queued.add(item.id)
    # With a memory go its states on branches.
    states = context.store.records(context.tenant, context.store.children(context.tenant, sorted(found))).records
    found |= {record.id: record for record in states if record.branched_id in found}
    left = {name for name, record in found.items() if record.status is not Status.ERASED}
    if found and not left and not queued:
        raise Conflict(f"this was erased already: tombstone {min(found)}")
    if not left and not queued:
        folded = (chosen.subject or chosen.user or "").casefold()
        every = context.store.find(context.tenant, EVERYTHING, live_at=None, limit=None).records
        alike = sum(each.subject is not None and each.subject.casefold() == folded for each in every)
        other = f"; {alike} of a subject in other capitals: names count letter by letter" if alike else ""
        raise NotFound(f"nothing here is of that subject, source or user{other}")
    return left, queued, named


def _named_ids(context: RequestContext, names: Sequence[str]) -> tuple[dict[str, Record], set[str]]:
    """Return, by id, the named memories; and the ids of the named proposals."""
    if not names:
        return {}, set()
    proposals = context.store.documents(Proposal, context.tenant)
    items = {item.id: item for item in proposals.list(ids=names)}
    known = {record.id: record for record in VisibleReader(context).records(list(names)).records}
    found: dict[str, Record] = {}
    for name in dict.fromkeys(names):
        if name in known and name not in items:
            found[name] = known[name]
            continue
        item = items.get(name) or proposals.get(name, prefix=True)
        if item is None:
            record = VisibleReader(context).fetch_only(name)
            found[record.id] = record
        elif item.steps:
            items[item.id] = item
    return found, {name for name, item in items.items() if item.steps}


def _selected(context: RequestContext, chosen: Selection) -> Iterator[Record]:
    """Yield memories among which are all of the chosen subject, source or user."""
    store, tenant = context.store, context.tenant
    for subject in {chosen.subject, chosen.user} - {None}:
        yield from store.find(tenant, replace(EVERYTHING, subject=subject), live_at=None, limit=None).records
    if chosen.source is not None:
        yield from store.naming(tenant, chosen.source)
    scopes = [scope for scope in store.scopes(tenant) if user_of(scope) == chosen.user] if chosen.user else []
    if scopes:
        yield from store.find(tenant, replace(EVERYTHING, scopes=tuple(scopes)), live_at=None, limit=None).records


def _is_chosen(record: Record, chosen: Selection) -> bool:
    """Whether a memory has the chosen subject, source or user; names are compared in Unicode normal form."""
    names = {plain_name(each) for each in (record.source, record.session, *record.evidence, *record.aliases) if each}
    subjects = {plain_name(each) for each in (chosen.subject, chosen.user) if each is not None}
    return (
        (record.subject is not None and plain_name(record.subject) in subjects)
        or (chosen.source is not None and plain_name(chosen.source) in names)
        or (chosen.user is not None and user_of(record.scope) == chosen.user)
    )


def _records_of(item: Proposal) -> list[Record]:
    return [side for step in item.steps for side in (step.before, step.after) if side is not None]


def _proposed_records(
    context: RequestContext, chosen: Selection, queued: set[str], named: set[str]
) -> dict[str, list[Record]]:
    """Return, by id, the memories that exist only in the chosen proposals: all of the named ones."""
    items = context.store.documents(Proposal, context.tenant).list(ids=queued)
    asked = {step.after.id: step.after for item in items for step in item.steps if step.before is None}
    known = {record.id for record in context.store.records(context.tenant, sorted(asked)).records}
    whole = {step.after.id for item in items if item.id in named for step in item.steps}
    return {
        name: [after]
        for name, after in sorted(asked.items())
        if name not in known and (name in whole or _is_chosen(after, chosen))
    }


def _scan_copies(context: RequestContext, ids: set[str], lineage: set[str], traces: ErasedText) -> JournalHits:
    """Find versions of other memories that say the same, and of derived ones that repeat it.

    A memory whose newest version copies a target is a copy; one with an earlier copy loses that version.
    """
    seen, store, tenant = JournalHits(), context.store, context.tenant
    alike = sorted(set(store.with_traits(tenant, traces.traits)) - ids - lineage)
    for record in store.records(tenant, alike).records if alike else ():
        if _is_copy(record, traces, seen, derived=False):
            seen.copies.add(record.id)
    for name, versions in _histories(context, lineage).items():
        copies = {position for position, version in versions.items() if _is_copy(version, traces, seen, derived=True)}
        if copies and max(versions) in copies:
            seen.copies.add(name)
        seen.events |= copies
    for position, version in store.replaced_texts(tenant, traces.equals):
        if version.id not in ids and _is_copy(version, traces, seen, derived=False):
            seen.events.add(position)
    return seen


def _is_copy(record: Record, traces: ErasedText, seen: JournalHits, *, derived: bool) -> bool:
    """Whether a version of another memory says the same as a target; one that a person decides on is noted."""
    if not record.text or not (traces.within(record.text) if derived else traces.equals(record.text)):
        return False
    # Another picture with the same description is no copy; what another user said stays. A person decides on both.
    other = user_of(record.scope) not in {None, *traces.users}
    if other or (record.blob is not None and fold(record.blob) not in traces.names):
        seen.quoting.add(record.id)
        return False
    return True


def _scan_journal(
    context: RequestContext, histories: Mapping[str, Versions], traces: ErasedText, seen: JournalHits
) -> None:
    """Find the versions of targets, and the details of their commits that mention the content."""
    positions = {position: version for versions in histories.values() for position, version in versions.items()}
    seen.events |= {position for position, version in positions.items() if version.status is not Status.ERASED}
    own = Counter(seq for seq, _ in positions)
    seen.seqs = frozenset(own)
    for seq, (details, events) in context.store.details_at(context.tenant, own).items():
        if mentions_content(details, traces, only=own[seq] == events):
            seen.details[seq] = residual_details(details)


def _scan_approvals(context: RequestContext, seqs: Collection[int], traces: ErasedText, seen: JournalHits) -> None:
    """Find the details of commits of erased proposals that mention the content."""
    for seq, (details, _) in context.store.details_at(context.tenant, {*seqs} - seen.seqs).items():
        if mentions_content(details, traces, only=False):
            seen.details[seq] = residual_details(details)


def _blobs_to_erase(
    context: RequestContext, histories: Mapping[str, Versions], seen: JournalHits, side_tables: SideTableHits
) -> tuple[str, ...]:
    """Return the blobs of targets without other references; a memory with such a reference counts as quoting."""
    versions = [version for each in histories.values() for version in each.values()]
    mine = {version.blob for version in versions if version.blob is not None}
    if not mine:
        return ()
    named: dict[str, set[str]] = {}
    for position, memory_id, ref in context.store.blob_positions(context.tenant):
        if ref in mine and position not in seen.events:
            named.setdefault(ref, set()).add(memory_id)
    seen.quoting |= {name for holders in named.values() for name in holders}
    stubs = {item.id for item in side_tables.proposals}
    pending = context.store.documents(Proposal, context.tenant).list(state="pending", refs=mine)
    waits = refs_of(item for item in pending if item.id not in stubs)
    return tuple(sorted(ref for ref in mine if ref not in named and ref not in waits))


def _details_of(commit: Commit) -> CommitDetails | None:
    if commit.payload is None or commit.kind == "erase":
        return None
    return decode_details(commit.payload)


def scan_side_tables(
    context: RequestContext,
    ids: set[str],
    traces: ErasedText,
    queued: Collection[str] = (),
    *,
    seqs: Collection[int] = (),
    known: SideTableHits | None = None,
) -> SideTableHits:
    """Return what an erasure rewrites outside the journal. ``seqs`` are the commits that made a version of a target.

    ``known`` has the findings of an earlier scan: only receipts that came since, or that it rewrites, are unpacked.
    """
    stored = context.store.documents(ReceiptArtefact, context.tenant).list()
    artefacts = [(kind, version) for _, kind, version, text in stored if kind not in _NO_TEXTS and traces.within(text)]
    proposals = [
        _proposal_stub(context, item)
        for item in context.store.documents(Proposal, context.tenant).list()
        if item.id in queued or _mentions_erased(item, ids, traces)
    ]
    documents = {version for _, version in artefacts}
    names = {item.id for item in proposals}
    found = SideTableHits(proposals=proposals, receipt_count=context.store.document_count(context.tenant, "receipts"))
    found.approving = context.store.approving(context.tenant, names)
    wanted, showing = ids | names | documents, set()
    own = context.store.receipts_of_commits(context.tenant, {*seqs, *found.approving})
    for body in chain(own, _receipts_naming(context, wanted, traces, found, known)):
        if not items_of(body).keys().isdisjoint(ids):
            showing.add(body["id"])
        cleaned = receipt_without_content(body, ids, names, documents, traces)
        if cleaned is not body:
            found.receipts[body["id"]] = cleaned
    found.feedback, weights = training_data_to_remove(context, ids, showing, stored)
    found.artefacts = [*artefacts, *((RERANKER, name) for name in weights)]
    return found


def _receipts_naming(
    context: RequestContext, names: set[str], traces: ErasedText, found: SideTableHits, known: SideTableHits | None
) -> Iterator[dict[str, Any]]:
    """Yield the receipts without a commit that contain one of some names, or whose query repeats an erased text."""
    store, tenant = context.store, context.tenant
    texts = store.receipt_texts(tenant)
    if known is not None:
        fresh = list(store.receipt_texts(tenant, above=known.newest_receipt))
        # Otherwise a clock ran behind, and new receipts are among the old ones.
        if known.receipt_count + len(fresh) == found.receipt_count:
            texts = chain(store.receipt_texts(tenant, ids=known.receipts), fresh)
    quoted = {name.encode() for name in names}
    for name, text in texts:
        found.newest_receipt = max(found.newest_receipt, name)
        if not quoted.isdisjoint(_QUOTED.findall(text)) or traces.within(objective_in(text)):
            yield json.loads(text)


def _mentions_erased(item: Proposal, ids: set[str], traces: ErasedText) -> bool:
    records = _records_of(item)
    texts = [item.reason, *(record.text for record in records)]
    own = any(record.id in ids or not ids.isdisjoint(record.derived_from) for record in records)
    return own or any(traces.within(text) for text in texts if text)


def _proposal_stub(context: RequestContext, item: Proposal) -> Proposal:
    """Return a proposal without its content; a pending one is rejected, and its proposer is notified."""
    pending = item.state == "pending"
    return replace(
        item,
        state="rejected" if pending else item.state,
        reason=ERASED,
        reasons=(),
        steps=(),
        base={},
        digest="",
        decided_by=context.actor.label if pending else item.decided_by,
        decision="what it would have stored was erased" if pending or item.decision else None,
        decided_at=context.clock.now() if pending else item.decided_at,
    )
