"""Attacks by origin: what somebody of lower trust does to the memory of those who are trusted more.

Invariants
(1) Each attack goes through the verbs that everybody uses, and is judged by what the store then holds and shows.
"""

from __future__ import annotations

from typing import Any

from keepward.surfaces.drill import Attack, Ground, Tried, refusal
from keepward.surfaces.drill_words import WORD, _kept


def approve_by_name(ground: Ground) -> Tried:
    """A reviewer's token that is named like the proposer approves the proposal."""
    text = f"Serve {WORD} to everybody."
    fields: dict[str, Any] = {"tier": "core", "kind": "fact", "key": ground.block, "confidence": 0.95}
    outcome = ground.agent.remember(text, reason="drill", **fields)
    if outcome.outcome != "quarantined":
        return Tried(held=not _kept(outcome), control=False, by=outcome.outcome)
    namesake, other = (
        ground.owner.holding(ground.owner.create_token(name, rights="reviewer").secret)
        for name in ("Drill-Agent", "drill-reviewer")
    )
    code = refusal(lambda: namesake.approve(outcome.item.id, digest=outcome.item.digest))
    # Where the attack went through there is nothing left to approve.
    control = not code or _kept(other.approve(outcome.item.id, digest=outcome.item.digest))
    return Tried(held=bool(code), control=control, by=f"approval: {code}")


ATTACKS = (Attack(name="approve_by_name", title="a namesake of the proposer approves", run=approve_by_name),)
