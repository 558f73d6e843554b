"""The write path: run the gates on a proposal, then commit, quarantine or refuse it.

Every proposal ends in exactly one outcome, and its receipt is written in the same transaction.
A proposal is all or nothing; ``propose_each`` judges each item of a batch by itself.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import replace

from keepward import guesses
from keepward.core.change import (
    TEXT_CHANGES,
    UNSET,
    Archive,
    Change,
    Insert,
    Move,
    Reinforce,
    Replace,
    Restore,
    Retire,
    Supersede,
    default_reason,
    operation,
    with_plain_names,
)
from keepward.core.commit import Reason, Step, receipt_from
from keepward.core.memory import Kind, Record, Tier
from keepward.core.principals import (
    PEOPLE,
    ActorKind,
    Trust,
    branch_of,
    branch_scope,
    is_scope,
    is_within_scope,
    main_scope,
)
from keepward.core.proposal import Committed, Duplicate, Outcome, Proposal, Quarantined, Refused, digest_of
from keepward.core.quotes import FOLLOW
from keepward.core.reducer import ChangeContext, apply, has_same_text, reinforced_by
from keepward.core.value import plain_key, to_micros
from keepward.errors import Conflict, InvalidInput, NotFound, Unauthorised
from keepward.gates import pipeline
from keepward.gates.authority import approver_certifies_text, outside_rights
from keepward.gates.content import redact_personal_data, redact_secrets
from keepward.gates.detectors.matcher import Finding
from keepward.gates.gate_types import GateInput
from keepward.gates.state import makes_room
from keepward.gates.validation import oversized, validation_error
from keepward.idempotency import IdempotencyKey, IdempotencyReused
from keepward.ports.store import Features
from keepward.services.branch_state import branch_state
from keepward.services.reading.visible import VisibleReader
from keepward.services.recorded_reads import lowest_trust_read
from keepward.services.request_context import RequestContext
from keepward.services.search.features import pack_vector
from keepward.services.transaction import CommitResult, StepList, Transaction, transact
from keepward.services.writing import blobs
from keepward.services.writing.following import (
    followers,
    following_reason,
    following_steps,
    review_reasons,
    without_forgotten_sources,
)
from keepward.services.writing.freshness import record_sources
from keepward.services.writing.staged import (
    StagedState,
    ask_identity,
    case_of,
    evaluate_case,
    newest_record,
    parents_of,
    prefetch,
    record_before,
    trust_of_known_text,
)
from keepward.services.writing.tombstones import blocked_by_erasure

#: Longer proposals are judged before the transaction, so that other writers need not wait.
EVALUATE_FIRST_FROM = 20
_UNCHANGED_DETAIL = "nothing was changed: the memory already has this text and these fields"
#: Stands in for the writer where policy switches memory off: then nothing is written.
_NO_WRITER: Any = None


@dataclass(slots=True, kw_only=True)
class Evaluation:
    """The result of the gates for one change, and the steps that it would store."""

    decision: pipeline.Decision
    reasons: tuple[Reason, ...]
    reason: str = ""
    steps: list[Step] = field(default_factory=list)
    existing: Record | None = None
    #: Whether repeating a memory confirms it. That takes at least the trust of the stored memory.
    confirms: bool = True


@dataclass(kw_only=True)
class EvaluatedProposal:
    """A complete proposal, judged on one state of the store."""

    items: list[Evaluation] = field(default_factory=list)
    staged_state: StagedState = field(default_factory=StagedState)
    #: All or nothing: later changes also see those that would be quarantined.
    atomic: bool = True
    #: Reasons to quarantine the proposal even if every gate allows it.
    quarantine_reasons: tuple[Reason, ...] = ()
    #: A dry run without the right to decide skips erased texts: otherwise each text would be a guess.
    skip_erasure_check: bool = False
    #: Lowest trust of what the proposer read lately, if below its own.
    tainted_by: Trust | None = None
    #: By memory id, the trust that its writer gives a text which is known with less.
    lowered: dict[str, Trust] = field(default_factory=dict)
    #: By id of a new memory, why it is stored without its key.
    other_times: dict[str, str] = field(default_factory=dict)
    #: Findings of the redactor by text; a second evaluation reuses them.
    personal_data: dict[str, tuple[Finding, ...]] = field(default_factory=dict)
    #: Newest version that the steps build on, by memory id; 0 for a new memory.
    base: dict[str, int] = field(default_factory=dict)

    def decision(self, items: Sequence[Evaluation]) -> pipeline.Decision:
        """Return the strictest decision for some items; reasons to quarantine the proposal count too."""
        decisions = {item.decision for item in items}
        if "refuse" in decisions:
            return "refuse"
        if not any(item.steps for item in items):
            return "same"
        return "quarantine" if self.quarantine_reasons or "quarantine" in decisions else "allow"

    @property
    def steps(self) -> list[Step]:
        """The changes to commit."""
        if self.atomic and self.decision(self.items) != "allow":
            return []
        return [step for item in self.items if item.decision == "allow" for step in item.steps]

    def features(self, record: Record) -> Features:
        """Return what recall needs of a record; see ``StagedState.features``."""
        return self.staged_state.features(record)

    def add(self, item: Evaluation, change: Change, before: Record | None, after: Record) -> None:
        """Add a step to an item. The next changes are judged on the state after it."""
        op = "replace" if isinstance(change, Insert) and before is not None else operation(change)
        if before is not None and before.id != after.id:
            # The first state of a memory of main on a branch.
            op, before = operation(Insert), None
        item.steps.append(Step(op=op, before=before, after=after))
        self.base.setdefault(after.id, before.version if before else 0)
        if self.atomic or item.decision == "allow":
            self.staged_state.add_step(before, after)


def propose(
    context: RequestContext,
    changes: Sequence[Change],
    *,
    reason: str,
    conversation: str | None = None,
    kind: str = "write",
    quarantine_reasons: tuple[Reason, ...] = (),
    named: bool = False,
    identity: bool = False,
    heard: Trust | None = None,
) -> Outcome:
    """Judge changes as one proposal; commit, quarantine or refuse all of them.

    ``quarantine_reasons`` quarantine the proposal even if every gate allows it. ``named`` means that the caller chose
    the ids of new memories. ``identity`` means that the change is a new text of the identity. ``heard`` is the lowest
    trust of what its writer had read, if the caller knows more than the store.

    Raises:
        InvalidInput: there is no change.
        NotFound, Conflict, StaleVersion: a change names a memory that is missing or has changed.
        Conflict: the id of a new memory is taken.
    """
    if not changes:
        raise InvalidInput("there is nothing to do: give at least one change")
    reason = reason.strip() or default_reason(changes)
    findings: dict[str, tuple[Finding, ...]] = {}

    def decide(context: RequestContext) -> EvaluatedProposal:
        ask_identity(context)
        evaluated = EvaluatedProposal(
            quarantine_reasons=() if branch_of(context.scope) is not None else quarantine_reasons,
            personal_data=findings,
            tainted_by=_lowest_trust(context, heard),
        )
        evaluated.staged_state.proposes_identity = identity
        for change, known in zip(changes, _apply_independent(context, changes, reason, evaluated), strict=True):
            try:
                evaluated.items.append(_evaluate_change(context, change, reason, evaluated, known))
            except (NotFound, Conflict):
                # The change may build on one that was refused; then that refusal is the answer.
                if all(item.decision != "refuse" for item in evaluated.items):
                    raise
        if named and all(item.decision != "refuse" for item in evaluated.items):
            _check_ids_are_free(context, changes)
        _forget_followers(context, evaluated)
        return evaluated

    operations = [operation(change) for change in changes]
    return store_proposal(context, decide, operations, conversation=conversation, kind=kind)[0]


def _check_ids_are_free(context: RequestContext, changes: Sequence[Change]) -> None:
    ids = [change.id for change in changes if isinstance(change, Insert)]
    if not ids:
        return
    stored = context.store.records(context.tenant, ids, sees=VisibleReader(context).can_see)
    if stored.records or stored.damaged or context.store.ids_by_key(context.tenant, ids, VisibleReader(context).scopes):
        raise Conflict("the id of a new memory is taken: make a fresh UUIDv7, or leave the id out")


def propose_each(
    context: RequestContext,
    changes: Sequence[Change],
    *,
    reason: str,
    conversation: str | None = None,
    kind: str = "write",
    heard: Trust | None = None,
) -> list[Outcome]:
    """Judge changes one by one and commit the allowed ones together; return the outcomes in order.

    ``heard`` is as for ``propose``.
    """
    if not changes:
        return []
    reason = reason.strip() or default_reason(changes)
    findings: dict[str, tuple[Finding, ...]] = {}

    def decide(context: RequestContext) -> EvaluatedProposal:
        ask_identity(context)
        evaluated = EvaluatedProposal(atomic=False, personal_data=findings, tainted_by=_lowest_trust(context, heard))
        return _evaluate_each(context, changes, reason, evaluated)

    operations = [operation(change) for change in changes]
    return store_proposal(context, decide, operations, conversation=conversation, kind=kind)


def _lowest_trust(context: RequestContext, heard: Trust | None) -> Trust | None:
    """Return the lowest trust of what the writer of a proposal had read; None if nothing is known."""
    return min((trust for trust in (lowest_trust_read(context), heard) if trust is not None), default=None)


def _forget_followers(context: RequestContext, evaluated: EvaluatedProposal) -> None:
    """Add what quotes or sums up the memories that a proposal forgets.

    A proposal that waits for a decision gets the reason only: its approval finds what follows by then.
    """
    retired = [step.after.id for item in evaluated.items for step in item.steps if step.op == operation(Retire)]
    if not retired or evaluated.decision(evaluated.items) not in {"allow", "quarantine"}:
        return
    steps = following_steps(context, followers(context, retired, evaluated.staged_state.records))
    if not steps:
        return
    needs_review = () if branch_of(context.scope) is not None else review_reasons(context, steps)
    item = Evaluation(
        decision="quarantine" if needs_review else "allow",
        reasons=(following_reason(steps), *needs_review),
        reason=evaluated.items[-1].reason,
    )
    evaluated.items.append(item)
    if evaluated.decision(evaluated.items) == "allow":
        item.steps = steps
        for step in steps:
            evaluated.base.setdefault(step.after.id, step.after.version - 1)
            evaluated.staged_state.add_step(step.before, step.after)


class DryRun:
    """Judge batches of changes like ``propose_each``, and store nothing."""

    _OUTCOMES: Mapping[str, str] = {
        "allow": "committed",
        "quarantine": "quarantined",
        "same": "duplicate",
        "refuse": "refused",
    }

    def __init__(self, context: RequestContext, reason: str, *, identity: bool = False) -> None:
        self._context, self._reason = context, reason
        self._draft = EvaluatedProposal(
            atomic=False, tainted_by=lowest_trust_read(context), skip_erasure_check=not context.actor.may_decide
        )
        self._draft.staged_state.proposes_identity = identity

    def evaluate(self, changes: Sequence[Change]) -> list[tuple[str, tuple[Reason, ...]]]:
        """Return the outcome that each change would have, with its reasons."""
        first = len(self._draft.items)
        items = _evaluate_each(self._context, changes, self._reason, self._draft).items[first:]
        return [(self._OUTCOMES[item.decision], item.reasons) for item in items]


def store_proposal(
    context: RequestContext,
    decide: Callable[[RequestContext], EvaluatedProposal],
    operations: Sequence[str],
    *,
    conversation: str | None = None,
    kind: str = "write",
) -> list[Outcome]:
    """Judge a proposal and store the result; return its outcome, or one outcome for each change.

    ``decide`` judges the changes on the state that its context reads.
    """
    committed: list[Step] = []

    def store(transaction: Transaction, evaluated: EvaluatedProposal) -> list[Outcome]:
        stored: CommitResult | None = None

        def commit(items: Sequence[Evaluation], reasons: tuple[Reason, ...]) -> CommitResult:
            return transaction.commit(
                evaluated, reason=_reason_of(items), conversation=conversation, kind=kind, reasons=reasons
            )

        def conclude(items: Sequence[Evaluation], operations: Sequence[str]) -> Outcome:
            reasons = (*evaluated.quarantine_reasons, *(reason for item in items for reason in item.reasons))
            steps = [step for item in items for step in item.steps]
            decision = evaluated.decision(items)
            if decision == "refuse":
                return _refuse(transaction, reasons, operations)
            if decision == "same":
                repeated = _duplicate(transaction, items[-1], reasons, confirm=evaluated.atomic)
                committed.append(Step(op="reinforce", before=items[-1].existing, after=repeated.records[0]))
                return repeated
            if decision == "quarantine":
                base = {step.after.id: evaluated.base[step.after.id] for step in steps}
                return _quarantine(transaction, steps, base, items[-1].reason, reasons)
            result = stored or commit(items, reasons)
            committed.extend(steps)
            records = tuple(
                VisibleReader(context).own_step(step).after
                for step in steps
                if step.op != FOLLOW or VisibleReader(context).can_see(step.after.scope)
            )
            noted = (*reasons, *transaction.notes)
            return Committed(records=records, commit=result.commit, receipt=result.receipt, reasons=noted)

        if evaluated.atomic:
            return [conclude(evaluated.items, operations)]
        allowed = [item for item in evaluated.items if item.decision == "allow"]
        if allowed:
            stored = commit(allowed, tuple(dict.fromkeys(reason for item in allowed for reason in item.reasons)))
        return [conclude([item], [name]) for item, name in zip(evaluated.items, operations, strict=True)]

    if not context.policy.enabled:
        # Every change is refused, so the store is not needed.
        return store(Transaction(context, _NO_WRITER), decide(context))
    decide_first = context.asks_models or len(operations) > EVALUATE_FIRST_FROM
    outcomes = transact(context, decide, store, decide_first=decide_first, on_snapshot=True)
    record_sources(context, committed)
    if any(reason.gate == "erased" for outcome in outcomes for reason in outcome.reasons):
        guesses.add_guesses(len(operations))
    return outcomes


def repeated_outcome(context: RequestContext, key: IdempotencyKey) -> Outcome | None:
    """Return the outcome of the write that committed under an idempotency key; None if there is no such commit.

    Raises:
        IdempotencyReused: another request made the commit under this key.
    """
    stored = context.store.commit_of_request(context.tenant, key)
    if stored is None:
        return None
    commit_id, same = stored
    if not same:
        raise IdempotencyReused
    own = VisibleReader(context).own_commit(commit_id)
    if own is None:
        return None
    view, receipt = own[0], receipt_from(own[1])
    records = tuple(step.after for step in view.steps)
    if receipt.kind == "duplicate":
        existing = VisibleReader(context).existing(records[0])
        return Duplicate(records=(existing,), receipt=receipt, reasons=receipt.reasons, commit=view.commit)
    return Committed(records=records, commit=view.commit, receipt=receipt, reasons=receipt.reasons)


def _reason_of(items: Sequence[Evaluation]) -> str:
    """Return the reason of a commit.

    If changes have different reasons, prefer one without personal identifiers: not every change has consent.
    """
    given = dict.fromkeys(item.reason for item in items)
    return next(
        (reason for reason in given if len(given) == 1 or redact_personal_data(reason) == reason), items[-1].reason
    )


def _evaluate_each(
    context: RequestContext, changes: Sequence[Change], reason: str, evaluated: EvaluatedProposal
) -> EvaluatedProposal:
    """Judge changes one by one, each on the state that the earlier ones would leave."""
    for change, known in zip(changes, _apply_independent(context, changes, reason, evaluated), strict=True):
        try:
            evaluation = _evaluate_change(context, change, reason, evaluated, known)
        except (NotFound, Unauthorised) as exc:
            # A change that builds on a missing memory is refused alone; the rest of the batch goes on.
            detail = "it builds on a memory that does not exist" if isinstance(exc, NotFound) else str(exc)
            evaluation = _refused(Reason(gate="shape", code="unknown_memory", detail=detail))
        evaluated.items.append(evaluation)
    return evaluated


def _apply_independent(
    context: RequestContext, changes: Sequence[Change], reason: str, evaluated: EvaluatedProposal
) -> list[_AppliedChange | Evaluation | None]:
    """Apply the changes that build on no memory, so that one query finds the duplicates of all; None for the others."""
    independent = [isinstance(change, Insert) and change.key is None and not change.derived_from for change in changes]
    applied: list[_AppliedChange | Evaluation | None] = [None] * len(changes)
    if sum(independent) > 1:
        applied = [
            _apply_change(context, change, reason, evaluated) if alone else None
            for change, alone in zip(changes, independent, strict=True)
        ]
        prefetch(context, [item[0].after for item in applied if isinstance(item, tuple)], evaluated.staged_state)
    return applied


_FORGOTTEN_SOURCE = Reason(
    gate="quotes",
    code="forgotten_source",
    detail="it quotes or sums up a memory that was forgotten: restore that one first, or leave it out",
)


def _refused(*reasons: Reason) -> Evaluation:
    return Evaluation(decision="refuse", reasons=reasons)


_UNSEEN_KEY = Reason(
    gate="authority",
    code="out_of_scope",
    detail="this handle does not see that scope, so it uses no key there: open the store there, or leave the key out",
)


def _unseen_key(context: RequestContext, scope: str) -> Reason | None:
    """Return why a key may not be used in a scope; the answer may not depend on whether the key is taken there."""
    return None if VisibleReader(context).can_see(scope) else _UNSEEN_KEY


def _with_scope(context: RequestContext, change: Change) -> Change:
    """Return a change; a new memory without a scope is at the handle's. On a branch, every scope is one of it."""
    if isinstance(change, Insert) and change.scope is UNSET:
        return replace(change, scope=context.scope)
    branch = branch_of(context.scope)
    if branch is None or not isinstance(change, Insert | Move) or change.scope is UNSET or not is_scope(change.scope):
        return change
    return replace(change, scope=branch_scope(branch, change.scope))


