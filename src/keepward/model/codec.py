"""The canonical encoding: everything that is hashed or persisted passes through here.

Invariants
(1) ``canonical`` is RFC 8785 for the values it accepts: objects, arrays, strings, booleans, null and
    integers within 2**53. Floating point numbers are refused: shares travel as ten-thousandths.
(2) A record's payload has the fields of ``Record`` by name, leaves out what is as that has it by default, and so keeps
    old hashes valid where a field is added.
(3) Every payload carries the schema number ``v``; an older number is read by its own upcaster.
(4) Strings hold no NUL and no lone surrogate.

The format is written down in docs/journal.md and held by golden files.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import types
from collections.abc import Callable, Hashable
from copy import copy
from datetime import datetime
from enum import Enum
from functools import cache, lru_cache
from json.encoder import encode_basestring as _text
from operator import attrgetter
from typing import Any, cast, get_args, get_origin, get_type_hints

from keepward.errors import InvalidInput, Tampered
from keepward.model.memory import READ_FIELDS, Record
from keepward.model.trust import Trust
from keepward.model.value import from_micros, to_micros

#: Schema number of record payloads.
RECORD_SCHEMA = 1
#: Largest whole number that every reader of JSON keeps.
SAFE = 2**53
#: What shares are whole numbers of.
_SHARE = 10_000
_PAYLOAD_LABEL = b"keepward/payload/v1\0"
#: Fields of a record that are written whatever they hold.
_ALWAYS = frozenset({"stability"})
# Half of what ``json.loads`` takes: a payload is UTF-8 and has no blanks around it.
_decode = json.JSONDecoder().raw_decode
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), sort_keys=False).encode


def canonical(value: Any) -> bytes:
    """Return the RFC 8785 bytes of a JSON value.

    Raises:
        InvalidInput: a float, an integer beyond 2**53, a non-string key, NUL or a lone surrogate.
    """
    try:
        return _encode(_ordered(value)).encode()
    except UnicodeEncodeError as fault:
        raise InvalidInput("text holds a lone surrogate; send well-formed Unicode") from fault


def _ordered(value: Any) -> Any:
    if isinstance(value, str):
        if "\0" in value:
            raise InvalidInput("text holds a NUL character; remove it")
        return value
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        if abs(value) > SAFE:
            raise InvalidInput("an integer beyond 2**53 cannot be stored; send it as text")
        return value
    if isinstance(value, (list, tuple)):
        return [_ordered(item) for item in value]
    if isinstance(value, dict):
        try:
            names = "".join(value)
        except TypeError as fault:
            raise InvalidInput("a key that is no text has no canonical form; send it as text") from fault
        _ordered(names)
        # RFC 8785 sorts by UTF-16 code units, which for ASCII, as nearly all keys are, is the order of characters.
        units = None if names.isascii() else lambda key: key.encode("utf-16-be", "surrogatepass")
        return {key: _ordered(value[key]) for key in sorted(value, key=units)}
    raise InvalidInput(f"a {type(value).__name__} has no canonical form; use text, integers, lists or objects")


def digest(label: str, *parts: bytes) -> bytes:
    """Return SHA-256 over ``keepward/<label>/v1``, a zero byte, and the parts joined."""
    state = hashlib.sha256(f"keepward/{label}/v1".encode() + b"\0")
    for part in parts:
        state.update(part)
    return state.digest()


@lru_cache(maxsize=256)
def hidden(tenant: str) -> str:
    """Return the 64 hex digits that stand for a tenant where its name is not to be read."""
    return digest("tenant", tenant.encode("utf-8", "surrogatepass")).hex()


def commitment(salt: bytes, payload: bytes) -> bytes:
    """Return the salted commitment to a payload: 32 bytes that say nothing without the 16-byte salt."""
    # As ``digest`` says it, in one call.
    return hashlib.sha256(_PAYLOAD_LABEL + salt + payload).digest()


# How a field of a record is written and read, by its type; read is None where it comes as it is.
_Form = tuple[Callable[[Any], str], Callable[[Any], Any] | None]


def _instant(at: datetime) -> str:
    micros = to_micros(at)
    return str(micros if micros <= SAFE else canonical(micros))


def _form(kind: Any) -> _Form:
    if kind is float:
        return lambda share: str(round(share * _SHARE)), lambda share: share / _SHARE
    if kind is datetime:
        return _instant, from_micros
    if kind is Trust:
        return _by_name({each: each.label for each in Trust})
    if isinstance(kind, type) and issubclass(kind, Enum):
        return _by_name({each: each.value for each in kind})
    if get_origin(kind) is tuple:
        return lambda items: f"[{','.join(map(_text, items))}]", tuple
    return (str if kind is int else _text), None


def _by_name(names: dict[Any, str]) -> _Form:
    # Looked up by value: an enum's own call costs five times as much, and every read decodes.
    return {each: f'"{name}"' for each, name in names.items()}.__getitem__, {
        name: each for each, name in names.items()
    }.__getitem__


def _forms() -> dict[str, tuple[dataclasses.Field[Any], _Form]]:
    """Return, by name in the payload and in its order, what is written of a record."""
    hints = get_type_hints(Record)
    kept = [each for each in dataclasses.fields(Record) if each.name not in READ_FIELDS]
    forms = {each.name.removesuffix("_json"): (each, _form(_plain(hints[each.name])[0])) for each in kept}
    return dict(sorted(forms.items()))


def _plain(kind: Any) -> tuple[Any, bool]:
    """Return a type without None, and whether None was among it."""
    if get_origin(kind) is types.UnionType and type(None) in get_args(kind):
        return next(each for each in get_args(kind) if each is not type(None)), True
    return kind, False


_FORMS = _forms()
#: The field that a name stands for, and how it is read.
_READ = {name: (each.name, form[1]) for name, (each, form) in _FORMS.items()}
#: For each field the text before its value, the value that is left out, and how it is written; then its values.
_WRITE = [
    (f'"{name}":', dataclasses.MISSING if name in _ALWAYS else each.default, form[0])
    for name, (each, form) in _FORMS.items()
]
_values = attrgetter(
    *(f"stored_{each.name}" if each.name in {"confidence", "importance"} else each.name for each, _ in _FORMS.values())
)
#: ``v`` stands before ``version``, the last name.
_SCHEMA = f'"v":{RECORD_SCHEMA},'


def encode_record(record: Record) -> bytes:
    """Return the canonical payload of a record."""
    # In the order of ``canonical``, which says the same in four times the time: every write and every comparison of
    # two states passes here.
    parts = [
        name + write(value)
        for (name, default, write), value in zip(_WRITE, _values(record), strict=True)
        # None, a member of an enum, or the empty tuple: there is one of each.
        if value is not default
    ]
    parts[-1] = _SCHEMA + parts[-1]
    payload = f"{{{','.join(parts)}}}"
    if "\\u0000" in payload:
        # Refused there, if it is what it looks like.
        return canonical(json.loads(payload))
    try:
        return payload.encode()
    except UnicodeEncodeError as fault:
        raise InvalidInput("text holds a lone surrogate; send well-formed Unicode") from fault


def _maker() -> Callable[..., Record]:
    """Return what makes a record of its fields in an eighth of the time: past a frozen class's lock each takes a call.

    They are set in an object of an open class of the same layout, which then becomes one of the frozen class.
    """
    fields = [(each.name, each.type, copy(each)) for each in dataclasses.fields(Record)]
    filled: Any = dataclasses.make_dataclass("Record", fields, kw_only=True, eq=False, repr=False)
    fill = filled.__init__
    opened = type("Record", Record.__bases__, {"__slots__": Record.__slots__})

    def made(**given: Any) -> Record:
        record: Any = object.__new__(opened)
        fill(record, **given)
        record.__class__ = Record
        return cast("Record", record)

    return made


_made = _maker()


def decode_record(payload: bytes) -> Record:
    """Return the record of a payload.

    Raises:
        Tampered: the payload is not one that ``encode_record`` wrote.
    """
    try:
        text = payload.decode()
        fields, end = _decode(text)
        if end != len(text) or not fields.keys() >= _ALWAYS:
            raise ValueError("it is not whole, or something stands behind it")
        if fields.pop("v") != RECORD_SCHEMA:
            raise Tampered("a memory is written in an unknown schema; upgrade Keepward or run `keepward verify`")
        given = {}
        for name, value in fields.items():
            field, read = _READ[name]
            given[field] = value if read is None else read(value)
        return _made(**given)
    except (KeyError, ValueError, TypeError, AttributeError) as fault:
        raise Tampered("a memory's payload is damaged; run `keepward verify`") from fault


def pack(value: Any) -> Any:
    """Return a value of the model as JSON values that ``unpack`` reads: by field, records as their canonical payloads.

    Instants are whole microseconds, as text beyond the years that a number of JSON reaches; enums are their values,
    bytes hex digits.
    """
    match value:
        case Record():
            return encode_record(value).decode()
        case Enum():
            return value.value
        case datetime():
            at = to_micros(value)
            return at if abs(at) <= SAFE else str(at)
        case bytes():
            return value.hex()
        case tuple() | list():
            return [pack(each) for each in value]
        case dict():
            return {name: pack(each) for name, each in sorted(value.items())}
        case _ if dataclasses.is_dataclass(value):
            return {each.name: pack(getattr(value, each.name)) for each in dataclasses.fields(value)}
    return value


def unpack(kind: Any, value: Any) -> Any:
    """Return the value of a type that ``pack`` packed; what is not there is as the type has it by default.

    Raises:
        KeyError, TypeError, ValueError, Tampered: it did not.
    """
    read = _reader(kind)
    return value if read is None else read(value)


@cache
def _reader(kind: Hashable) -> Callable[[Any], Any] | None:
    """Return what reads a packed value of a type, found out once a type; None where it is what it is."""
    plain, optional = _plain(kind)
    read = _plain_reader(plain)
    if read is None or not optional:
        return read
    return lambda value: None if value is None else read(value)


def _plain_reader(kind: Any) -> Callable[[Any], Any] | None:
    if kind is Record:
        return lambda value: decode_record(value.encode())
    if kind is datetime:
        return lambda value: from_micros(int(value))
    if kind is bytes:
        return bytes.fromhex
    if get_origin(kind) is tuple:
        each = _reader(get_args(kind)[0])
        return tuple if each is None else lambda values: tuple(map(each, values))
    if dataclasses.is_dataclass(kind):
        readers = {name: _reader(hint) for name, hint in get_type_hints(kind).items()}

        def read(fields: Any) -> Any:
            known = ((name, readers[name], value) for name, value in fields.items())
            return kind(**{name: value if read is None else read(value) for name, read, value in known})  # type: ignore[operator]

        return read
    return kind if isinstance(kind, type) and issubclass(kind, Enum) else None
