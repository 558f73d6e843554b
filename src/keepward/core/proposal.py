"""Proposals: what waits for a person, its form on disk, and what became of a write.

Invariants
(1) An approval is bound to ``digest``: the hash of the exact steps and of the versions they build on.
(2) Nothing but a decision by another principal turns a waiting proposal into memory; time only rejects.
(3) A record inside is stored with all its fields, so that its payload is the one that was approved, byte for byte.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Any, ClassVar, Literal

import msgspec

from keepward.core.commit import Commit, Reason, Receipt, Step
from keepward.core.journal import Delivery
from keepward.core.memory import Record, Tier
from keepward.core.principals import Actor
from keepward.core.serialization import canonical, digest, encode_record
from keepward.core.value import Data, ResultMixin, Value
from keepward.errors import KeepwardError, Tampered

ProposalState = Literal["pending", "approved", "rejected", "expired", "stale"]
#: What became of a proposal that was not stored, in words for who made it.
NEGATIVE_DECISIONS: Mapping[str, str] = {"rejected": "rejected", "expired": "not decided in time", "stale": "set aside"}


class Evidence(Value):
    """One reference that a proposal rests on."""

    reference: str
    #: What the store itself recorded under that name; None where it knows only the name.
    memory: Record | None


class Similar(Value):
    """A memory that is like what a proposal would store."""

    memory: Record
    #: As recall scores it, 0..1.
    score: float
    why: tuple[str, ...]


class ContextExposure(Value):
    """Which compiled contexts held what a proposal would change."""

    contexts: int
    #: The newest one whose receipt says so; None where none does.
    last: Delivery | None


class Flagged(Value):
    """Words of a proposed text at which a gate that quarantined it points."""

    #: Id of the memory that would have the text.
    memory: str
    gate: str
    #: Name of the rule, such as ``override_instructions``.
    code: str
    #: Half-open span in code points of the text.
    start: int
    end: int


class ReviewContext(Value):
    """What bears on the decision about a proposal."""

    #: What each gate that held it looks for, in one sentence.
    meaning: Mapping[str, str]
    evidence: tuple[Evidence, ...]
    #: Memories like the text that it would store, most alike first.
    similar: tuple[Similar, ...]
    #: Of what it would change, how far that went; None where all of it is new.
    reached: ContextExposure | None
    #: Words that its gates found, by text and position.
    flagged: tuple[Flagged, ...] = ()


class Proposal(Value):
    """A proposal in the review queue, already redacted."""

    id: str
    tenant: str
    state: ProposalState
    proposer: Actor
    reason: str
    reasons: tuple[Reason, ...]
    #: What would be stored, byte for byte.
    steps: tuple[Step, ...]
    #: Versions the steps build on, by memory id; 0 for a new memory.
    base: dict[str, int]
    digest: str
    created_at: datetime
    expires_at: datetime
    #: ``kind:name`` of who decided, and why.
    decided_by: str | None = None
    decision: str | None = None
    decided_at: datetime | None = None
    #: Whether the proposer has been told of the decision.
    told: bool = False
    #: Whether whoever reads it may approve it: by their rights and the policy. It is of the reading, and is not kept.
    may_approve: bool = False
    #: Whether a memory that it builds on has changed since; and what these memories say now. Not kept either.
    stale: bool = False
    current: tuple[Record, ...] = ()
    #: What bears on the decision: only where one proposal is read, by a reviewer or the owner. Not kept either.
    review_context: ReviewContext | None = None


def digest_of(steps: tuple[Step, ...], base: dict[str, int]) -> str:
    """Return the hex digest that an approval of these steps is bound to."""
    shape = canonical([[step.op, step.after.id] for step in steps])
    parts = [part for step in steps for part in (encode_record(step.after), b"\n")]
    return digest("proposal", shape, canonical(base), b"\n", *parts).hex()


# Every outcome has the same attributes, with None or nothing where it has none of a sort, so that a caller can ask
# without a match statement: ``ok`` (whether what was to be remembered is), ``id``, ``record`` and ``records`` (of what
# was written or is the same; the first where there are several), ``commit``, ``item`` (what waits), ``receipt``,
# ``reasons``, ``redacted``.


class _Outcome:
    """What every outcome can say of its reasons."""

    __slots__ = ()
    reasons: tuple[Reason, ...]

    @property
    def redacted(self) -> tuple[str, ...]:
        """Kinds of personal identifiers and secrets that stand as markers in what was stored or is held, in order.

        Empty where the text stands as it was given, and where nothing was stored.
        """
        return tuple(dict.fromkeys(each.code for each in self.reasons if _is_redaction(each)))


def _is_redaction(reason: Reason) -> bool:
    if reason.gate == "privacy":
        return not reason.code.startswith("kept_") and reason.code != "consent_not_taken"
    return reason.gate == "secrets"


class Committed(_Outcome, Value):
    """The changes are in the journal."""

    records: tuple[Record, ...]
    commit: Commit
    receipt: Receipt
    reasons: tuple[Reason, ...] = ()
    outcome: Literal["committed"] = "committed"
    ok: ClassVar[Literal[True]] = True
    item: ClassVar[None] = None

    @property
    def id(self) -> str:
        """Id of the memory; of the first where there are several."""
        return self.records[0].id

    @property
    def record(self) -> Record:
        """The memory; the first where there are several."""
        return self.records[0]


class Quarantined(_Outcome, Value):
    """The changes wait for a person; what held before still holds."""

    item: Proposal
    receipt: Receipt
    reasons: tuple[Reason, ...] = ()
    outcome: Literal["quarantined"] = "quarantined"
    ok: ClassVar[Literal[False]] = False
    record: ClassVar[None] = None
    records: ClassVar[tuple[Record, ...]] = ()
    commit: ClassVar[None] = None

    @property
    def id(self) -> str:
        """Id that the memory has, or will have if a person approves; ``item.id`` is that of the proposal."""
        return self.item.steps[0].after.id


class Refused(_Outcome, Value):
    """Nothing was stored but the receipt."""

    #: None where memory is switched off: then it is not kept either.
    receipt: Receipt | None
    reasons: tuple[Reason, ...] = ()
    outcome: Literal["refused"] = "refused"
    ok: ClassVar[Literal[False]] = False
    id: ClassVar[None] = None
    record: ClassVar[None] = None
    records: ClassVar[tuple[Record, ...]] = ()
    commit: ClassVar[None] = None
    item: ClassVar[None] = None

    @property
    def redacted(self) -> tuple[str, ...]:
        """Nothing was stored."""
        return ()


class Duplicate(_Outcome, Value):
    """The same is already remembered, or a change changes nothing; ``commit`` is there where that confirmed it."""

    record: Record
    receipt: Receipt
    reasons: tuple[Reason, ...] = ()
    #: The commit that reinforced the existing memory, where there was one.
    commit: Commit | None = None
    outcome: Literal["duplicate"] = "duplicate"
    ok: ClassVar[Literal[True]] = True
    item: ClassVar[None] = None

    @property
    def id(self) -> str:
        """Id of the memory that says the same."""
        return self.record.id

    @property
    def records(self) -> tuple[Record, ...]:
        """The memory that says the same."""
        return (self.record,)


Outcome = Committed | Quarantined | Refused | Duplicate


def is_too_long_for_tier(outcome: Outcome) -> bool:
    """Whether a text was refused as longer than its tier takes: an import would keep it, in parts."""
    refused = outcome.outcome == "refused"
    return refused and any(each.code == "too_long" and each.detail.startswith("the text") for each in outcome.reasons)


#: Schema number of kept proposals.
PROPOSAL_SCHEMA = 1


def proposal_to_dict(item: Proposal) -> dict[str, Any]:
    """Return a proposal as JSON values; what its proposer could do beside the rights, and who reads it, is not kept."""
    fields: dict[str, Any] = msgspec.to_builtins(item)
    del fields["proposer"]["can"], fields["may_approve"], fields["stale"], fields["current"], fields["review_context"]
    return {"v": PROPOSAL_SCHEMA, **fields}


def proposal_from_dict(fields: dict[str, Any]) -> Proposal:
    """Return the proposal that ``proposal_to_dict`` wrote.

    Raises:
        Tampered: it did not write this.
    """
    try:
        if fields["v"] != PROPOSAL_SCHEMA:
            raise Tampered("a proposal is written in an unknown schema; upgrade Keepward or run `keepward verify`")
        return msgspec.convert(fields, Proposal)
    except (KeyError, ValueError) as exc:
        raise Tampered("a proposal in the queue is damaged; run `keepward verify`") from exc


class Match(Data):
    """A memory that a text matches, as it is now."""

    id: str
    version: int
    text: str
    #: How well it fits the text, 0..1.
    score: float
    #: Short words on why it matches: ``words``, ``meaning``.
    why: tuple[str, ...]
    tier: Tier
    created_at: datetime


class Forgetting(Value):
    """The memories that forgetting by words would retire, and what became of it."""

    #: Best first.
    matches: tuple[Match, ...]
    #: Names this very plan; 64 hex digits.
    digest: str
    #: Plain sentences on what could not be searched and why.
    notes: tuple[str, ...] = ()
    #: None for a plan, and where nothing matches.
    outcome: Outcome | None = None


class DecisionResult(Value):
    """What became of one proposal of many."""

    id: str
    #: What was stored; None when it was rejected or could not be decided.
    outcome: Committed | None = None
    receipt: Receipt | None = None
    #: Why it could not be decided.
    error: KeepwardError | None = None

    @property
    def ok(self) -> bool:
        """Whether the decision stands."""
        return self.error is None


class ProposalPage(list[Proposal], ResultMixin):
    """One window of the review queue, oldest first."""

    __slots__ = ("counts", "offset", "oldest_at", "total")

    def __init__(
        self,
        items: Iterable[Proposal] = (),
        *,
        offset: int = 0,
        total: int = 0,
        counts: Mapping[str, Mapping[str, int]] = MappingProxyType({}),
        oldest_at: datetime | None = None,
    ) -> None:
        super().__init__(items)
        #: Position of the first of them among all that pass the filters, from 0; and how many pass.
        self.offset = offset
        self.total = total
        #: How many there are by ``proposer``, ``gate``, ``tier`` and ``op``, of all that have the state.
        self.counts = counts
        #: When the oldest that passes was proposed.
        self.oldest_at = oldest_at

    def to_dict(self) -> dict[str, Any]:
        """Return the proposals, and how many there are, as plain JSON values."""
        return {
            "proposals": [each.to_dict() for each in self],
            "offset": self.offset,
            "total": self.total,
            "counts": {name: dict(each) for name, each in self.counts.items()},
            "oldest_at": self.oldest_at.isoformat() if self.oldest_at else None,
        }


class ProposedStep(Value):
    """One step of a proposal."""

    op: str
    id: str
    #: Version that the step builds on; 0 for a new memory.
    base: int
    #: The canonical payload that would be stored, see (1).
    payload: str
    #: (field, before, after) of what differs, by name; None where it is absent.
    changes: tuple[tuple[str, str | None, str | None], ...]