def _on_branch(context: RequestContext, before: Record | None, after: Record) -> Record:
    """Return what a change on a branch makes of a memory of main: a new memory, which is its state on the branch."""
    branch = branch_of(context.scope)
    if branch is None or before is None or branch_of(before.scope) is not None:
        return after
    return replace(
        after,
        id=context.ids.new_id(context.clock.now()),
        version=1,
        scope=branch_scope(branch, after.scope),
        branched_from=f"{before.id}@{before.version}",
    )


def _outside_rights(context: RequestContext, change: Change) -> Reason | None:
    """Return why a handle may not write to the scope that a change names, without a read of that scope."""
    if not isinstance(change, Insert | Move) or change.scope is UNSET or not is_scope(change.scope):
        return None
    outside = outside_rights(context.scope, VisibleReader(context).write_scope(), change.scope)
    if outside is None and isinstance(change, Insert) and change.key is not None:
        return _unseen_key(context, change.scope)
    return outside


def _with_plain_fields(context: RequestContext, change: Change) -> Change:
    """Return a change with the consent of the handle, and with names and keys in the form that is stored."""
    if context.consent and isinstance(change, TEXT_CHANGES):
        change = replace(change, consent=True)
    if isinstance(change, Insert | Replace):
        change = with_plain_names(change)
    if isinstance(change, Insert | Move) and type(change.key) is str:
        change = replace(change, key=plain_key(change.key))
    return change


