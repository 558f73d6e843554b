"""The ethics gate: the owner's own rules on what may be remembered."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from keepward.gates.fields import whole
from keepward.gates.verdict import Case, Quarantine, Refuse, Verdict, View
from keepward.model.commit import Reason
from keepward.model.policy import Policy


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> Any:
    import re2

    return re2.compile(f"(?i){pattern}")


def judge(case: Case, view: View, policy: Policy) -> Verdict | None:
    """Apply every ``memory_ethics`` rule of the policy."""
    del view
    if not policy.memory_ethics:
        return None
    everything = whole(case)
    fired = [
        rule
        for rule in policy.memory_ethics
        if (not rule.tiers or case.after.tier in rule.tiers) and _compiled(rule.pattern).search(everything)
    ]
    if not fired:
        return None
    reasons = tuple(
        Reason(gate="ethics", code=rule.name, detail=f"the owner's rule `{rule.name}` applies to this text")
        for rule in fired
    )
    refuse = any(rule.action == "refuse" for rule in fired)
    return Refuse(reasons=reasons) if refuse else Quarantine(reasons=reasons)
