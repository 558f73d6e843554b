"""The review queue: a person, other than the proposer, decides on quarantined proposals.

An approval stores what was shown: it is bound to the digest of the steps and of the versions that they build on. If one
of these memories has changed, nothing is stored and the proposal becomes stale. Bookkeeping is no change: the steps are
rebased onto the newest version.
Time alone only rejects, and a clock may jump: an expired proposal can be reopened like a rejected one. Its content is
stored until ``review_keep`` after maintenance found it expired.
A decision and its receipt are stored in one transaction, which refuses a second decision.
A proposer does not approve its own proposal: neither under another name or role, nor through a handle that it gave out.
The owner does, unless policy asks for four eyes: then a token counts as the person who made it.
Before an approval is stored, the gates judge it again as the proposer's. Approving adds no other right of the approver,
and only a refusal stops it.
An amendment is an approval with the reviewer's own text. It is judged like a write. The proposal stays pending if the
gates refuse the amendment, or quarantine it for a new reason. With four eyes, so does what the authority gate would
quarantine.
Reopening decides nothing: the proposal is pending again under its digest, until its own deadline or a new one.
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
from keepward.core.principals import RESERVED_SCOPE, ActorKind
from keepward.core.proposal import Committed, DecisionResult, Proposal, ProposalState, Refused, digest_of
from keepward.core.reducer import apply, has_same_text
from keepward.errors import Conflict, InvalidInput, KeepwardError, StaleVersion, Unauthorised
from keepward.gates.content import redact_secrets
from keepward.gates.detectors.matcher import Finding
from keepward.gates.gate_types import is_identity, named_texts, reasons_of
from keepward.gates.validation import MAX_REASON_CHARS, oversized, validation_error
from keepward.services.access import is_unchanged_since, key_holder
from keepward.services.arguments import approvals
from keepward.services.reading.visible import VisibleReader
from keepward.services.request_context import RequestContext
from keepward.services.tokens import may_be_same_person
from keepward.services.transaction import StepList, Transaction, transact
from keepward.services.writing.following import followers, following_reason, following_steps, without_forgotten_sources
from keepward.services.writing.freshness import record_sources
from keepward.services.writing.staged import StagedState, evaluate
from keepward.services.writing.tombstones import blocked_by_erasure

#: The fields of each change that the gates check.
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
#: Proposals whose content one transaction drops.
DROPPED_AT_ONCE = 200
#: Replaces the reason of a proposal whose content was dropped.
DROPPED_TEXT = "[no longer kept]"
_NO_DECIDER = "deciding takes a reviewer or the owner; an agent cannot approve or reject"
#: The decision on a proposal that was stored with the reviewer's own text.
AMENDED = "approved with changes"
#: Operations whose text a reviewer may amend.
_TEXT_OPERATIONS = frozenset({"insert", "replace", "append", "promote"})


def proposals(context: RequestContext, state: str = "pending") -> list[Proposal]:
    """Return the proposals with a state that a handle may read, oldest first, without ``stale`` and ``current``."""
    # An expired proposal is stored as pending until maintenance; no other state turns into pending.
    stored = VisibleReader(context).proposals("pending" if state == "pending" else None)
    items = [_with_expiry(context, item) for item in stored]
    return [item for item in items if state in {item.state, "all"}]


def _with_expiry(context: RequestContext, item: Proposal) -> Proposal:
    """Return a proposal with the state ``expired`` once its deadline has passed."""
    expired = item.state == "pending" and item.expires_at <= context.clock.now()
    return replace(item, state="expired") if expired else item


def expired_count(context: RequestContext) -> int:
    """Return the number of readable proposals that expired undecided and can be reopened.

    Those of jobs are left out: a job proposes again. A proposal whose content was dropped cannot be reopened.
    """
    return sum(
        bool(item.steps) and item.proposer.kind is not ActorKind.JOB for item in proposals(context, state="expired")
    )


def proposal(context: RequestContext, proposal_id: str) -> Proposal:
    """Return a proposal of any state that a handle may read.

    Raises:
        NotFound: none with this id is visible.
    """
    return with_review_state(context, [_with_expiry(context, VisibleReader(context).proposal(proposal_id))])[0]


def with_review_state(context: RequestContext, items: Sequence[Proposal]) -> list[Proposal]:
    """Return proposals; a pending one says whether this handle may approve it and whether it is stale."""
    ids = sorted({name for item in items if item.state == "pending" for name in item.base})
    newest = {record.id: record for record in context.store.records(context.tenant, ids).records} if ids else {}

    def compared(item: Proposal) -> Proposal:
        item = replace(item, may_approve=_approval_refusal(context, item) is None)
        changed = _changed_memories(context, item, newest)
        current = (
            VisibleReader(context).records([name for name in changed if name in newest]).records if changed else ()
        )
        return replace(item, stale=bool(changed), current=tuple(current))

    return [compared(item) if item.state == "pending" else item for item in items]


def _changed_memories(context: RequestContext, item: Proposal, newest: Mapping[str, Record]) -> list[str]:
    """Return the memories that a proposal builds on and that have changed or are missing."""
    return [
        name
        for name, version in sorted(item.base.items())
        if not (_is_as_proposed(context, newest[name], version) if name in newest else version == 0)
    ]


def _is_as_proposed(context: RequestContext, record: Record, version: int) -> bool:
    # Earlier releases proposed a new identity on a record of the store's own: it is to be proposed again.
    return record.scope != RESERVED_SCOPE and is_unchanged_since(context, record, version)


def _is_new_identity(item: Proposal) -> bool:
    return any(is_identity(step.after) for step in item.steps)


def _decision_refusal(context: RequestContext, item: Proposal) -> str | None:
    """Return why this handle may not decide on a proposal; None if it may."""
    if not context.actor.may_decide:
        return _NO_DECIDER
    if not VisibleReader(context).decides_on(item):
        scope = VisibleReader(context).write_scope()
        return f"this token decides at {scope} and below; another reviewer or the owner has to"
    return None


def _approval_refusal(context: RequestContext, item: Proposal) -> str | None:
    """Return why this handle may not approve a proposal, and who may; None if it may."""
    if (why := _decision_refusal(context, item)) is not None:
        return why
    if not context.policy.may_self_approve(context.actor) and any(
        item.proposer.may_be_same_actor(actor)
        or (context.policy.four_eyes and may_be_same_person(context, item.proposer, actor))
        for actor in (context.actor, *context.via)
    ):
        return (
            "the proposer cannot approve its own proposal, nor can another whose name looks the same; another person "
            "has to, with a token of their own: `keepward token create --rights reviewer --name NAME`. Under four eyes "
            "a token counts as who made it: propose and approve with two tokens that were made at the machine"
        )
    if _is_new_identity(item) and not (context.actor.is_owner and context.actor.has_right("admin")):
        return "the identity takes the owner; a reviewer may reject a new text and not approve one"
    return None


def approve(context: RequestContext, proposal_id: str, *, digest: str | None = None) -> Committed:
    """Store exactly what was proposed.

    ``digest`` is the one that the reviewer saw; without it the stored proposal is approved as it is.

    Raises:
        Unauthorised: this handle may not decide, or made the proposal itself.
        Conflict: the proposal is decided or expired, or has another digest.
        StaleVersion: a memory that it builds on has changed; the proposal becomes stale.
    """

    def decide(context: RequestContext) -> _Approval:
        item, steps = _approvable_steps(context, proposal_id, digest)
        _check_still_allowed(context, item, steps)
        return _approval(context, item, steps, item.reasons)

    approved = _close_if_unapprovable(context, lambda: transact(context, decide, _apply_approval, decide_first=True))
    record_sources(context, [Step(op="approve", before=None, after=record) for record in approved.records])
    return approved


def _approvable_steps(
    context: RequestContext, proposal_id: str, digest: str | None, if_version: int | None = None
) -> tuple[Proposal, tuple[Step, ...]]:
    """Return a proposal that this handle may approve, and its steps rebased onto the newest versions.

    With ``if_version`` the steps also follow the one memory that has changed since, at that version.
    """
    item = _open(context, proposal_id)
    if digest is not None and digest != item.digest:
        raise Conflict("the proposal is not the one you saw; look at it again and decide on its present digest")
    if digest_of(item.steps, item.base) != item.digest:
        raise Conflict("the proposal does not match its digest and cannot be approved; run `keepward verify`")
    if not (context.policy.enabled and context.policy.capture):
        raise Conflict("memory is switched off by policy; the proposal stays pending")
    if if_version is not None:
        item = _rebase(context, item, if_version)
    newest = {record.id: record for record in context.store.records(context.tenant, sorted(item.base)).records}
    for name in _changed_memories(context, item, newest):
        raise _UnapprovableError(item, "stale", f"memory {name} has changed since this was proposed")
    return item, _rebase_steps(item.steps, newest)


def _rebase(context: RequestContext, item: Proposal, version: int) -> Proposal:
    """Return a proposal of one change as if it had been made on the newest version of its memory.

    Raises:
        StaleVersion: ``version`` is not the newest.
        InvalidInput: the proposal has several changes, or makes a new memory.
    """
    if len(item.steps) != 1 or (step := item.steps[0]).before is None:
        raise InvalidInput("`if_version` goes with a proposal of one change to one memory; leave it out")
    stored = context.store.records(context.tenant, [step.after.id]).records
    if not stored or stored[0].version != version:
        raise StaleVersion("the memory has changed again since you looked: read the proposal again")
    newest = stored[0]
    if newest.status is not Status.ACTIVE:
        raise Conflict(f"the memory is now {newest.status.value}; reject the proposal, or restore the memory first")
    changed = {
        name: getattr(step.after, name)
        for name in Record.__struct_fields__
        if getattr(step.after, name) != getattr(step.before, name)
    }
    if step.after.text_at != step.before.text_at:
        changed["text_by"] = step.after.text_by
    after = replace(newest, **{**changed, "version": version + 1})
    return replace(item, steps=(replace(step, before=newest, after=after),), base={step.after.id: version})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Approval(StepList):
    item: Proposal
    #: What the gates said; without steps, why the amendment is refused.
    reasons: tuple[Reason, ...]
    decision: str = "approved"
    #: What quotes or sums up the memories that it forgets. It is no part of the proposal.
    followers: tuple[Step, ...] = ()


def _approval(
    context: RequestContext,
    item: Proposal,
    steps: Sequence[Step],
    reasons: tuple[Reason, ...],
    *,
    decision: str = "approved",
) -> _Approval:
    """Return an approval of steps, with what follows the memories that they forget."""
    retired = [step.after.id for step in steps if step.op == ask.operation(ask.Retire)]
    staged = {step.after.id: step.after for step in steps}
    following = tuple(following_steps(context, followers(context, retired, staged))) if retired else ()
    found = (*(reason for reason in reasons if reason.gate != "quotes"), following_reason(following))
    return _Approval(
        item=item,
        steps=(*steps, *following),
        reasons=found if following else reasons,
        decision=decision,
        followers=following,
    )


def _apply_approval(transaction: Transaction, approval: _Approval) -> Committed:
    context, item, by = transaction.context, approval.item, transaction.context.actor.label
    now = context.clock.now()
    decided = replace(item, state="approved", decided_by=by, decided_at=now, decision=approval.decision)
    transaction.writer.put(decided, was="pending")
    steps, amended = tuple(approval.steps), approval.decision == AMENDED
    own = steps[: len(steps) - len(approval.followers)]
    stored = transaction.commit(
        approval,
        reason=item.reason,
        kind="approve",
        reasons=approval.reasons,
        details={
            "proposal": item.id,
            "approved_by": by,
            "approved_digest": digest_of(own, item.base) if amended else item.digest,
        },
        receipt_kind="approval",
    )
    # What follows a forgotten memory may be in a scope that the approver does not see.
    records = VisibleReader(context).readable_records(steps)
    receipt = VisibleReader(context).own_receipt(stored.receipt, steps)
    return Committed(records=records, commit=stored.commit, receipt=receipt, reasons=receipt.reasons)


def amend(
    context: RequestContext,
    proposal_id: str,
    change: ask.Replace,
    *,
    digest: str | None = None,
    memory: str | None = None,
    if_version: int | None = None,
    leave_out: Sequence[str] = (),
) -> Committed | Refused:
    """Approve a proposal with one's own change to what it would store; ``change`` names no memory.

    ``memory`` names one if a proposal would store several texts. ``if_version`` is the version of the memory that the
    reviewer saw, if it has changed since the proposal: the change applies to that version, and fields that the
    proposal does not change stay as they are now. ``leave_out`` names memories whose changes are not made.

    Raises:
        Unauthorised, Conflict, StaleVersion: as in ``approve``.
        InvalidInput: nothing is changed, it is not clear which memory is meant, or a remaining change needs one that
            is left out.
    """
    findings: dict[str, tuple[Finding, ...]] = {}

    def decide(context: RequestContext) -> _Approval:
        item, steps = _approvable_steps(context, proposal_id, digest, if_version)
        steps = _without(steps, leave_out)
        if leave_out and change == ask.Replace(id=""):
            _check_still_allowed(context, item, steps)
            return _approval(context, item, steps, item.reasons, decision=AMENDED)
        texts = [index for index, step in enumerate(steps) if step.op in _TEXT_OPERATIONS]
        named = [index for index in texts if memory in {None, steps[index].after.id}]
        if len(named) != 1:
            problem = "it would store several texts: name one by `memory`" if len(texts) > 1 else "it has no such text"
            raise InvalidInput(f"{problem}; a proposal without text is approved or rejected")
        index = named[0]
        step = steps[index]
        after, reasons = _evaluate_amended(context, item, step, replace(change, id=step.after.id), findings)
        if after is None:
            return _Approval(item=item, reasons=reasons)
        steps = (*steps[:index], replace(step, after=after), *steps[index + 1 :])
        _check_still_allowed(context, item, steps)
        return _approval(context, item, steps, reasons, decision=AMENDED)

    def store(transaction: Transaction, approval: _Approval) -> Committed | Refused:
        if approval.steps:
            return _apply_approval(transaction, approval)
        facts = {"operations": ["amend"], "proposal": approval.item.id, "digest": approval.item.digest}
        receipt = transaction.receipt("refusal", facts, approval.reasons)
        return Refused(receipt=receipt, reasons=approval.reasons)

    return _close_if_unapprovable(context, lambda: transact(context, decide, store, decide_first=True))


def _without(steps: tuple[Step, ...], leave_out: Sequence[str]) -> tuple[Step, ...]:
    """Return the steps except those of the named memories.

    Raises:
        InvalidInput: the proposal has no such memory, no step is left, or a remaining step needs one that is left out.
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


