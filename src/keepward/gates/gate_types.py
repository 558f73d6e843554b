"""Verdicts of gates, and the input that a gate reads.

The content gates read every string that would be stored, so that nothing can hide in a tag or a reason. A gate is a
pure function of the case, the view and the policy. A gate without an objection returns None. The strictest of several
verdicts decides (Refuse, then Quarantine); the result contains all reasons.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from operator import attrgetter
from typing import Any, Literal

from msgspec.structs import replace

from keepward.core.change import Change, Retire
from keepward.core.commit import Reason
from keepward.core.memory import CORE_BLOCKS, NAME_FIELDS, NAME_LIST_FIELDS, ContentType, Kind, Record, Tier
from keepward.core.policy import Policy
from keepward.core.principals import Actor, Trust
from keepward.gates.detectors.matcher import Finding
from keepward.gates.detectors.near_duplicate import NormalizedText
from keepward.gates.detectors.normalize import Text
from keepward.gates.detectors.tables import lazy_property


@dataclass(frozen=True, kw_only=True)
class GateInput:
    """One step that the gates check."""

    change: Change
    actor: Actor
    #: Scope of the handle.
    scope: str = "/"
    #: The credential may write at this scope and below.
    write_scope: str = "/"
    before: Record | None
    #: The record to store. A Rewrite replaces it for the later gates.
    after: Record
    #: The reason of the commit, which is stored as well.
    reason: str = ""

    @lazy_property
    def strings(self) -> list[tuple[str, str]]:
        """The pairs (field name, text) of every non-empty stored text; the reason comes last."""
        return [*named_texts(self.after), *([("reason", self.reason)] if self.reason else ())]

    @lazy_property
    def texts(self) -> list[tuple[str, Text]]:
        """The same as ``strings``, for detectors: each text is normalized once."""
        return [(name, Text(text)) for name, text in self.strings]

    @lazy_property
    def all_texts(self) -> Text:
        """All stored texts, one per line, for one prefilter of all."""
        return Text("\n".join([text for _, text in self.strings]))

    @lazy_property
    def texts_except_body(self) -> Text:
        """All stored texts except the memory's own, one per line."""
        return Text("\n".join([text for name, text in self.strings if name != "text"]))


