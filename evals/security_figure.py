"""A figure: what was measured, what it is, what it ought to be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from evals.target import Target
from keepward import Actor, Committed, Memory, Outcome
from keepward.core.commit import Commit
from keepward.core.memory import Record

OWNER = Actor.operator("olga")


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One line of the table."""

    what: str
    value: str
    goal: str
    #: Whether it meets its goal; None for one that could not be measured here.
    ok: bool | None
    #: Whether it is a speed, which depends on the machine and decides nothing.
    speed: bool = False

    @property
    def missed(self) -> bool:
        """Whether it decides that something is wrong."""
        return self.ok is False and not self.speed

    @property
    def mark(self) -> str:
        """What stands at the end of its line."""
        if self.ok is None:
            return "not measured"
        return "" if self.ok else "slower than its goal" if self.speed else "MISSED"


def opened(target: Target, **options: Any) -> Memory:
    """Open the store of a target as its owner; jobs that are due would change it while it is looked at."""
    fixed = {"actor": OWNER, "embedder": None, "config_dir": target.home, "maintenance": False}
    return Memory.open(target.address, **{**fixed, **options})


def none_of(what: str, bad: int, many: int, thing: str) -> Figure:
    """Return the figure of something that must not happen."""
    return Figure(what=what, value=f"{bad} of {many} {thing}", goal="0", ok=bad == 0 and many > 0)


def all_of(what: str, good: int, many: int, thing: str) -> Figure:
    """Return the figure of something that must always happen."""
    return Figure(what=what, value=f"{good} of {many} {thing}", goal="all", ok=good == many > 0)


def kept(outcome: Outcome) -> Record:
    """Return the record of a write that has to be committed."""
    assert isinstance(outcome, Committed), outcome
    return outcome.records[0]


def commit_of(outcome: Outcome) -> Commit:
    """Return the commit of a write that has to be committed."""
    assert isinstance(outcome, Committed), outcome
    assert outcome.commit is not None
    return outcome.commit


def recalled(memory: Memory, query: str) -> tuple[Any, str]:
    """Return a recall and the id of its receipt."""
    found = memory.recall(query, receipt=True)
    assert found.receipt is not None
    return found, found.receipt
