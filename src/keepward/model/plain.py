"""Values as plain JSON values, the same for ``to_dict`` and for every surface.

Invariants
(1) Keys are a contract: a key may be added and is never renamed, retyped or dropped.
(2) Every value is text, a number, a boolean, null, a list or an object with text keys.
(3) Instants are ISO 8601 in UTC; scores and shares are numbers; what is absent is null, never left out.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from keepward.errors import KeepwardError
from keepward.model.commit import Reason, Step
from keepward.model.memory import FIELDS, READ_FIELDS, VERSION_FIELDS, Record
from keepward.model.proposal import Committed, Duplicate, Outcome, Quarantined, Refused, Waiting
from keepward.model.query import Hit, Recall
from keepward.model.value import Value

_PLAIN = frozenset({str, int, float, bool, type(None)})
#: What an outcome, a hit and a commit say of a memory, beside what is their own.
_OUTCOME = ("tier", "kind", "key", "expires_at")
_HIT = (
    *("tier", "kind", "key", "scope", "trust", "source", "confidence", "importance", "version", "tags", "metadata"),
    *("content_type", "blob", "speaker", "occurred_at", "created_at"),
)
_DETAILS = ("actor", "reason", "receipt", "policy", "session", "proposal", "approved_by", "undoes")


def instant(at: datetime | None) -> str | None:
    """Return an instant as ISO 8601 in UTC."""
    return at.astimezone(UTC).isoformat() if at else None


def plain(value: Any) -> Any:
    """Return any value of the model as JSON values: dataclasses by field, enums by name, instants by (3)."""
    match value:
        case None | bool() | int() | float():
            # An IntEnum, such as trust, has a name that people know.
            return getattr(value, "label", value)
        case str():
            return str(value)
        case datetime():
            return instant(value)
        case Record():
            return record(value)
        case Reason():
            return value.as_dict()
        case dict():
            return {str(key): plain(item) for key, item in value.items()}
        case list() | tuple():
            return [plain(item) for item in value]
        case set() | frozenset():
            return sorted(plain(item) for item in value)
        case bytes():
            return value.hex()
        case _ if dataclasses.is_dataclass(value):
            return {each.name: plain(getattr(value, each.name)) for each in dataclasses.fields(value)}
        case _:
            return str(value)


def to_dict(value: Any) -> dict[str, Any]:
    """Return a result as an object of plain JSON values: as ``--json`` prints it, else field by field."""
    match value:
        case Record():
            return record(value)
        case Hit():
            return hit(value)
        case Recall():
            return recall(value)
        case Waiting():
            return waiting(value)
        case Step():
            return step(value)
        case Committed() | Quarantined() | Refused() | Duplicate():
            return outcome(value)
    return {each.name: _within(getattr(value, each.name)) for each in dataclasses.fields(value)}


def _within(value: Any) -> Any:
    match value:
        case Value():
            return value.to_dict()
        case Mapping():
            return {str(plain(key)): _within(item) for key, item in value.items()}
        case list() | tuple():
            return [_within(item) for item in value]
        case KeepwardError():
            return {"code": value.code, "detail": str(value)}
        case timedelta():
            return value.total_seconds()
        case _ if dataclasses.is_dataclass(value):
            return to_dict(value)
    return plain(value)


def of(item: Any, names: Iterable[str]) -> dict[str, Any]:
    """Return fields of a value as JSON values."""
    # Most fields are what they are already, and a page of memories has thousands of them.
    return {name: value if type(value := getattr(item, name)) in _PLAIN else plain(value) for name in names}


def record(item: Record) -> dict[str, Any]:
    """Return a memory, every field of it: confidence and importance as read, and as stored beside."""
    return {
        **of(item, FIELDS),
        "base_confidence": item.stored_confidence,
        "base_importance": item.stored_importance,
        "metadata": item.metadata or None,
    }


def reasons(items: Iterable[Reason]) -> list[dict[str, str]]:
    """Return reasons in the order in which they were given."""
    return [item.as_dict() for item in items]


def changed(before: Record | None, after: Record | None) -> list[dict[str, Any]]:
    """Return the fields that differ, in the order of `Record`, as {field, before, after}.

    Bookkeeping is left out. One side may be missing: the other side's fields that are not empty count.
    """
    old, new = (record(side) if side else {} for side in (before, after))
    return [
        {"field": name, "before": old.get(name), "after": new.get(name)}
        for name in FIELDS
        if name not in VERSION_FIELDS and name not in READ_FIELDS
        if old.get(name) != new.get(name) and not (_empty(old.get(name)) and _empty(new.get(name)))
    ]


def _empty(value: Any) -> bool:
    return value in (None, [], "")


def difference(item: Any) -> dict[str, Any]:
    """Return how one memory differs between two states."""
    sides = (item.before, item.after)
    before, after = (side and record(side) for side in sides)
    return {"id": item.id, "before": before, "after": after, "changed": changed(*sides)}


def step(item: Step) -> dict[str, Any]:
    """Return one event: what was done to which memory, both sides, and what differs."""
    return {
        "op": item.op,
        "id": item.after.id,
        "version": item.after.version,
        "before": item.before and record(item.before),
        "after": record(item.after),
        "changed": changed(item.before, item.after),
    }


def waiting(item: Waiting) -> dict[str, Any]:
    """Return a proposal in the review queue with its diff and what an approval is bound to."""
    return {
        "id": item.id,
        "state": item.state,
        "proposer": item.proposer.label,
        "reason": item.reason,
        "reasons": reasons(item.reasons),
        "diff": [step(each) for each in item.steps],
        "base": dict(item.base),
        "base_version": max(item.base.values(), default=0),
        **of(item, ("digest", "created_at", "expires_at", "decided_by", "decision", "decided_at")),
    }


def outcome(result: Outcome) -> dict[str, Any]:
    """Return what became of a write.

    `id` and `version` are those of the memory written, proposed or found to be the same; null when
    refused. `proposal` is the id to approve when it waits.
    """
    records = [each.after for each in result.item.steps] if result.item else result.records
    first = records[0] if records else None
    return {
        "outcome": result.outcome,
        "id": first and first.id,
        "version": first and first.version,
        "commit": result.commit.id if result.commit else None,
        "proposal": result.item.id if result.item else None,
        "receipt": result.receipt.id,
        "reasons": reasons(result.reasons),
        "redacted": list(result.redacted),
        **(of(first, _OUTCOME) if first else dict.fromkeys(_OUTCOME)),
        "memories": [{"id": each.id, "version": each.version} for each in records],
    }


def hit(item: Hit) -> dict[str, Any]:
    """Return one recalled memory."""
    memory = item.memory
    return {
        "rank": item.rank,
        "id": memory.id,
        "text": memory.text,
        "score": round(item.score, 6),
        "parts": {name: round(value, 6) for name, value in sorted(item.parts.items())},
        **of(memory, _HIT),
        "metadata": memory.metadata or None,
        "why": list(item.why),
        "weak": item.weak,
    }


def recall(found: Recall) -> dict[str, Any]:
    """Return the answer to a query: how it was found, and the hits, best first."""
    hits = {"hits": [hit(item) for item in found]}
    excluded = {"excluded": [{"id": name, "reason": why} for name, why in found.excluded]}
    before, after = ("used", "notes", "head", "now"), ("reranker", "receipt", "withheld", "floor", "best", "below")
    return {**of(found, before), **hits, **excluded, **of(found, (*after, "calibration", "candidates"))}


def commit(view: Any) -> dict[str, Any]:
    """Return a commit without its events."""
    return {
        **of(view.commit, ("id", "seq", "at", "kind")),
        **of(view.details, _DETAILS),
        **of(view.commit, ("hash", "prev")),
        "changes": [{"op": each.op, **of(each.after, ("id", "version", "tier"))} for each in view.steps],
    }
