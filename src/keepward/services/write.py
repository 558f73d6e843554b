"""The write path: judge what is proposed, and commit it, hold it for a person, or refuse it.

Invariants
(1) Every proposal ends in exactly one outcome, and every outcome has a receipt in the same transaction.
(2) A proposal is all or nothing; a batch of independent items is judged item by item.
(3) What was judged is what is stored, on the state on which it was judged; see ``commit``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import replace

from keepward import guesses
from keepward.core.change import (
    TEXT_CHANGES,
    Archive,
    Change,
    Insert,
    Move,
    Reinforce,
    Replace,
    Supersede,
    default_reason,
    operation,
    with_plain_names,
)
from keepward.core.commit import Reason, Step, receipt_from
from keepward.core.memory import Kind, Record, Tier
from keepward.core.principals import ActorKind, Trust
from keepward.core.proposal import Committed, Duplicate, Outcome, Proposal, Quarantined, Refused, digest_of
from keepward.core.reducer import ChangeContext, apply, reinforced_by
from keepward.core.value import plain_key, to_micros
from keepward.errors import Conflict, InvalidInput, NotFound, Unauthorised
from keepward.gates import pipeline
from keepward.gates.authority import approver_certifies_text
from keepward.gates.content import redact_personal_data, redact_secrets
from keepward.gates.detectors.matcher import Finding
from keepward.gates.gate_types import GateInput
from keepward.gates.state import makes_room
from keepward.gates.validation import oversized, validation_error
from keepward.idempotency import IdempotencyKey, IdempotencyReused
from keepward.ports.store import Features
from keepward.services import blobs
from keepward.services.erasure_references import blocked_by_erasure
from keepward.services.gate_context import (
    StagedState,
    case_of,
    evaluate_case,
    newest_record,
    parents_of,
    prefetch,
    record_before,
)
from keepward.services.request_context import RequestContext, lowest_trust_read
from keepward.services.search_features import pack_vector
from keepward.services.transaction import CommitResult, StepList, Transaction, transact

#: From so many changes on they are judged before the transaction, which nobody else is to wait for.
EVALUATE_FIRST_FROM = 20
#: Why a change makes no version.
_UNCHANGED_DETAIL = "nothing was changed: the memory already says and holds all of this"
#: Where memory is switched off nothing is written.
_NO_WRITER: Any = None


@dataclass(slots=True, kw_only=True)
class Evaluation:
    """One change, judged: what would be stored, and why or why not."""

    decision: pipeline.Decision
    reasons: tuple[Reason, ...]
    reason: str = ""
    steps: list[Step] = field(default_factory=list)
    existing: Record | None = None
    #: Whether saying the same again confirms what is there: it takes no less trust than that has.
    confirms: bool = True


@dataclass(kw_only=True)
class EvaluatedProposal:
    """A whole proposal, judged on one state of the store; what comes of it is asked once all of it is judged."""

    items: list[Evaluation] = field(default_factory=list)
    overlay: StagedState = field(default_factory=StagedState)
    #: All or nothing: what would be held counts as stored for the changes behind it.
    atomic: bool = True
    #: Why a person is to decide even where every gate would let it through.
    held: tuple[Reason, ...] = ()
    #: Whether nothing is compared with what was erased: in a dry run of who may not decide, each text would be a guess.
    blind: bool = False
    #: The least trust of what the proposer was handed lately, where that is below its own.
    heard: Trust | None = None
    #: What a redactor found, by text; stored where a proposal is judged once more.
    personal: dict[str, tuple[Finding, ...]] = field(default_factory=dict)
    #: Newest versions the steps build on, by memory id; 0 for a new memory.
    base: dict[str, int] = field(default_factory=dict)

    def decision(self, items: Sequence[Evaluation]) -> pipeline.Decision:
        """Return the strictest decision of items, with what holds the whole."""
        decisions = {item.decision for item in items}
        if "refuse" in decisions:
            return "refuse"
        if not any(item.steps for item in items):
            return "same"
        return "quarantine" if self.held or "quarantine" in decisions else "allow"

    @property
    def steps(self) -> list[Step]:
        """The changes to commit."""
        if self.atomic and self.decision(self.items) != "allow":
            return []
        return [step for item in self.items if item.decision == "allow" for step in item.steps]

    def features(self, record: Record) -> Features:
        """Return what recall needs of a record; see ``Overlay.features``."""
        return self.overlay.features(record)

    def add(self, item: Evaluation, change: Change, before: Record | None, after: Record) -> None:
        """Add a step to a judged change, and to what the changes behind it are judged on."""
        op = "replace" if isinstance(change, Insert) and before is not None else operation(change)
        item.steps.append(Step(op=op, before=before, after=after))
        self.base.setdefault(after.id, before.version if before else 0)
        if self.atomic or item.decision == "allow":
            self.overlay.take(before, after)

    def prepare(self, transaction: Transaction) -> None:
        """Store what the steps refer to, before they are committed or held."""


def propose(
    session: RequestContext,
    changes: Sequence[Change],
    *,
    reason: str,
    conversation: str | None = None,
    kind: str = "write",
    quarantine_reasons: tuple[Reason, ...] = (),
    named: bool = False,
) -> Outcome:
    """Judge changes as one and carry them out, hold them, or refuse them together.

    ``held`` says why a person is to decide even where every gate would let them through. ``named`` says that the caller
    chose the ids of new memories.

    Raises:
        InvalidInput: there is no change at all.
        NotFound, Conflict, StaleVersion: a change names a memory that is not there or has moved on.
        Conflict: the id of a new memory is taken.
    """
    if not changes:
        raise InvalidInput("there is nothing to do: give at least one change")
    reason = reason.strip() or default_reason(changes)
    found: dict[str, tuple[Finding, ...]] = {}

    def decide(session: RequestContext) -> EvaluatedProposal:
        draft = EvaluatedProposal(held=quarantine_reasons, personal=found, heard=lowest_trust_read(session))
        if named:
            _require_free_ids(session, [change.id for change in changes if isinstance(change, Insert)])
        for change in changes:
            try:
                draft.items.append(_evaluate_change(session, change, reason, draft))
            except (NotFound, Conflict):
                # It may build on what was refused before it; then that refusal is the answer.
                if all(item.decision != "refuse" for item in draft.items):
                    raise
        return draft

    operations = [operation(change) for change in changes]
    return store_proposal(session, decide, operations, conversation=conversation, kind=kind)[0]


def _require_free_ids(session: RequestContext, ids: list[str]) -> None:
    there = session.store.records(session.tenant, ids) if ids else None
    if len(set(ids)) < len(ids) or (there and (there.records or there.damaged)):
        raise Conflict("the id of a new memory is taken: make a fresh UUIDv7, or leave the id out")


def propose_each(
    session: RequestContext,
    changes: Sequence[Change],
    *,
    reason: str,
    conversation: str | None = None,
    kind: str = "write",
) -> list[Outcome]:
    """Judge changes one by one; commit the good ones together; return outcomes in the order given."""
    if not changes:
        return []
    reason = reason.strip() or default_reason(changes)
    found: dict[str, tuple[Finding, ...]] = {}

    def decide(session: RequestContext) -> EvaluatedProposal:
        draft = EvaluatedProposal(atomic=False, personal=found, heard=lowest_trust_read(session))
        return _evaluate_each(session, changes, reason, draft)

    operations = [operation(change) for change in changes]
    return store_proposal(session, decide, operations, conversation=conversation, kind=kind)


class DryRun:
    """Judge changes as ``propose_each`` would, batch after batch, and store nothing."""

    _OUTCOMES: Mapping[str, str] = {
        "allow": "committed",
        "quarantine": "quarantined",
        "same": "duplicate",
        "refuse": "refused",
    }

    def __init__(self, session: RequestContext, reason: str) -> None:
        self._session, self._reason = session, reason
        self._draft = EvaluatedProposal(
            atomic=False, heard=lowest_trust_read(session), blind=not session.actor.may_decide
        )

    def evaluate(self, changes: Sequence[Change]) -> list[tuple[str, tuple[Reason, ...]]]:
        """Return the outcome that each change would have, with its reasons."""
        first = len(self._draft.items)
        judged = _evaluate_each(self._session, changes, self._reason, self._draft).items[first:]
        return [(self._OUTCOMES[item.decision], item.reasons) for item in judged]


def store_proposal(
    session: RequestContext,
    decide: Callable[[RequestContext], EvaluatedProposal],
    operations: Sequence[str],
    *,
    conversation: str | None = None,
    kind: str = "write",
) -> list[Outcome]:
    """Decide about a proposal and store what comes of it; return its outcome, or one for each change."""

    def carry_out(transaction: Transaction, draft: EvaluatedProposal) -> list[Outcome]:
        stored: CommitResult | None = None

        def commit(items: Sequence[Evaluation], reasons: tuple[Reason, ...]) -> CommitResult:
            return transaction.commit(
                draft, reason=_reason_of(items), conversation=conversation, kind=kind, reasons=reasons
            )

        def conclude(items: Sequence[Evaluation], operations: Sequence[str]) -> Outcome:
            reasons = (*draft.held, *(each for item in items for each in item.reasons))
            steps = [step for item in items for step in item.steps]
            decision = draft.decision(items)
            if decision == "refuse":
                return _refuse(transaction, reasons, operations)
            if decision == "same":
                return _duplicate(transaction, items[-1], reasons, confirm=draft.atomic)
            draft.prepare(transaction)
            if decision == "quarantine":
                base = {step.after.id: draft.base[step.after.id] for step in steps}
                return _quarantine(transaction, steps, base, items[-1].reason, reasons)
            done = stored or commit(items, reasons)
            records = tuple(session.reader.own_step(step).after for step in steps)
            return Committed(records=records, commit=done.commit, receipt=done.receipt, reasons=reasons)

        if draft.atomic:
            return [conclude(draft.items, operations)]
        allowed = [item for item in draft.items if item.decision == "allow"]
        if allowed:
            stored = commit(allowed, tuple(dict.fromkeys(each for item in allowed for each in item.reasons)))
        return [conclude([item], [name]) for item, name in zip(draft.items, operations, strict=True)]

    if not session.policy.enabled:
        # Everything is refused, without the store.
        return carry_out(Transaction(session, _NO_WRITER), decide(session))
    many = session.asks_models or len(operations) > EVALUATE_FIRST_FROM
    outcomes = transact(session, decide, carry_out, decide_first=many, on_snapshot=True)
    if any(reason.gate == "erased" for each in outcomes for reason in each.reasons):
        guesses.add_guesses(len(operations))
    return outcomes


def repeated_outcome(session: RequestContext, key: IdempotencyKey) -> Outcome | None:
    """Return once more what became of the write that a call committed; None where it committed nothing.

    Raises:
        IdempotencyReused: the commit under this key was made by another call.
    """
    found = session.store.commit_of_request(session.tenant, key)
    if found is None:
        return None
    commit_id, same = found
    if not same:
        raise IdempotencyReused
    own = session.reader.own_commit(commit_id)
    if own is None:
        return None
    view, receipt = own[0], receipt_from(own[1])
    records = tuple(step.after for step in view.steps)
    if receipt.kind == "duplicate":
        existing = session.reader.existing(records[0])
        return Duplicate(record=existing, receipt=receipt, reasons=receipt.reasons, commit=view.commit)
    return Committed(records=records, commit=view.commit, receipt=receipt, reasons=receipt.reasons)


def _reason_of(items: Sequence[Evaluation]) -> str:
    """Return the reason of a commit; where only some changes have consent, the one without personal identifiers."""
    given = dict.fromkeys(item.reason for item in items)
    return next((each for each in given if len(given) == 1 or redact_personal_data(each) == each), items[-1].reason)


def _evaluate_each(
    session: RequestContext, changes: Sequence[Change], reason: str, draft: EvaluatedProposal
) -> EvaluatedProposal:
    """Judge changes one by one, each on what those before it would store.

    Those that build on nothing are folded first, and the store is asked about all of them at once.
    """
    alone = [isinstance(change, Insert) and change.key is None and not change.derived_from for change in changes]
    folded: list[_AppliedChange | Evaluation | None] = [None] * len(changes)
    if sum(alone) > 1:
        folded = [
            _apply_change(session, change, reason, draft) if apart else None
            for change, apart in zip(changes, alone, strict=True)
        ]
        cases = [each[0] for each in folded if isinstance(each, tuple)]
        prefetch(session, [case.after for case in cases], draft.overlay)
    for change, known in zip(changes, folded, strict=True):
        try:
            judged = _evaluate_change(session, change, reason, draft, known)
        except (NotFound, Unauthorised) as fault:
            # What builds on a memory that is not there is refused by itself and spoils no other.
            detail = "it builds on a memory that is not there" if isinstance(fault, NotFound) else str(fault)
            judged = _refused(Reason(gate="shape", code="unknown_memory", detail=detail))
        draft.items.append(judged)
    return draft


def _refused(*reasons: Reason) -> Evaluation:
    return Evaluation(decision="refuse", reasons=reasons)


#: One change with what it would make of a memory, before anybody has judged it, and what it was folded in.
_AppliedChange = tuple[GateInput, ChangeContext]


def _apply_change(
    session: RequestContext, change: Change, reason: str, draft: EvaluatedProposal
) -> _AppliedChange | Evaluation:
    broken = validation_error(change, reason, session.policy)
    if broken:
        return _refused(*broken)
    if session.consent and isinstance(change, TEXT_CHANGES):
        change = replace(change, consent=True)
    if isinstance(change, Insert | Replace):
        change = with_plain_names(change)
    if isinstance(change, Insert | Move) and type(change.key) is str:
        change = replace(change, key=plain_key(change.key))
    if isinstance(change, Supersede):
        # What was to replace it may turn out to be remembered already.
        change = replace(change, by=draft.overlay.renamed.get(change.by, change.by))
    before = record_before(session, change, draft.overlay)
    if isinstance(change, Supersede):
        change = replace(change, by=newest_record(session, change.by, draft.overlay).id)
    frame = session.frame(parents=parents_of(session, change, draft.overlay), heard=draft.heard)
    try:
        after = apply(change, before, frame)
    except InvalidInput as fault:
        return _refused(Reason(gate="shape", code="unknown_name", detail=str(fault)))
    broken = oversized(after, session.policy)
    if broken:
        return _refused(*broken)
    objection = None if after.blob is None else blobs.refusal_reason(session, before, after)
    if objection is not None:
        return _refused(objection)
    case = case_of(session, change, before, after, reason=reason)
    return case, frame


def _evaluate_change(
    session: RequestContext,
    change: Change,
    reason: str,
    draft: EvaluatedProposal,
    folded: _AppliedChange | Evaluation | None = None,
) -> Evaluation:
    folded = folded or _apply_change(session, change, reason, draft)
    if isinstance(folded, Evaluation):
        return folded
    case, frame = folded
    change, before, asked = case.change, case.before, case.after
    judged = evaluate_case(session, case, draft.overlay, draft.personal)
    after, decision, existing = judged.case.after, judged.decision, judged.existing
    result = Evaluation(decision=decision, reasons=tuple(judged.reasons), reason=judged.case.reason, existing=existing)
    if asked.heard is not None and isinstance(change, TEXT_CHANGES):
        detail = f"its writer was handed something of lower trust: written after reading {asked.heard.label}"
        result.reasons = (*result.reasons, Reason(gate="authority", code="after_reading", detail=detail))
    if not session.reader.can_see(asked.scope):
        # A place that it writes to and does not see: what is there is not told.
        untold = "something like it is known in that scope, which this handle does not see"
        result.reasons = tuple(
            replace(each, detail=untold) if each.gate == "duplicate" else each for each in result.reasons
        )
        if decision == "same":
            return _refused(*result.reasons)
    if decision in {"refuse", "same"}:
        if isinstance(change, Insert) and existing is not None:
            draft.overlay.renamed[change.id] = existing.id
        if decision == "same" and existing is not None:
            _confirm_existing(session, judged, existing, draft, result)
        return result
    unburied = draft.overlay.unburied.get(asked.id) is after
    stone = None if unburied or draft.blind else blocked_by_erasure(session, asked, after)
    if stone is not None:
        return _refused(stone)
    if isinstance(change, Replace | Move) and before is not None and _is_unchanged(before, after):
        result.decision, result.existing, result.confirms = "same", before, False
        result.reasons = (Reason(gate="shape", code="unchanged", detail=_UNCHANGED_DETAIL),)
        return result
    if decision == "quarantine":
        after = _when_approved(judged.case, before)
    view = judged.view
    if view is not None and view.spare is not None and makes_room(judged.case, view, session.policy):
        draft.add(result, Archive(id=view.spare.id), view.spare, apply(Archive(id=view.spare.id), view.spare, frame))
    if isinstance(change, Insert) and change.vector is not None and session.embedder is not None:
        # Of a text that a gate has rewritten it would still tell what was taken out: see ``Overlay.features``.
        draft.overlay.vectors[after.id] = (change.text, session.embedder.id, pack_vector(change.vector))
    draft.add(result, change, before, after)
    return result


def _when_approved(case: GateInput, before: Record | None) -> Record:
    """Return what an approval would store: a person vouches for a new text, or for the fields alone."""
    after = case.after
    if approver_certifies_text(case):
        return replace(after, trust=max(after.trust, Trust.USER), heard=None)
    if before is not None and after.trust < before.trust:
        # The text is nobody's but whose it was.
        return replace(after, trust=min(before.trust, max(after.trust, Trust.USER)))
    return after


def _is_unchanged(before: Record, after: Record) -> bool:
    """Whether a change leaves a memory as it is, but for the times of its last version and confirmation."""
    same = {name: getattr(before, name) for name in ("version", "updated_at", "reinforced_at")}
    return replace(after, **same) == before


def _confirm_existing(
    session: RequestContext, judged: pipeline.GateResult, existing: Record, draft: EvaluatedProposal, result: Evaluation
) -> None:
    """Let a restatement confirm a memory where it is trusted as much, and add what it brings."""
    case, after = judged.case, judged.case.after
    if after.trust < existing.trust:
        result.confirms = False
        detail = (
            f"said again by the {after.trust.label}, which is trusted less than the {existing.trust.label}: "
            "not confirmed"
        )
        result.reasons = (*result.reasons, Reason(gate="authority", code="not_confirmed", detail=detail))
    change = case.change
    if not isinstance(change, Insert) or session.actor.kind is ActorKind.IMPORTER:
        return
    stronger = reinforced_by(existing, after, change, session.frame())
    if stronger is None:
        return
    added = Replace(
        id=existing.id,
        source=stronger.source,
        evidence=stronger.evidence,
        confidence=stronger.confidence,
        consent=change.consent,
    )
    again = evaluate_case(
        session, dataclasses.replace(case, change=added, before=existing, after=stronger), draft.overlay
    )
    if again.decision not in {"allow", "quarantine"}:
        return
    result.decision = again.decision
    more = len(stronger.evidence) - len(existing.evidence)
    told = [
        f"trust {existing.trust.label} -> {stronger.trust.label}" if stronger.trust > existing.trust else "",
        f"confidence {existing.confidence:g} -> {stronger.confidence:g}"
        if stronger.confidence > existing.confidence
        else "",
        f"{more} more {'reference' if more == 1 else 'references'} as evidence" if more else "",
        f"{existing.kind.value} -> rule" if stronger.kind is not existing.kind else "",
    ]
    detail = f"what {existing.id} rests on is strengthened: {', '.join(filter(None, told))}"
    result.reasons = (*result.reasons, Reason(gate="duplicate", code="strengthened", detail=detail), *again.reasons)
    draft.add(result, added, existing, again.case.after)


def _refuse(transaction: Transaction, reasons: tuple[Reason, ...], operations: Sequence[str]) -> Refused:
    on = transaction.session.policy.enabled
    receipt = transaction.receipt("refusal", {"operations": list(operations)}, reasons) if on else None
    return Refused(receipt=receipt, reasons=reasons)


def _duplicate(transaction: Transaction, item: Evaluation, reasons: tuple[Reason, ...], *, confirm: bool) -> Duplicate:
    session, record, commit = transaction.session, item.existing, None
    assert record is not None
    lasting = record.kind is not Kind.EVENT and record.tier is not Tier.CORE
    if confirm and item.confirms and lasting and session.actor.kind is not ActorKind.IMPORTER:
        change = Reinforce(id=record.id)
        after = apply(change, record, session.frame())
        stored = transaction.commit(
            StepList([Step(op=operation(change), before=record, after=after)]),
            reason="said again",
            kind="write",
            reasons=reasons,
            receipt_kind="duplicate",
        )
        record, commit, receipt = after, stored.commit, stored.receipt
    else:
        receipt = transaction.receipt("duplicate", {"existing": record.id}, reasons)
    return Duplicate(record=session.reader.existing(record), receipt=receipt, reasons=reasons, commit=commit)


def _queue_is_full(session: RequestContext) -> bool:
    """Whether so many proposals of an agent or user wait that another would only bury them."""
    if session.actor.may_decide or session.actor.kind not in {ActorKind.AGENT, ActorKind.USER}:
        return False
    now, limit = session.clock.now(), session.policy.pending_limit
    own = session.store.documents(Proposal, session.tenant)
    return own.count(state="pending", actor=session.actor, live_at=to_micros(now), most=limit) >= limit


def _quarantine(
    transaction: Transaction, steps: Sequence[Step], base: dict[str, int], reason: str, reasons: tuple[Reason, ...]
) -> Quarantined | Refused:
    session = transaction.session
    if _queue_is_full(session):
        detail = f"{session.policy.pending_limit} proposals of yours wait already: have some of them decided first"
        full = Reason(gate="review", code="too_many_pending", detail=detail)
        return _refuse(transaction, (full, *reasons), [step.op for step in steps])
    now = session.clock.now()
    item = Proposal(
        id=session.ids.new_id(now),
        tenant=session.tenant,
        state="pending",
        proposer=session.actor,
        reason=redact_personal_data(redact_secrets(reason)),
        reasons=reasons,
        steps=tuple(steps),
        base=base,
        digest=digest_of(tuple(steps), base),
        created_at=now,
        expires_at=now + session.policy.review_ttl,
    )
    transaction.writer.put(item)
    receipt = transaction.receipt("quarantine", {"proposal": item.id, "digest": item.digest}, reasons)
    told = replace(item, steps=tuple(session.reader.own_step(step) for step in item.steps))
    return Quarantined(item=told, receipt=receipt, reasons=reasons)
