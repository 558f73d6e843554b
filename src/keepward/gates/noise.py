"""The noise gate: what says nothing is refused; journal marks go to the episodic tier with a term.

What was asked to be episodic is left alone: a transcript keeps its small talk.
"""

from __future__ import annotations

from dataclasses import replace

from keepward.gates.detect import noise
from keepward.gates.verdict import Case, Refuse, Rewrite, Verdict, View
from keepward.model.change import Append, Insert, Replace
from keepward.model.commit import Reason
from keepward.model.memory import Kind, Stability, Tier
from keepward.model.policy import Policy


def judge(case: Case, view: View, policy: Policy) -> Verdict | None:
    """Refuse empty reports; reroute journal marks."""
    if case.after.tier is Tier.EPISODIC or not isinstance(case.change, Insert | Replace | Append):
        return None
    text = case.change.text if isinstance(case.change, Append) else case.after.text
    seen = noise.judge(text)
    if seen is None:
        return None
    if seen.code == "empty_report" or case.before is not None:
        return Refuse(
            reasons=(
                Reason(
                    gate="noise",
                    code=seen.code,
                    detail=f"`{seen.phrase}` says nothing that would help later; it was not stored",
                ),
            )
        )
    term = policy.ttl_by_kind.get(Kind.EVENT, policy.ttl_volatile)
    after = replace(
        case.after,
        tier=Tier.EPISODIC,
        kind=Kind.EVENT,
        key=None,
        stability=Stability.VOLATILE,
        expires_at=view.now + term,
    )
    return Rewrite(
        after=after,
        reasons=(
            Reason(
                gate="noise",
                code=seen.code,
                detail=f"`{seen.phrase}` is a journal mark: kept in the episodic tier for {term.days} days, "
                "not in lasting memory",
            ),
        ),
    )
