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
from keepward.core.blob import Kept
from keepward.core.commit import Reason, Receipt, ReceiptKind, Step
from keepward.core.memory import Record, Sensitivity, Status
from keepward.core.proposal import Committed, Decided, ProposalState, Refused, Waiting, digest_of
from keepward.core.reducer import apply
from keepward.core.trust import ActorKind
from keepward.errors import Conflict, InvalidInput, KeepwardError, StaleVersion, Unauthorised
from keepward.gates.content import scrub_secret
from keepward.gates.detectors.matcher import Finding
from keepward.gates.gate_types import named, reasons_of
from keepward.gates.validation import REASON, ill_formed, oversized
from keepward.services import identity
from keepward.services.arguments import approvals
from keepward.services.commit import Steps, Transaction, transact
from keepward.services.look import Overlay, judged
from keepward.services.session import Session
from keepward.services.tokens import may_be_one_person
from keepward.services.traces import revived
from keepward.services.view import occupant, says_the_same

#: The fields of a change that the gates look at.
_GIVEN: dict[Any, tuple[str, ...]] = {
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
DROPPED = "[no longer kept]"
_NO_DECIDER = "deciding takes a reviewer or the owner; an agent cannot approve or reject"
#: What stands as the decision on a proposal that was stored with words of its reviewer's own.
AMENDED = "approved with changes"
#: Operations whose text a reviewer may amend.
_BRINGS_TEXT = frozenset({"insert", "replace", "append", "promote"})


def proposals(session: Session, state: str = "pending") -> list[Waiting]:
    """Return the proposals of a state that a handle may read, oldest first, without what ``shown`` says of them."""
    # What has run out still waits as far as the store knows; nothing else turns into what waits.
    everything = session.reader.proposals("pending" if state == "pending" else None)
    return [item for each in everything if state in {(item := _as_of_now(session, each)).state, "all"}]


def _as_of_now(session: Session, item: Waiting) -> Waiting:
    """Return a proposal as expired once it is past its term."""
    over = item.state == "pending" and item.expires_at <= session.clock.now()
    return replace(item, state="expired") if over else item


def ran_out(session: Session) -> int:
    """Return how many proposals expired undecided and can be reopened, of those that a handle may read.

    Those of jobs are left out: a job asks again. Of a body that was dropped no operation is left.
    """
    return sum(
        bool(item.steps) and item.proposer.kind is not ActorKind.JOB for item in proposals(session, state="expired")
    )


def proposal(session: Session, proposal_id: str) -> Waiting:
    """Return a proposal that a handle may read, whatever became of it; one past its term shows as expired.

    Raises:
        NotFound: none by that id is visible.
    """
    return with_review_state(session, [_as_of_now(session, session.reader.proposal(proposal_id))])[0]


def with_review_state(session: Session, items: Sequence[Waiting]) -> list[Waiting]:
    """Return proposals; each pending one says whether this handle may approve it and whether it is stale.

    See ``Waiting.stale`` and ``Waiting.current``.
    """
    ids = sorted({name for item in items if item.state == "pending" for name in item.base})
    newest = {each.id: each for each in session.store.records(session.tenant, ids).records} if ids else {}
    return [_compared(session, item, newest) if item.state == "pending" else item for item in items]


def _compared(session: Session, item: Waiting, newest: Mapping[str, Record]) -> Waiting:
    item = replace(item, may_approve=_bar(session, item) is None)
    if identity.is_edition(item):
        return replace(item, stale=identity.is_outdated(session, item))
    changed = _changed(session, item, newest)
    current = session.reader.records([name for name in changed if name in newest]).records if changed else ()
    return replace(item, stale=bool(changed), current=tuple(current))


def _changed(session: Session, item: Waiting, newest: Mapping[str, Record]) -> list[str]:
    """Return the memories that a proposal builds on and that say something else by now, or are not there."""
    return [
        name
        for name, version in sorted(item.base.items())
        if not (says_the_same(session, newest[name], version) if name in newest else version == 0)
    ]


def _bar(session: Session, item: Waiting) -> str | None:
    """Return why this handle may not approve a proposal, and who may; None where it may. See (4)."""
    if not session.actor.may_decide:
        return _NO_DECIDER
    if not session.policy.decides(session.actor) and any(
        item.proposer.could_be(actor) or (session.policy.four_eyes and may_be_one_person(session, item.proposer, actor))
        for actor in (session.actor, *session.via)
    ):
        return (
            "the proposer cannot approve its own proposal, nor can another whose name looks the same; another person "
            "has to, with a token of their own: `keepward token create --rights reviewer --name NAME`. Under four eyes "
            "a token counts as who made it: propose and approve with two tokens that were made at the machine"
        )
    return identity.objection(session.actor) if identity.is_edition(item) else None


def approve(session: Session, proposal_id: str, *, digest: str | None = None) -> Committed:
    """Store exactly what was proposed.

    ``digest`` is what the reviewer saw; without it the stored item itself is what counts.

    Raises:
        Unauthorised: this handle may not decide, or made the proposal itself.
        Conflict: decided already, expired, or another digest than the one named.
        StaleVersion: what it builds on has moved on; the item is marked as stale.
    """

    def decide(session: Session) -> _Approval:
        item, steps = _as_seen(session, proposal_id, digest)
        if identity.is_edition(item):
            step = identity.approved(session, item)
            if isinstance(step, str):
                raise _Ended(item, "stale", step)
            steps = (step,)
        else:
            _still_fits(session, item, steps)
        return _Approval(item=item, steps=steps, reasons=item.reasons)

    return _settled(session, lambda: transact(session, decide, _carry_out, beforehand=True))


def _as_seen(
    session: Session, proposal_id: str, digest: str | None, if_version: int | None = None
) -> tuple[Waiting, tuple[Step, ...]]:
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
        item = _rebased(session, item, if_version)
    newest = {record.id: record for record in session.store.records(session.tenant, sorted(item.base)).records}
    for name in _changed(session, item, newest):
        what = "the identity" if identity.is_edition(item) else f"memory {name}"
        raise _Ended(item, "stale", f"{what} has changed since this was proposed")
    return item, _following(item.steps, newest)


def _rebased(session: Session, item: Waiting, version: int) -> Waiting:
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
class _Approval(Steps):
    item: Waiting
    #: What the gates said of what is to be stored; without steps, why it is refused.
    reasons: tuple[Reason, ...]
    decision: str = "approved"


def _carry_out(transaction: Transaction, approval: _Approval) -> Committed:
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
    session: Session,
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

    def decide(session: Session) -> _Approval:
        item, steps = _as_seen(session, proposal_id, digest, if_version)
        if identity.is_edition(item):
            raise InvalidInput(
                "a new edition of the identity is approved or rejected as it is; propose words of your own instead"
            )
        steps = _without(steps, leave_out)
        if leave_out and change == ask.Replace(id=""):
            _still_fits(session, item, steps)
            return _Approval(item=item, steps=steps, decision=AMENDED, reasons=item.reasons)
        place = _place_of(steps, memory)
        after, reasons = _judge_amended(session, item, steps[place], replace(change, id=steps[place].after.id), found)
        if after is None:
            return _Approval(item=item, reasons=reasons)
        steps = (*steps[:place], replace(steps[place], after=after), *steps[place + 1 :])
        _still_fits(session, item, steps)
        return _Approval(item=item, steps=steps, decision=AMENDED, reasons=reasons)

    def carry_out(transaction: Transaction, approval: _Approval) -> Committed | Refused:
        if approval.steps:
            return _carry_out(transaction, approval)
        facts = {"operations": ["amend"], "proposal": approval.item.id, "digest": approval.item.digest}
        receipt = transaction.receipt("refusal", facts, approval.reasons)
        return Refused(receipt=receipt, reasons=approval.reasons)

    return _settled(session, lambda: transact(session, decide, carry_out, beforehand=True))


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


def _place_of(steps: Sequence[Step], memory: str | None) -> int:
    texts = [place for place, step in enumerate(steps) if step.op in _BRINGS_TEXT]
    found = [place for place in texts if memory in {None, steps[place].after.id}]
    if len(found) != 1:
        what = "it would store several texts: name one by `memory`" if len(texts) > 1 else "there is no such text in it"
        raise InvalidInput(f"{what}; a proposal that brings no text is approved or rejected")
    return found[0]


def _judge_amended(
    session: Session, item: Waiting, step: Step, change: ask.Replace, found: dict[str, tuple[Finding, ...]]
) -> tuple[Record | None, tuple[Reason, ...]]:
    """Return the record to store, None where the amendment is refused, and what the gates said."""
    broken = ill_formed(change, item.reason, session.policy)
    if broken:
        return None, broken
    asked = step.after
    # The same words are still who said them first; new words of a new memory are by who changed them.
    change = replace(change, text=ask.KEEP) if change.text == asked.text else change
    after = apply(change, asked, session.frame())
    own = after.text != asked.text and step.before is None
    author = session.actor.label if own else asked.author
    after = replace(after, version=asked.version, updated_at=asked.updated_at, author=author)
    if after == asked:
        raise InvalidInput("nothing is changed: approve it as it is")
    made = _change_of(replace(step, after=after))
    if change.consent and isinstance(made, ask.SAYING):
        made = replace(made, consent=True)
    stone = revived(session, after)
    broken = (*oversized(after, session.policy), *(() if stone is None else (stone,)))
    if broken:
        return None, broken
    # The owner's words are judged as the owner's, a reviewer's as those that they take the place of (5).
    actor = session.actor if session.policy.decides(session.actor) else item.proposer
    said = judged(
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


class _Ended(Exception):
    """A proposal that nobody can approve any more: it is set aside, which is a decision of its own."""

    def __init__(self, item: Waiting, state: ProposalState, why: str) -> None:
        self.item, self.state, self.why = item, state, why


def _settled(session: Session, attempt: Callable[[], _Result]) -> _Result:
    try:
        return attempt()
    except _Ended as fault:
        _decide(session, fault.item, fault.state, fault.why)
        if fault.state == "expired":
            raise Conflict("the proposal has expired; `keepward reopen` puts it back, or propose it again") from None
        raise StaleVersion(f"the proposal is stale: {fault.why}; it was set aside, propose it again") from None


def approve_many(session: Session, items: Iterable[str | Mapping[str, Any]]) -> list[Decided]:
    """Approve one after the other, by id or by ``id`` with the ``digest`` that was seen; one failure stops no other."""
    wanted = {each["id"]: each.get("digest") for each in approvals(items)}
    return _each(wanted, lambda name: approve(session, name, digest=wanted[name]))


def reject_many(session: Session, ids: Sequence[str], *, reason: str) -> list[Decided]:
    """Reject one after the other for one reason; one that fails stops no other."""
    return _each(dict.fromkeys(ids), lambda name: reject(session, name, reason=reason))


def _each(ids: Iterable[str], decide: Callable[[str], Committed | Receipt]) -> list[Decided]:
    results = []
    for name in ids:
        try:
            done = decide(name)
        except KeepwardError as fault:
            results.append(Decided(id=name, error=fault))
            continue
        if isinstance(done, Receipt):
            results.append(Decided(id=name, receipt=done))
        else:
            results.append(Decided(id=name, outcome=done, receipt=done.receipt))
    return results


def reject(session: Session, proposal_id: str, *, reason: str) -> Receipt:
    """Discard a proposal; what held before still holds, and the proposer is told the reason once.

    Raises:
        Unauthorised: this handle may not decide.
        Conflict: decided already.
        InvalidInput: no reason.
    """
    _require_reason(reason, "the proposer is told the reason of a rejection")
    item = _settled(session, lambda: _open(session, proposal_id, to_reject=True))
    return _decide(session, item, "rejected", reason)


def _require_reason(reason: str, why: str) -> None:
    if not reason.strip():
        raise InvalidInput(f"say why: {why}")
    check_reason(reason)


def check_reason(reason: str) -> None:
    """Refuse a reason that is too long or holds what looks like a secret."""
    if len(reason) > REASON:
        raise InvalidInput(f"a reason is at most {REASON} characters")
    if scrub_secret(reason) != reason:
        raise InvalidInput("the reason holds what looks like a secret; leave it out")


def reopen(session: Session, proposal_id: str, *, reason: str) -> Receipt:
    """Put a rejected or expired proposal back into the queue, as it was; see (7).

    Raises:
        Unauthorised: this handle may not decide.
        Conflict: it is neither rejected nor expired, or what it proposed is no longer there.
        InvalidInput: no reason.
    """
    _require_reason(reason, "the receipt keeps why a decision was taken back")
    item, now = _within_queue(session, proposal_id), session.clock.now()
    state = _as_of_now(session, item).state
    if state not in {"rejected", "expired"}:
        raise Conflict(f"the proposal is {state}; only one that was rejected or has expired goes back into the queue")
    if not item.steps:
        raise Conflict("what it proposed is no longer there; propose it again")
    until = item.expires_at if item.expires_at > now else now + session.policy.review_ttl
    again = replace(
        item, state="pending", decided_by=None, decided_at=None, decision=None, told=False, expires_at=until
    )
    return _noted(session, again, "reopening", Reason(gate="review", code="reopened", detail=reason), was=item.state)


def notices(session: Session) -> list[Waiting]:
    """Return decisions on this actor's proposals that it has not been told yet, and mark them told."""
    if not session.store.untold(session.tenant, session.clock.now()):
        # Asked by every command of an agent: there is seldom anything to tell.
        return []
    mine = [
        item
        for item in (_as_of_now(session, each) for each in session.store.documents(Waiting, session.tenant).list())
        if item.proposer.is_same(session.actor) and item.state in {"rejected", "expired", "stale"} and not item.told
    ]
    if mine:
        with session.store.write() as writer:
            for item in mine:
                writer.put(replace(item, told=True))
    return with_review_state(session, session.reader.redacted_proposals(mine))


def drop_bodies(session: Session) -> int:
    """Drop what was proposed and has been decided for longer than policy keeps it; return how many.

    What has run out counts as decided from now on: the clock may have jumped, and it can still be reopened (2). What
    stays of each is its digest, its state, and who decided.
    """
    now = session.clock.now()
    bodies = [item for item in session.store.documents(Waiting, session.tenant).list() if item.steps]
    over = [item for item in bodies if item.state == "pending" and item.expires_at <= now]
    old = [item for item in bodies if item.decided_at and item.decided_at <= now - session.policy.review_keep]
    if old or over:
        with session.store.write() as writer:
            for item in over:
                writer.put(replace(item, state="expired", decided_at=now), was="pending")
            for item in old:
                writer.put(replace(item, reason=DROPPED, reasons=(), steps=()), was=item.state)
    return len(old)


def _within_queue(session: Session, proposal_id: str) -> Waiting:
    if not session.actor.may_decide:
        raise Unauthorised(_NO_DECIDER)
    return session.reader.proposal(proposal_id)


def _open(session: Session, proposal_id: str, *, to_reject: bool = False) -> Waiting:
    item = _within_queue(session, proposal_id)
    if not to_reject and (why := _bar(session, item)):
        raise Unauthorised(why)
    if item.state != "pending":
        raise Conflict(f"the proposal is {item.state} already")
    if item.expires_at <= session.clock.now():
        raise _Ended(item, "expired", "it waited longer than policy allows")
    return item


def _following(steps: Sequence[Step], newest: Mapping[str, Record]) -> tuple[Step, ...]:
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


def _still_fits(session: Session, item: Waiting, steps: Sequence[Step]) -> None:
    """Judge steps once more, as their proposer's, and refuse what would not be stored by now; see (5)."""
    own = {step.after.id for step in steps}
    overlay = Overlay()
    for step in steps:
        after = step.after
        if after.key is not None and after.status is Status.ACTIVE:
            holder = occupant(session, after.scope, after.key)
            if holder is not None and holder.id not in own:
                raise _Ended(item, "stale", f"the key is held by memory {holder.id} by now")
        if after.blob is not None and session.store.documents(Kept, session.tenant).get(after.blob) is None:
            raise _Ended(item, "stale", "what it refers to is no longer kept")
        stone = revived(session, after)
        if stone is not None:
            # Set aside with that reason, the proposal would tell its proposer, who may not see what was erased.
            raise Conflict(f"{stone.detail}; reject the proposal")
        # What a detector has learnt since must not slip in through an old proposal.
        if any(scrub_secret(text) != text for _, text in named(after)):
            raise _Ended(item, "stale", "it holds what looks like a secret")
        proposer = dataclasses.replace(session, scope=after.scope, actor=item.proposer, via=(), consent=False)
        try:
            found = judged(proposer, _change_of(step), step.before, after, overlay=overlay, reason=item.reason)
        except Conflict as fault:
            raise _Ended(item, "stale", str(fault)) from fault
        if found.decision == "same" and found.existing is not None:
            raise _Ended(item, "stale", f"memory {found.existing.id} says the same by now")
        if found.decision == "refuse":
            raise _Ended(item, "stale", f"{found.reasons[0].gate} refuses it by now: {found.reasons[0].detail}")
        overlay.take(step.before, after)


def _decide(session: Session, item: Waiting, state: ProposalState, why: str) -> Receipt:
    now = session.clock.now()
    decided = replace(item, state=state, decided_by=session.actor.label, decided_at=now, decision=why)
    return _noted(session, decided, "rejection", Reason(gate="review", code=state, detail=why), was="pending", at=now)


def _noted(
    session: Session, item: Waiting, kind: ReceiptKind, reason: Reason, *, was: str, at: datetime | None = None
) -> Receipt:
    """Keep the new state of a proposal with its receipt; see (3)."""
    facts = {"proposal": item.id, "digest": item.digest, **session.credential}
    with session.store.write() as writer:
        writer.put(item, was=was)
        return Transaction(session.inside(writer), writer).receipt(kind, facts, (reason,), at=at)


def _change_of(step: Step) -> ask.Change:
    """Return a change that leads to a step, as far as the gates look at it."""
    after = step.after
    made = ask.BY_OPERATION.get(step.op, ask.Replace)
    known = {"by": after.superseded_by or "", "tier": after.tier.value}
    given = {name: known.get(name, getattr(after, name, None)) for name in _GIVEN.get(made, ())}
    if made in ask.SAYING:
        # Personal identifiers that were kept with consent made it sensitive; the others are gone from the text.
        given["consent"] = after.sensitivity is Sensitivity.SENSITIVE
    change: ask.Change = made(id=after.id, **given)
    return change
