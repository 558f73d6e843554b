"""Decode: domain values out of what a server answers, by the type hints of their classes.

Invariants
(1) ``decode(type(v), json(present.plain(v))) == v`` for every value that a verb returns, and the same for what
    ``shapes`` turns into fields.
(2) A key that no field asks for is passed over, so that a newer server can say more. A field without a default
    that is missing, or that holds something else, is an error that says so; nothing is guessed.
(3) Enums come by value, or by label where they are ranked; instants are aware; bytes are hex.
"""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from enum import Enum, IntEnum
from functools import cache
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from keepward import errors
from keepward.client import shapes
from keepward.errors import KeepwardError, StoreError, StoreUnavailable
from keepward.model.fold import metadata_text
from keepward.model.memory import Record

T = TypeVar("T")
Reader = Callable[[Any], Any]

#: Of an answer that no Keepward server gave, or one of another version.
UNREADABLE = "the server's answer cannot be read: it speaks another version, or it is no Keepward server"


def decode(kind: type[T], value: Any) -> T:
    """Return a value of a class, as a server sent it.

    Raises:
        StoreError: it is not one; see (2).
    """
    result: T = decode_hint(kind, value)
    return result


def decode_hint(hint: Any, value: Any) -> Any:
    """Return a value of any type hint: a class, a union, a container of them; see ``decode``."""
    try:
        return _reader(hint)(value)
    except (KeyError, ValueError, TypeError, AttributeError, OverflowError) as fault:
        raise StoreError(UNREADABLE) from fault


def decode_each(kind: type[T], values: Any) -> list[T]:
    """Return a list of values of a class, in the order sent."""
    result: list[T] = decode_hint(list[kind], values)  # type: ignore[valid-type]
    return result


def error_of(code: Any, detail: Any, status: int | None = None) -> KeepwardError:
    """Return the error with a stable code; for a code that is not ours, the nearest one by HTTP status."""
    kind = _errors().get(str(code)) or _nearest(status)
    return kind(detail if isinstance(detail, str) and detail else None)


@cache
def _errors() -> Mapping[str, type[KeepwardError]]:
    # Those of the module alone: what an engine derives from them for itself is nobody else's.
    kinds = [each for each in vars(errors).values() if isinstance(each, type) and issubclass(each, KeepwardError)]
    found = {kind.code: kind for kind in kinds}
    # The server's own words for "not now": what was asked is still being done, or too much was asked.
    return found | {"idempotency_in_progress": StoreUnavailable, "rate_limited": StoreUnavailable}


def _nearest(status: int | None) -> type[KeepwardError]:
    match status:
        case 401 | 403:
            return errors.Unauthorised
        case 404:
            return errors.NotFound
        case 409:
            return errors.Conflict
        case 412:
            return errors.StaleVersion
        case 429 | 502 | 503 | 504:
            return StoreUnavailable
        case int() if 400 <= status < 500:
            return errors.InvalidInput
    return StoreError


@cache
def _reader(hint: Any) -> Reader:
    """Return what reads a type hint."""
    origin, arguments = get_origin(hint), get_args(hint)
    if hint is Any or hint is object:
        return lambda value: value
    if origin is Literal:
        return lambda value: _one_of(arguments, value)
    if origin in (Union, types.UnionType):
        return _union(arguments)
    if origin is tuple:
        return _tuple(arguments)
    if origin in (list, Sequence, Iterable):
        item = _reader(arguments[0])
        return lambda value: [item(each) for each in _list(value)]
    if origin in (frozenset, set):
        item = _reader(arguments[0])
        return lambda value: frozenset(item(each) for each in _list(value))
    if origin in (dict, Mapping) or hint in (dict, Mapping):
        key, item = (_reader(each) for each in arguments or (Any, Any))
        return lambda value: {key(name): item(each) for name, each in _object(value).items()}
    return _class(hint)


