"""Rows: the columns of each table by name, and the check of a row before it is used.

A record and its features have one seal each, which covers every cell. The body of a record is the payload of its newest
event; a record is refused if the journal has a newer version. A payload is valid if it opens its commitment, the header
of the event contains the commitment, and the seal of the event matches.
"""

from __future__ import annotations

import hashlib
import json
import logging
import math
import struct
from collections.abc import Iterable, Iterator
from functools import lru_cache
from json.encoder import encode_basestring_ascii
from typing import Any, NamedTuple

import msgspec

from keepward.core.commit import event_hash
from keepward.core.memory import IMPORTANCE_DECAY_PER_DAY, MemoryFields, Record, Tier
from keepward.core.principals import Trust
from keepward.core.query import Filter
from keepward.core.serialization import commitment, decode_fields, decode_record
from keepward.core.value import name_forms, to_micros
from keepward.errors import Tampered
from keepward.ports.store import Features, IndexedMemory
from keepward.storage.seals import Sealer
from keepward.storage.sql import Row

#: Most events of one commit; a position is ``seq * MAX_EVENTS_PER_COMMIT + n``.
MAX_EVENTS_PER_COMMIT = 1 << 20
_log = logging.getLogger(__name__)
_NONE = type(None)
_NO_FEATURES = Features(terms=b"")
_TRUST_RANKS = {trust.label: int(trust) for trust in Trust}
_EVENT_TYPES = (int, int, str, str, int, bytes, bytes, bytes, bytes)
_COMMIT_TYPES = (int, str, int, str, str, bytes, bytes)


class ContentMissing(Tampered):
    """The content of an event is missing; an erasure may name it."""


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
    def partition(self) -> str:
        """Tier, sensitivity and scope: only memories with the same partition are compared."""
        return f"{self.tier} {self.sensitivity} {self.scope}"

    def sealed(self, sealer: Sealer, tenant: str) -> RecordRow:
        """Return the row with its seal."""
        return self._replace(seal=sealer.cells("records", tenant, self[:-1]))

    def has_valid_seal(self, sealer: Sealer, tenant: str) -> bool:
        """Whether the seal matches."""
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

    def has_valid_seal(self, sealer: Sealer, tenant: str) -> bool:
        """Whether the seal matches."""
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


#: Number of cells of a record, and of a record with its features.
RECORD_COLUMNS, RECORD_AND_FEATURE_COLUMNS = len(RecordRow._fields), len(RecordRow._fields) + len(FeatureRow._fields)


class _Said(msgspec.Struct, gc=False):
    text: str


_said = msgspec.json.Decoder(_Said).decode


def text_in(payload: bytes) -> str | None:
    """Return the text in a payload, unchecked; None if it is unreadable."""
    try:
        return _said(payload).text
    except (ValueError, TypeError, RecursionError):
        return None


def split_record_row(row: Row) -> tuple[RecordRow, FeatureRow | None]:
    """Split a result row that begins with a record and its features."""
    # A third faster than ``_make``; cold starts split every row.
    features = (
        None
        if row[RECORD_COLUMNS] is None
        else tuple.__new__(FeatureRow, row[RECORD_COLUMNS:RECORD_AND_FEATURE_COLUMNS])
    )
    return tuple.__new__(RecordRow, row[:RECORD_COLUMNS]), features


def json_array(names: Iterable[str]) -> str:
    """Return names as a JSON list for ``json_each``, five times as fast as ``json.dumps``."""
    return f"[{','.join(map(encode_basestring_ascii, names))}]"


def record_row(sealer: Sealer, tenant: str, position: int, arrival: int, record: Record, body: bytes) -> RecordRow:
    """Return the sealed row of a record, given the position and the payload of its event."""
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


def listed_row(tenant: str, row: RecordRow, features: FeatureRow | None, fields: MemoryFields | None = None) -> Row:
    """Return the row of ``listed`` that results from a record and the features of its version.

    ``fields`` are those of its body if it is decoded already. A body that cannot be read leaves its cells empty.
    """
    fields = fields or decode_fields(row.body)
    vectors = (None, None) if features is None or features.model is None else (features.model, features.recipe)
    cells = (tenant, row.arrival, row.id, row.position, row.scope, row.status, row.sensitivity, row.tier, row.kind)
    if fields is None:
        named = (row.subject, row.category, row.session, row.key, None, None)
        return (*cells, row.trust, "", "", "", *vectors, row.expires_at, *named, 0, None, 0, None, 0, 0, 0, None)
    happened = fields.written_at if fields.occurred_at is None and row.kind == "event" else fields.occurred_at
    tags = joined_tags(fields.tags)
    return (
        *(*cells, row.trust, fields.content_type, fields.source, fields.said_by, *vectors, row.expires_at),
        *(row.subject, row.category, row.session, row.key, fields.job, tags, fields.written_at, happened),
        *(fields.importance, fields.idle_since, fields.confidence, fields.reinforced_at),
        *(max(_TRUST_RANKS.get(fields.trust, 0) - int(Trust.AGENT), 0), _worth(row.status, fields)),
    )


