"""What a payload says of its record's columns, for whoever reads every payload there is.

``verify`` compares each record with its payload; to make a ``Record`` of each takes twice as long as the rest of it.

Invariants
(1) What ``content_of`` returns is what ``decode_record`` and ``columns_of`` give, and it fails where they do: whatever
    is not as ``encode_record`` writes it is left to them.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any, NamedTuple

from keepward.model.codec import RECORD_SCHEMA, decode_record
from keepward.model.memory import Access, ContentType, Kind, Record, Sensitivity, Stability, Status, Tier
from keepward.model.trust import Trust
from keepward.model.value import to_micros
from keepward.stores.sqlite.rows import Row, columns_of, place_of

_decode = json.JSONDecoder().raw_decode
_TEXTS = (
    *("access", "author", "blob", "category", "content_type", "id", "job", "key", "kind", "metadata", "scope"),
    *("sensitivity", "session", "source", "speaker", "stability", "status", "subject", "superseded_by", "text"),
    *("tier", "trust"),
)
_LISTS = ("aliases", "derived_from", "evidence", "tags")
_NUMBERS = ("confidence", "importance", "v", "version")
_INSTANTS = ("created_at", "expires_at", "occurred_at", "reinforced_at", "updated_at")
_TYPES = {
    **dict.fromkeys(_TEXTS, str),
    **dict.fromkeys(_LISTS, list),
    **dict.fromkeys(_NUMBERS + _INSTANTS, int),
}
_TIERS, _KINDS, _STABILITIES, _CONTENT_TYPES, _SENSITIVITIES, _STATUSES = (
    frozenset(each.value for each in names) for names in (Tier, Kind, Stability, ContentType, Sensitivity, Status)
)
_ACCESS = {None, *(each.value for each in Access)}
_STANDING = {Tier.CORE.value, Tier.WORKING.value}
_TEXT, _NORMAL, _ACTIVE = ContentType.TEXT.value, Sensitivity.NORMAL.value, Status.ACTIVE.value
_PERMANENT = Stability.PERMANENT.value
_TRUSTS = {each.label: int(each) for each in Trust}
_FIRST, _LAST = to_micros(datetime.min.replace(tzinfo=UTC)), to_micros(datetime.max.replace(tzinfo=UTC))


class Content(NamedTuple):
    """What verification compares of a payload."""

    id: str
    version: int
    #: As ``columns_of`` returns them.
    columns: Row
    #: As ``place_of`` returns it.
    place: str
    active: bool
    derived_from: tuple[str, ...]
    aliases: tuple[str, ...]
    blob: str | None

    @classmethod
    def of(cls, record: Record) -> Content:
        """Return what a record's payload says."""
        return cls(
            id=record.id,
            version=record.version,
            columns=columns_of(record),
            place=place_of(record),
            active=record.status is Status.ACTIVE,
            derived_from=record.derived_from,
            aliases=record.aliases,
            blob=record.blob,
        )


def content_of(payload: bytes) -> Content:
    """Return what a payload says.

    Raises:
        Tampered: the payload is not one that ``encode_record`` wrote.
    """
    found = _plain(payload)
    return Content.of(decode_record(payload)) if found is None else found


def _plain(payload: bytes) -> Content | None:
    """Return what a payload says that holds nothing unusual, else None."""
    try:
        text = payload.decode()
        fields, end = _decode(text)
        if end != len(text) or list(map(type, fields.values())) != list(map(_TYPES.get, fields)):
            return None
        return _content(fields) if _usual(fields) else None
    except (KeyError, ValueError, AttributeError):
        return None


def _usual(fields: dict[str, Any]) -> bool:
    """Whether the values of a payload's fields are among those that may stand there; see ``decode_record``."""
    get = fields.get
    return (
        fields["v"] == RECORD_SCHEMA
        and fields["tier"] in _TIERS
        and fields["kind"] in _KINDS
        and fields["stability"] in _STABILITIES
        and get("content_type", _TEXT) in _CONTENT_TYPES
        and get("sensitivity", _NORMAL) in _SENSITIVITIES
        and get("status", _ACTIVE) in _STATUSES
        and get("access") in _ACCESS
        and fields["trust"] in _TRUSTS
        and 0 <= fields["confidence"] <= 10_000
        and 0 <= fields["importance"] <= 10_000
        and _FIRST <= fields["created_at"] <= _LAST
        and _FIRST <= fields["reinforced_at"] <= _LAST
        and _FIRST <= get("updated_at", _FIRST) <= _LAST
        and _FIRST <= get("occurred_at", _FIRST) <= _LAST
        and _FIRST <= get("expires_at", _FIRST) <= _LAST
        and "author" in fields
        and "text" in fields
    )


def _content(fields: dict[str, Any]) -> Content:
    get = fields.get
    tier, scope, key, stability = fields["tier"], fields["scope"], get("key"), fields["stability"]
    status, sensitivity, tags = get("status", _ACTIVE), get("sensitivity", _NORMAL), get("tags")
    columns = (
        status,
        tier,
        fields["kind"],
        scope,
        key,
        get("subject"),
        get("category"),
        get("content_type", _TEXT),
        sensitivity,
        fields["source"],
        _TRUSTS[fields["trust"]],
        fields["importance"],
        fields["created_at"],
        get("expires_at"),
        get("job"),
        get("session"),
        json.dumps(tags, ensure_ascii=False) if tags else "[]",
        stability,
        int(tier in _STANDING or stability == _PERMANENT or key is not None),
    )
    return Content(
        fields["id"],
        fields["version"],
        columns,
        f"{tier} {sensitivity} {scope}",
        status == _ACTIVE,
        tuple(get("derived_from", ())),
        tuple(get("aliases", ())),
        get("blob"),
    )
