"""Provenance: what happened to memories, which actors changed them, and who read them. Nothing is written.

The history of a memory comes from the journal; ``reader`` decides what a caller may see.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence, Set
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from msgspec.structs import replace

from keepward.core.browse import Lineage, LineageEdge, LineageNode
from keepward.core.commit import decode_details
from keepward.core.journal import (
    Blame,
    CommitPage,
    CommitView,
    DamagedCommit,
    Delivery,
    Differences,
    Impact,
    Origin,
    Selector,
)
from keepward.core.memory import READ_FIELDS, RECORD_FIELDS, VERSION_FIELDS, Record, Status, as_read
from keepward.core.principals import is_actor, is_person
from keepward.core.proposal import Proposal
from keepward.core.query import AsOf
from keepward.core.reducer import has_same_text
from keepward.core.serialization import is_new_text
from keepward.core.wording import Wording
from keepward.errors import InvalidInput, NotFound, Tampered
from keepward.services.access import context_deliveries
from keepward.services.reading.recall import seq_of
from keepward.services.reading.visible import VisibleReader, seq_of_entry
from keepward.services.review.decisions import AMENDED

if TYPE_CHECKING:
    from keepward.services.request_context import RequestContext

#: Memories of one lineage, and characters of each text that are shown.
MAX_RELATIVES = 200
MAX_EXCERPT_LENGTH = 160
#: The fields of an impact that have memories.
_MEMORIES = ("direct", "derived", "corrected")
#: The kinds of selectors of an impact.
SELECTOR_KINDS = ("source", "actor", "session", "commit", "memory")
#: Operations that write text; others confirm, move or end what was written.
_TEXT_OPERATIONS = frozenset({"insert", "replace", "append", "promote"})


def log(
    context: RequestContext,
    *,
    limit: int,
    before: int | None,
    actor: str | None = None,
    kind: str | None = None,
    until: AsOf = None,
) -> CommitPage:
    """Return the commits of which the handle may read something, newest first, and the damaged ones among them.

    ``actor`` made or approved them, as ``kind:name`` or by name alone; ``until`` is the state after the newest one.
    Damaged ones do not count for ``limit``, but no more than that are named.
    """
    if until is not None:
        last = (seq_of(context, until) or 0) + 1
        before = last if before is None else min(before, last)
    items: list[CommitView] = []
    damaged: list[DamagedCommit] = []
    next_before = None
    for entry in VisibleReader(context).commits(before=before, page=limit, kind=kind, actor=actor):
        if isinstance(entry, DamagedCommit):
            damaged.append(entry)
        elif actor is None or any(
            is_actor(name, actor) for name in (entry.details.actor, entry.details.approved_by or "")
        ):
            items.append(entry)
        if limit in {len(items), len(damaged)}:
            next_before = seq_of_entry(entry)
            break
    return CommitPage(
        items=tuple(items),
        next_before=next_before if next_before != 1 else None,
        damaged=tuple(damaged),
        notes=tuple(each.note for each in damaged),
    )


def show(context: RequestContext, commit: str) -> CommitView:
    """Return the visible part of one commit, by its id, the beginning of its id, or its number.

    Of a damaged one it returns what can be read; ``damage`` says what cannot.

    Raises:
        NotFound: no such commit is visible.
        Tampered: nothing of it can be read.
    """
    return _with_steps(context, VisibleReader(context).commit(commit, partly=True))


def _with_steps(context: RequestContext, view: CommitView) -> CommitView:
    """Return a commit that has a visible step.

    Raises:
        NotFound: it has none.
        Tampered: it is damaged, so that this is not known.
    """
    if view.steps or (view.damage and VisibleReader(context).oversees_all):
        return view
    if view.damage:
        raise Tampered(view.damage[0])
    raise NotFound("there is no such commit in this tenant; `keepward log` lists them")


def diff(
    context: RequestContext, earlier: AsOf, later: AsOf, *, offset: int = 0, limit: int | None = 50
) -> Differences:
    """Return a page of the visible memories that differ between the states after two commits, by id.

    Those that differ in importance and uses only come last.
    """
    seqs = seq_of(context, earlier), seq_of(context, later)
    return VisibleReader(context).differences(*seqs, offset=offset, limit=limit)


def blame(context: RequestContext, name: str) -> Blame:
    """Return the newest commit that changed each value of a memory, and the actor that gave the value.

    ``name`` is an id, a key or an alias, seen from the handle's scope.

    Raises:
        NotFound: no visible memory has this name.
    """
    reader = VisibleReader(context)
    try:
        record = reader.fetch(name)
        found = reader.history(record.id)
    except Tampered:
        # Its newest version is damaged: an earlier one may be readable.
        found = reader.history(name)
        if not found.items:
            raise
        record = found[-1].record
    versions = found.items
    if not versions:
        raise Tampered(f"nothing of memory {record.id} can be read but what is in use; run `keepward verify`")
    names = {each.details.proposal for each in versions if each.details.proposal}
    proposed = {
        name: context.store.documents(Proposal, context.tenant).get(name, prefix=True) for name in sorted(names)
    }
    origins: list[Origin] = []
    unknown: list[str] = []
    for field in (name for name in RECORD_FIELDS if name not in {*VERSION_FIELDS, *READ_FIELDS}):
        value, version = getattr(record, field), versions[0]
        if value != getattr(versions[-1].record, field):
            # A version after the last readable one brought it.
            unknown.append(field)
            continue
        for earlier, later in pairwise(versions):
            if getattr(earlier.record, field) != getattr(later.record, field):
                version = later
        if version.record.version == 1 and value in (None, (), "", {}):
            continue
        giver = version
        if version.op == "revert":
            # A rollback brought the value back; another version gave it.
            giver = next((each for each in versions if getattr(each.record, field) == value), version)
        actor, item = giver.details.actor, proposed.get(giver.details.proposal or "")
        if item is not None:
            after = next((step.after for step in item.steps if step.after.id == record.id), None)
            # A reviewer who amends a proposal gives some of its values.
            if item.decision != AMENDED or (after and getattr(after, field) == value):
                actor = item.proposer.label
        origins.append(
            Origin(
                field=field,
                value=value,
                version=version.record.version,
                made=version,
                actor=actor,
                source=version.record.source,
                approved_by=giver.details.approved_by,
            )
        )
    notes = found.notes
    if unknown:
        notes += (f"who gave {', '.join(unknown)} is not known: the version that did cannot be read",)
    return Blame(record=record, origins=tuple(origins), notes=notes)


def lineage(context: RequestContext, memory_id: str) -> Lineage:
    """Return the memories that one was made from and those made from it, the nearest first, at most 200.

    Each is shown as ``get`` would return it. ``hidden`` counts the invisible ones that a visible one names.

    Raises:
        NotFound, Unauthorised: as in ``get``.
    """
    reader = VisibleReader(context)
    start = reader.fetch(memory_id)
    found, depths, edges = {start.id: start}, {start.id: 0}, set[LineageEdge]()
    replaced = context.store.predecessors(context.tenant)
    elsewhere, left_out = set[str](), set[str]()
    for direction in (-1, 1):
        names = [start.id]
        while names:
            near = _lineage_edges(context, found, replaced, names, direction)
            edges |= near
            ids = {name for edge in near for name in (edge.before, edge.after)} - found.keys()
            read, names = reader.records(sorted(ids)), []
            named = {name for record in found.values() for name in (*record.derived_from, record.superseded_by)}
            elsewhere |= read.elsewhere & named
            for record in read.records:
                if len(found) >= MAX_RELATIVES:
                    left_out.add(record.id)
                else:
                    own = [(edge.before, edge.after) for edge in near if record.id in (edge.before, edge.after)]
                    known = {name for pair in own for name in pair} & depths.keys()
                    depths[record.id] = direction + min((depths[name] for name in known), key=abs)
                    found[record.id] = record
                    names.append(record.id)
    now = context.clock.now()
    memories = [
        LineageNode(
            id=record.id,
            text=record.text[:MAX_EXCERPT_LENGTH],
            tier=record.tier.value,
            kind=record.kind.value,
            status=record.status_at(now).value,
            trust=record.trust.label,
            source=record.source,
            version=record.version,
            depth=depths[record.id],
        )
        for record in found.values()
    ]
    shown = [edge for edge in edges if edge.before in found and edge.after in found]
    return Lineage(
        id=start.id,
        memories=tuple(sorted(memories, key=lambda node: (node.depth, node.id))),
        bonds=tuple(sorted(shown, key=lambda edge: (edge.before, edge.after, edge.how))),
        hidden=len(elsewhere),
        left_out=len(left_out),
    )


def _lineage_edges(
    context: RequestContext,
    found: Mapping[str, Record],
    replaced: Mapping[str, Sequence[str]],
    names: Sequence[str],
    direction: int,
) -> set[LineageEdge]:
    """Return the edges from memories to their sources, or with a positive direction to what was made from them."""
    records = [found[name] for name in names]
    if direction < 0:
        derived = {(parent, record.id) for record in records for parent in record.derived_from}
        superseded = {(old, name) for name in names for old in replaced.get(name, ())}
    else:
        derived = VisibleReader(context).derivations(names)
        superseded = {(record.id, record.superseded_by) for record in records if record.superseded_by is not None}
    return {
        LineageEdge(before=before, after=after, how=how)
        for how, pairs in (("derived", derived), ("superseded", superseded))
        for before, after in pairs
    }


def selector_of(**ways: str | None) -> Selector:
    """Return the one selector that was given.

    Raises:
        InvalidInput: none or several were given, or an empty one.
    """
    given = [(way, value) for way, value in ways.items() if value is not None]
    if len(given) != 1 or not isinstance(given[0][1], str) or not given[0][1].strip():
        raise InvalidInput(f"name exactly one of {', '.join(SELECTOR_KINDS)}")
    return Selector(way=given[0][0], value=given[0][1])


def impact(context: RequestContext, /, **ways: str | None) -> Impact:
    """Return what a single source, actor, session, commit or memory touched.

    These are memories, those derived from them, and every context with one of these. A source is a class such as
    ``web`` or a reference in evidence; an actor is ``kind:name``. A context counts if its own sealed receipt names the
    memory at a version with the text in question. A memory is corrected if nothing of its text is from there any more;
    what was derived from it before the correction still counts.

    Raises:
        Unauthorised: it takes a reviewer or the owner.
        NotFound: there is no such commit or memory.
        InvalidInput: none or several of them were given.
        Tampered: the journal is corrupt, so that the impact is not known.
    """
    return read_impact(context, impact_since(context, selector_of(**ways))[0])


def read_impact(context: RequestContext, found: Impact) -> Impact:
    """Return an impact with its memories as a read returns them, decayed up to now."""
    now = context.clock.now()
    parts = {name: tuple(as_read(each, now) for each in getattr(found, name)) for name in _MEMORIES}
    return replace(found, **parts)


def impact_since(context: RequestContext, selector: Selector) -> tuple[Impact, dict[str, int]]:
    """Return an impact, and the version from which on each direct memory was touched."""
    VisibleReader(context).check_decider("an impact")
    touched, writers = _touched_versions(context, selector)
    found = VisibleReader(context).overseen([*touched])
    records = {record.id: record for record in found.records}
    corrected = {
        name: correction
        for name in touched
        if name in records and (correction := _correction(context, records[name], writers.get(name, set())))
    }
    derived, damaged = _derived_records(context, touched, corrected)
    records |= derived
    since = {**dict.fromkeys((*derived, *damaged), 1), **touched}
    delivered = context_deliveries(context, since, {name: each.version for name, each in corrected.items()})
    contexts: list[Delivery] = []
    for name, pairs in delivered.items():
        try:
            contexts += filter(None, [VisibleReader(context).delivery(name, pairs)])
        except Tampered:
            damaged.append(name)
    found_impact = Impact(
        selector=selector,
        direct=tuple(records[name] for name in touched if name in records and name not in corrected),
        derived=tuple(derived[name] for name in derived if name not in corrected),
        corrected=tuple(records[name] for name in corrected),
        contexts=tuple(sorted(contexts, key=lambda delivery: (delivery.at, delivery.receipt))),
        waiting=tuple(
            item.id
            for item in context.store.documents(Proposal, context.tenant).list(state="pending")
            if VisibleReader(context).sees_all_of(item) and _concerns(item, selector, {*since})
        ),
        damaged=(*found.damaged, *damaged),
    )
    return found_impact, touched


class _Correction(NamedTuple):
    """The version from which on a text is by another writer, and the number of its commit."""

    version: int
    seq: int


#: A label, and for a person's text its source: a person who quotes a page may say the opposite afterwards.
_Writer: TypeAlias = tuple[str, str | None]


def _writer(label: str, source: str) -> _Writer:
    return label, source if is_person(label) else None


def _correction(context: RequestContext, record: Record, writers: Set[_Writer]) -> _Correction | None:
    """Return since when nothing of a memory's text is by these writers; None if something still is."""
    if not writers or record.status is Status.ERASED:
        return None
    wording, since = Wording[_Writer](), None
    for view, step in context.store.history(context.tenant, record.id):
        after = step.after
        wording.add(after.text, _writer(after.text_by, after.source), after.text_at)
        is_others = writers.isdisjoint({*wording.present, *((label, None) for label, _ in wording.present)})
        since = (since or _Correction(after.version, view.commit.seq)) if is_others else None
    return since


