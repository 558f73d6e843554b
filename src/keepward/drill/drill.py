"""The drill: attacks on a copy of a store, and which defence stood in the way of each.

Invariants
(1) The store itself, its folder, its key and its noted heads are not touched: everything happens on a copy, in a
    temporary folder with a configuration folder of its own, which is removed at the end.
(2) Every check has a control: what the attack wants is shown to be possible for somebody who may do it, or to
    have been so before. A check whose control does not hold proves nothing and counts as a failure.
(3) What is reported is what the store answered; no text of the store's memories is in it.
"""

from __future__ import annotations

import logging
import shutil
import sqlite3
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from keepward.errors import KeepwardError, StoreUnavailable
from keepward.model.trust import Actor

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
    run: Callable[[Ground], Tried]


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line of the drill's report."""

    name: str
    title: str
    #: ``fired``: the defence held. ``breached``: it did not. ``inconclusive``: the check could not have failed.
    status: Literal["fired", "breached", "inconclusive"]
    defence: str


class Dial:
    """A clock that moves only when it is told to."""

    def __init__(self, start: datetime) -> None:
        self._now = start

    def now(self) -> datetime:
        """Return the instant it is set to."""
        return self._now

    def move(self, span: timedelta) -> None:
        """Move it forward."""
        self._now += span


class Ground:
    """The copy under attack: its files, its handles and its clock."""

    owner: Memory
    agent: Memory

    def __init__(self, folder: Path, tenant: str, policy: Policy) -> None:
        self.folder, self.path, self.tenant = folder, folder / "copy.db", tenant
        # The switches that pause memory would refuse everything, and nothing could be learnt.
        self.policy = replace(policy, enabled=True, capture=True, recall=True)
        self.clock: Dial | None = None
        with self.opened() as first:
            # In a home of its own the copy is foreign.
            first.adopt(first.plan_adopt().digest)
            self.clock = Dial(first.now)
        self.begin()

    def begin(self) -> None:
        """Open the handles of the owner and an agent."""
        self.owner = self.opened()
        self.agent = self.bearer("agent")

    def opened(self, home: str = "config") -> Memory:
        """Return another opening of the copy, which knows nothing yet; in another home it is foreign."""
        from keepward.memory import Memory

        return Memory.open(
            self.path,
            tenant=self.tenant,
            actor=Actor.operator("drill-owner"),
            policy=self.policy,
            embedder=None,
            create=False,
            clock=self.clock,
            config_dir=self.folder.parent / home,
            maintenance=False,
        )

    def bearer(self, name: str, **more: Any) -> Memory:
        """Return the handle of an agent of this name."""
        return self.owner.acting_as(Actor.agent(f"drill-{name}", **more))

    @property
    def core(self) -> dict[str, Any]:
        """What a memory takes that writes a core block which memory may write."""
        written = (key for key in self.policy.core_keys if key not in {"persona", "human"})
        block = min(written, key=lambda key: (key != "mission", key), default="mission")
        return {"tier": "core", "kind": "fact", "key": block, "confidence": 0.95}

    def move(self, **span: float) -> None:
        """Move the clock forward."""
        assert self.clock is not None
        self.clock.move(timedelta(**span))


def note(memory: Memory, text: str, **fields: Any) -> Any:
    """Remember a text and return what became of it."""
    return memory.remember(text, **{"tier": "archival", "reason": "drill", **fields})


def kept(outcome: Any) -> bool:
    """Whether a write was committed."""
    return bool(outcome.outcome == "committed")


def shows(memory: Memory, text: str, **options: Any) -> bool:
    """Whether the compiled prompt for a text holds it."""
    return text in memory.context(text, **options).text


def refusal(attempt: Callable[..., object], *given: Any, **more: Any) -> str:
    """Return the code of the error with which an attempt is refused; empty when it is not."""
    try:
        attempt(*given, **more)
    except KeepwardError as fault:
        return fault.code
    return ""


def named(outcome: Any) -> str:
    """Return the outcome of a write with the first of its reasons."""
    first = next(iter(outcome.reasons), None)
    return f"{outcome.outcome} by {first.gate}: {first.code}" if first else str(outcome.outcome)


def attacks() -> tuple[Attack, ...]:
    """Return every attack, in the order in which they are made."""
    from keepward.drill import asked, bent

    return (*asked.ATTACKS, *bent.ATTACKS)


def table() -> tuple[list[Attack], Callable[[str], Callable[[Any], Any]]]:
    """Return an empty table of attacks, and a decorator that adds a function to it under a title."""
    rows: list[Attack] = []

    def attack(title: str) -> Callable[[Any], Any]:
        def added(run: Any) -> Any:
            rows.append(Attack(run.__name__, title, run))
            return run

        return added

    return rows, attack


def drill(store: Path, *, tenant: str, policy: Policy, chosen: Sequence[Attack] | None = None) -> list[Line]:
    """Attack a copy of a store; return one line for each attack, in order.

    Raises:
        StoreUnavailable: there is no store, or it cannot be copied.
        Tampered: the store's journal does not hold as it is.
    """
    with tempfile.TemporaryDirectory(prefix="keepward-drill-") as name, _quiet():
        folder = Path(name) / "store"
        folder.mkdir(mode=0o700)
        _copy(store, folder / "copy.db")
        ground = Ground(folder, tenant, policy)
        try:
            return [_line(attack, ground) for attack in (attacks() if chosen is None else chosen)]
        finally:
            ground.owner.close()


def _line(attack: Attack, ground: Ground) -> Line:
    try:
        held, control, by = attack.run(ground)
    except KeepwardError as fault:
        # Neither refused where it was meant to be, nor let through: it says nothing.
        held, control, by = True, False, f"error: {fault.code}"
    else:
        by = by if held and control else "its control failed" if held else "none"
    status: Any = "breached" if not held else "fired" if control else "inconclusive"
    return Line(name=attack.name, title=attack.title, status=status, defence=by)


def _copy(store: Path, target: Path) -> None:
    """Copy a store's file as it stands, without leaving a trace beside it."""
    if not store.is_file():
        raise StoreUnavailable(
            f"there is no store at {store}; make one with `keepward init`, or name it with --db PATH"
        )
    try:
        if store.with_name(store.name + "-wal").exists():
            # Somebody has it open, so its shared files are there and reading makes no new ones.
            with (
                closing(sqlite3.connect(f"{store.resolve().as_uri()}?mode=ro", uri=True)) as source,
                closing(sqlite3.connect(target)) as copied,
            ):
                source.backup(copied)
        else:
            shutil.copyfile(store, target)
        beside = store.with_name(store.name + ".id")
        if beside.exists():
            shutil.copyfile(beside, target.with_name(target.name + ".id"))
        blobs = store.with_name(store.name + ".blobs")
        if blobs.is_dir():
            shutil.copytree(blobs, target.with_name(target.name + ".blobs"))
    except (OSError, sqlite3.Error) as fault:
        raise StoreUnavailable("the store cannot be copied; see that its file can be read and try again") from fault


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep what the store says about its damage out of the logs: here it is meant."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            yield
    finally:
        logging.disable(before)
