"""Committing: judged steps become one commit with its receipt, in one transaction.

Invariants
(1) Nobody else writes memory: proposals, approvals, rollbacks and jobs all end in ``store_steps``.
(2) What recall needs is computed before the transaction; nothing slow happens inside it.
(3) A commit whose base has moved is not written; the caller judges anew.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from keepward.engine.features import embedded, questions, words
from keepward.engine.kit import Kit, Who
from keepward.engine.look import digest_slot
from keepward.errors import Conflict
from keepward.model.commit import Commit, CommitDetails, Reason, Receipt, ReceiptKind, Step
from keepward.model.memory import Record, Status
from keepward.ports.store import Features, Stage, Writer

#: Times a proposal is judged anew because others committed in between.
ATTEMPTS = 64
_Result = TypeVar("_Result")


class Moved(Conflict):
    """Another commit came in between; everything has to be judged anew."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """A commit and its receipt."""

    commit: Commit
    receipt: Receipt


def settled(attempt: Callable[[], _Result]) -> _Result:
    """Try anew while others commit in between, a bounded number of times.

    Raises:
        Moved: others were faster every time.
    """
    for _ in range(ATTEMPTS - 1):
        try:
            return attempt()
        except Moved:
            continue
    return attempt()


def store_steps(
    kit: Kit,
    who: Who,
    steps: Sequence[Step],
    *,
    base: dict[str, int],
    reason: str,
    kind: str,
    session: str | None = None,
    reasons: tuple[Reason, ...] = (),
    details: dict[str, object] | None = None,
    receipt_kind: ReceiptKind = "commit",
    also: Callable[[Writer], None] | None = None,
    spoken: Callable[[Record], Features] = words,
) -> Stored:
    """Write judged steps as one commit with its receipt; ``also`` writes more in the same transaction."""
    features = _features(kit, who, steps, spoken)
    now = kit.clock.now()
    receipt_id = kit.ids.new_id(now)
    facts = CommitDetails(
        actor=who.actor.label,
        reason=reason,
        receipt=receipt_id,
        policy=kit.policy.version,
        session=session,
        **(details or {}),  # type: ignore[arg-type]
    )
    new = [(step.after, each) for step, each in zip(steps, features, strict=True) if each and step.op == "insert"]
    stage = Stage(
        commit_id=kit.ids.new_id(now),
        at=now,
        kind=kind,
        actor_kind=who.actor.kind.value,
        details=facts,
        steps=tuple(steps),
        features=tuple(features),
        base=base,
        free_digests=tuple(slot for record, each in new if (slot := digest_slot(record, each)) is not None),
        salts=tuple(kit.ids.salt() for _ in range(len(steps) + 1)),
    )
    with kit.store.write() as writer:
        if not all(writer.has_blob(who.tenant, ref) for ref in _attached(steps)):
            raise Moved("what a memory refers to is no longer kept; put the bytes again")
        try:
            commit = writer.append(who.tenant, stage)
        except Conflict as fault:
            raise Moved(str(fault)) from fault
        receipt = Receipt(
            id=receipt_id,
            tenant=who.tenant,
            kind=receipt_kind,
            at=now,
            actor=who.actor.label,
            policy=kit.policy.version,
            head=f"{commit.seq}:{commit.hash.hex()[:16]}",
            reasons=reasons,
            facts={
                "commit": commit.id,
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
                **{name: list(value) if isinstance(value, tuple) else value for name, value in (details or {}).items()},
                **who.credential,
            },
        )
        writer.put_receipt(receipt)
        if also is not None:
            also(writer)
        flush_uses(kit, writer)
    kit.wake(wrote=True)
    return Stored(commit=commit, receipt=receipt)


def _attached(steps: Sequence[Step]) -> set[str]:
    """Return the blobs that memories refer to from now on."""
    return {
        step.after.blob
        for step in steps
        if step.after.blob is not None and (step.before is None or step.before.blob != step.after.blob)
    }


def flush_uses(kit: Kit, writer: Writer) -> None:
    """Write the uses counted since the last write."""
    if not kit.uses:
        return
    taken, at = dict(kit.uses), dict(kit.used_at)
    kit.uses.clear()
    kit.used_at.clear()
    groups: dict[tuple[str, datetime], list[str]] = {}
    for (tenant, memory_id), count in sorted(taken.items()):
        when = at.get((tenant, memory_id)) or kit.clock.now()
        groups.setdefault((tenant, when), []).extend([memory_id] * count)
    for (tenant, when), ids in groups.items():
        writer.count_use(tenant, ids, when)


def _features(kit: Kit, who: Who, steps: Sequence[Step], spoken: Callable[[Record], Features]) -> list[Features | None]:
    """Compute what recall needs for every step whose searchable content changed, in one batch."""
    fresh = [n for n, step in enumerate(steps) if _searchable(step)]
    records = [steps[n].after for n in fresh]
    asked = questions(records, lambda session: kit.store.session_tail(who.tenant, session))
    computed = embedded(kit.embedder, records, [spoken(record) for record in records], asked)
    result: list[Features | None] = [None] * len(steps)
    for n, features in zip(fresh, computed, strict=True):
        result[n] = features
    return result


def _searchable(step: Step) -> bool:
    before, after = step.before, step.after
    if before is None or after.status is not Status.ACTIVE:
        return before is None
    names = ("text", "key", "tags", "category", "speaker", "occurred_at", "scope", "tier", "sensitivity", "blob")
    changed = any(getattr(before, name) != getattr(after, name) for name in names)
    return changed or before.status is not Status.ACTIVE