def _class(kind: Any) -> Reader:
    if kind in (str, bool, int):
        return lambda value: _exactly(kind, value)
    if kind is float:
        return lambda value: float(_exactly((int, float), value))
    if kind is bytes:
        return bytes.fromhex
    if kind is datetime:
        return _instant
    if kind is type(None):
        return lambda value: _one_of((None,), value)
    if isinstance(kind, type) and issubclass(kind, IntEnum):
        return lambda value: kind[value.upper()]
    if isinstance(kind, type) and issubclass(kind, Enum):
        return kind
    if isinstance(kind, type) and issubclass(kind, KeepwardError):
        return lambda value: error_of(value["code"], value.get("detail") or value.get("message"))
    if dataclasses.is_dataclass(kind):
        return _dataclass(kind)
    raise TypeError("a type that no answer holds")


def _dataclass(kind: Any) -> Reader:
    if kind is Record:
        plain = _fields(kind)
        return lambda value: plain({**_object(value), "metadata_json": metadata_text(value.get("metadata"))})
    if kind.__name__ == "Origin":
        return _origin(kind)
    plain, shape = _fields(kind), shapes.FIELDS.get(kind.__name__)
    return plain if shape is None else lambda value: plain(shape(_object(value)))


def _fields(kind: Any) -> Reader:
    hints = get_type_hints(kind)
    known = [
        (each.name, _reader(hints[each.name]), _has_default(each), each.name + _beside(hints[each.name]))
        for each in dataclasses.fields(kind)
    ]

    def read(value: Any) -> Any:
        given = _object(value)
        named = {}
        for name, item, can_miss, whole in known:
            told = whole if whole in given else name
            if told in given or not can_miss:
                named[name] = item(given[told])
        return kind(**named)

    return read


def _beside(hint: Any) -> str:
    """Return how the name ends under which the whole of a field may stand; see ``shapes``."""
    return next((shapes.BESIDE[each] for each in (hint, *get_args(hint)) if each in shapes.BESIDE), "")


def _origin(kind: Any) -> Reader:
    """Where a value comes from: the value itself has the type of the memory's field that it names."""
    plain, hints = _fields(kind), get_type_hints(Record)

    def read(value: Any) -> Any:
        origin = plain(value)
        return dataclasses.replace(origin, value=_reader(hints.get(origin.field, Any))(origin.value))

    return read


def _has_default(item: dataclasses.Field[Any]) -> bool:
    return item.default is not dataclasses.MISSING or item.default_factory is not dataclasses.MISSING


def _union(kinds: tuple[Any, ...]) -> Reader:
    empty = type(None) in kinds
    rest = [each for each in kinds if each is not type(None)]
    # Outcomes say of what kind they are; any other union of ours is "this or nothing", or plain values.
    tagged = {_tag(each): each for each in rest if _tag(each) is not None}

    def read(value: Any) -> Any:
        if value is None and empty:
            return None
        if tagged:
            return _reader(tagged[_object(value)["outcome"]])(value)
        if len(rest) == 1:
            return _reader(rest[0])(value)
        for each in rest:
            if isinstance(each, type) and isinstance(value, each):
                return value
        raise TypeError("none of the types of a union")

    return read


def _tag(kind: Any) -> Any:
    if not dataclasses.is_dataclass(kind):
        return None
    default = next((each.default for each in dataclasses.fields(kind) if each.name == "outcome"), None)
    return default if isinstance(default, str) else None


def _tuple(kinds: tuple[Any, ...]) -> Reader:
    if len(kinds) == 2 and kinds[1] is Ellipsis:
        item = _reader(kinds[0])
        return lambda value: tuple(item(each) for each in _list(value))
    items = [_reader(each) for each in kinds]
    return lambda value: tuple(item(each) for item, each in zip(items, _list(value), strict=True))


def _instant(value: Any) -> datetime:
    at = datetime.fromisoformat(value)
    if at.tzinfo is None:
        raise ValueError("an instant without an offset")
    return at.astimezone(UTC)


def _one_of(allowed: tuple[Any, ...], value: Any) -> Any:
    if value not in allowed:
        raise ValueError("a word that is not one of those known")
    return value


def _exactly(kind: Any, value: Any) -> Any:
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise TypeError("a value of another type")
    return value


def _list(value: Any) -> list[Any]:
    checked: list[Any] = _exactly(list, value)
    return checked


def _object(value: Any) -> dict[str, Any]:
    checked: dict[str, Any] = _exactly(dict, value)
    return checked
