"""The write path: run the gates on a proposal, then commit, quarantine or refuse it.

Every proposal ends in exactly one outcome, and its receipt is written in the same transaction.
A proposal is all or nothing; ``propose_each`` judges each item of a batch by itself.
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
from keepward.core.principals import PEOPLE, ActorKind, Trust, is_scope
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
from keepward.services import blobs
from keepward.services.following import (
    followers,
    following_reason,
    following_steps,
    review_reasons,
    without_forgotten_sources,
)
from keepward.services.gate_context import (
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
from keepward.services.recorded_reads import lowest_trust_read
from keepward.services.request_context import RequestContext
from keepward.services.search_features import pack_vector
from keepward.services.tombstones import blocked_by_erasure
from keepward.services.transaction import CommitResult, StepList, Transaction, transact

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
    overlay: StagedState = field(default_factory=StagedState)
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
        return self.overlay.features(record)

    def add(self, item: Evaluation, change: Change, before: Record | None, after: Record) -> None:
        """Add a step to an item. The next changes are judged on the state after it."""
        op = "replace" if isinstance(change, Insert) and before is not None else operation(change)
        item.steps.append(Step(op=op, before=before, after=after))
        self.base.setdefault(after.id, before.version if before else 0)
        if self.atomic or item.decision == "allow":
            self.overlay.add_step(before, after)


def propose(
    session: RequestContext,
    changes: Sequence[Change],
    *,
    reason: str,
    conversation: str | None = None,
    kind: str = "write",
    quarantine_reasons: tuple[Reason, ...] = (),
    named: bool = False,
    identity: bool = False,
) -> Outcome:
    """Judge changes as one proposal; commit, quarantine or refuse all of them.

    ``quarantine_reasons`` quarantine the proposal even if every gate allows it. ``named`` means that the caller chose
    the ids of new memories. ``identity`` means that the change is a new text of the identity.

    Raises:
        InvalidInput: there is no change.
        NotFound, Conflict, StaleVersion: a change names a memory that is missing or has changed.
        Conflict: the id of a new memory is taken.
    """
    if not changes:
        raise InvalidInput("there is nothing to do: give at least one change")
    reason = reason.strip() or default_reason(changes)
    findings: dict[str, tuple[Finding, ...]] = {}

    def decide(session: RequestContext) -> EvaluatedProposal:
        ask_identity(session)
        draft = EvaluatedProposal(
            quarantine_reasons=quarantine_reasons, personal_data=findings, tainted_by=lowest_trust_read(session)
        )
        draft.overlay.proposes_identity = identity
        for change, known in zip(changes, _apply_independent(session, changes, reason, draft), strict=True):
            try:
                draft.items.append(_evaluate_change(session, change, reason, draft, known))
            except (NotFound, Conflict):
                # The change may build on one that was refused; then that refusal is the answer.
                if all(item.decision != "refuse" for item in draft.items):
                    raise
        if named and all(item.decision != "refuse" for item in draft.items):
            _check_ids_are_free(session, changes)
        _forget_followers(session, draft)
        return draft

    operations = [operation(change) for change in changes]
    return store_proposal(session, decide, operations, conversation=conversation, kind=kind)[0]


def _check_ids_are_free(session: RequestContext, changes: Sequence[Change]) -> None:
    ids = [change.id for change in changes if isinstance(change, Insert)]
    if not ids:
        return
    stored = session.store.records(session.tenant, ids, sees=session.reader.can_see)
    if stored.records or stored.damaged or session.store.ids_by_key(session.tenant, ids, session.reader.scopes):
        raise Conflict("the id of a new memory is taken: make a fresh UUIDv7, or leave the id out")


def propose_each(
    session: RequestContext,
    changes: Sequence[Change],
    *,
    reason: str,
    conversation: str | None = None,
    kind: str = "write",
) -> list[Outcome]:
    """Judge changes one by one and commit the allowed ones together; return the outcomes in order."""
    if not changes:
        return []
    reason = reason.strip() or default_reason(changes)
    findings: dict[str, tuple[Finding, ...]] = {}

    def decide(session: RequestContext) -> EvaluatedProposal:
        ask_identity(session)
        draft = EvaluatedProposal(atomic=False, personal_data=findings, tainted_by=lowest_trust_read(session))
        return _evaluate_each(session, changes, reason, draft)

    operations = [operation(change) for change in changes]
    return store_proposal(session, decide, operations, conversation=conversation, kind=kind)


def _forget_followers(session: RequestContext, draft: EvaluatedProposal) -> None:
    """Add what quotes or sums up the memories that a proposal forgets.

    A proposal that waits for a decision gets the reason only: its approval finds what follows by then.
    """
    retired = [step.after.id for item in draft.items for step in item.steps if step.op == operation(Retire)]
    if not retired or draft.decision(draft.items) not in {"allow", "quarantine"}:
        return
    steps = following_steps(session, followers(session, retired, draft.overlay.records))
    if not steps:
        return
    needs_review = review_reasons(session, steps)
    item = Evaluation(
        decision="quarantine" if needs_review else "allow",
        reasons=(following_reason(steps), *needs_review),
        reason=draft.items[-1].reason,
    )
    draft.items.append(item)
    if draft.decision(draft.items) == "allow":
        item.steps = steps
        for step in steps:
            draft.base.setdefault(step.after.id, step.after.version - 1)
            draft.overlay.add_step(step.before, step.after)


class DryRun:
    """Judge batches of changes like ``propose_each``, and store nothing."""

    _OUTCOMES: Mapping[str, str] = {
        "allow": "committed",
        "quarantine": "quarantined",
        "same": "duplicate",
        "refuse": "refused",
    }

    def __init__(self, session: RequestContext, reason: str) -> None:
        self._session, self._reason = session, reason
        self._draft = EvaluatedProposal(
            atomic=False, tainted_by=lowest_trust_read(session), skip_erasure_check=not session.actor.may_decide
        )

    def evaluate(self, changes: Sequence[Change]) -> list[tuple[str, tuple[Reason, ...]]]:
        """Return the outcome that each change would have, with its reasons."""
        first = len(self._draft.items)
        items = _evaluate_each(self._session, changes, self._reason, self._draft).items[first:]
        return [(self._OUTCOMES[item.decision], item.reasons) for item in items]


def store_proposal(
    session: RequestContext,
    decide: Callable[[RequestContext], EvaluatedProposal],
    operations: Sequence[str],
    *,
    conversation: str | None = None,
    kind: str = "write",
) -> list[Outcome]:
    """Judge a proposal and store the result; return its outcome, or one outcome for each change.

    ``decide`` judges the changes on the state that its session reads.
    """

    def store(transaction: Transaction, draft: EvaluatedProposal) -> list[Outcome]:
        stored: CommitResult | None = None

        def commit(items: Sequence[Evaluation], reasons: tuple[Reason, ...]) -> CommitResult:
            return transaction.commit(
                draft, reason=_reason_of(items), conversation=conversation, kind=kind, reasons=reasons
            )

        def conclude(items: Sequence[Evaluation], operations: Sequence[str]) -> Outcome:
            reasons = (*draft.quarantine_reasons, *(reason for item in items for reason in item.reasons))
            steps = [step for item in items for step in item.steps]
            decision = draft.decision(items)
            if decision == "refuse":
                return _refuse(transaction, reasons, operations)
            if decision == "same":
                return _duplicate(transaction, items[-1], reasons, confirm=draft.atomic)
            if decision == "quarantine":
                base = {step.after.id: draft.base[step.after.id] for step in steps}
                return _quarantine(transaction, steps, base, items[-1].reason, reasons)
            result = stored or commit(items, reasons)
            records = tuple(
                session.reader.own_step(step).after
                for step in steps
                if step.op != FOLLOW or session.reader.can_see(step.after.scope)
            )
            noted = (*reasons, *transaction.notes)
            return Committed(records=records, commit=result.commit, receipt=result.receipt, reasons=noted)

        if draft.atomic:
            return [conclude(draft.items, operations)]
        allowed = [item for item in draft.items if item.decision == "allow"]
        if allowed:
            stored = commit(allowed, tuple(dict.fromkeys(reason for item in allowed for reason in item.reasons)))
        return [conclude([item], [name]) for item, name in zip(draft.items, operations, strict=True)]

    if not session.policy.enabled:
        # Every change is refused, so the store is not needed.
        return store(Transaction(session, _NO_WRITER), decide(session))
    decide_first = session.asks_models or len(operations) > EVALUATE_FIRST_FROM
    outcomes = transact(session, decide, store, decide_first=decide_first, on_snapshot=True)
    if any(reason.gate == "erased" for outcome in outcomes for reason in outcome.reasons):
        guesses.add_guesses(len(operations))
    return outcomes


def repeated_outcome(session: RequestContext, key: IdempotencyKey) -> Outcome | None:
    """Return the outcome of the write that committed under an idempotency key; None if there is no such commit.

    Raises:
        IdempotencyReused: another request made the commit under this key.
    """
    stored = session.store.commit_of_request(session.tenant, key)
    if stored is None:
        return None
    commit_id, same = stored
    if not same:
        raise IdempotencyReused
    own = session.reader.own_commit(commit_id)
    if own is None:
        return None
    view, receipt = own[0], receipt_from(own[1])
    records = tuple(step.after for step in view.steps)
    if receipt.kind == "duplicate":
        existing = session.reader.existing(records[0])
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
    session: RequestContext, changes: Sequence[Change], reason: str, draft: EvaluatedProposal
) -> EvaluatedProposal:
    """Judge changes one by one, each on the state that the earlier ones would leave."""
    for change, known in zip(changes, _apply_independent(session, changes, reason, draft), strict=True):
        try:
            evaluation = _evaluate_change(session, change, reason, draft, known)
        except (NotFound, Unauthorised) as exc:
            # A change that builds on a missing memory is refused alone; the rest of the batch goes on.
            detail = "it builds on a memory that does not exist" if isinstance(exc, NotFound) else str(exc)
            evaluation = _refused(Reason(gate="shape", code="unknown_memory", detail=detail))
        draft.items.append(evaluation)
    return draft


def _apply_independent(
    session: RequestContext, changes: Sequence[Change], reason: str, draft: EvaluatedProposal
) -> list[_AppliedChange | Evaluation | None]:
    """Apply the changes that build on no memory, so that one query finds the duplicates of all; None for the others."""
    independent = [isinstance(change, Insert) and change.key is None and not change.derived_from for change in changes]
    applied: list[_AppliedChange | Evaluation | None] = [None] * len(changes)
    if sum(independent) > 1:
        applied = [
            _apply_change(session, change, reason, draft) if alone else None
            for change, alone in zip(changes, independent, strict=True)
        ]
        prefetch(session, [item[0].after for item in applied if isinstance(item, tuple)], draft.overlay)
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


def _unseen_key(session: RequestContext, scope: str) -> Reason | None:
    """Return why a key may not be used in a scope; the answer may not depend on whether the key is taken there."""
    return None if session.reader.can_see(scope) else _UNSEEN_KEY


def _with_scope(session: RequestContext, change: Change) -> Change:
    """Return a change; a new memory without a scope is at the handle's."""
    return replace(change, scope=session.scope) if isinstance(change, Insert) and change.scope is UNSET else change


