"""Values as plain JSON values, the same for ``to_dict`` and for every surface.

Most values are objects of their fields. ``SHAPES`` says once, key by key, what the others are; ``results`` and the
description of the HTTP API follow it.

Invariants
(1) Keys are a contract: a key may be added and is never renamed, retyped or dropped.
(2) Every value is text, a number, a boolean, null, a list or an object with text keys.
(3) Instants are ISO 8601 in UTC; scores and shares are numbers; what is absent is null, never left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from operator import attrgetter
from typing import Any, Literal, NamedTuple, TypedDict

from keepward.core.commit import Commit, CommitDetails, Step
from keepward.core.journal import CommitView, Difference
from keepward.core.memory import READ_FIELDS, RECORD_FIELDS, VERSION_FIELDS, Record
from keepward.core.proposal import Committed, Duplicate, Outcome, Proposal, Quarantined, Refused
from keepward.core.query import Hit, Recall
from keepward.core.value import Data
from keepward.errors import KeepwardError

_PLAIN = frozenset({str, int, float, bool, type(None)})


def format_instant(at: datetime | None) -> str | None:
    """Return an instant as ISO 8601 in UTC."""
    return at.astimezone(UTC).isoformat() if at else None


def to_plain(value: Any, of: Callable[[Any], Any] | None = None) -> Any:
    """Return any value of the model as JSON values: by its shape or its fields, enums by name, instants by (3).

    ``of`` says what a struct is, where that is something else.
    """
    match value:
        case None | bool() | int() | float():
            # An IntEnum, such as trust, has a name that people know.
            return getattr(value, "label", value)
        case str():
            return str(value)
        case datetime():
            return format_instant(value)
        case timedelta():
            return value.total_seconds()
        case Mapping():
            return {str(to_plain(key)): to_plain(item, of) for key, item in value.items()}
        case list() | tuple():
            return [to_plain(item, of) for item in value]
        case set() | frozenset():
            return sorted(to_plain(item) for item in value)
        case bytes():
            return value.hex()
        case KeepwardError():
            return {"code": value.code, "detail": str(value)}
    if not isinstance(value, Data):
        return str(value)
    return (of or _by_field)(value)


def _by_field(value: Any) -> Any:
    if isinstance(value, Record):
        return record_as_dict(value)
    shape = SHAPES.get(type(value))
    if shape is not None:
        return as_shape(value, shape)
    return {each: to_plain(getattr(value, each)) for each in value.__struct_fields__}


def record_as_dict(item: Record) -> dict[str, Any]:
    """Return a memory, every field of it: confidence and importance as read, and as stored beside."""
    # Most fields are what they are already, and a page of memories has thousands of them.
    found = {name: value if type(value := getattr(item, name)) in _PLAIN else to_plain(value) for name in RECORD_FIELDS}
    stored = {"base_confidence": item.stored_confidence, "base_importance": item.stored_importance}
    return found | stored | {"metadata": found["metadata"] or None}


class FieldChange(TypedDict):
    """One field that differs."""

    field: str
    before: Any
    after: Any


class Touched(TypedDict):
    """Which memory a commit made a version of."""

    op: str
    id: str
    version: int
    tier: str
    #: First words of its text: of the text before where the commit left none.
    title: str


class IdVersion(TypedDict):
    """A memory at a version, by name."""

    id: str
    version: int


class Exclusion(TypedDict):
    """A memory that matched and was left out."""

    id: str
    reason: str


def changed_fields(before: Record | None, after: Record | None) -> list[FieldChange]:
    """Return the fields that differ, in the order of `Record`.

    Bookkeeping is left out. One side may be missing: the other side's fields that are not empty count.
    """
    old, new = (record_as_dict(side) if side else {} for side in (before, after))
    return [
        {"field": name, "before": old.get(name), "after": new.get(name)}
        for name in RECORD_FIELDS
        if name not in VERSION_FIELDS and name not in READ_FIELDS
        if old.get(name) != new.get(name) and not (_empty(old.get(name)) and _empty(new.get(name)))
    ]


def _empty(value: Any) -> bool:
    return value in (None, [], "")


class Key(NamedTuple):
    """A key of a shape: what stands under it, and its type, where that is not the field's of this name of a class."""

    name: str
    read: Callable[[Any], Any]
    kind: Any = None
    owner: Any = None


def keys_of(owner: type, names: str, at: str = "", *, kind: Any = None) -> tuple[Key, ...]:
    """Return keys that are fields of a class, which the value itself is or holds ``at`` one of its fields."""
    return tuple(Key(name, attrgetter(f"{at}.{name}" if at else name), kind, owner) for name in names.split())


