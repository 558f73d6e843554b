"""One memory at one version, as in the journal, and its decay.

A memory has five shapes, each for one use:
* ``Record``: all of one version, for a read and for the rules that decide about it.
* ``MemoryFields``: the stored content as a payload has it, for what reads many memories.
* ``rows.RecordRow``: the columns that find a memory in the database, with its payload and its seal.
* ``store.IndexedMemory``: fields and features, for an index of recall.
* ``sections.Entry``: a record that may come into a context, with what the compiler decides about it.

Rules:
* A record is immutable; every change makes a new record with the next version.
* ``status`` is what the journal decided; expiry is computed from the clock.
* Confidence and importance are multiples of 1/10,000, so that they are encoded as integers.
* A record returned by a read has them decayed at that instant, and the stored values in ``base_confidence`` and
  ``base_importance``. Only stored values are encoded and compared.
* Decay depends only on the stored value, the last change or confirmation, and the clock. Reading changes nothing.
  Core and permanent memories do not decay.
"""

from __future__ import annotations

import json
import math
from datetime import datetime, timedelta
from enum import StrEnum
from operator import attrgetter
from typing import Any

from msgspec import field
from msgspec.structs import force_setattr, replace

from keepward.core.brief import MAX_LINE, MAX_TEXT, field_text, line, shorten
from keepward.core.foreign_words import ForeignKeys
from keepward.core.json_form import JsonText
from keepward.core.principals import Trust, is_person
from keepward.core.value import Data, Instant, Value


class Tier(StrEnum):
    """The role in the prompt, and the retention."""

    CORE = "core"
    WORKING = "working"
    EPISODIC = "episodic"
    ARCHIVAL = "archival"


class Kind(StrEnum):
    """The kind of a memory."""

    IDENTITY = "identity"
    RULE = "rule"
    FACT = "fact"
    STATE = "state"
    EVENT = "event"
    SUMMARY = "summary"
    DOCUMENT = "document"


class Stability(StrEnum):
    """How long a memory is meant to last."""

    #: It has a time to live.
    VOLATILE = "volatile"
    STABLE = "stable"
    #: It has no time to live, does not decay, is never pruned, and is in every context of its scope.
    PERMANENT = "permanent"


class Sensitivity(StrEnum):
    """Whether a memory may enter a context without being asked for."""

    NORMAL = "normal"
    SENSITIVE = "sensitive"


class Status(StrEnum):
    """The state of a memory."""

    ACTIVE = "active"
    SUPERSEDED = "superseded"
    EXPIRED = "expired"
    RETIRED = "retired"
    ARCHIVED = "archived"
    #: Its content was destroyed; a tombstone remains.
    ERASED = "erased"


class Access(StrEnum):
    """Who may change a block without an approval."""

    READ_ONLY = "read_only"
    APPROVAL = "approval"
    APPEND = "append"
    READ_WRITE = "read_write"


class ContentType(StrEnum):
    """The type of the content; anything but text is a blob or metadata."""

    TEXT = "text"
    IMAGE = "image"
    FILE = "file"
    AUDIO = "audio"
    VIDEO = "video"
    STRUCTURED = "structured"


#: The core blocks, in their order in a context.
CORE_BLOCKS = ("persona", "human", "operating_rules", "mission", "workspace_state")


#: Default of the author and the time of a text: those of the first version.
_AS_FIRST_SAID: Any = None