_ASKED_BY_MERGE = Reason(
    gate="authority",
    code="on_branch",
    detail="it is on the branch; a merge asks for that decision",
)


def _outside_branch(branch: Record) -> Reason:
    scope = main_scope(branch.scope)
    detail = f"the branch `{branch.key}` takes changes at {scope} and below: leave the branch, or make one further up"
    return Reason(gate="authority", code="out_of_scope", detail=detail)


#: One change with the record that it would make, before the gates run, and the context that it was applied in.
_AppliedChange = tuple[GateInput, ChangeContext]


def _apply_change(
    context: RequestContext, change: Change, reason: str, evaluated: EvaluatedProposal
) -> _AppliedChange | Evaluation:
    change = _with_scope(context, change)
    broken = validation_error(change, reason, context.policy)
    if broken:
        return _refused(*broken)
    outside = _outside_rights(context, change)
    if outside is not None:
        return _refused(outside)
    change = _with_plain_fields(context, change)
    if isinstance(change, Supersede):
        # The replacement may turn out to be a duplicate of a stored memory.
        change = replace(change, by=evaluated.staged_state.renamed.get(change.by, change.by))
    before = record_before(context, change, evaluated.staged_state)
    if isinstance(change, Insert) and before is not None and _is_of_another_time(context, change, before):
        evaluated.other_times[change.id] = f"the key `{change.key}` has a value of another time ({before.id})"
        change, before = replace(change, key=None, if_version=None), None
    if isinstance(change, Supersede):
        change = replace(change, by=newest_record(context, change.by, evaluated.staged_state).id)
    change_context = context.change_context(
        parents=parents_of(context, change, evaluated.staged_state), heard=evaluated.tainted_by
    )
    try:
        after = _on_branch(context, before, apply(change, before, change_context))
    except InvalidInput as exc:
        return _refused(Reason(gate="shape", code="unknown_name", detail=str(exc)))
    if (isinstance(change, Insert) and before is None and change.derived_from) or isinstance(change, Restore):
        left = without_forgotten_sources(context, [after], own=evaluated.staged_state.records).get(after.id, after)
        if left is None:
            return _refused(_FORGOTTEN_SOURCE)
        after = left
    broken = oversized(after, context.policy)
    if broken:
        return _refused(*broken)
    if before is None or not has_same_text(before, after):
        known = _known_trust(context, change, after, evaluated)
        after = after if known is None else replace(after, trust=known)
    if (state := branch_state(context)) is not None and not is_within_scope(
        main_scope(after.scope), main_scope(state.record.scope)
    ):
        return _refused(_outside_branch(state.record))
    if isinstance(change, Move | Restore) and after.key is not None and (unseen := _unseen_key(context, after.scope)):
        return _refused(unseen)
    blob_refusal = None if after.blob is None else blobs.refusal_reason(context, before, after)
    if blob_refusal is not None:
        return _refused(blob_refusal)
    return case_of(context, change, before, after, reason=reason), change_context


