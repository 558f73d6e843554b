"""Inquiries: where a memory comes from, what a source touched, and why two contexts differ. Nothing is written.

Invariants
(1) Every field that holds something has one origin: the newest commit that changed it.
(2) A bisection keeps nothing and counts no use: the contexts it compiles are given to nobody.
(3) A comparison is read from two receipts and the journal. Each item that differs has a commit, where one between the
    two heads changed what is shown or whether it holds, and a sentence in any case.
(4) An impact is whole: the direct memories, everything derived from them over any number of steps, and every compiled
    context that held any of it, in one tenant, across its scopes. A context counts when its own receipt, which is
    sealed, names the memory.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from keepward.engine.contexts import text_at
from keepward.engine.read import history
from keepward.engine.review import AMENDED
from keepward.engine.session import Session
from keepward.engine.view import COMPILED, closure, commit_of, fetch, handed_in, proven, readable, receipt_of_read
from keepward.errors import InvalidInput, NotFound, Unauthorised
from keepward.model.commit import Commit, CommitDetails, Event, Step, decode_details
from keepward.model.journal import (
    Bisection,
    Blame,
    CommitView,
    ContextDifference,
    ContextItem,
    Delivery,
    Impact,
    Origin,
    Selector,
    Version,
)
from keepward.model.memory import FIELDS, READ_FIELDS, VERSION_FIELDS
from keepward.model.proposal import Waiting
from keepward.model.trust import is_actor
from keepward.model.value import from_micros


def blame(session: Session, name: str) -> Blame:
    """Return the origins of a memory's values; ``name`` is its id, a key or an alias, seen from the handle's scope.

    Raises:
        NotFound: neither a memory nor a key of this name is within reach.
    """
    record = fetch(session, name)
    versions = history(session, record.id)
    names = {each.details.proposal for each in versions if each.details.proposal}
    items = [session.store.documents(Waiting, session.tenant).get(name, prefix=True) for name in sorted(names)]
    proposed = {item.id: item for item in items if item is not None}
    origins: list[Origin] = []
    for field in FIELDS:
        value = getattr(record, field)
        made = _maker(versions, field)
        if field in {*VERSION_FIELDS, *READ_FIELDS} or (made.record.version == 1 and value in (None, (), "", {})):
            continue
        origins.append(
            Origin(
                field=field,
                value=value,
                version=made.record.version,
                made=made,
                actor=_writer(made, field, proposed.get(made.details.proposal or "")),
                source=made.record.source,
                approved_by=made.details.approved_by,
            )
        )
    return Blame(record=record, origins=tuple(origins))


def _writer(made: Version, field: str, item: Waiting | None) -> str:
    """Return who gave a field its value: the proposer, but for what the reviewer has amended."""
    if item is None:
        return made.details.actor
    if item.decision != AMENDED:
        return item.proposer.label
    asked = next((step.after for step in item.steps if step.after.id == made.record.id), None)
    same = asked is not None and getattr(asked, field) == getattr(made.record, field)
    return item.proposer.label if same else made.details.actor


def _maker(versions: list[Version], field: str) -> Version:
    """Return the newest version that changed a field, or the first."""
    for earlier, later in zip(versions[-2::-1], versions[:0:-1], strict=True):
        if getattr(earlier.record, field) != getattr(later.record, field):
            return later
    return versions[0]


def bisect(
    session: Session, query: str, predicate: Callable[[str], bool], *, since: int = 0, purpose: str = "answer"
) -> Bisection:
    """Return the commit with which the context for a query began to pass a predicate, in about log2(n) compiles.

    ``since`` is a commit whose context does not pass, 0 for the empty store. Where the answer changed more
    than once in between, it is one of the changes to passing.

    Raises:
        InvalidInput: the newest context does not pass, or that of ``since`` does.
    """
    high = session.store.head(session.tenant).seq
    if not 0 <= since <= high:
        raise NotFound("there is no such commit in this tenant; `keepward log` lists them")

    def text(seq: int) -> str:
        # Before the first commit nothing is remembered; what comes from documents does not hang on commits.
        return text_at(session, query, seq, purpose=purpose) if seq else ""

    texts = {since: text(since), high: text(high)}
    if not predicate(texts[high]):
        raise InvalidInput("the context after the newest commit does not pass: there is nothing to look for")
    if predicate(texts[since]):
        raise InvalidInput("the context at the start passes already: begin at an earlier commit")
    low = since
    while high - low > 1:
        middle = (low + high) // 2
        texts[middle] = text(middle)
        if predicate(texts[middle]):
            high = middle
        else:
            low = middle
    view = readable(session, commit_of(session, str(high)))
    return Bisection(commit=view, compiled=len(texts), before=texts[low], after=texts[high])


_Held = Mapping[str, tuple[int, str]]


def context_diff(session: Session, first: str, second: str) -> ContextDifference:
    """Return what differs between the contexts of two receipts.

    Raises:
        NotFound: one of them is not a compile receipt within reach.
    """
    a, b = (receipt_of_read(session, name, COMPILED) for name in (first, second))
    before, after = _held(a), _held(b)
    names = [
        *(("added", name) for name in sorted(after.keys() - before.keys())),
        *(("removed", name) for name in sorted(before.keys() - after.keys())),
        *(("changed", name) for name in sorted(before.keys() & after.keys()) if before[name][0] != after[name][0]),
    ]
    asked = {**a["inputs"], **a["documents"]}, {**b["inputs"], **b["documents"]}
    return ContextDifference(
        first=first,
        second=second,
        same=a["digests"]["text"] == b["digests"]["text"],
        items=tuple(_item(session, change, name, (a, before), (b, after)) for change, name in names),
        inputs={
            name: (asked[0].get(name), asked[1].get(name))
            for name in sorted(asked[0].keys() | asked[1].keys())
            if asked[0].get(name) != asked[1].get(name)
        },
    )


def _held(receipt: Mapping[str, Any]) -> dict[str, tuple[int, str]]:
    return {item["id"]: (item["version"], part["name"]) for part in receipt["sections"] for item in part["items"]}


def _item(
    session: Session,
    change: Any,
    name: str,
    first: tuple[Mapping[str, Any], _Held],
    second: tuple[Mapping[str, Any], _Held],
) -> ContextItem:
    (a, before), (b, after) = first, second
    low, high = sorted(int(each["inputs"]["head"].split(":")[0]) for each in (a, b))
    touched = [
        (view, step)
        for view, step in session.store.history(session.tenant, name)
        if low < view.commit.seq <= high and _shows(step)
    ]
    commits = [readable(session, view) for view, _ in touched]
    commit = commits[-1] if commits else None
    return ContextItem(
        id=name,
        change=change,
        section=(after.get(name) or before[name])[1],
        before=before[name][0] if name in before else None,
        after=after[name][0] if name in after else None,
        commit=commit,
        commits=tuple(commits),
        why=_why(session, name, commits, b if change == "removed" else a, (a, b)),
    )


def _why(
    session: Session,
    memory_id: str,
    commits: Sequence[CommitView],
    lacking: Mapping[str, Any],
    both: tuple[Mapping[str, Any], Mapping[str, Any]],
) -> str:
    if commits:
        return "; ".join(map(_sentence, commits))
    for left in lacking["excluded"]:
        if left["id"] == memory_id:
            return f"left out of the other: {left['detail']} ({left['code']})"
    ends = [each.expires_at for each in session.store.records(session.tenant, [memory_id]).records]
    if any(at is not None and at <= from_micros(lacking["inputs"]["now"]) for at in ends):
        return "its term ended between the two"
    differ = [name for name in sorted(both[0]["inputs"]) if both[0]["inputs"][name] != both[1]["inputs"].get(name)]
    asked = [name for name in differ if name not in {"head", "now"}]
    if asked:
        return f"the two were asked differently: {', '.join(asked)}"
    return "it ranks otherwise among what was remembered in between"


def _sentence(view: CommitView) -> str:
    ops = ", ".join(dict.fromkeys(step.op for step in view.steps))
    return f"commit {view.commit.seq} ({ops}) by {view.details.actor}: {view.details.reason}"


def _shows(step: Step) -> bool:
    """Whether a step changes the line of a memory or where it may stand, and not its bookkeeping alone."""
    before, after = step.before, step.after
    return before is None or any(getattr(before, name) != getattr(after, name) for name in _SHOWN)


#: The fields of a memory that its line, its section or its place in a context depend on.
_SHOWN = (
    *("text", "key", "kind", "tier", "scope", "status", "speaker", "occurred_at", "trust", "heard", "sensitivity"),
    *("stability", "content_type", "expires_at"),
)
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


def impact(session: Session, selector: Selector) -> Impact:
    """Return what was touched.

    A source is a class such as ``web`` or a reference that stands in evidence; an actor is ``kind:name``.

    Raises:
        Unauthorised: it spans every scope of the tenant, and takes a reviewer or the owner.
        NotFound: there is no such commit or memory.
        Tampered: the journal does not hold, so that nothing can be said of it as a whole.
    """
    if not session.actor.may_decide:
        raise Unauthorised("an impact spans every scope; it takes a reviewer or the owner")
    touched = _direct(session, selector)
    derived = closure(session, touched)
    found = session.store.records(session.tenant, [*touched, *derived])
    records = {record.id: record for record in found.records}
    contexts, unproven = _contexts(session, touched, derived)
    return Impact(
        selector=selector,
        direct=tuple(records[name] for name in touched if name in records),
        derived=tuple(records[name] for name in derived if name in records),
        contexts=contexts,
        waiting=tuple(
            item.id
            for item in session.store.documents(Waiting, session.tenant).list(state="pending")
            if _concerns(item, selector, {*touched, *derived})
        ),
        damaged=(*found.damaged, *unproven),
    )


def _direct(session: Session, selector: Selector) -> dict[str, int]:
    """Return the version from which each memory was touched, in journal order."""
    match selector.way:
        case "memory":
            return {fetch(session, selector.value).id: 1}
        case "commit":
            steps = reversed(commit_of(session, selector.value).steps)
            # Of several the first counts.
            return dict(reversed({step.after.id: step.after.version for step in steps}.items()))
        case "source":
            return _by_source(session, selector.value)
    proposed = {item.id: item for item in session.store.documents(Waiting, session.tenant).list()}

    def by_actor(details: CommitDetails, _: Mapping[str, Any]) -> bool:
        item = proposed.get(details.proposal or "")
        # An approver lets through what somebody else said; who amends it says some of it.
        writers = {details.actor} if item is None or item.decision == AMENDED else set()
        writers |= {item.proposer.label} if item is not None else set()
        return any(is_actor(writer, selector.value) for writer in writers)

    def by_session(details: CommitDetails, payload: Mapping[str, Any]) -> bool:
        return selector.value in {details.session, payload.get("session")}

    return _scan(session, by_actor if selector.way == "actor" else by_session)


def _scan(session: Session, matches: Callable[[CommitDetails, Mapping[str, Any]], bool]) -> dict[str, int]:
    touched: dict[str, int] = {}
    for commit, event, payload in _said(session):
        view = None if commit.payload is not None else session.store.commit(session.tenant, commit.id)
        # Where an erasure took the details, what remains of them still says who it was.
        if matches(view.details if view else decode_details(commit.payload or b""), payload):
            touched.setdefault(event.memory_id, event.version)
    return touched


def _said(session: Session) -> Iterable[tuple[Commit, Event, Mapping[str, Any]]]:
    for commit, events in session.store.events(session.tenant):
        for event in events:
            if event.op in _SAYS and event.payload is not None:
                yield commit, event, json.loads(event.payload)


def _by_source(session: Session, name: str) -> dict[str, int]:
    touched: dict[str, int] = {}
    heirs: set[str] = set()
    for _, event, payload in _said(session):
        named = name in payload.get("evidence", ())
        # What is derived inherits the evidence of its parents; it counts as derived.
        inherited = any(parent in touched or parent in heirs for parent in payload.get("derived_from", ()))
        if payload["source"] == name or (named and not inherited):
            touched.setdefault(event.memory_id, event.version)
        elif inherited:
            heirs.add(event.memory_id)
    return touched


def _contexts(
    session: Session, touched: Mapping[str, int], derived: Iterable[str]
) -> tuple[tuple[Delivery, ...], list[str]]:
    held = handed_in(session, {**dict.fromkeys(derived, 1), **touched})
    found = {name: proven(session, name, pairs) for name, pairs in held.items()}
    deliveries = sorted(filter(None, found.values()), key=lambda each: (each.at, each.receipt))
    return tuple(deliveries), [name for name, each in found.items() if each is None]


def _concerns(item: Waiting, selector: Selector, ids: set[str]) -> bool:
    if selector.way == "actor" and is_actor(item.proposer.label, selector.value):
        return True
    for step in item.steps:
        after = step.after
        by_source = selector.way == "source" and (after.source == selector.value or selector.value in after.evidence)
        by_session = selector.way == "session" and after.session == selector.value
        if by_source or by_session or after.id in ids or not ids.isdisjoint(after.derived_from):
            return True
    return False
