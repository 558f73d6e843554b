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
from typing import TYPE_CHECKING, Any, Literal

from keepward.errors import KeepwardError, StoreUnavailable
from keepward.model.trust import Actor

if TYPE_CHECKING:
    from keepward.memory import Memory
    from keepward.model.policy import Policy


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """How one attack went."""

    #: Whether the attack came to nothing.
    held: bool
    #: Whether it could have succeeded (2).
    control: bool
    #: What stood in the way, such as a gate and its code.
    by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Attack:
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

    def __init__(self, folder: Path, tenant: str, policy: Policy) -> None:
        self.folder = folder
        self.path = folder / "copy.db"
        self.tenant = tenant
        # The switches that pause memory would refuse everything, and nothing could be learnt.
        self.policy = replace(policy, enabled=True, capture=True, recall=True)
        with self._open(None) as first:
            # In a home of its own the copy is foreign.
            first.adopt(first.plan_adopt().digest)
            self.clock = Dial(first.now)
        self.owner = self._open(self.clock)
        self.agent = self.owner.acting_as(Actor.agent("drill-agent"))

    def _open(self, clock: Dial | None, home: str = "config") -> Memory:
        from keepward.memory import Memory

        return Memory.open(
            self.path,
            tenant=self.tenant,
            actor=Actor.operator("drill-owner"),
            policy=self.policy,
            embedder=None,
            create=False,
            clock=clock,
            config_dir=self.folder.parent / home,
            maintenance=False,
        )

    @property
    def block(self) -> str:
        """A core block that memory may write."""
        written = (key for key in self.policy.core_keys if key not in {"persona", "human"})
        return min(written, key=lambda key: (key != "mission", key), default="mission")

    def reopen(self) -> None:
        """Close every handle and open them anew, as another process would."""
        self.owner.close()
        self.owner = self._open(self.clock)
        self.agent = self.owner.acting_as(Actor.agent("drill-agent"))

    def fresh(self) -> Memory:
        """Return another opening of the copy, which knows nothing yet."""
        return self._open(self.clock)

    def stranger(self) -> Memory:
        """Return an opening of the copy by a machine that does not know it."""
        return self._open(self.clock, "stranger")

    @contextmanager
    def raw(self) -> Iterator[sqlite3.Connection]:
        """Open the file behind the store's back, without its key."""
        with closing(sqlite3.connect(self.path, isolation_level=None)) as connection:
            yield connection

    def edit(self, statement: str, *values: Any) -> None:
        """Run one statement behind the store's back."""
        with self.raw() as connection:
            connection.execute(statement, values)

    def faults(self) -> set[str]:
        """Return which checks of ``verify`` find a fault."""
        return {fault.check for fault in self.owner.verify().faults}

    def close(self) -> None:
        """Close every handle."""
        self.owner.close()


def refusal(attempt: Callable[[], object]) -> str:
    """Return the code of the error with which an attempt is refused; empty when it is not."""
    try:
        attempt()
    except KeepwardError as fault:
        return fault.code
    return ""


def named(outcome: Any) -> str:
    """Return the outcome of a write with the first of its reasons."""
    first = next(iter(outcome.reasons), None)
    return f"{outcome.outcome} by {first.gate}: {first.code}" if first else str(outcome.outcome)


def attacks() -> tuple[Attack, ...]:
    """Return every attack, in the order in which they are made."""
    from keepward.drill import bytes as drill_bytes
    from keepward.drill import origin as drill_origin
    from keepward.drill import words as drill_words

    return (*drill_words.ATTACKS, *drill_origin.ATTACKS, *drill_bytes.ATTACKS)


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
            ground.close()


def _line(attack: Attack, ground: Ground) -> Line:
    try:
        tried = attack.run(ground)
    except KeepwardError as fault:
        # Neither refused where it was meant to be, nor let through: it says nothing.
        return Line(name=attack.name, title=attack.title, status="inconclusive", defence=f"error: {fault.code}")
    if not tried.held:
        return Line(name=attack.name, title=attack.title, status="breached", defence="none")
    if not tried.control:
        return Line(name=attack.name, title=attack.title, status="inconclusive", defence="its control failed")
    return Line(name=attack.name, title=attack.title, status="fired", defence=tried.by)


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
