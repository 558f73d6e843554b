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
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import fields as fields_of
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any

from keepward.errors import InvalidInput
from keepward.model.change import KEEP, Append, Insert, Move, Replace
from keepward.model.fold import metadata_text
from keepward.model.memory import Access, ContentType, Kind, Sensitivity, Stability, Tier
from keepward.model.trust import SHARED, SOURCES, parse_scope, parse_tenant
from keepward.model.value import Duration, chosen, meant, parse_duration, parse_instant

#: Names that each field with a list of them takes.
CHOICES: Mapping[str, Collection[str]] = {
    "tier": tuple(Tier),
    "kind": tuple(Kind),
    "content_type": tuple(ContentType),
    "source": tuple(SOURCES),
    "stability": tuple(Stability),
    "sensitivity": tuple(Sensitivity),
    "access": tuple(Access),
}


#: Changes whose fields are read one by one, and what each is called.
_CHANGES: Mapping[type[Any], str] = {Replace: "an edit", Append: "an addition", Move: "a move"}
#: The tenant of who names none.
DEFAULT = "default"


def tenant_named(name: str) -> str:
    """Return a tenant's name as it is kept.

    Raises:
        InvalidInput: it is no tenant's name, or holds what looks like a secret.
    """
    return parse_tenant(name) if name == DEFAULT else _no_secret(parse_tenant(name))


def scope_named(name: str) -> str:
    """Return the path of a scope.

    Raises:
        InvalidInput: it is no scope's name, or holds what looks like a secret.
    """
    path = parse_scope(name)
    return path if path == SHARED else _no_secret(path)


@lru_cache(maxsize=1024)
def _no_secret(name: str) -> str:
    from keepward.gates.content import scrub_secret

    if scrub_secret(name) != name:
        raise InvalidInput("the name of a tenant or scope holds what looks like a secret: choose another")
    return name


def duration(value: Duration | None) -> timedelta | None:
    """Return a time to live given in seconds, as a timedelta, or as text such as ``30d``."""
    return None if value is None else parse_duration(value)


def ending(value: datetime | Duration | None) -> datetime | timedelta | None:
    """Return when something is to end: an aware instant, or a term from now.

    Raises:
        InvalidInput: it is neither, nor ISO 8601 or duration as text.
    """
    if isinstance(value, datetime):
        return _instant("expires", value)
    try:
        return duration(value)
    except InvalidInput:
        if not isinstance(value, str) or not value[:4].isdecimal():
            raise
        return parse_instant(value)


def texts(name: str, value: Any) -> tuple[str, ...]:
    """Return a list of texts as a tuple.

    Raises:
        InvalidInput: it is one text, or holds something else.
    """
    listed = isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping)
    items = tuple(value) if listed else (None,)
    if not all(isinstance(item, str) for item in items):
        raise InvalidInput(f"{name} is a list of texts")
    return items


def share(name: str, value: Any) -> float:
    """Return a number; whether it is one from 0 to 1 is for others to say.

    Raises:
        InvalidInput: it is no number.
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidInput(f"{name} is a number from 0 to 1")
    return value


def insert(given: Mapping[str, Any], *, each: bool = False) -> dict[str, Any]:
    """Return the fields of a new memory; with ``each`` unknown names of tiers and the like are left to the gates."""
    if "id" in given:
        raise InvalidInput("ids are given by the store; keep a foreign id in `aliases`")
    return _fields(Insert, "a memory", given, each=each)


def replace(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of an edit."""
    return _fields(Replace, "an edit", given)


def append(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of an addition."""
    return _fields(Append, "an addition", given)


def move(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a move."""
    return _fields(Move, "a move", given)


def change(makes: type[Any], given: Mapping[str, Any]) -> Any:
    """Return a change of a memory, made of what was given."""
    found = dict(given)
    if makes in _CHANGES:
        made = {"id": found.pop("id")}
        if "text" in found:
            made["text"] = text(found.pop("text"), keep=makes is Replace)
        return makes(**made, **_fields(makes, _CHANGES[makes], found))
    if "ttl" in found:
        found["ttl"] = duration(found["ttl"])
    return makes(**found)


def text(value: Any, *, keep: bool = False) -> str:
    """Return what has to be a text, or with ``keep`` may stay as it is.

    Raises:
        InvalidInput: it is something else.
    """
    if not isinstance(value, str) and not (keep and value is KEEP):
        raise InvalidInput("text is a text")
    given: str = value
    return given


def _fields(kind: type, what: str, given: Mapping[str, Any], *, each: bool = False) -> dict[str, Any]:
    known = tuple(field.name for field in fields_of(kind) if field.name not in {"id", "text"})
    for name in given:
        if name not in known:
            raise InvalidInput(f"unknown field: {meant(name, known)}{what} takes {', '.join(known)}")
    return {name: value if value is KEEP else _value(kind, name, value, each=each) for name, value in given.items()}


def _value(kind: type, name: str, value: Any, *, each: bool) -> Any:
    if name in _NEVER_EMPTY:
        return _NEVER_EMPTY[name](name, value)
    if value is None:
        # A content type is the one choice that a memory always has.
        return "text" if name == "content_type" else None
    if name in CHOICES:
        return _text(name, value) if each else chosen(name.replace("_", " "), value, CHOICES[name])
    if name in _READ:
        return _READ[name](name, value)
    if name in {"confidence", "importance"}:
        return value if each else share(name, value)
    return _text(name, value)


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise InvalidInput(f"{name} is a text")
    return str(value)


def _flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise InvalidInput(f"{name} is True or False")
    return value


def _object(name: str, value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise InvalidInput(f"{name} is a JSON object")
    # What JSON would change on its way, such as a key that is a number, must not come back as something else.
    if value and json.loads(metadata_text(value) or "{}") != value:
        raise InvalidInput(f"{name} is a JSON object: its keys are texts, its values what JSON has")
    return value


def _version(name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidInput(f"{name} is a whole number")
    return value


def _instant(name: str, value: Any) -> datetime:
    if isinstance(value, str):
        return parse_instant(value)
    if not isinstance(value, datetime):
        raise InvalidInput(f"{name} is an aware datetime, or ISO 8601 text such as 2026-03-01T09:30:00Z")
    if value.tzinfo is None:
        raise InvalidInput("an instant needs a time zone")
    return value


def _scope(name: str, value: Any) -> str:
    return parse_scope(_text(name, value))


def _ttl(_: str, value: Any) -> timedelta:
    return parse_duration(value)


def _vector(name: str, value: Any) -> tuple[float, ...]:
    try:
        numbers = tuple(float(each) for each in value)
    except (TypeError, ValueError, OverflowError) as fault:
        raise InvalidInput(f"a {name} is a list of numbers") from fault
    length = math.hypot(*numbers)
    if isinstance(value, str | bytes | Mapping) or not math.isfinite(length) or not length:
        raise InvalidInput(f"a {name} is a list of finite numbers that are not all zero")
    return tuple(each / length for each in numbers)


_NEVER_EMPTY: Mapping[str, Callable[[str, Any], Any]] = {
    **dict.fromkeys(("tags", "evidence", "derived_from", "aliases"), texts),
    "consent": _flag,
}
_READ: Mapping[str, Callable[[str, Any], Any]] = {
    "ttl": _ttl,
    "scope": _scope,
    "metadata": _object,
    "occurred_at": _instant,
    "if_version": _version,
    "vector": _vector,
}
