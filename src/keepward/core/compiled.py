"""Compiled contexts: the text, its sections, and the memories left out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from msgspec import field

from keepward.core.commit import Reason, Receipt
from keepward.core.value import Data, Value

#: A masked span: start and end in characters, and the name that replaces it.
Mask: TypeAlias = tuple[int, int, str]


class ContextItem(Data):
    """One memory in a context."""

    id: str
    version: int
    tier: str
    kind: str
    #: Estimated tokens of this item; those of the section are exact.
    tokens: int
    #: Masked spans of its text.
    masks: tuple[Mask, ...] = ()
    #: None if it was not recalled.
    score: float | None = None
    parts: Mapping[str, float] = field(default_factory=dict)
    #: Whether it is a weak hit, which does not count as a use.
    weak: bool = False
    #: Label of its core block.
    block: str | None = None


class Section(Data):
    """A part of a context."""

    name: str
    #: Tokens of this section with its headings; the sections sum to the total.
    tokens: int
    #: SHA-256 of this part of the text, in hex.
    digest: str
    items: tuple[ContextItem, ...]


class Exclusion(Data):
    """A candidate that was left out."""

    id: str
    version: int
    reason: Reason


class ContextLine(Data):
    """A line of a context, with the headings before it."""

    section: str
    #: Id of its memory, or ``identity`` or ``user_file`` for a document.
    id: str
    text: str
    #: Tokens of this text.
    tokens: int


class Considered(Data):
    """A candidate of a context, whether it is in, and the reason."""

    id: str
    version: int
    #: Its section; None if it is out.
    section: str | None
    #: The code of the reason, as in the receipt; the section if it is in.
    code: str
    #: One sentence for a person; never memory content.
    why: str
    #: The text of this version if the caller may read it; empty if erased.
    text: str
    #: Its current text, if that differs.
    now: str | None
    tier: str | None
    kind: str | None
    key: str | None
    #: ``kind:name`` of the author of this text, and the id of the commit that wrote it.
    author: str | None
    source: str | None
    trust: str | None
    commit: str | None
    #: Tokens of its line; None if it is out.
    tokens: int | None
    #: None if it was not recalled or is out.
    score: float | None
    parts: Mapping[str, float]


class Explanation(Data):
    """The text of a context by memory, and why each candidate is in or out."""

    #: In the order of the text; joined, they are the text as Markdown, whatever the format.
    parts: tuple[ContextLine, ...]
    #: Candidates that are in, in the order of the text; then the others by score and id.
    candidates: tuple[Considered, ...]


class CompiledContext(Value):
    """The text for a model, and the record of its origin."""

    text: str
    context_id: str
    #: None for a preview, or if it could not be stored; ``notes`` says why.
    receipt: Receipt | None
    sections: tuple[Section, ...]
    excluded: tuple[Exclusion, ...]
    tokens: int
    prefix_digest: str
    tail_digest: str
    #: Signals used by recall, and sentences about those that were not available.
    used: tuple[str, ...]
    notes: tuple[str, ...]
    head: str
    #: Whether the receipt is in the store.
    kept: bool
    #: Ids of visible memories that were edited outside Keepward or are missing.
    withheld: tuple[str, ...] = ()
    #: Number of memories left out that ``excluded`` does not list, by code, such as ``weak``.
    unlisted: Mapping[str, int] = field(default_factory=dict)
    #: Why each candidate is in or out; only for a preview.
    explanation: Explanation | None = None

    def __str__(self) -> str:
        """Return the text for the prompt."""
        return self.text

    def __format__(self, spec: str) -> str:
        """Return the text for the prompt, so that an f-string shows it."""
        return format(self.text, spec)


class Replayed(Value):
    """A context rendered again from its receipt."""

    text: str
    #: Whether the bytes are equal to the original.
    same: bool
    prefix_digest: str
    tail_digest: str
    #: Names of the sections with the original bytes.
    unchanged: tuple[str, ...]
    #: Id and version of each missing memory; a missing document is ``identity`` or ``user_file`` with version 0.
    missing: tuple[tuple[str, int], ...]
