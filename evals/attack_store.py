"""The store that the attacks of the security evals are made on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any

from evals.target import Target
from keepward import Memory, Policy
from keepward.core.principals import Actor
from keepward.drill.attacks import Attack, AttackResult, DrillStore
from keepward.drill.drill import DrillResult, run_attack

#: The attacks that ``attack`` registered, in order.
ATTACKS: list[Attack] = []


class AttackStore(DrillStore):
    """A store with a clock that only moves when it is moved, and whose rows can be saved and restored."""

    target: Target

    def __init__(self, target: Target, policy: Policy | None = None) -> None:
        self._now: datetime | None = None
        super().__init__(target, "default", policy or Policy())
        self._now = self.owner.now
        self.owner.close()
        self.begin()

    def begin(self) -> None:
        """Open the store as its owner and an agent."""
        self.owner = self.open_another()
        self.agent = self.bearer("agent")

    def open_another(self, **options: Any) -> Memory:
        """Return another opening of the store, at the instant of its clock."""
        return super().open_another(clock=None if self._now is None else self, **options)

    def bearer(self, name: str, **more: Any) -> Memory:
        """Return the handle of another agent."""
        return self.owner.as_actor(Actor.agent(f"drill-{name}", **more))

    @property
    def core(self) -> dict[str, Any]:
        """What a memory takes that writes a core block which memory may write."""
        written = (key for key in self.policy.core_keys if key not in {"persona", "human"})
        block = min(written, key=lambda key: (key != "mission", key), default="mission")
        return {"tier": "core", "kind": "fact", "key": block, "confidence": 0.95}

    def now(self) -> datetime:
        """Return the instant that the clock is set to."""
        assert self._now is not None
        return self._now

    def move(self, **span: float) -> None:
        """Move the clock forward."""
        self._now = self.now() + timedelta(**span)

    def holds(self, word: str) -> bool:
        """Whether a word stands in any byte that is stored."""
        return bool(self.target.holding({"": word}))


def attack(
    title: str, name: str = ""
) -> Callable[[Callable[[AttackStore], AttackResult]], Callable[[AttackStore], AttackResult]]:
    """Add a function to the attacks, under its own name where none is given."""

    def added(run: Callable[[AttackStore], AttackResult]) -> Callable[[AttackStore], AttackResult]:
        ATTACKS.append(Attack(name or run.__name__, title, run))
        return run

    return added


def attacked(target: Target, chosen: Sequence[Attack], policy: Policy | None = None) -> list[DrillResult]:
    """Make attacks on the store of a target, which is changed by it; return one result for each, in order."""
    store = AttackStore(target, policy)
    try:
        return [run_attack(each, store) for each in chosen]
    finally:
        store.owner.close()
