"""The drill: attacks on a copy of a store, and which defence stood in the way of each.

Invariants
(1) The store itself, its folder, its key and its noted heads are not touched: everything happens on a copy, with a
    configuration folder of its own, which is removed at the end.
(2) Every check has a control: what the attack wants is shown to be possible for somebody who may do it, or to
    have been so before. A check whose control does not hold proves nothing and counts as a failure.
(3) What is reported is what the store answered; no text of the store's memories is in it.
(4) What an attack makes the store log is not logged; whatever else runs in the process logs as before.
"""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

from keepward.drill.target import Target, target_of
from keepward.errors import KeepwardError
from keepward.model.trust import Actor
from keepward.place import Place

if TYPE_CHECKING:
    from keepward.memory import Memory
    from keepward.model.policy import Policy

#: A word that no memory holds, so that what is planted can be told apart.
WORD = "quillzephyr"


class Tried(NamedTuple):
    """How one attack went."""

    #: Whether the attack came to nothing.
    held: bool
    #: Whether it could have succeeded (2).
    control: bool
    #: What stood in the way, such as a gate and its code.
    by: str


class Attack(NamedTuple):
    """One attack: a name, what it tries in a few words, and how."""

    name: str
    title: str
    run: Callable[[Stage], Tried]


Status = Literal["fired", "breached", "inconclusive"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line of the drill's report."""

    name: str
    title: str
    #: ``fired``: the defence held. ``breached``: it did not. ``inconclusive``: the check could not have failed.
    status: Status
    defence: str


def counts_of(lines: Sequence[Line]) -> dict[str, Any]:
    """Return how many lines have each status, and whether all that was attacked was defended."""
    counts = {word: sum(each.status == word for each in lines) for word in get_args(Status)}
    return {"ok": counts["fired"] == len(lines), **counts}


class Stage:
    """The copy under attack, its handles, and a clock that only moves when it is moved."""

    owner: Memory
    agent: Memory

    def __init__(self, target: Target, tenant: str, policy: Policy) -> None:
        self.target, self.tenant = target, tenant
        # The switches that pause memory would refuse everything, and nothing could be learnt.
        self.policy = replace(policy, enabled=True, capture=True, recall=True)
        self._now: datetime | None = None
        with self.opened() as first:
            # In a home of its own the copy is foreign.
            first.adopt(first.plan_adopt().digest)
            self._now = first.now
        self.begin()

    def begin(self) -> None:
        """Open the handles of the owner and an agent."""
        self.owner = self.opened()
        self.agent = self.bearer("agent")

    def opened(self, home: str = "config") -> Memory:
        """Return another opening of the copy, which knows nothing yet; in another home it is foreign."""
        from keepward.memory import Memory

        return Memory.open(
            self.target.address,
            tenant=self.tenant,
            actor=Actor.operator("drill-owner"),
            policy=self.policy,
            embedder=None,
            create=False,
            clock=None if self._now is None else self,
            config_dir=self.target.home.with_name(home),
            maintenance=False,
        )

    def bearer(self, name: str, **more: Any) -> Memory:
        return self.owner.acting_as(Actor.agent(f"drill-{name}", **more))

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
        self._now = self.now() + timedelta(**span)


def note(memory: Memory, text: str, **fields: Any) -> Any:
    """Remember a text and return what became of it."""
    return memory.remember(text, **{"tier": "archival", "reason": "drill", **fields})


def committed(outcome: Any) -> bool:
    return bool(outcome.outcome == "committed")


def compiles(memory: Memory, text: str, **options: Any) -> bool:
    """Whether the compiled prompt for a text holds it."""
    return text in memory.context(text, include_weak=True, **options).text


def refusal(attempt: Callable[..., object], *given: Any, **more: Any) -> str:
    """Return the code of the error with which an attempt is refused; empty when it is not."""
    try:
        attempt(*given, **more)
    except KeepwardError as fault:
        return fault.code
    return ""


def verdict(outcome: Any) -> str:
    """Return the outcome of a write with the first of its reasons."""
    first = next(iter(outcome.reasons), None)
    return f"{outcome.outcome} by {first.gate}: {first.code}" if first else str(outcome.outcome)


#: Every attack, in the order in which they are made; see ``attacks``.
_TABLE: list[Attack] = []


def attack(title: str, name: str = "") -> Callable[[Callable[[Stage], Tried]], Callable[[Stage], Tried]]:
    """Add a function to the table, under its own name where none is given."""

    def added(run: Callable[[Stage], Tried]) -> Callable[[Stage], Tried]:
        _TABLE.append(Attack(name or run.__name__, title, run))
        return run

    return added


def attacks() -> list[Attack]:
    """Return the table: first what is asked of the store, then what is done to its rows."""
    from keepward.drill import by_request, by_statement  # noqa: F401  they add their attacks

    return list(_TABLE)


def drill(
    store: Place,
    *,
    tenant: str,
    policy: Policy,
    chosen: Sequence[Attack] | None = None,
    on_line: Callable[[Line], None] = lambda _: None,
) -> list[Line]:
    """Attack a copy of a store; return one line for each attack, in order; ``on_line`` is called with each.

    Raises:
        StoreUnavailable: there is no store, or it cannot be copied.
        Tampered: the store's journal does not hold as it is.
    """
    with tempfile.TemporaryDirectory(prefix="keepward-drill-") as folder, target_of(store, Path(folder)) as target:
        target.take(store)
        return attacked(target, tenant=tenant, policy=policy, chosen=chosen, on_line=on_line)


def attacked(
    target: Target,
    *,
    tenant: str,
    policy: Policy,
    chosen: Sequence[Attack] | None = None,
    on_line: Callable[[Line], None] = lambda _: None,
) -> list[Line]:
    """Attack a target, which is changed by it; return one line for each attack, in order."""
    table = attacks() if chosen is None else chosen
    with _quiet():
        stage = Stage(target, tenant, policy)
    try:
        lines = []
        for each in table:
            with _quiet():
                lines.append(_line(each, stage))
            on_line(lines[-1])
        return lines
    finally:
        with _quiet():
            stage.owner.close()


def _line(attack: Attack, stage: Stage) -> Line:
    try:
        held, control, by = attack.run(stage)
    except KeepwardError as fault:
        # Neither refused where it was meant to be, nor let through: it says nothing.
        held, control, by = True, False, f"error: {fault.code}"
    else:
        by = by if held and control else "its control failed" if held else "none"
    status: Any = "breached" if not held else "fired" if control else "inconclusive"
    title = attack.title.replace("the file", f"the {stage.target.medium}")
    return Line(name=attack.name, title=title, status=status, defence=by)


#: Whether the code that runs here attacks a copy: what it makes the store say of its damage is meant, see (4).
_attacking: ContextVar[bool] = ContextVar("attacking", default=False)


def _heard(_: logging.LogRecord) -> bool:
    return not _attacking.get()


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep what the store says about its damage out of the logs: here it is meant."""
    # A filter counts for its own logger alone, and modules that were imported since have new ones.
    for name, logger in list(logging.root.manager.loggerDict.items()):
        if name.startswith("keepward") and isinstance(logger, logging.Logger):
            logger.addFilter(_heard)
    token = _attacking.set(True)
    try:
        yield
    finally:
        _attacking.reset(token)
