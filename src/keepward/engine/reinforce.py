"""Reinforce: importance learned from use, in a commit of its own.

Invariants
(1) Each use counts once: what was learned is noted in the same transaction as the commit.
(2) Learning in one go or in many gives the same importance, to a ten-thousandth each time, and never more than 1.
(3) Use makes a memory more important, from what it has faded to, and no truer: its confidence goes on fading.
"""

from __future__ import annotations

from keepward.engine.commit import flush_uses, store_steps
from keepward.engine.kit import Kit, Who
from keepward.engine.view import Overlay, look
from keepward.gates import pipeline
from keepward.gates.verdict import Case
from keepward.model.change import Reinforce
from keepward.model.commit import Step
from keepward.model.fold import Frame, apply
from keepward.model.memory import importance_at
from keepward.model.query import Reinforced

#: Share of what is missing to 1 that each use adds.
PER_USE = 0.02


def learn_importance(kit: Kit, who: Who) -> Reinforced:
    """Turn the uses counted since the last time into importance.

    Raises:
        Conflict: a memory changed meanwhile; run it again.
    """
    if not kit.policy.enabled:
        return Reinforced(records=(), uses=0, commit=None, receipt=None)
    if kit.uses:
        with kit.store.write() as writer:
            flush_uses(kit, writer)
    counted = kit.store.unlearned(who.tenant)
    found = kit.store.records(who.tenant, list(counted)).records if counted else []
    now = kit.clock.now()
    frame = Frame(now=now, actor=who.actor, policy=kit.policy)
    steps: list[Step] = []
    for record in sorted(found, key=lambda each: each.id):
        if not record.is_live(now):
            continue
        gain = (1.0 - importance_at(record, now)) * (1.0 - (1.0 - PER_USE) ** counted[record.id])
        change = Reinforce(id=record.id, gain=gain, confirms=False)
        after = apply(change, record, frame)
        if after.importance <= importance_at(record, now):
            continue
        case = Case(change=change, actor=who.actor, scope=who.scope, before=record, after=after)
        if pipeline.judge(case, look(kit, who, change, record, after, Overlay()), kit.policy).decision == "allow":
            steps.append(Step(op="reinforce", before=record, after=after))
    if not steps:
        return Reinforced(records=(), uses=0, commit=None, receipt=None)
    learned = {step.after.id: counted[step.after.id] for step in steps}
    stored = store_steps(
        kit,
        who,
        steps,
        base={step.after.id: step.after.version - 1 for step in steps},
        reason="learned importance from use",
        kind="job",
        receipt_kind="job",
        also=lambda writer: writer.learn_uses(who.tenant, learned),
    )
    return Reinforced(
        records=tuple(step.after for step in steps),
        uses=sum(learned.values()),
        commit=stored.commit,
        receipt=stored.receipt,
    )
