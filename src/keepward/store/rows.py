"""Rows: how a record stands in its columns, and how a row is checked before it is believed.

Invariants
(1) A record's columns are computed from its payload alone; a row that differs from them is damaged.
(2) A payload counts when it opens its commitment, the commitment is in the event's header, and the
    event's seal holds.
(3) What was checked is a function of all cells of a row and of the key: a row that is the same in every cell holds
    again. Its hash is remembered and none of its words, so that nothing of an erased memory is.
"""

from __future__ import annotations

import hashlib
import json
import logging
import marshal
import struct
from collections.abc import Iterable
from datetime import datetime
from functools import lru_cache
from json.encoder import encode_basestring_ascii
from typing import Any

from keepward.errors import Tampered
from keepward.model.codec import commitment, decode_record
from keepward.model.commit import event_hash
from keepward.model.memory import Record, Stability, Tier, idle_since, importance_at
from keepward.model.query import Filter
from keepward.model.value import name_forms, to_micros
from keepward.ports.store import Features, Profile
from keepward.store.seals import Sealer
from keepward.store.sql import Row

#: Events of one commit; a position is ``seq * WIDTH + n``.
WIDTH = 1 << 20
_log = logging.getLogger(__name__)

#: Stands between an embedder and a recipe.
_BY = " recipe="
_FACTS = struct.Struct(">Hqq")
_NEVER = -(1 << 63)
#: Rows that are known to hold; when there are more, all are forgotten.
_REMEMBERED = 16_384
_NONE = type(None)
_EVENT_TYPES = (int, int, str, str, int, bytes, bytes, bytes, bytes)
_COMMIT_TYPES = (int, str, int, str, str, bytes, bytes)


class Gone(Tampered):
    """The content of an event is missing; an erasure may say why."""


def listed(names: Iterable[str]) -> str:
    """Return names as a JSON list for ``json_each``, as ``json.dumps`` would, in a fifth of its time."""
    return f"[{','.join(map(encode_basestring_ascii, names))}]"


def columns_of(record: Record) -> Row:
    """Return the columns of a record that are computed from its payload, ``status`` to ``standing``."""
    return (
        record.status._value_,
        record.tier._value_,
        record.kind._value_,
        record.scope,
        record.key,
        record.subject,
        record.category,
        record.content_type._value_,
        record.sensitivity._value_,
        record.source,
        int(record.effective_trust),
        round(record.importance * 10_000),
        to_micros(record.created_at),
        None if record.expires_at is None else to_micros(record.expires_at),
        record.job,
        record.session,
        json.dumps(record.tags, ensure_ascii=False) if record.tags else "[]",
        record.stability._value_,
        int(record.pinned or record.tier is Tier.WORKING or record.key is not None),
    )


def record_row(tenant: str, seq: int, n: int, arrival: int, record: Record) -> Row:
    return (tenant, record.id, record.version, seq, n, seq * WIDTH + n, arrival, *columns_of(record))


def place_of(record: Record) -> str:
    """Return what must be equal for two memories to be compared: tier, sensitivity and scope."""
    return f"{record.tier._value_} {record.sensitivity._value_} {record.scope}"


def place_in(row: Row) -> str:
    """Return the place of a row of ``profiles``."""
    return f"{row[7]} {row[14]} {row[9]}"


def opened(sealer: Sealer, tenant: bytes, event: Row) -> bytes:
    """Return the payload of an event row (seq, n, op, memory_id, version, salt, payload, payload_commit, seal).

    Raises:
        Tampered: see (2), or the payload is gone.
    """
    if event[6] is None or event[5] is None:
        raise Gone("the content of a memory is missing")
    flaw = flaw_of_event(sealer, tenant, event)
    if flaw is not None:
        raise Tampered(f"an event is damaged: {flaw}")
    return event[6]  # type: ignore[no-any-return]


def flaw_of_event(sealer: Sealer, tenant: bytes, event: Row, digest: bytes | None = None) -> str | None:
    """Return what is wrong with an event row by itself; None if nothing, also where its content is gone.

    ``digest`` is its hash, where that is known and its cells were looked at.
    """
    if digest is None and not sound_header(event):
        # A bent page can give a cell another type than its column has.
        return "its cells are damaged"
    seq, n, op, memory_id, version, salt, payload, payload_commit, seal = event
    if (salt is None) != (payload is None):
        return "half of its content is missing"
    if payload is not None and commitment(salt, payload) != payload_commit:
        return "its content does not open its commitment"
    hashed = digest or event_hash(n, op, memory_id, version, payload_commit)
    return None if sealer.holds_event(seal, tenant, seq, n, hashed) else "its seal does not hold"


def sound_commit(row: Row) -> bool:
    """Whether the cells of a ``commit_row`` have the types of their columns.

    Salt and payload may both be gone, and the receipt.
    """
    kinds = tuple(map(type, row))
    content = kinds[7:9] in {(bytes, bytes), (_NONE, _NONE)}
    return kinds[:7] == _COMMIT_TYPES and content and kinds[9:11] == (bytes, bytes) and kinds[11] in {bytes, _NONE}


