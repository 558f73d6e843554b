"""Rows: the columns of each table by name, and how a row is checked before it is believed.

Invariants
(1) A record and its features are each believed for their own seal, which covers every cell. The body of a record is
    the payload of its newest event; a record is refused where the journal has a newer version.
(2) A payload counts when it opens its commitment, the commitment is in the event's header, and the
    event's seal holds.
"""

from __future__ import annotations

import hashlib
import json
import logging
import struct
from collections.abc import Iterable
from functools import lru_cache
from json.encoder import encode_basestring_ascii
from typing import Any, NamedTuple

import msgspec

from keepward.core.commit import event_hash
from keepward.core.memory import Record, Tier, importance_at
from keepward.core.query import Filter
from keepward.core.serialization import commitment, decode_record
from keepward.core.value import name_forms, to_micros
from keepward.errors import Tampered
from keepward.ports.store import Features, RankingRow
from keepward.storage.seals import Sealer
from keepward.storage.sql import Row

#: Events of one commit; a position is ``seq * WIDTH + n``.
MAX_EVENTS_PER_COMMIT = 1 << 20
_log = logging.getLogger(__name__)
_NONE = type(None)
_EVENT_TYPES = (int, int, str, str, int, bytes, bytes, bytes, bytes)
_COMMIT_TYPES = (int, str, int, str, str, bytes, bytes)


class Gone(Tampered):
    """The content of an event is missing; an erasure may say why."""


class CommitRow(NamedTuple):
    """A row of ``commits`` without its tenant."""

    seq: int
    id: str
    at: int
    kind: str
    actor_kind: str
    prev: bytes
    events_hash: bytes
    salt: bytes | None
    payload: bytes | None
    hash: bytes
    seal: bytes
    receipt: bytes | None


class EventRow(NamedTuple):
    """A row of ``events`` without its tenant."""

    seq: int
    n: int
    op: str
    memory_id: str
    version: int
    salt: bytes | None
    payload: bytes | None
    payload_commit: bytes
    seal: bytes


class RecordRow(NamedTuple):
    """A row of ``records`` without its tenant."""

    id: str
    version: int
    position: int
    arrival: int
    status: str
    tier: str
    kind: str
    scope: str
    key: str | None
    subject: str | None
    category: str | None
    session: str | None
    sensitivity: str
    trust: int
    created_at: int
    expires_at: int | None
    standing: int
    body: bytes
    seal: bytes = b""

    @property
    def place(self) -> str:
        """What must be equal for two memories to be compared."""
        return f"{self.tier} {self.sensitivity} {self.scope}"

    def sealed(self, sealer: Sealer, tenant: str) -> RecordRow:
        """Return the row with its seal."""
        return self._replace(seal=sealer.cells("records", tenant, self[:-1]))

    def holds(self, sealer: Sealer, tenant: str) -> bool:
        """Whether the row matches its seal."""
        return not sealer.active or self[-1] == sealer.cells("records", tenant, self[:-1])


class FeatureRow(NamedTuple):
    """A row of ``features`` without its tenant."""

    id: str
    version: int
    model: str | None
    recipe: str
    units: int
    digest: bytes
    marks: bytes
    trait: bytes
    terms: bytes
    vectors: bytes
    seal: bytes = b""

    def sealed(self, sealer: Sealer, tenant: str) -> FeatureRow:
        """Return the row with its seal."""
        return self._replace(seal=sealer.cells("features", tenant, self[:-1]))

    def holds(self, sealer: Sealer, tenant: str) -> bool:
        """Whether the row matches its seal."""
        return not sealer.active or self[-1] == sealer.cells("features", tenant, self[:-1])

    def features(self) -> Features:
        return Features(
            model=self.model,
            recipe=self.recipe,
            units=self.units,
            digest=self.digest,
            marks=unpack_minhashes(self.marks),
            terms=self.terms,
            vectors=self.vectors,
            trait=self.trait,
        )


