"""Proposals, their stored form, and the outcomes of writes.

* An approval is bound to ``digest``: the hash of the exact steps and of the versions that they build on.
* Only a decision of another actor turns a pending proposal into memory; time can only reject it.
* A record inside is stored with all fields, so that the stored payload equals the approved one, byte for byte.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from msgspec import field
from msgspec.structs import force_setattr

from keepward.core.commit import Commit, Reason, Receipt, Step
from keepward.core.foreign_words import ForeignFields
from keepward.core.journal import Delivery
from keepward.core.json_form import canonical, from_json, to_json
from keepward.core.memory import Record, Tier
from keepward.core.principals import Actor, Trust
from keepward.core.quotes import Shortened
from keepward.core.serialization import digest, encode_record
from keepward.core.value import Data, Instant, ListResult, Value
from keepward.errors import KeepwardError, Tampered

ProposalState = Literal["pending", "approved", "rejected", "expired", "stale"]
#: States of a proposal that was not stored, in words for its proposer.
NEGATIVE_DECISIONS: Mapping[str, str] = {"rejected": "rejected", "expired": "not decided in time", "stale": "set aside"}


class Evidence(Value):
    """One reference in the evidence of a proposal."""

    reference: str
    #: The memory with that name; None if the store knows only the name.
    memory: Record | None


class Similar(Value):
    """A memory similar to the proposed one."""

    memory: Record
    #: The score of recall, 0..1.
    score: float
    why: tuple[str, ...]


class ContextExposure(Value):
    """The compiled contexts that contained the memories of a proposal."""

    contexts: int
    #: The newest one by its receipt; None if there is none.
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
    """Information for the decision about a proposal."""

    #: What each gate that quarantined it checks, in one sentence.
    meaning: Mapping[str, str]
    evidence: tuple[Evidence, ...]
    #: Memories similar to the proposed text, most similar first.
    similar: tuple[Similar, ...]
    #: Contexts that contained the memories it changes; None if all are new.
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
    #: Versions that the steps build on, by memory id; 0 for a new memory.
    base: dict[str, int]
    digest: str
    created_at: Instant
    expires_at: Instant
    #: ``kind:name`` of the reviewer, and the reason.
    decided_by: str | None = None
    decision: str | None = None
    decided_at: Instant | None = None
    #: Whether the proposer has been notified of the decision.
    told: bool = False
    #: Whether the reader may approve it, by rights and policy. Computed by a read, not stored.
    may_approve: bool = False
    #: Whether a memory that it builds on has changed, and these memories now. Computed by a read, not stored.
    stale: bool = False
    current: tuple[Record, ...] = ()
    #: Information for the decision, if a reviewer or the owner reads this proposal alone. Not stored.
    review_context: ReviewContext | None = None


def digest_of(steps: tuple[Step, ...], base: dict[str, int]) -> str:
    """Return the hex digest that an approval of these steps needs."""
    shape = canonical([[step.op, step.after.id] for step in steps])
    parts = [part for step in steps for part in (encode_record(step.after), b"\n")]
    return digest("proposal", shape, canonical(base), b"\n", *parts).hex()


# Every outcome has the same attributes, None or empty if they do not apply: ``ok`` (whether the memory is stored),
# ``id``, ``record`` and ``records`` (the written or equal memories; the first if there are several), ``commit``,
# ``item`` (the proposal), ``receipt``,
# ``reasons``, ``redacted``.


class _Outcome(ForeignFields):
    """Base of all outcomes."""

    __slots__ = ()
    reasons: tuple[Reason, ...]

    @property
    def redacted(self) -> tuple[str, ...]:
        """Kinds of personal identifiers and secrets that were replaced by markers, in order.

        Empty if nothing was replaced or stored.
        """
        return tuple(dict.fromkeys(reason.code for reason in self.reasons if _is_redaction(reason)))


def _is_redaction(reason: Reason) -> bool:
    if reason.gate == "privacy":
        return not reason.code.startswith("kept_") and reason.code != "consent_not_taken"
    return reason.gate == "secrets"


class Committed(_Outcome, Value, tag_field="outcome", tag="committed"):
    """The changes are in the journal."""

    #: Id of the memory; of the first if there are several.
    id: str = ""
    records: tuple[Record, ...]
    commit: Commit
    receipt: Receipt
    reasons: tuple[Reason, ...] = ()
    outcome: ClassVar[Literal["committed"]] = "committed"
    ok: ClassVar[Literal[True]] = True
    item: ClassVar[None] = None

    def __post_init__(self) -> None:
        force_setattr(self, "id", self.records[0].id)

    @property
    def record(self) -> Record:
        """The memory; the first if there are several."""
        return self.records[0]


class Quarantined(_Outcome, Value, tag_field="outcome", tag="quarantined"):
    """The changes are in the review queue; the memories are unchanged."""

    #: Id of the memory, existing or proposed; ``item.id`` is the id of the proposal.
    id: str = ""
    item: Proposal
    receipt: Receipt
    reasons: tuple[Reason, ...] = ()
    outcome: ClassVar[Literal["quarantined"]] = "quarantined"
    ok: ClassVar[Literal[False]] = False
    record: ClassVar[None] = None
    records: ClassVar[tuple[Record, ...]] = ()
    commit: ClassVar[None] = None

    def __post_init__(self) -> None:
        force_setattr(self, "id", self.item.steps[0].after.id)


class Refused(_Outcome, Value, tag_field="outcome", tag="refused"):
    """Nothing was stored except the receipt."""

    #: None if memory is switched off; then it is not stored.
    receipt: Receipt | None
    reasons: tuple[Reason, ...] = ()
    outcome: ClassVar[Literal["refused"]] = "refused"
    ok: ClassVar[Literal[False]] = False
    id: ClassVar[None] = None
    record: ClassVar[None] = None
    records: ClassVar[tuple[Record, ...]] = ()
    commit: ClassVar[None] = None
    item: ClassVar[None] = None

    @property
    def redacted(self) -> tuple[str, ...]:
        """Empty, because nothing was stored."""
        return ()


class Duplicate(_Outcome, Value, tag_field="outcome", tag="duplicate"):
    """The same is remembered already, or the change changes nothing.

    ``commit`` is the commit that confirmed it, if any.
    """

    #: Id of the equal memory.
    id: str = ""
    #: The equal memory.
    records: tuple[Record, ...]
    receipt: Receipt
    reasons: tuple[Reason, ...] = ()
    #: The commit that confirmed the existing memory, if any.
    commit: Commit | None = None
    outcome: ClassVar[Literal["duplicate"]] = "duplicate"
    ok: ClassVar[Literal[True]] = True
    item: ClassVar[None] = None

    def __post_init__(self) -> None:
        force_setattr(self, "id", self.records[0].id)

    @property
    def record(self) -> Record:
        """The equal memory."""
        return self.records[0]


Outcome = Committed | Quarantined | Refused | Duplicate


def is_too_long_for_tier(outcome: Outcome) -> bool:
    """Whether a text was refused as too long for its tier; an import splits it."""
    refused = outcome.outcome == "refused"
    return refused and any(
        reason.code == "too_long" and reason.detail.startswith("the text") for reason in outcome.reasons
    )


#: Schema number of stored proposals.
PROPOSAL_SCHEMA = 2


def proposal_to_dict(item: Proposal) -> dict[str, Any]:
    """Return a proposal as JSON values for storage, without the fields that depend on the reader."""
    fields: dict[str, Any] = to_json(item)
    del fields["proposer"]["can"], fields["may_approve"], fields["stale"], fields["current"], fields["review_context"]
    return {"v": PROPOSAL_SCHEMA, **fields}


def proposal_from_dict(fields: dict[str, Any]) -> Proposal:
    """Return the proposal of ``proposal_to_dict``.

    Raises:
        Tampered: ``proposal_to_dict`` did not write it.
    """
    try:
        if fields["v"] == 1:
            fields = _with_named_trust(fields)
        elif fields["v"] != PROPOSAL_SCHEMA:
            raise Tampered("a proposal is written in an unknown schema; upgrade Keepward or run `keepward verify`")
        return from_json(Proposal, fields)
    except (KeyError, ValueError) as exc:
        raise Tampered("a proposal in the queue is damaged; run `keepward verify`") from exc


def _with_named_trust(fields: dict[str, Any]) -> dict[str, Any]:
    """Return a proposal of schema 1, where a trust was a number and the metadata a text, in the present schema."""
    ranks = [trust.label for trust in Trust]

    def record(stored: dict[str, Any] | None) -> dict[str, Any] | None:
        if stored is None:
            return None
        metadata, heard = stored.get("metadata_json"), stored.get("heard")
        renamed = {"trust": ranks[stored["trust"]], "heard": None if heard is None else ranks[heard]}
        return {**stored, **renamed, "metadata": metadata and json.loads(metadata)}

    steps = [{**step, "before": record(step["before"]), "after": record(step["after"])} for step in fields["steps"]]
    return {**fields, "steps": steps}


class Match(Data):
    """A memory that matches a text, at its current version."""

    id: str
    version: int
    text: str
    #: How well it matches the text, 0..1; 0 if it only quotes.
    score: float
    #: Why it matches: ``words``, ``meaning``; ``quotes`` alone if it quotes, merges or sums up another match.
    why: tuple[str, ...]
    tier: Tier
    #: When its text was written.
    text_at: Instant


class Forgetting(Value):
    """The memories that ``forget_matching`` retires, and the outcome."""

    #: Best first; those that quote another match come last.
    matches: tuple[Match, ...]
    #: Summaries that lose the lines of a match and keep their other lines, by id.
    shortened: tuple[Shortened, ...] = ()
    #: Identifies this plan; 64 hex digits.
    digest: str
    #: Sentences about what could not be searched and why.
    notes: tuple[str, ...] = ()
    #: None for a plan, and if nothing matches.
    outcome: Outcome | None = None


class DecisionResult(Value):
    """The result of one decision of several."""

    id: str
    #: The commit; None if it was rejected or could not be decided.
    outcome: Committed | None = None
    receipt: Receipt | None = None
    #: Why it could not be decided.
    error: KeepwardError | None = None

    @property
    def ok(self) -> bool:
        """Whether the decision was made."""
        return self.error is None


class ProposalPage(ListResult[Proposal]):
    """A page of the review queue, oldest first."""

    #: Position of the first item among all that pass the filters, from 0, and their number.
    offset: int = 0
    total: int = 0
    #: Numbers by ``proposer``, ``gate``, ``tier`` and ``op``, of all proposals of the state.
    counts: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    #: Creation time of the oldest that passes.
    oldest_at: Instant | None = None


class ProposedStep(Value):
    """One step of a proposal, as a reviewer sees it."""

    op: str
    id: str
    #: Version that the step builds on; 0 for a new memory.
    base: int
    #: The canonical payload that an approval stores.
    payload: str
    #: (field, before, after) of each change, by name; None if absent.
    changes: tuple[tuple[str, str | None, str | None], ...]
