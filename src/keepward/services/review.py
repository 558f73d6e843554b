"""The review queue: a person decides on what waits, and only another than the proposer.

Invariants
(1) An approval stores what was shown: it is bound to the digest of the steps and of the versions they build on.
    Where what they build on has been changed, nothing is stored and the item shows as stale. Bookkeeping is no
    change: the steps then follow the newest version, and keep what it has learnt.
(2) Time alone only rejects. A clock may jump: what has expired is taken back like a rejection, and its body is kept
    from when maintenance first found it so.
(3) A decision and its receipt are stored in one transaction, which also sees that nobody decided before: of
    two deciders one wins.
(4) Who proposed does not approve: neither under another name or class of its own, nor by a handle that it gave out.
    The owner's credential is a decision by itself and approves what it proposed, unless policy asks for four eyes:
    then a token counts as who made it.
(5) Before it is stored it is judged once more, as its proposer's and on what is stored now: the approver's rights lend
    it nothing but the decision, and only what the gates would refuse stops it.
(6) An amendment is an approval with words of the reviewer's own: bound to what was seen like any other, judged like a
    write, stored as the reviewer's. What the gates refuse of it, or hold for a reason that the proposal does not have,
    is refused, and the proposal goes on waiting; where policy asks for four eyes, so is what authority would hold.
(7) A rejection is taken back by whoever may decide, which decides nothing: the proposal waits as it did, under the
    digest and until the day that it had, or for a new term where that day is past. Its receipt and that of the
    rejection both stay.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

from msgspec.structs import replace

from keepward.core import change as ask
from keepward.core.blob import StoredBlob
from keepward.core.commit import Reason, Receipt, ReceiptKind, Step
from keepward.core.memory import Record, Sensitivity, Status
from keepward.core.principals import ActorKind
from keepward.core.proposal import Committed, DecisionResult, Proposal, ProposalState, Refused, digest_of
from keepward.core.reducer import apply
from keepward.errors import Conflict, InvalidInput, KeepwardError, StaleVersion, Unauthorised
from keepward.gates.content import redact_secrets
from keepward.gates.detectors.matcher import Finding
from keepward.gates.gate_types import named_texts, reasons_of
from keepward.gates.validation import MAX_REASON_CHARS, oversized, validation_error
from keepward.services import identity
from keepward.services.access import is_unchanged_since, key_holder
from keepward.services.arguments import approvals
from keepward.services.erasure_references import blocked_by_erasure
from keepward.services.gate_context import StagedState, evaluate
from keepward.services.request_context import RequestContext
from keepward.services.tokens import may_be_same_person
from keepward.services.transaction import StepList, Transaction, transact

#: The fields of a change that the gates look at.
_PROPOSER_FIELDS: dict[Any, tuple[str, ...]] = {
    ask.Insert: ("text", "key", "scope", "evidence", "derived_from", "aliases"),
    ask.Append: ("text", "evidence"),
    ask.Replace: ("text", "evidence"),
    ask.Move: ("tier", "scope", "key"),
    ask.Promote: ("text",),
    ask.Supersede: ("by",),
}
_Result = TypeVar("_Result")
_review = reasons_of("review")
#: Stands where the reason of a proposal stood whose body is no longer kept.
DROPPED_TEXT = "[no longer kept]"
_NO_DECIDER = "deciding takes a reviewer or the owner; an agent cannot approve or reject"
#: What stands as the decision on a proposal that was stored with words of its reviewer's own.
AMENDED = "approved with changes"
#: Operations whose text a reviewer may amend.
_TEXT_OPERATIONS = frozenset({"insert", "replace", "append", "promote"})


def proposals(session: RequestContext, state: str = "pending") -> list[Proposal]:
    """Return the proposals of a state that a handle may read, oldest first, without what ``shown`` says of them."""
    # What has run out still waits as far as the store knows; nothing else turns into what waits.
    everything = session.reader.proposals("pending" if state == "pending" else None)
    return [item for each in everything if state in {(item := _with_expiry(session, each)).state, "all"}]


def _with_expiry(session: RequestContext, item: Proposal) -> Proposal:
    """Return a proposal as expired once it is past its term."""
    over = item.state == "pending" and item.expires_at <= session.clock.now()
    return replace(item, state="expired") if over else item


def expired_count(session: RequestContext) -> int:
    """Return how many proposals expired undecided and can be reopened, of those that a handle may read.

    Those of jobs are left out: a job asks again. Of a body that was dropped no operation is left.
    """
    return sum(
        bool(item.steps) and item.proposer.kind is not ActorKind.JOB for item in proposals(session, state="expired")
    )


def proposal(session: RequestContext, proposal_id: str) -> Proposal:
    """Return a proposal that a handle may read, whatever became of it; one past its term shows as expired.

    Raises:
        NotFound: none by that id is visible.
    """
    return with_review_state(session, [_with_expiry(session, session.reader.proposal(proposal_id))])[0]


def with_review_state(session: RequestContext, items: Sequence[Proposal]) -> list[Proposal]:
    """Return proposals; each pending one says whether this handle may approve it and whether it is stale.

    See ``Waiting.stale`` and ``Waiting.current``.
    """
    ids = sorted({name for item in items if item.state == "pending" for name in item.base})
    newest = {each.id: each for each in session.store.records(session.tenant, ids).records} if ids else {}
    return [_compared(session, item, newest) if item.state == "pending" else item for item in items]


def _compared(session: RequestContext, item: Proposal, newest: Mapping[str, Record]) -> Proposal:
    item = replace(item, may_approve=_approval_refusal(session, item) is None)
    if identity.is_edition(item):
        return replace(item, stale=identity.is_outdated(session, item))
    changed = _changed_memories(session, item, newest)
    current = session.reader.records([name for name in changed if name in newest]).records if changed else ()
    return replace(item, stale=bool(changed), current=tuple(current))


def _changed_memories(session: RequestContext, item: Proposal, newest: Mapping[str, Record]) -> list[str]:
    """Return the memories that a proposal builds on and that say something else by now, or are not there."""
    return [
        name
        for name, version in sorted(item.base.items())
        if not (is_unchanged_since(session, newest[name], version) if name in newest else version == 0)
    ]


def _approval_refusal(session: RequestContext, item: Proposal) -> str | None:
    """Return why this handle may not approve a proposal, and who may; None where it may. See (4)."""
    if not session.actor.may_decide:
        return _NO_DECIDER
    if not session.policy.may_self_approve(session.actor) and any(
        item.proposer.may_be_same_actor(actor)
        or (session.policy.four_eyes and may_be_same_person(session, item.proposer, actor))
        for actor in (session.actor, *session.via)
    ):
        return (
            "the proposer cannot approve its own proposal, nor can another whose name looks the same; another person "
            "has to, with a token of their own: `keepward token create --rights reviewer --name NAME`. Under four eyes "
            "a token counts as who made it: propose and approve with two tokens that were made at the machine"
        )
    return identity.refusal_reason(session.actor) if identity.is_edition(item) else None


def approve(session: RequestContext, proposal_id: str, *, digest: str | None = None) -> Committed:
    """Store exactly what was proposed.

    ``digest`` is what the reviewer saw; without it the stored item itself is what counts.

    Raises:
        Unauthorised: this handle may not decide, or made the proposal itself.
        Conflict: decided already, expired, or another digest than the one named.
        StaleVersion: what it builds on has moved on; the item is marked as stale.
    """

    def decide(session: RequestContext) -> _Approval:
        item, steps = _approvable_steps(session, proposal_id, digest)
        if identity.is_edition(item):
            step = identity.change_to_approve(session, item)
            if isinstance(step, str):
                raise _UnapprovableError(item, "stale", step)
            steps = (step,)
        else:
            _check_still_allowed(session, item, steps)
        return _Approval(item=item, steps=steps, reasons=item.reasons)

    return _close_if_unapprovable(session, lambda: transact(session, decide, _apply_approval, decide_first=True))


def _approvable_steps(
    session: RequestContext, proposal_id: str, digest: str | None, if_version: int | None = None
) -> tuple[Proposal, tuple[Step, ...]]:
    """Return a proposal that the session may approve, and its steps as they follow what is stored now.

    With ``if_version`` they also follow the one memory that has changed since, at that version.
    """
    item = _open(session, proposal_id)
    if digest is not None and digest != item.digest:
        raise Conflict("the proposal is not the one you saw; look at it again and decide on its present digest")
    if digest_of(item.steps, item.base) != item.digest:
        raise Conflict("the proposal does not match its digest and cannot be approved; run `keepward verify`")
    if not (session.policy.enabled and session.policy.capture):
        raise Conflict("memory is switched off by policy; the proposal goes on waiting")
    if if_version is not None:
        item = _rebase(session, item, if_version)
    newest = {record.id: record for record in session.store.records(session.tenant, sorted(item.base)).records}
    for name in _changed_memories(session, item, newest):
        what = "the identity" if identity.is_edition(item) else f"memory {name}"
        raise _UnapprovableError(item, "stale", f"{what} has changed since this was proposed")
    return item, _rebase_steps(item.steps, newest)


def _rebase(session: RequestContext, item: Proposal, version: int) -> Proposal:
    """Return a proposal of one change as if it had been made to this version of its memory, which is the newest.

    Raises:
        StaleVersion: it is not the newest.
        InvalidInput: the proposal has several changes, or makes a new memory.
    """
    if len(item.steps) != 1 or (step := item.steps[0]).before is None or identity.is_edition(item):
        raise InvalidInput("`if_version` goes with a proposal of one change to one memory; leave it out")
    found = session.store.records(session.tenant, [step.after.id]).records
    if not found or found[0].version != version:
        raise StaleVersion("the memory has changed again since you looked: read the proposal again")
    if found[0].status is not Status.ACTIVE:
        status = found[0].status.value
        raise Conflict(f"the memory is {status} by now; reject the proposal, or restore the memory first")
    asked = {
        each: getattr(step.after, each)
        for each in Record.__struct_fields__
        if getattr(step.after, each) != getattr(step.before, each)
    }
    after = replace(found[0], **{**asked, "version": version + 1})
    return replace(item, steps=(replace(step, before=found[0], after=after),), base={step.after.id: version})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Approval(StepList):
    item: Proposal
    #: What the gates said of what is to be stored; without steps, why it is refused.
    reasons: tuple[Reason, ...]
    decision: str = "approved"


def _apply_approval(transaction: Transaction, approval: _Approval) -> Committed:
    session, item, by = transaction.session, approval.item, transaction.session.actor.label
    now = session.clock.now()
    decided = replace(item, state="approved", decided_by=by, decided_at=now, decision=approval.decision)
    if identity.is_edition(item):
        identity.put_in_force(transaction, item.steps[0].after.text, over=approval.steps[0].after.metadata["before"])
    transaction.writer.put(decided, was="pending")
    steps, amended = tuple(approval.steps), approval.decision == AMENDED
    stored = transaction.commit(
        approval,
        reason=item.reason,
        kind="approve",
        reasons=approval.reasons,
        details={
            "proposal": item.id,
            "approved_by": by,
            "approved_digest": digest_of(steps, item.base) if amended else item.digest,
        },
        receipt_kind="approval",
    )
    records = tuple(step.after for step in steps)
    return Committed(records=records, commit=stored.commit, receipt=stored.receipt, reasons=approval.reasons)


def amend(
    session: RequestContext,
    proposal_id: str,
    change: ask.Replace,
    *,
    digest: str | None = None,
    memory: str | None = None,
    if_version: int | None = None,
    leave_out: Sequence[str] = (),
) -> Committed | Refused:
    """Approve a proposal with a change of one's own to what it would store; ``change`` names no memory.

    ``memory`` says which one is meant, where a proposal would store several texts. ``if_version`` is the version of
    that memory that the reviewer saw, where it has changed since it was proposed: the change is made to that one, and
    what the proposal does not change stays as it is now. ``leave_out`` names memories whose changes are not made. See
    (6).

    Raises:
        Unauthorised, Conflict, StaleVersion: as ``approve``.
        InvalidInput: the change is none, it is not clear which memory is meant, or what is left out is needed.
    """
    found: dict[str, tuple[Finding, ...]] = {}

    def decide(session: RequestContext) -> _Approval:
        item, steps = _approvable_steps(session, proposal_id, digest, if_version)
        if identity.is_edition(item):
            raise InvalidInput(
                "a new edition of the identity is approved or rejected as it is; propose words of your own instead"
            )
        steps = _without(steps, leave_out)
        if leave_out and change == ask.Replace(id=""):
            _check_still_allowed(session, item, steps)
            return _Approval(item=item, steps=steps, decision=AMENDED, reasons=item.reasons)
        place = _step_index(steps, memory)
        after, reasons = _evaluate_amended(
            session, item, steps[place], replace(change, id=steps[place].after.id), found
        )
        if after is None:
            return _Approval(item=item, reasons=reasons)
        steps = (*steps[:place], replace(steps[place], after=after), *steps[place + 1 :])
        _check_still_allowed(session, item, steps)
        return _Approval(item=item, steps=steps, decision=AMENDED, reasons=reasons)

    def carry_out(transaction: Transaction, approval: _Approval) -> Committed | Refused:
        if approval.steps:
            return _apply_approval(transaction, approval)
        facts = {"operations": ["amend"], "proposal": approval.item.id, "digest": approval.item.digest}
        receipt = transaction.receipt("refusal", facts, approval.reasons)
        return Refused(receipt=receipt, reasons=approval.reasons)

    return _close_if_unapprovable(session, lambda: transact(session, decide, carry_out, decide_first=True))


def _without(steps: tuple[Step, ...], leave_out: Sequence[str]) -> tuple[Step, ...]:
    """Return the steps but those of the named memories.

    Raises:
        InvalidInput: the proposal has no such memory, no step is left, or a remaining one needs one that is left out.
    """
    names = set(leave_out)
    unknown = names - {step.after.id for step in steps}
    if unknown:
        raise InvalidInput(f"the proposal changes no memory {min(unknown)}: `leave_out` names memories of its diff")
    remaining = tuple(step for step in steps if step.after.id not in names)
    if not remaining:
        raise InvalidInput("every change is left out: reject the proposal instead")
    new = {step.after.id for step in steps if step.before is None} & names
    for step in remaining:
        needed = new & {*step.after.derived_from, step.after.superseded_by}
        if needed:
            raise InvalidInput(f"memory {step.after.id} refers to {min(needed)}: leave both out, or neither")
    return remaining


def _step_index(steps: Sequence[Step], memory: str | None) -> int:
    texts = [place for place, step in enumerate(steps) if step.op in _TEXT_OPERATIONS]
    found = [place for place in texts if memory in {None, steps[place].after.id}]
    if len(found) != 1:
        what = "it would store several texts: name one by `memory`" if len(texts) > 1 else "there is no such text in it"
        raise InvalidInput(f"{what}; a proposal that brings no text is approved or rejected")
    return found[0]


def _evaluate_amended(
    session: RequestContext, item: Proposal, step: Step, change: ask.Replace, found: dict[str, tuple[Finding, ...]]
) -> tuple[Record | None, tuple[Reason, ...]]:
    """Return the record to store, None where the amendment is refused, and what the gates said."""
    broken = validation_error(change, item.reason, session.policy)
    if broken:
        return None, broken
    asked = step.after
    # The same words are still who said them first; new words of a new memory are by who changed them.
    change = replace(change, text=ask.UNSET) if change.text == asked.text else change
    after = apply(change, asked, session.frame())
    own = after.text != asked.text and step.before is None
    author = session.actor.label if own else asked.author
    after = replace(after, version=asked.version, updated_at=asked.updated_at, author=author)
    if after == asked:
        raise InvalidInput("nothing is changed: approve it as it is")
    made = _change_of(replace(step, after=after))
    if change.consent and isinstance(made, ask.TEXT_CHANGES):
        made = replace(made, consent=True)
    stone = blocked_by_erasure(session, after)
    broken = (*oversized(after, session.policy), *(() if stone is None else (stone,)))
    if broken:
        return None, broken
    # The owner's words are judged as the owner's, a reviewer's as those that they take the place of (5).
    actor = session.actor if session.policy.may_self_approve(session.actor) else item.proposer
    said = evaluate(
        dataclasses.replace(session, actor=actor, scope=after.scope),
        made,
        step.before,
        after,
        reason=item.reason,
        known=found,
    )
    reasons = tuple(said.reasons)
    if said.decision in {"refuse", "same"}:
        return None, reasons
    before = {(each.gate, each.code) for each in item.reasons}
    if any((each.gate, each.code) not in before for each in said.held):
        detail = "these words would be held for what the proposal was not held for; it goes on waiting as it was"
        return None, (_review("amendment_held", detail), *reasons)
    if session.policy.four_eyes and any(each.gate == "authority" for each in said.held):
        detail = "policy asks for four eyes: words of your own wait for another person; it goes on waiting as it was"
        return None, (_review("four_eyes", detail), *reasons)
    return said.case.after, reasons


class _UnapprovableError(Exception):
    """A proposal that nobody can approve any more: it is set aside, which is a decision of its own."""

    def __init__(self, item: Proposal, state: ProposalState, why: str) -> None:
        self.item, self.state, self.why = item, state, why


def _close_if_unapprovable(session: RequestContext, attempt: Callable[[], _Result]) -> _Result:
    try:
        return attempt()
    except _UnapprovableError as fault:
        _decide(session, fault.item, fault.state, fault.why)
        if fault.state == "expired":
            raise Conflict("the proposal has expired; `keepward reopen` puts it back, or propose it again") from None
        raise StaleVersion(f"the proposal is stale: {fault.why}; it was set aside, propose it again") from None


def approve_many(session: RequestContext, items: Iterable[str | Mapping[str, Any]]) -> list[DecisionResult]:
    """Approve one after the other, by id or by ``id`` with the ``digest`` that was seen; one failure stops no other."""
    wanted = {each["id"]: each.get("digest") for each in approvals(items)}
    return _decide_each(wanted, lambda name: approve(session, name, digest=wanted[name]))


def reject_many(session: RequestContext, ids: Sequence[str], *, reason: str) -> list[DecisionResult]:
    """Reject one after the other for one reason; one that fails stops no other."""
    return _decide_each(dict.fromkeys(ids), lambda name: reject(session, name, reason=reason))


def _decide_each(ids: Iterable[str], decide: Callable[[str], Committed | Receipt]) -> list[DecisionResult]:
    results = []
    for name in ids:
        try:
            done = decide(name)
        except KeepwardError as fault:
            results.append(DecisionResult(id=name, error=fault))
            continue
        if isinstance(done, Receipt):
            results.append(DecisionResult(id=name, receipt=done))
        else:
            results.append(DecisionResult(id=name, outcome=done, receipt=done.receipt))
    return results


def reject(session: RequestContext, proposal_id: str, *, reason: str) -> Receipt:
    """Discard a proposal; what held before still holds, and the proposer is told the reason once.

    Raises:
        Unauthorised: this handle may not decide.
        Conflict: decided already.
        InvalidInput: no reason.
    """
    _require_reason(reason, "the proposer is told the reason of a rejection")
    item = _close_if_unapprovable(session, lambda: _open(session, proposal_id, to_reject=True))
    return _decide(session, item, "rejected", reason)


def _require_reason(reason: str, why: str) -> None:
    if not reason.strip():
        raise InvalidInput(f"say why: {why}")
    check_reason(reason)


def check_reason(reason: str) -> None:
    """Refuse a reason that is too long or holds what looks like a secret."""
    if len(reason) > MAX_REASON_CHARS:
        raise InvalidInput(f"a reason is at most {MAX_REASON_CHARS} characters")
    if redact_secrets(reason) != reason:
        raise InvalidInput("the reason holds what looks like a secret; leave it out")


def reopen(session: RequestContext, proposal_id: str, *, reason: str) -> Receipt:
    """Put a rejected or expired proposal back into the queue, as it was; see (7).

    Raises:
        Unauthorised: this handle may not decide.
        Conflict: it is neither rejected nor expired, or what it proposed is no longer there.
        InvalidInput: no reason.
    """
    _require_reason(reason, "the receipt keeps why a decision was taken back")
    item, now = _within_queue(session, proposal_id), session.clock.now()
    state = _with_expiry(session, item).state
    if state not in {"rejected", "expired"}:
        raise Conflict(f"the proposal is {state}; only one that was rejected or has expired goes back into the queue")
    if not item.steps:
        raise Conflict("what it proposed is no longer there; propose it again")
    until = item.expires_at if item.expires_at > now else now + session.policy.review_ttl
    again = replace(
        item, state="pending", decided_by=None, decided_at=None, decision=None, told=False, expires_at=until
    )
    return _save_state(
        session, again, "reopening", Reason(gate="review", code="reopened", detail=reason), was=item.state
    )


def notices(session: RequestContext) -> list[Proposal]:
    """Return decisions on this actor's proposals that it has not been told yet, and mark them told."""
    if not session.store.count_unnotified(session.tenant, session.clock.now()):
        # Asked by every command of an agent: there is seldom anything to tell.
        return []
    mine = [
        item
        for item in (_with_expiry(session, each) for each in session.store.documents(Proposal, session.tenant).list())
        if item.proposer.is_same_actor(session.actor)
        and item.state in {"rejected", "expired", "stale"}
        and not item.told
    ]
    if mine:
        with session.store.write() as writer:
            for item in mine:
                writer.put(replace(item, told=True))
    return with_review_state(session, session.reader.hide_proposal_content(mine))


