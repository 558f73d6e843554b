"""Results as JSON values, back from JSON, and as short text.

``to_plain`` gives the JSON of ``to_dict()`` and of ``--json``. ``to_json`` gives the JSON that a server sends; it adds
the complete values that a client needs. ``from_json`` reads it back: ``from_json(type(v), to_json(v)) == v``, without
the secrets that stay on the server (the salt and payload of a commit, the hash of a token).

Most results become objects with one key for each field. ``SHAPES`` lists the keys of the others, and ``NESTED_FIELDS``
the keys that a server adds to them. The OpenAPI document is built from both tables.

* Keys are a contract: a key may be added; it is never renamed, retyped or removed.
* Every value is text, a number, a boolean, null, a list, or an object with text keys.
* Instants are ISO 8601 in UTC, durations are seconds, bytes are hex digits. Enums are given by value, ``Trust`` by
  label. A missing value is null.
* A field with a commit or a receipt gives its id. A server adds the complete value under ``commit_header`` or
  ``receipt_record``.
* A reader ignores unknown keys, so a newer server may send more. A missing required key is an error.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from enum import Enum
from functools import cache, partial
from operator import attrgetter
from typing import Any, Literal, NamedTuple, TypedDict, TypeVar, Union, get_args, get_origin, get_type_hints, overload

import msgspec
from msgspec.structs import replace

from keepward import errors
from keepward.core.commit import Commit, CommitDetails, Receipt, Step
from keepward.core.journal import CommitView, Difference, Origin, Version
from keepward.core.memory import READ_FIELDS, RECORD_FIELDS, VERSION_FIELDS, Record
from keepward.core.principals import Token, Trust
from keepward.core.proposal import Committed, DecisionResult, Duplicate, Outcome, Proposal, Quarantined, Refused
from keepward.core.query import Hit, Recall
from keepward.core.reducer import metadata_text
from keepward.core.value import Data
from keepward.errors import KeepwardError, StoreError, StoreUnavailable

T = TypeVar("T")
Reader = Callable[[Any], Any]

#: The error of an answer from another server than Keepward, or from another version.
UNREADABLE_ANSWER = "the server's answer cannot be read: it speaks another version, or it is no Keepward server"
_SCALARS = frozenset({str, int, float, bool, type(None)})


# --- to JSON


def format_instant(instant: datetime | None) -> str | None:
    """Return an instant as ISO 8601 in UTC."""
    return instant.astimezone(UTC).isoformat() if instant else None


def to_plain(value: Any, of_struct: Callable[[Any], Any] | None = None) -> Any:
    """Return a value as JSON values; ``of_struct`` replaces the default conversion of a struct."""
    match value:
        case None | bool() | int() | float():
            # ``Trust`` is an IntEnum with labels.
            return getattr(value, "label", value)
        case str():
            return str(value)
        case datetime():
            return format_instant(value)
        case timedelta():
            return value.total_seconds()
        case Mapping():
            return {str(to_plain(key)): to_plain(item, of_struct) for key, item in value.items()}
        case list() | tuple():
            return [to_plain(item, of_struct) for item in value]
        case set() | frozenset():
            return sorted(to_plain(item) for item in value)
        case bytes():
            return value.hex()
        case KeepwardError():
            return {"code": value.code, "detail": str(value)}
    if not isinstance(value, Data):
        return str(value)
    if of_struct is not None:
        return of_struct(value)
    if isinstance(value, Record):
        return record_as_dict(value)
    shape = SHAPES.get(type(value))
    if shape is not None:
        return as_shape(value, shape)
    return {name: to_plain(getattr(value, name)) for name in value.__struct_fields__}


def record_as_dict(record: Record) -> dict[str, Any]:
    """Return all fields of a memory; confidence and importance both decayed and as stored."""
    # Speed: a page has thousands of memories, and most fields are JSON values already.
    fields = {
        name: value if type(value := getattr(record, name)) in _SCALARS else to_plain(value) for name in RECORD_FIELDS
    }
    stored = {"base_confidence": record.stored_confidence, "base_importance": record.stored_importance}
    return fields | stored | {"metadata": fields["metadata"] or None}


class FieldChange(TypedDict):
    """One field that differs."""

    field: str
    before: Any
    after: Any


class Touched(TypedDict):
    """A memory that a commit gave a new version."""

    op: str
    id: str
    version: int
    tier: str
    #: First words of its text, or of the text before if the commit left none.
    title: str


class IdVersion(TypedDict):
    """A memory at a version, by name."""

    id: str
    version: int


class ExcludedHit(TypedDict):
    """A memory that matched and was left out."""

    id: str
    reason: str


def changed_fields(before: Record | None, after: Record | None) -> list[FieldChange]:
    """Return the fields that differ, in the order of `Record`, without bookkeeping such as `updated_at`.

    If one side is missing, all fields of the other side count that are not empty.
    """
    old, new = (record_as_dict(side) if side else {} for side in (before, after))
    return [
        {"field": name, "before": old.get(name), "after": new.get(name)}
        for name in RECORD_FIELDS
        if name not in VERSION_FIELDS and name not in READ_FIELDS
        if old.get(name) != new.get(name) and not (_is_empty(old.get(name)) and _is_empty(new.get(name)))
    ]


def _is_empty(value: Any) -> bool:
    return value in (None, [], "")


class Key(NamedTuple):
    """A key of a shape: how to read its value, and its type.

    Without ``kind``, the type is that of the field ``name`` of ``owner``.
    """

    name: str
    read: Callable[[Any], Any]
    kind: Any = None
    owner: Any = None


def keys_of(owner: type, names: str, at: str = "", *, kind: Any = None) -> tuple[Key, ...]:
    """Return the keys of fields of ``owner``: the value itself, or its field ``at``."""
    return tuple(Key(name, attrgetter(f"{at}.{name}" if at else name), kind, owner) for name in names.split())


def as_shape(value: Any, shape: Iterable[Key]) -> dict[str, Any]:
    """Return a value as an object with the keys of a shape, in their order."""
    return {key.name: item if type(item := key.read(value)) in _SCALARS else to_plain(item) for key in shape}


def _written_records(outcome: Outcome) -> tuple[Record, ...]:
    """Return the memories that were written, proposed or equal; none if refused."""
    return tuple(step.after for step in outcome.item.steps) if outcome.item else outcome.records


def _of_first(name: str, kind: Any) -> Key:
    return Key(name, lambda outcome: next((getattr(rec, name) for rec in _written_records(outcome)), None), kind)


def _id_of(name: str, field: str) -> Key:
    return Key(name, lambda outcome: (part := getattr(outcome, field)) and part.id, str | None)


#: Maximum length of a title.
_MAX_TITLE = 80


def _title_of(step: Step) -> str:
    text = step.after.text or (step.before.text if step.before else "")
    return text.strip().partition("\n")[0][:_MAX_TITLE]


_DETAILS = "actor reason receipt policy session proposal approved_by undoes"
_ID_VERSION = keys_of(Record, "id version")
_TOUCHED = keys_of(Record, "id version tier")
_CHANGED = Key("changed", lambda step: changed_fields(step.before, step.after), list[FieldChange])
_OUTCOME = (
    Key("outcome", lambda outcome: outcome.outcome, Literal["committed", "quarantined", "refused", "duplicate"]),
    _of_first("id", str | None),
    _of_first("version", int | None),
    _id_of("commit", "commit"),
    _id_of("proposal", "item"),
    _id_of("receipt", "receipt"),
    *keys_of(Committed, "reasons"),
    Key("redacted", lambda outcome: outcome.redacted, list[str]),
    *(_of_first(name, str | None) for name in ("tier", "kind", "key")),
    _of_first("expires_at", datetime | None),
    Key("memories", lambda outcome: [as_shape(rec, _ID_VERSION) for rec in _written_records(outcome)], list[IdVersion]),
)
#: Keys by class, for results that are not an object of their fields.
SHAPES: Mapping[type, tuple[Key, ...]] = {
    **dict.fromkeys((Committed, Duplicate, Quarantined, Refused), _OUTCOME),
    Step: (*keys_of(Step, "op"), *keys_of(Record, "id version", "after"), *keys_of(Step, "before after"), _CHANGED),
    Difference: (*keys_of(Difference, "id before after"), _CHANGED),
    CommitView: (
        *keys_of(Commit, "id seq at kind", "commit"),
        *keys_of(CommitDetails, _DETAILS, "details"),
        *keys_of(Commit, "hash prev", "commit", kind=str),
        Key(
            "changes",
            lambda view: [
                {"op": step.op, **as_shape(step.after, _TOUCHED), "title": _title_of(step)} for step in view.steps
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
        *keys_of(Record, "blob speaker occurred_at created_at text_by text_at", "memory"),
        *keys_of(Hit, "why"),
        Key("metadata", lambda hit: hit.memory.metadata or None, dict[str, Any] | None),
        *keys_of(Hit, "weak"),
    ),
    Recall: (
        *keys_of(Recall, "used notes head now hits"),
        Key(
            "excluded", lambda recall: [{"id": name, "reason": why} for name, why in recall.excluded], list[ExcludedHit]
        ),
        *keys_of(Recall, "reranker withheld candidates receipt"),
    ),
}
#: Keys of a version as a server sends it; ``to_dict()`` gives its fields.
VERSION_SHAPE = (
    *keys_of(Record, "version", "record"),
    *keys_of(Version, "op"),
    Key("commit", lambda version: version.commit.id, str),
    *keys_of(Commit, "seq at", "commit"),
    *keys_of(CommitDetails, "actor approved_by reason receipt", "details"),
    *keys_of(Version, "record before"),
    Key("changed", lambda version: changed_fields(version.before, version.record), list[FieldChange]),
)
#: Suffix of the key with the complete commit or receipt.
EXPANDED_FIELD_SUFFIXES: Mapping[Any, str] = {Commit: "_header", Receipt: "_record"}
_NESTED_IN_OUTCOME = {
    "records": "records",
    "commit_header": "commit",
    "receipt_record": "receipt",
    "waiting": "item",
}
#: Keys that a server adds to those of ``to_dict()``, with the fields whose complete values they hold.
NESTED_FIELDS: Mapping[type, Mapping[str, str]] = {
    **dict.fromkeys((Committed, Duplicate, Quarantined, Refused), _NESTED_IN_OUTCOME),
    Proposal: {"tenant": "tenant", "told": "told", "proposer_actor": "proposer"},
    CommitView: {"commit_header": "commit", "details": "details", "events": "steps"},
    Version: {"commit_header": "commit", "details": "details"},
    Hit: {"exact_score": "score", "exact_parts": "parts", "memory": "memory"},
    Recall: {"hits": "hits"},
    Step: {},
    Difference: {},
}


def to_json(value: Any, *, without: Collection[str] = ()) -> Any:
    """Return a result as the JSON values that a server sends; ``without`` omits nested keys."""
    return to_plain(value, partial(_struct_to_json, without=without))


def _struct_to_json(value: Any, *, without: Collection[str] = ()) -> Any:
    kind: Any = type(value)
    if kind in NESTED_FIELDS:
        summary = as_shape(value, VERSION_SHAPE) if kind is Version else value.to_dict()
        nested = {key: getattr(value, field) for key, field in NESTED_FIELDS[kind].items() if key not in without}
        return summary | {
            key: to_json(dict(sorted(item.items())) if isinstance(item, dict) else item) for key, item in nested.items()
        }
    if kind in {Record, Commit, Receipt} or hasattr(value, "as_dict"):
        return to_plain(value)
    fields = {"id": value.id, "ok": value.ok} if kind is DecisionResult else {}
    expanded = expanded_fields(kind)
    for name in value.__struct_fields__:
        item = getattr(value, name)
        if name in expanded:
            fields[name] = None if item is None else item.id
            fields[expanded[name]] = to_plain(item)
        else:
            fields[name] = to_json(item)
    return fields


@cache
def expanded_fields(kind: Any) -> dict[str, str]:
    """Return the fields of a class with a commit or receipt, each with the key of the complete value."""
    hints = get_type_hints(kind)
    parts = ((name, part) for name, hint in hints.items() for part in (hint, *get_args(hint)))
    return {name: name + EXPANDED_FIELD_SUFFIXES[part] for name, part in parts if part in EXPANDED_FIELD_SUFFIXES}


# --- from JSON


@overload
def from_json(hint: type[T], value: Any) -> T: ...
@overload
def from_json(hint: Any, value: Any) -> Any: ...
def from_json(hint: Any, value: Any) -> Any:
    """Return a value of any type hint (a class, a union, a container of them) from what ``to_json`` gave.

    Raises:
        StoreError: the value does not have this type.
    """
    try:
        return _reader_of(hint)(value)
    except (KeyError, ValueError, TypeError, AttributeError, OverflowError) as exc:
        raise StoreError(UNREADABLE_ANSWER) from exc


def error_of(code: Any, detail: Any, status: int | None = None) -> KeepwardError:
    """Return the error with a stable code; for an unknown code, the nearest one by HTTP status."""
    kind = _errors_by_code().get(str(code)) or _error_class_for_status(status)
    return kind(detail if isinstance(detail, str) and detail else None)


@cache
def _errors_by_code() -> Mapping[str, type[KeepwardError]]:
    # Only classes of the module ``errors``: subclasses elsewhere share a code.
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, KeepwardError)]
    return {kind.code: kind for kind in kinds} | {"rate_limited": StoreUnavailable}


def _error_class_for_status(status: int | None) -> type[KeepwardError]:
    by_status: Mapping[int | None, type[KeepwardError]] = {
        **dict.fromkeys((401, 403), errors.Unauthorised),
        404: errors.NotFound,
        409: errors.Conflict,
        412: errors.StaleVersion,
        **dict.fromkeys((429, 502, 503, 504), StoreUnavailable),
    }
    return by_status.get(status) or (errors.InvalidInput if status is not None and 400 <= status < 500 else StoreError)


@cache
def _reader_of(hint: Any) -> Reader:
    """Return the reader of a type. ``msgspec`` reads types that contain no class of Keepward."""
    parts = get_args(hint)
    if not _is_own_type(hint):
        return partial(msgspec.convert, type=hint)
    if hint in _LEAF_READERS:
        return _LEAF_READERS[hint]
    if _is_data(hint):
        return _struct_reader(hint)
    origin = get_origin(hint)
    if origin in (Union, types.UnionType):
        return _union_reader(parts)
    items = [_reader_of(part) for part in parts if part is not Ellipsis]
    if origin is dict or origin is Mapping:
        return lambda value: {name: items[1](item) for name, item in _as_object(value).items()}
    if origin is tuple and Ellipsis not in parts:
        return lambda value: tuple(read(item) for read, item in zip(items, _as_list(value), strict=True))
    container: Any = list if origin is list else tuple
    return lambda value: container(map(items[0], _as_list(value)))


def _is_own_type(hint: Any) -> bool:
    return hint in _LEAF_READERS or _is_data(hint) or any(map(_is_own_type, get_args(hint)))


def _is_data(hint: Any) -> bool:
    return isinstance(hint, type) and issubclass(hint, Data)


#: Fields that stay on the server, with the values that a client gets instead.
_REDACTED_FIELDS: Mapping[type, Mapping[str, Any]] = {
    Commit: {"salt": "", "payload": None, "payload_commit": None},
    Token: {"hash": ""},
}


def _struct_reader(kind: Any) -> Reader:
    """Return the reader of a class: it reads each field from the key with the complete value."""
    hints = get_type_hints(kind)
    keys = {
        **expanded_fields(kind),
        **{field: key for key, field in NESTED_FIELDS.get(kind, {}).items()},
        **({"steps": "diff"} if kind is Proposal else {}),
    }
    readers = [(name, keys.get(name, name), _reader_of(hints[name])) for name in kind.__struct_fields__]

    def read_fields(value: Any) -> Any:
        given = _REDACTED_FIELDS.get(kind, {}) | _as_object(value)
        fields = {}
        for name, complete, read in readers:
            key = complete if complete in given else name
            if key in given:
                fields[name] = read(given[key])
        return kind(**fields)

    special = _SPECIAL_READERS.get(kind)
    return read_fields if special is None else lambda value: special(read_fields, value)


def _read_record(read_fields: Reader, value: Any) -> Any:
    return read_fields({**_as_object(value), "metadata_json": metadata_text(value.get("metadata"))})


def _read_duplicate(read_fields: Reader, value: Any) -> Any:
    return read_fields({**value, "record": value["records"][0]})


def _read_recall(read_fields: Reader, value: Any) -> Any:
    return read_fields({**value, "excluded": [[item["id"], item["reason"]] for item in value["excluded"]]})


def _read_origin(read_fields: Reader, value: Any) -> Any:
    """Read the origin of a field; its value has the type of that field of a memory."""
    origin = read_fields(value)
    hint = get_type_hints(Record).get(origin.field, Any)
    return replace(origin, value=_reader_of(hint)(origin.value))


#: Readers of classes whose JSON is not an object of their fields.
_SPECIAL_READERS: Mapping[type, Callable[[Reader, Any], Any]] = {
    Record: _read_record,
    Duplicate: _read_duplicate,
    Recall: _read_recall,
    Origin: _read_origin,
}


def _union_reader(kinds: tuple[Any, ...]) -> Reader:
    """Return the reader of an outcome, which names its class, or of one type or None."""
    rest = [kind for kind in kinds if kind is not type(None)]
    outcomes = {
        get_args(get_type_hints(kind)["outcome"])[0]: kind
        for kind in rest
        if NESTED_FIELDS.get(kind) is _NESTED_IN_OUTCOME
    }

    def read_one(value: Any) -> Any:
        if value is None and len(rest) < len(kinds):
            return None
        return _reader_of(outcomes[_as_object(value)["outcome"]] if outcomes else rest[0])(value)

    return read_one


def _read_instant(value: Any) -> datetime:
    instant = datetime.fromisoformat(value)
    if instant.tzinfo is None:
        raise ValueError("an instant needs an offset, such as Z")
    return instant.astimezone(UTC)


def _read_error(value: Any) -> KeepwardError:
    return error_of(value["code"], value.get("detail") or value.get("message"))


_as_list: Reader = partial(msgspec.convert, type=list)
_as_object: Reader = partial(msgspec.convert, type=dict)
#: Types that ``msgspec`` would read from another form.
_LEAF_READERS: Mapping[Any, Reader] = {
    bytes: bytes.fromhex,
    datetime: _read_instant,
    Trust: lambda label: Trust[label.upper()],
    KeepwardError: _read_error,
}


# --- as short text

#: Limits of the short text: characters of a value, characters of a line, lines of a result.
MAX_TEXT, MAX_LINE, MAX_LINES = 80, 160, 20
#: A longer list or mapping is shown as its length.
_MAX_LISTED = 6


def brief(value: Any) -> str:
    """Return the few lines that ``print`` shows of a result; ``repr()`` and ``to_dict()`` have everything."""
    if isinstance(value, Record | Hit):
        return _line(value)
    lines = [_line(value), *_item_lines(value)]
    if len(lines) > MAX_LINES:
        rest = len(lines) - MAX_LINES + 1
        lines[MAX_LINES - 1 :] = [f"  ... and {rest} more; to_dict() has all of them"]
    return "\n".join(lines)


def _line(value: Any) -> str:
    """Return a value in one line."""
    if isinstance(value, Record):
        status = "" if value.status.value == "active" else f" ({value.status.value})"
        name = f"{value.id} v{value.version} {value.tier.value} {value.kind.value}"
        return _shorten(f"{name}{status}: {_shorten(value.text, MAX_TEXT)}", MAX_LINE)
    if isinstance(value, Hit):
        weak = ", weak" if value.weak else ""
        return _shorten(
            f"{value.rank}. {_shorten(value.memory.text, MAX_TEXT)} (score {value.score:.2f}{weak})", MAX_LINE
        )
    texts = (f"{name} {text}" for name, item in _fields(value) if (text := _field_text(item)))
    name, fields = type(value).__name__, ", ".join(texts)
    return _shorten(f"{name}: {fields}" if fields else f"{name}: {_size(value)}", 2 * MAX_LINE)


def _fields(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the fields of a result and their values."""
    if isinstance(value, Data):
        yield from ((name, getattr(value, name)) for name in value.__struct_fields__)