def _outside_rights(session: RequestContext, change: Change) -> Reason | None:
    """Return why a handle may not write to the scope that a change names, without a read of that scope."""
    if not isinstance(change, Insert | Move) or change.scope is UNSET or not is_scope(change.scope):
        return None
    outside = outside_rights(session.scope, session.reader.write_scope(), change.scope)
    if outside is None and isinstance(change, Insert) and change.key is not None:
        return _unseen_key(session, change.scope)
    return outside


def _with_plain_fields(session: RequestContext, change: Change) -> Change:
    """Return a change with the consent of the handle, and with names and keys in the form that is stored."""
    if session.consent and isinstance(change, TEXT_CHANGES):
        change = replace(change, consent=True)
    if isinstance(change, Insert | Replace):
        change = with_plain_names(change)
    if isinstance(change, Insert | Move) and type(change.key) is str:
        change = replace(change, key=plain_key(change.key))
    return change


#: One change with the record that it would make, before the gates run, and the context that it was applied in.
_AppliedChange = tuple[GateInput, ChangeContext]


def _apply_change(
    session: RequestContext, change: Change, reason: str, draft: EvaluatedProposal
) -> _AppliedChange | Evaluation:
    change = _with_scope(session, change)
    broken = validation_error(change, reason, session.policy)
    if broken:
        return _refused(*broken)
    outside = _outside_rights(session, change)
    if outside is not None:
        return _refused(outside)
    change = _with_plain_fields(session, change)
    if isinstance(change, Supersede):
        # The replacement may turn out to be a duplicate of a stored memory.
        change = replace(change, by=draft.overlay.renamed.get(change.by, change.by))
    before = record_before(session, change, draft.overlay)
    if isinstance(change, Supersede):
        change = replace(change, by=newest_record(session, change.by, draft.overlay).id)
    change_context = session.change_context(parents=parents_of(session, change, draft.overlay), heard=draft.tainted_by)
    try:
        after = apply(change, before, change_context)
    except InvalidInput as exc:
        return _refused(Reason(gate="shape", code="unknown_name", detail=str(exc)))
    if (isinstance(change, Insert) and before is None and change.derived_from) or isinstance(change, Restore):
        left = without_forgotten_sources(session, [after], own=draft.overlay.records).get(after.id, after)
        if left is None:
            return _refused(_FORGOTTEN_SOURCE)
        after = left
    broken = oversized(after, session.policy)
    if broken:
        return _refused(*broken)
    if before is None or not has_same_text(before, after):
        known = _known_trust(session, change, after, draft)
        after = after if known is None else replace(after, trust=known)
    if isinstance(change, Move | Restore) and after.key is not None and (unseen := _unseen_key(session, after.scope)):
        return _refused(unseen)
    blob_refusal = None if after.blob is None else blobs.refusal_reason(session, before, after)
    if blob_refusal is not None:
        return _refused(blob_refusal)
    return case_of(session, change, before, after, reason=reason), change_context


