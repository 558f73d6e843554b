"""The one door to write: decide on a state, and store what was decided in a transaction on that very state.

Invariants
(1) Nobody else writes memory: proposals, approvals, rollbacks, jobs and trainings all end in ``Transaction.commit``.
(2) Nothing slow happens inside: models are asked on what is decided beforehand. Where another commit came in between,
    it is decided once more, with what the models said of the same texts, while nobody else can write.
(3) A commit and its receipts are visible together, or not at all.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from datetime import datetime
from operator import attrgetter
from typing import Any, Protocol, TypeVar

from msgspec.structs import replace

from keepward import idempotency
from keepward.core.blob import StoredBlob
from keepward.core.commit import Commit, CommitDetails, Head, Reason, Receipt, ReceiptKind, Step
from keepward.core.memory import Record, Status
from keepward.errors import Conflict, StoreUnavailable
from keepward.ports.store import Features, PendingCommit
from keepward.services.gate_context import FEATURE_FIELDS, feature_fields_of
from keepward.services.request_context import ModelCallInTransaction, RequestContext, taint_fields
from keepward.services.search_features import answered_questions, text_features, with_vectors
from keepward.storage.writer import UnitOfWork

#: Fields that recall finds a memory by: where one of them changes, what is kept of it for recall is made anew.
_search_fields_of = attrgetter(
    *(name for name in FEATURE_FIELDS if name != "kind"), "scope", "tier", "sensitivity", "blob"
)
#: A memory, and what of it a model is asked about.
_SearchedText = tuple[Any, ...]


def _searched_text(record: Record) -> _SearchedText:
    return (record.id, *feature_fields_of(record))


class Decision(Protocol):
    """What is to be stored, as far as a transaction has to know it."""

    @property
    def steps(self) -> Sequence[Step]:
        """What changes, in order; empty where nothing does."""
        ...

    def features(self, record: Record) -> Features:
        """Return what recall needs of a record, without what a model has to be asked for."""
        ...


@dataclass(frozen=True, slots=True)
class StepList:
    """A decision that is no more than its steps."""

    steps: Sequence[Step] = ()

    def features(self, record: Record) -> Features:
        """Return what recall needs of a record; see ``features.words``."""
        return text_features(record)


_Decision = TypeVar("_Decision", bound=Decision)
_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitResult:
    """A commit and its receipt."""

    commit: Commit
    receipt: Receipt


@dataclass(slots=True)
class Transaction:
    """One open transaction of one handle; see ``transact``."""

    session: RequestContext
    writer: UnitOfWork
    #: What models said beforehand.
    vectors: Mapping[_SearchedText, Features] = field(default_factory=dict)
    #: Whether there is a commit.
    wrote: bool = False
    #: What is done once the transaction is durable.
    afterwards: list[Callable[[], None]] = field(default_factory=list)

    def receipt(
        self, kind: ReceiptKind, facts: Mapping[str, Any], reasons: tuple[Reason, ...] = (), **fields: Any
    ) -> Receipt:
        """Keep a receipt of what this handle did; ``fields`` are those that are known already."""
        receipt = receipt_of(self.session, kind, facts, reasons, **fields)
        self.writer.put_receipt(receipt)
        return receipt

    def commit(
        self,
        decision: Decision,
        *,
        reason: str,
        kind: str,
        conversation: str | None = None,
        reasons: tuple[Reason, ...] = (),
        details: Mapping[str, Any] | None = None,
        receipt_kind: ReceiptKind = "commit",
        base: Mapping[str, int] | None = None,
    ) -> CommitResult:
        """Write the steps of a decision as one commit with its receipt.

        ``base`` names the versions that they build on, where they were decided on another state.

        Raises:
            Conflict: a version has moved on; or what a memory refers to is no longer kept.
        """
        session, steps = self.session, decision.steps
        if not _blobs_exist(self.writer, session, steps):
            raise Conflict("what a memory refers to is no longer kept; put the bytes again")
        now = session.clock.now()
        commit_id = session.ids.new_id(now)
        more = dict(details or {})
        facts = {
            "commit": commit_id,
            "targets": [
                {
                    "id": step.after.id,
                    "op": step.op,
                    "tier": step.after.tier.value,
                    "key": step.after.key,
                    "from_version": step.before.version if step.before else 0,
                    "to_version": step.after.version,
                }
                for step in steps
            ],
            **{name: list(value) if isinstance(value, tuple) else value for name, value in more.items()},
            **session.credential,
        }
        receipt = receipt_of(session, receipt_kind, facts, reasons, id=commit_id, at=now, head="-")
        stage = PendingCommit(
            commit_id=commit_id,
            at=now,
            kind=kind,
            actor_kind=session.actor.kind.value,
            details=CommitDetails(
                actor=session.actor.label,
                reason=reason,
                receipt=commit_id,
                policy=session.policy.version,
                session=conversation,
                **more,
            ),
            steps=tuple(steps),
            features=tuple(self._features(decision, step) if _changes_search_fields(step) else None for step in steps),
            base=base or {},
            salts=tuple(session.ids.salt() for _ in range(len(steps) + 1)),
            receipt=receipt,
            idempotency_key=None if self.wrote else idempotency.unused_key(),
        )
        commit = self.writer.append(session.tenant, stage)
        session.engine.write_uses(self.writer)
        self.wrote = True
        return CommitResult(commit=commit, receipt=replace(receipt, head=Head(seq=commit.seq, hash=commit.hash).name))

    def _features(self, decision: Decision, step: Step) -> Features:
        found = decision.features(step.after)
        known = self.vectors.get(_searched_text(step.after)) if self.vectors else None
        if known is None:
            return found
        return dataclasses.replace(
            found, model=known.model, recipe=known.recipe, vectors=known.vectors, units=known.units
        )


def transact(
    session: RequestContext,
    decide: Callable[[RequestContext], _Decision],
    apply: Callable[[Transaction, _Decision], _Result],
    *,
    decide_first: bool | None = None,
    on_snapshot: bool = False,
    early_result: Callable[[_Decision], _Result | None] = lambda _: None,
) -> _Result:
    """Decide, and carry out what was decided in one transaction on the state on which it was decided.

    ``decide`` reads by the session that it is given. ``beforehand`` also decides before the transaction begins: by
    default where a model is to be asked (2); ``together`` on one snapshot. What ``idle`` returns of a decision is the
    answer, and nothing is written.
    """
    decision, head, vectors = None, None, dict[_SearchedText, Features]()
    if decide_first or (decide_first is None and session.asks_models):
        with session.store.read_snapshot(session.tenant) if on_snapshot else nullcontext():
            head = session.store.head(session.tenant)
            decision = decide(session)
        answer = early_result(decision)
        if answer is not None:
            return answer
        vectors = _embed_changes(session, decision)
    try:
        with session.store.write() as writer:
            inside = session.for_transaction(writer)
            moved = decision is not None and writer.head(session.tenant) != head
            if decision is None or moved or not _blobs_exist(writer, session, decision.steps):
                decision = decide(inside)
                if session.embeds_inside:
                    vectors = _embed_changes(inside, decision)
            transaction = Transaction(inside, writer, vectors)
            answer = early_result(decision)
            result = apply(transaction, decision) if answer is None else answer
    except ModelCallInTransaction:
        # Another commit made a text that the redactor has not seen: it is asked, and it begins anew.
        return transact(session, decide, apply, decide_first=True, on_snapshot=on_snapshot, early_result=early_result)
    if transaction.wrote:
        if (key := idempotency.unused_key()) is not None:
            key.used = True
        handed = session.engine.handed.get(session.tenant)
        if handed is not None and handed.writes == writer.writes(session.tenant) - 1:
            handed.writes += 1
        session.engine.wake(wrote=True)
    for act in transaction.afterwards:
        act()
    return result


def store_steps(
    session: RequestContext, steps: Sequence[Step], *, also: Callable[[UnitOfWork], None] | None = None, **options: Any
) -> CommitResult:
    """Write steps that were decided on the versions of ``base``; ``also`` writes more in the same transaction.

    Raises:
        Conflict: one of them has moved on.
    """

    def carry_out(transaction: Transaction, decision: StepList) -> CommitResult:
        stored = transaction.commit(decision, **options)
        if also is not None:
            also(transaction.writer)
        return stored

    return transact(session, lambda _: StepList(steps), carry_out)


def receipt_of(
    session: RequestContext,
    kind: ReceiptKind,
    facts: Mapping[str, Any],
    reasons: Iterable[Reason] = (),
    *,
    id: str | None = None,  # noqa: A002 - the field's name
    at: datetime | None = None,
    head: str | None = None,
) -> Receipt:
    """Return a receipt of what a handle did, at the present head where none is named."""
    at = at or session.clock.now()
    return Receipt(
        id=id or session.ids.new_id(at),
        tenant=session.tenant,
        kind=kind,
        at=at,
        actor=session.actor.label,
        policy=session.policy.version,
        head=head or session.store.head(session.tenant).name,
        reasons=tuple(reasons),
        facts=dict(facts),
    )


def save_read_receipt(
    session: RequestContext,
    kind: ReceiptKind,
    facts: Mapping[str, Any],
    *,
    delivered: Sequence[Record],
    notes: Iterable[str],
    head: str,
    also: Callable[[UnitOfWork], None] = lambda _: None,
) -> tuple[Receipt | None, tuple[str, ...]]:
    """Keep the receipt of a read, and the uses that were counted; return it, or None and a note why it was not kept.

    ``handed`` is what the reader was given; ``also`` writes more in the same transaction.
    """
    if not session.policy.enabled:
        return None, ("the receipt was not kept: memory is switched off by policy",)
    reasons = [Reason(gate="recall", code="note", detail=note) for note in notes]
    receipt = receipt_of(session, kind, {**facts, **taint_fields(session, delivered)}, reasons, head=head)
    try:
        # Whoever reads waits for the answer, and gets it without a receipt rather than late.
        with session.store.write(brief=True) as writer:
            also(writer)
            writer.put_receipt(receipt, counts=not session.inspects)
            session.engine.write_uses(writer)
    except StoreUnavailable:
        return None, ("the receipt was not kept: the store cannot be written",)
    return receipt, ()


def _blobs_exist(writer: UnitOfWork, session: RequestContext, steps: Sequence[Step]) -> bool:
    """Whether every blob is kept that memories refer to from now on: one that goes moves no head."""
    changed = [step.after for step in steps if step.before is None or step.before.blob != step.after.blob]
    blobs = {record.blob for record in changed if record.blob is not None}
    return not blobs or len(writer.documents(StoredBlob, session.tenant).rows(ids=blobs)) == len(blobs)


def _embed_changes(session: RequestContext, decision: Decision) -> dict[_SearchedText, Features]:
    """Ask the embedder about every memory whose searchable content changes, in one batch."""
    if session.embedder is None:
        return {}
    records = [step.after for step in decision.steps if _changes_search_fields(step)]
    asked = answered_questions(records, lambda name: session.store.session_tail(session.tenant, name))
    found = with_vectors(session.embedder, records, [decision.features(record) for record in records], asked)
    return {_searched_text(record): each for record, each in zip(records, found, strict=True) if each.model is not None}


def _changes_search_fields(step: Step) -> bool:
    before, after = step.before, step.after
    if before is None or after.status is not Status.ACTIVE:
        return before is None
    return before.status is not Status.ACTIVE or _search_fields_of(before) != _search_fields_of(after)