def _is_of_another_time(context: RequestContext, change: Insert, before: Record) -> bool:
    """Whether a keyed value would replace one that holds now or later, and is of another time itself."""
    now = context.clock.now()

    def time_of(value: Insert | Record) -> str:
        if value.valid_until is not None and value.valid_until <= now:
            return "past"
        return "future" if value.valid_from is not None and value.valid_from > now else "now"

    return time_of(before) not in {"past", time_of(change)}


def _known_trust(context: RequestContext, change: Change, after: Record, evaluated: EvaluatedProposal) -> Trust | None:
    """Return the trust that a new text has because it is known with less; None for a person's text and a new one."""
    if not isinstance(change, TEXT_CHANGES) or context.actor.kind in PEOPLE:
        return None
    known = trust_of_known_text(context, after, evaluated.staged_state)
    if known is not None:
        evaluated.lowered.setdefault(after.id, after.trust)
    return known


def _evaluate_change(
    context: RequestContext,
    change: Change,
    reason: str,
    evaluated: EvaluatedProposal,
    applied: _AppliedChange | Evaluation | None = None,
) -> Evaluation:
    applied = applied or _apply_change(context, change, reason, evaluated)
    if isinstance(applied, Evaluation):
        return applied
    case, change_context = applied
    change, before, proposed = case.change, case.before, case.after
    gates = evaluate_case(context, case, evaluated.staged_state, evaluated.personal_data)
    masked = gates.case.after
    if masked.text != proposed.text and (lower := _known_trust(context, change, masked, evaluated)) is not None:
        proposed = replace(proposed, trust=lower)
        gates = evaluate_case(
            context, dataclasses.replace(case, after=proposed), evaluated.staged_state, evaluated.personal_data
        )
    after, decision, existing = gates.case.after, gates.decision, gates.existing
    after = after if before is None else _signed_as_before(before, after, change)
    result = Evaluation(decision=decision, reasons=tuple(gates.reasons), reason=gates.case.reason, existing=existing)
    if isinstance(change, TEXT_CHANGES):
        result.reasons = (*result.reasons, *_notes_on_text(proposed, evaluated, decision))
    if decision in {"refuse", "same"}:
        if isinstance(change, Insert) and existing is not None:
            evaluated.staged_state.renamed[change.id] = existing.id
        if decision == "same" and existing is not None:
            _confirm_existing(context, gates, existing, evaluated, result)
        return result
    not_erased = evaluated.staged_state.not_erased.get(proposed.id) is after
    erased = None if not_erased or evaluated.skip_erasure_check else blocked_by_erasure(context, proposed, after)
    if erased is not None:
        return _refused(erased)
    if before is not None and _changes_nothing(change, before, after):
        result.decision, result.existing, result.confirms = "same", before, False
        result.reasons = (Reason(gate="shape", code="unchanged", detail=_UNCHANGED_DETAIL),)
        return result
    if decision == "quarantine" and branch_of(context.scope) is not None:
        # No person decides on what is on a branch: the merge asks.
        result.decision = "allow"
        result.reasons = (*result.reasons, _ASKED_BY_MERGE)
    elif decision == "quarantine":
        after = _when_approved(gates.case, before)
    view = gates.view
    if view is not None and view.spare is not None and makes_room(gates.case, view, context.policy):
        archive = Archive(id=view.spare.id)
        detail = f"the tier is full: {view.spare.id} is archived to make room; `restore` brings it back"
        result.reasons = (*result.reasons, Reason(gate="capacity", code="made_room", detail=detail))
        evaluated.add(result, archive, view.spare, apply(archive, view.spare, change_context))
    if isinstance(change, Insert) and change.vector is not None and context.embedder is not None:
        # Used only if no gate rewrites the text; see ``StagedState.features``.
        evaluated.staged_state.vectors[after.id] = (change.text, context.embedder.id, pack_vector(change.vector))
    evaluated.add(result, change, before, after)
    return result