#: The migration that makes ``listed``, and what it reads to fill it.
LISTED = "listed"
RECORDS_WITH_FEATURES = f"""
    SELECT r.tenant, {", ".join(f"r.{name}" for name in RecordRow._fields)}, f.* FROM records r
      LEFT JOIN features f ON f.tenant = r.tenant AND f.id = r.id AND f.version = r.version"""


def listed_rows(rows: Iterable[Row]) -> Iterator[Row]:
    """Yield the rows of ``listed`` that result from the rows of ``RECORDS_WITH_FEATURES``."""
    width = 1 + RECORD_COLUMNS
    for row in rows:
        features = None if row[width] is None else FeatureRow._make(row[width + 1 :])
        yield listed_row(row[0], RecordRow._make(row[1:width]), features)


def joined_tags(tags: Iterable[str]) -> str | None:
    """Return tags as one text, each between two line feeds; None without any."""
    lines = "\n".join(json.dumps(tag, ensure_ascii=False)[1:-1] for tag in tags)
    return f"\n{lines}\n" if lines else None


def split_tags(joined: str) -> list[str]:
    """Return the tags of ``joined_tags``."""
    return [json.loads(f'"{line}"') if "\\" in line else line for line in joined.strip("\n").split("\n")]


def _worth(status: str, fields: MemoryFields) -> int | None:
    """Return the order in which a full tier archives memories, the least first; None for what it never archives.

    It is the logarithm of the decayed importance at any later time, in 1/10**9 and apart from a sum that is equal for
    all: the order of what decays at one rate stays. A use raises it; see ``least_worth``.
    """
    since = fields.idle_since
    if status != "active" or since is None:
        return None
    return worth_of(fields.importance, since)


def worth_of(importance: int, since: int, uses: int = 0) -> int:
    """Return the worth of an importance in 1/10,000 that decays from an instant, in microseconds, after some uses."""
    grown = math.log(max(importance, 0.5)) + IMPORTANCE_DECAY_PER_DAY * since / 86_400_000_000
    return round((grown + math.log(1 + math.log1p(uses))) * 1e9)


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
    """Return tier, sensitivity and scope as one text: only memories with the same partition are compared."""
    return f"{record.tier._value_} {record.sensitivity._value_} {record.scope}"


def event_flaw(sealer: Sealer, tenant: bytes, event: EventRow, digest: bytes | None = None) -> str | None:
    """Return the fault of a single event row; None if there is none, or its content is missing.

    ``digest`` is its hash if it is known and its cells were checked.
    """
    if digest is None and not has_event_types(event):
        # A corrupt page can give a cell another type than its column has.
        return "its cells are damaged"
    if (event.salt is None) != (event.payload is None):
        return "half of its content is missing"
    content = None if event.salt is None or event.payload is None else commitment(event.salt, event.payload)
    if content is not None and content != event.payload_commit:
        return "its content does not open its commitment"
    hashed = digest or event_hash(event.n, event.op, event.memory_id, event.version, event.payload_commit)
    return None if sealer.matches_event(event.seal, tenant, event.seq, event.n, hashed) else "its seal does not match"


def has_commit_types(row: CommitRow) -> bool:
    """Whether the cells of a commit have the types of their columns.

    Salt and payload may both be missing, and the receipt.
    """
    kinds = tuple(map(type, row))
    content = kinds[7:9] in {(bytes, bytes), (_NONE, _NONE)}
    return kinds[:7] == _COMMIT_TYPES and content and kinds[9:11] == (bytes, bytes) and kinds[11] in {bytes, _NONE}


def has_event_types(event: EventRow) -> bool:
    """Whether the cells of an event row have the types of their columns; salt and payload may be missing."""
    kinds = tuple(map(type, event))
    if kinds == _EVENT_TYPES:
        return True
    return kinds[:5] == _EVENT_TYPES[:5] and kinds[7:9] == _EVENT_TYPES[7:] and {*kinds[5:7]} <= {bytes, _NONE}