def _evaluate_amended(
    context: RequestContext, item: Proposal, step: Step, change: ask.Replace, findings: dict[str, tuple[Finding, ...]]
) -> tuple[Record | None, tuple[Reason, ...]]:
    """Return the record to store, None if the amendment is refused, and the gates' reasons."""
    invalid = validation_error(change, item.reason, context.policy)
    if invalid:
        return None, invalid
    proposed = step.after
    # An unchanged text keeps its author; the reviewer is the author of a new text of a new memory.
    change = replace(change, text=ask.UNSET) if change.text == proposed.text else change
    after = apply(change, proposed, context.change_context())
    own = after.text != proposed.text and step.before is None
    author = context.actor.label if own else proposed.author
    updated_at = proposed.updated_at if has_same_text(proposed, after) or step.before is None else after.updated_at
    after = replace(after, version=proposed.version, updated_at=updated_at, author=author)
    if after == proposed:
        raise InvalidInput("nothing is changed: approve it as it is")
    amended = _change_of(replace(step, after=after))
    if change.consent and isinstance(amended, ask.TEXT_CHANGES):
        amended = replace(amended, consent=True)
    erased = blocked_by_erasure(context, after)
    invalid = (*oversized(after, context.policy), *(() if erased is None else (erased,)))
    if invalid:
        return None, invalid
    # The owner's text is judged as the owner's, a reviewer's as the proposer's.
    actor = context.actor if context.policy.may_self_approve(context.actor) else item.proposer
    gates = evaluate(
        dataclasses.replace(context, actor=actor, scope=after.scope),
        amended,
        step.before,
        after,
        staged_state=StagedState(proposes_identity=_is_new_identity(item)),
        reason=item.reason,
        known=findings,
    )
    reasons = tuple(gates.reasons)
    if gates.decision in {"refuse", "same"}:
        return None, reasons
    before = {(reason.gate, reason.code) for reason in item.reasons}
    if any((reason.gate, reason.code) not in before for reason in gates.review_reasons):
        detail = "this text would be quarantined for another reason than the proposal, which stays pending as it was"
        return None, (_review("amendment_held", detail), *reasons)
    if context.policy.four_eyes and any(reason.gate == "authority" for reason in gates.review_reasons):
        detail = "policy asks for four eyes: a text of your own takes another person; the proposal stays pending"
        return None, (_review("four_eyes", detail), *reasons)
    return gates.case.after, reasons


