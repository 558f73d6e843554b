"""A compiled context: its text, its sections, and what was left out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from keepward.model.commit import Reason, Receipt
from keepward.model.value import Value

#: A span of a text and the name put in its place: start, end, name; offsets in characters.
Mask: TypeAlias = tuple[int, int, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One memory in a context."""

    id: str
    version: int
    tier: str
    kind: str
    #: Estimated tokens of this item alone; the section's own number is exact.
    tokens: int
    #: Spans of the record's text that were replaced.
    masks: tuple[Mask, ...] = ()
    #: None for what was not recalled.
    score: float | None = None
    parts: Mapping[str, float] = field(default_factory=dict)
    #: Whether the score is below the line from which a memory counts as relevant, and so as used.
    weak: bool = False
    #: Label of the core block it stands in.
    block: str | None = None
    #: Id of the memory in the context that says otherwise and is newer; the text marks this one as earlier.
    outdone_by: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A part of a context."""

    name: str
    #: Tokens of this part of the text, headings included; all sections sum to the whole.
    tokens: int
    #: SHA-256 of this part of the text, in hex.
    digest: str
    items: tuple[Item, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Excluded:
    """A memory that was considered and left out."""

    id: str
    version: int
    reason: Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledContext(Value):
    """What a model is given, and the proof of how it came about."""

    text: str
    context_id: str
    receipt: Receipt
    sections: tuple[Section, ...]
    excluded: tuple[Excluded, ...]
    tokens: int
    prefix_digest: str
    tail_digest: str
    #: Signals that took part in recall, and sentences on what could not.
    used: tuple[str, ...]
    notes: tuple[str, ...]
    head: str
    #: Whether the receipt is in the store.
    kept: bool
    #: Ids of memories in reach that were edited outside of Keepward or are missing.
    withheld: tuple[str, ...] = ()
    #: Least score of the best that is recalled, 0..1; below it nothing recalled comes in.
    floor: float = 0.0
    #: Score of the best that was recalled, whether it came in or not; None where nothing was.
    best: float | None = None
    #: How many recalled memories were left out below the floor.
    below: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed(Value):
    """A context rendered again from its receipt."""

    text: str
    #: Whether these are the bytes of then.
    same: bool
    prefix_digest: str
    tail_digest: str
    #: Names of the sections whose bytes are those of then.
    unchanged: tuple[str, ...]
    #: Id and version of each memory that is gone; a document counts as ``identity`` or ``user_file``, 0.
    missing: tuple[tuple[str, int], ...]
