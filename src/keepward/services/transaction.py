"""The single write path: decide on a state of the store, then store the decision in a transaction on that state.

Proposals, approvals, rollbacks, jobs and trainings all end in ``Transaction.commit``.
Nothing slow runs inside a transaction: models are asked beforehand. If another commit comes in between, the decision is
made again while no other process can write, with the models' earlier answers for the same texts.
A commit and its receipt become visible together.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from datetime import datetime
from operator import attrgetter
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol, TypeVar

from msgspec.structs import replace

from keepward import idempotency
from keepward.core.blob import StoredBlob
from keepward.core.commit import Commit, CommitDetails, Head, Reason, Receipt, ReceiptKind, Step
from keepward.core.memory import Record, Status
from keepward.errors import Conflict, ModelUnavailable, StoreUnavailable
from keepward.ports.store import Features, PendingCommit
from keepward.services.recorded_reads import taint_fields
from keepward.services.request_context import ModelCallInTransaction, RequestContext
from keepward.services.search.features import (
    FEATURE_FIELDS,
    answered_questions,
    feature_fields_of,
    known_embedder_id,
    text_features,
    with_vectors,
)
from keepward.storage.writer import UnitOfWork

logger = logging.getLogger(__name__)

#: Fields that recall uses: if one of them changes, the stored features are recomputed.
_search_fields_of = attrgetter(
    *(name for name in FEATURE_FIELDS if name != "kind"), "scope", "tier", "sensitivity", "blob"
)
#: A memory id and the fields that a model is asked about.
_SearchedText = tuple[Any, ...]


def _searched_text(record: Record) -> _SearchedText:
    return (record.id, *feature_fields_of(record))


class Decision(Protocol):
    """The part of a decision that a transaction needs."""

    @property
    def steps(self) -> Sequence[Step]:
        """The changes in order; empty if there is nothing to write."""
        ...

    def features(self, record: Record) -> Features:
        """Return what recall needs of a record, except vectors that take a slow model."""
        ...


@dataclass(frozen=True, slots=True)
class StepList:
    """A decision that consists of steps only."""

    steps: Sequence[Step] = ()

    def features(self, record: Record) -> Features:
        """Return what recall needs of a record without a model; see ``text_features``."""
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

    context: RequestContext
    writer: UnitOfWork
    #: Embeddings that were computed before the transaction.
    vectors: Mapping[_SearchedText, Features] = field(default_factory=dict)
    #: Why memories are stored without vectors; every receipt and outcome of a commit says so.
    notes: tuple[Reason, ...] = ()
    #: Whether the transaction has a commit.
    wrote: bool = False

    def receipt(
        self, kind: ReceiptKind, facts: Mapping[str, Any], reasons: tuple[Reason, ...] = (), **fields: Any
    ) -> Receipt:
        """Store and return a receipt of what this handle did; ``fields`` are values that are known already."""
        receipt = receipt_of(self.context, kind, facts, reasons, **fields)
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

        ``base`` names the versions that the steps build on, if they were decided on another state.

        Raises:
            Conflict: a version has changed, or the blob of a memory is not stored any more.
        """
        context, steps = self.context, decision.steps
        if not _blobs_exist(self.writer, context, steps):
            raise Conflict("the blob of a memory is not stored any more; upload the bytes again")
        now = context.clock.now()
        commit_id = context.ids.new_id(now)
        extra = dict(details or {})
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
            **{name: list(value) if isinstance(value, tuple) else value for name, value in extra.items()},
            **context.credential,
        }
        reasons = (*reasons, *self.notes)
        receipt = receipt_of(context, receipt_kind, facts, reasons, id=commit_id, at=now, head="-")
        pending = PendingCommit(
            commit_id=commit_id,
            at=now,
            kind=kind,
            actor_kind=context.actor.kind.value,
            details=CommitDetails(
                actor=context.actor.label,
                reason=reason,
                receipt=commit_id,
                policy=context.policy.version,
                session=conversation,
                **extra,
            ),
            steps=tuple(steps),
            features=tuple(self._new_features(decision, step) for step in steps),
            base=base or {},
            salts=tuple(context.ids.salt() for _ in range(len(steps) + 1)),
            receipt=receipt,
            idempotency_key=None if self.wrote else idempotency.unused_key(),
        )
        commit = self.writer.append(context.tenant, pending)
        context.engine.uses.write(self.writer, context.tenant)
        self.wrote = True
        return CommitResult(commit=commit, receipt=replace(receipt, head=Head(seq=commit.seq, hash=commit.hash).name))

    def _new_features(self, decision: Decision, step: Step) -> Features | None:
        """Return the features that a step changes, nothing for an erased memory; None if it changes none."""
        if step.after.status is Status.ERASED:
            return Features(terms=b"")
        if not _changes_search_fields(step):
            return None
        features = decision.features(step.after)
        embedded = self.vectors.get(_searched_text(step.after)) if self.vectors else None
        if embedded is None:
            return features
        return replace(
            features, model=embedded.model, recipe=embedded.recipe, vectors=embedded.vectors, units=embedded.units
        )


