"""A compiled context: its text, its sections, and what was left out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from msgspec import field

from keepward.core.commit import Reason, Receipt
from keepward.core.value import Data, Value

#: A span of a text and the name put in its place: start, end, name; offsets in characters.
Mask: TypeAlias = tuple[int, int, str]


class ContextItem(Data):
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
    #: Whether recall marked it as a weak hit, which counts as no use.
    weak: bool = False
    #: Label of the core block it stands in.
    block: str | None = None


class Section(Data):
    """A part of a context."""

    name: str
    #: Tokens of this part of the text, headings included; all sections sum to the whole.
    tokens: int
    #: SHA-256 of this part of the text, in hex.
    digest: str
    items: tuple[ContextItem, ...]


class Exclusion(Data):
    """A memory that was considered and left out."""

    id: str
    version: int
    reason: Reason


class ContextLine(Data):
    """A line of a context, with the headings that it opens."""

    section: str
    #: Id of its memory, or ``identity`` or ``user_file`` for a document.
    id: str
    text: str
    #: Tokens of the text by itself.
    tokens: int


class Considered(Data):
    """A memory that a context could have held, whether it does, and the one reason."""

    id: str
    version: int
    #: Where it stands; None for what is not in.
    section: str | None
    #: A code as in the receipt; of what is in, the section.
    code: str
    #: One sentence for a person; never memory content.
    why: str
    #: What it said at this version, as far as the caller may read it; empty where nothing of it is left.
    text: str
    #: What it says now, where that differs.
    now: str | None
    tier: str | None
    kind: str | None
    key: str | None
    #: ``kind:name`` of its author, and the id of the commit that made this version.
    author: str | None
    source: str | None
    trust: str | None
    commit: str | None
    #: Tokens of its line alone; None for what is not in.
    tokens: int | None
    #: None for what was not recalled, and for what is out.
    score: float | None
    parts: Mapping[str, float]


class Explanation(Data):
    """A context cut by memory, and why each candidate is in or out."""

    #: In the order of the text; their texts make up the text as markdown, whatever the format.
    parts: tuple[ContextLine, ...]
    #: Those that are in, in the order of the text, then the others: best score first, then by id.
    candidates: tuple[Considered, ...]


class CompiledContext(Value):
    """What a model is given, and the proof of how it came about."""

    text: str
    context_id: str
    #: None where it was not kept, and ``notes`` say why, and of a preview.
    receipt: Receipt | None
    sections: tuple[Section, ...]
    excluded: tuple[Exclusion, ...]
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
    #: Ranked memories that were left out and that ``excluded`` does not name, counted by code, such as ``weak``.
    unlisted: Mapping[str, int] = field(default_factory=dict)
    #: Why each candidate is in or out; None unless it is a preview.
    explanation: Explanation | None = None

    def __str__(self) -> str:
        """Return the text for the prompt."""
        return self.text

    def __format__(self, spec: str) -> str:
        """Return the text for the prompt, so that it can stand in an f-string."""
        return format(self.text, spec)


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
