"""Undo: roll back commits, and contain what a source wrote.

A rollback is exact: each target gets back its content from before the undone commit, and nothing else changes.
It is idempotent: for a commit that is already undone the first receipt is returned.
If a later commit changed the same targets, the rollback changes nothing and reports the conflict, unless all of the
later commits are undone too. Bookkeeping, such as a reinforcement or an expiry, is no conflict. Nor is a later commit
that was itself rolled back.
What quotes or sums up a memory follows it: it is restored with it, unless another commit forgot what it says, and goes
when a rollback takes the memory away.
A rollback is a commit like any other: it passes the gates and can be rolled back.
A containment applies to the set and versions that were shown, or changes nothing. It deletes nothing: a contained
memory is archived by the op ``contain``. It is in no prompt, recall or duplicate result, and only the owner restores
it. What it replaced comes back: the version before the first contained one, or the memory that it superseded. A
summary of quotes is not archived: it loses the lines of what is contained. One rollback of the commit restores every
memory.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from msgspec.structs import replace

from keepward.core.change import BOOKKEEPING, Archive, Revert
from keepward.core.commit import Reason, Step
from keepward.core.journal import CommitView, Conflicting, Containment, Difference, Impact, Rollback
from keepward.core.json_form import canonical
from keepward.core.memory import Record, Status, Tier, as_read
from keepward.core.principals import Role, branch_of
from keepward.core.quotes import FOLLOW
from keepward.core.reducer import apply, has_same_text
from keepward.core.serialization import digest as keyless_digest
from keepward.errors import Conflict, NotFound, StaleVersion, Unauthorised
from keepward.gates.authority import authority
from keepward.gates.gate_types import GateContext, Refuse
from keepward.services.access import commit_of, descendants, key_holder
from keepward.services.reading.visible import VisibleReader
from keepward.services.request_context import RequestContext
from keepward.services.review.decisions import check_reason
from keepward.services.transaction import StepList, Transaction, transact
from keepward.services.undoing.provenance import impact_since, read_impact, selector_of
from keepward.services.writing.following import (
    Followers,
    followers,
    following_steps,
    is_contained,
    review_reasons,
    shortened_in,
    unfollowed,
    without_forgotten_sources,
)
from keepward.services.writing.staged import case_of, evaluate

_NEVER_BLOCKING = BOOKKEEPING | {"expire", FOLLOW}
#: Fields that differ between versions with the same content.
_VERSION_FIELDS: dict[str, Any] = {"version": 0, "updated_at": None}


def roll_back(
    context: RequestContext,
    commit: str,
    *,
    with_later: bool = False,
    dry_run: bool = False,
    reason: str = "",
    digest: str | None = None,
) -> Rollback:
    """Undo one commit.

    Raises:
        StaleVersion: what it would undo has another digest now.
        NotFound: no such commit in this tenant.
        Unauthorised: an agent asks for a commit that is not its own, or one that touched core memory.
        Conflict: the commit is an erasure, or other commits kept changing the state during the rollback.
        InvalidInput: the reason is too long or contains a secret.
    """
    check_reason(reason)

    def decide(context: RequestContext) -> _RollbackSteps:
        decision = _rollback_steps(context, commit, with_later=with_later)
        if digest not in {None, decision.plan.digest} and not decision.plan.already:
            raise StaleVersion("the memories of the commit have changed since you read it; read it again")
        return decision

    def without_writing(decision: _RollbackSteps) -> Rollback | None:
        plan = decision.plan
        nothing = not (decision.steps or plan.reasons)
        return plan if dry_run or plan.already or plan.conflicts or nothing else None

    def store(transaction: Transaction, decision: _RollbackSteps) -> Rollback:
        plan = decision.plan
        if not decision.steps:
            # All of the content was erased, so there is nothing to commit.
            facts = {"targets": [], "undoes": list(plan.undone), **context.credential}
            receipt = transaction.receipt("rollback", facts, plan.reasons)
            return replace(plan, receipt=receipt, receipt_id=receipt.id)
        stored = transaction.commit(
            decision,
            reason=reason.strip() or "rolled back",
            kind="rollback",
            reasons=plan.reasons,
            details={"undoes": plan.undone},
            receipt_kind="rollback",
        )
        receipt = stored.receipt
        return replace(plan, applied=True, commit=stored.commit, receipt=receipt, receipt_id=receipt.id)

    return transact(context, decide, store, decide_first=True, early_result=without_writing)


@dataclass(frozen=True, slots=True, kw_only=True)
class _RollbackSteps(StepList):
    plan: Rollback


def _rollback_steps(context: RequestContext, name: str, *, with_later: bool) -> _RollbackSteps:
    seen = VisibleReader(context).commit(name)
    if not seen.steps:
        raise NotFound("there is no such commit in this tenant; `keepward log` lists them")
    view = commit_of(context, seen.commit.id)
    if view.commit.kind == "erase":
        raise Conflict("an erasure cannot be undone: its content is destroyed")
    _check_permitted(context, view)
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
        digest=_undo_digest(context, [seen]),
    )
    first = _undone_by(context, view.commit.id)
    if first is not None:
        details = first.details
        undone = replace(plan, already=True, commit=first.commit, receipt_id=details.receipt, undone=details.undoes)
        return _RollbackSteps(plan=undone)
    views, conflicts = _commits_to_undo(context, view, with_later=with_later)
    # For each memory the version to return to: the one before the oldest undone commit.
    targets: dict[str, int] = {}
    for later in views:
        _check_permitted(context, later)
        targets |= {step.after.id: step.before.version if step.before else 0 for step in reversed(later.steps)}
    followed = targets.keys() - {step.after.id for later in views for step in later.steps if step.op != FOLLOW}
    steps, reasons = _steps(context, {name: targets[name] for name in targets.keys() - followed}, followed)
    plan = replace(
        plan,
        undone=tuple(later.commit.id for later in views),
        targets=tuple(
            Difference(id=step.after.id, before=_if_active(step.before), after=_if_active(step.after))
            for step in VisibleReader(context).steps(steps)
        ),
        conflicts=(*conflicts, *_taken_keys(context, steps)),
        digest=_undo_digest(context, VisibleReader(context).visible_commits(views)),
        dependents=VisibleReader(context).overseen_ids(descendants(context, targets)),
        reasons=reasons,
    )
    return _RollbackSteps(steps=steps, plan=plan)


def undo_digest(context: RequestContext, commit: str) -> str:
    """Return what ``Rollback.digest`` is for one commit alone."""
    return _undo_digest(context, [VisibleReader(context).commit(commit)])


def _undo_digest(context: RequestContext, views: Sequence[CommitView]) -> str:
    undone = sorted(view.commit.id for view in views if view.steps)
    newest: dict[str, int] = {}
    ids = {step.after.id for view in views for step in view.steps}
    for memory_id, op, version in context.store.versions_by_op(context.tenant, ids):
        if op not in _NEVER_BLOCKING:
            newest[memory_id] = max(version, newest.get(memory_id, 0))
    return keyless_digest("rollback", canonical([context.tenant, undone, sorted(newest.items())])).hex()


def _if_active(record: Record | None) -> Record | None:
    return record if record is not None and record.status is Status.ACTIVE else None


def _check_permitted(context: RequestContext, view: CommitView) -> None:
    if context.actor.is_owner and context.actor.has_right("approve"):
        return
    core = any(side.tier is Tier.CORE for step in view.steps for side in (step.before, step.after) if side)
    own = context.actor.rights is Role.AGENT and view.details.actor == context.actor.label
    if own and context.actor.may_propose and not core:
        return
    raise Unauthorised("an agent rolls back only its own commits outside core memory; ask the owner")


def _undone_by(context: RequestContext, commit_id: str) -> CommitView | None:
    """Return the commit that undoes this one and is itself in force, or None."""
    # The newest rollback may be undone while an older one is in force.
    for name in context.store.undone_by(context.tenant, commit_id):
        if _undone_by(context, name) is None:
            return context.store.commit(context.tenant, name)
    return None


def _commits_to_undo(
    context: RequestContext, view: CommitView, *, with_later: bool
) -> tuple[list[CommitView], list[Conflicting]]:
    """Return the commits to undo, newest first, and the conflicts if later commits are not undone too."""
    chosen = {view.commit.seq: view}
    conflicts: dict[tuple[str, int], Conflicting] = {}
    pending = [step.after.id for step in view.steps]
    histories = context.store.histories(context.tenant, dict.fromkeys(pending))
    seen: set[str] = set()
    while pending:
        memory_id = pending.pop()
        if memory_id in seen:
            continue
        seen.add(memory_id)
        if _newest(context, memory_id).status is Status.ERASED:
            continue
        steps = histories[memory_id]
        since = min(
            (earlier.commit.seq for earlier, _ in steps if earlier.commit.seq in chosen), default=view.commit.seq
        )
        cancelled = _undone_commits(context, steps, since)
        for later, step in steps:
            # An erasure stays in force whatever is undone around it.
            if later.commit.seq <= view.commit.seq or later.commit.seq in chosen or later.commit.kind == "erase":
                continue
            if step.op in _NEVER_BLOCKING or later.commit.seq in cancelled:
                continue
            if not with_later:
                position = (memory_id, later.commit.seq)
                conflicts[position] = Conflicting(memory_id=memory_id, seq=later.commit.seq, commit_id=later.commit.id)
                continue
            complete = context.store.commit(context.tenant, later.commit.id)
            if complete is None:
                raise Conflict("a later commit cannot be read; run `keepward verify`")
            chosen[later.commit.seq] = complete
            ids = [step.after.id for step in complete.steps]
            pending += ids
            histories |= context.store.histories(context.tenant, {name for name in ids if name not in histories})
    return [chosen[seq] for seq in sorted(chosen, reverse=True)], [conflicts[key] for key in sorted(conflicts)]


def _undone_commits(context: RequestContext, steps: Sequence[tuple[CommitView, Step]], since: int) -> set[int]:
    """Return the numbers of later commits that a rollback in force has undone, and of those rollbacks.

    ``steps`` are all of one memory, oldest first. A pair counts only if it left the memory as it was before.
    """
    first: dict[str, tuple[int, Step]] = {}
    for view, step in steps:
        first.setdefault(view.commit.id, (view.commit.seq, step))
    cancelled: set[int] = set()
    for view, step in steps:
        undone = [first[name] for name in view.details.undoes if name in first]
        if view.commit.kind != "rollback" or not undone or min(seq for seq, _ in undone) <= since:
            continue
        before = min(undone, key=itemgetter(0))[1].before
        same = before and replace(before, **_VERSION_FIELDS) == replace(step.after, **_VERSION_FIELDS)
        # A rollback that was undone counts with the rollback that undid it.
        if same and not _undone_by(context, view.commit.id):
            cancelled |= {view.commit.seq, *(seq for seq, _ in undone)}
    return cancelled


def _newest(context: RequestContext, memory_id: str) -> Record:
    """Return a memory whose commits the handle may undo; the owner undoes those of branches too."""
    reader = VisibleReader(context)
    if not reader.oversees_all:
        return reader.fetch(memory_id, own=True)
    found = context.store.records(context.tenant, [memory_id]).records
    return found[0] if found else reader.fetch(memory_id, own=True)


def _where(context: RequestContext, record: Record) -> RequestContext:
    """Return the context in which a change of a memory is judged: one on a branch, there."""
    return context if branch_of(record.scope) is None else dataclasses.replace(context, scope=record.scope)


def _steps(
    context: RequestContext, targets: dict[str, int], followed: Collection[str]
) -> tuple[list[Step], tuple[Reason, ...]]:
    """Return the steps back to these versions; ``followed`` are memories that the undone commits only unquoted."""
    steps: list[Step] = []
    reasons: list[Reason] = []
    for memory_id, version in sorted(targets.items()):
        before = _newest(context, memory_id)
        history = context.store.steps(context.tenant, memory_id) if version else ()
        earlier = next((step.after for step in history if step.after.version == version), None)
        if version and earlier is None:
            raise Conflict(f"version {version} of memory {memory_id} is not stored any more")
        if Status.ERASED in {before.status, earlier and earlier.status}:
            detail = f"the earlier content of memory {memory_id} was erased and is not restored"
            reasons.append(Reason(gate="erased", code="erased", detail=detail))
            continue
        change = Revert(id=memory_id, to_version=version, if_version=before.version)
        after = apply(change, before, context.change_context(earlier=earlier))
        gates = evaluate(_where(context, before), change, before, after)
        if gates.decision != "allow":
            raise Unauthorised(gates.reasons[0].detail)
        reasons += gates.reasons
        steps.append(Step(op="revert", before=before, after=after))
    following, more = _following(context, steps, followed)
    return [*steps, *following], (*reasons, *more)


def _following(
    context: RequestContext, steps: list[Step], followed: Collection[str]
) -> tuple[list[Step], tuple[Reason, ...]]:
    """Return the steps of what quotes or sums up these memories: it follows those that come back and those that go.

    A restored quote of a memory that is still forgotten is removed again.
    """
    own = {step.after.id for step in steps}
    names = sorted({*followed, *descendants(context, {*own, *followed})} - own)
    now, before, after = context.clock.now(), {}, {}
    for record in context.store.records(context.tenant, names).records:
        before[record.id] = record
        earlier = unfollowed(context, record) or record
        after[record.id] = replace(earlier, version=record.version + 1, updated_at=now)
    changed = without_forgotten_sources(context, [*(step.after for step in steps), *after.values()])
    for name, record in after.items():
        left = changed.get(name, record)
        after[name] = replace(record, status=Status.RETIRED) if left is None else left
    following = [
        Step(op=FOLLOW, before=before[name], after=record)
        for name, record in sorted(after.items())
        if replace(record, **_VERSION_FIELDS) != replace(before[name], **_VERSION_FIELDS)
    ]
    needs_review = review_reasons(context, following)
    if needs_review:
        raise Unauthorised(needs_review[0].detail)
    reasons: list[Reason] = []
    for index, step in enumerate(steps):
        left = changed.get(step.after.id, step.after)
        if left is not step.after:
            steps[index] = replace(step, after=replace(step.after, status=Status.RETIRED) if left is None else left)
    for name in sorted(changed):
        detail = f"memory {name} quotes or sums up a memory that is still forgotten: it comes back without that"
        reasons.append(Reason(gate="quotes", code="forgotten_source", detail=detail))
    return following, tuple(reasons)


def _taken_keys(context: RequestContext, steps: list[Step]) -> list[Conflicting]:
    """Return the memories that now have a key that a target would get back."""
    targets = {step.after.id for step in steps}
    conflicts: list[Conflicting] = []
    for step in steps:
        after = step.after
        if after.key is None or after.status is not Status.ACTIVE:
            continue
        holder = key_holder(context, after.scope, after.key)
        if holder is not None and holder.id not in targets:
            newest = context.store.history(context.tenant, holder.id)[-1][0].commit
            conflicts.append(Conflicting(memory_id=holder.id, seq=newest.seq, commit_id=newest.id))
    return conflicts


#: The op of its events and the kind of its commit.
CONTAIN = "contain"


def contain(
    context: RequestContext, /, digest: str | None = None, *, reason: str = "", **ways: str | None
) -> Containment:
    """Return the plan; apply it if ``digest`` is its digest and something is left to contain.

    ``ways`` are as in ``impact``.

    Raises:
        Unauthorised: planning takes a reviewer or the owner, applying the owner.
        Conflict: the set has another digest.
        InvalidInput: the reason is too long or contains a secret.
    """
    selector = selector_of(**ways)
    if digest is not None and not (context.actor.is_owner and context.actor.has_right("admin")):
        raise Unauthorised("containing takes the owner; a reviewer can plan it and show the digest")
    why = f"contain {selector}: {reason.strip()}" if reason.strip() else f"contain {selector}"

    def decide(context: RequestContext) -> _ContainmentSteps:
        affected, touched = impact_since(context, selector)
        found = _containment_followers(context, affected)
        affected_now = {
            record.id: record
            for record in (*affected.direct, *affected.derived)
            if record.id not in found.shortened and record.id not in found.clean
            if record.status is not Status.ERASED and not is_contained(context, record)
        }
        returning = _earlier_values(context, affected_now, touched)
        items = tuple(record for record in affected_now.values() if not _has_content_of(record, returning))
        archived = [record for record in items if record.id not in returning]
        targets = {record.id: returning[record.id] for record in items if record.id in returning}
        superseded = _superseded_by(context, archived, affected)
        changed = [*items, *(before for _, (before, _) in sorted(found.shortened.items()))]
        restored = tuple(record for _, record in sorted((targets | superseded).items()))
        versions = [[[record.id, record.version] for record in each] for each in (changed, restored)]
        shown = [context.tenant, selector.way, selector.value, *versions]
        plan_digest = keyless_digest("containment", canonical(shown)).hex()
        result = Containment(
            applied=False,
            impact=read_impact(context, affected),
            items=tuple(as_read(record, context.clock.now()) for record in items),
            restored=tuple(map(VisibleReader(context).hide_content, restored)),
            shortened=shortened_in(context, found),
            digest=plan_digest,
            notes=(*_notes_on_restored(len(restored)), *_notes_on_corrected(affected.corrected)),
        )
        if digest is None or not changed:
            return _ContainmentSteps(result=result)
        if digest != plan_digest:
            raise Conflict("the plan is not the one you saw: what it would contain has changed; look at it again")
        check_reason(why)
        if not (context.policy.enabled and context.policy.capture):
            raise Unauthorised("memory is switched off by policy; switch capture on to contain")
        steps = [_contained_step(context, record) for record in archived]
        steps += [_contained_step(context, record, targets[record.id]) for record in items if record.id in targets]
        steps += following_steps(context, found)
        taken = {step.after.id for step in steps}
        returned, reasons = _steps(context, {name: record.version for name, record in superseded.items()}, ())
        steps += [step for step in returned if step.after.id not in taken]
        return _ContainmentSteps(steps=steps, result=result, reasons=reasons)

    def store(transaction: Transaction, decision: _ContainmentSteps) -> Containment:
        details = {"approved_by": context.actor.label, "approved_digest": decision.result.digest}
        stored = transaction.commit(
            decision, reason=why, kind=CONTAIN, reasons=decision.reasons, details=details, receipt_kind="contain"
        )
        return replace(decision.result, applied=True, commit=stored.commit, receipt=stored.receipt)

    def without_writing(decision: _ContainmentSteps) -> Containment | None:
        return None if decision.steps else decision.result

    return transact(context, decide, store, decide_first=True, early_result=without_writing)


@dataclass(frozen=True, slots=True, kw_only=True)
class _ContainmentSteps(StepList):
    result: Containment
    reasons: tuple[Reason, ...] = ()


#: Fields that say what a memory states, and who said it.
_STATEMENT = (
    *(
        "text",
        "text_by",
        "text_at",
        "speaker",
        "occurred_at",
        "valid_from",
        "valid_until",
        "content_type",
        "blob",
        "metadata_json",
        "kind",
    ),
    *("source", "trust", "heard", "evidence", "derived_from", "confidence", "base_confidence"),
)


def _earlier_values(
    context: RequestContext, affected: Mapping[str, Record], touched: Mapping[str, int]
) -> dict[str, Record]:
    """Return, by id, memories in use as they come back: with the statement from before the first contained version.

    Other fields, such as scope, key and sensitivity, stay as they are now, unless the contained versions set them.
    """
    sources = {*touched, *affected}
    found: dict[str, Record] = {}
    for name, now in affected.items():
        earlier: Record | None = None
        last: Record | None = None
        for step in context.store.steps(context.tenant, name):
            since = touched.get(name)
            contained = (
                step.after.version >= since if since is not None else not sources.isdisjoint(step.after.derived_from)
            )
            if not contained and last is None:
                earlier = step.after
            elif contained and (step.before is None or step.before.text != step.after.text):
                last = step.after
        if earlier is None or last is None or Status.ACTIVE not in {earlier.status} & {now.status}:
            continue
        fields = {
            field: getattr(earlier, field)
            for field in Record.__struct_fields__
            if field in _STATEMENT or getattr(now, field) == getattr(last, field)
        }
        unchanged = ("id", "version", "author", "created_at", "updated_at", "scope", "status", "sensitivity", "key")
        found[name] = replace(now, **{field: value for field, value in fields.items() if field not in unchanged})
    return found


def _superseded_by(context: RequestContext, archived: Sequence[Record], affected: Impact) -> dict[str, Record]:
    """Return, by id, the last version in use of what memories in use supersede, directly or through contained ones."""
    contained = {record.id for record in (*affected.direct, *affected.derived)}
    waiting = [record.id for record in archived if record.status is Status.ACTIVE]
    freed = {*waiting}
    predecessors = context.store.predecessors(context.tenant) if waiting else {}
    found: dict[str, Record] = {}
    while waiting:
        for name in predecessors.get(waiting.pop(), ()):
            if name in contained:
                waiting.append(name)
                continue
            steps = context.store.steps(context.tenant, name)
            before = next((step.before for step in reversed(steps) if step.op == "supersede"), None)
            if before is None or before.status is not Status.ACTIVE:
                continue
            holder = key_holder(context, before.scope, before.key) if before.key is not None else None
            if holder is None or holder.id in freed:
                found[name] = before
    return found


def _has_content_of(record: Record, returning: Mapping[str, Record]) -> bool:
    return record.id in returning and has_same_text(record, returning[record.id])


def _notes_on_restored(count: int) -> tuple[str, ...]:
    """Return a sentence on the memories that come back."""
    if not count:
        return ()
    return ("1 replaced memory comes back" if count == 1 else f"{count} replaced memories come back",)


def _containment_followers(context: RequestContext, affected: Impact) -> Followers:
    """Return the summaries of quotes that lose lines or have none of what is contained; all else is contained."""
    direct = {record.id for record in affected.direct}
    contained = set(direct)
    while True:
        found = followers(context, contained)
        extracts = found.shortened.keys() | found.clean
        more = direct | {record.id for record in affected.derived if record.id not in extracts}
        if more == contained:
            return Followers(shortened=found.shortened, clean=found.clean)
        contained = more


def _notes_on_corrected(corrected: Sequence[Record]) -> tuple[str, ...]:
    """Return a sentence on the memories that stay in use because another writer has corrected them."""
    count = sum(record.status is Status.ACTIVE for record in corrected)
    if not count:
        return ()
    stays = "1 memory was corrected since by another writer and stays"
    stay = f"{count} memories were corrected since by another writer and stay"
    return (f"{stays if count == 1 else stay} in use; to take one out too, contain it by its id",)


def _contained_step(context: RequestContext, record: Record, returning: Record | None = None) -> Step:
    """Return the step that archives a memory, or brings back what was replaced in it."""
    now = context.clock.now()
    after = returning or replace(record, status=Status.ARCHIVED)
    after = replace(after, version=record.version + 1, updated_at=now)
    case = case_of(_where(context, record), Archive(id=record.id), record, after)
    verdict = authority(case, GateContext(now=now), context.policy)
    if isinstance(verdict, Refuse):
        raise Unauthorised(verdict.reasons[0].detail)
    return Step(op=CONTAIN if returning is None else "revert", before=record, after=after)
