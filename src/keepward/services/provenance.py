"""Provenance: what happened to memories, who made it happen, and who was shown them. Nothing is written.

The history of a memory is read from the journal. `reader` says what a caller may see.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import islice, pairwise
from typing import TYPE_CHECKING

from keepward.core.browse import Lineage, LineageEdge, LineageNode
from keepward.core.commit import decode_details
from keepward.core.journal import Blame, CommitView, Difference, Impact, Origin, Selector
from keepward.core.memory import READ_FIELDS, RECORD_FIELDS, VERSION_FIELDS, Record
from keepward.core.principals import is_actor
from keepward.core.proposal import Proposal
from keepward.core.query import AsOf, check_limit
from keepward.errors import InvalidInput, NotFound
from keepward.services.access import commit_of, context_deliveries, descendants
from keepward.services.read import seq_of
from keepward.services.review import AMENDED

if TYPE_CHECKING:
    from keepward.services.request_context import RequestContext

#: Memories of one lineage, and characters that are shown of the text of each.
MAX_RELATIVES = 200
MAX_EXCERPT_LENGTH = 160
#: What an impact can be asked by.
SELECTOR_KINDS = ("source", "actor", "session", "commit", "memory")
#: Ops that say something; the others confirm, move or end what was said.
_TEXT_OPERATIONS = frozenset({"insert", "replace", "append", "promote"})


def log(
    session: RequestContext,
    *,
    limit: int,
    before: int | None,
    actor: str | None = None,
    kind: str | None = None,
    until: AsOf = None,
) -> list[CommitView]:
    """Return the commits of which the handle may read something, newest first.

    ``actor`` made or approved them, as ``kind:name`` or by name alone; ``until`` is the moment of the newest.
    """
    check_limit(limit)
    if until is not None:
        last = (seq_of(session, until) or 0) + 1
        before = last if before is None else min(before, last)
    found = (
        view
        for view in session.reader.commits(before=before, page=limit, kind=kind, actor=actor)
        if actor is None or any(is_actor(name, actor) for name in (view.details.actor, view.details.approved_by or ""))
    )
    return list(islice(found, limit))


def show(session: RequestContext, commit: str) -> CommitView:
    """Return one commit, by its id, the first letters of it, or its number, with what the handle may read of it.

    Raises:
        NotFound: no such commit within reach.
    """
    view = session.reader.commit(commit)
    if not view.steps:
        raise NotFound("there is no such commit in this tenant; `keepward log` lists them")
    return view


def diff(session: RequestContext, earlier: AsOf, later: AsOf) -> list[Difference]:
    """Return the memories within reach that differ between the states after two commits, by id."""
    return session.reader.differences(seq_of(session, earlier), seq_of(session, later))


def blame(session: RequestContext, name: str) -> Blame:
    """Return the newest commit that changed each value of a memory, and who gave the value.

    ``name`` is its id, a key or an alias, seen from the handle's scope.

    Raises:
        NotFound: neither a memory nor a key of this name is within reach.
    """
    record = session.reader.fetch(name)
    versions = session.reader.history(record.id)
    names = {each.details.proposal for each in versions if each.details.proposal}
    proposed = {
        name: session.store.documents(Proposal, session.tenant).get(name, prefix=True) for name in sorted(names)
    }
    origins: list[Origin] = []
    for field in (name for name in RECORD_FIELDS if name not in {*VERSION_FIELDS, *READ_FIELDS}):
        value, made = getattr(record, field), versions[0]
        for earlier, later in pairwise(versions):
            if getattr(earlier.record, field) != getattr(later.record, field):
                made = later
        if made.record.version == 1 and value in (None, (), "", {}):
            continue
        actor, item = made.details.actor, proposed.get(made.details.proposal or "")
        if item is not None:
            asked = next((step.after for step in item.steps if step.after.id == record.id), None)
            # A reviewer who amends a proposal gives it some of its values.
            if item.decision != AMENDED or (asked and getattr(asked, field) == getattr(made.record, field)):
                actor = item.proposer.label
        origins.append(
            Origin(
                field=field,
                value=value,
                version=made.record.version,
                made=made,
                actor=actor,
                source=made.record.source,
                approved_by=made.details.approved_by,
            )
        )
    return Blame(record=record, origins=tuple(origins))


def lineage(session: RequestContext, memory_id: str) -> Lineage:
    """Return what a memory was made from and what was made of it, the nearest first, at most 200.

    A relative is shown as ``get`` would return it. Relatives out of reach are counted alone.

    Raises:
        NotFound, Unauthorised: as for ``get``.
    """
    reader = session.reader
    start = reader.fetch(memory_id)
    found, depths, bonds = {start.id: start}, {start.id: 0}, set[LineageEdge]()
    replaced = session.store.predecessors(session.tenant)
    elsewhere, left_out = set[str](), set[str]()
    for direction in (-1, 1):
        names = [start.id]
        while names:
            near = _lineage_edges(session, found, replaced, names, direction)
            bonds |= near
            wanted = {name for bond in near for name in (bond.before, bond.after)} - found.keys()
            read, names = reader.records(sorted(wanted)), []
            elsewhere |= read.elsewhere
            for record in read.records:
                if len(found) >= MAX_RELATIVES:
                    left_out.add(record.id)
                else:
                    ends = [(bond.before, bond.after) for bond in near if record.id in (bond.before, bond.after)]
                    through = {name for pair in ends for name in pair} & depths.keys()
                    depths[record.id] = direction + min((depths[each] for each in through), key=abs)
                    found[record.id] = record
                    names.append(record.id)
    now = session.clock.now()
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
    known = [bond for bond in bonds if bond.before in found and bond.after in found]
    return Lineage(
        id=start.id,
        memories=tuple(sorted(memories, key=lambda each: (each.depth, each.id))),
        bonds=tuple(sorted(known, key=lambda each: (each.before, each.after, each.how))),
        hidden=len(elsewhere),
        left_out=len(left_out),
    )


def _lineage_edges(
    session: RequestContext,
    found: Mapping[str, Record],
    replaced: Mapping[str, Sequence[str]],
    names: Sequence[str],
    direction: int,
) -> set[LineageEdge]:
    """Return the bonds of memories to what they came from, or with a direction above 0 to what came of them."""
    records = [found[name] for name in names]
    if direction < 0:
        derived = {(parent, each.id) for each in records for parent in each.derived_from}
        superseded = {(old, name) for name in names for old in replaced.get(name, ())}
    else:
        derived = session.reader.derivations(names)
        superseded = {(each.id, each.superseded_by) for each in records if each.superseded_by is not None}
    return {
        LineageEdge(before=before, after=after, how=how)
        for how, pairs in (("derived", derived), ("superseded", superseded))
        for before, after in pairs
    }


def selector_of(**ways: str | None) -> Selector:
    """Return the one way that was given.

    Raises:
        InvalidInput: none or several were, or it is empty.
    """
    given = [(way, value) for way, value in ways.items() if value is not None]
    if len(given) != 1 or not isinstance(given[0][1], str) or not given[0][1].strip():
        raise InvalidInput(f"name exactly one of {', '.join(SELECTOR_KINDS)}")
    return Selector(way=given[0][0], value=given[0][1])


def impact(session: RequestContext, selector: Selector) -> Impact:
    """Return the memories that something touched, all derived from them, and every context that held any of these.

    A source is a class such as ``web`` or a reference that stands in evidence; an actor is ``kind:name``. A context
    counts when its own receipt, which is sealed, names the memory.

    Raises:
        Unauthorised: it spans every scope of the tenant, and takes a reviewer or the owner.
        NotFound: there is no such commit or memory.
        Tampered: the journal does not hold, so that nothing can be said of it as a whole.
    """
    session.reader.check_every_scope("an impact")
    touched = _touched_versions(session, selector)
    derived = descendants(session, touched)
    found = session.reader.overseen([*touched, *derived])
    records = {record.id: record for record in found.records}
    held = context_deliveries(session, {**dict.fromkeys(derived, 1), **touched})
    contexts = {name: session.reader.delivery(name, pairs) for name, pairs in held.items()}
    return Impact(
        selector=selector,
        direct=tuple(records[name] for name in touched if name in records),
        derived=tuple(records[name] for name in derived if name in records),
        contexts=tuple(sorted(filter(None, contexts.values()), key=lambda each: (each.at, each.receipt))),
        waiting=tuple(
            item.id
            for item in session.store.documents(Proposal, session.tenant).list(state="pending")
            if _concerns(item, selector, {*touched, *derived})
        ),
        damaged=(*found.damaged, *(name for name, each in contexts.items() if each is None)),
    )


def _touched_versions(session: RequestContext, selector: Selector) -> dict[str, int]:
    """Return the version from which each memory was touched, in journal order."""
    way, value = selector.way, selector.value
    if way == "memory":
        return {session.reader.fetch(value).id: 1}
    touched: dict[str, int] = {}
    if way == "commit":
        for step in commit_of(session, value).steps:
            touched.setdefault(step.after.id, step.after.version)
        return touched
    proposed = (
        {each.id: each for each in session.store.documents(Proposal, session.tenant).list()} if way == "actor" else {}
    )
    heirs: set[str] = set()
    for commit, events in session.store.events(session.tenant):
        said = [
            (each, json.loads(each.payload))
            for each in events
            if each.op in _TEXT_OPERATIONS and each.payload is not None
        ]
        if not said:
            continue
        # Where an erasure took the details, what remains of them still says who it was.
        view = None if commit.payload is not None else session.store.commit(session.tenant, commit.id)
        details = view.details if view else decode_details(commit.payload or b"")
        item = proposed.get(details.proposal or "")
        # An approver lets through what somebody else said; a reviewer who amends it says some of it.
        writers = {details.actor} if item is None or item.decision == AMENDED else set()
        writers |= {item.proposer.label} if item is not None else set()
        by_actor = way == "actor" and any(is_actor(writer, value) for writer in writers)
        for event, payload in said:
            # What is derived inherits the evidence of its parents; it counts as derived.
            inherited = any(parent in touched or parent in heirs for parent in payload.get("derived_from", ()))
            named = value in payload.get("evidence", ()) and not inherited
            by_source = way == "source" and (payload["source"] == value or named)
            by_session = way == "session" and value in {details.session, payload.get("session")}
            if by_actor or by_source or by_session:
                touched.setdefault(event.memory_id, event.version)
            elif inherited:
                heirs.add(event.memory_id)
    return touched


def _concerns(item: Proposal, selector: Selector, ids: set[str]) -> bool:
    """Whether a proposal is of what was selected, or builds on any of these memories."""
    way, value = selector.way, selector.value
    if way == "actor" and is_actor(item.proposer.label, value):
        return True
    for after in (step.after for step in item.steps):
        by_source = way == "source" and (after.source == value or value in after.evidence)
        by_session = way == "session" and after.session == value
        if by_source or by_session or after.id in ids or not ids.isdisjoint(after.derived_from):
            return True
    return False