def _derived_records(
    context: RequestContext, touched: Collection[str], corrected: dict[str, _Correction]
) -> tuple[dict[str, Record], list[str]]:
    """Return what was derived from memories over any number of steps, by id, and the ids of what cannot be read.

    What was derived from a memory after its correction is left out. Corrected derived memories are added to
    ``corrected``.
    """
    derived, damaged = dict[str, Record](), list[str]()
    known = {*touched}
    added = sorted(known)
    while added:
        children = context.store.children(context.tenant, added)
        found = VisibleReader(context).overseen([name for name in children if name not in known])
        damaged += found.damaged
        added = [*found.damaged]
        for record in found.records:
            parents = known.intersection(record.derived_from)
            if parents <= corrected.keys():
                made = context.store.history(context.tenant, record.id)[0][0].commit.seq
                if all(made > corrected[name].seq for name in parents):
                    continue
            derived[record.id] = record
            added.append(record.id)
            if correction := _correction(context, record, {(record.author, None)}):
                corrected[record.id] = correction
        known |= {*added}
    return dict(sorted(derived.items())), damaged


def _touched_versions(context: RequestContext, selector: Selector) -> tuple[dict[str, int], dict[str, set[_Writer]]]:
    """Return, in journal order, the version from which on each memory was touched, and who wrote the touched texts."""
    way, value = selector.way, selector.value
    if way == "memory":
        return {VisibleReader(context).fetch(value).id: 1}, {}
    touched: dict[str, int] = {}
    writers: dict[str, set[_Writer]] = {}
    if way == "commit":
        for step in _with_steps(context, VisibleReader(context).commit(value)).steps:
            touched.setdefault(step.after.id, step.after.version)
            if step.before is None or not has_same_text(step.before, step.after):
                writers.setdefault(step.after.id, set()).add(_writer(step.after.text_by, step.after.source))
        return touched, writers
    proposed = (
        {item.id: item for item in context.store.documents(Proposal, context.tenant).list()} if way == "actor" else {}
    )
    inheriting: set[str] = set()
    for commit, events in context.store.events(context.tenant):
        writes = [
            (event, json.loads(event.payload))
            for event in events
            if event.op in _TEXT_OPERATIONS and event.payload is not None
        ]
        if not writes:
            continue
        # After an erasure of the details, the rest of them still names the actor.
        view = None if commit.payload is not None else context.store.commit(context.tenant, commit.id)
        details = view.details if view else decode_details(commit.payload or b"")
        item = proposed.get(details.proposal or "")
        # An approver only approves another actor's text; a reviewer who amends it wrote some of it.
        actors = {details.actor} if item is None or item.decision == AMENDED else set()
        actors |= {item.proposer.label} if item is not None else set()
        selected = {actor for actor in actors if way == "actor" and is_actor(actor, value)}
        for event, payload in writes:
            # A derived memory inherits the evidence of its parents; it counts as derived.
            inherited = any(parent in touched or parent in inheriting for parent in payload.get("derived_from", ()))
            named = value in payload.get("evidence", ()) and not inherited
            by_source = way == "source" and (payload["source"] == value or named)
            by_session = way == "session" and value in {details.session, payload.get("session")}
            if selected or by_source or by_session:
                own, by = writers.setdefault(event.memory_id, set()), payload.get("text_by", payload["author"])
                said = payload["source"]
                # Evidence and session stay in the fields when another writer rewrites the text.
                is_given = value in {said, details.session} or event.memory_id not in touched
                if selected:
                    own |= {_writer(label, said) for label in selected} if is_new_text(payload) else set()
                elif is_given:
                    own.add(_writer(by, said))
                touched.setdefault(event.memory_id, event.version)
            elif inherited:
                inheriting.add(event.memory_id)
    return touched, writers


def _concerns(item: Proposal, selector: Selector, ids: set[str]) -> bool:
    """Whether a proposal comes from what was selected, or builds on one of these memories."""
    way, value = selector.way, selector.value
    if way == "actor" and is_actor(item.proposer.label, value):
        return True
    for after in (step.after for step in item.steps):
        by_source = way == "source" and (after.source == value or value in after.evidence)
        by_session = way == "session" and after.session == value
        if by_source or by_session or after.id in ids or not ids.isdisjoint(after.derived_from):
            return True
    return False
