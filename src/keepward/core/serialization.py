"""The payloads of records, and the hashes of what is stored.

* Confidence and importance are stored as ten-thousandths.
* The payload of a record has the fields of ``Record`` by name. A field with its default is left out, so that hashes
  stay valid when a field is added.
* Every payload has the schema number ``v``.

docs/internals/journal-format.md describes the format; golden files test it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import lru_cache
from operator import attrgetter
from typing import Any, TypeVar

import msgspec

from keepward.core.json_form import JsonText, encode, safe_integer
from keepward.core.memory import READ_FIELDS, MemoryFields, Record
from keepward.core.principals import Trust
from keepward.core.value import from_micros, to_micros
from keepward.errors import Tampered

T = TypeVar("T")
#: Schema number of record payloads.
RECORD_SCHEMA = 1
#: Shares are stored as integers of this fraction.
_SHARE_SCALE = 10_000
_PAYLOAD_LABEL = b"keepward/payload/v1\0"


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
        for name in (
            *("created_at", "text_at", "reinforced_at", "updated_at", "occurred_at", "expires_at"),
            *("valid_from", "valid_until", "stale_at"),
        )
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
_memory_fields = msgspec.json.Decoder(MemoryFields).decode


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


def decode_fields(payload: object) -> MemoryFields | None:
    """Return the fields of a payload, unchecked; None if it is unreadable."""
    try:
        return _memory_fields(payload)  # type: ignore[arg-type]
    except (ValueError, TypeError, RecursionError):
        return None
