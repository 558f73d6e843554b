"""Arguments as people give them, turned into what changes hold.

Invariants
(1) A name that there is not and a value of another type are ``InvalidInput``, with the name that was probably meant;
    never a ``TypeError`` or a ``ValueError``. What was given is not repeated.
(2) What means something and is not allowed (a range, a length, a rule of a tier) is left to the gates, whose answer
    is an outcome with a receipt.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from functools import lru_cache
from numbers import Integral, Real
from typing import Annotated, Any, Literal, get_args, get_origin

from keepward.core.change import UNSET, Append, Insert, Move, Replace
from keepward.core.principals import SHARED_SCOPE, parse_scope, parse_tenant
from keepward.core.reducer import metadata_text
from keepward.core.value import Data, Duration, one_of, parse_duration, parse_instant, unknown_field_message
from keepward.errors import InvalidInput
from keepward.types import CHOICES, NEW_ID_PATTERN

#: Changes whose fields are read one by one, and what each is called.
_CHANGES: Mapping[type[Any], str] = {Replace: "an edit", Append: "an addition", Move: "a move"}
#: Whether a text may be the id of a new memory.
IS_NEW_ID = re.compile(NEW_ID_PATTERN).match
#: The tenant of who names none.
DEFAULT = "default"
#: Arguments that are a text on the wire, and something else as well from Python: their operations read them.
_SEVERAL_FORMS = frozenset(
    {"commit", "since", "until", "occurred_since", "occurred_until", "earlier", "later", "where"}
)


def argument_reader(name: str, kind: Any) -> Reader | None:
    """Return what reads an argument of a type of JSON; None where it is read by its operation."""
    if name == "ids":
        return lambda name, value: (value,) if isinstance(value, str) else texts(name, value)
    kinds = tuple(dict.fromkeys(_types(kind)))
    return None if name in _SEVERAL_FORMS and str in kinds else _READERS_BY_TYPE.get(kinds)


def _types(hint: Any) -> Iterable[type]:
    """Yield the types that a hint names, without what is noted of them."""
    if get_origin(hint) is Annotated:
        yield from _types(get_args(hint)[0])
    elif get_origin(hint) is Literal:
        yield from map(type, get_args(hint))
    elif isinstance(hint, type) and hint is not Any:
        yield hint
    elif get_origin(hint) is list:
        yield from (list, *_types(get_args(hint)[0]))
    else:
        for each in get_args(hint):
            yield from _types(each)


def valid_tenant(name: str) -> str:
    """Return a tenant's name as it is stored; what looks like a secret is none."""
    tenant = parse_tenant(name)
    return tenant if tenant == DEFAULT else _no_secret(tenant)


def valid_scope(name: str) -> str:
    """Return the path of a scope; what looks like a secret is none."""
    path = parse_scope(name)
    return path if path == SHARED_SCOPE else _no_secret(path)


@lru_cache(maxsize=1024)
def _no_secret(name: str) -> str:
    from keepward.gates.content import redact_secrets

    if redact_secrets(name) != name:
        raise InvalidInput("the name of a tenant or scope holds what looks like a secret: choose another")
    return name


def expiry_time(value: datetime | Duration | None) -> datetime | timedelta | None:
    """Return when something is to end: an aware instant, or a term from now."""
    if value is None or isinstance(value, datetime):
        return None if value is None else _instant("expires", value)
    try:
        return parse_duration(value)
    except InvalidInput:
        if not isinstance(value, str) or not value[:4].isdecimal():
            raise
        return parse_instant(value)


def instant(name: str, value: Any) -> datetime | None:
    """Return an aware instant, given as one or as ISO 8601 text; None for None."""
    return None if value is None else _instant(name, value)


