"""The capacity gate: core within its token budgets, the other tiers within their numbers.

A full tier refuses what is least trusted, or makes room by archiving its least useful memory, as policy
says. Core never makes room.
"""

from __future__ import annotations

from keepward.gates.verdict import Case, Refuse, Verdict, View
from keepward.model.change import Append, Insert, Promote, Replace, Restore
from keepward.model.commit import Reason
from keepward.model.memory import Tier
from keepward.model.policy import Policy
from keepward.model.trust import Trust


def judge(case: Case, view: View, policy: Policy) -> Verdict | None:
    """Refuse what does not fit."""
    after = case.after
    if after.tier is Tier.CORE:
        if after.key not in policy.core_keys:
            # What is no block has no budget: the authority gate says which blocks there are.
            return None
        budget = policy.block_budget.get(after.key, 0)
        if isinstance(case.change, Insert | Replace | Append | Promote | Restore) and view.tokens > budget:
            detail = f"the block `{after.key}` would hold {view.tokens} tokens of {budget}: shorten it"
            return Refuse(reasons=(Reason(gate="capacity", code="over_budget", detail=detail),))
        return None
    arrives = case.before is None or isinstance(case.change, Restore) or case.before.tier is not after.tier
    limit = policy.capacity.get(after.tier)
    if not arrives or limit is None or view.counts.get(after.tier, 0) < limit:
        return None
    if makes_room(case, view, policy):
        return None
    detail = f"the {after.tier.value} tier is full ({limit} memories): forget or archive one first"
    return Refuse(reasons=(Reason(gate="capacity", code="full", detail=detail),))


def makes_room(case: Case, view: View, policy: Policy) -> bool:
    """Whether a full tier archives its least useful memory for this one."""
    return policy.when_full == "archive" and case.after.trust >= Trust.AGENT and view.spare is not None