def transact(
    context: RequestContext,
    decide: Callable[[RequestContext], _Decision],
    apply: Callable[[Transaction, _Decision], _Result],
    *,
    decide_first: bool | None = None,
    on_snapshot: bool = False,
    early_result: Callable[[_Decision], _Result | None] = lambda _: None,
) -> _Result:
    """Decide, and store the decision in one transaction on the same state.

    ``decide`` reads through the context that it gets. ``decide_first`` also decides before the transaction begins; by
    default if a slow model is needed. ``on_snapshot`` makes that first decision on one snapshot. If ``early_result``
    returns a result for a decision, nothing is written.
    """
    decision, head, embedded = None, None, _Embedded()
    if decide_first or (decide_first is None and context.asks_models):
        # A model may be slow, so that no snapshot waits for one.
        shares = on_snapshot or not context.asks_models
        with context.store.read_snapshot(context.tenant) if shares else nullcontext():
            head = context.store.head(context.tenant)
            decision = decide(context)
        result = early_result(decision)
        if result is not None:
            return result
        embedded = _embed_changes(context, decision)
    try:
        with context.store.write() as writer:
            inside = context.for_transaction(writer)
            changed = decision is not None and writer.head(context.tenant) != head
            if decision is None or changed or not _blobs_exist(writer, context, decision.steps):
                decision = decide(inside)
                if context.embeds_inside:
                    embedded = _embed_changes(inside, decision)
            transaction = Transaction(inside, writer, *embedded)
            early = early_result(decision)
            result = apply(transaction, decision) if early is None else early
    except ModelCallInTransaction:
        # Another commit brought a text that the redactor has not seen: ask it, then start again.
        return transact(context, decide, apply, decide_first=True, on_snapshot=on_snapshot, early_result=early_result)
    if transaction.wrote:
        if (key := idempotency.unused_key()) is not None:
            key.used = True
        context.engine.taint_of(context.tenant).skip_own_write(writer.writes(context.tenant))
        context.engine.wake(wrote=True)
    return result


def store_steps(
    context: RequestContext, steps: Sequence[Step], *, also: Callable[[UnitOfWork], None] | None = None, **options: Any
) -> CommitResult:
    """Commit given steps; ``also`` writes more in the same transaction. ``options`` are those of ``commit``.

    Raises:
        Conflict: a memory has changed since the versions of ``base``.
    """

    def store(transaction: Transaction, decision: StepList) -> CommitResult:
        stored = transaction.commit(decision, **options)
        if also is not None:
            also(transaction.writer)
        return stored

    return transact(context, lambda _: StepList(steps), store)


def receipt_of(
    context: RequestContext,
    kind: ReceiptKind,
    facts: Mapping[str, Any],
    reasons: Iterable[Reason] = (),
    *,
    id: str | None = None,  # noqa: A002 - the field's name
    at: datetime | None = None,
    head: str | None = None,
) -> Receipt:
    """Return a receipt of what a handle did; without ``head`` it names the present head."""
    at = at or context.clock.now()
    return Receipt(
        id=id or context.ids.new_id(at),
        tenant=context.tenant,
        kind=kind,
        at=at,
        actor=context.actor.label,
        policy=context.policy.version,
        head=head or context.store.head(context.tenant).name,
        reasons=tuple(reasons),
        facts=dict(facts),
    )


def save_read_receipt(
    context: RequestContext,
    kind: ReceiptKind,
    facts: Mapping[str, Any],
    *,
    delivered: Sequence[Record],
    notes: Iterable[str],
    head: str,
    also: Callable[[UnitOfWork], None] = lambda _: None,
) -> tuple[Receipt | None, tuple[str, ...]]:
    """Store the receipt of a read and the counted uses; return it, or None and a note why it was not stored.

    ``delivered`` are the records that the reader got; ``also`` writes more in the same transaction.
    """
    if not context.policy.enabled:
        return None, ("the receipt was not stored: memory is switched off by policy",)
    reasons = [Reason(gate="recall", code="note", detail=note) for note in notes]
    receipt = receipt_of(context, kind, {**facts, **taint_fields(context, delivered)}, reasons, head=head)
    try:
        # A reader gets its answer without a receipt rather than late.
        with context.store.write(brief=True) as writer:
            # First, so that the present counts come with the row of the tenant.
            context.engine.uses.write(writer, context.tenant)
            also(writer)
            writer.put_receipt(receipt)
    except StoreUnavailable:
        return None, ("the receipt was not stored: the store cannot be written",)
    return receipt, ()


def _blobs_exist(writer: UnitOfWork, context: RequestContext, steps: Sequence[Step]) -> bool:
    """Whether every newly referenced blob is stored: deleting a blob does not move the head."""
    changed = [step.after for step in steps if step.before is None or step.before.blob != step.after.blob]
    blobs = {record.blob for record in changed if record.blob is not None}
    return not blobs or len(writer.documents(StoredBlob, context.tenant).rows(ids=blobs)) == len(blobs)


class _Embedded(NamedTuple):
    """Vectors by text, and why some are missing."""

    vectors: Mapping[_SearchedText, Features] = MappingProxyType({})
    notes: tuple[Reason, ...] = ()


def _embed_changes(context: RequestContext, decision: Decision) -> _Embedded:
    """Embed, in one batch, every memory whose searchable fields change."""
    if context.embedder is None:
        return _Embedded()
    records = [step.after for step in decision.steps if _changes_search_fields(step)]
    questions = answered_questions(records, lambda name: context.store.session_tail(context.tenant, name))
    embedded = [decision.features(record) for record in records]
    notes: tuple[Reason, ...] = ()
    try:
        embedded = with_vectors(context.embedder, records, embedded, questions)
    except ModelUnavailable as exc:
        model = known_embedder_id(context.embedder)
        logger.warning("embedding failed: %s", exc, extra={"action": "embedding_failed", "model": model})
        detail = f"stored without a vector and found by words ({exc}); `keepward reindex` adds it later"
        notes = (Reason(gate="recall", code="no_vector", detail=detail),)
    vectors = {
        _searched_text(record): features
        for record, features in zip(records, embedded, strict=True)
        if features.model is not None
    }
    return _Embedded(vectors, notes)


def _changes_search_fields(step: Step) -> bool:
    before, after = step.before, step.after
    if before is None or after.status is not Status.ACTIVE:
        return before is None
    return before.status is not Status.ACTIVE or _search_fields_of(before) != _search_fields_of(after)