def _changes_nothing(change: Change, before: Record, after: Record) -> bool:
    """Whether an edit leaves a memory as it was; a branch gets no state of its own then."""
    if not isinstance(change, Replace | Move):
        return False
    same = {name: getattr(before, name) for name in ("version", "updated_at", "reinforced_at")}
    if after.id != before.id:
        same |= {"id": before.id, "branched_from": None, "scope": main_scope(after.scope)}
    return replace(after, **same) == before


def _notes_on_text(proposed: Record, evaluated: EvaluatedProposal, decision: pipeline.Decision) -> Iterator[Reason]:
    """Yield what a writer is told about a text: its trust is lowered, or the key stays with another value."""
    if proposed.heard is not None:
        detail = f"its writer had read something of lower trust: written after reading {proposed.heard.label}"
        yield Reason(gate="authority", code="after_reading", detail=detail)
    if proposed.id in evaluated.lowered and decision != "same":
        detail = f"the same text is known with less trust: it has the trust `{proposed.trust.label}`"
        yield Reason(gate="authority", code="known_text", detail=detail)
    if proposed.id in evaluated.other_times and decision != "same":
        detail = f"{evaluated.other_times[proposed.id]}: this one is stored without a key"
        yield Reason(gate="shape", code="of_another_time", detail=detail)


