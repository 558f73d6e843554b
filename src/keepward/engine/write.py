"""The write path: judge what is proposed, and commit it, hold it for a person, or refuse it.

Invariants
(1) Every proposal ends in exactly one outcome, and every outcome has a receipt in the same transaction.
(2) A proposal is all or nothing; a batch of independent items is judged item by item.
(3) What was judged is what is stored, on the state on which it was judged; see ``commit``.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

from msgspec.structs import replace

from keepward import guesses
from keepward.engine import blobs
from keepward.engine.commit import Steps, Stored, Transaction, transact
from keepward.engine.features import packed
from keepward.engine.look import Overlay, before_of, case_of, look, look_ahead, newest, parents_of, personal
from keepward.engine.session import Engine, Session, least_handed
from keepward.engine.traces import revived
from keepward.engine.view import reaches, veiled, withholds
from keepward.errors import Conflict, InvalidInput, NotFound, Unauthorised
from keepward.gates import pipeline
from keepward.gates.authority import vouches
from keepward.gates.content import glance, scrub_private, scrub_secret
from keepward.gates.detect.engine import Finding
from keepward.gates.shape import ill_formed, oversized
from keepward.gates.state import makes_room
from keepward.gates.verdict import Case, View
from keepward.model.change import (
    SAYING,
    Archive,
    Change,
    Insert,
    Move,
    Reinforce,
    Replace,
    Supersede,
    operation,
    with_plain_names,
)
from keepward.model.commit import Reason, Step
from keepward.model.fold import Frame, apply, strengthened
from keepward.model.memory import Kind, Record, Tier
from keepward.model.proposal import Committed, Duplicate, Outcome, Quarantined, Refused, Waiting, digest_of
from keepward.model.trust import ActorKind, Trust
from keepward.model.value import plain_key
from keepward.ports.store import Features

#: From so many changes on they are judged before the transaction, which nobody else is to wait for.
MANY = 20
#: Why a change makes no version.
_UNCHANGED = "nothing was changed: the memory already says and holds all of this"
#: Where memory is switched off nothing is written.
_NOWHERE: Any = None
_Result = TypeVar("_Result")


@dataclass(slots=True, kw_only=True)
class Judgement:
    """One change, judged: what would be stored, and why or why not."""

    decision: pipeline.Decision
    reasons: tuple[Reason, ...]
    reason: str = ""
    steps: list[Step] = field(default_factory=list)
    existing: Record | None = None
    #: Whether saying the same again confirms what is there: it takes no less trust than that has.
    confirms: bool = True


@dataclass(kw_only=True)
class Draft:
    """A whole proposal, judged on one state of the store; what comes of it is asked once all of it is judged."""

    items: list[Judgement] = field(default_factory=list)
    overlay: Overlay = field(default_factory=Overlay)
    #: All or nothing: what would be held counts as stored for the changes behind it.
    atomic: bool = True
    #: Why a person is to decide even where every gate would let it through.
    held: tuple[Reason, ...] = ()
    #: Whether nothing is compared with what was erased: in a dry run of who may not decide, each text would be a guess.
    blind: bool = False
    #: The least trust of what the proposer was handed lately, where that is below its own.
    heard: Trust | None = None
    #: What a redactor found, by text; kept where a proposal is judged once more.
    personal: dict[str, tuple[Finding, ...]] = field(default_factory=dict)
    #: Newest versions the steps build on, by memory id; 0 for a new memory.
    base: dict[str, int] = field(default_factory=dict)

    @cached_property
    def decision(self) -> pipeline.Decision:
        """The strictest decision of all items, with what holds the whole."""
        decisions = {item.decision for item in self.items}
        if "refuse" in decisions:
            return "refuse"
        if not any(item.steps for item in self.items):
            return "same"
        return "quarantine" if self.held or "quarantine" in decisions else "allow"

    @cached_property
    def steps(self) -> list[Step]:
        if self.atomic and self.decision != "allow":
            return []
        return [step for item in self.items if item.decision == "allow" for step in item.steps]

    def features(self, record: Record) -> Features:
        """Return what recall needs of a record; see ``Overlay.features``."""
        return self.overlay.features(record)


_Draft = TypeVar("_Draft", bound=Draft)


class _Meter:
    """Seconds of processor time, asked of the system only where so much time went by that it matters."""

    def __init__(self) -> None:
        self._processor, self._wall, self._spent = time.thread_time(), time.perf_counter(), 0.0

    def __call__(self) -> float:
        wall = time.perf_counter()
        elapsed, self._wall = wall - self._wall, wall
        if elapsed > pipeline.BUDGET:
            # A thread that waited for its turn has used less: no more than since the first gate.
            elapsed = min(elapsed, time.thread_time() - self._processor)
        self._spent += elapsed
        return self._spent


def propose(
    session: Session,
    changes: Sequence[Change],
    *,
    reason: str,
    conversation: str | None = None,
    kind: str = "write",
    held: tuple[Reason, ...] = (),
) -> Outcome:
    """Judge changes as one and carry them out, hold them, or refuse them together.

    ``held`` says why a person is to decide even where every gate would let them through.

    Raises:
        InvalidInput: there is no change at all.
        NotFound, Conflict, StaleVersion: a change names a memory that is not there or has moved on.
    """
    if not changes:
        raise InvalidInput("there is nothing to do: give at least one change")
    found: dict[str, tuple[Finding, ...]] = {}

    def decide(session: Session) -> Draft:
        draft = Draft(held=held, personal=found, heard=least_handed(session))
        for change in changes:
            try:
                draft.items.append(_judge(session, change, reason, draft))
            except (NotFound, Conflict):
                # It may build on what was refused before it; then that refusal is the answer.
                if all(item.decision != "refuse" for item in draft.items):
                    raise
        return draft

    operations = [operation(change) for change in changes]
    return outcome_of(session, decide, operations, conversation=conversation, kind=kind, size=len(changes))


def outcome_of(
    session: Session,
    decide: Callable[[Session], _Draft],
    operations: list[str],
    *,
    conversation: str | None = None,
    kind: str = "write",
    size: int = 1,
    before: Callable[[Transaction, _Draft], None] = lambda *_: None,
) -> Outcome:
    """Decide about one proposal as a whole, and carry that out; ``before`` is called where any of it is to be kept."""

    def carry_out(transaction: Transaction, draft: _Draft) -> Outcome:
        last = draft.items[-1]
        reasons = (*draft.held, *(each for item in draft.items for each in item.reasons))
        if draft.decision == "refuse":
            return _refuse(transaction, reasons, operations)
        if draft.decision == "same":
            return _duplicate(transaction, last, reasons)
        before(transaction, draft)
        if draft.decision == "quarantine":
            steps = [step for item in draft.items for step in item.steps]
            return _hold(transaction, steps, draft.base, last.reason, reasons)
        stored = transaction.commit(draft, reason=last.reason, conversation=conversation, kind=kind, reasons=reasons)
        return _committed(session, draft.steps, stored, reasons)

    return _transact(session, decide, carry_out, size)


def _judge_each(session: Session, changes: Sequence[Change], reason: str, draft: Draft) -> Draft:
    """Judge changes one by one, each on what those before it would store."""
    for change, folded in zip(changes, _fold_ahead(session, changes, reason, draft), strict=True):
        try:
            judged = _judge(session, change, reason, draft, folded)
        except (NotFound, Unauthorised) as fault:
            # What builds on a memory that is not there is refused by itself and spoils no other.
            detail = "it builds on a memory that is not there" if isinstance(fault, NotFound) else str(fault)
            judged = _refused(Reason(gate="shape", code="unknown_memory", detail=detail))
        draft.items.append(judged)
    return draft


class Rehearsal:
    """Judge changes as ``propose_each`` would, batch after batch, and store nothing."""

    _OUTCOMES: Mapping[str, str] = {
        "allow": "committed",
        "quarantine": "quarantined",
        "same": "duplicate",
        "refuse": "refused",
    }

    def __init__(self, session: Session, reason: str) -> None:
        self._session, self._reason = session, reason
        self._draft = Draft(atomic=False, heard=least_handed(session), blind=not session.actor.may_decide)

    def judge(self, changes: Sequence[Change]) -> list[tuple[str, tuple[Reason, ...]]]:
        """Return the outcome that each change would have, with its reasons."""
        first = len(self._draft.items)
        judged = _judge_each(self._session, changes, self._reason, self._draft).items[first:]
        return [(self._OUTCOMES[item.decision], item.reasons) for item in judged]


def propose_each(
    session: Session, changes: Sequence[Change], *, reason: str, conversation: str | None = None, kind: str = "write"
) -> list[Outcome]:
    """Judge changes one by one; commit the good ones together; return outcomes in the order given."""
    found: dict[str, tuple[Finding, ...]] = {}

    def decide(session: Session) -> Draft:
        draft = Draft(atomic=False, personal=found, heard=least_handed(session))
        return _judge_each(session, changes, reason, draft)

    def carry_out(transaction: Transaction, draft: Draft) -> list[Outcome]:
        allowed = [each for item in draft.items if item.decision == "allow" for each in item.reasons]
        reasons = tuple(dict.fromkeys(allowed))
        stored = None
        if draft.steps:
            stored = transaction.commit(draft, reason=reason, conversation=conversation, kind=kind, reasons=reasons)
        judged = zip(changes, draft.items, strict=True)
        return [_ended(transaction, change, item, draft, stored) for change, item in judged]

    return _transact(session, decide, carry_out, len(changes), together=True) if changes else []


def _transact(
    session: Session,
    decide: Callable[[Session], _Draft],
    carry_out: Callable[[Transaction, _Draft], _Result],
    size: int,
    *,
    together: bool = False,
) -> _Result:
    """Decide and carry out; with memory switched off, when everything is refused, without the store."""
    if not session.policy.enabled:
        return carry_out(Transaction(session, _NOWHERE), decide(session))
    slow = session.embedder is not None or session.engine.redactor is not None or size > MANY
    result = transact(session, decide, carry_out, beforehand=slow, together=together)
    outcomes: list[Any] = result if isinstance(result, list) else [result]
    if any(reason.gate == "erased" for each in outcomes for reason in each.reasons):
        guesses.add(size)
    return result


def _ended(transaction: Transaction, change: Change, item: Judgement, draft: Draft, stored: Stored | None) -> Outcome:
    match item.decision:
        case "allow":
            assert stored is not None
            return _committed(transaction.session, item.steps, stored, item.reasons)
        case "quarantine":
            base = {step.after.id: draft.base[step.after.id] for step in item.steps}
            return _hold(transaction, item.steps, base, item.reason, item.reasons)
        case "same":
            return _duplicate(transaction, item, item.reasons, confirm=False)
    return _refuse(transaction, item.reasons, [operation(change)])


def _committed(session: Session, steps: Sequence[Step], stored: Stored, reasons: tuple[Reason, ...]) -> Committed:
    records = tuple(_visible_step(session, step).after for step in steps)
    return Committed(records=records, commit=stored.commit, receipt=stored.receipt, reasons=reasons)


def _refused(*reasons: Reason) -> Judgement:
    return Judgement(decision="refuse", reasons=reasons)


#: One change with what it would make of a memory, before anybody has judged it, and what it was folded in.
_Folded = tuple[Case, Frame]


def _fold(session: Session, change: Change, reason: str, draft: Draft) -> _Folded | Judgement:
    broken = ill_formed(change, reason, session.policy)
    if broken:
        return _refused(*broken)
    if session.consent and isinstance(change, SAYING):
        change = replace(change, consent=True)
    if isinstance(change, Insert | Replace):
        change = with_plain_names(change)
    if isinstance(change, Insert | Move) and type(change.key) is str:
        change = replace(change, key=plain_key(change.key))
    if isinstance(change, Supersede):
        # What was to replace it may turn out to be remembered already.
        change = replace(change, by=draft.overlay.renamed.get(change.by, change.by))
    before = before_of(session, change, draft.overlay)
    if isinstance(change, Supersede):
        change = replace(change, by=newest(session, change.by, draft.overlay).id)
    frame = session.frame(parents=parents_of(session, change, draft.overlay), heard=draft.heard)
    try:
        after = apply(change, before, frame)
    except InvalidInput as fault:
        return _refused(Reason(gate="shape", code="unknown_name", detail=str(fault)))
    broken = oversized(after, session.policy)
    if broken:
        return _refused(*broken)
    objection = blobs.objection(session, before, after)
    if objection is not None:
        return _refused(objection)
    case = case_of(session, change, before, after, reason=reason)
    return case, frame


def _fold_ahead(
    session: Session, changes: Sequence[Change], reason: str, draft: Draft
) -> list[_Folded | Judgement | None]:
    """Fold the changes that build on nothing, and ask the store about all of them at once; None for the others."""
    alone = [isinstance(change, Insert) and change.key is None and not change.derived_from for change in changes]
    if sum(alone) < 2:
        return [None] * len(changes)
    folded = [
        _fold(session, change, reason, draft) if apart else None for change, apart in zip(changes, alone, strict=True)
    ]
    cases = [each[0] for each in folded if isinstance(each, tuple)]
    look_ahead(session, [case.after for case in cases], draft.overlay)
    glance(cases)
    return folded


def _judge(
    session: Session, change: Change, reason: str, draft: Draft, folded: _Folded | Judgement | None = None
) -> Judgement:
    folded = _fold(session, change, reason, draft) if folded is None else folded
    if isinstance(folded, Judgement):
        return folded
    case, frame = folded
    change, before, after = case.change, case.before, case.after
    view = look(session, change, before, after, draft.overlay)
    view = dataclasses.replace(view, personal=personal(session.engine, case, draft.personal))
    judged = pipeline.judge(case, view, session.policy, meter=_Meter())
    if isinstance(change, Insert) and _put_elsewhere(after, judged.case.after):
        # It was compared with what says the same as the text that came and stands where that was to stand.
        view = _looked_again(session, change, before, judged.case.after, draft.overlay, view)
        judged = pipeline.judge(case, view, session.policy, meter=_Meter())
    result = Judgement(
        decision=judged.decision, reasons=tuple(judged.reasons), reason=judged.case.reason, existing=judged.existing
    )
    if after.heard is not None and isinstance(change, SAYING):
        detail = f"its writer was handed something of lower trust: written after reading {after.heard.label}"
        result.reasons = (*result.reasons, Reason(gate="authority", code="after_reading", detail=detail))
    if not reaches(session, after.scope):
        # A place that it writes to and does not see: what is there is not told.
        untold = "something like it is known in that scope, which this handle does not see"
        result.reasons = tuple(
            replace(each, detail=untold) if each.gate == "duplicate" else each for each in result.reasons
        )
        if judged.decision == "same":
            return _refused(*result.reasons)
    if judged.decision == "same" and judged.existing is not None:
        _weigh(result, judged.case.after, judged.existing)
    if judged.decision in {"refuse", "same"}:
        if isinstance(change, Insert) and judged.existing is not None:
            draft.overlay.renamed[change.id] = judged.existing.id
            if judged.decision == "same":
                _strengthen(session, change, judged.case, judged.existing, draft, result)
        return result
    unburied = draft.overlay.unburied.get(after.id) is judged.case.after
    stone = None if unburied or draft.blind else revived(session, after, judged.case.after)
    if stone is not None:
        return _refused(stone)
    after = judged.case.after
    if isinstance(change, Replace | Move) and before is not None and _is_unchanged(before, after):
        result.decision, result.existing, result.confirms = "same", before, False
        result.reasons = (Reason(gate="shape", code="unchanged", detail=_UNCHANGED),)
        return result
    if judged.decision == "quarantine":
        after = _when_approved(judged.case, before)
    if view.spare is not None and makes_room(judged.case, view, session.policy):
        _add(draft, result, Archive(id=view.spare.id), view.spare, apply(Archive(id=view.spare.id), view.spare, frame))
    _take_vector(session.engine, change, after, draft.overlay)
    _add(draft, result, change, before, after)
    return result


def _when_approved(case: Case, before: Record | None) -> Record:
    """Return what an approval would store: a person vouches for a new text, or for the fields alone."""
    after = case.after
    if vouches(case):
        return replace(after, trust=max(after.trust, Trust.USER), heard=None)
    if before is not None and after.trust < before.trust:
        # The text is nobody's but whose it was.
        return replace(after, trust=min(before.trust, max(after.trust, Trust.USER)))
    return after


def _is_unchanged(before: Record, after: Record) -> bool:
    """Whether a change leaves a memory as it is, but for the times of its last version and confirmation."""
    same = {name: getattr(before, name) for name in ("version", "updated_at", "reinforced_at")}
    return replace(after, **same) == before


def _visible_step(session: Session, step: Step) -> Step:
    """Return what is told of a step: not what a memory said that its writer may not read."""
    if step.before is None or not withholds(session, step.before):
        return step
    return replace(step, before=veiled(step.before), after=veiled(step.after))


def _weigh(result: Judgement, after: Record, existing: Record) -> None:
    """Note where the same was said by somebody who is trusted less: that confirms nothing."""
    if after.trust >= existing.trust:
        return
    result.confirms = False
    detail = (
        f"said again by the {after.trust.label}, which is trusted less than the {existing.trust.label}: not confirmed"
    )
    result.reasons = (*result.reasons, Reason(gate="authority", code="not_confirmed", detail=detail))


def _strengthen(
    session: Session, change: Insert, case: Case, existing: Record, draft: Draft, result: Judgement
) -> None:
    """Give a memory what its restatement adds, where the gates let that through or let a person decide."""
    stronger = None
    if session.actor.kind is not ActorKind.IMPORTER:
        stronger = strengthened(existing, case.after, change, session.frame())
    if stronger is None:
        return
    added = Replace(
        id=existing.id,
        source=stronger.source,
        evidence=stronger.evidence,
        confidence=stronger.confidence,
        consent=change.consent,
    )
    view = look(session, added, existing, stronger, draft.overlay)
    asked = dataclasses.replace(case, change=added, before=existing, after=stronger)
    judged = pipeline.judge(asked, view, session.policy, meter=_Meter())
    if judged.decision not in {"allow", "quarantine"}:
        return
    result.decision = judged.decision
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
    result.reasons = (*result.reasons, Reason(gate="duplicate", code="strengthened", detail=detail), *judged.reasons)
    _add(draft, result, added, existing, judged.case.after)


def _take_vector(engine: Engine, change: Change, after: Record, overlay: Overlay) -> None:
    if isinstance(change, Insert) and change.vector is not None and engine.embedder is not None:
        # Of a text that a gate has rewritten it would still tell what was taken out: see ``Overlay.features``.
        overlay.vectors[after.id] = (change.text, engine.embedder.id, packed(change.vector))


def _put_elsewhere(asked: Record, judged: Record) -> bool:
    """Whether the gates put another text than was asked for, or put it in another place."""
    return any(getattr(asked, name) != getattr(judged, name) for name in ("text", "tier", "scope", "sensitivity"))


def _looked_again(
    session: Session, change: Insert, before: Record | None, after: Record, overlay: Overlay, view: View
) -> View:
    """Return what the gates may see, with what lies near what they themselves put in place."""
    overlay.ahead.pop(after.id, None)
    again = look(session, change, before, after, overlay)
    return dataclasses.replace(
        view,
        neighbours=again.neighbours,
        echoes=again.echoes,
        counts={**view.counts, **again.counts},
        spare=again.spare if after.tier in again.counts else view.spare,
    )


def _add(draft: Draft, result: Judgement, change: Change, before: Record | None, after: Record) -> None:
    op = "replace" if isinstance(change, Insert) and before is not None else operation(change)
    result.steps.append(Step(op=op, before=before, after=after))
    draft.base.setdefault(after.id, before.version if before else 0)
    if draft.atomic or result.decision == "allow":
        draft.overlay.take(before, after)


def _refuse(transaction: Transaction, reasons: tuple[Reason, ...], operations: list[str]) -> Refused:
    on = transaction.session.policy.enabled
    receipt = transaction.receipt("refusal", {"operations": operations}, reasons) if on else None
    return Refused(receipt=receipt, reasons=reasons)


def _duplicate(
    transaction: Transaction, item: Judgement, reasons: tuple[Reason, ...], *, confirm: bool = True
) -> Duplicate:
    session, record, commit = transaction.session, item.existing, None
    assert record is not None
    lasting = record.kind is not Kind.EVENT and record.tier is not Tier.CORE
    if confirm and item.confirms and lasting and session.actor.kind is not ActorKind.IMPORTER:
        change = Reinforce(id=record.id)
        after = apply(change, record, session.frame())
        stored = transaction.commit(
            Steps([Step(op=operation(change), before=record, after=after)]),
            reason="said again",
            kind="write",
            reasons=reasons,
            receipt_kind="duplicate",
        )
        record, commit, receipt = after, stored.commit, stored.receipt
    else:
        receipt = transaction.receipt("duplicate", {"existing": record.id}, reasons)
    record = veiled(record) if withholds(session, record) else record
    return Duplicate(record=record, receipt=receipt, reasons=reasons, commit=commit)


def _waiting_enough(session: Session) -> bool:
    """Whether so many proposals of an agent or user wait that another would only bury them."""
    if session.actor.may_decide or session.actor.kind not in {ActorKind.AGENT, ActorKind.USER}:
        return False
    now, limit = session.clock.now(), session.policy.pending_limit
    return session.store.proposed(session.tenant, session.actor, now, most=limit) >= limit


def _hold(
    transaction: Transaction, steps: Sequence[Step], base: dict[str, int], reason: str, reasons: tuple[Reason, ...]
) -> Quarantined | Refused:
    session = transaction.session
    if _waiting_enough(session):
        detail = f"{session.policy.pending_limit} proposals of yours wait already: have some of them decided first"
        full = Reason(gate="review", code="too_many_pending", detail=detail)
        return _refuse(transaction, (full, *reasons), [step.op for step in steps])
    now = session.clock.now()
    item = Waiting(
        id=session.ids.new_id(now),
        tenant=session.tenant,
        state="pending",
        proposer=session.actor,
        reason=scrub_private(scrub_secret(reason)),
        reasons=reasons,
        steps=tuple(steps),
        base=base,
        digest=digest_of(tuple(steps), base),
        created_at=now,
        expires_at=now + session.policy.review_ttl,
    )
    transaction.writer.put_waiting(item)
    receipt = transaction.receipt("quarantine", {"proposal": item.id, "digest": item.digest}, reasons)
    visible = replace(item, steps=tuple(_visible_step(session, step) for step in item.steps))
    return Quarantined(item=visible, receipt=receipt, reasons=reasons)
