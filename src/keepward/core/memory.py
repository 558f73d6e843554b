"""One memory at one version, as the journal keeps it, and how it fades.

Invariants
(1) A record is immutable; every change makes a new record with the next version.
(2) ``status`` holds what the journal decided; expiry is a fact of the clock and is computed.
(3) Shares (confidence, importance) are multiples of 1/10,000, so that they encode as integers.
(4) A record that was read has them as faded at that instant, and the stored ones beside; what is stored, compared
    and encoded are the stored ones alone.
(5) Fading follows from the stored base, the last change or confirmation and the clock alone: computing it any number
    of times changes nothing. Core and permanent memories do not fade.
"""

from __future__ import annotations

import json
import math
from datetime import datetime, timedelta
from enum import StrEnum
from operator import attrgetter
from typing import Any

from msgspec.structs import replace

from keepward.core.principals import Trust
from keepward.core.value import Value


class Tier(StrEnum):
    """Prompt role and retention."""

    CORE = "core"
    WORKING = "working"
    EPISODIC = "episodic"
    ARCHIVAL = "archival"


class Kind(StrEnum):
    """What a memory is."""

    IDENTITY = "identity"
    RULE = "rule"
    FACT = "fact"
    STATE = "state"
    EVENT = "event"
    SUMMARY = "summary"
    DOCUMENT = "document"


class Stability(StrEnum):
    """How long a memory is meant to hold."""

    #: Has a time to live.
    VOLATILE = "volatile"
    STABLE = "stable"
    #: No time to live, no decay, never pruned; pinned into every compiled context.
    PERMANENT = "permanent"


class Sensitivity(StrEnum):
    """Whether a memory may enter a compiled context unasked."""

    NORMAL = "normal"
    SENSITIVE = "sensitive"


class Status(StrEnum):
    """Whether a memory holds."""

    ACTIVE = "active"
    SUPERSEDED = "superseded"
    EXPIRED = "expired"
    RETIRED = "retired"
    ARCHIVED = "archived"
    #: Its content was destroyed; what is left is a tombstone.
    ERASED = "erased"


class Access(StrEnum):
    """Who may change a block without a person's approval."""

    READ_ONLY = "read_only"
    APPROVAL = "approval"
    APPEND = "append"
    READ_WRITE = "read_write"


class ContentType(StrEnum):
    """What the content is; anything but text lives apart as a blob or as metadata."""

    TEXT = "text"
    IMAGE = "image"
    FILE = "file"
    AUDIO = "audio"
    VIDEO = "video"
    STRUCTURED = "structured"


#: The core blocks, in the order in which they are compiled.
CORE_BLOCKS = ("persona", "human", "operating_rules", "mission", "workspace_state")


class Record(Value, eq=False):
    """One memory at one version."""

    id: str
    version: int
    tier: Tier
    kind: Kind
    text: str
    scope: str
    #: Stable name, unique among live memories of a tenant and scope.
    key: str | None = None
    subject: str | None = None
    category: str | None = None
    #: Sorted, without repeats.
    tags: tuple[str, ...] = ()
    content_type: ContentType = ContentType.TEXT
    #: Name of the content that lies beside the store; see ``core.blob``.
    blob: str | None = None
    #: Canonical JSON text of ``metadata``, as it is stored and hashed; None for an empty one.
    metadata_json: str | None = None
    #: What the writer named as the source; see ``trust.SOURCES``.
    source: str
    trust: Trust
    #: Least trust of what its writer had been handed lately, where that is below ``trust``.
    heard: Trust | None = None
    #: References that back the memory, such as ``chat:42``; sorted, without repeats.
    evidence: tuple[str, ...] = ()
    #: Ids of the memories this one was made from.
    derived_from: tuple[str, ...] = ()
    #: 0..1, is it true; faded at the instant of reading, see (4).
    confidence: float
    #: 0..1, is it useful; likewise.
    importance: float
    sensitivity: Sensitivity = Sensitivity.NORMAL
    stability: Stability = Stability.STABLE
    #: None: as policy says for the tier and block.
    access: Access | None = None
    status: Status = Status.ACTIVE
    superseded_by: str | None = None
    #: ``kind:name`` of the actor that wrote the first version.
    author: str
    session: str | None = None
    #: Named speaker of a conversation turn.
    speaker: str | None = None
    #: Maintenance or agent job this memory belongs to.
    job: str | None = None
    #: Ids under which other systems know this memory.
    aliases: tuple[str, ...] = ()
    created_at: datetime
    #: None until the first change.
    updated_at: datetime | None = None
    #: When what the memory tells happened, where that is known and differs from ``created_at``.
    occurred_at: datetime | None = None
    #: Instant from which the memory no longer holds.
    expires_at: datetime | None = None
    #: Last time the memory was confirmed; confidence fades from here.
    reinforced_at: datetime
    #: What is stored of ``confidence`` and ``importance``; None in a record that is as stored.
    base_confidence: float | None = None
    base_importance: float | None = None
    #: How often it was handed out by recall or in a context, and when last; None where they were not asked for.
    uses: int | None = None
    last_used: datetime | None = None
    #: Ids of the memories made from it, whatever their status, sorted; None where they were not asked for.
    children: tuple[str, ...] | None = None

    def __eq__(self, other: object) -> bool:
        """Whether what is stored is the same, whenever it was read."""
        return isinstance(other, Record) and _stored(self) == _stored(other)

    def __ne__(self, other: object) -> bool:
        # A Struct answers this by itself, and not by the opposite of the above.
        return not self == other

    def __hash__(self) -> int:
        return hash((self.id, self.version))

    @property
    def stored_confidence(self) -> float:
        """Confidence as it was when the memory was last confirmed, 0..1."""
        return self.confidence if self.base_confidence is None else self.base_confidence

    @property
    def happened_at(self) -> datetime | None:
        """Date of the event: ``occurred_at``, or when an event was written. None for a fact without ``occurred_at``."""
        return self.occurred_at or (self.created_at if self.kind is Kind.EVENT else None)

    @property
    def stored_importance(self) -> float:
        """Importance as it was when the memory was last changed, confirmed or learned from, 0..1."""
        return self.importance if self.base_importance is None else self.base_importance

    @property
    def metadata(self) -> dict[str, Any]:
        """The writer's own fields, as they came in; a new object at each reading, empty where there are none."""
        return json.loads(self.metadata_json) if self.metadata_json else {}

    @property
    def effective_trust(self) -> Trust:
        """Trust that a purpose such as ``act`` goes by: what was written after reading a page counts as the page."""
        return self.trust if self.heard is None else min(self.trust, self.heard)

    @property
    def pinned(self) -> bool:
        """Whether the memory is in every compiled context of its scope."""
        return self.tier is Tier.CORE or self.stability is Stability.PERMANENT

    def status_at(self, now: datetime) -> Status:
        """Return the status at an instant: an active memory is expired from ``expires_at`` on."""
        if self.status is Status.ACTIVE and self.expires_at is not None and self.expires_at <= now:
            return Status.EXPIRED
        return self.status

    def is_live(self, now: datetime) -> bool:
        """Whether the memory holds at an instant."""
        return self.status_at(now) is Status.ACTIVE