class Record(ForeignKeys, Value, eq=False):
    """One memory at one version."""

    id: str
    version: int
    tier: Tier
    kind: Kind
    text: str
    scope: str
    #: Stable name, unique among active memories of a tenant and scope.
    key: str | None = None
    subject: str | None = None
    category: str | None = None
    #: Sorted, without duplicates.
    tags: tuple[str, ...] = ()
    content_type: ContentType = ContentType.TEXT
    #: Reference of content next to the store; see ``core.blob``.
    blob: str | None = None
    #: Canonical JSON text of ``metadata``, as stored and hashed; None if empty.
    metadata_json: JsonText | None = field(default=None, name="metadata")
    #: The source named by the writer; see ``principals.SOURCES``.
    source: str
    trust: Trust
    #: Lowest trust of what its writer had recently read, if below ``trust``.
    heard: Trust | None = None
    #: References that back the memory, such as ``chat:42``; sorted, without duplicates.
    evidence: tuple[str, ...] = ()
    #: Ids of the memories that this one was derived from.
    derived_from: tuple[str, ...] = ()
    #: On a branch: the memory of main whose state it is there, and the version that it began from, as ``ID@VERSION``.
    branched_from: str | None = None
    #: 0..1: is it true. Decayed in a record returned by a read.
    confidence: float
    #: 0..1: is it useful. Also decayed in a record returned by a read.
    importance: float
    sensitivity: Sensitivity = Sensitivity.NORMAL
    stability: Stability = Stability.STABLE
    #: None: the policy's access for the tier and block applies.
    access: Access | None = None
    status: Status = Status.ACTIVE
    superseded_by: str | None = None
    #: ``kind:name`` of the author of the first version.
    author: str
    #: ``kind:name`` of who wrote the present text, which may differ from the first.
    text_by: str = _AS_FIRST_SAID
    session: str | None = None
    #: Speaker of a message.
    speaker: str | None = None
    #: Job, of maintenance or of an agent, that this memory belongs to.
    job: str | None = None
    #: Ids of this memory in other systems.
    aliases: tuple[str, ...] = ()
    created_at: Instant
    #: When the present text was written; a change of other fields does not alter it.
    text_at: Instant = _AS_FIRST_SAID
    #: None until the first change.
    updated_at: Instant | None = None
    #: When the event happened or was said, if known and different from ``text_at``.
    occurred_at: Instant | None = None
    #: The memory expires at this instant.
    expires_at: Instant | None = None
    #: When what it says begins to be so, and from when on it is no longer so; None for always.
    valid_from: Instant | None = None
    valid_until: Instant | None = None
    #: When a check found that a source which it cites had changed; None while they are as cited.
    stale_at: Instant | None = None
    #: Last confirmation; confidence decays from here.
    reinforced_at: Instant
    #: Stored ``confidence`` and ``importance``; None in a record with stored values.
    base_confidence: float | None = None
    base_importance: float | None = None
    #: Number of uses in recalls and contexts, and the last one; None if not requested.
    uses: int | None = None
    last_used: Instant | None = None
    #: Ids of derived memories of any status, sorted; None if not requested.
    children: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if self.text_by is _AS_FIRST_SAID:
            force_setattr(self, "text_by", self.author)
        if self.text_at is _AS_FIRST_SAID:
            force_setattr(self, "text_at", self.created_at)

    def __eq__(self, other: object) -> bool:
        """Whether the stored values are equal, regardless of the time of reading."""
        return isinstance(other, Record) and _stored(self) == _stored(other)

    def __ne__(self, other: object) -> bool:
        # A Struct has its own ``__ne__``, which ignores ``__eq__``.
        return not self == other

    def __hash__(self) -> int:
        return hash((self.id, self.version))

    @property
    def stored_confidence(self) -> float:
        """Confidence when the memory was last confirmed, 0..1."""
        return self.confidence if self.base_confidence is None else self.base_confidence

    @property
    def branched_id(self) -> str | None:
        """The id of ``branched_from``."""
        return None if self.branched_from is None else self.branched_from.partition("@")[0]

    @property
    def branched_version(self) -> int:
        """The version of ``branched_from``; 0 without one."""
        return 0 if self.branched_from is None else int(self.branched_from.partition("@")[2])

    @property
    def happened_at(self) -> datetime | None:
        """Date of the event: ``occurred_at``, or when its text was written. None for a fact without ``occurred_at``."""
        return self.occurred_at or (self.text_at if self.kind is Kind.EVENT else None)

    @property
    def stored_importance(self) -> float:
        """Importance when the memory was last changed, confirmed or trained on, 0..1."""
        return self.importance if self.base_importance is None else self.base_importance

    @property
    def metadata(self) -> dict[str, Any]:
        """The writer's own fields; a new object for each call, empty if there are none."""
        return json.loads(self.metadata_json) if self.metadata_json else {}

    @property
    def said_at(self) -> datetime:
        """When the present text was said or happened: ``occurred_at``, or else when it was written."""
        return self.occurred_at or self.text_at

    @property
    def effective_trust(self) -> Trust:
        """Trust for a purpose such as ``act``: text written after reading a web page counts as web."""
        return self.trust if self.heard is None else min(self.trust, self.heard)

    @property
    def name_trust(self) -> Trust:
        """Trust of its names: at least that of a user if a person stored it, such as an import that a person ran."""
        is_persons = is_person(self.author)
        return max(self.effective_trust, Trust.USER) if is_persons else self.effective_trust

    @property
    def pinned(self) -> bool:
        """Whether the memory is in every context of its scope."""
        return self.tier is Tier.CORE or self.stability is Stability.PERMANENT

    def status_at(self, now: datetime) -> Status:
        """Return the status at an instant: an active memory is expired from ``expires_at`` on."""
        if self.status is Status.ACTIVE and self.expires_at is not None and self.expires_at <= now:
            return Status.EXPIRED
        return self.status

    def is_live(self, now: datetime) -> bool:
        """Whether the memory is active at an instant."""
        return self.status_at(now) is Status.ACTIVE

    def holds_at(self, at: datetime) -> bool:
        """Whether what it says is so at an instant: not before ``valid_from``, and before ``valid_until``."""
        begun = self.valid_from is None or self.valid_from <= at
        return begun and (self.valid_until is None or at < self.valid_until)

    def may_guide(self, purpose: str) -> bool:
        """Whether its sources let it be used for a purpose: what is stale only answers. Core memory is the owner's."""
        return self.stale_at is None or purpose == "answer" or self.tier is Tier.CORE

    def never_holds_with(self, other: Record) -> bool:
        """Whether this ends before the other begins, or the other way round."""
        return any(
            first.valid_until is not None and then.valid_from is not None and first.valid_until <= then.valid_from
            for first, then in ((self, other), (other, self))
        )


