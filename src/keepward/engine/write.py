"""The one write path: judge, fold, embed, and store in one transaction with a receipt.

Invariants
(1) Every proposal ends in exactly one outcome, and every outcome has a receipt in the same transaction.
(2) A proposal is all or nothing; a batch of independent items is judged item by item.
(3) What was judged is what is stored: when another commit came in between, everything is judged anew.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from keepward.engine import blobs
from keepward.engine.commit import settled, store_steps
from keepward.engine.features import packed
from keepward.engine.kit import Kit, Who
from keepward.engine.look import Overlay, before_of, look, look_ahead, newest, parents_of, personal
from keepward.engine.traces import revived
from keepward.engine.use import least_handed
from keepward.engine.view import reaches, veiled, withholds
from keepward.errors import Conflict, InvalidInput, NotFound, Unauthorised
from keepward.gates import pipeline
from keepward.gates.authority import vouches
from keepward.gates.content import scrub_private, scrub_secret
from keepward.gates.shape import ill_formed, oversized
from keepward.gates.state import makes_room
from keepward.gates.verdict import Case, View
from keepward.model.change import Append, Archive, Change, Insert, Move, Reinforce, Replace, Supersede, operation
from keepward.model.commit import Reason, Receipt, ReceiptKind, Step
from keepward.model.fold import Frame, apply, strengthened
from keepward.model.memory import Kind, Record, Tier
from keepward.model.proposal import Committed, Duplicate, Outcome, Quarantined, Refused, Waiting, digest_of
from keepward.model.trust import ActorKind, Trust
from keepward.model.value import plain_key


@dataclass(slots=True, kw_only=True)
class Judgement:
    """One change, judged: what would be stored, and why or why not."""

    decision: pipeline.Decision
    reasons: tuple[Reason, ...]
    reason: str
    steps: list[Step] = field(default_factory=list)
    existing: Record | None = None
    #: Whether saying the same again confirms what is there: it takes no less trust than that has.
    confirms: bool = True


@dataclass(slots=True, kw_only=True)
class Draft:
    """A whole proposal, judged on one state of the store."""

    items: list[Judgement] = field(default_factory=list)
    overlay: Overlay = field(default_factory=Overlay)
    #: All or nothing: what would be held counts as stored for the changes behind it.
    atomic: bool = True
    #: Newest versions the steps build on, by memory id; 0 for a new memory.
    base: dict[str, int] = field(default_factory=dict)


def propose(
    kit: Kit,
    who: Who,
    changes: Sequence[Change],
    *,
    reason: str,
    session: str | None = None,
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
    return settled(lambda: _propose_once(kit, who, changes, reason=reason, session=session, kind=kind, held=held))


def propose_each(
    kit: Kit, who: Who, changes: Sequence[Change], *, reason: str, session: str | None = None, kind: str = "write"
) -> list[Outcome]:
    """Judge changes one by one; commit the good ones together; return outcomes in the order given."""
    return settled(lambda: _propose_each_once(kit, who, changes, reason=reason, session=session, kind=kind))


def _propose_once(
    kit: Kit,
    who: Who,
    changes: Sequence[Change],
    *,
    reason: str,
    session: str | None,
    kind: str,
    held: tuple[Reason, ...],
) -> Outcome:
    draft = Draft()
    for change in changes:
        try:
            # One change at a time: a proposal may be long, and erasing waits for whoever reads.
            with kit.store.together(who.tenant):
                draft.items.append(_judge(kit, who, change, reason, draft))
        except (NotFound, Conflict):
            # It may build on what was refused before it; then that refusal is the answer.
            if all(item.decision != "refuse" for item in draft.items):
                raise
    reasons = (*held, *(each for item in draft.items for each in item.reasons))
    decisions = {item.decision for item in draft.items}
    steps = [step for item in draft.items for step in item.steps]
    reason = draft.items[-1].reason
    if "refuse" in decisions:
        return _refuse(kit, who, reasons, [operation(change) for change in changes])
    if not steps:
        return _duplicate(kit, who, draft.items[-1], reasons)
    if held or "quarantine" in decisions:
        return _hold(kit, who, steps, draft.base, reason, reasons)
    commit = store_steps(
        kit,
        who,
        steps,
        base=draft.base,
        reason=reason,
        session=session,
        kind=kind,
        reasons=reasons,
        spoken=draft.overlay.features,
    )
    return Committed(
        records=tuple(_visible_step(who, step).after for step in steps),
        commit=commit.commit,
        receipt=commit.receipt,
        reasons=reasons,
    )


def _propose_each_once(
    kit: Kit, who: Who, changes: Sequence[Change], *, reason: str, session: str | None, kind: str
) -> list[Outcome]:
    draft = Draft(atomic=False)
    with kit.store.together(who.tenant):
        for change, folded in zip(changes, _fold_ahead(kit, who, changes, reason, draft), strict=True):
            try:
                judged = _judge(kit, who, change, reason, draft, folded)
            except (NotFound, Unauthorised) as fault:
                # What builds on a memory that is not there is refused by itself and spoils no other.
                detail = "it builds on a memory that is not there" if isinstance(fault, NotFound) else str(fault)
                refusal = Reason(gate="shape", code="unknown_memory", detail=detail)
                judged = Judgement(decision="refuse", reasons=(refusal,), reason="")
            draft.items.append(judged)
    allowed = [item for item in draft.items if item.decision == "allow"]
    steps = [step for item in allowed for step in item.steps]
    stored = None
    if steps:
        base = {step.after.id: draft.base[step.after.id] for step in steps}
        reasons = tuple(dict.fromkeys(each for item in allowed for each in item.reasons))
        stored = store_steps(
            kit,
            who,
            steps,
            base=base,
            reason=reason,
            session=session,
            kind=kind,
            reasons=reasons,
            spoken=draft.overlay.features,
        )
    outcomes: list[Outcome] = []
    for change, item in zip(changes, draft.items, strict=True):
        match item.decision:
            case "allow":
                assert stored is not None
                outcomes.append(
                    Committed(
                        records=tuple(_visible_step(who, step).after for step in item.steps),
                        commit=stored.commit,
                        receipt=stored.receipt,
                        reasons=item.reasons,
                    )
                )
            case "quarantine":
                base = {step.after.id: draft.base[step.after.id] for step in item.steps}
                outcomes.append(_hold(kit, who, item.steps, base, item.reason, item.reasons))
            case "same":
                outcomes.append(_duplicate(kit, who, item, item.reasons, confirm=False))
            case "refuse":
                outcomes.append(_refuse(kit, who, item.reasons, [operation(change)]))
    return outcomes


@dataclass(frozen=True, slots=True, kw_only=True)
class _Folded:
    """One change with what it would make of a memory, before anybody has judged it."""

    change: Change
    before: Record | None
    after: Record
    frame: Frame


def _fold(kit: Kit, who: Who, change: Change, reason: str, draft: Draft) -> _Folded | Judgement:
    broken = ill_formed(change, reason, kit.policy)
    if broken:
        return Judgement(decision="refuse", reasons=broken, reason="")
    if isinstance(change, Insert | Move) and type(change.key) is str:
        change = replace(change, key=plain_key(change.key))
    if isinstance(change, Supersede):
        # What was to replace it may turn out to be remembered already.
        change = replace(change, by=draft.overlay.renamed.get(change.by, change.by))
    before = before_of(kit, who, change, draft.overlay)
    if isinstance(change, Supersede):
        change = replace(change, by=newest(kit, who, change.by, draft.overlay).id)
    frame = Frame(
        now=kit.clock.now(),
        actor=who.actor,
        policy=kit.policy,
        parents=parents_of(kit, who, change, draft.overlay),
        heard=least_handed(kit, who),
    )
    try:
        after = apply(change, before, frame)
    except InvalidInput as fault:
        refusal = Reason(gate="shape", code="unknown_name", detail=str(fault))
        return Judgement(decision="refuse", reasons=(refusal,), reason="")
    broken = oversized(after)
    if broken:
        return Judgement(decision="refuse", reasons=broken, reason="")
    objection = blobs.objection(kit, who, before, after)
    if objection is not None:
        return Judgement(decision="refuse", reasons=(objection,), reason="")
    return _Folded(change=change, before=before, after=after, frame=frame)


def _fold_ahead(
    kit: Kit, who: Who, changes: Sequence[Change], reason: str, draft: Draft
) -> list[_Folded | Judgement | None]:
    """Fold the changes that build on nothing, and ask the store about all of them at once; None for the others."""
    alone = [isinstance(change, Insert) and change.key is None and not change.derived_from for change in changes]
    if sum(alone) < 2:
        return [None] * len(changes)
    folded = [
        _fold(kit, who, change, reason, draft) if apart else None for change, apart in zip(changes, alone, strict=True)
    ]
    look_ahead(kit, who, [each.after for each in folded if isinstance(each, _Folded)], draft.overlay)
    return folded


def _judge(
    kit: Kit, who: Who, change: Change, reason: str, draft: Draft, folded: _Folded | Judgement | None = None
) -> Judgement:
    folded = _fold(kit, who, change, reason, draft) if folded is None else folded
    if isinstance(folded, Judgement):
        return folded
    change, before, after, frame = folded.change, folded.before, folded.after, folded.frame
    case = Case(change=change, actor=who.actor, scope=who.scope, before=before, after=after, reason=reason)
    view = look(kit, who, change, before, after, draft.overlay)
    view = replace(view, personal=personal(kit, case))
    judged = pipeline.judge(case, view, kit.policy, meter=time.thread_time)
    if isinstance(change, Insert) and _put_elsewhere(after, judged.case.after):
        # It was compared with what says the same as the text that came and stands where that was to stand.
        view = _looked_again(kit, who, change, before, judged.case.after, draft.overlay, view)
        judged = pipeline.judge(case, view, kit.policy, meter=time.thread_time)
    result = Judgement(
        decision=judged.decision,
        reasons=tuple(judged.reasons),
        reason=judged.case.reason,
        existing=judged.existing,
    )
    if judged.case.after.heard is not None and isinstance(change, Insert | Replace | Append):
        detail = (
            f"its writer was handed something of lower trust: written after reading {judged.case.after.heard.label}"
        )
        result.reasons = (*result.reasons, Reason(gate="authority", code="after_reading", detail=detail))
    if not reaches(who, after.scope):
        # A place that it writes to and does not see: what is there is not told.
        result.reasons = tuple(map(_untold, result.reasons))
        if judged.decision == "same":
            return Judgement(decision="refuse", reasons=result.reasons, reason="")
    if judged.decision == "same" and judged.existing is not None:
        _weigh(result, judged.case.after, judged.existing)
    if judged.decision in {"refuse", "same"}:
        if isinstance(change, Insert) and judged.existing is not None:
            draft.overlay.renamed[change.id] = judged.existing.id
            if judged.decision == "same":
                _strengthen(kit, who, change, judged.case, judged.existing, draft, result)
        return result
    unburied = draft.overlay.unburied.get(after.id) is judged.case.after
    stone = None if unburied else revived(kit, who.tenant, after, judged.case.after)
    if stone is not None:
        return Judgement(decision="refuse", reasons=(stone,), reason="")
    after = judged.case.after
    if judged.decision == "quarantine" and vouches(judged.case):
        # What a person approves is vouched for by a person.
        after = replace(after, trust=max(after.trust, Trust.USER), heard=None)
    elif judged.decision == "quarantine" and before is not None and after.trust < before.trust:
        # So are its fields; the text is nobody's but whose it was.
        after = replace(after, trust=min(before.trust, max(after.trust, Trust.USER)))
    if view.spare is not None and makes_room(judged.case, view, kit.policy):
        _add(draft, result, Archive(id=view.spare.id), view.spare, apply(Archive(id=view.spare.id), view.spare, frame))
    _take_vector(kit, change, after, draft.overlay)
    _add(draft, result, change, before, after)
    return result


def _visible_step(who: Who, step: Step) -> Step:
    """Return what is told of a step: not what a memory said that its writer may not read."""
    if step.before is None or not withholds(who, step.before):
        return step
    return replace(step, before=veiled(step.before), after=veiled(step.after))


def _untold(reason: Reason) -> Reason:
    if reason.gate != "duplicate":
        return reason
    return replace(reason, detail="something like it is known in that scope, which this handle does not see")


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
    kit: Kit, who: Who, change: Insert, case: Case, existing: Record, draft: Draft, result: Judgement
) -> None:
    """Give a memory what its restatement adds, where the gates let that through or let a person decide."""
    stronger = None
    if who.actor.kind is not ActorKind.IMPORTER:
        frame = Frame(now=kit.clock.now(), actor=who.actor, policy=kit.policy)
        stronger = strengthened(existing, case.after, change, frame)
    if stronger is None:
        return
    added = Replace(
        id=existing.id,
        source=stronger.source,
        evidence=stronger.evidence,
        confidence=stronger.confidence,
        consent=change.consent,
    )
    view = look(kit, who, added, existing, stronger, draft.overlay)
    asked = replace(case, change=added, before=existing, after=stronger)
    judged = pipeline.judge(asked, view, kit.policy, meter=time.thread_time)
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


def _take_vector(kit: Kit, change: Change, after: Record, overlay: Overlay) -> None:
    if isinstance(change, Insert) and change.vector is not None and kit.embedder is not None:
        # Of a text that a gate has rewritten it would still tell what was taken out: see ``Overlay.given``.
        overlay.vectors[after.id] = (change.text, kit.embedder.id, packed(change.vector))


def _put_elsewhere(asked: Record, judged: Record) -> bool:
    """Whether the gates put another text than was asked for, or put it in another place."""
    return any(getattr(asked, name) != getattr(judged, name) for name in ("text", "tier", "scope", "sensitivity"))


def _looked_again(
    kit: Kit, who: Who, change: Insert, before: Record | None, after: Record, overlay: Overlay, view: View
) -> View:
    """Return what the gates may see, with what lies near what they themselves put in place."""
    overlay.ahead.pop(after.id, None)
    again = look(kit, who, change, before, after, overlay)
    return replace(
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


def _receipt(kit: Kit, who: Who, kind: ReceiptKind, reasons: tuple[Reason, ...], facts: dict[str, object]) -> Receipt:
    now = kit.clock.now()
    return Receipt(
        id=kit.ids.new_id(now),
        tenant=who.tenant,
        kind=kind,
        at=now,
        actor=who.actor.label,
        policy=kit.policy.version,
        head=kit.store.head(who.tenant).name,
        reasons=reasons,
        facts=facts,
    )


def _refuse(kit: Kit, who: Who, reasons: tuple[Reason, ...], operations: list[str]) -> Refused:
    receipt = _receipt(kit, who, "refusal", reasons, {"operations": operations})
    if kit.policy.enabled:
        with kit.store.write() as writer:
            writer.put_receipt(receipt)
    return Refused(receipt=receipt, reasons=reasons)


def _duplicate(kit: Kit, who: Who, item: Judgement, reasons: tuple[Reason, ...], *, confirm: bool = True) -> Duplicate:
    existing = item.existing
    assert existing is not None
    now = kit.clock.now()
    confirm = confirm and item.confirms
    if confirm and existing.kind is not Kind.EVENT and existing.tier is not Tier.CORE and who.actor.kind != "importer":
        change = Reinforce(id=existing.id)
        after = apply(change, existing, Frame(now=now, actor=who.actor, policy=kit.policy))
        step = Step(op=operation(change), before=existing, after=after)
        stored = store_steps(
            kit,
            who,
            [step],
            base={existing.id: existing.version},
            reason="said again",
            kind="write",
            reasons=reasons,
            receipt_kind="duplicate",
        )
        return Duplicate(
            record=veiled(after) if withholds(who, after) else after,
            receipt=stored.receipt,
            reasons=reasons,
            commit=stored.commit,
        )
    receipt = _receipt(kit, who, "duplicate", reasons, {"existing": existing.id})
    with kit.store.write() as writer:
        writer.put_receipt(receipt)
    return Duplicate(
        record=veiled(existing) if withholds(who, existing) else existing, receipt=receipt, reasons=reasons
    )


def _waiting_enough(kit: Kit, who: Who) -> bool:
    """Whether so many proposals of an agent or user wait that another would only bury them."""
    if who.actor.may_decide or who.actor.kind not in {ActorKind.AGENT, ActorKind.USER}:
        return False
    now = kit.clock.now()
    own = (item for item in kit.store.queue(who.tenant) if item.expires_at > now and item.proposer.is_same(who.actor))
    return sum(1 for _ in own) >= kit.policy.pending_limit


def _hold(
    kit: Kit, who: Who, steps: Sequence[Step], base: dict[str, int], reason: str, reasons: tuple[Reason, ...]
) -> Quarantined | Refused:
    if _waiting_enough(kit, who):
        detail = f"{kit.policy.pending_limit} proposals of yours wait already: have some of them decided first"
        full = Reason(gate="review", code="too_many_pending", detail=detail)
        return _refuse(kit, who, (full, *reasons), [step.op for step in steps])
    now = kit.clock.now()
    item = Waiting(
        id=kit.ids.new_id(now),
        tenant=who.tenant,
        state="pending",
        proposer=who.actor,
        reason=scrub_private(scrub_secret(reason)),
        reasons=reasons,
        steps=tuple(steps),
        base=base,
        digest=digest_of(tuple(steps), base),
        created_at=now,
        expires_at=now + kit.policy.review_ttl,
    )
    receipt = _receipt(kit, who, "quarantine", reasons, {"proposal": item.id, "digest": item.digest})
    with kit.store.write() as writer:
        writer.put_waiting(item)
        writer.put_receipt(receipt)
    told = replace(item, steps=tuple(_visible_step(who, step) for step in item.steps))
    return Quarantined(item=told, receipt=receipt, reasons=reasons)
