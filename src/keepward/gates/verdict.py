"""Verdicts: what a gate answers, and what it may look at to answer.

Invariants
(1) A gate is a pure function of the case, the view and the policy.
(2) A gate without an objection returns None.
(3) Of several verdicts the strictest decides: Refuse, then Quarantine; every reason is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from keepward.gates.detect.finding import Finding
from keepward.gates.detect.likeness import Form
from keepward.model.change import Change
from keepward.model.commit import Reason
from keepward.model.memory import Record, Tier
from keepward.model.policy import Policy
from keepward.model.trust import Actor


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One step under judgement."""

    change: Change
    actor: Actor
    #: Scope of the handle that asks.
    scope: str = "/"
    #: The commit's reason and session are stored too, and are read by the content gates.
    before: Record | None
    #: What would be stored; a Rewrite puts another in its place for the gates that follow.
    after: Record
    reason: str = ""
    #: What ``fields.texts`` found, so that three gates that read every text do not each collect them.
    collected: list[tuple[str, str]] = field(default_factory=list, init=False, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What the engine read for the gates."""

    now: datetime
    #: Live memories whose text may be the same or similar: same scope, tier and sensitivity. The nearest comes
    #: first; of the others, those that cannot state the same may be left out.
    neighbours: tuple[Record, ...] = ()
    #: Texts as they are compared, where that was worked out already.
    forms: Mapping[str, Form] = field(default_factory=dict)
    #: Records of what no longer holds and says the same: superseded memories, earlier values of the key.
    echoes: tuple[Record, ...] = ()
    #: Live memories of the tenant, by tier.
    counts: Mapping[Tier, int] = field(default_factory=dict)
    #: Tokens of the new text, by the store's counter.
    tokens: int = 0
    #: Ids of the evidence that the store itself recorded as user messages.
    user_evidence: frozenset[str] = frozenset()
    #: Live occupant of the key the step wants, when it is another memory.
    occupant: Record | None = None
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
class Same:
    """The same is remembered already."""

    existing: Record
    reasons: tuple[Reason, ...]


Verdict = Rewrite | Quarantine | Refuse | Same
Gate = Callable[[Case, View, Policy], Verdict | None]