def is_textless(record: Record) -> bool:
    """Whether a memory has nothing to be found by, as a value that a program reads by its key."""
    return not record.text.strip()


#: The fields of a memory by the names under which people meet them, in order.
RECORD_FIELDS = tuple(each.removesuffix("_json") for each in Record.__struct_fields__)
#: Fields that a read fills in; no version has them.
READ_FIELDS = ("base_confidence", "base_importance", "uses", "last_used", "children")
#: Fields that say who wrote which version when; a diff is about the rest.
VERSION_FIELDS = frozenset({"id", "version", "created_at", "updated_at", "reinforced_at", "author"})
#: Fields beside the text in which a writer's words stand: those of one text, and those of several.
NAME_FIELDS = ("key", "subject", "category", "session", "speaker", "job", "blob")
NAME_LIST_FIELDS = ("tags", "evidence", "aliases")
_stored = attrgetter(
    *(each for each in Record.__struct_fields__ if each not in {*READ_FIELDS, "confidence", "importance"}),
    "stored_confidence",
    "stored_importance",
)


def round_share(value: float) -> float:
    """Return a value of 0..1 rounded to 1/10,000."""
    return round(value * 10_000) / 10_000


#: Importance lost per idle day, as the exponent's rate.
IMPORTANCE_DECAY_PER_DAY = 0.01
#: Importance never falls below this.
MIN_IMPORTANCE = 0.01
_DAY = timedelta(days=1)
_HALF_LIFE = {Kind.SUMMARY: timedelta(days=90), Kind.EVENT: timedelta(days=60)}
_DEFAULT_HALF_LIFE = timedelta(days=30)


def half_life(record: Record) -> timedelta | None:
    """Return the time in which confidence halves, or None for what does not fade."""
    return half_life_of(record.tier, record.kind, record.stability)


def half_life_of(tier: Tier, kind: Kind, stability: Stability) -> timedelta | None:
    """Return the same of a memory of which no more is known."""
    if tier is Tier.CORE or stability is Stability.PERMANENT:
        return None
    return _HALF_LIFE.get(kind, _DEFAULT_HALF_LIFE)


def idle_since(record: Record) -> datetime | None:
    """Return when a memory last changed, was confirmed or learned from; None: it does not fade."""
    return None if half_life(record) is None else max(record.reinforced_at, record.updated_at or record.created_at)


def confidence_at(record: Record, now: datetime) -> float:
    """Return confidence at an instant, 0..1: ``base * 0.5 ** (idle / half_life)``."""
    span = half_life(record)
    if span is None:
        return record.stored_confidence
    idle = max(now - record.reinforced_at, timedelta(0))
    return round_share(record.stored_confidence * 0.5 ** (idle / span))


def importance_at(record: Record, now: datetime, last_used: datetime | None = None) -> float:
    """Return importance at an instant: ``base * exp(-0.01 * idle days)``, at least 0.01 unless its base is less."""
    since = idle_since(record)
    if since is None:
        return record.stored_importance
    days = max((now - (max(since, last_used) if last_used else since)) / _DAY, 0.0)
    return decayed_importance(record.stored_importance, days)


def decayed_importance(base: float, days: float) -> float:
    """Return what is left of an importance after some idle days."""
    return round_share(max(min(MIN_IMPORTANCE, base), base * math.exp(-IMPORTANCE_DECAY_PER_DAY * days)))


def as_read(record: Record, now: datetime, **beside: Any) -> Record:
    """Return a record as a reader sees it at an instant: faded, with what is stored and ``beside`` it."""
    return replace(
        record,
        confidence=confidence_at(record, now),
        importance=importance_at(record, now),
        base_confidence=record.stored_confidence,
        base_importance=record.stored_importance,
        **beside,
    )