class _UnapprovableError(Exception):
    """A proposal that can no longer be approved: it is closed, which is a decision of its own."""

    def __init__(self, item: Proposal, state: ProposalState, why: str) -> None:
        self.item, self.state, self.why = item, state, why


def _close_if_unapprovable(context: RequestContext, attempt: Callable[[], _Result]) -> _Result:
    try:
        return attempt()
    except _UnapprovableError as exc:
        _decide(context, exc.item, exc.state, exc.why)
        if exc.state == "expired":
            raise Conflict("the proposal has expired; `keepward reopen` puts it back, or propose it again") from None
        raise StaleVersion(f"the proposal is stale: {exc.why}; it was set aside, propose it again") from None


def approve_many(context: RequestContext, items: Iterable[str | Mapping[str, Any]]) -> list[DecisionResult]:
    """Approve several proposals, by id or by ``id`` with the ``digest`` that was seen; one failure stops no other."""
    digests = {item["id"]: item.get("digest") for item in approvals(items)}
    return _decide_each(digests, lambda name: approve(context, name, digest=digests[name]))


def reject_many(context: RequestContext, ids: Sequence[str], *, reason: str) -> list[DecisionResult]:
    """Reject several proposals for one reason; one failure stops no other."""
    return _decide_each(dict.fromkeys(ids), lambda name: reject(context, name, reason=reason))


