"""The canonical encoding: everything that is hashed or stored passes through here.

* ``canonical`` is RFC 8785 for objects, arrays, strings, booleans, null and integers within 2**53. Floating point
  numbers are refused; confidence and importance are stored as ten-thousandths.
* The payload of a record has the fields of ``Record`` by name. A field with its default is left out, so that hashes
  stay valid when a field is added.
* Every payload has the schema number ``v``.
* Strings contain no NUL and no lone surrogate.

docs/internals/journal-format.md describes the format; golden files test it.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import lru_cache
from operator import attrgetter
from types import MappingProxyType
from typing import Any, TypeVar, overload

import msgspec

from keepward.core.memory import READ_FIELDS, Record
from keepward.core.principals import Trust
from keepward.core.value import HexBytes, JsonText, from_micros, to_micros
from keepward.errors import InvalidInput, KeepwardError, Tampered, error_of

T = TypeVar("T")
#: Schema number of record payloads.
RECORD_SCHEMA = 1
#: Largest integer that every JSON reader represents exactly.
MAX_SAFE_INTEGER = 2**53
#: Shares are stored as integers of this fraction.
_SHARE_SCALE = 10_000
_PAYLOAD_LABEL = b"keepward/payload/v1\0"
#: A NUL in JSON: ``\u0000`` after an even number of backslashes.
_NUL = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")


def _encode_other(value: Any) -> Any:
    """Return the JSON value of a type that msgspec does not know."""
    match value:
        case JsonText():
            return json.loads(value)
        case HexBytes():
            return value.hex()
        case KeepwardError():
            return {"code": value.code, "detail": str(value)}
        case MappingProxyType():
            return dict(value)
    # msgspec then reports the type.
    raise NotImplementedError


def _decode_other(kind: Any, value: Any) -> Any:
    """Return the value of such a type from its JSON value."""
    if kind is JsonText:
        return JsonText.of(value)
    if kind is HexBytes:
        return HexBytes.fromhex(value)
    if kind is KeepwardError:
        return error_of(value["code"], value["detail"])
    # msgspec then reports the type.
    raise NotImplementedError


_encode = msgspec.json.Encoder().encode
_encode_result = msgspec.json.Encoder(enc_hook=_encode_other).encode
_encode_sorted = msgspec.json.Encoder(order="sorted", enc_hook=_encode_other).encode


def canonical(value: Any) -> bytes:
    """Return the RFC 8785 bytes of a JSON value.

    Raises:
        InvalidInput: a float, an integer beyond 2**53, a non-string key, NUL or a lone surrogate.
    """
    return _checked(_encode, _ordered(value))


def _ordered(value: Any) -> Any:
    match value:
        case None | bool() | str():
            return value
        case int():
            return safe_integer(value)
        case list() | tuple():
            return [_ordered(item) for item in value]
        case dict():
            if not all(isinstance(key, str) for key in value):
                raise InvalidInput("a key that is not text has no canonical form; send it as text")
            # RFC 8785 sorts by UTF-16 code units, which in ASCII is the order of characters.
            units = None if all(map(str.isascii, value)) else lambda key: key.encode("utf-16-be", "surrogatepass")
            return {key: _ordered(value[key]) for key in sorted(value, key=units)}
    raise InvalidInput(f"a {type(value).__name__} has no canonical form; use text, integers, lists or objects")


def safe_integer(number: int) -> int:
    """Return an integer of at most 2**53; raise InvalidInput for a larger one."""
    if abs(number) > MAX_SAFE_INTEGER:
        raise InvalidInput("an integer beyond 2**53 cannot be stored; send it as text")
    return number


def encode(value: Any) -> bytes:
    """Return a value as JSON with sorted keys: structs by field, enums by value, instants as text.

    Raises:
        InvalidInput: NUL or a lone surrogate.
    """
    return _checked(_encode_sorted, value)


def _checked(write: Callable[[Any], bytes], value: Any) -> bytes:
    try:
        data = write(value)
    except UnicodeEncodeError as exc:
        raise InvalidInput("text contains a lone surrogate; send well-formed Unicode") from exc
    if b"\\u0000" in data and _NUL.search(data):
        raise InvalidInput("text contains a NUL character; remove it")
    return data


def encode_json(value: Any) -> bytes:
    """Return a value as JSON. A result is an object with the names of its fields."""
    try:
        return _encode_result(value)
    except UnicodeEncodeError:
        # A text, for example from a file name, may contain a lone surrogate, which JSON can escape.
        plain = msgspec.to_builtins(value, str_keys=True, enc_hook=_encode_other)
        return json.dumps(plain, allow_nan=False).encode()


def to_json(value: Any) -> Any:
    """Return a value as the JSON values of ``encode_json``."""
    return json.loads(encode_json(value))


@overload
def from_json(kind: type[T], value: Any) -> T: ...
@overload
def from_json(kind: Any, value: Any) -> Any: ...
def from_json(kind: Any, value: Any) -> Any:
    """Return a value of any type from what ``to_json`` gave: ``from_json(type(v), to_json(v)) == v``.

    Unknown keys are ignored, so a newer server may send more.

    Raises:
        ValueError: the value does not have this type.
    """
    return msgspec.convert(value, kind, str_keys=True, dec_hook=_decode_other)


def decode(kind: type[T], data: bytes) -> T:
    """Return a value of a type from ``encode``.

    Raises:
        ValueError: ``encode`` did not write it.
    """
    return msgspec.json.decode(data, type=kind, dec_hook=_decode_other)


def digest(label: str, *parts: bytes) -> bytes:
    """Return SHA-256 over ``keepward/<label>/v1``, a zero byte, and the joined parts."""
    state = hashlib.sha256(f"keepward/{label}/v1".encode() + b"\0")
    for part in parts:
        state.update(part)
    return state.digest()


@lru_cache(maxsize=256)
def tenant_digest(tenant: str) -> str:
    """Return the 64 hex digits that replace a tenant's name where it must not be readable."""
    return digest("tenant", tenant.encode("utf-8", "surrogatepass")).hex()