#: Cells of a record, and of a record with its features.
RECORD_COLUMNS, RECORD_AND_FEATURE_COLUMNS = len(RecordRow._fields), len(RecordRow._fields) + len(FeatureRow._fields)


class Body(msgspec.Struct, gc=False):
    """The fields of a record's body that filters, counts and ranking go by, read without the rest.

    Instants are microseconds since 1970, shares whole ten-thousandths.
    """

    id: str
    tier: str
    kind: str
    scope: str
    source: str
    author: str
    stability: str
    importance: int
    confidence: int
    created_at: int
    reinforced_at: int
    key: str | None = None
    subject: str | None = None
    category: str | None = None
    tags: tuple[str, ...] = ()
    content_type: str = "text"
    sensitivity: str = "normal"
    session: str | None = None
    speaker: str | None = None
    job: str | None = None
    updated_at: int | None = None
    occurred_at: int | None = None
    superseded_by: str | None = None
    derived_from: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    blob: str | None = None

    @property
    def idle_since(self) -> int | None:
        """From when importance fades; None where it does not."""
        # As ``memory.half_life_of`` says, without making members of enums by the ten thousand.
        if self.tier == "core" or self.stability == "permanent":
            return None
        return max(self.reinforced_at, self.updated_at or self.created_at)


_body = msgspec.json.Decoder(Body).decode


def parse_body(payload: object) -> Body | None:
    """Return what a payload says, unchecked; None where it cannot be read."""
    try:
        return _body(payload)  # type: ignore[arg-type]
    except (ValueError, TypeError):
        return None


def split_record_row(row: Row) -> tuple[RecordRow, FeatureRow | None]:
    """Return the rows of a line that begins with a record and its features."""
    # Thousands are made at once: this takes two thirds of the time of ``_make``.
    features = (
        None
        if row[RECORD_COLUMNS] is None
        else tuple.__new__(FeatureRow, row[RECORD_COLUMNS:RECORD_AND_FEATURE_COLUMNS])
    )
    return tuple.__new__(RecordRow, row[:RECORD_COLUMNS]), features


def json_array(names: Iterable[str]) -> str:
    """Return names as a JSON list for ``json_each``, as ``json.dumps`` would, in a fifth of its time."""
    return f"[{','.join(map(encode_basestring_ascii, names))}]"


def record_row(sealer: Sealer, tenant: str, position: int, arrival: int, record: Record, body: bytes) -> RecordRow:
    """Return the sealed row of a record, given the position of its event and that event's payload."""
    row = RecordRow(
        record.id,
        record.version,
        position,
        arrival,
        record.status._value_,
        record.tier._value_,
        record.kind._value_,
        record.scope,
        record.key,
        record.subject,
        record.category,
        record.session,
        record.sensitivity._value_,
        int(record.effective_trust),
        to_micros(record.created_at),
        None if record.expires_at is None else to_micros(record.expires_at),
        int(record.pinned or record.tier is Tier.WORKING or record.key is not None),
        body,
    )
    return row.sealed(sealer, tenant)


def feature_row(sealer: Sealer, tenant: str, memory_id: str, version: int, features: Features) -> FeatureRow:
    """Return the sealed row of the features of a memory's version."""
    row = FeatureRow(
        memory_id,
        version,
        features.model or None,
        features.recipe,
        features.units,
        features.digest,
        pack_minhashes(features.marks),
        features.trait,
        features.terms,
        features.vectors,
    )
    return row.sealed(sealer, tenant)


def dedup_partition(record: Record) -> str:
    """Return what must be equal for two memories to be compared: tier, sensitivity and scope."""
    return f"{record.tier._value_} {record.sensitivity._value_} {record.scope}"


