"""The confidence gate: each tier has a floor.

What was aimed at core and stated below its floor goes to the archive, and its writer is told; what is
below the archive's floor waits for a person. What is moved to another tier has to reach its floor with what its
confidence has faded to. A core edit that states no confidence keeps its default and is judged by the reviewer.
"""

from __future__ import annotations

from dataclasses import replace

from keepward.gates.verdict import Case, Quarantine, Rewrite, Verdict, View
from keepward.model.change import Append, Insert, Move, Replace
from keepward.model.commit import Reason
from keepward.model.memory import Kind, Tier, confidence_at
from keepward.model.policy import Policy


def judge(case: Case, view: View, policy: Policy) -> Verdict | None:
    """Divert or hold what is below its tier's floor."""
    after = case.after
    floor = policy.confidence_floor.get(after.tier, 0.0)
    if isinstance(case.change, Move) and case.before is not None and after.tier not in {case.before.tier, Tier.CORE}:
        low = confidence_at(case.before, view.now) < floor
        return Quarantine(reasons=(_below(floor, after.tier),)) if low else None
    if not isinstance(case.change, Insert | Replace | Append) or after.confidence >= floor:
        return None
    if after.tier is Tier.CORE:
        if case.change.confidence is None:
            return None
        archival = policy.confidence_floor.get(Tier.ARCHIVAL, 0.0)
        if after.confidence >= archival and case.before is None:
            diverted = replace(
                after, tier=Tier.ARCHIVAL, key=None, category=after.category or after.key, kind=Kind.FACT
            )
            detail = f"confidence is below {floor:g}, the floor of core: kept in the archive instead"
            return Rewrite(
                after=diverted, reasons=(Reason(gate="confidence", code="diverted_to_archival", detail=detail),)
            )
    return Quarantine(reasons=(_below(floor, after.tier),))


def _below(floor: float, tier: Tier) -> Reason:
    detail = f"confidence is below {floor:g}, the floor of the {tier.value} tier"
    return Reason(gate="confidence", code="below_floor", detail=detail)