def commitment(salt: bytes, payload: bytes) -> bytes:
    """Return the 32-byte salted commitment to a payload; it reveals nothing without the 16-byte salt."""
    # Equal to ``digest``, in one call for speed.
    return hashlib.sha256(_PAYLOAD_LABEL + salt + payload).digest()


def _micros(at: datetime) -> int:
    return safe_integer(to_micros(at))


def _ten_thousandths(share: float) -> int:
    return round(share * _SHARE_SCALE)


def _share(ten_thousandths: int) -> float:
    return ten_thousandths / _SHARE_SCALE


#: Encoders of record fields by type; other types are encoded unchanged.
_WRITE: Mapping[type, Callable[[Any], Any]] = {
    datetime: _micros,
    float: _ten_thousandths,
    Trust: {trust: trust.label for trust in Trust}.__getitem__,
    JsonText: str,
}
#: Payload type and decoder of these fields; other fields have the type of the record.
_READ: list[tuple[str, Any, Callable[[Any], Any]]] = [
    *(
        (name, int, from_micros)
        for name in ("created_at", "text_at", "reinforced_at", "updated_at", "occurred_at", "expires_at")
    ),
    *((name, int, _share) for name in ("confidence", "importance")),
    *((name, str, {trust.label: trust for trust in Trust}.__getitem__) for name in ("trust", "heard")),
    ("metadata_json", str, JsonText),
]
_FIELDS = [field for field in msgspec.structs.fields(Record) if field.name not in READ_FIELDS]
#: Names in a payload, each with the value that is left out; ``stability`` is always written.
_WRITTEN = [
    (field.name.removesuffix("_json"), msgspec.NODEFAULT if field.name == "stability" else field.default)
    for field in _FIELDS
]
_values = attrgetter(
    *(f"stored_{field.name}" if field.name in {"confidence", "importance"} else field.name for field in _FIELDS)
)
_TYPES = {field.name: field.type for field in _FIELDS} | {
    name: kind if name in {"created_at", "reinforced_at", "confidence", "importance", "trust"} else kind | None
    for name, kind, _ in _READ
}
_Payload = msgspec.defstruct(
    "_Payload",
    [
        ("v", int),
        *(
            (field.name, _TYPES[field.name], msgspec.field(default=default))
            for field, (_, default) in zip(_FIELDS, _WRITTEN, strict=True)
        ),
    ],
    kw_only=True,
    forbid_unknown_fields=True,
    rename={"metadata_json": "metadata"},
)
_payload: Callable[[bytes], Any] = msgspec.json.Decoder(_Payload).decode


def encode_record(record: Record) -> bytes:
    """Return the canonical payload of a record."""
    fields: dict[str, Any] = {"v": RECORD_SCHEMA}
    for (name, default), value in zip(_WRITTEN, _values(record), strict=True):
        # Identity is enough: a default is None, an enum member or the empty tuple.
        if value is not default:
            write = _WRITE.get(type(value))
            fields[name] = value if write is None else write(value)
    # Left out while the text is the first one, like a default.
    if record.text_by == record.author:
        del fields["text_by"]
    if record.text_at == record.created_at:
        del fields["text_at"]
    return encode(fields)


def is_new_text(payload: Mapping[str, Any]) -> bool:
    """Whether the version with this payload has a new text; a change of other fields alters ``updated_at`` alone."""
    return bool(payload["version"] == 1 or payload.get("text_at", payload["created_at"]) == payload.get("updated_at"))


def decode_record(payload: bytes) -> Record:
    """Return the record of a payload.

    Raises:
        Tampered: ``encode_record`` did not write it.
    """
    try:
        fields = msgspec.structs.asdict(_payload(payload))
        if fields.pop("v") != RECORD_SCHEMA:
            raise Tampered("a memory is written in an unknown schema; upgrade Keepward or run `keepward verify`")
        if payload[:1] != b"{" or payload[-1:] != b"}":
            raise ValueError("blanks around the object")
        for name, _, read in _READ:
            if (value := fields[name]) is not None:
                fields[name] = read(value)
        return Record(**fields)
    except (KeyError, ValueError, TypeError, OverflowError, RecursionError) as exc:
        raise Tampered("a memory's payload is damaged; run `keepward verify`") from exc