def sound_header(event: Row) -> bool:
    """Whether the cells of an event row have the types of their columns; salt and payload may be gone."""
    kinds = tuple(map(type, event))
    if kinds == _EVENT_TYPES:
        return True
    return kinds[:5] == _EVENT_TYPES[:5] and kinds[7:9] == _EVENT_TYPES[7:] and {*kinds[5:7]} <= {bytes, type(None)}


def record_at(sealer: Sealer, tenant: bytes, event: Row) -> Record:
    """Return the record of an event row.

    Raises:
        Tampered: the row does not hold, or its payload tells of another memory or version.
    """
    record = decode_record(opened(sealer, tenant, event))
    if record.id != event[3] or record.version != event[4]:
        raise Tampered("an event holds the content of another")
    return record


def record_of(sealer: Sealer, tenant: bytes, row: Row) -> Record:
    """Return the record of a ``record_row``: 25 columns of records, 9 of its event, newest version, arrival.

    Raises:
        Tampered: anything about the row does not hold.
    """
    memory_id, version, seq, n, position, arrival = row[:6]
    event, newest, first = row[25:34], row[34], row[35]
    if event[0] is None:
        raise Tampered("a record points at no event")
    record = record_at(sealer, tenant, event)
    if (record.id, record.version, newest) != (memory_id, version, version):
        raise Tampered("a record is not the newest version")
    if (event[0], event[1]) != (seq, n) or position != seq * WIDTH + n or arrival != first:
        raise Tampered("a record is out of place")
    if columns_of(record) != row[6:25]:
        raise Tampered("a record's columns differ from its content")
    return record


def checked_record(sealer: Sealer, tenant: bytes, row: Row) -> Record:
    """Return what ``record_of`` does; what has been checked with this sealer is not checked again, see (3).

    Raises:
        Tampered: anything about the row does not hold.
    """
    mark = hashlib.blake2b(marshal.dumps((tenant, row), 2), digest_size=16).digest()
    if mark in sealer.checked:
        return decode_record(row[31])
    record = record_of(sealer, tenant, row)
    if len(sealer.checked) >= _REMEMBERED:
        sealer.checked.clear()
    sealer.checked.add(mark)
    return record


def pack_marks(marks: tuple[int, ...]) -> bytes:
    """Return marks as sorted int64, little-endian; a mark of 2**63 and above wraps to negative."""
    wrapped = sorted({mark if 0 <= mark < 1 << 63 else ((mark + (1 << 63)) % (1 << 64)) - (1 << 63) for mark in marks})
    return struct.pack(f"<{len(wrapped)}q", *wrapped)


