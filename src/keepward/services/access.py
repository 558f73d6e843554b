"""What the store says of keys, commits and receipts, and how a read names memories that it cannot show.

What a handle may see of it is for ``reader`` to say.

Invariants
(1) Every read that would have shown a memory which does not hold names it, whether its row was edited or is gone.
(2) Core memory steers a model: a context that should hold a block of it is not compiled without it, unless the caller
    names the block.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from keepward.core.change import BOOKKEEPING
from keepward.core.commit import items_in
from keepward.core.journal import CommitView
from keepward.core.memory import Record, Status
from keepward.core.query import Filter
from keepward.core.value import plain_key
from keepward.errors import NotFound, Tampered
from keepward.ports.store import UnreadableMemory

if TYPE_CHECKING:
    from keepward.services.request_context import RequestContext


def is_unchanged_since(session: RequestContext, record: Record, version: int) -> bool:
    """Whether nothing but bookkeeping has come between an earlier version of a memory and this newest one."""
    if not 0 < version < record.version:
        return version == record.version
    later = [step for step in session.store.steps(session.tenant, record.id) if step.after.version > version]
    return bool(later) and all(step.op in BOOKKEEPING for step in later)


def key_holder(session: RequestContext, scope: str, key: str) -> Record | None:
    """Return the active memory under a key of exactly one scope; an expired one still holds its key."""
    return first_active(records_under_key(session, scope, key))


def records_under_key(session: RequestContext, scope: str, key: str) -> Sequence[Record]:
    """Return what stands or stood under a key of exactly one scope."""
    filters = Filter(scopes=(scope,), key=plain_key(key), include_sensitive=True)
    return session.store.find(session.tenant, filters, live_at=None, limit=None).records


def first_active(records: Sequence[Record]) -> Record | None:
    """Return the first active one of some records."""
    return next((record for record in records if record.status is Status.ACTIVE), None)


#: Ids that a sentence names; the field holds all of them.
_MAX_NAMED = 5
_SEAL_MISMATCH = "its content does not match its seal"


def unreadable_memories(
    session: RequestContext, filters: Filter, *, live_at: datetime | None, damaged: Iterable[str] = ()
) -> list[UnreadableMemory]:
    """Return what a read of the present could not show, by id; ``damaged`` is what it met with itself."""
    found = {each.id: each for each in session.store.unreadable_memories(session.tenant, filters, live_at=live_at)}
    for each in corrupt_memories(damaged):
        found.setdefault(each.id, each)
    return sorted(found.values(), key=lambda each: each.id or "~")


def corrupt_memories(damaged: Iterable[str], *, core: bool = False) -> list[UnreadableMemory]:
    """Return what a read met with that does not hold, in the order given."""
    return [UnreadableMemory(id=name, key=None, core=core, why=_SEAL_MISMATCH) for name in dict.fromkeys(damaged)]


def ids_of(found: Iterable[UnreadableMemory]) -> tuple[str, ...]:
    """Return the ids, in order, of those that have one."""
    return tuple(each.id for each in found if each.id is not None)


def unreadable_notes(found: Sequence[UnreadableMemory]) -> list[str]:
    """Return one sentence on what was withheld and what to do; none where nothing was."""
    if not found:
        return []
    named = [each for each in found if each.id is not None]
    listed = [f"{_name_of(each)}: {each.why}" for each in named[:_MAX_NAMED]]
    if len(named) > _MAX_NAMED:
        listed.append(f"and {len(named) - _MAX_NAMED} more")
    listed += [each.why for each in found if each.id is None]
    many = "1 memory is" if len(found) == 1 else f"{len(found)} memories are"
    mend = "`keepward verify` looks closer, `keepward rebuild` writes anew what the journal still holds"
    return [f"{many} withheld ({'; '.join(listed)}); {mend}"]


def require_core(found: Sequence[UnreadableMemory], without: Collection[str]) -> None:
    """Let a context be compiled only where no core memory is withheld but what the caller can do without; see (2).

    ``without`` holds keys and ids; ``unknown`` stands for what has neither any more.

    Raises:
        Tampered: another one is.
    """
    missing = [each for each in found if each.core and not {each.key, each.id or "unknown"} & {*without}]
    if missing:
        wrong = "; ".join(f"{_name_of(each)}: {each.why}" for each in missing)
        name = missing[0].key or missing[0].id or "unknown"
        raise Tampered(
            f"core memory is not whole, so no context was compiled ({wrong}); run `keepward verify`, and "
            f"`keepward rebuild` where the journal holds, or name what may be left out: --without {name}"
        )


def _name_of(each: UnreadableMemory) -> str:
    if each.id is None:
        return "one of which nothing is left"
    return f"{each.id} (`{each.key}`)" if each.key else each.id


def descendants(session: RequestContext, touched: Iterable[str]) -> list[str]:
    """Return the ids of what was made from memories over any number of steps, sorted, without these themselves."""
    start = set(touched)
    found: set[str] = set()
    fresh = sorted(start)
    while fresh:
        fresh = [
            name for name in session.store.children(session.tenant, fresh) if name not in found and name not in start
        ]
        found.update(fresh)
    return sorted(found)


def commit_of(session: RequestContext, name: str) -> CommitView:
    """Return a commit as stored, by its id, the first letters of it, or its number.

    Raises:
        NotFound: there is none.
    """
    view = session.store.commit(session.tenant, str(name))
    if view is None:
        raise NotFound("there is no such commit in this tenant; `keepward log` lists them")
    return view


def items_of(receipt: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return, by id, what the receipt of a recall or context says of the memories that it shows."""
    return {item["id"]: item for item in items_in(receipt)}


def context_deliveries(session: RequestContext, since: Mapping[str, int]) -> dict[str, set[tuple[str, int]]]:
    """Return by receipt which of these memories a context held, with the version, from the given versions on."""
    held: dict[str, set[tuple[str, int]]] = {}
    for memory_id, version, receipt_id in session.store.deliveries(session.tenant, sorted(since)):
        if version >= since[memory_id]:
            held.setdefault(receipt_id, set()).add((memory_id, version))
    return held


#: What a replay and a comparison can be made of.
COMPILE_RECEIPT_KINDS = {"compile": "compile receipt"}
