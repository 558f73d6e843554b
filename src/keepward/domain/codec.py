"""The canonical encoding: everything that is hashed or persisted passes through here.

Invariants
(1) ``canonical`` is RFC 8785 for the values it accepts: objects, arrays, strings, booleans, null and
    integers within 2**53. Floating point numbers are refused: shares travel as ten-thousandths.
(2) A record's payload leaves out what is empty, so that adding a field keeps old hashes valid.
(3) Every payload carries the schema number ``v``; an older number is read by its own upcaster.
(4) Strings hold no NUL and no lone surrogate.

The format is written down in docs/journal.md and held by golden files.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

from keepward.domain.instant import from_micros, to_micros
from keepward.domain.memory import (
    Access,
    ContentType,
    Kind,
    Record,
    Sensitivity,
    Stability,
    Status,
    Tier,
)
from keepward.domain.trust import Trust
from keepward.errors import InvalidInput, Tampered

#: Schema number of record payloads.
RECORD_SCHEMA = 1
_SAFE = 2**53
# Looked up by value: an enum's own call costs five times as much, and every read decodes.
_TIERS = {each.value: each for each in Tier}
_KINDS = {each.value: each for each in Kind}
_CONTENT_TYPES = {each.value: each for each in ContentType}
_TRUSTS = {each.label: each for each in Trust}
_SENSITIVITIES = {each.value: each for each in Sensitivity}
_STABILITIES = {each.value: each for each in Stability}
_STATUSES = {each.value: each for each in Status}
_SHARE = 10_000
_INSTANTS = ("created_at", "expires_at", "occurred_at", "reinforced_at", "updated_at")
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
        if abs(value) > _SAFE:
            raise InvalidInput("an integer beyond 2**53 cannot be stored; send it as text")
        return value
    if isinstance(value, (list, tuple)):
        return [_ordered(item) for item in value]
    if isinstance(value, dict):
        # RFC 8785 sorts by UTF-16 code units.
        keys = sorted(value, key=lambda key: key.encode("utf-16-be", "surrogatepass"))
        return {_ordered(key): _ordered(value[key]) for key in keys}
    raise InvalidInput(f"a {type(value).__name__} has no canonical form; use text, integers, lists or objects")


def digest(label: str, *parts: bytes) -> bytes:
    """Return SHA-256 over ``keepward/<label>/v1``, a zero byte, and the parts joined."""
    state = hashlib.sha256(f"keepward/{label}/v1".encode() + b"\0")
    for part in parts:
        state.update(part)
    return state.digest()


def commitment(salt: bytes, payload: bytes) -> bytes:
    """Return the salted commitment to a payload: 32 bytes that say nothing without the 16-byte salt."""
    return digest("payload", salt, payload)


def encode_record(record: Record) -> bytes:
    """Return the canonical payload of a record."""
    # In the order of ``canonical``; names and values here are such that nothing else is left for it to do.
    fields: dict[str, Any] = {
        "access": record.access and record.access._value_,
        "aliases": record.aliases,
        "author": record.author,
        "blob": record.blob,
        "category": record.category,
        "confidence": round(record.confidence * _SHARE),
        "content_type": None if record.content_type is ContentType.TEXT else record.content_type._value_,
        "created_at": to_micros(record.created_at),
        "derived_from": record.derived_from,
        "evidence": record.evidence,
        "expires_at": record.expires_at and to_micros(record.expires_at),
        "id": record.id,
        "importance": round(record.importance * _SHARE),
        "job": record.job,
        "key": record.key,
        "kind": record.kind._value_,
        "metadata": record.metadata,
        "occurred_at": record.occurred_at and to_micros(record.occurred_at),
        "reinforced_at": to_micros(record.reinforced_at),
        "scope": record.scope,
        "sensitivity": None if record.sensitivity is Sensitivity.NORMAL else record.sensitivity._value_,
        "session": record.session,
        "source": record.source,
        "speaker": record.speaker,
        "stability": record.stability._value_,
        "status": None if record.status is Status.ACTIVE else record.status._value_,
        "subject": record.subject,
        "superseded_by": record.superseded_by,
        "tags": record.tags,
        "text": record.text,
        "tier": record.tier._value_,
        "trust": record.trust.label,
        "updated_at": record.updated_at and to_micros(record.updated_at),
        "v": RECORD_SCHEMA,
        "version": record.version,
    }
    given = {name: value for name, value in fields.items() if value is not None and value != ()}
    payload = _encode(given)
    if "\\u0000" in payload or any(given.get(name, 0) > _SAFE for name in _INSTANTS):
        # Refused there, if it is what it looks like.
        return canonical(given)
    try:
        return payload.encode()
    except UnicodeEncodeError as fault:
        raise InvalidInput("text holds a lone surrogate; send well-formed Unicode") from fault


def decode_record(payload: bytes) -> Record:
    """Return the record of a payload.

    Raises:
        Tampered: the payload is not one that ``encode_record`` wrote.
    """
    try:
        fields = json.loads(payload)
        if fields["v"] != RECORD_SCHEMA:
            raise Tampered("a memory is written in an unknown schema; upgrade Keepward or run `keepward verify`")
        instant = {
            name: from_micros(fields[name]) for name in ("updated_at", "occurred_at", "expires_at") if name in fields
        }
        return Record(
            id=fields["id"],
            version=fields["version"],
            tier=_TIERS[fields["tier"]],
            kind=_KINDS[fields["kind"]],
            text=fields["text"],
            scope=fields["scope"],
            key=fields.get("key"),
            subject=fields.get("subject"),
            category=fields.get("category"),
            tags=tuple(fields.get("tags", ())),
            content_type=_CONTENT_TYPES[fields.get("content_type", "text")],
            blob=fields.get("blob"),
            metadata=fields.get("metadata"),
            source=fields["source"],
            trust=_TRUSTS[fields["trust"]],
            evidence=tuple(fields.get("evidence", ())),
            derived_from=tuple(fields.get("derived_from", ())),
            confidence=fields["confidence"] / _SHARE,
            importance=fields["importance"] / _SHARE,
            sensitivity=_SENSITIVITIES[fields.get("sensitivity", "normal")],
            stability=_STABILITIES[fields["stability"]],
            access=Access(fields["access"]) if "access" in fields else None,
            status=_STATUSES[fields.get("status", "active")],
            superseded_by=fields.get("superseded_by"),
            author=fields["author"],
            session=fields.get("session"),
            speaker=fields.get("speaker"),
            job=fields.get("job"),
            aliases=tuple(fields.get("aliases", ())),
            created_at=from_micros(fields["created_at"]),
            updated_at=instant.get("updated_at"),
            occurred_at=instant.get("occurred_at"),
            expires_at=instant.get("expires_at"),
            reinforced_at=from_micros(fields["reinforced_at"]),
        )
    except (KeyError, ValueError, TypeError, AttributeError) as fault:
        raise Tampered("a memory's payload is damaged; run `keepward verify`") from fault
