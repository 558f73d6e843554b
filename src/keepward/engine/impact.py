"""Impact: what a source, an actor, a session, a commit or a memory touched, down to the contexts it reached.

Invariants
(1) Whole: the direct memories, everything derived from them over any number of steps, and every compiled
    context that held any of it; in one tenant, across its scopes.
(2) A context counts when its own receipt, which is sealed, names the memory.
(3) Nothing is written.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from keepward.engine.kit import Kit, Who
from keepward.engine.view import fetch
from keepward.errors import InvalidInput, NotFound, Tampered, Unauthorised
from keepward.model.commit import Commit, CommitDetails, Event, decode_details
from keepward.model.inquiry import Delivery, Impact, Selector
from keepward.model.proposal import Waiting

#: What an impact can be asked by.
WAYS = ("source", "actor", "session", "commit", "memory")
#: Ops that say something; the others confirm, move or end what was said.
_SAYS = frozenset({"insert", "replace", "append", "promote"})


def selector_of(**ways: str | None) -> Selector:
    """Return the one way that was given.

    Raises:
        InvalidInput: none or several were, or it is empty.
    """
    given = [(way, value) for way, value in ways.items() if value is not None]
    if len(given) != 1 or not isinstance(given[0][1], str) or not given[0][1].strip():
        raise InvalidInput(f"name exactly one of {', '.join(WAYS)}")
    return Selector(way=given[0][0], value=given[0][1])


def impact(kit: Kit, who: Who, selector: Selector) -> Impact:
    """Return what was touched.

    A source is a class such as ``web`` or a reference that stands in evidence; an actor is ``kind:name``.

    Raises:
        Unauthorised: it spans every scope of the tenant, and takes a reviewer or the owner.
        NotFound: there is no such commit or memory.
        Tampered: the journal does not hold, so that nothing can be said of it as a whole.
    """
    if not who.actor.may_decide:
        raise Unauthorised("an impact spans every scope; it takes a reviewer or the owner")
    touched = _direct(kit, who, selector)
    derived = closure(kit, who, touched)
    found = kit.store.records(who.tenant, [*touched, *derived])
    records = {record.id: record for record in found.records}
    contexts, unproven = _contexts(kit, who, touched, derived)
    return Impact(
        selector=selector,
        direct=tuple(records[name] for name in touched if name in records),
        derived=tuple(records[name] for name in derived if name in records),
        contexts=contexts,
        waiting=tuple(
            item.id for item in kit.store.queue(who.tenant) if _concerns(item, selector, {*touched, *derived})
        ),
        damaged=(*found.damaged, *unproven),
    )


def _direct(kit: Kit, who: Who, selector: Selector) -> dict[str, int]:
    """Return the version from which each memory was touched, in journal order."""
    match selector.way:
        case "memory":
            return {fetch(kit, who, selector.value).id: 1}
        case "commit":
            view = kit.store.commit(who.tenant, selector.value)
            if view is None:
                raise NotFound("there is no such commit in this tenant; `keepward log` lists them")
            touched: dict[str, int] = {}
            for step in view.steps:
                touched.setdefault(step.after.id, step.after.version)
            return touched
        case "source":
            return _by_source(kit, who, selector.value)
    proposers = {item.id: item.proposer.label for item in kit.store.queue(who.tenant, state=None)}

    def by_actor(details: CommitDetails, _: Mapping[str, Any]) -> bool:
        # An approver lets through what somebody else said.
        writer = proposers.get(details.proposal or "", details.actor)
        return _is_actor(writer, selector.value)

    def by_session(details: CommitDetails, payload: Mapping[str, Any]) -> bool:
        return selector.value in {details.session, payload.get("session")}

    return _scan(kit, who, by_actor if selector.way == "actor" else by_session)


def _is_actor(label: str, named: str) -> bool:
    return named in {label, label.partition(":")[2]}


def _scan(kit: Kit, who: Who, matches: Callable[[CommitDetails, Mapping[str, Any]], bool]) -> dict[str, int]:
    touched: dict[str, int] = {}
    for commit, event, payload in _said(kit, who):
        view = None if commit.payload is not None else kit.store.commit(who.tenant, commit.id)
        # Where an erasure took the details, what remains of them still says who it was.
        if matches(view.details if view else decode_details(commit.payload or b""), payload):
            touched.setdefault(event.memory_id, event.version)
    return touched


def _said(kit: Kit, who: Who) -> Iterable[tuple[Commit, Event, Mapping[str, Any]]]:
    for commit, events in kit.store.events(who.tenant):
        for event in events:
            if event.op in _SAYS and event.payload is not None:
                yield commit, event, json.loads(event.payload)


def _by_source(kit: Kit, who: Who, name: str) -> dict[str, int]:
    touched: dict[str, int] = {}
    heirs: set[str] = set()
    for _, event, payload in _said(kit, who):
        named = name in payload.get("evidence", ())
        # What is derived inherits the evidence of its parents; it counts as derived.
        inherited = any(parent in touched or parent in heirs for parent in payload.get("derived_from", ()))
        if payload["source"] == name or (named and not inherited):
            touched.setdefault(event.memory_id, event.version)
        elif inherited:
            heirs.add(event.memory_id)
    return touched


def closure(kit: Kit, who: Who, touched: Iterable[str]) -> list[str]:
    """Return the ids of what was made from memories over any number of steps, sorted, without these themselves."""
    start = set(touched)
    found: set[str] = set()
    fresh = sorted(start)
    while fresh:
        fresh = [name for name in kit.store.children(who.tenant, fresh) if name not in found and name not in start]
        found.update(fresh)
    return sorted(found)


def _contexts(
    kit: Kit, who: Who, touched: Mapping[str, int], derived: Iterable[str]
) -> tuple[tuple[Delivery, ...], list[str]]:
    since = {**dict.fromkeys(derived, 1), **touched}
    held: dict[str, set[tuple[str, int]]] = {}
    for memory_id, version, receipt_id in kit.store.deliveries(who.tenant, list(since)):
        if version >= since[memory_id]:
            held.setdefault(receipt_id, set()).add((memory_id, version))
    deliveries: list[Delivery] = []
    unproven: list[str] = []
    for receipt_id, pairs in held.items():
        try:
            receipt = kit.store.receipt(who.tenant, receipt_id)
        except Tampered:
            unproven.append(receipt_id)
            continue
        if receipt is None or not pairs <= _named(receipt):
            unproven.append(receipt_id)
            continue
        deliveries.append(
            Delivery(
                receipt=receipt_id,
                at=receipt["at"],
                actor=receipt["actor"],
                purpose=receipt["inputs"]["purpose"],
                items=tuple(sorted(pairs)),
            )
        )
    return tuple(sorted(deliveries, key=lambda each: (each.at, each.receipt))), unproven


def _named(receipt: Mapping[str, Any]) -> set[tuple[str, int]]:
    return {(item["id"], item["version"]) for section in receipt.get("sections", ()) for item in section["items"]}


def _concerns(item: Waiting, selector: Selector, ids: set[str]) -> bool:
    if selector.way == "actor" and _is_actor(item.proposer.label, selector.value):
        return True
    for step in item.steps:
        after = step.after
        by_source = selector.way == "source" and (after.source == selector.value or selector.value in after.evidence)
        by_session = selector.way == "session" and after.session == selector.value
        if by_source or by_session or after.id in ids or not ids.isdisjoint(after.derived_from):
            return True
    return False