def event_flaw(sealer: Sealer, tenant: bytes, event: EventRow, digest: bytes | None = None) -> str | None:
    """Return what is wrong with an event row by itself; None if nothing, also where its content is gone.

    ``digest`` is its hash, where that is known and its cells were looked at.
    """
    if digest is None and not has_event_types(event):
        # A bent page can give a cell another type than its column has.
        return "its cells are damaged"
    if (event.salt is None) != (event.payload is None):
        return "half of its content is missing"
    content = None if event.salt is None or event.payload is None else commitment(event.salt, event.payload)
    if content is not None and content != event.payload_commit:
        return "its content does not open its commitment"
    hashed = digest or event_hash(event.n, event.op, event.memory_id, event.version, event.payload_commit)
    return None if sealer.matches_event(event.seal, tenant, event.seq, event.n, hashed) else "its seal does not hold"


def has_commit_types(row: CommitRow) -> bool:
    """Whether the cells of a commit have the types of their columns.

    Salt and payload may both be gone, and the receipt.
    """
    kinds = tuple(map(type, row))
    content = kinds[7:9] in {(bytes, bytes), (_NONE, _NONE)}
    return kinds[:7] == _COMMIT_TYPES and content and kinds[9:11] == (bytes, bytes) and kinds[11] in {bytes, _NONE}


def has_event_types(event: EventRow) -> bool:
    """Whether the cells of an event row have the types of their columns; salt and payload may be gone."""
    kinds = tuple(map(type, event))
    if kinds == _EVENT_TYPES:
        return True
    return kinds[:5] == _EVENT_TYPES[:5] and kinds[7:9] == _EVENT_TYPES[7:] and {*kinds[5:7]} <= {bytes, _NONE}


def record_at(sealer: Sealer, tenant: bytes, event: EventRow) -> Record:
    """Return the record of an event row.

    Raises:
        Gone: its content is missing.
        Tampered: the row does not hold, or its payload tells of another memory or version.
    """
    if event.payload is None or event.salt is None:
        raise Gone("the content of a memory is missing")
    if (flaw := event_flaw(sealer, tenant, event)) is not None:
        raise Tampered(f"an event is damaged: {flaw}")
    record = decode_record(event.payload)
    if record.id != event.memory_id or record.version != event.version:
        raise Tampered("an event holds the content of another")
    return record


def record_of(sealer: Sealer, tenant: str, row: RecordRow, newest: int | None) -> Record:
    """Return the record of a row, given the newest version that the journal has.

    Raises:
        Tampered: the row does not hold.
    """
    if not row.holds(sealer, tenant):
        raise Tampered("its record does not match its seal")
    if row.version != newest:
        raise Tampered("a record is not the newest version")
    record = decode_record(row.body)
    if (record.id, record.version) != (row.id, row.version):
        raise Tampered("a record holds the content of another")
    return record


def pack_minhashes(marks: tuple[int, ...]) -> bytes:
    """Return marks as sorted int64, little-endian; a mark of 2**63 and above wraps to negative."""
    wrapped = sorted({mark if 0 <= mark < 1 << 63 else ((mark + (1 << 63)) % (1 << 64)) - (1 << 63) for mark in marks})
    return struct.pack(f"<{len(wrapped)}q", *wrapped)