def record_at(sealer: Sealer, tenant: bytes, event: EventRow) -> Record:
    """Return the record of an event row.

    Raises:
        ContentMissing: its content is missing.
        Tampered: the row is damaged, or its payload is about another memory or version.
    """
    if event.payload is None or event.salt is None:
        raise ContentMissing("the content of a memory is missing")
    if (flaw := event_flaw(sealer, tenant, event)) is not None:
        raise Tampered(f"an event of commit {event.seq} is damaged: {flaw}; run `keepward verify`")
    record = decode_record(event.payload)
    if record.id != event.memory_id or record.version != event.version:
        raise Tampered("an event has the content of another")
    return record


def record_of(sealer: Sealer, tenant: str, row: RecordRow, newest: int | None) -> Record:
    """Return the record of a row, given the newest version in the journal.

    Raises:
        Tampered: the row is damaged or outdated.
    """
    if not row.has_valid_seal(sealer, tenant):
        raise Tampered("its record does not match its seal")
    if row.version != newest:
        raise Tampered("a record is not the newest version")
    record = decode_record(row.body)
    if (record.id, record.version) != (row.id, row.version):
        raise Tampered("a record has the content of another")
    return record


def pack_minhashes(minhashes: tuple[int, ...]) -> bytes:
    """Pack minhashes as sorted int64, little-endian; 2**63 and above wraps to negative."""
    wrapped = sorted(
        {value if 0 <= value < 1 << 63 else ((value + (1 << 63)) % (1 << 64)) - (1 << 63) for value in minhashes}
    )
    return struct.pack(f"<{len(wrapped)}q", *wrapped)


def unpack_minhashes(raw: bytes) -> tuple[int, ...]:
    """Return the sorted minhashes of ``pack_minhashes``."""
    return struct.unpack(f"<{len(raw) // 8}q", raw[: len(raw) // 8 * 8])


@lru_cache(maxsize=1_024)
def partition_bits(partition: str) -> int:
    """Return 64 bits of a partition, as int64."""
    hashed = hashlib.blake2b(partition.encode("utf-8", "surrogatepass"), digest_size=8, person=b"keepward/place")
    return int.from_bytes(hashed.digest(), "big", signed=True)


def partitioned_minhashes(partition: str, minhashes: Iterable[int]) -> list[int]:
    """Return minhashes as the table ``marks`` stores them: exclusive or with 64 bits of their partition.

    Different minhashes of one partition stay different. Those of two partitions are equal by chance once in 2**61
    pairs, so a reader compares the partition of each match.
    """
    bits = partition_bits(partition)
    return [minhash ^ bits for minhash in minhashes]


def minhash_rows(tenant: str, record: RecordRow, features: FeatureRow | None) -> list[Row]:
    """Return the rows of ``marks`` that result from a record."""
    packed = b"" if features is None else features.marks
    return [
        (tenant, minhash, record.position)
        for minhash in partitioned_minhashes(record.partition, unpack_minhashes(packed))
    ]


def verified_features(sealer: Sealer, tenant: str, row: FeatureRow | None) -> Features:
    """Return the features of a row; empty ones if they are missing or their seal does not match."""
    if row is not None and row.has_valid_seal(sealer, tenant):
        return row.features()
    if row is not None:
        _log.warning("features of %s do not match their seal", row.id, extra={"action": "damaged"})
    return _NO_FEATURES


def profile_of(sealer: Sealer, tenant: str, row: RecordRow, features: FeatureRow | None) -> IndexedMemory | None:
    """Return an active memory as an index takes it, without features if these are damaged.

    None if its row is damaged.
    """
    fields = decode_fields(row.body) if row.has_valid_seal(sealer, tenant) else None
    if fields is None:
        _log.warning("memory %s was left out: it does not match its seal", row.id, extra={"action": "damaged"})
        return None
    return IndexedMemory(fields, verified_features(sealer, tenant, features), row.arrival, row.position)


def has_body_filter(filters: Filter) -> bool:
    """Whether a filter has a condition that no column answers."""
    names = (filters.content_types, filters.tags, filters.job, filters.sources)
    return any(names) or (filters.keyed, filters.permanent, filters.ids) != (None, None, None)


def _forms(name: str | None) -> str:
    """Return the spellings of a name as a JSON list; an empty one for no name."""
    return json_array(name_forms([name] if name else []))


def filter_parameters(filters: Filter, live_at: int | None) -> dict[str, Any]:
    """Return the parameters for the part of a filter that columns answer; ``now`` is in microseconds.

    Tags are written as a body stores them.
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