_TRUST_RANKS = {trust.label: int(trust) for trust in Trust}


class MemoryFields(Data, gc=False):
    """The stored content of one version, for what reads many memories: filters, counts and ranking.

    It has the names of ``Record``, and the values of a payload: enums are their names, instants are microseconds since
    1970, shares are in 1/10,000. Decoding one takes a fraction of the time of a ``Record``.
    """

    id: str
    version: int
    tier: str
    kind: str
    text: str
    scope: str
    key: str | None = None
    subject: str | None = None
    category: str | None = None
    tags: tuple[str, ...] = ()
    content_type: str = "text"
    blob: str | None = None
    metadata_json: str | None = field(default=None, name="metadata")
    source: str
    #: Labels of trust; see ``effective_trust``.
    trust: str
    heard: str | None = None
    evidence: tuple[str, ...] = ()
    derived_from: tuple[str, ...] = ()
    branched_from: str | None = None
    confidence: int
    importance: int
    sensitivity: str = "normal"
    stability: str
    superseded_by: str | None = None
    author: str
    #: None while the text is the first one; see ``said_by`` and ``written_at``.
    text_by: str | None = None
    session: str | None = None
    speaker: str | None = None
    job: str | None = None
    aliases: tuple[str, ...] = ()
    created_at: int
    text_at: int | None = None
    updated_at: int | None = None
    occurred_at: int | None = None
    expires_at: int | None = None
    valid_from: int | None = None
    valid_until: int | None = None
    stale_at: int | None = None
    reinforced_at: int

    @property
    def branched_id(self) -> str | None:
        """The id of ``branched_from``."""
        return None if self.branched_from is None else self.branched_from.partition("@")[0]

    @property
    def said_by(self) -> str:
        """The author of the present text."""
        return self.text_by or self.author

    @property
    def written_at(self) -> int:
        """When the present text was written."""
        return self.created_at if self.text_at is None else self.text_at

    @property
    def said_at(self) -> int:
        """When the present text was said or happened."""
        return self.written_at if self.occurred_at is None else self.occurred_at

    @property
    def event_session(self) -> str | None:
        """The session of an event; None for any other memory."""
        return self.session if self.kind == "event" else None

    @property
    def effective_trust(self) -> int:
        """The rank of its trust for a purpose such as ``act``."""
        trust = _TRUST_RANKS.get(self.trust, 0)
        return trust if self.heard is None else min(trust, _TRUST_RANKS.get(self.heard, 0))

    @property
    def metadata(self) -> dict[str, Any]:
        """The writer's own fields; empty if there are none."""
        return json.loads(self.metadata_json) if self.metadata_json else {}

    def holds_at(self, at: int) -> bool:
        """Whether what it says is so at an instant; see ``Record.holds_at``."""
        return (self.valid_from is None or self.valid_from <= at) and (
            self.valid_until is None or at < self.valid_until
        )

    @property
    def idle_since(self) -> int | None:
        """When importance starts to decay; None if it does not."""
        # As the function of this name, which needs enum members: counts ask it of every memory.
        if self.tier == "core" or self.stability == "permanent":
            return None
        return max(self.reinforced_at, self.updated_at or self.created_at)