def drop_old_contents(session: RequestContext) -> int:
    """Drop what was proposed and has been decided for longer than policy keeps it; return how many.

    What has run out counts as decided from now on: the clock may have jumped, and it can still be reopened (2). What
    stays of each is its digest, its state, and who decided.
    """
    now = session.clock.now()
    bodies = [item for item in session.store.documents(Proposal, session.tenant).list() if item.steps]
    over = [item for item in bodies if item.state == "pending" and item.expires_at <= now]
    old = [item for item in bodies if item.decided_at and item.decided_at <= now - session.policy.review_keep]
    if old or over:
        with session.store.write() as writer:
            for item in over:
                writer.put(replace(item, state="expired", decided_at=now), was="pending")
            for item in old:
                writer.put(replace(item, reason=DROPPED_TEXT, reasons=(), steps=()), was=item.state)
    return len(old)


def _within_queue(session: RequestContext, proposal_id: str) -> Proposal:
    if not session.actor.may_decide:
        raise Unauthorised(_NO_DECIDER)
    return session.reader.proposal(proposal_id)


def _open(session: RequestContext, proposal_id: str, *, to_reject: bool = False) -> Proposal:
    item = _within_queue(session, proposal_id)
    if not to_reject and (why := _approval_refusal(session, item)):
        raise Unauthorised(why)
    if item.state != "pending":
        raise Conflict(f"the proposal is {item.state} already")
    if item.expires_at <= session.clock.now():
        raise _UnapprovableError(item, "expired", "it waited longer than policy allows")
    return item


