"""Results as JSON values, and back: what a server answers, and what a client makes of it.

Invariants
(1) ``from_json(type(v), to_json(v)) == v`` for every value that an operation returns, but for what a server keeps to
    itself: the salt and payload of a commit, the hash of a token.
(2) A field that holds a commit or a receipt gives its id; the whole of it stands beside, as ``commit_header`` and
    ``receipt_record``. Every other field stands under its own name, or under that of ``NESTED_FIELDS``.
(3) Keys are a contract: they are added to and never renamed. A key that no field asks for is passed over, so that a
    newer server can say more. A field without a default that is missing, or that holds something else, is an error
    that says so; nothing is guessed.
(4) Enums come by value, or by label where they are ranked; instants are aware; bytes are hex.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Collection, Mapping
from datetime import UTC, datetime
from functools import cache, partial
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec.structs import replace

from keepward import errors
from keepward.core import plain
from keepward.core.commit import Commit, CommitDetails, Receipt, Step
from keepward.core.journal import CommitView, Difference, Origin, Version
from keepward.core.memory import Record
from keepward.core.principals import Token, Trust
from keepward.core.proposal import Committed, DecisionResult, Duplicate, Proposal, Quarantined, Refused
from keepward.core.query import Hit, Recall
from keepward.core.reducer import metadata_text
from keepward.core.value import Data
from keepward.errors import KeepwardError, StoreError, StoreUnavailable

T = TypeVar("T")
Reader = Callable[[Any], Any]

#: Of an answer that no Keepward server gave, or one of another version.
UNREADABLE_ANSWER = "the server's answer cannot be read: it speaks another version, or it is no Keepward server"
#: What the name of a field ends with where the whole of it stands (2).
EXPANDED_FIELD_SUFFIXES: Mapping[Any, str] = {Commit: "_header", Receipt: "_record"}
_OUTCOME = {"records": "records", "commit_header": "commit", "receipt_record": "receipt", "waiting": "item"}
#: What an answer has beside that which ``to_dict`` gives: keys, and the fields that they stand for.
NESTED_FIELDS: Mapping[type, Mapping[str, str]] = {
    **dict.fromkeys((Committed, Duplicate, Quarantined, Refused), _OUTCOME),
    Proposal: {"tenant": "tenant", "told": "told", "proposer_actor": "proposer"},
    CommitView: {"commit_header": "commit", "details": "details", "events": "steps"},
    Version: {"commit_header": "commit", "details": "details"},
    Hit: {"exact_score": "score", "exact_parts": "parts", "memory": "memory"},
    Recall: {"hits": "hits"},
    Step: {},
    Difference: {},
}
#: What an answer says of one version, where ``to_dict`` gives its fields.
VERSION_FIELDS = (
    *plain.keys_of(Record, "version", "record"),
    *plain.keys_of(Version, "op"),
    plain.Key("commit", lambda each: each.commit.id, str),
    *plain.keys_of(Commit, "seq at", "commit"),
    *plain.keys_of(CommitDetails, "actor approved_by reason receipt", "details"),
    *plain.keys_of(Version, "record before"),
    plain.Key("changed", lambda each: plain.changed_fields(each.before, each.record), list[plain.FieldChange]),
)
#: Fields that stand under another key in ``to_dict`` already.
_RENAMED: Mapping[type, Mapping[str, str]] = {Proposal: {"steps": "diff"}}
#: What a server keeps to itself (1).
_REDACTED_FIELDS: Mapping[type, Mapping[str, Any]] = {
    Commit: {"salt": "", "payload": None, "payload_commit": None},
    Token: {"hash": ""},
}


def to_json(value: Any, *, without: Collection[str] = ()) -> Any:
    """Return any value of an operation as JSON values, by (2); of what is whole, ``without`` some keys."""
    return plain.to_plain(value, partial(_encode_nested, without=without))


def _encode_nested(value: Any, *, without: Collection[str] = ()) -> Any:
    kind: Any = type(value)
    if kind in NESTED_FIELDS:
        short = plain.as_shape(value, VERSION_FIELDS) if kind is Version else value.to_dict()
        whole = ((key, field) for key, field in NESTED_FIELDS[kind].items() if key not in without)
        return short | {key: to_json(_ordered(getattr(value, field))) for key, field in whole}
    if kind in {Record, Commit, Receipt} or hasattr(value, "as_dict"):
        return plain.to_plain(value)
    found = {"id": value.id, "ok": value.ok} if kind is DecisionResult else {}
    beside = _nested_fields_of(kind)
    for each in value.__struct_fields__:
        item = getattr(value, each)
        if each in beside:
            found[each] = None if item is None else item.id
            found[beside[each]] = plain.to_plain(item)
        else:
            found[each] = to_json(item)
    return found


@cache
def _nested_fields_of(kind: Any) -> dict[str, str]:
    """Return the fields of a class that stand by (2), each with what the whole is called."""
    hints = get_type_hints(kind)
    parts = ((name, part) for name, hint in hints.items() for part in (hint, *get_args(hint)))
    return {name: name + EXPANDED_FIELD_SUFFIXES[part] for name, part in parts if part in EXPANDED_FIELD_SUFFIXES}


def _ordered(value: Any) -> Any:
    return dict(sorted(value.items())) if isinstance(value, dict) else value


# --- and back


def from_json(kind: type[T], value: Any) -> T:
    """Return a value of a class, as a server sent it; see ``read_json``."""
    result: T = read_json(kind, value)
    return result


def read_json(hint: Any, value: Any) -> Any:
    """Return a value of any type hint: a class, a union, a container of them.

    Raises:
        StoreError: it is not one; see (3).
    """
    try:
        return _reader_of(hint)(value)
    except (KeyError, ValueError, TypeError, AttributeError, OverflowError) as fault:
        raise StoreError(UNREADABLE_ANSWER) from fault


def error_of(code: Any, detail: Any, status: int | None = None) -> KeepwardError:
    """Return the error with a stable code; for a code that is not ours, the nearest one by HTTP status."""
    kind = _errors().get(str(code)) or _error_class_for_status(status)
    return kind(detail if isinstance(detail, str) and detail else None)


@cache
def _errors() -> Mapping[str, type[KeepwardError]]:
    # Those of the module alone: what an engine derives from them for itself is nobody else's.
    kinds = [each for each in vars(errors).values() if isinstance(each, type) and issubclass(each, KeepwardError)]
    found = {kind.code: kind for kind in kinds}
    # The server's own word for "not now": too much was asked.
    return found | {"rate_limited": StoreUnavailable}


def _error_class_for_status(status: int | None) -> type[KeepwardError]:
    named: Mapping[int | None, type[KeepwardError]] = {
        **dict.fromkeys((401, 403), errors.Unauthorised),
        404: errors.NotFound,
        409: errors.Conflict,
        412: errors.StaleVersion,
        **dict.fromkeys((429, 502, 503, 504), StoreUnavailable),
    }
    return named.get(status) or (errors.InvalidInput if status is not None and 400 <= status < 500 else StoreError)


@cache
def _reader_of(hint: Any) -> Reader:
    """Return the reader of a type. ``msgspec`` reads every type that holds none of ours."""
    parts = get_args(hint)
    if not _is_ours(hint):
        return partial(msgspec.convert, type=hint)
    if hint in _LEAF_READERS:
        return _LEAF_READERS[hint]
    if _is_data(hint):
        return _data(hint)
    origin = get_origin(hint)
    if origin in (Union, types.UnionType):
        return _union(parts)
    items = [_reader_of(each) for each in parts if each is not Ellipsis]
    if origin is dict or origin is Mapping:
        return lambda value: {name: items[1](each) for name, each in _object(value).items()}
    if origin is tuple and Ellipsis not in parts:
        return lambda value: tuple(item(each) for item, each in zip(items, _list(value), strict=True))
    made: Any = list if origin is list else tuple
    return lambda value: made(map(items[0], _list(value)))


def _is_ours(hint: Any) -> bool:
    return hint in _LEAF_READERS or _is_data(hint) or any(map(_is_ours, get_args(hint)))


def _is_data(hint: Any) -> bool:
    return isinstance(hint, type) and issubclass(hint, Data)


def _data(kind: Any) -> Reader:
    """Return what reads a class: its fields, each under the key that has the whole of it."""
    hints = get_type_hints(kind)
    keys = {
        **_nested_fields_of(kind),
        **{field: key for key, field in NESTED_FIELDS.get(kind, {}).items()},
        **_RENAMED.get(kind, {}),
    }
    known = [(each, keys.get(each, each), _reader_of(hints[each])) for each in kind.__struct_fields__]

    def read_fields(value: Any) -> Any:
        given = _REDACTED_FIELDS.get(kind, {}) | _object(value)
        named = {}
        for name, whole, read in known:
            key = whole if whole in given else name
            if key in given:
                named[name] = read(given[key])
        return kind(**named)

    special = _SPECIAL_READERS.get(kind)
    return read_fields if special is None else lambda value: special(read_fields, value)


def _record(plain_reader: Reader, value: Any) -> Any:
    return plain_reader({**_object(value), "metadata_json": metadata_text(value.get("metadata"))})


def _duplicate(plain_reader: Reader, value: Any) -> Any:
    return plain_reader({**value, "record": value["records"][0]})


def _recall(plain_reader: Reader, value: Any) -> Any:
    return plain_reader({**value, "excluded": [[each["id"], each["reason"]] for each in value["excluded"]]})


def _origin(plain_reader: Reader, value: Any) -> Any:
    """Read where a value comes from: the value itself has the type of the memory's field that it names."""
    origin = plain_reader(value)
    hint = get_type_hints(Record).get(origin.field, Any)
    return replace(origin, value=_reader_of(hint)(origin.value))


