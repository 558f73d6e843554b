"""Shapes: what verbs return, as JSON values from which a client can rebuild the values of the library.

Invariants
(1) A field that holds a commit or a receipt gives its id; the whole of it stands beside, as ``commit_header`` and
    ``receipt_record``. Every other field stands under its own name.
(2) Keys are a contract: they are added to and never renamed.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from functools import cache
from typing import Any

from keepward import present
from keepward.errors import KeepwardError
from keepward.http.problems import STATUS
from keepward.memory import Memory
from keepward.model.commit import Commit, Reason, Receipt
from keepward.model.journal import CommitView, Difference, Version
from keepward.model.memory import Record
from keepward.model.proposal import Committed, Decided, Duplicate, Outcome, Quarantined, Refused, Waiting
from keepward.model.query import Recall
from keepward.model.trust import Actor

#: Fields that are given by id with the whole beside them (1).
BESIDE: dict[Any, str] = {Commit: "header", Receipt: "record"}


def shape(value: Any) -> Any:
    """Return any value of a verb as JSON values, by (1)."""
    match value:
        case Record():
            return present.record(value)
        case CommitView():
            return commit_view(value)
        case Version():
            return version(value)
        case Waiting():
            return waiting(value)
        case Committed() | Quarantined() | Refused() | Duplicate():
            return outcome(value)
        case Actor():
            return actor(value)
        case Reason():
            return value.as_dict()
        case Decided():
            return decided(value)
        case Difference():
            return present.difference(value)
        case Mapping():
            return {str(key): shape(item) for key, item in value.items()}
        case list() | tuple():
            return [shape(item) for item in value]
        case Commit() | Receipt():
            return present.plain(value)
        case _ if dataclasses.is_dataclass(value) and not isinstance(value, type):
            return _fields(value)
    return present.plain(value)


def _fields(value: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    kind: Any = type(value)
    beside = beside_of(kind)
    for each in dataclasses.fields(value):
        item = getattr(value, each.name)
        if each.name in beside:
            found[each.name] = item.id if item is not None else None
            found[f"{each.name}_{beside[each.name]}"] = None if item is None else present.plain(item)
        else:
            found[each.name] = shape(item)
    return found


@cache
def beside_of(kind: type) -> dict[str, str]:
    """Return the fields of a dataclass that stand by (1), each with what the whole is called."""
    # By the text of the annotation: a name that only type checkers import cannot be looked up.
    names = {part.__name__: word for part, word in BESIDE.items()}
    told = {each.name: str(each.type).removesuffix(" | None") for each in dataclasses.fields(kind)}
    return {field: names[text] for field, text in told.items() if text in names}


def actor(value: Actor) -> dict[str, Any]:
    """Return a principal; ``can`` is null where it can do all that its class can."""
    return {
        "kind": value.kind.value,
        "name": value.name,
        "rights": value.rights.value,
        "credential": value.credential,
        "can": None if value.can is None else sorted(value.can),
    }


def outcome(result: Outcome) -> dict[str, Any]:
    """Return what became of a write: as ``present.outcome`` tells it, and everything it is made of."""
    return {
        **present.outcome(result),
        "records": [present.record(each) for each in result.records],
        "commit_header": None if result.commit is None else present.plain(result.commit),
        "receipt_record": present.plain(result.receipt),
        "waiting": waiting(result.item) if result.item else None,
    }


def waiting(item: Waiting) -> dict[str, Any]:
    """Return a proposal with its diff and the digest that an approval is bound to."""
    return {
        **present.waiting(item),
        "tenant": item.tenant,
        "told": item.told,
        "proposer_actor": actor(item.proposer),
    }


def reviewed(memory: Memory, item: Waiting) -> dict[str, Any]:
    """Return a proposal as its reviewer needs it: ``shown`` has every character that would be stored."""
    return {**waiting(item), "shown": present.plain(memory.shown(item))}


def decided(item: Decided) -> dict[str, Any]:
    """Return what became of one proposal of many."""
    return {
        "id": item.id,
        "ok": item.ok,
        "outcome": None if item.outcome is None else outcome(item.outcome),
        "receipt": item.receipt.id if item.receipt else None,
        "receipt_record": present.plain(item.receipt) if item.receipt else None,
        "error": None if item.error is None else failure(item.error),
    }


def failure(fault: KeepwardError) -> dict[str, Any]:
    """Return an error that is part of an answer."""
    return {"code": fault.code, "detail": str(fault), "status": STATUS.get(fault.code, 500)}


def commit_view(view: CommitView, *, events: bool = True) -> dict[str, Any]:
    """Return a commit; ``events`` hold each memory before and after, null where they were not asked for."""
    return {
        **present.commit(view),
        "commit_header": present.plain(view.commit),
        "details": present.plain(view.details),
        "events": [present.step(each) for each in view.steps] if events else None,
    }


def version(item: Version) -> dict[str, Any]:
    """Return one version of a memory and the commit that made it."""
    return {
        "version": item.record.version,
        "op": item.op,
        "commit": item.commit.id,
        "seq": item.commit.seq,
        "at": present.instant(item.commit.at),
        "actor": item.details.actor,
        "approved_by": item.details.approved_by,
        "reason": item.details.reason,
        "receipt": item.details.receipt,
        "record": present.record(item.record),
        "before": item.before and present.record(item.before),
        "changed": present.changed(item.before, item.record),
        "commit_header": present.plain(item.commit),
        "details": present.plain(item.details),
    }


def recall(found: Recall, *, start: int = 0, cursor: str | None = None) -> dict[str, Any]:
    """Return the answer to a query from one hit on; ``memory`` of a hit is the whole record."""
    hits = [
        {
            **present.hit(each),
            "exact_score": each.score,
            "exact_parts": dict(sorted(each.parts.items())),
            "memory": present.record(each.memory),
        }
        for each in found.hits[start:]
    ]
    return {**present.recall(dataclasses.replace(found, hits=())), "hits": hits, "cursor": cursor}
