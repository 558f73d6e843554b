"""The attacks of the security evals that the drill leaves out."""

from __future__ import annotations

from evals import attacks_by_request, attacks_by_statement  # noqa: F401  they register their attacks
from evals.attack_store import ATTACKS
from keepward.drill.attacks import Attack


def attacks() -> list[Attack]:
    """Return the attacks: first what is asked of the store, then what is done to its rows."""
    return list(ATTACKS)