def _decide_each(ids: Iterable[str], decide: Callable[[str], Committed | Receipt]) -> list[DecisionResult]:
    results = []
    for name in ids:
        try:
            result = decide(name)
        except KeepwardError as exc:
            results.append(DecisionResult(id=name, error=exc))
            continue
        if isinstance(result, Receipt):
            results.append(DecisionResult(id=name, receipt=result))
        else:
            results.append(DecisionResult(id=name, outcome=result, receipt=result.receipt))
    return results


def reject(context: RequestContext, proposal_id: str, *, reason: str) -> Receipt:
    """Discard a proposal; memory stays as it was, and the proposer is notified of the reason once.

    Raises:
        Unauthorised: this handle may not decide.
        Conflict: it is decided already.
        InvalidInput: the reason seems to contain a secret.
    """
    check_reason(reason)
    item = _close_if_unapprovable(context, lambda: _open(context, proposal_id, to_reject=True))
    return _decide(context, item, "rejected", reason)


def check_reason(reason: str) -> None:
    """Refuse a reason that is too long or seems to contain a secret."""
    if len(reason) > MAX_REASON_CHARS:
        raise InvalidInput(f"a reason has at most {MAX_REASON_CHARS} characters")
    if redact_secrets(reason) != reason:
        raise InvalidInput("the reason contains what looks like a secret; leave it out")