def _known_trust(session: RequestContext, change: Change, after: Record, draft: EvaluatedProposal) -> Trust | None:
    """Return the trust that a new text has because it is known with less; None for a person's text and a new one."""
    if not isinstance(change, TEXT_CHANGES) or session.actor.kind in PEOPLE:
        return None
    known = trust_of_known_text(session, after, draft.overlay)
    if known is not None:
        draft.lowered.setdefault(after.id, after.trust)
    return known


def _evaluate_change(
    session: RequestContext,
    change: Change,
    reason: str,
    draft: EvaluatedProposal,
    applied: _AppliedChange | Evaluation | None = None,
) -> Evaluation:
    applied = applied or _apply_change(session, change, reason, draft)
    if isinstance(applied, Evaluation):
        return applied
    case, change_context = applied
    change, before, proposed = case.change, case.before, case.after
    gates = evaluate_case(session, case, draft.overlay, draft.personal_data)
    masked = gates.case.after
    if masked.text != proposed.text and (lower := _known_trust(session, change, masked, draft)) is not None:
        proposed = replace(proposed, trust=lower)
        gates = evaluate_case(session, dataclasses.replace(case, after=proposed), draft.overlay, draft.personal_data)
    after, decision, existing = gates.case.after, gates.decision, gates.existing
    after = after if before is None else _signed_as_before(before, after, change)
    result = Evaluation(decision=decision, reasons=tuple(gates.reasons), reason=gates.case.reason, existing=existing)
    if proposed.heard is not None and isinstance(change, TEXT_CHANGES):
        detail = f"its writer had read something of lower trust: written after reading {proposed.heard.label}"
        result.reasons = (*result.reasons, Reason(gate="authority", code="after_reading", detail=detail))
    if proposed.id in draft.lowered and decision != "same" and isinstance(change, TEXT_CHANGES):
        detail = f"the same text is known with less trust: it has the trust `{proposed.trust.label}`"
        result.reasons = (*result.reasons, Reason(gate="authority", code="known_text", detail=detail))
    if decision in {"refuse", "same"}:
        if isinstance(change, Insert) and existing is not None:
            draft.overlay.renamed[change.id] = existing.id
        if decision == "same" and existing is not None:
            _confirm_existing(session, gates, existing, draft, result)
        return result
    not_erased = draft.overlay.not_erased.get(proposed.id) is after
    erased = None if not_erased or draft.skip_erasure_check else blocked_by_erasure(session, proposed, after)
    if erased is not None:
        return _refused(erased)
    if isinstance(change, Replace | Move) and before is not None:
        unchanged = {name: getattr(before, name) for name in ("version", "updated_at", "reinforced_at")}
        if replace(after, **unchanged) == before:
            result.decision, result.existing, result.confirms = "same", before, False
            result.reasons = (Reason(gate="shape", code="unchanged", detail=_UNCHANGED_DETAIL),)
            return result
    if decision == "quarantine":
        after = _when_approved(gates.case, before)
    view = gates.view
    if view is not None and view.spare is not None and makes_room(gates.case, view, session.policy):
        archive = Archive(id=view.spare.id)
        draft.add(result, archive, view.spare, apply(archive, view.spare, change_context))
    if isinstance(change, Insert) and change.vector is not None and session.embedder is not None:
        # Used only if no gate rewrites the text; see ``StagedState.features``.
        draft.overlay.vectors[after.id] = (change.text, session.embedder.id, pack_vector(change.vector))
    draft.add(result, change, before, after)
    return result


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
    session: RequestContext, gates: pipeline.GateResult, existing: Record, draft: EvaluatedProposal, result: Evaluation
) -> None:
    """Let a repeated statement confirm a memory of equal or lower trust, and add its source and evidence."""
    case, after = gates.case, gates.case.after
    after = replace(after, trust=draft.lowered.get(after.id, after.trust))
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
    stronger = reinforced_by(existing, after, change, session.change_context())
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
    draft.add(result, added, existing, again.case.after)


