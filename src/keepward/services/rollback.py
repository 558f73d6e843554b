"""Undoing: a rollback of commits, and the containment of what a source touched.

Invariants
(1) A rollback is exact: each target gets back the content it had before the undone commit; nothing else is touched.
(2) It is idempotent: a commit that is undone already stays undone, and the first receipt is the answer.
(3) It is whole: where a later commit changed the same targets, nothing changes and the conflict is reported,
    unless the later commits are taken along, each of them as a whole. Bookkeeping (a reinforcement, a note that
    a term is over) changes nothing: it stands in nobody's way, and ends with the state that it was about. Nor does
    a later commit that has been undone, with the rollback that undid it: what stood before both stands again.
(4) It is a commit like any other: it passes the gates and can itself be rolled back.
(5) A containment carries out the set and the versions that were shown, or nothing. Nothing is deleted: a contained
    memory is archived by the op ``contain``, is in no prompt, no recall and no duplicate answer, and nobody but the
    owner brings it back. One rollback of the commit gives every memory back as it was.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from msgspec.structs import replace

from keepward.core.change import BOOKKEEPING, Archive, Revert
from keepward.core.commit import Reason, Step
from keepward.core.journal import CommitView, Conflicting, Containment, Difference, Rollback, Selector
from keepward.core.memory import Record, Status, Tier
from keepward.core.principals import RESERVED_SCOPE, Role
from keepward.core.reducer import apply
from keepward.core.serialization import canonical
from keepward.core.serialization import digest as keyless_digest
from keepward.errors import Conflict, Unauthorised
from keepward.gates.authority import authority
from keepward.gates.gate_types import GateContext, Refuse
from keepward.services import identity
from keepward.services.access import commit_of, descendants, key_holder
from keepward.services.gate_context import case_of, evaluate
from keepward.services.provenance import impact
from keepward.services.request_context import RequestContext
from keepward.services.review import check_reason
from keepward.services.transaction import StepList, Transaction, transact

_NEVER_BLOCKING = BOOKKEEPING | {"expire"}
#: What every version of a memory has of its own.
_VERSION_FIELDS: dict[str, Any] = {"version": 0, "updated_at": None}


def roll_back(
    session: RequestContext, commit: str, *, with_later: bool = False, dry_run: bool = False, reason: str = ""
) -> Rollback:
    """Undo one commit.

    Raises:
        NotFound: no such commit in this tenant.
        Unauthorised: an agent asks for a commit that is not its own, or one that touched core memory.
        Conflict: the commit is an erasure, or others kept changing the state while the rollback was being written.
        InvalidInput: the reason is too long or holds a secret.
    """
    check_reason(reason)

    def decide(session: RequestContext) -> _RollbackSteps:
        return _rollback_steps(session, commit, with_later=with_later)

    def idle(found: _RollbackSteps) -> Rollback | None:
        nothing = not (found.steps or found.plan.reasons)
        return found.plan if dry_run or found.plan.already or found.plan.conflicts or nothing else None

    def carry_out(transaction: Transaction, found: _RollbackSteps) -> Rollback:
        plan = found.plan
        undoes = {"undoes": plan.undone}
        if not found.steps:
            # All of its content was erased; there is nothing to commit.
            facts = {"targets": [], "undoes": list(plan.undone), **session.credential}
            receipt = transaction.receipt("rollback", facts, plan.reasons)
            return replace(plan, receipt=receipt, receipt_id=receipt.id)
        if found.edition is not None:
            text, over = found.edition
            identity.put_in_force(transaction, text, over=over)
        stored = transaction.commit(
            found,
            reason=reason.strip() or "rolled back",
            kind="rollback",
            reasons=plan.reasons,
            details=undoes,
            receipt_kind="rollback",
        )
        receipt = stored.receipt
        return replace(plan, applied=True, commit=stored.commit, receipt=receipt, receipt_id=receipt.id)

    return transact(session, decide, carry_out, decide_first=True, early_result=idle)


@dataclass(frozen=True, slots=True, kw_only=True)
class _RollbackSteps(StepList):
    plan: Rollback
    #: Text of the identity that comes back with it, and the edition that it takes the place of.
    edition: tuple[str, str] | None = None


def _rollback_steps(session: RequestContext, name: str, *, with_later: bool) -> _RollbackSteps:
    view = commit_of(session, name)
    if view.commit.kind == "erase":
        raise Conflict("an erasure cannot be undone: its content is gone")
    _check_permitted(session, view)
    plan = Rollback(
        applied=False,
        already=False,
        commit=None,
        receipt=None,
        receipt_id=None,
        undone=(),
        targets=(),
        conflicts=(),
        dependents=(),
    )
    first = _undone_by(session, view.commit.id)
    if first is not None:
        details = first.details
        undone = replace(plan, already=True, commit=first.commit, receipt_id=details.receipt, undone=details.undoes)
        return _RollbackSteps(plan=undone)
    views, conflicts = _commits_to_undo(session, view, with_later=with_later)
    # By memory, the version to return to: the one before the oldest undone commit.
    targets: dict[str, int] = {}
    for each in views:
        _check_permitted(session, each)
        targets |= {step.after.id: step.before.version if step.before else 0 for step in reversed(each.steps)}
    steps, reasons = _steps(session, targets)
    plan = replace(
        plan,
        undone=tuple(each.commit.id for each in views),
        targets=tuple(
            Difference(id=step.after.id, before=_if_active(step.before), after=_if_active(step.after))
            for step in session.reader.steps(steps)
        ),
        conflicts=(*conflicts, *_taken_keys(session, steps)),
        dependents=tuple(descendants(session, targets)),
        reasons=reasons,
    )
    return _RollbackSteps(steps=steps, plan=plan, edition=identity.reverted_edition(session, steps))


def _if_active(record: Record | None) -> Record | None:
    return record if record is not None and (record.status is Status.ACTIVE or record.scope == RESERVED_SCOPE) else None


def _check_permitted(session: RequestContext, view: CommitView) -> None:
    if session.actor.is_owner and session.actor.has_right("approve"):
        return
    core = any(side.tier is Tier.CORE for step in view.steps for side in (step.before, step.after) if side)
    own = session.actor.rights is Role.AGENT and view.details.actor == session.actor.label
    if own and session.actor.may_propose and not core:
        return
    raise Unauthorised("an agent rolls back only its own commits outside core memory; ask the owner")


def _undone_by(session: RequestContext, commit_id: str) -> CommitView | None:
    """Return the commit that undoes this one and still stands, or None."""
    # The newest one may have been undone while an older one stands again.
    for name in session.store.undone_by(session.tenant, commit_id):
        if _undone_by(session, name) is None:
            return session.store.commit(session.tenant, name)
    return None


def _commits_to_undo(
    session: RequestContext, view: CommitView, *, with_later: bool
) -> tuple[list[CommitView], list[Conflicting]]:
    """Return the commits to undo, newest first, and what stands in the way when later ones are not taken."""
    chosen = {view.commit.seq: view}
    conflicts: dict[tuple[str, int], Conflicting] = {}
    waiting = [step.after.id for step in view.steps]
    histories = session.store.histories(session.tenant, dict.fromkeys(waiting))
    seen: set[str] = set()
    while waiting:
        memory_id = waiting.pop()
        if memory_id in seen:
            continue
        seen.add(memory_id)
        if session.reader.fetch(memory_id, own=True).status is Status.ERASED:
            continue
        steps = histories[memory_id]
        since = min((made.commit.seq for made, _ in steps if made.commit.seq in chosen), default=view.commit.seq)
        cancelled = _undone_commits(session, steps, since)
        for later, step in steps:
            # An erasure stands whatever is undone around it.
            if later.commit.seq <= view.commit.seq or later.commit.seq in chosen or later.commit.kind == "erase":
                continue
            if step.op in _NEVER_BLOCKING or later.commit.seq in cancelled:
                continue
            if not with_later:
                where = (memory_id, later.commit.seq)
                conflicts[where] = Conflicting(memory_id=memory_id, seq=later.commit.seq, commit_id=later.commit.id)
                continue
            whole = session.store.commit(session.tenant, later.commit.id)
            if whole is None:
                raise Conflict("a later commit cannot be read; run `keepward verify`")
            chosen[later.commit.seq] = whole
            fresh = [step.after.id for step in whole.steps]
            waiting += fresh
            histories |= session.store.histories(session.tenant, {each for each in fresh if each not in histories})
    return [chosen[seq] for seq in sorted(chosen, reverse=True)], [conflicts[key] for key in sorted(conflicts)]


def _undone_commits(session: RequestContext, steps: Sequence[tuple[CommitView, Step]], since: int) -> set[int]:
    """Return the numbers of commits after one that a standing rollback after it undid, and of those rollbacks.

    ``steps`` are all of one memory, oldest first. Both count only where the memory was left as it was before them.
    """
    first: dict[str, tuple[int, Step]] = {}
    for made, step in steps:
        first.setdefault(made.commit.id, (made.commit.seq, step))
    cancelled: set[int] = set()
    for made, step in steps:
        undone = [first[name] for name in made.details.undoes if name in first]
        if made.commit.kind != "rollback" or not undone or min(seq for seq, _ in undone) <= since:
            continue
        before = min(undone, key=itemgetter(0))[1].before
        # One that was undone itself goes with the rollback that undid it.
        same = before and replace(before, **_VERSION_FIELDS) == replace(step.after, **_VERSION_FIELDS)
        if same and not _undone_by(session, made.commit.id):
            cancelled |= {made.commit.seq, *(seq for seq, _ in undone)}
    return cancelled


def _steps(session: RequestContext, targets: dict[str, int]) -> tuple[list[Step], tuple[Reason, ...]]:
    steps: list[Step] = []
    reasons: list[Reason] = []
    for memory_id, version in sorted(targets.items()):
        before = session.reader.fetch(memory_id, own=True)
        made = session.store.steps(session.tenant, memory_id) if version else ()
        earlier = next((step.after for step in made if step.after.version == version), None)
        if version and earlier is None:
            raise Conflict(f"version {version} of memory {memory_id} is no longer kept")
        if Status.ERASED in {before.status, earlier and earlier.status}:
            detail = f"what memory {memory_id} said then was erased and is not brought back"
            reasons.append(Reason(gate="erased", code="erased", detail=detail))
            continue
        change = Revert(id=memory_id, to_version=version, if_version=before.version)
        after = apply(change, before, session.change_context(earlier=earlier))
        found = evaluate(session, change, before, after)
        if found.decision != "allow":
            raise Unauthorised(found.reasons[0].detail)
        reasons += found.reasons
        steps.append(Step(op="revert", before=before, after=after))
    return steps, tuple(reasons)


def _taken_keys(session: RequestContext, steps: list[Step]) -> list[Conflicting]:
    """Return what now holds a key that a target would get back."""
    freed = {step.after.id for step in steps}
    found: list[Conflicting] = []
    for step in steps:
        after = step.after
        if after.key is None or after.status is not Status.ACTIVE:
            continue
        holder = key_holder(session, after.scope, after.key)
        if holder is not None and holder.id not in freed:
            newest = session.store.history(session.tenant, holder.id)[-1][0].commit
            found.append(Conflicting(memory_id=holder.id, seq=newest.seq, commit_id=newest.id))
    return found


#: The op of its events and the kind of its commit.
CONTAIN = "contain"


def contain(session: RequestContext, selector: Selector, *, digest: str | None = None, reason: str = "") -> Containment:
    """Return the plan; carry it out when ``digest`` is its own. With nothing left to contain, do nothing.

    Raises:
        Unauthorised: planning takes a reviewer or the owner, carrying out the owner.
        Conflict: the set is not the one whose digest was named.
        InvalidInput: the reason is too long or holds a secret.
    """
    if digest is not None and not (session.actor.is_owner and session.actor.has_right("admin")):
        raise Unauthorised("containing takes the owner; a reviewer can plan it and show the digest")
    why = f"contain {selector}: {reason.strip()}" if reason.strip() else f"contain {selector}"

    def decide(session: RequestContext) -> _ContainmentSteps:
        found = impact(session, selector)
        items = tuple(
            record for record in (*found.direct, *found.derived) if not _is_contained_or_erased(session, record)
        )
        shown = [session.tenant, selector.way, selector.value, [[record.id, record.version] for record in items]]
        named = keyless_digest("containment", canonical(shown)).hex()
        result = Containment(applied=False, impact=found, items=items, digest=named)
        if digest is None or not items:
            return _ContainmentSteps(result=result)
        if digest != named:
            raise Conflict("the plan is not the one you saw: what it would contain has changed; look at it again")
        check_reason(why)
        if not (session.policy.enabled and session.policy.capture):
            raise Unauthorised("memory is switched off by policy; switch capture on to contain")
        return _ContainmentSteps(steps=[_contained_step(session, record) for record in items], result=result)

    def carry_out(transaction: Transaction, found: _ContainmentSteps) -> Containment:
        details = {"approved_by": session.actor.label, "approved_digest": found.result.digest}
        stored = transaction.commit(found, reason=why, kind=CONTAIN, details=details, receipt_kind="contain")
        return replace(found.result, applied=True, commit=stored.commit, receipt=stored.receipt)

    def idle(found: _ContainmentSteps) -> Containment | None:
        return None if found.steps else found.result

    return transact(session, decide, carry_out, decide_first=True, early_result=idle)


@dataclass(frozen=True, slots=True, kw_only=True)
class _ContainmentSteps(StepList):
    result: Containment


def _is_contained_or_erased(session: RequestContext, record: Record) -> bool:
    """Whether a memory is contained already, or erased."""
    if record.status is Status.ERASED:
        return True
    return record.status is Status.ARCHIVED and session.store.steps(session.tenant, record.id)[-1].op == CONTAIN


def _contained_step(session: RequestContext, record: Record) -> Step:
    now = session.clock.now()
    after = replace(record, status=Status.ARCHIVED, version=record.version + 1, updated_at=now)
    case = case_of(session, Archive(id=record.id), record, after)
    verdict = authority(case, GateContext(now=now), session.policy)
    if isinstance(verdict, Refuse):
        raise Unauthorised(verdict.reasons[0].detail)
    return Step(op=CONTAIN, before=record, after=after)