def unpack_marks(raw: bytes) -> tuple[int, ...]:
    """Return the marks of ``pack_marks``, sorted."""
    return struct.unpack(f"<{len(raw) // 8}q", raw[: len(raw) // 8 * 8])


@lru_cache(maxsize=1_024)
def place_bits(place: str) -> int:
    """Return 64 bits of a place, as int64."""
    hashed = hashlib.blake2b(place.encode("utf-8", "surrogatepass"), digest_size=8, person=b"keepward/place")
    return int.from_bytes(hashed.digest(), "big", signed=True)


def placed_marks(place: str, marks: Iterable[int]) -> list[int]:
    """Return int64 marks as they stand in the table of ``marks``: exclusive or with 64 bits of their place.

    In one place different marks stay different. Marks of two places meet by chance, once in 2**61 pairs: whoever
    reads a memory found by them compares its place.
    """
    bits = place_bits(place)
    return [mark ^ bits for mark in marks]


def made_by(model: str | None, recipe: str) -> str | None:
    """Return the cell ``model`` of a row: whose vectors they are, and by what recipe."""
    return model + _BY + recipe if model and recipe else model


@lru_cache(maxsize=64)
def maker(cell: str | None) -> tuple[str | None, str]:
    """Return embedder and recipe of the cell ``model`` of a row; no recipe of one by an earlier release."""
    model, _, recipe = (cell or "").partition(_BY)
    return model or None, recipe


def feature_cells(record: Record | None, features: Features | None) -> Row:
    """Return what a row of ``records`` says of ranking: whether features were computed, ``facts_of``, and features."""
    facts = b"" if record is None else facts_of(record)
    if features is None:
        return (0, facts, None, 0, b"", b"", b"", b"", b"")
    marks = pack_marks(features.marks)
    text = (features.digest, marks, features.trait, features.terms, features.vectors)
    return (1, facts, made_by(features.model, features.recipe), features.units, *text)


def facts_of(record: Record) -> bytes:
    """Return what ranking needs of a record beside its columns: confidence, instant told of, idle since, speaker."""
    occurred = _NEVER if record.occurred_at is None else to_micros(record.occurred_at)
    speaker = b"" if record.speaker is None else b"=" + record.speaker.encode("utf-8", "surrogatepass")
    since = idle_since(record)
    idle = _NEVER if since is None else to_micros(since)
    return _FACTS.pack(round(record.stored_confidence * 10_000), occurred, idle) + speaker


def fading(row: Row) -> tuple[int, int]:
    """Return importance in 1/10,000, and the microsecond from which it decays; the largest number for never."""
    importance, facts = row
    # Only a store without a key gets here with damaged cells.
    idle = _FACTS.unpack_from(facts)[2] if len(facts) >= _FACTS.size else _NEVER
    return importance, (1 << 63) - 1 if idle == _NEVER else idle


def holds_record(sealer: Sealer, tenant: str, row: Row) -> bool:
    """Whether a row of ``profiles`` matches its seal."""
    return not sealer.active or row[34] == sealer.record(tenant, *row[:34])


def profile_of(sealer: Sealer, tenant: str, row: Row) -> Profile | None:
    """Return how ranking sees the active memory of a row of ``profiles``; None where the row does not hold."""
    if not holds_record(sealer, tenant, row):
        return None
    facts = row[26]
    try:
        confidence, occurred, idle = _FACTS.unpack_from(facts)
        speaker = facts[_FACTS.size + 1 :].decode("utf-8", "surrogatepass") if len(facts) > _FACTS.size else None
        tags = () if row[22] == "[]" else tuple(json.loads(row[22]))
    except (ValueError, TypeError, struct.error):
        # Only a store without a key gets here with damaged cells.
        return None
    vectors = row[27] is not None and row[28] > 0
    model, recipe = maker(row[27])
    return Profile(
        row[0],
        row[1],
        row[4],
        row[5],
        row[9],
        row[7],
        row[8],
        row[13],
        row[10],
        row[11],
        row[12],
        row[21] if row[8] == "event" else None,
        speaker,
        tags,
        row[16],
        row[14] != "normal",
        row[17] / 10_000,
        confidence / 10_000,
        None if idle == _NEVER else idle,
        row[18] if occurred == _NEVER else occurred,
        row[19],
        row[32],
        model if vectors else None,
        row[33] if vectors else None,
        recipe,
    )


def features_of(sealer: Sealer, tenant: str, row: Row) -> Features | None:
    """Return the features of a row of ``profiles``.

    None where there are none or the row does not match its seal: they can be computed anew.
    """
    if row[25] != 1:
        return None
    if not holds_record(sealer, tenant, row):
        _log.warning("features of %s do not match their seal", row[0], extra={"action": "damaged"})
        return None
    return features_in(*row[27:34])


def features_in(cell: str | None, units: int, digest: bytes, marks: bytes, trait: bytes, *texts: bytes) -> Features:
    """Return the features that stand in the cells of a row from ``model`` on; the last are terms and vectors."""
    terms, vectors = texts
    model, recipe = maker(cell)
    return Features(
        model=model,
        recipe=recipe,
        units=units,
        digest=digest,
        marks=unpack_marks(marks),
        terms=terms,
        vectors=vectors,
        trait=trait,
    )


def important(record: Record, filters: Filter) -> bool:
    """Whether the importance of a record passes: what it has faded to at the filter's instant."""
    if not filters.min_importance:
        return True
    share = record.stored_importance if filters.at is None else importance_at(record, filters.at)
    return round(share * 10_000) >= round(filters.min_importance * 10_000)


def passes(record: Record, filters: Filter) -> bool:
    """Whether a record passes a filter: the rule that the SQL of ``find`` states too."""
    if filters.scopes and record.scope not in filters.scopes:
        return False
    if filters.ids is not None and record.id not in filters.ids:
        return False
    for value, wanted in (
        (record.tier, filters.tiers),
        (record.kind, filters.kinds),
        (record.content_type, filters.content_types),
    ):
        if wanted and value not in wanted:
            return False
    if filters.tags and not set(name_forms(filters.tags)) & set(record.tags):
        return False
    for name in ("key", "subject", "category", "session", "job"):
        wanted_name = getattr(filters, name)
        if wanted_name is not None and getattr(record, name) not in {wanted_name, *name_forms([wanted_name])}:
            return False
    if filters.keyed is not None and filters.keyed != (record.key is not None):
        return False
    if filters.permanent is not None and filters.permanent != (record.stability is Stability.PERMANENT):
        return False
    if not important(record, filters):
        return False
    return filters.include_sensitive or record.sensitivity.value == "normal"


#: Filters whose names an earlier release kept as they were typed.
_NAMED = ("subject", "category", "session")


def parameters(filters: Filter, live_at: datetime | None) -> dict[str, Any]:
    """Return a filter as the statements of ``find`` take it."""
    return {
        "scopes": listed(filters.scopes),
        "tiers": listed(filters.tiers),
        "kinds": listed(filters.kinds),
        "content_types": listed(filters.content_types),
        "tags": listed(json.dumps(tag, ensure_ascii=False) for tag in name_forms(filters.tags)),
        "key": filters.key,
        **{name: listed(name_forms([each] if (each := getattr(filters, name)) else [])) for name in _NAMED},
        "job": filters.job,
        "keyed": _flag(filters.keyed),
        "permanent": _flag(filters.permanent),
        # What is stored fades, and nothing fades upwards.
        "min_importance": round(filters.min_importance * 10_000),
        "include_sensitive": int(filters.include_sensitive),
        "now": None if live_at is None else to_micros(live_at),
    }


def _flag(value: bool | None) -> int | None:
    return None if value is None else int(value)