@line.register
@field_text.register
def _line_of_record(record: Record) -> str:
    status = "" if record.status is Status.ACTIVE else f" ({record.status.value})"
    name = f"{record.id} v{record.version} {record.tier.value} {record.kind.value}"
    return shorten(f"{name}{status}: {shorten(record.text, MAX_TEXT)}", MAX_LINE)


def is_textless(record: Record) -> bool:
    """Whether a memory has no text to search, such as a value that a program reads by key."""
    return not record.text.strip()


#: The public names of the fields, in order.
RECORD_FIELDS = tuple(name.removesuffix("_json") for name in Record.__struct_fields__)
#: Fields added by a read; they are not stored.
READ_FIELDS = ("base_confidence", "base_importance", "uses", "last_used", "children")
#: Fields of bookkeeping that a diff leaves out.
VERSION_FIELDS = frozenset(
    {"id", "version", "created_at", "updated_at", "reinforced_at", "author", "text_by", "text_at"}
)
#: Fields besides the text with words of the writer: one text each, and lists of texts.
NAME_FIELDS = ("key", "subject", "category", "session", "speaker", "job", "blob")
NAME_LIST_FIELDS = ("tags", "evidence", "aliases")
_content = attrgetter(
    *(
        name
        for name in Record.__struct_fields__
        if name.removesuffix("_json") not in {*VERSION_FIELDS, *READ_FIELDS, "importance", "stored_importance"}
    )
)
_stored = attrgetter(
    *(name for name in Record.__struct_fields__ if name not in {*READ_FIELDS, "confidence", "importance"}),
    "stored_confidence",
    "stored_importance",
)


def has_same_content(one: Record, other: Record) -> bool:
    """Whether two versions differ at most in importance, uses, and who wrote them when."""
    return bool(_content(one) == _content(other))


def round_share(value: float) -> float:
    """Return a value of 0..1 rounded to 1/10,000."""
    return round(value * 10_000) / 10_000


#: Rate of exponential decay of importance per idle day.
IMPORTANCE_DECAY_PER_DAY = 0.01
#: Importance never decays below this.
MIN_IMPORTANCE = 0.01
_DAY = timedelta(days=1)
HALF_LIFE_BY_KIND = {Kind.SUMMARY: timedelta(days=90), Kind.EVENT: timedelta(days=60)}
DEFAULT_HALF_LIFE = timedelta(days=30)


def half_life(record: Record) -> timedelta | None:
    """Return the time in which confidence halves; None if it does not decay."""
    return None if record.pinned else HALF_LIFE_BY_KIND.get(record.kind, DEFAULT_HALF_LIFE)


def idle_since(record: Record) -> datetime | None:
    """Return the last change, confirmation or training of a memory; None if it does not decay."""
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
    """Return an importance after some idle days."""
    return round_share(max(min(MIN_IMPORTANCE, base), base * math.exp(-IMPORTANCE_DECAY_PER_DAY * days)))


def as_read(record: Record, now: datetime, **extra: Any) -> Record:
    """Return a record as read at an instant: decayed, with the stored values and ``extra`` fields."""
    return replace(
        record,
        confidence=confidence_at(record, now),
        importance=importance_at(record, now),
        base_confidence=record.stored_confidence,
        base_importance=record.stored_importance,
        **extra,
    )