@dataclass(frozen=True, slots=True, kw_only=True)
class GateContext:
    """The data of the store that the engine read for the gates."""

    now: datetime
    #: Active memories with the same scope, tier and sensitivity, whose text may be the same or similar. The nearest
    #: comes first; of the others, those that cannot be duplicates may be missing.
    neighbours: tuple[Record, ...] = ()
    #: Normalized texts, if they are computed already.
    forms: Mapping[str, NormalizedText] = field(default_factory=dict)
    #: Inactive records with the same text: superseded memories, and earlier values of the key.
    echoes: tuple[Record, ...] = ()
    #: Active memories of the tenant, by tier.
    counts: Mapping[Tier, int] = field(default_factory=dict)
    #: Tokens of the new text, by the store's counter.
    tokens: int = 0
    #: Ids of the evidence that the store itself recorded as user messages.
    user_evidence: frozenset[str] = frozenset()
    #: Least useful memory of the tier, which may be archived if the tier is full.
    spare: Record | None = None
    #: The memory that replaces this one, if the step supersedes it.
    successor: Record | None = None
    #: Whether the memory to restore was contained.
    contained: bool = False
    #: Findings of the store's own redactor, by text.
    personal: Mapping[str, tuple[Finding, ...]] = field(default_factory=dict)
    #: Text of the identity, to recognize it when it is pasted as a memory.
    identity_text: str | None = None
    #: New aliases, and a new key, that another memory already has.
    taken: frozenset[str] = frozenset()
    #: What shows a new text of the identity that is proposed: its core block, or a file, which a person changes. None
    #: for any other proposal.
    identity_in: Literal["block", "file"] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewrite:
    """Store another record instead: redacted, moved to another tier, or with a default filled in."""

    after: Record
    reasons: tuple[Reason, ...]
    #: New reason of the commit, if the old one had to be redacted.
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Quarantine:
    """Let a reviewer decide."""

    reasons: tuple[Reason, ...]
    #: The redacted record of the proposal, if the proposed one must not be stored.
    after: Record | None = None
    #: New reason of the commit, if the old one had to be redacted.
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Refuse:
    """Store nothing."""

    reasons: tuple[Reason, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DuplicateMatch:
    """An active memory says the same."""

    existing: Record
    reasons: tuple[Reason, ...]


Verdict = Rewrite | Quarantine | Refuse | DuplicateMatch
Gate = Callable[[GateInput, GateContext, Policy], Verdict | None]


def retires_own_message(case: GateInput) -> bool:
    """Whether an actor retires a session message that it wrote itself; it can be restored."""
    before = case.before
    if before is None or not isinstance(case.change, Retire):
        return False
    return before.kind is Kind.EVENT and before.session is not None and before.author == case.actor.label


def is_identity(record: Record) -> bool:
    """Whether a memory is the identity: by its kind, or as the core block ``persona``."""
    return record.kind is Kind.IDENTITY or (record.tier is Tier.CORE and record.key == CORE_BLOCKS[0])


def is_consulted_data(record: Record) -> bool:
    """Whether a memory is a program's data or a document, from a source with at least an agent's trust.

    Models consult such data and do not follow it; they follow core memory and rules.
    """
    is_data = record.content_type is ContentType.STRUCTURED or record.kind is Kind.DOCUMENT
    return is_data and record.trust >= Trust.AGENT and record.tier is not Tier.CORE and record.kind is not Kind.RULE


def is_message(record: Record) -> bool:
    """Whether a memory is a message of a conversation: an event of a session, or of a named speaker."""
    has_context = record.session is not None or record.speaker is not None
    return record.kind is Kind.EVENT and record.tier is Tier.EPISODIC and has_context


def is_source_text(record: Record) -> bool:
    """Whether a memory is a message or a document: text to consult, not a statement to rely on."""
    return is_message(record) or (record.kind is Kind.DOCUMENT and record.tier is not Tier.CORE)


def reasons_of(gate: str) -> Callable[[str, str], Reason]:
    """Return a function that makes a gate's reason of a code and a sentence: what is wrong, and what to do."""
    return lambda code, detail: Reason(gate=gate, code=code, detail=detail)


_SINGLE = ("text", *NAME_FIELDS, "metadata", "source")
#: Attribute of each field; of the metadata, their JSON text.
_FIELDS = {**{name: name for name in _SINGLE}, "metadata": "metadata_json"}
_single_values, _list_values = attrgetter(*_FIELDS.values()), attrgetter(*NAME_LIST_FIELDS)
#: Fields by which memories are found: one marker instead of two names would merge them.
LOOKUP_FIELDS = frozenset({"key", "subject", "session", "job", "source"})
#: Ids of other systems, and hashes: they contain no text for readers.
OPAQUE_FIELDS = frozenset({"aliases", "blob"})


def named_texts(record: Record) -> list[tuple[str, str]]:
    """Return (field name, text) for every non-empty stored text of a record."""
    pairs = [pair for pair in zip(_SINGLE, _single_values(record), strict=True) if pair[1]]
    for name, items in zip(NAME_LIST_FIELDS, _list_values(record), strict=True):
        if items:
            pairs += [(name, item) for item in items]
    return pairs


def map_texts(record: Record, replace_text: Callable[[str, str], str]) -> Record:
    """Return the record with ``replace_text(field name, text)`` instead of every stored text."""
    fields: dict[str, Any] = {}
    for name, attribute in _FIELDS.items():
        value = getattr(record, attribute)
        if value:
            fields[attribute] = replace_text(name, value)
    for name in NAME_LIST_FIELDS:
        values = getattr(record, name)
        if values:
            fields[name] = tuple(replace_text(name, item) for item in values)
    return replace(record, **fields)