def reopen(context: RequestContext, proposal_id: str, *, reason: str) -> Receipt:
    """Make a rejected or expired proposal pending again, as it was.

    Raises:
        Unauthorised: this handle may not decide.
        Conflict: it is neither rejected nor expired, or its content was dropped.
        InvalidInput: there is no reason.
    """
    check_reason(reason)
    item, now = _proposal_to_decide(context, proposal_id), context.clock.now()
    state = _with_expiry(context, item).state
    if state not in {"rejected", "expired"}:
        raise Conflict(f"the proposal is {state}; only one that was rejected or has expired goes back into the queue")
    if not item.steps:
        raise Conflict("the content of the proposal was dropped; propose it again")
    expires_at = item.expires_at if item.expires_at > now else now + context.policy.review_ttl
    reopened = replace(
        item, state="pending", decided_by=None, decided_at=None, decision=None, told=False, expires_at=expires_at
    )
    return _save_state(
        context, reopened, "reopening", Reason(gate="review", code="reopened", detail=reason), was=item.state
    )


def notices(context: RequestContext) -> list[Proposal]:
    """Return decisions on this actor's proposals that it was not notified of, and mark them as notified."""
    if not context.store.count_unnotified(context.tenant, context.clock.now()):
        # Every command of an agent calls this, mostly for nothing.
        return []
    unnotified = [
        item
        for item in (
            _with_expiry(context, stored) for stored in context.store.documents(Proposal, context.tenant).list()
        )
        if item.proposer.is_same_actor(context.actor)
        and item.state in {"rejected", "expired", "stale"}
        and not item.told
        # A token of the same name may be at another scope.
        and (item.proposer.credential == context.actor.credential or VisibleReader(context).sees_all_of(item))
    ]
    if unnotified:
        with context.store.write() as writer:
            for item in unnotified:
                writer.put(replace(item, told=True))
    return with_review_state(context, VisibleReader(context).hide_proposal_content(unnotified))