def _signed_as_before(before: Record, after: Record, change: Change) -> Record:
    """Return a changed record with its old author, speaker and time if a redaction left the text as it was."""
    if after.text_at == before.text_at or not has_same_text(before, after):
        return after
    unnamed = [name for name in ("speaker", "occurred_at") if getattr(change, name, UNSET) is UNSET]
    return replace(after, **{name: getattr(before, name) for name in ("text_by", "text_at", *unnamed)})


def _when_approved(case: GateInput, before: Record | None) -> Record:
    """Return the record that an approval would store: the approver certifies a new text, or the fields alone."""
    after = case.after
    if approver_certifies_text(case):
        return replace(after, trust=max(after.trust, Trust.USER), heard=None)
    if before is not None and after.trust < before.trust:
        # The approver does not certify the text, so its trust stays that of its author.
        return replace(after, trust=min(before.trust, max(after.trust, Trust.USER)))
    return after


def _confirm_existing(
    context: RequestContext,
    gates: pipeline.GateResult,
    existing: Record,
    evaluated: EvaluatedProposal,
    result: Evaluation,
) -> None:
    """Let a repeated statement confirm a memory of equal or lower trust, and add its source and evidence."""
    case, after = gates.case, gates.case.after
    after = replace(after, trust=evaluated.lowered.get(after.id, after.trust))
    if after.trust < existing.trust:
        result.confirms = False
        detail = (
            f"said again by the {after.trust.label}, which is trusted less than the {existing.trust.label}: "
            "not confirmed"
        )
        result.reasons = (*result.reasons, Reason(gate="authority", code="not_confirmed", detail=detail))
    change = case.change
    if not isinstance(change, Insert) or context.actor.kind is ActorKind.IMPORTER:
        return
    stronger = reinforced_by(existing, after, change, context.change_context())
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
        context, dataclasses.replace(case, change=added, before=existing, after=stronger), evaluated.staged_state
    )
    if again.decision not in {"allow", "quarantine"}:
        return
    result.decision = again.decision
    added_evidence = len(stronger.evidence) - len(existing.evidence)
    improvements = [
        f"trust {existing.trust.label} -> {stronger.trust.label}" if stronger.trust > existing.trust else "",
        f"confidence {existing.confidence:g} -> {stronger.confidence:g}"
        if stronger.confidence > existing.confidence
        else "",
        f"{added_evidence} more {'reference' if added_evidence == 1 else 'references'} as evidence"
        if added_evidence
        else "",
        f"{existing.kind.value} -> rule" if stronger.kind is not existing.kind else "",
    ]
    detail = f"the support of {existing.id} grew: {', '.join(filter(None, improvements))}"
    result.reasons = (*result.reasons, Reason(gate="duplicate", code="strengthened", detail=detail), *again.reasons)
    evaluated.add(result, added, existing, again.case.after)


