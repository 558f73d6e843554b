"""Changes: requested alterations of memory, as data.

A change says what is wanted; gates judge it and ``reducer`` applies it. Names of tiers, kinds and the
like are kept as given, so that the shape gate can refuse an unknown one with a reason.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Literal, get_args

from msgspec.structs import replace

from keepward.core.memory import Access, ContentType, Kind, Sensitivity, Stability, Tier
from keepward.core.value import Data, plain_name

#: Stands for "leave this field as it is" where None already means "empty".
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
    """Remember something new. With a ``key`` that is taken, it is an upsert of the occupant."""

    #: Id of the new memory; assigned before judging, so that a draft can refer to it.
    id: str
    text: str
    #: None: archival, or working in the scope of a task; an event or a summary is episodic.
    tier: str | None = None
    #: None: by tier: core and archival fact, working state, episodic event.
    kind: str | None = None
    key: str | None = None
    scope: str = "/"
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
    #: Personal identifiers in the text were given with consent: they stay and make it sensitive.
    consent: bool = False
    #: By what recall finds it, of length 1; None: computed from the text. It goes with this very text alone.
    vector: tuple[float, ...] | None = None
    #: Version of the holder of the key that the writer saw, 0 for none; another one makes the write stale.
    if_version: int | None = None


class Replace(Data):
    """Give a memory new text or new fields; what is ``UNSET`` stays."""

    id: str
    text: str = UNSET
    category: str | None = UNSET
    subject: str | None = UNSET
    tags: tuple[str, ...] = UNSET
    metadata: Mapping[str, Any] | None = UNSET
    source: str | None = None
    evidence: tuple[str, ...] = UNSET
    confidence: float | None = None
    importance: float | None = None
    sensitivity: str | None = None
    #: New time to live from now; None removes it.
    ttl: timedelta | None = UNSET
    consent: bool = False
    #: Version the writer saw; another newest version makes the change stale.
    if_version: int | None = None


_NAME_FIELDS = ("subject", "category", "session", "speaker")


def with_plain_names(change: Insert | Replace) -> Insert | Replace:
    """Return a change whose names, tags and aliases are as they are kept; see ``plain_name``."""
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
    """Add text to a memory, after a line break."""

    id: str
    text: str
    source: str | None = None
    evidence: tuple[str, ...] = ()
    confidence: float | None = None
    consent: bool = False
    if_version: int | None = None


class Supersede(Data):
    """Mark a memory as replaced by another."""

    id: str
    by: str
    if_version: int | None = None


class Move(Data):
    """Put a memory in another tier or scope, or under another key."""

    id: str
    tier: str = UNSET
    scope: str = UNSET
    key: str | None = UNSET
    if_version: int | None = None


class Promote(Data):
    """Raise a memory to lasting knowledge: permanent, core when keyed, with its canonical text."""

    id: str
    text: str
    if_version: int | None = None


class Retire(Data):
    """Stop a memory from holding; it can be restored."""

    id: str
    if_version: int | None = None


class Archive(Data):
    """Put a memory away for lack of use or room; it can be restored. Automatic steps may do this."""

    id: str
    if_version: int | None = None


class Expire(Data):
    """Note that a memory's term is over; it frees its key and can be restored. Automatic steps may do this."""

    id: str
    if_version: int | None = None


class Restore(Data):
    """Bring back a retired, archived or expired memory; ``ttl`` gives an expired one a new term."""

    id: str
    ttl: timedelta | None = None
    if_version: int | None = None


class Reinforce(Data):
    """Confirm a memory: its confidence starts anew, and its importance may rise."""

    id: str
    #: Added to importance, 0..1; the sum stays within 1.
    gain: float = 0.0
    #: Off: it was useful, which does not make it any truer, and its confidence goes on fading.
    confirms: bool = True


class Revert(Data):
    """Return a memory to the content of an earlier version; made by rollback alone."""

    id: str
    #: Version whose content comes back; 0 withdraws the memory.
    to_version: int
    if_version: int


Change = (
    Insert | Replace | Append | Supersede | Move | Promote | Retire | Archive | Expire | Restore | Reinforce | Revert
)
#: Those that say something in words of their writer's own.
TEXT_CHANGES = (Insert, Replace, Append)


#: Operations that confirm what a memory says and change nothing of it. They make a version like any other, and what
#: was decided on the version before (an edit, an approval, a rollback) holds for theirs too.
BOOKKEEPING = frozenset({"reinforce"})


def operation(change: Change | type[Change]) -> str:
    """Return the lower-case name of a change or of its class, as it stands in events and receipts."""
    return (change if isinstance(change, type) else type(change)).__name__.lower()


CHANGE_BY_OPERATION: Mapping[str, Any] = {operation(each): each for each in get_args(Change)}
#: The reason of a proposal whose caller gives none, by operation.
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
    """Return the reason of a proposal whose caller gives none: its operation, or ``edited`` for several sorts."""
    operations = {operation(each) for each in changes}
    return _DEFAULT_REASONS.get(operations.pop(), "edited") if len(operations) == 1 else "edited"