def _rebase_steps(steps: Sequence[Step], newest: Mapping[str, Record]) -> tuple[Step, ...]:
    """Return steps as they follow the newest records: each keeps what bookkeeping changed and it does not."""
    latest = dict(newest)
    result: list[Step] = []
    for step in steps:
        before, after = latest.get(step.after.id), step.after
        if before is not None and step.before is not None:
            learnt = {
                name: getattr(before, name)
                for name in ("importance", "reinforced_at")
                if getattr(step.after, name) == getattr(step.before, name)
            }
            after = replace(step.after, version=before.version + 1, **learnt)
        latest[after.id] = after
        result.append(Step(op=step.op, before=before, after=after))
    return tuple(result)


def _check_still_allowed(session: RequestContext, item: Proposal, steps: Sequence[Step]) -> None:
    """Judge steps once more, as their proposer's, and refuse what would not be stored by now; see (5)."""
    own = {step.after.id for step in steps}
    overlay = StagedState()
    for step in steps:
        after = step.after
        if after.key is not None and after.status is Status.ACTIVE:
            holder = key_holder(session, after.scope, after.key)
            if holder is not None and holder.id not in own:
                raise _UnapprovableError(item, "stale", f"the key is held by memory {holder.id} by now")
        if after.blob is not None and session.store.documents(StoredBlob, session.tenant).get(after.blob) is None:
            raise _UnapprovableError(item, "stale", "what it refers to is no longer kept")
        stone = blocked_by_erasure(session, after)
        if stone is not None:
            # Set aside with that reason, the proposal would tell its proposer, who may not see what was erased.
            raise Conflict(f"{stone.detail}; reject the proposal")
        # What a detector has learnt since must not slip in through an old proposal.
        if any(redact_secrets(text) != text for _, text in named_texts(after)):
            raise _UnapprovableError(item, "stale", "it holds what looks like a secret")
        proposer = dataclasses.replace(session, scope=after.scope, actor=item.proposer, via=(), consent=False)
        try:
            found = evaluate(proposer, _change_of(step), step.before, after, overlay=overlay, reason=item.reason)
        except Conflict as fault:
            raise _UnapprovableError(item, "stale", str(fault)) from fault
        if found.decision == "same" and found.existing is not None:
            raise _UnapprovableError(item, "stale", f"memory {found.existing.id} says the same by now")
        if found.decision == "refuse":
            raise _UnapprovableError(
                item, "stale", f"{found.reasons[0].gate} refuses it by now: {found.reasons[0].detail}"
            )
        overlay.take(step.before, after)