def as_shape(value: Any, shape: Iterable[Key]) -> dict[str, Any]:
    """Return a value as an object with the keys of a shape, in their order."""
    return {key.name: item if type(item := key.read(value)) in _PLAIN else to_plain(item) for key in shape}


def _written_records(result: Outcome) -> tuple[Record, ...]:
    """Return the memories that were written, proposed or found to be the same; none where it was refused."""
    return tuple(each.after for each in result.item.steps) if result.item else result.records


def _of_first(name: str, kind: Any) -> Key:
    return Key(name, lambda result: next((getattr(each, name) for each in _written_records(result)), None), kind)


def _id_of(name: str, field: str, kind: Any = str | None) -> Key:
    return Key(name, lambda result: (part := getattr(result, field)) and part.id, kind)


#: What of a commit's details stands beside it.
DETAILS = "actor reason receipt policy session proposal approved_by undoes"


def _title_of(step: Step) -> str:
    text = step.after.text or (step.before.text if step.before else "")
    return text.strip().partition("\n")[0][:_TITLE]


#: Characters of a text that stand for it.
_TITLE = 80
_ID_VERSION = keys_of(Record, "id version")
_TOUCHED = keys_of(Record, "id version tier")
_CHANGED = Key("changed", lambda each: changed_fields(each.before, each.after), list[FieldChange])
_WRITTEN = (
    Key("outcome", lambda result: result.outcome, Literal["committed", "quarantined", "refused", "duplicate"]),
    _of_first("id", str | None),
    _of_first("version", int | None),
    _id_of("commit", "commit"),
    _id_of("proposal", "item"),
    _id_of("receipt", "receipt"),
    *keys_of(Committed, "reasons"),
    Key("redacted", lambda result: result.redacted, list[str]),
    *(_of_first(name, str | None) for name in ("tier", "kind", "key")),
    _of_first("expires_at", datetime | None),
    Key("memories", lambda result: [as_shape(each, _ID_VERSION) for each in _written_records(result)], list[IdVersion]),
)
#: By class, the keys of what is no object of its fields.
SHAPES: Mapping[type, tuple[Key, ...]] = {
    **dict.fromkeys((Committed, Duplicate, Quarantined, Refused), _WRITTEN),
    Step: (*keys_of(Step, "op"), *keys_of(Record, "id version", "after"), *keys_of(Step, "before after"), _CHANGED),
    Difference: (*keys_of(Difference, "id before after"), _CHANGED),
    CommitView: (
        *keys_of(Commit, "id seq at kind", "commit"),
        *keys_of(CommitDetails, DETAILS, "details"),
        *keys_of(Commit, "hash prev", "commit", kind=str),
        Key(
            "changes",
            lambda view: [
                {"op": each.op, **as_shape(each.after, _TOUCHED), "title": _title_of(each)} for each in view.steps
            ],
            list[Touched],
        ),
    ),
    Proposal: (
        *keys_of(Proposal, "id state"),
        Key("proposer", lambda item: item.proposer.label, str),
        *keys_of(Proposal, "reason reasons"),
        Key("diff", lambda item: item.steps, list[Step]),
        *keys_of(Proposal, "base"),
        Key("base_version", lambda item: max(item.base.values(), default=0), int),
        *keys_of(
            Proposal,
            "digest created_at expires_at decided_by decision decided_at may_approve stale current review_context",
        ),
    ),
    Hit: (
        *keys_of(Hit, "rank"),
        *keys_of(Record, "id text", "memory"),
        Key("score", lambda hit: round(hit.score, 6), float),
        Key("parts", lambda hit: {name: round(part, 6) for name, part in sorted(hit.parts.items())}, dict[str, float]),
        *keys_of(Record, "tier kind", "memory", kind=str),
        *keys_of(Record, "key scope", "memory"),
        *keys_of(Record, "trust", "memory", kind=str),
        *keys_of(Record, "source confidence importance version tags", "memory"),
        *keys_of(Record, "content_type", "memory", kind=str),
        *keys_of(Record, "blob speaker occurred_at created_at", "memory"),
        *keys_of(Hit, "why"),
        Key("metadata", lambda hit: hit.memory.metadata or None, dict[str, Any] | None),
        *keys_of(Hit, "weak"),
    ),
    Recall: (
        *keys_of(Recall, "used notes head now hits"),
        Key("excluded", lambda found: [{"id": name, "reason": why} for name, why in found.excluded], list[Exclusion]),
        *keys_of(Recall, "reranker withheld candidates receipt"),
    ),
}
