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
from json.encoder import encode_basestring as _text
from operator import attrgetter
from typing import Any

from keepward.errors import InvalidInput, Tampered
from keepward.model.memory import (
    Access,
    ContentType,
    Kind,
    Record,
    Sensitivity,
    Stability,
    Status,
    Tier,
)
from keepward.model.trust import Trust
from keepward.model.value import from_micros, to_micros

#: Schema number of record payloads.
RECORD_SCHEMA = 1
#: Largest whole number that every reader of JSON keeps.
SAFE = 2**53
# Looked up by value: an enum's own call costs five times as much, and every read decodes.
_TIERS = {each.value: each for each in Tier}
_KINDS = {each.value: each for each in Kind}
_CONTENT_TYPES = {each.value: each for each in ContentType}
_TRUSTS = {each.label: each for each in Trust}
_SENSITIVITIES = {each.value: each for each in Sensitivity}
_STABILITIES = {each.value: each for each in Stability}
_STATUSES = {each.value: each for each in Status}
_SHARE = 10_000
_instants = attrgetter("created_at", "expires_at", "occurred_at", "reinforced_at", "updated_at")
#: The last instant whose number is one of (1).
_LAST = from_micros(SAFE)
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


def commitment(salt: bytes, payload: bytes) -> bytes:
    """Return the salted commitment to a payload: 32 bytes that say nothing without the 16-byte salt."""
    return digest("payload", salt, payload)


def encode_record(record: Record) -> bytes:
    """Return the canonical payload of a record."""
    # The template is in the order of ``canonical``, which says the same in four times the time: every write and every
    # comparison of two states passes here.
    written = (
        "{",
        f'"access":"{record.access._value_}",' if record.access else "",
        f'"aliases":{_texts(record.aliases)},' if record.aliases else "",
        f'"author":{_text(record.author)},',
        "" if record.blob is None else f'"blob":{_text(record.blob)},',
        "" if record.category is None else f'"category":{_text(record.category)},',
        f'"confidence":{round(record.stored_confidence * _SHARE)},',
        "" if record.content_type is ContentType.TEXT else f'"content_type":"{record.content_type._value_}",',
        f'"created_at":{to_micros(record.created_at)},',
        f'"derived_from":{_texts(record.derived_from)},' if record.derived_from else "",
        f'"evidence":{_texts(record.evidence)},' if record.evidence else "",
        f'"expires_at":{to_micros(record.expires_at)},' if record.expires_at else "",
        "" if record.heard is None else f'"heard":"{record.heard.label}",',
        f'"id":{_text(record.id)},',
        f'"importance":{round(record.stored_importance * _SHARE)},',
        "" if record.job is None else f'"job":{_text(record.job)},',
        "" if record.key is None else f'"key":{_text(record.key)},',
        f'"kind":"{record.kind._value_}",',
        "" if record.metadata_json is None else f'"metadata":{_text(record.metadata_json)},',
        f'"occurred_at":{to_micros(record.occurred_at)},' if record.occurred_at else "",
        f'"reinforced_at":{to_micros(record.reinforced_at)},',
        f'"scope":{_text(record.scope)},',
        "" if record.sensitivity is Sensitivity.NORMAL else f'"sensitivity":"{record.sensitivity._value_}",',
        "" if record.session is None else f'"session":{_text(record.session)},',
        f'"source":{_text(record.source)},',
        "" if record.speaker is None else f'"speaker":{_text(record.speaker)},',
        f'"stability":"{record.stability._value_}",',
        "" if record.status is Status.ACTIVE else f'"status":"{record.status._value_}",',
        "" if record.subject is None else f'"subject":{_text(record.subject)},',
        "" if record.superseded_by is None else f'"superseded_by":{_text(record.superseded_by)},',
        f'"tags":{_texts(record.tags)},' if record.tags else "",
        f'"text":{_text(record.text)},',
        f'"tier":"{record.tier._value_}",',
        f'"trust":"{record.trust.label}",',
        f'"updated_at":{to_micros(record.updated_at)},' if record.updated_at else "",
        f'"v":{RECORD_SCHEMA},"version":{record.version}}}',
    )
    payload = "".join(written)
    if "\\u0000" in payload or max(filter(None, _instants(record))) > _LAST:
        # Refused there, if it is what it looks like.
        return canonical(json.loads(payload))
    try:
        return payload.encode()
    except UnicodeEncodeError as fault:
        raise InvalidInput("text holds a lone surrogate; send well-formed Unicode") from fault


def _texts(items: tuple[str, ...]) -> str:
    return f"[{','.join(map(_text, items))}]"


def decode_record(payload: bytes) -> Record:
    """Return the record of a payload.

    Raises:
        Tampered: the payload is not one that ``encode_record`` wrote.
    """
    try:
        text = payload.decode()
        fields, end = _decode(text)
        if end != len(text):
            raise ValueError("something stands behind it")
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
            metadata_json=fields.get("metadata"),
            source=fields["source"],
            trust=_TRUSTS[fields["trust"]],
            heard=_TRUSTS[fields["heard"]] if "heard" in fields else None,
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