def _refuse(transaction: Transaction, reasons: tuple[Reason, ...], operations: Sequence[str]) -> Refused:
    enabled = transaction.session.policy.enabled
    receipt = transaction.receipt("refusal", {"operations": list(operations)}, reasons) if enabled else None
    return Refused(receipt=receipt, reasons=reasons)


def _duplicate(transaction: Transaction, item: Evaluation, reasons: tuple[Reason, ...], *, confirm: bool) -> Duplicate:
    session, record, commit = transaction.session, item.existing, None
    assert record is not None
    lasting = record.kind is not Kind.EVENT and record.tier is not Tier.CORE
    if confirm and item.confirms and lasting and session.actor.kind is not ActorKind.IMPORTER:
        change = Reinforce(id=record.id)
        after = apply(change, record, session.change_context())
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
    return Duplicate(records=(session.reader.existing(record),), receipt=receipt, reasons=reasons, commit=commit)


def _queue_is_full(session: RequestContext) -> bool:
    """Whether an agent or user has so many pending proposals that one more would only bury them."""
    if session.actor.may_decide or session.actor.kind not in {ActorKind.AGENT, ActorKind.USER}:
        return False
    now, limit = session.clock.now(), session.policy.pending_limit
    proposals = session.store.documents(Proposal, session.tenant)
    pending = proposals.count(state="pending", actor=session.actor, live_at=to_micros(now), most=limit)
    return pending >= limit


def _quarantine(
    transaction: Transaction, steps: Sequence[Step], base: dict[str, int], reason: str, reasons: tuple[Reason, ...]
) -> Quarantined | Refused:
    session = transaction.session
    if _queue_is_full(session):
        detail = f"{session.policy.pending_limit} of your proposals are pending: have some of them decided first"
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
    visible = replace(item, steps=tuple(session.reader.own_step(step) for step in item.steps))
    return Quarantined(item=visible, receipt=receipt, reasons=reasons)
