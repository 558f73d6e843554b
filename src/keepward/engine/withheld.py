"""Withheld: what a read cannot show because it does not hold, told with ids and what to do about it.

Invariants
(1) Every read that would have shown a memory names it, whether its row was edited or is gone.
(2) Core memory steers a model: a context that should hold a block of it is not compiled without it, unless the caller
    names the block.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime

from keepward.engine.kit import Kit, Who
from keepward.errors import Tampered
from keepward.model.query import Filter
from keepward.ports.store import Withheld

#: Ids that a sentence names; the field holds all of them.
_NAMED = 5
_UNSOUND = "its content does not match its seal"


def withheld(
    kit: Kit, who: Who, filters: Filter, *, live_at: datetime | None, damaged: Iterable[str] = ()
) -> list[Withheld]:
    """Return what a read of the present could not show, by id; ``damaged`` is what it met with itself."""
    found = {each.id: each for each in kit.store.withheld(who.tenant, filters, live_at=live_at)}
    for each in unsound(damaged):
        found.setdefault(each.id, each)
    return sorted(found.values(), key=lambda each: each.id or "~")


def unsound(damaged: Iterable[str], *, core: bool = False) -> list[Withheld]:
    """Return what a read met with that does not hold, in the order given."""
    return [Withheld(id=name, key=None, core=core, why=_UNSOUND) for name in dict.fromkeys(damaged)]


def ids_of(found: Iterable[Withheld]) -> tuple[str, ...]:
    """Return the ids, in order, of those that have one."""
    return tuple(each.id for each in found if each.id is not None)


def notes_of(found: Sequence[Withheld]) -> list[str]:
    """Return one sentence on what was withheld and what to do; none where nothing was."""
    if not found:
        return []
    named = [each for each in found if each.id is not None]
    listed = [f"{_name(each)}: {each.why}" for each in named[:_NAMED]]
    if len(named) > _NAMED:
        listed.append(f"and {len(named) - _NAMED} more")
    listed += [each.why for each in found if each.id is None]
    many = "1 memory is" if len(found) == 1 else f"{len(found)} memories are"
    mend = "`keepward verify` looks closer, `keepward rebuild` writes anew what the journal still holds"
    return [f"{many} withheld ({'; '.join(listed)}); {mend}"]


def refuse_without_core(found: Sequence[Withheld], without: Collection[str]) -> None:
    """Let a context be compiled only where no core memory is withheld but what the caller can do without; see (2).

    ``without`` holds keys and ids; ``unknown`` stands for what has neither any more.

    Raises:
        Tampered: another one is.
    """
    missing = [each for each in found if each.core and not {each.key, each.id or "unknown"} & {*without}]
    if missing:
        wrong = "; ".join(f"{_name(each)}: {each.why}" for each in missing)
        name = missing[0].key or missing[0].id or "unknown"
        raise Tampered(
            f"core memory is not whole, so no context was compiled ({wrong}); run `keepward verify`, and "
            f"`keepward rebuild` where the journal holds, or name what may be left out: --without {name}"
        )


def _name(each: Withheld) -> str:
    if each.id is None:
        return "one of which nothing is left"
    return f"{each.id} (`{each.key}`)" if each.key else each.id
