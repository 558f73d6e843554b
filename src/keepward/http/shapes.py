"""Shapes: what verbs return, as JSON values from which a client can rebuild the values of the library.

Invariants
(1) A field that holds a commit or a receipt gives its id; the whole of it stands beside, as ``commit_header`` and
    ``receipt_record``. Every other field stands under its own name.
(2) Keys are a contract: they are added to and never renamed.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
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

#: Fields that are given by id with the whole beside them (1).
BESIDE: dict[Any, str] = {Commit: "header", Receipt: "record"}


def shape(value: Any) -> Any:
    """Return any value of a verb as JSON values, by (1)."""
    if made := _SHAPES.get(type(value)):
        return made(value)
    match value:
        case Mapping():
            return {str(key): shape(item) for key, item in value.items()}
        case list() | tuple():
            return [shape(item) for item in value]
        case KeepwardError():
            return failure(value)
        case _ if dataclasses.is_dataclass(value) and not isinstance(value, type):
            return _fields(value)
    return present.plain(value)


def _fields(value: Any, names: str = "") -> dict[str, Any]:
    """Return the fields of a dataclass, or some of them."""
    found: dict[str, Any] = {}
    kind: Any = type(value)
    beside = beside_of(kind)
    for name in names.split() or [each.name for each in dataclasses.fields(value)]:
        item = getattr(value, name)
        if name in beside:
            found[name] = None if item is None else item.id
            found[f"{name}_{beside[name]}"] = None if item is None else present.plain(item)
        else:
            found[name] = shape(item)
    return found


@cache
def beside_of(kind: type) -> dict[str, str]:
    """Return the fields of a dataclass that stand by (1), each with what the whole is called."""
    # By the text of the annotation: a name that only type checkers import cannot be looked up.
    names = {part.__name__: word for part, word in BESIDE.items()}
    kinds: Any = kind
    told = {each.name: str(each.type).removesuffix(" | None") for each in dataclasses.fields(kinds)}
    return {field: names[text] for field, text in told.items() if text in names}


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
    return {**present.waiting(item), **_fields(item, "tenant told"), "proposer_actor": shape(item.proposer)}


def reviewed(memory: Memory, item: Waiting) -> dict[str, Any]:
    """Return a proposal as its reviewer needs it: ``shown`` has every character that would be stored."""
    return {**waiting(item), "shown": present.plain(memory.shown(item))}


def failure(fault: KeepwardError) -> dict[str, Any]:
    """Return an error that is part of an answer."""
    return {"code": fault.code, "detail": str(fault), "status": STATUS.get(fault.code, 500)}


def commit_view(view: CommitView, *, events: bool = True) -> dict[str, Any]:
    """Return a commit; ``events`` hold each memory before and after, null where they were not asked for."""
    steps = [present.step(each) for each in view.steps] if events else None
    return {**present.commit(view), **_whole(view), "events": steps}


def _version(item: Version) -> dict[str, Any]:
    return {
        "version": item.record.version,
        "commit": item.commit.id,
        **_fields(item.commit, "seq at"),
        **_fields(item.details, "actor approved_by reason receipt"),
        **_fields(item, "op record before"),
        "changed": present.changed(item.before, item.record),
        **_whole(item),
    }


def _whole(item: CommitView | Version) -> dict[str, Any]:
    return {"commit_header": present.plain(item.commit), "details": present.plain(item.details)}


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


_SHAPES: Mapping[type, Callable[[Any], Any]] = {
    Record: present.record,
    Reason: Reason.as_dict,
    Difference: present.difference,
    CommitView: commit_view,
    Version: _version,
    Waiting: waiting,
    Decided: lambda item: {**_fields(item), "ok": item.ok},
    **dict.fromkeys((Commit, Receipt), present.plain),
    **dict.fromkeys((Committed, Duplicate, Quarantined, Refused), outcome),
}
