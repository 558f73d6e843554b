"""The three JSON forms of a value: ``canonical`` for hashes, ``encode`` for the store, ``encode_json`` for callers.

``canonical`` is RFC 8785 for objects, arrays, strings, booleans, null and integers within 2**53; it refuses floating
point numbers. Stored strings contain no NUL and no lone surrogate. A result is an object with the names of its fields.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, TypeVar, overload

import msgspec

from keepward.errors import InvalidInput, KeepwardError, error_of

T = TypeVar("T")
#: Largest integer that every JSON reader represents exactly.
MAX_SAFE_INTEGER = 2**53
#: A NUL in JSON: ``\u0000`` after an even number of backslashes.
_NUL = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")


class HexBytes(bytes):
    """Bytes that JSON gives as hex digits."""


class JsonText(str):
    """The text of a JSON object, which JSON gives as that object."""

    __slots__ = ()

    @classmethod
    def of(cls, fields: Mapping[str, Any]) -> JsonText:
        """Return the text of an object, with sorted keys.

        Raises:
            TypeError, ValueError: JSON cannot represent a value.
        """
        return cls(json.dumps(fields, sort_keys=True, ensure_ascii=False, allow_nan=False, separators=(",", ":")))


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