def _refuse(transaction: Transaction, reasons: tuple[Reason, ...], operations: Sequence[str]) -> Refused:
    enabled = transaction.context.policy.enabled
    receipt = transaction.receipt("refusal", {"operations": list(operations)}, reasons) if enabled else None
    return Refused(receipt=receipt, reasons=reasons)


def _duplicate(transaction: Transaction, item: Evaluation, reasons: tuple[Reason, ...], *, confirm: bool) -> Duplicate:
    context, record, commit = transaction.context, item.existing, None
    assert record is not None
    lasting = record.kind is not Kind.EVENT and record.tier is not Tier.CORE
    # A branch changes nothing on main.
    lasting = lasting and branch_of(record.scope) == branch_of(context.scope)
    if confirm and item.confirms and lasting and context.actor.kind is not ActorKind.IMPORTER:
        change = Reinforce(id=record.id)
        after = apply(change, record, context.change_context())
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
    return Duplicate(
        records=(VisibleReader(context).existing(record),), receipt=receipt, reasons=reasons, commit=commit
    )


def _queue_is_full(context: RequestContext) -> bool:
    """Whether an agent or user has so many pending proposals that one more would only bury them."""
    if context.actor.may_decide or context.actor.kind not in {ActorKind.AGENT, ActorKind.USER}:
        return False
    now, limit = context.clock.now(), context.policy.pending_limit
    proposals = context.store.documents(Proposal, context.tenant)
    pending = proposals.count(state="pending", actor=context.actor, live_at=to_micros(now), most=limit)
    return pending >= limit


def _quarantine(
    transaction: Transaction, steps: Sequence[Step], base: dict[str, int], reason: str, reasons: tuple[Reason, ...]
) -> Quarantined | Refused:
    context = transaction.context
    if _queue_is_full(context):
        detail = f"{context.policy.pending_limit} of your proposals are pending: have some of them decided first"
        full = Reason(gate="review", code="too_many_pending", detail=detail)
        return _refuse(transaction, (full, *reasons), [step.op for step in steps])
    now = context.clock.now()
    item = Proposal(
        id=context.ids.new_id(now),
        tenant=context.tenant,
        state="pending",
        proposer=context.actor,
        reason=redact_personal_data(redact_secrets(reason)),
        reasons=reasons,
        steps=tuple(steps),
        base=base,
        digest=digest_of(tuple(steps), base),
        created_at=now,
        expires_at=now + context.policy.review_ttl,
    )
    transaction.writer.put(item)
    receipt = transaction.receipt("quarantine", {"proposal": item.id, "digest": item.digest}, reasons)
    visible = replace(item, steps=tuple(VisibleReader(context).own_step(step) for step in item.steps))
    return Quarantined(item=visible, receipt=receipt, reasons=reasons)
