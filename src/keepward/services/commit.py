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
from keepward.core.blob import Kept
from keepward.core.commit import Commit, CommitDetails, Head, Reason, Receipt, ReceiptKind, Step
from keepward.core.memory import Record, Status
from keepward.errors import Conflict, StoreUnavailable
from keepward.ports.store import Features, Stage
from keepward.services.features import embedded, questions, words
from keepward.services.look import SPOKEN, spoken
from keepward.services.session import Session, Unasked, handed_facts
from keepward.storage.writer import Writer

#: Fields that recall finds a memory by: where one of them changes, what is kept of it for recall is made anew.
_sought = attrgetter(*(name for name in SPOKEN if name != "kind"), "scope", "tier", "sensitivity", "blob")
#: A memory, and what of it a model is asked about.
_Searched = tuple[Any, ...]


def _searched(record: Record) -> _Searched:
    return (record.id, *spoken(record))


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
class Steps:
    """A decision that is no more than its steps."""

    steps: Sequence[Step] = ()

    def features(self, record: Record) -> Features:
        """Return what recall needs of a record; see ``features.words``."""
        return words(record)


_Decision = TypeVar("_Decision", bound=Decision)
_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """A commit and its receipt."""

    commit: Commit
    receipt: Receipt


@dataclass(slots=True)
class Transaction:
    """One open transaction of one handle; see ``transact``."""

    session: Session
    writer: Writer
    #: What models said beforehand.
    vectors: Mapping[_Searched, Features] = field(default_factory=dict)
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
    ) -> Stored:
        """Write the steps of a decision as one commit with its receipt.

        ``base`` names the versions that they build on, where they were decided on another state.

        Raises:
            Conflict: a version has moved on; or what a memory refers to is no longer kept.
        """
        session, steps = self.session, decision.steps
        if not _attachable(self.writer, session, steps):
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
        stage = Stage(
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
            features=tuple(self._features(decision, step) if _searchable(step) else None for step in steps),
            base=base or {},
            salts=tuple(session.ids.salt() for _ in range(len(steps) + 1)),
            receipt=receipt,
            idempotency_key=None if self.wrote else idempotency.unused(),
        )
        commit = self.writer.append(session.tenant, stage)
        session.engine.write_uses(self.writer)
        self.wrote = True
        return Stored(commit=commit, receipt=replace(receipt, head=Head(seq=commit.seq, hash=commit.hash).name))

    def _features(self, decision: Decision, step: Step) -> Features:
        found = decision.features(step.after)
        known = self.vectors.get(_searched(step.after)) if self.vectors else None
        if known is None:
            return found
        return dataclasses.replace(
            found, model=known.model, recipe=known.recipe, vectors=known.vectors, units=known.units
        )


def transact(
    session: Session,
    decide: Callable[[Session], _Decision],
    carry_out: Callable[[Transaction, _Decision], _Result],
    *,
    beforehand: bool | None = None,
    together: bool = False,
    idle: Callable[[_Decision], _Result | None] = lambda _: None,
) -> _Result:
    """Decide, and carry out what was decided in one transaction on the state on which it was decided.

    ``decide`` reads by the session that it is given. ``beforehand`` also decides before the transaction begins: by
    default where a model is to be asked (2); ``together`` on one snapshot. What ``idle`` returns of a decision is the
    answer, and nothing is written.
    """
    decision, head, vectors = None, None, dict[_Searched, Features]()
    if beforehand or (beforehand is None and session.asks_models):
        with session.store.together(session.tenant) if together else nullcontext():
            head = session.store.head(session.tenant)
            decision = decide(session)
        answer = idle(decision)
        if answer is not None:
            return answer
        vectors = _vectors(session, decision)
    try:
        with session.store.write() as writer:
            inside = session.inside(writer)
            moved = decision is not None and writer.head(session.tenant) != head
            if decision is None or moved or not _attachable(writer, session, decision.steps):
                decision = decide(inside)
                if session.embeds_inside:
                    vectors = _vectors(inside, decision)
            transaction = Transaction(inside, writer, vectors)
            answer = idle(decision)
            result = carry_out(transaction, decision) if answer is None else answer
    except Unasked:
        # Another commit made a text that the redactor has not seen: it is asked, and it begins anew.
        return transact(session, decide, carry_out, beforehand=True, together=together, idle=idle)
    if transaction.wrote:
        if (key := idempotency.unused()) is not None:
            key.used = True
        handed = session.engine.handed.get(session.tenant)
        if handed is not None and handed.writes == writer.writes(session.tenant) - 1:
            handed.writes += 1
        session.engine.wake(wrote=True)
    for act in transaction.afterwards:
        act()
    return result


def store_steps(
    session: Session, steps: Sequence[Step], *, also: Callable[[Writer], None] | None = None, **options: Any
) -> Stored:
    """Write steps that were decided on the versions of ``base``; ``also`` writes more in the same transaction.

    Raises:
        Conflict: one of them has moved on.
    """

    def carry_out(transaction: Transaction, decision: Steps) -> Stored:
        stored = transaction.commit(decision, **options)
        if also is not None:
            also(transaction.writer)
        return stored

    return transact(session, lambda _: Steps(steps), carry_out)


def receipt_of(
    session: Session,
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


def keep_read(
    session: Session,
    kind: ReceiptKind,
    facts: Mapping[str, Any],
    *,
    handed: Sequence[Record],
    notes: Iterable[str],
    head: str,
    also: Callable[[Writer], None] = lambda _: None,
) -> tuple[Receipt | None, tuple[str, ...]]:
    """Keep the receipt of a read, and the uses that were counted; return it, or None and a note why it was not kept.

    ``handed`` is what the reader was given; ``also`` writes more in the same transaction.
    """
    if not session.policy.enabled:
        return None, ("the receipt was not kept: memory is switched off by policy",)
    reasons = [Reason(gate="recall", code="note", detail=note) for note in notes]
    receipt = receipt_of(session, kind, {**facts, **handed_facts(session, handed)}, reasons, head=head)
    try:
        # Whoever reads waits for the answer, and gets it without a receipt rather than late.
        with session.store.write(brief=True) as writer:
            also(writer)
            writer.put_receipt(receipt, counts=not session.inspects)
            session.engine.write_uses(writer)
    except StoreUnavailable:
        return None, ("the receipt was not kept: the store cannot be written",)
    return receipt, ()


def _attachable(writer: Writer, session: Session, steps: Sequence[Step]) -> bool:
    """Whether every blob is kept that memories refer to from now on: one that goes moves no head."""
    changed = [step.after for step in steps if step.before is None or step.before.blob != step.after.blob]
    blobs = {record.blob for record in changed if record.blob is not None}
    return not blobs or len(writer.documents(Kept, session.tenant).rows(ids=blobs)) == len(blobs)


def _vectors(session: Session, decision: Decision) -> dict[_Searched, Features]:
    """Ask the embedder about every memory whose searchable content changes, in one batch."""
    if session.embedder is None:
        return {}
    records = [step.after for step in decision.steps if _searchable(step)]
    asked = questions(records, lambda name: session.store.session_tail(session.tenant, name))
    found = embedded(session.embedder, records, [decision.features(record) for record in records], asked)
    return {_searched(record): each for record, each in zip(records, found, strict=True) if each.model is not None}


def _searchable(step: Step) -> bool:
    before, after = step.before, step.after
    if before is None or after.status is not Status.ACTIVE:
        return before is None
    return before.status is not Status.ACTIVE or _sought(before) != _sought(after)
