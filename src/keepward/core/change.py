"""Changes: requested alterations of memory, as data.

The gates check a change, and ``reducer`` applies it. Names of tiers, kinds and the like are not validated here, so
that the validation gate can refuse an unknown name with a reason.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Literal, TypedDict, get_args

from msgspec.structs import replace

from keepward.core.memory import Access, ContentType, Kind, Sensitivity, Stability, Tier
from keepward.core.value import Data, Duration, plain_name

#: Leaves a field unchanged; None empties it.
UNSET: Any = type("Keep", (), {"__repr__": lambda _: "KEEP", "__slots__": ()})()

TierName = Tier | Literal["core", "working", "episodic", "archival"]
KindName = Kind | Literal["identity", "rule", "fact", "state", "event", "summary", "document"]
StabilityName = Stability | Literal["volatile", "stable", "permanent"]
SensitivityName = Sensitivity | Literal["normal", "sensitive"]
AccessName = Access | Literal["read_only", "approval", "append", "read_write"]
ContentTypeName = ContentType | Literal["text", "image", "file", "audio", "video", "structured"]
SourceName = Literal[
    "operator",
    "manual",
    "user_message",
    "user",
    "chat",
    "assistant",
    "inference",
    "extracted",
    "promotion",
    "system",
    "job",
    "tool",
    "document",
    "seeded",
    "import",
    "web",
    "unknown",
]


class Insert(Data):
    """Remember a new memory. If another memory has the ``key``, that memory is updated."""

    #: Id of the new memory, a UUIDv7, or a name by which later changes of the proposal refer to it; empty for neither.
    id: str = ""
    text: str
    #: None: episodic for an event or summary, working in the scope of a task, otherwise archival.
    tier: str | None = None
    #: None: by tier: core and archival fact, working state, episodic event.
    kind: str | None = None
    key: str | None = None
    #: ``UNSET``: the scope of the handle.
    scope: str = UNSET
    subject: str | None = None
    category: str | None = None
    tags: tuple[str, ...] = ()
    content_type: str = "text"
    blob: str | None = None
    metadata: Mapping[str, Any] | None = None
    #: None: by actor.
    source: str | None = None
    evidence: tuple[str, ...] = ()
    derived_from: tuple[str, ...] = ()
    #: 0..1; None: by source.
    confidence: float | None = None
    #: 0..1; None: by source.
    importance: float | None = None
    #: None: by policy for volatile memories, none otherwise.
    ttl: timedelta | None = None
    #: None: by kind and tier.
    stability: str | None = None
    sensitivity: str | None = None
    access: str | None = None
    session: str | None = None
    speaker: str | None = None
    job: str | None = None
    aliases: tuple[str, ...] = ()
    occurred_at: datetime | None = None
    #: When what it says begins to be so, and from when on it is no longer so; None for always.
    valid_from: datetime | None = None
    valid_until: datetime | None = None
    #: The person agreed to storing identifiers in the text: they are not redacted, and the memory becomes sensitive.
    consent: bool = False
    #: The embedding of this text, normalized to length 1; None: computed from the text.
    vector: tuple[float, ...] | None = None
    #: Version of the memory with this key that the writer saw, 0 for none; if it differs, the write is stale.
    if_version: int | None = None


class Replace(Data):
    """Give a memory new text or fields; ``UNSET`` leaves a field unchanged."""

    id: str
    text: str = UNSET
    category: str | None = UNSET
    subject: str | None = UNSET
    tags: tuple[str, ...] = UNSET
    metadata: Mapping[str, Any] | None = UNSET
    source: str | None = None
    evidence: tuple[str, ...] = UNSET
    #: Who said the new text, and when; ``UNSET``: nobody else than the writer, now.
    speaker: str | None = UNSET
    occurred_at: datetime | None = UNSET
    valid_from: datetime | None = UNSET
    valid_until: datetime | None = UNSET
    confidence: float | None = None
    importance: float | None = None
    sensitivity: str | None = None
    access: str | None = None
    #: New time to live from now; None removes it.
    ttl: timedelta | None = UNSET
    consent: bool = False
    #: Version that the writer saw; if it is not the newest, the change is stale.
    if_version: int | None = None


class NewFields(TypedDict, total=False):
    """The fields of a new memory besides its text, as ``remember`` takes them; ``Insert`` has their defaults."""

    tier: TierName | None
    kind: KindName | None
    key: str | None
    scope: str | None
    subject: str | None
    category: str | None
    tags: Sequence[str]
    content_type: ContentTypeName
    blob: str | None
    metadata: Mapping[str, Any] | None
    source: SourceName | None
    evidence: Sequence[str]
    derived_from: Sequence[str]
    confidence: float | None
    importance: float | None
    ttl: Duration | None
    stability: StabilityName | None
    sensitivity: SensitivityName | None
    access: AccessName | None
    session: str | None
    speaker: str | None
    job: str | None
    aliases: Sequence[str]
    occurred_at: datetime | str | None
    valid_from: datetime | str | None
    valid_until: datetime | str | None
    consent: bool
    vector: Sequence[float] | None
    if_version: int | None


class ChangedFields(TypedDict, total=False):
    """The fields that ``revise`` gives a memory; ``Replace`` has their defaults."""

    category: str | None
    subject: str | None
    tags: Sequence[str]
    metadata: Mapping[str, Any] | None
    source: SourceName | None
    evidence: Sequence[str]
    speaker: str | None
    occurred_at: datetime | str | None
    valid_from: datetime | str | None
    valid_until: datetime | str | None
    confidence: float | None
    importance: float | None
    sensitivity: SensitivityName | None
    access: AccessName | None
    ttl: Duration | None
    consent: bool


_NAME_FIELDS = ("subject", "category", "session", "speaker")


def with_plain_names(change: Insert | Replace) -> Insert | Replace:
    """Return a change with normalized names, tags and aliases; see ``plain_name``."""
    given: dict[str, Any] = {}
    for name in (*_NAME_FIELDS, "tags", "aliases"):
        value = getattr(change, name, None)
        plain = plain_name(value) if isinstance(value, str) else value
        if isinstance(value, tuple):
            plain = tuple(dict.fromkeys(map(plain_name, value)))
        if plain != value:
            given[name] = plain
    return replace(change, **given) if given else change


class Append(Data):
    """Add text to a memory on a new line."""

    id: str
    text: str
    source: str | None = None
    evidence: tuple[str, ...] = ()
    confidence: float | None = None
    consent: bool = False
    if_version: int | None = None


class Supersede(Data):
    """Replace a memory by another."""

    id: str
    by: str
    if_version: int | None = None


class Move(Data):
    """Give a memory another tier, scope or key."""

    id: str
    tier: str = UNSET
    scope: str = UNSET
    key: str | None = UNSET
    if_version: int | None = None


class Promote(Data):
    """Make a memory permanent with its final text; core if it has a key."""

    id: str
    text: str
    if_version: int | None = None


class Retire(Data):
    """Retire a memory; it can be restored."""

    id: str
    if_version: int | None = None


class Archive(Data):
    """Archive an unused memory; it can be restored. Jobs may do this."""

    id: str
    if_version: int | None = None


class Expire(Data):
    """Mark a memory as expired; this frees its key, and it can be restored. Jobs may do this."""

    id: str
    if_version: int | None = None


class Restore(Data):
    """Restore a retired, archived or expired memory; ``ttl`` is the new time to live of an expired one."""

    id: str
    ttl: timedelta | None = None
    if_version: int | None = None


class Reinforce(Data):
    """Confirm a memory: the decay of its confidence starts again now, and its importance may rise."""

    id: str
    #: Added to importance, 0..1; the sum stays within 1.
    gain: float = 0.0
    #: False: the memory was useful but not confirmed; its confidence continues to decay.
    confirms: bool = True


class Revert(Data):
    """Return a memory to the content of an earlier version; only a rollback makes this change."""

    id: str
    #: Version with the content to restore; 0 retires the memory.
    to_version: int
    if_version: int


Change = (
    Insert | Replace | Append | Supersede | Move | Promote | Retire | Archive | Expire | Restore | Reinforce | Revert
)
#: Changes with text of their writer.
TEXT_CHANGES = (Insert, Replace, Append)
#: Operations that confirm a memory without changing its content. They make a version; a decision on the version
#: before (an edit, an approval, a rollback) applies to the new version too.
BOOKKEEPING = frozenset({"reinforce", "flag"})


def operation(change: Change | type[Change]) -> str:
    """Return the lower-case name of a change or of its class, as in events and receipts."""
    return (change if isinstance(change, type) else type(change)).__name__.lower()


CHANGE_BY_OPERATION: Mapping[str, Any] = {operation(kind): kind for kind in get_args(Change)}
#: Default reasons of proposals, by operation.
_DEFAULT_REASONS: Mapping[str, str] = {
    "insert": "remembered",
    "replace": "revised",
    "append": "appended",
    "supersede": "superseded",
    "move": "moved",
    "promote": "promoted",
    "retire": "forgotten",
    "archive": "archived",
    "restore": "restored",
    "reinforce": "confirmed",
}


def default_reason(changes: Sequence[Change]) -> str:
    """Return the default reason of a proposal: that of its operation, or ``edited`` for several operations."""
    operations = {operation(change) for change in changes}
    return _DEFAULT_REASONS.get(operations.pop(), "edited") if len(operations) == 1 else "edited"
