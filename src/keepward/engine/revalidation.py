"""Revalidation: whether a proposal that has waited would still be let through, on today's store and policy.

Invariants
(1) It is judged as its proposer's, with what is stored now: the approver's rights lend it nothing but the decision.
(2) What the gates would hold is what a person is deciding; only what they would refuse stops an approval.
"""

from __future__ import annotations

from keepward.engine.kit import Kit, Who
from keepward.engine.view import Overlay, look
from keepward.errors import Conflict
from keepward.gates import pipeline
from keepward.gates.verdict import Case
from keepward.model.change import (
    Append,
    Archive,
    Change,
    Expire,
    Insert,
    Move,
    Promote,
    Reinforce,
    Replace,
    Restore,
    Retire,
    Supersede,
)
from keepward.model.commit import Step
from keepward.model.memory import Record, Sensitivity
from keepward.model.proposal import Waiting


def objection(kit: Kit, item: Waiting) -> str | None:
    """Return why the steps of a proposal would be refused by now, as a sentence; None when they would not."""
    overlay = Overlay()
    for step in item.steps:
        change = _asked(step)
        who = Who(tenant=item.tenant, scope=step.after.scope, actor=item.proposer)
        try:
            view = look(kit, who, change, step.before, step.after, overlay)
        except Conflict as fault:
            return str(fault)
        case = Case(
            change=change,
            actor=item.proposer,
            scope=who.scope,
            before=step.before,
            after=step.after,
            reason=item.reason,
        )
        judged = pipeline.judge(case, view, kit.policy)
        if judged.decision == "same" and judged.existing is not None:
            return f"memory {judged.existing.id} says the same by now"
        if judged.decision == "refuse":
            return f"{judged.reasons[0].gate} refuses it by now: {judged.reasons[0].detail}"
        overlay.take(step.before, step.after)
    return None


def _asked(step: Step) -> Change:
    """Return a change that leads to a step, as far as the gates look at it."""
    after = step.after
    match step.op:
        case "insert":
            return _insert(after)
        case "append":
            return Append(id=after.id, text=after.text, evidence=after.evidence, consent=_consented(after))
        case "move":
            return Move(id=after.id, tier=after.tier.value, scope=after.scope, key=after.key)
        case "promote":
            return Promote(id=after.id, text=after.text)
        case "retire":
            return Retire(id=after.id)
        case "archive":
            return Archive(id=after.id)
        case "expire":
            return Expire(id=after.id)
        case "restore":
            return Restore(id=after.id)
        case "reinforce":
            return Reinforce(id=after.id)
        case "supersede":
            return Supersede(id=after.id, by=after.superseded_by or "")
    return Replace(id=after.id, text=after.text, evidence=after.evidence, consent=_consented(after))


def _insert(after: Record) -> Insert:
    return Insert(
        id=after.id,
        text=after.text,
        key=after.key,
        scope=after.scope,
        evidence=after.evidence,
        derived_from=after.derived_from,
        aliases=after.aliases,
        consent=_consented(after),
    )


def _consented(after: Record) -> bool:
    # Personal identifiers that were kept with consent made it sensitive; the others are gone from the text.
    return after.sensitivity is Sensitivity.SENSITIVE
