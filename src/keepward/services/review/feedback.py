"""Feedback on results, and importance learned from use.

Feedback names only memories that its receipt shows; any actor that sees the receipt may give it. A second feedback of
an actor on a receipt replaces the first. It changes no ranking by itself: only a training, which is a commit, does.
Each use counts once: the same transaction records the commit and the uses learned from. Learning all uses at once or in
parts gives the same importance, except for rounding to 1/10,000; it is at most 1. Confidence continues to decay.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from keepward.core.change import Reinforce
from keepward.core.commit import Step
from keepward.core.memory import importance_at
from keepward.core.principals import default_source, trust_of
from keepward.core.query import Feedback
from keepward.core.reducer import apply
from keepward.errors import InvalidInput
from keepward.services.access import items_of
from keepward.services.reading.visible import VisibleReader
from keepward.services.request_context import RequestContext
from keepward.services.transaction import StepList, Transaction, transact
from keepward.services.writing.staged import evaluate

#: Receipts that show delivered memories.
FEEDBACK_RECEIPT_KINDS = {"recall": "receipt of a recall", "compile": "a context"}
#: Most ids in one feedback.
MAX_IDS = 1_000


def record_feedback(
    context: RequestContext, receipt_id: str, *, used: Sequence[str] = (), ignored: Sequence[str] = ()
) -> Feedback:
    """Store which memories of a recall or context were used, and which were not.

    A second feedback of the same actor on the same receipt replaces the first. If policy switches memory off, nothing
    is stored and the number is 0. Errors are as in ``Memory.feedback``.
    """
    if not receipt_id:
        raise InvalidInput("feedback is on a receipt: give its id")
    receipt = VisibleReader(context).receipt_of_read(receipt_id, FEEDBACK_RECEIPT_KINDS)
    shown = items_of(receipt)
    sides = tuple(sorted(set(used))), tuple(sorted(set(ignored)))
    named = {*sides[0], *sides[1]}
    if not named or len(named) > MAX_IDS:
        raise InvalidInput(f"name from 1 to {MAX_IDS} memories that were used or ignored")
    if len(named) < len(sides[0]) + len(sides[1]):
        raise InvalidInput("a memory was either used or ignored; name it once")
    if named - shown.keys():
        raise InvalidInput("feedback names memories that its receipt shows; one of these is not in it")
    given = Feedback(
        tenant=context.tenant,
        at=context.clock.now(),
        receipt=receipt["id"],
        actor=context.actor.label,
        trust=trust_of(context.actor, default_source(context.actor)),
        used=sides[0],
        ignored=sides[1],
    )
    if not context.policy.enabled:
        return given
    with context.store.write() as writer:
        return writer.put_feedback(given)


#: Share of the distance to 1 that each use adds to the importance.
GAIN_PER_USE = 0.02
#: Memories in one commit that learns from their uses.
LEARNED_AT_ONCE = 200


def learn_importance(
    context: RequestContext, before_part: Callable[[], None] = lambda: None
) -> tuple[dict[str, int], tuple[str, ...]]:
    """Turn the uses counted since the last time into importance, at most ``LEARNED_AT_ONCE`` memories in a commit.

    Returns the uses learned from, by memory, and the ids of the commits. ``before_part`` is called before each commit;
    if it raises, what was committed stays.

    Raises:
        Conflict: a memory changed meanwhile; run it again.
    """
    used, learned, commits = list(context.store.unlearned_uses(context.tenant)), dict[str, int](), list[str]()
    for start in range(0, len(used), LEARNED_AT_ONCE):
        before_part()
        uses, commit = _learn_from(context, used[start : start + LEARNED_AT_ONCE])
        learned |= uses
        commits += [commit] if commit else []
    return learned, tuple(commits)


def _learn_from(context: RequestContext, names: Sequence[str]) -> tuple[dict[str, int], str | None]:
    """Learn from the uses of some memories in one commit; see ``learn_importance``."""

    def decide(context: RequestContext) -> _LearningSteps:
        counted = context.store.unlearned_uses(context.tenant, names)
        records = context.store.records(context.tenant, list(counted)).records if counted else []
        change_context = context.change_context()
        now = change_context.now
        steps: list[Step] = []
        for record in sorted(records, key=lambda record: record.id):
            if not record.is_live(now):
                continue
            gain = (1.0 - importance_at(record, now)) * (1.0 - (1.0 - GAIN_PER_USE) ** counted[record.id])
            change = Reinforce(id=record.id, gain=gain, confirms=False)
            after = apply(change, record, change_context)
            if after.importance <= importance_at(record, now):
                continue
            if evaluate(context, change, record, after).decision == "allow":
                steps.append(Step(op="reinforce", before=record, after=after))
        return _LearningSteps(steps=steps, uses={step.after.id: counted[step.after.id] for step in steps})

    def store(transaction: Transaction, decision: _LearningSteps) -> tuple[dict[str, int], str | None]:
        stored = transaction.commit(decision, reason="learned importance from use", kind="job", receipt_kind="job")
        transaction.writer.learn_uses(context.tenant, decision.uses)
        return decision.uses, stored.commit.id

    def without_writing(decision: _LearningSteps) -> tuple[dict[str, int], str | None] | None:
        return None if decision.steps else ({}, None)

    return transact(context, decide, store, decide_first=True, early_result=without_writing)


@dataclass(frozen=True, slots=True, kw_only=True)
class _LearningSteps(StepList):
    #: The uses learned from, by memory.
    uses: dict[str, int]