def drop_old_contents(context: RequestContext, before_part: Callable[[], None] = lambda: None) -> int:
    """Drop the content of proposals that were decided longer ago than policy retains it; return how many.

    ``before_part`` is called before each transaction, of at most ``DROPPED_AT_ONCE`` proposals.

    An expired proposal counts as decided from now on: the clock may have jumped, and it can still be reopened. The
    digest, the state and the decider of each proposal stay.
    """
    now = context.clock.now()
    items = [item for item in context.store.documents(Proposal, context.tenant).list() if item.steps]
    expired = [item for item in items if item.state == "pending" and item.expires_at <= now]
    old = [item for item in items if item.decided_at and item.decided_at <= now - context.policy.review_keep]
    changed = [(replace(item, state="expired", decided_at=now), "pending") for item in expired]
    changed += [(replace(item, reason=DROPPED_TEXT, reasons=(), steps=()), item.state) for item in old]
    for start in range(0, len(changed), DROPPED_AT_ONCE):
        before_part()
        with context.store.write() as writer:
            for item, state in changed[start : start + DROPPED_AT_ONCE]:
                writer.put(item, was=state)
    return len(old)


def _proposal_to_decide(context: RequestContext, proposal_id: str) -> Proposal:
    if not context.actor.may_decide:
        raise Unauthorised(_NO_DECIDER)
    item = VisibleReader(context).proposal(proposal_id)
    if (why := _decision_refusal(context, item)) is not None:
        raise Unauthorised(why)
    return item


def _open(context: RequestContext, proposal_id: str, *, to_reject: bool = False) -> Proposal:
    item = _proposal_to_decide(context, proposal_id)
    if not to_reject and (why := _approval_refusal(context, item)):
        raise Unauthorised(why)
    if item.state != "pending":
        raise Conflict(f"the proposal is {item.state} already")
    if item.expires_at <= context.clock.now():
        raise _UnapprovableError(item, "expired", "it was pending longer than policy allows")
    return item