def unpack_minhashes(raw: bytes) -> tuple[int, ...]:
    """Return the marks of ``pack_minhashes``, sorted."""
    return struct.unpack(f"<{len(raw) // 8}q", raw[: len(raw) // 8 * 8])


@lru_cache(maxsize=1_024)
def partition_bits(place: str) -> int:
    """Return 64 bits of a place, as int64."""
    hashed = hashlib.blake2b(place.encode("utf-8", "surrogatepass"), digest_size=8, person=b"keepward/place")
    return int.from_bytes(hashed.digest(), "big", signed=True)


def partitioned_minhashes(place: str, marks: Iterable[int]) -> list[int]:
    """Return int64 marks as they stand in the table of ``marks``: exclusive or with 64 bits of their place.

    In one place different marks stay different. Marks of two places meet by chance, once in 2**61 pairs: whoever
    reads a memory found by them compares its place.
    """
    bits = partition_bits(place)
    return [mark ^ bits for mark in marks]


def minhash_rows(tenant: str, record: RecordRow, features: FeatureRow | None) -> list[Row]:
    """Return the rows of ``marks`` that a record calls for."""
    packed = b"" if features is None else features.marks
    return [(tenant, mark, record.position) for mark in partitioned_minhashes(record.place, unpack_minhashes(packed))]


def verified_features(sealer: Sealer, tenant: str, row: FeatureRow | None) -> Features:
    """Return the features of a row; empty ones where there are none or they do not match their seal."""
    if row is not None and row.holds(sealer, tenant):
        return row.features()
    if row is not None:
        _log.warning("features of %s do not match their seal", row.id, extra={"action": "damaged"})
    return Features(terms=b"")


def profile_of(sealer: Sealer, tenant: str, row: RecordRow, features: FeatureRow | None) -> RankingRow | None:
    """Return how ranking sees an active memory, with its words alone where its features do not hold.

    None where its row does not.
    """
    body = parse_body(row.body) if row.holds(sealer, tenant) else None
    if body is None:
        _log.warning("memory %s was left out: it does not match its seal", row.id, extra={"action": "damaged"})
        return None
    if features is not None and not features.holds(sealer, tenant):
        _log.warning("features of %s do not match their seal", row.id, extra={"action": "damaged"})
        features = None
    vectors = features if features is not None and features.model is not None and features.units > 0 else None
    return RankingRow(
        row.id,
        row.version,
        row.position,
        row.arrival,
        row.scope,
        row.tier,
        row.kind,
        body.content_type,
        row.key,
        row.subject,
        row.category,
        row.session if row.kind == "event" else None,
        body.speaker,
        body.tags,
        row.trust,
        row.sensitivity != "normal",
        body.importance / 10_000,
        body.confidence / 10_000,
        body.idle_since,
        row.created_at if body.occurred_at is None else body.occurred_at,
        row.expires_at,
        b"" if features is None else features.terms,
        None if vectors is None else vectors.model,
        None if vectors is None else vectors.vectors,
        "" if features is None else features.recipe,
    )


def matches_filter(record: Record | Body, filters: Filter) -> bool:
    """Whether a memory passes a filter, as far as its body tells: how far importance has faded only a record does."""
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
    if filters.permanent is not None and filters.permanent != (record.stability == "permanent"):
        return False
    if filters.min_importance and isinstance(record, Record):
        share = record.stored_importance if filters.at is None else importance_at(record, filters.at)
        if round(share * 10_000) < round(filters.min_importance * 10_000):
            return False
    return filters.include_sensitive or record.sensitivity == "normal"


def has_body_filter(filters: Filter) -> bool:
    """Whether a filter asks for what no column answers."""
    names = (filters.content_types, filters.tags, filters.job)
    return any(names) or (filters.keyed, filters.permanent, filters.ids) != (None, None, None)


def _forms(name: str | None) -> str:
    """Return the ways to write a name as a JSON list; an empty one for none."""
    return json_array(name_forms([name] if name else []))


def filter_parameters(filters: Filter, live_at: int | None) -> dict[str, Any]:
    """Return the part of a filter that columns answer, as the statements take it; the instant in microseconds.

    Tags are written as a body holds them.
    """
    return {
        "scopes": json_array(filters.scopes),
        "tiers": json_array(filters.tiers),
        "kinds": json_array(filters.kinds),
        "key": filters.key,
        "subject": _forms(filters.subject),
        "category": _forms(filters.category),
        "quoted_tags": json_array(json.dumps(name, ensure_ascii=False) for name in name_forms(filters.tags)),
        "session": _forms(filters.session),
        "include_sensitive": int(filters.include_sensitive),
        "now": live_at,
    }