def _field_text(value: Any) -> str:
    """Return the text of a field in a line: nothing if it is empty, the number of items if it is long."""
    match value:
        case None | "" | bytes():
            return ""
        case Version():
            return f"commit {value.commit.seq}"
        case Enum():
            return str(getattr(value, "label", value.value))
        case bool() | int():
            return str(value)
        case float():
            return f"{value:.3g}"
        case datetime():
            return f"{value:%Y-%m-%d %H:%M}"
        case str():
            return _shorten(value, MAX_TEXT)
        case Mapping():
            if len(value) > _MAX_LISTED or not all(isinstance(item, int | str) for item in value.values()):
                return _size(value)
            return _shorten(", ".join(f"{name} {item}" for name, item in value.items()), MAX_TEXT)
        case Sequence() | frozenset():
            if len(value) > _MAX_LISTED or not all(isinstance(item, str) for item in value):
                return _size(value)
            return _shorten(", ".join(value), MAX_TEXT)
        case Record():
            return _line(value)
    return str(getattr(value, "id", "")) or _shorten(_line(value).partition(": ")[2], MAX_TEXT)


def _item_lines(value: Any) -> Iterator[str]:
    """Yield a line for each item of the lists of a result."""
    lists = [("", value)] if isinstance(value, Sequence) else _fields(value)
    for _, items in lists:
        if isinstance(items, Sequence) and not isinstance(items, str | bytes):
            yield from (f"  {_shorten(_line(item), MAX_LINE)}" for item in items if isinstance(item, Data))


def _size(value: Any) -> str:
    count = len(value) if hasattr(value, "__len__") else 0
    return f"({count})" if count else ""


def _shorten(text: str, max_length: int) -> str:
    """Return a text in one line of at most ``max_length`` characters, without control characters."""
    flat = " ".join(text.split())
    shown = flat if flat.isprintable() else repr(flat)[1:-1]
    return shown if len(shown) <= max_length else f"{shown[: max_length - 3]}..."
