"""Verdicts: what a gate answers, and what it may look at to answer, every string included that would reach the disk.

Gates that read content read all of these strings, so that nothing hides in a tag or a reason.

Invariants
(1) A gate is a pure function of the case, the view and the policy.
(2) A gate without an objection returns None.
(3) Of several verdicts the strictest decides: Refuse, then Quarantine; every reason is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from operator import attrgetter
from typing import Any

from msgspec.structs import replace

from keepward.core.change import Change, Retire
from keepward.core.commit import Reason
from keepward.core.memory import NAME_FIELDS, NAME_LIST_FIELDS, ContentType, Kind, Record, Tier
from keepward.core.policy import Policy
from keepward.core.principals import Actor, Trust
from keepward.gates.detectors.matcher import Finding
from keepward.gates.detectors.near_duplicate import NormalizedText
from keepward.gates.detectors.normalize import Text
from keepward.gates.detectors.tables import lazy_property


@dataclass(frozen=True, kw_only=True)
class GateInput:
    """One step under judgement."""

    change: Change
    actor: Actor
    #: Scope of the handle that asks, and the scope at and below which its credential may write.
    scope: str = "/"
    write_scope: str = "/"
    #: The commit's reason and session are stored too, and are read by the content gates.
    before: Record | None
    #: What would be stored; a Rewrite puts another in its place for the gates that follow.
    after: Record
    reason: str = ""

    @lazy_property
    def strings(self) -> list[tuple[str, str]]:
        """The (field name, text) of every non-empty stored text; the reason comes last."""
        return [*named_texts(self.after), *([("reason", self.reason)] if self.reason else ())]

    @lazy_property
    def texts(self) -> list[tuple[str, Text]]:
        """The same as ``strings``, as detectors read them: each is brought into normal form once."""
        return [(name, Text(text)) for name, text in self.strings]

    @lazy_property
    def whole(self) -> Text:
        """All stored texts, one a line, for one quick look at once."""
        return Text("\n".join([text for _, text in self.strings]))

    @lazy_property
    def texts_except_body(self) -> Text:
        """All stored texts but the memory's own, one a line."""
        return Text("\n".join([text for name, text in self.strings if name != "text"]))


@dataclass(frozen=True, slots=True, kw_only=True)
class GateContext:
    """What the engine read for the gates."""

    now: datetime
    #: Live memories whose text may be the same or similar: same scope, tier and sensitivity. The nearest comes
    #: first; of the others, those that cannot state the same may be left out.
    neighbours: tuple[Record, ...] = ()
    #: Texts as they are compared, where that was worked out already.
    forms: Mapping[str, NormalizedText] = field(default_factory=dict)
    #: Records of what no longer holds and says the same: superseded memories, earlier values of the key.
    echoes: tuple[Record, ...] = ()
    #: Live memories of the tenant, by tier.
    counts: Mapping[Tier, int] = field(default_factory=dict)
    #: Tokens of the new text, by the store's counter.
    tokens: int = 0
    #: Ids of the evidence that the store itself recorded as user messages.
    user_evidence: frozenset[str] = frozenset()
    #: Least useful memory of the tier, which may make room when the tier is full.
    spare: Record | None = None
    #: What is to stand in place of the memory, where the step lets another replace it.
    successor: Record | None = None
    #: Whether what is to be restored was contained.
    contained: bool = False
    #: What a redactor of the store's own found, by text.
    personal: Mapping[str, tuple[Finding, ...]] = field(default_factory=dict)
    #: Text of the identity document, to recognise it when it is pasted as a memory.
    identity_text: str | None = None
    #: New aliases, and a new key, by which another memory goes.
    taken: frozenset[str] = frozenset()
    #: Whether it is a new edition of that document which is proposed, and no memory.
    edition: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewrite:
    """Store something else instead: redacted, rerouted, or with a default filled in."""

    after: Record
    reasons: tuple[Reason, ...]
    #: New reason of the commit, where that had to be redacted too.
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Quarantine:
    """Hold it until a person decides."""

    reasons: tuple[Reason, ...]
    #: The redacted form to hold, where the proposed one must not be stored.
    after: Record | None = None
    #: New reason of the commit, where that had to be redacted too.
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Refuse:
    """Store nothing of it."""

    reasons: tuple[Reason, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DuplicateMatch:
    """The same is remembered already."""

    existing: Record
    reasons: tuple[Reason, ...]


Verdict = Rewrite | Quarantine | Refuse | DuplicateMatch
Gate = Callable[[GateInput, GateContext, Policy], Verdict | None]


def retires_own_turn(case: GateInput) -> bool:
    """Whether somebody retires a turn of a session that they have written themselves; it can be restored."""
    before = case.before
    if before is None or not isinstance(case.change, Retire):
        return False
    return before.kind is Kind.EVENT and before.session is not None and before.author == case.actor.label


def is_consulted_data(record: Record) -> bool:
    """Whether a memory is what a program or a document holds, by somebody who is trusted as an agent at least.

    It is consulted and not followed, whatever it says; core memory and rules are followed.
    """
    held = record.content_type is ContentType.STRUCTURED or record.kind is Kind.DOCUMENT
    return held and record.trust >= Trust.AGENT and record.tier is not Tier.CORE and record.kind is not Kind.RULE


def is_turn(record: Record) -> bool:
    """Whether a memory is what was said in a talk: an event of a session, or of a named speaker."""
    said = record.session is not None or record.speaker is not None
    return record.kind is Kind.EVENT and record.tier is Tier.EPISODIC and said


def is_source_text(record: Record) -> bool:
    """Whether a memory is a turn of a talk or a document: text to consult, and no statement to rely on."""
    return is_turn(record) or (record.kind is Kind.DOCUMENT and record.tier is not Tier.CORE)


def reasons_of(gate: str) -> Callable[[str, str], Reason]:
    """Return how a gate gives a reason: by a code, and a sentence on what is wrong and what to do."""
    return lambda code, detail: Reason(gate=gate, code=code, detail=detail)


_SINGLE = ("text", *NAME_FIELDS, "metadata", "source")
#: Where they are kept: of an object, its JSON text.
_FIELDS = {**{name: name for name in _SINGLE}, "metadata": "metadata_json"}
_singles, _manies = attrgetter(*_FIELDS.values()), attrgetter(*NAME_LIST_FIELDS)
#: Fields by which memories are looked up: one marker in place of two names would make them one.
LOOKUP_FIELDS = frozenset({"key", "subject", "session", "job", "source"})
#: Handles of other systems, and hashes: nobody reads them.
OPAQUE_FIELDS = frozenset({"aliases", "blob"})


def named_texts(record: Record) -> list[tuple[str, str]]:
    """Return (field name, text) for every non-empty stored text of a record."""
    found = [pair for pair in zip(_SINGLE, _singles(record), strict=True) if pair[1]]
    for name, items in zip(NAME_LIST_FIELDS, _manies(record), strict=True):
        if items:
            found += [(name, item) for item in items]
    return found


def map_texts(record: Record, replace_text: Callable[[str, str], str]) -> Record:
    """Return the record with ``change(field name, text)`` in place of every stored text."""
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
