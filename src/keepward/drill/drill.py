"""The drill: attacks on a copy of a store, what the store did about each, and the command that shows it.

The store itself, its folder, its key and its recorded heads are not touched: the copy has a configuration folder of its
own, which is removed at the end.
Every attack has a control: the same act by an actor with the right to it succeeds, or the store answered correctly just
before. An attack whose control fails proves nothing and counts as a failure.
The report contains what the store answered, and no text of its memories. Log lines about the copy are dropped; other
code in the process logs as before.
"""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, Literal, get_args

from keepward.core.policy import Policy
from keepward.core.value import Data
from keepward.drill.attacks import ATTACKS, Attack, DrillStore
from keepward.drill.target import DatabaseTarget, DrillTarget
from keepward.errors import KeepwardError
from keepward.locations import DatabaseUrl, Location

#: ``fired``: the defence worked. ``breached``: it did not. ``inconclusive``: the attack could not have succeeded.
Status = Literal["fired", "breached", "inconclusive"]


class DrillResult(Data):
    """The result of one attack."""

    name: str
    title: str
    status: Status
    defence: str


def counts_of(results: Sequence[DrillResult]) -> dict[str, Any]:
    """Return how many results have each status, and whether every defence fired."""
    counts = {status: sum(result.status == status for result in results) for status in get_args(Status)}
    return {"ok": counts["fired"] == len(results), **counts}


def drill(
    place: Location,
    *,
    tenant: str,
    policy: Policy,
    attacks: Sequence[Attack] = ATTACKS,
    on_result: Callable[[DrillResult], None] = lambda _: None,
) -> list[DrillResult]:
    """Attack a copy of a store; return one result for each attack, in order; ``on_result`` is called with each.

    Raises:
        StoreUnavailable: there is no store, or it cannot be copied.
        Tampered: the store's journal is corrupt.
    """
    results: list[DrillResult] = []
    kind = DatabaseTarget if isinstance(place, DatabaseUrl) else DrillTarget
    with tempfile.TemporaryDirectory() as folder, closing(kind(Path(folder), place)) as target:
        target.copy_store()
        with _without_logging():
            store = DrillStore(target, tenant, policy)
        with store.owner:
            for attack in attacks:
                with _without_logging():
                    results.append(run_attack(attack, store))
                on_result(results[-1])
    return results


def run_attack(attack: Attack, store: DrillStore) -> DrillResult:
    """Run one attack."""
    try:
        held, control, defence = attack.run(store)
    except KeepwardError as error:
        # Neither refused as expected nor let through, so it proves nothing.
        held, control, defence = True, False, f"error: {error.code}"
    else:
        seen = f"; see `{attack.see}`" if attack.see else ""
        defence = f"{defence}{seen}" if held and control else "its control failed" if held else "none"
    status: Status = "breached" if not held else "fired" if control else "inconclusive"
    return DrillResult(name=attack.name, title=attack.title, status=status, defence=defence)


#: Whether the running code attacks a copy, so that its log is dropped.
_attacking: ContextVar[bool] = ContextVar("attacking", default=False)


def _is_logged(_: logging.LogRecord) -> bool:
    return not _attacking.get()


@contextmanager
def _without_logging() -> Iterator[None]:
    # A filter applies to one logger, and modules that were imported since have new loggers.
    for name in [name for name in logging.root.manager.loggerDict if name.startswith("keepward")]:
        logging.getLogger(name).addFilter(_is_logged)
    token = _attacking.set(True)
    try:
        yield
    finally:
        _attacking.reset(token)