def approvals(items: Iterable[str | Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return proposals to approve, each as a mapping with its ``id``."""
    return [{"id": each} if isinstance(each, str) else each for each in items]


def texts(name: str, value: Any) -> tuple[str, ...]:
    """Return a list of texts as a tuple."""
    return tuple(_text(name, item, "a list of texts") for item in _list(name, value, "a list of texts"))


def ratio(name: str, value: Any) -> float:
    """Return a number; whether it is one from 0 to 1 is for others to say."""
    if type(value) is not int and type(value) is not float:
        # One of numpy's is a number too; a truth value is none.
        if isinstance(value, bool) or not isinstance(value, Real):
            raise _type_error(name, "a number from 0 to 1", value)
        return float(value)
    return value


def text(value: Any) -> str:
    """Return what has to be a text."""
    return _text("text", value)


def insert_fields(given: Mapping[str, Any], *, each: bool = False) -> dict[str, Any]:
    """Return the fields of a new memory; with ``each`` unknown names of tiers and the like are left to the gates."""
    if "id" in given:
        raise InvalidInput("ids are given by the store; keep a foreign id in `aliases`")
    return _fields(Insert, "a memory", given, _GATED_FIELD_READERS if each else _FIELD_READERS)


def build_change(makes: type[Any], given: Mapping[str, Any]) -> Any:
    """Return a change of a memory, made of what was given."""
    found = dict(given)
    if makes not in _CHANGES:
        if found.get("ttl") is not None:
            found["ttl"] = _duration("ttl", found["ttl"])
        return makes(**found)
    made = {"id": found.pop("id")}
    if "text" in found:
        value = found.pop("text")
        made["text"] = value if value is UNSET and makes is Replace else text(value)
    return makes(**made, **_fields(makes, _CHANGES[makes], found, _FIELD_READERS))


def require_content(change: Any) -> Any:
    """Return a change that is proposed; InvalidInput for a revision of nothing, which would make a version."""
    if isinstance(change, Replace) and change == Replace(id=change.id, if_version=change.if_version):
        raise InvalidInput("nothing is changed: a revision needs `text` or another field")
    return change


def _fields(kind: type[Data], what: str, given: Mapping[str, Any], readers: Mapping[str, Reader]) -> dict[str, Any]:
    known = tuple(name for name in kind.__struct_fields__ if name not in {"id", "text"})
    for name in given:
        if name not in known:
            raise InvalidInput(f"{what}: {unknown_field_message('field', name, known)}")
    return {name: value if value is UNSET else _value(name, value, readers) for name, value in given.items()}


def _value(name: str, value: Any, readers: Mapping[str, Reader]) -> Any:
    if value is None and name not in _NEVER_EMPTY:
        # A content type is the one choice that a memory always has.
        return "text" if name == "content_type" else None
    read: Reader = readers.get(name, _text)
    return read(name, value)


Reader = Callable[[str, Any], Any]


def _type_error(name: str, what: str, value: Any) -> InvalidInput:
    return InvalidInput(f"{name} is {what}, not {'None' if value is None else type(value).__name__}")


def _reader_of_type(kind: type, what: str) -> Reader:
    """Return what reads a value of a type."""

    def read(name: str, value: Any) -> Any:
        if not isinstance(value, kind):
            raise _type_error(name, what, value)
        return value

    return read


def _text(name: str, value: Any, what: str = "a text") -> str:
    """Return a text, which of a member of an enumeration is the text that it is equal to."""
    if not isinstance(value, str):
        raise _type_error(name, what, value)
    return value if type(value) is str else "".join(value)


def integer(name: str, value: Any) -> int:
    """Return a whole number, such as one of numpy's, which a truth value is not."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise _type_error(name, "a whole number", value)
    return int(value)


def _or_none(read: Reader) -> Reader:
    return lambda name, value: None if value is None else read(name, value)


def _list(name: str, value: Any, what: str = "a list") -> tuple[Any, ...]:
    if not isinstance(value, Iterable) or isinstance(value, str | bytes | Mapping):
        raise _type_error(name, what, value)
    return tuple(value)


def _object(name: str, value: Any) -> Mapping[str, Any]:
    found: Mapping[str, Any] = _reader_of_type(Mapping, "a JSON object")(name, value)
    # What JSON would change on its way, such as a key that is a number, must not come back as something else.
    if found and json.loads(metadata_text(found) or "{}") != found:
        raise InvalidInput(f"{name} is a JSON object: its keys are texts, its values what JSON has")
    return found


def _instant(name: str, value: Any) -> datetime:
    try:
        found = parse_instant(value) if isinstance(value, str) else value
    except InvalidInput as fault:
        raise InvalidInput(f"{name} is {fault}") from fault
    if not isinstance(found, datetime) or found.tzinfo is None:
        raise InvalidInput(f"{name} is an aware datetime, or ISO 8601 text such as 2026-03-01T09:30:00Z")
    return found


def _duration(name: str, value: Any) -> timedelta:
    try:
        return parse_duration(value)
    except InvalidInput as fault:
        raise InvalidInput(f"{name}: {fault}") from fault


def _vector(name: str, value: Any) -> tuple[float, ...]:
    try:
        numbers = tuple(float(each) for each in value)
    except (TypeError, ValueError, OverflowError) as fault:
        raise InvalidInput(f"a {name} is a list of numbers") from fault
    length = math.hypot(*numbers)
    if isinstance(value, str | bytes | Mapping) or not math.isfinite(length) or not length:
        raise InvalidInput(f"a {name} is a list of finite numbers that are not all zero")
    return tuple(each / length for each in numbers)


_boolean = _reader_of_type(bool, "True or False")
_NEVER_EMPTY = frozenset({"tags", "evidence", "derived_from", "aliases", "consent"})
#: How each field is read that is no plain text.
_FIELD_READERS: Mapping[str, Reader] = {
    **dict.fromkeys(_NEVER_EMPTY, texts),
    **dict.fromkeys(CHOICES, lambda name, value: one_of(name.replace("_", " "), value, CHOICES[name])),
    **dict.fromkeys(("confidence", "importance"), ratio),
    "consent": _boolean,
    "ttl": _duration,
    "scope": lambda name, value: parse_scope(_text(name, value)),
    "metadata": _object,
    "occurred_at": _instant,
    "if_version": integer,
    "vector": _vector,
}
#: The same where what is wrong with one item of many is told in its place, by a gate.
_GATED_FIELD_READERS: Mapping[str, Reader] = {
    **_FIELD_READERS,
    **dict.fromkeys(CHOICES, _text),
    **dict.fromkeys(("confidence", "importance"), lambda _, value: value),
}
_SCALAR_READERS: Mapping[tuple[type, ...], Reader] = {
    (str,): _text,
    (int,): integer,
    (float,): ratio,
    (bool,): _boolean,
    (list, str): texts,
    (list,): _list,
}
#: How an argument is read by the types that it names; None is one where it may be left empty.
_READERS_BY_TYPE: Mapping[tuple[type, ...], Reader] = {
    **_SCALAR_READERS,
    **{(*kinds, type(None)): _or_none(read) for kinds, read in _SCALAR_READERS.items()},
}