#: Classes whose answers are no mapping of fields.
_SPECIAL_READERS: Mapping[type, Callable[[Reader, Any], Any]] = {
    Record: _record,
    Duplicate: _duplicate,
    Recall: _recall,
    Origin: _origin,
}


def _union(kinds: tuple[Any, ...]) -> Reader:
    rest = [each for each in kinds if each is not type(None)]
    # An outcome names its kind; any other union is one of our types, or None.
    tagged = {
        get_args(get_type_hints(each)["outcome"])[0]: each for each in rest if NESTED_FIELDS.get(each) is _OUTCOME
    }

    def read_one(value: Any) -> Any:
        if value is None and len(rest) < len(kinds):
            return None
        return _reader_of(tagged[_object(value)["outcome"]] if tagged else rest[0])(value)

    return read_one


def _instant(value: Any) -> datetime:
    at = datetime.fromisoformat(value)
    if at.tzinfo is None:
        raise ValueError("an instant without an offset")
    return at.astimezone(UTC)


def _error(value: Any) -> KeepwardError:
    return error_of(value["code"], value.get("detail") or value.get("message"))


_list: Reader = partial(msgspec.convert, type=list)
_object: Reader = partial(msgspec.convert, type=dict)
#: Types that are no ``Data`` and that ``msgspec`` reads from another form.
_LEAF_READERS: Mapping[Any, Reader] = {
    bytes: bytes.fromhex,
    datetime: _instant,
    Trust: lambda label: Trust[label.upper()],
    KeepwardError: _error,
}
