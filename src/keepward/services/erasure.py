"""Erase memories: plan what would be destroyed, under a digest, and destroy exactly that.

Only a plan that was shown is applied: everything that it names must be unchanged, and nothing may have joined it. A
commit elsewhere in the tenant does not void it.
An erasure is a commit of kind ``erase`` with one tombstone for each erased memory; its details name every event
position whose content was destroyed. The chain stays intact, and no operation restores the content.
Everything happens in one transaction: features, uses, proposals, receipts, stored texts and learned weights go as well.
Exact copies are erased with the original, except those of other users. Such copies are candidates, and so are memories
that derive from it, cite it or quote it, and proposals that cite it: they stay unless they are named.
``include_citing`` adds those that derive from it or cite it.
What quotes, merges or sums up a target is a target too, by its provenance; see ``services.following``. A summary of
quotes only loses the lines of the targets: it gets a new version, and its versions with these lines are destroyed.
Pending and decided proposals are targets like memories: by subject, source, session, lineage or their own text.
The same state gives the same plan. The texts in a plan are for a person to read: no digest covers them, and the result
of an erasure has none.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import replace

from keepward.core.blob import StoredBlob
from keepward.core.commit import (
    DETAILS,
    ERASED,
    Commit,
    CommitDetails,
    Event,
    EventPosition,
    Step,
    decode_details,
    format_event_position,
    tombstone,
)
from keepward.core.journal import Candidate, Erased, ErasePlan, Selection, Target
from keepward.core.memory import Record, Status
from keepward.core.principals import RESERVED_SCOPE, user_of
from keepward.core.proposal import Proposal
from keepward.core.query import EVERYTHING, Feedback
from keepward.core.quotes import lines_by_source
from keepward.core.serialization import decode_record, digest, encode
from keepward.core.value import plain_name
from keepward.errors import Conflict, InvalidInput, NotFound, StoreUnavailable
from keepward.ports.store import Destruction
from keepward.services.access import descendants, items_of
from keepward.services.blobs import blob_ref_of, refs_of
from keepward.services.erasure_references import (
    CERTIFICATE_KIND,
    COUNTS_KIND,
    ErasedText,
    erased_text_of,
    erasure_counts,
    fingerprints,
    fold_text,
    mentions_content,
    receipt_without_content,
    residual_details,
)
from keepward.services.following import Followers, followers, following_steps, shortened_in
from keepward.services.identity import editions_of
from keepward.services.request_context import Engine, RequestContext
from keepward.services.reranker import stop_step, training_data_to_remove
from keepward.services.system_records import RERANKER
from keepward.services.transaction import store_steps
from keepward.storage.documents import ReceiptArtefact
from keepward.storage.writer import UnitOfWork

#: Most characters that a plan shows of a text.
_MAX_EXCERPT_LENGTH = 200
_PLAN_CHANGED = "what would be erased has changed since it was planned; look at the new plan"

__all__ = ["ErasePlan", "Erased", "Selection", "erase", "plan", "replay"]


def plan(session: RequestContext, *, reason: str = "request", **targets: Any) -> ErasePlan:
    """Return what an erasure would destroy; change nothing. ``targets`` are the parameters of ``_selection``.

    Raises:
        NotFound: nothing is selected.
        Conflict: everything selected was erased already.
        InvalidInput: no selection, or an unknown reason.
    """
    return collect_scope(session, _selection(session, **targets), reason).plan


def erase(session: RequestContext, digest: str, *, reason: str, **targets: Any) -> Erased:
    """Apply the plan with this digest.

    Raises:
        Conflict: the plan has another digest now; nothing was changed.
        Otherwise as in ``plan``.
    """
    chosen = _selection(session, **targets)
    found = collect_scope(session, chosen, reason)
    if found.plan.digest != digest:
        raise Conflict(_PLAN_CHANGED)
    return _apply(session, found, sources=chosen.source)


def _selection(
    session: RequestContext,
    *,
    ids: Sequence[str] = (),
    subject: str | None = None,
    source: str | None = None,
    include_citing: bool = False,
) -> Selection:
    # Without a selector at a user's scope, all memories of that user are meant.
    user = None if ids or subject or source else user_of(session.scope)
    citing = include_citing or user is not None
    return Selection(ids=tuple(ids), subject=subject, source=source, user=user, include_citing=citing)


def _apply(
    session: RequestContext,
    found: ErasureScope,
    *,
    sources: str | None = None,
    unchanged: Record | None = None,
) -> Erased:
    plan, now = found.plan, session.clock.now()
    key = _fingerprint_key(session.engine)
    prints: dict[str, tuple[str, ...]] = {}
    for target in plan.targets:
        versions = found.histories[target.id]
        refs = (
            [sources]
            if sources and any(sources in (*version.evidence, *version.aliases) for version in versions)
            else []
        )
        refs += [version.blob for version in versions if version.blob is not None and version.blob in plan.blobs]
        prints[target.id] = fingerprints(key, session.tenant, versions, refs) if key else ()
    steps = []
    for name, own in prints.items():
        last = found.histories[name][-1]
        before = None if name in found.proposed else last
        after = tombstone(
            last if before else replace(last, version=0), now=now, by=session.actor.label, fingerprints=own
        )
        steps.append(Step(op="erase", before=before, after=after))
    ids = set(prints)
    shortened = following_steps(session, Followers(shortened=found.following.shortened))
    if not ids and unchanged is None:
        unchanged = _unchanged_memory(session, found)
    steps += shortened
    if unchanged is not None:
        # Only versions of memories that stay lose content: a step of one of them, unchanged, records the commit.
        steps.append(Step(op="redact", before=unchanged, after=replace(unchanged, version=unchanged.version + 1)))
    weights = [name for kind, name in plan.artefacts if kind == RERANKER]
    if weights and (step := stop_step(session)) is not None:
        steps.append(step)
    places = [*plan.versions, *((seq, DETAILS) for seq in plan.details)]

    def destroy(writer: UnitOfWork) -> None:
        # No other process writes meanwhile: if the side tables are not as planned, the plan is void.
        again = scan_side_tables(session.for_transaction(writer), ids | found.rewritten, found.traces, found.queued)
        if again.content() != found.side_tables.content():
            raise Conflict(_PLAN_CHANGED)
        writer.destroy(
            session.tenant,
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
        blobs = writer.documents(StoredBlob, session.tenant)
        if any(not writer.drop_blob(session.tenant, ref) and blobs.rows(id=ref) for ref in plan.blobs):
            raise Conflict(_PLAN_CHANGED)
        for name in weights:
            writer.put(ReceiptArtefact(session.tenant, RERANKER, name, ""))
        writer.put(ReceiptArtefact(session.tenant, COUNTS_KIND, steps[0].after.id, erasure_counts(plan, found.queued)))

    try:
        stored = store_steps(
            session,
            steps,
            base={step.after.id: step.after.version - 1 for step in steps},
            reason=plan.reason,
            kind="erase",
            details={"erased": tuple(format_event_position(place) for place in places)},
            receipt_kind="erase",
            also=destroy,
        )
    except Conflict as exc:
        raise Conflict(_PLAN_CHANGED) from exc
    session.engine.uses.forget(session.tenant, ids)
    session.indexes.erase(session.store, session.tenant)
    session.engine.rerankers.clear()
    return Erased(plan=_without_texts(plan), commit=stored.commit, receipt=stored.receipt)


def _without_texts(plan: ErasePlan) -> ErasePlan:
    return replace(
        plan,
        targets=tuple(replace(target, text="") for target in plan.targets),
        shortened=tuple(replace(summary, text="") for summary in plan.shortened),
        candidates=tuple(replace(candidate, text="") for candidate in plan.candidates),
    )


def _unchanged_memory(session: RequestContext, found: ErasureScope) -> Record:
    """Return a memory that an erased proposal would have changed: its unchanged step records the commit."""
    items = session.store.documents(Proposal, session.tenant).list(ids=found.queued)
    names = sorted({step.after.id for item in items for step in item.steps})
    return session.store.records(session.tenant, names).records[0]


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


def replay(session: RequestContext, entries: Sequence[dict[str, Any]]) -> int:
    """Apply, to an older copy, the erasures of this tenant that it lacks; return the number of positions and proposals.

    ``entries`` are those of the erasure list. One applies if an event position still has exactly the erased content.
    """
    promises = {promise for entry in entries for _, _, promise in entry["places"]}
    cells: dict[EventPosition, str] = {}
    own: dict[int, CommitDetails] = {}
    for commit, events in session.store.events(session.tenant):
        here = [event for event in events if event.payload and event.payload_commit.hex() in promises]
        cells |= {(event.seq, event.n): event.memory_id for event in here}
        details = _details_of(commit)
        if details is not None and commit.commitment().hex() in promises:
            own[commit.seq] = residual_details(details)
            cells.setdefault((commit.seq, DETAILS), events[0].memory_id)
    wanted = {name for entry in entries for name in (*entry["memories"], *entry.get("proposals", ()))}
    proposals = session.store.documents(Proposal, session.tenant)
    named = {item.id: item for item in (*proposals.list(ids=wanted), *proposals.list(refs=wanted)) if item.steps}
    queued = sorted(
        item.id
        for item in named.values()
        if not wanted.isdisjoint({item.id, *(record.id for record in _records_of(item))})
    )
    if not cells and not queued:
        return 0
    found = session.store.records(session.tenant, sorted(wanted)).records
    ids = (*sorted(record.id for record in found if record.status is not Status.ERASED), *queued)
    empty = ErasureScope(seen=JournalHits(), side_tables=SideTableHits(), traces=erased_text_of(()), histories={})
    gathered = collect_scope(session, Selection(ids=ids), "other") if ids else empty
    seen = gathered.seen
    seen.events |= {place for place in cells if place[1] != DETAILS}
    seen.details = own | seen.details
    gathered.plan = body = _complete_plan(session.tenant, gathered, gathered.plan)
    _apply(session, gathered, unchanged=None if ids else session.reader.fetch(min(cells.values())))
    return len(body.versions) + len(body.details) + len(queued)


#: Stored texts without words of memories: those of this module, and learned weights.
_NO_TEXTS = frozenset({COUNTS_KIND, CERTIFICATE_KIND, RERANKER})


@dataclass(slots=True)
class JournalHits:
    """The findings of one pass over the journal."""

    copies: set[str] = field(default_factory=set)
    quoting: set[str] = field(default_factory=set)
    events: set[EventPosition] = field(default_factory=set)
    details: dict[int, CommitDetails] = field(default_factory=dict)
    #: By blob, the event positions and memories that refer to it.
    blobs: dict[str, set[tuple[EventPosition, str]]] = field(default_factory=dict)


@dataclass(slots=True)
class SideTableHits:
    """The rows outside the journal that an erasure rewrites, in their new form."""

    receipts: dict[str, dict[str, Any]] = field(default_factory=dict)
    proposals: list[Proposal] = field(default_factory=list)
    artefacts: list[tuple[str, str]] = field(default_factory=list)
    feedback: tuple[Feedback, ...] = ()

    def content(self) -> tuple[Any, ...]:
        """Return what would be written, without times."""
        return [item.id for item in self.proposals], self.receipts, self.artefacts, self.feedback


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
    plan: ErasePlan = _EMPTY_PLAN


def collect_scope(session: RequestContext, chosen: Selection, reason: str) -> ErasureScope:
    named, queued, named_proposals = _select_ids(session, chosen)
    proposed = _proposed_records(session, chosen, queued, named_proposals)
    copies: set[str] = set()
    #: By id, why a memory is included.
    included: dict[str, str] = {}
    every = session.store.find(session.tenant, EVERYTHING, live_at=None, limit=None).records
    while True:
        ids = named | copies | included.keys()
        histories = {name: [step.after for step in session.store.steps(session.tenant, name)] for name in sorted(ids)}
        held = [record for versions in proposed.values() for record in versions]
        held += editions_of(session, ids, queued)
        traces = erased_text_of([*(record for versions in histories.values() for record in versions), *held])
        following = followers(session, ids, ended=True)
        if following.removed:
            included |= dict.fromkeys(following.removed, "quotes")
            continue
        extracts = {*following.shortened, *following.clean}
        lineage = set(descendants(session, ids)) - ids - extracts
        names = _citing_names(every, histories | proposed, lineage)
        citing = {record.id for record in every if record.id in names} - ids - lineage - extracts
        citing_proposals = _citing_proposals(session, names, {*ids, *lineage, *extracts, *citing}, queued)
        if chosen.include_citing and (lineage or citing or citing_proposals):
            included |= {**dict.fromkeys(citing, "cites"), **dict.fromkeys(lineage, "derived")}
            queued |= citing_proposals.keys()
            proposed |= _proposed_records(session, chosen, set(citing_proposals), set(citing_proposals))
            continue
        quoting = _versions_with_lines(session, following, ids)
        seen = _scan_journal(session, ids, lineage, traces, quoting)
        if seen.copies <= copies:
            break
        copies |= seen.copies
    histories |= proposed
    rewritten = frozenset(name for name, versions in quoting.items() if versions)
    side_tables = scan_side_tables(session, {*ids, *proposed, *rewritten}, traces, queued)
    blobs = _blobs_to_erase(session, seen, side_tables)
    why = {**dict.fromkeys(copies, "copy"), **included, **dict.fromkeys(named, "named")}
    why |= dict.fromkeys(proposed, "proposed")
    targets = tuple(
        Target(
            id=name,
            versions=0 if name in proposed else len(histories[name]),
            why=why[name],
            text=_excerpt(session, histories[name][-1]),
        )
        for name in sorted({*ids, *proposed})
    )
    found = ErasureScope(
        seen=seen,
        side_tables=side_tables,
        traces=traces,
        histories=histories,
        proposed=frozenset(proposed),
        queued=frozenset(queued),
        following=following,
        rewritten=rewritten,
    )
    derived, quotes = tuple(sorted(lineage)), tuple(sorted(seen.quoting - ids - lineage))
    stay = {**dict.fromkeys(derived, "derived"), **dict.fromkeys(sorted(citing), "cites")}
    stay = {**dict.fromkeys(quotes, "quotes"), **stay}
    texts = {record.id: _excerpt(session, record) for record in every if record.id in stay}
    erased_proposals = {item.id for item in side_tables.proposals}
    asked = {name: _excerpt(session, after) for name, after in citing_proposals.items() if name not in erased_proposals}
    stay, texts = {**stay, **dict.fromkeys(asked, "cites")}, texts | asked
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
        shortened=shortened_in(session, following),
    )
    found.plan = _complete_plan(session.tenant, found, plan)
    return found


def _versions_with_lines(session: RequestContext, found: Followers, targets: Collection[str]) -> dict[str, set[int]]:
    """Return, by id of each summary of quotes that stays, its versions with a line of a target."""
    histories = [
        [step.after for step in session.store.steps(session.tenant, name)] for name in (*found.shortened, *found.clean)
    ]
    #: By id of a summary, the lines of targets that some version has. Sources are older than what quotes them.
    lines: dict[str, set[str]] = {}
    quoting: dict[str, set[int]] = {}
    for versions in sorted(histories, key=lambda versions: (versions[-1].created_at, versions[-1].id)):
        name = versions[-1].id
        own, places = lines.setdefault(name, set()), quoting.setdefault(name, set())
        for version in versions:
            _, parts = lines_by_source(version) or ([], [])
            for source, part in zip(version.derived_from, parts, strict=False):
                taken = part if source in targets else [line for line in part if line in lines.get(source, ())]
                if taken:
                    own.update(taken)
                    places.add(version.version)
    return quoting


def _citing_names(every: Sequence[Record], histories: Mapping[str, Sequence[Record]], lineage: set[str]) -> set[str]:
    """Return the names of these memories and of those that cite one of them, over any number of steps."""
    cited_by: dict[str, set[str]] = {}
    for record in every:
        if record.status is Status.ERASED or record.scope == RESERVED_SCOPE:
            continue
        for name in (*record.evidence, *record.derived_from):
            cited_by.setdefault(name, set()).add(record.id)
    names = {record.id: record.aliases for record in every}
    fresh = {*histories, *lineage}
    fresh |= {alias for versions in histories.values() for record in versions for alias in record.aliases}
    found: set[str] = set()
    while fresh:
        found |= fresh
        more = {name for cited in fresh for name in cited_by.get(cited, ())}
        fresh = {*more, *(alias for name in more for alias in names[name])} - found
    return found


def _citing_proposals(
    session: RequestContext, names: Collection[str], known: Collection[str], queued: Collection[str]
) -> dict[str, Record]:
    """Return, by proposal id, the memory it would store that cites one of these names.

    Proposals about ``known`` memories, which are erased with these, and those in ``queued`` are left out. A decided
    proposal counts as long as its content is stored.
    """
    return {
        item.id: step.after
        for item in session.store.documents(Proposal, session.tenant).list(refs=names)
        if item.state != "approved"
        and item.id not in queued
        and not any(side.id in known for side in _records_of(item))
        for step in reversed(item.steps)
        if not {*step.after.evidence, *step.after.derived_from}.isdisjoint(names)
    }


def _excerpt(session: RequestContext, record: Record) -> str:
    """Return the first characters of a text, as a plan shows them, if the handle may read it."""
    text = session.reader.hide_content(record).text
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


def _select_ids(session: RequestContext, chosen: Selection) -> tuple[set[str], set[str], set[str]]:
    """Return ids of memories and of proposals in any state: visible ones by name, others by subject or source.

    The third set has the proposals by name alone.

    A subject or source selects in the entire tenant.
    """
    if not (chosen.ids or chosen.subject or chosen.source or chosen.user):
        raise InvalidInput("say what to erase: ids, a subject or a source; or ask at a user")
    found: dict[str, Record] = {}
    named: set[str] = set()
    for name in chosen.ids:
        item = session.store.documents(Proposal, session.tenant).get(name, prefix=True)
        if item is None:
            record = session.reader.fetch_only(name)
            found[record.id] = record
        elif item.steps:
            named.add(item.id)
    queued = set(named)
    every: Sequence[Record] = ()
    if chosen.subject or chosen.source or chosen.user:
        every = session.store.find(session.tenant, EVERYTHING, live_at=None, limit=None).records
        for record in every:
            if _is_chosen(record, chosen):
                found[record.id] = record
        for item in session.store.documents(Proposal, session.tenant).list():
            if any(_is_chosen(side, chosen) for side in _records_of(item)):
                queued.add(item.id)
    left = {name for name, record in found.items() if record.status is not Status.ERASED}
    if found and not left and not queued:
        raise Conflict(f"this was erased already: tombstone {min(found)}")
    if not left and not queued:
        folded = (chosen.subject or chosen.user or "").casefold()
        alike = sum(each.subject is not None and each.subject.casefold() == folded for each in every)
        other = f"; {alike} of a subject in other capitals: names count letter by letter" if alike else ""
        raise NotFound(f"nothing here is of that subject, source or user{other}")
    return left, queued, named


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
    session: RequestContext, chosen: Selection, queued: set[str], named: set[str]
) -> dict[str, list[Record]]:
    """Return, by id, the memories that exist only in the chosen proposals: all of the named ones."""
    items = session.store.documents(Proposal, session.tenant).list(ids=queued)
    asked = {step.after.id: step.after for item in items for step in item.steps if step.before is None}
    known = {record.id for record in session.store.records(session.tenant, sorted(asked)).records}
    whole = {step.after.id for item in items if item.id in named for step in item.steps}
    return {
        name: [after]
        for name, after in sorted(asked.items())
        if name not in known and (name in whole or _is_chosen(after, chosen))
    }


def _scan_journal(
    session: RequestContext, ids: set[str], lineage: set[str], traces: ErasedText, quoting: Mapping[str, set[int]]
) -> JournalHits:
    """Read the journal once: find versions to erase, copies, quotations, and details that mention the content.

    ``quoting`` has the summaries of quotes that stay, with their versions to erase.
    """
    seen = JournalHits()
    like: dict[str, tuple[int, bool]] = {}
    for commit, events in session.store.events(session.tenant):
        for event in events:
            if event.payload is None:
                continue
            ref = blob_ref_of(event.payload)
            if ref is not None:
                seen.blobs.setdefault(ref, set()).add(((event.seq, event.n), event.memory_id))
            if event.memory_id in ids:
                seen.events.add((event.seq, event.n))
                continue
            if event.memory_id in quoting:
                if event.version in quoting[event.memory_id]:
                    seen.events.add((event.seq, event.n))
                continue
            _scan_event(event, like, lineage, traces, seen)
        details = _details_of(commit)
        own = [event.memory_id in ids for event in events]
        if details is not None and mentions_content(details, traces, own=any(own), only=all(own)):
            seen.details[commit.seq] = residual_details(details)
    # A memory whose newest version copies a target is erased; one with an earlier copy loses that version.
    seen.copies = {name for name, (_, copied) in like.items() if copied}
    return seen


def _blobs_to_erase(session: RequestContext, seen: JournalHits, side_tables: SideTableHits) -> tuple[str, ...]:
    """Return the blobs of targets without other references; a memory with such a reference counts as quoting."""
    erased = []
    stubs = {item.id for item in side_tables.proposals}
    pending = session.store.documents(Proposal, session.tenant).list(state="pending", refs=seen.blobs)
    waits = refs_of(item for item in pending if item.id not in stubs)
    for ref, named in sorted(seen.blobs.items()):
        if not any(place in seen.events for place, _ in named):
            continue
        others = {name for place, name in named if place not in seen.events}
        seen.quoting |= others
        if not others and ref not in waits:
            erased.append(ref)
    return tuple(erased)


def _scan_event(
    event: Event, like: dict[str, tuple[int, bool]], lineage: set[str], traces: ErasedText, seen: JournalHits
) -> None:
    assert event.payload is not None
    name = event.memory_id
    record = decode_record(event.payload)
    text = record.text
    contained = bool(text) and traces.within(text)
    # Another picture with the same description is no copy: a person decides on it.
    own = record.blob is not None and fold_text(record.blob) not in traces.names
    # What another user said stays, and a person decides on it.
    other = user_of(record.scope) not in {None, *traces.users}
    copied = contained and not own and not other and (traces.equals(text) or name in lineage)
    if name in like or copied:
        like[name] = (event.version, copied)
    if copied:
        seen.events.add((event.seq, event.n))
    elif contained or traces.quoted_in(record.metadata):
        seen.quoting.add(name)


def _details_of(commit: Commit) -> CommitDetails | None:
    if commit.payload is None or commit.kind == "erase":
        return None
    return decode_details(commit.payload)


def scan_side_tables(
    session: RequestContext, ids: set[str], traces: ErasedText, queued: Collection[str] = ()
) -> SideTableHits:
    stored = session.store.documents(ReceiptArtefact, session.tenant).list()
    artefacts = [(kind, version) for _, kind, version, text in stored if kind not in _NO_TEXTS and traces.within(text)]
    proposals = [
        _proposal_stub(session, item)
        for item in session.store.documents(Proposal, session.tenant).list()
        if item.id in queued or _mentions_erased(item, ids, traces)
    ]
    documents = {version for _, version in artefacts}
    names = {item.id for item in proposals}
    receipts, showing = {}, set()
    for body in session.store.receipts(session.tenant):
        if not items_of(body).keys().isdisjoint(ids):
            showing.add(body["id"])
        cleaned = receipt_without_content(body, ids, names, documents, traces)
        if cleaned is not body:
            receipts[body["id"]] = cleaned
    feedback, weights = training_data_to_remove(session, ids, showing, stored)
    artefacts += [(RERANKER, name) for name in weights]
    return SideTableHits(receipts=receipts, proposals=proposals, artefacts=artefacts, feedback=feedback)


def _mentions_erased(item: Proposal, ids: set[str], traces: ErasedText) -> bool:
    records = _records_of(item)
    texts = [item.reason, *(record.text for record in records)]
    own = any(record.id in ids or not ids.isdisjoint(record.derived_from) for record in records)
    return own or any(traces.within(text) for text in texts if text)


def _proposal_stub(session: RequestContext, item: Proposal) -> Proposal:
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
        decided_by=session.actor.label if pending else item.decided_by,
        decision="what it would have stored was erased" if pending or item.decision else None,
        decided_at=session.clock.now() if pending else item.decided_at,
    )