def _decide(session: RequestContext, item: Proposal, state: ProposalState, why: str) -> Receipt:
    now = session.clock.now()
    decided = replace(item, state=state, decided_by=session.actor.label, decided_at=now, decision=why)
    return _save_state(
        session, decided, "rejection", Reason(gate="review", code=state, detail=why), was="pending", at=now
    )


def _save_state(
    session: RequestContext, item: Proposal, kind: ReceiptKind, reason: Reason, *, was: str, at: datetime | None = None
) -> Receipt:
    """Keep the new state of a proposal with its receipt; see (3)."""
    facts = {"proposal": item.id, "digest": item.digest, **session.credential}
    with session.store.write() as writer:
        writer.put(item, was=was)
        return Transaction(session.for_transaction(writer), writer).receipt(kind, facts, (reason,), at=at)


def _change_of(step: Step) -> ask.Change:
    """Return a change that leads to a step, as far as the gates look at it."""
    after = step.after
    made = ask.CHANGE_BY_OPERATION.get(step.op, ask.Replace)
    known = {"by": after.superseded_by or "", "tier": after.tier.value}
    given = {name: known.get(name, getattr(after, name, None)) for name in _PROPOSER_FIELDS.get(made, ())}
    if made in ask.TEXT_CHANGES:
        # Personal identifiers that were kept with consent made it sensitive; the others are gone from the text.
        given["consent"] = after.sensitivity is Sensitivity.SENSITIVE
    change: ask.Change = made(id=after.id, **given)
    return change