def _rebase_steps(steps: Sequence[Step], newest: Mapping[str, Record]) -> tuple[Step, ...]:
    """Rebase steps onto the newest records: each keeps what bookkeeping changed meanwhile."""
    latest = dict(newest)
    result: list[Step] = []
    for step in steps:
        before, after = latest.get(step.after.id), step.after
        if before is not None and step.before is not None:
            # A new text is no longer stale.
            unread = () if before.text != step.after.text else ("stale_at",)
            learned = {
                name: getattr(before, name)
                for name in ("importance", "reinforced_at", *unread)
                if getattr(step.after, name) == getattr(step.before, name)
            }
            after = replace(step.after, version=before.version + 1, **learned)
        latest[after.id] = after
        result.append(Step(op=step.op, before=before, after=after))
    return tuple(result)


def _check_still_allowed(context: RequestContext, item: Proposal, steps: Sequence[Step]) -> None:
    """Judge steps again as the proposer's, and refuse what would not be stored now."""
    own = {step.after.id for step in steps}
    staged_state = StagedState(proposes_identity=_is_new_identity(item))
    for step in steps:
        after = step.after
        if after.key is not None and after.status is Status.ACTIVE:
            holder = key_holder(context, after.scope, after.key)
            if holder is not None and holder.id not in own:
                raise _UnapprovableError(item, "stale", f"memory {holder.id} has the key now")
        if after.blob is not None and context.store.documents(StoredBlob, context.tenant).get(after.blob) is None:
            raise _UnapprovableError(item, "stale", "the blob that it refers to is not stored any more")
        erased = blocked_by_erasure(context, after)
        if erased is not None:
            # Closing the proposal with this reason would notify its proposer, who may not see what was erased.
            raise Conflict(f"{erased.detail}; reject the proposal")
        if step.before is None and after.id in without_forgotten_sources(context, [after], own=own):
            raise _UnapprovableError(item, "stale", "what it quotes or sums up was forgotten since")
        # Detectors may have learned new secrets since the proposal.
        if any(redact_secrets(text) != text for _, text in named_texts(after)):
            raise _UnapprovableError(item, "stale", "it contains what looks like a secret")
        proposer = dataclasses.replace(context, scope=after.scope, actor=item.proposer, via=(), consent=False)
        try:
            gates = evaluate(
                proposer, _change_of(step), step.before, after, staged_state=staged_state, reason=item.reason
            )
        except Conflict as exc:
            raise _UnapprovableError(item, "stale", str(exc)) from exc
        if gates.decision == "same" and gates.existing is not None:
            raise _UnapprovableError(item, "stale", f"memory {gates.existing.id} says the same now")
        if gates.decision == "refuse":
            raise _UnapprovableError(
                item, "stale", f"{gates.reasons[0].gate} refuses it now: {gates.reasons[0].detail}"
            )
        staged_state.add_step(step.before, after)


def _decide(context: RequestContext, item: Proposal, state: ProposalState, why: str) -> Receipt:
    now = context.clock.now()
    decided = replace(item, state=state, decided_by=context.actor.label, decided_at=now, decision=why)
    return _save_state(
        context, decided, "rejection", Reason(gate="review", code=state, detail=why), was="pending", at=now
    )


def _save_state(
    context: RequestContext, item: Proposal, kind: ReceiptKind, reason: Reason, *, was: str, at: datetime | None = None
) -> Receipt:
    """Store the new state of a proposal with its receipt."""
    facts = {"proposal": item.id, "digest": item.digest, **context.credential}
    with context.store.write() as writer:
        writer.put(item, was=was)
        return Transaction(context.for_transaction(writer), writer).receipt(kind, facts, (reason,), at=at)


def _change_of(step: Step) -> ask.Change:
    """Return a change that leads to a step, with the fields that the gates check."""
    after = step.after
    change_type = ask.CHANGE_BY_OPERATION.get(step.op, ask.Replace)
    known = {"by": after.superseded_by or "", "tier": after.tier.value}
    fields = {name: known.get(name, getattr(after, name, None)) for name in _PROPOSER_FIELDS.get(change_type, ())}
    if change_type in ask.TEXT_CHANGES:
        # A sensitive record has its personal identifiers with consent; others were redacted.
        fields["consent"] = after.sensitivity is Sensitivity.SENSITIVE
    change: ask.Change = change_type(id=after.id, **fields)
    return change
