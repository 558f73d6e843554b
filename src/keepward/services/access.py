"""Lookups of keys, commits and receipts, and notes about memories that a read cannot show.

These functions return stored data; ``reader`` decides what a handle may see of it.
A read names every corrupt memory that it or its index reads, and those that the numbers of records show to be missing.
Core memory steers a model: without one of its blocks no context is compiled, unless the caller names that block.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from keepward.core.change import BOOKKEEPING
from keepward.core.commit import items_in
from keepward.core.journal import CommitView
from keepward.core.memory import Record, Status
from keepward.core.principals import branch_of, branch_scope, is_within_scope
from keepward.core.query import Filter
from keepward.core.value import plain_key
from keepward.errors import NotFound, Tampered, Unauthorised
from keepward.ports.store import UnreadableMemory
from keepward.services.arguments import valid_scope, valid_tenant

if TYPE_CHECKING:
    from keepward.services.request_context import RequestContext


def context_at(context: RequestContext, *, tenant: str | None = None, scope: str | None = None) -> RequestContext:
    """Return the same caller's context at another tenant or scope.

    Raises:
        InvalidInput: a name is not valid, or it contains what looks like a secret.
        Unauthorised: the token of the caller does not reach that tenant or scope.
    """
    there = context
    if tenant is not None:
        there = replace(there, tenant=valid_tenant(tenant))
    if scope is not None:
        # It stays on its branch.
        there = replace(there, scope=branch_scope(branch_of(context.scope), valid_scope(scope)), names=())
    bound = context.actor.credential is not None and not context.actor.is_owner
    if bound and (there.tenant != context.tenant or not is_within_scope(there.scope, context.scope)):
        raise Unauthorised("this token does not reach that tenant or scope; ask the owner for another")
    return there


def is_unchanged_since(context: RequestContext, record: Record, version: int) -> bool:
    """Whether there was nothing but bookkeeping between an earlier version of a memory and this newest one."""
    if not 0 < version < record.version:
        return version == record.version
    later = [step for step in context.store.steps(context.tenant, record.id) if step.after.version > version]
    return bool(later) and all(step.op in BOOKKEEPING for step in later)


def key_holder(context: RequestContext, scope: str, key: str) -> Record | None:
    """Return the active memory under a key of exactly one scope; an expired one keeps its key."""
    return first_active(records_under_key(context, scope, key))


def records_under_key(context: RequestContext, scope: str, key: str) -> Sequence[Record]:
    """Return the memories of any status under a key of exactly one scope."""
    filters = Filter(scopes=(scope,), key=plain_key(key), include_sensitive=True)
    return context.store.find(context.tenant, filters, live_at=None, limit=None).records


def first_active(records: Sequence[Record]) -> Record | None:
    """Return the first active record."""
    return next((record for record in records if record.status is Status.ACTIVE), None)


#: A note names so many ids; the field ``withheld`` names all.
_MAX_NAMED = 5
_SEAL_MISMATCH = "its content does not match its seal"


def unreadable_memories(
    context: RequestContext,
    filters: Filter,
    *,
    live_at: datetime | None,
    damaged: Iterable[str] = (),
    tiers: Collection[str] = (),
) -> list[UnreadableMemory]:
    """Return the memories that a read of the present could not show, by id; ``damaged`` are those the read found.

    The memories of some ``tiers`` are counted in any case.
    """
    known = context.store.unreadable_memories(context.tenant, filters, live_at=live_at, tiers=tiers)
    unreadable = {memory.id: memory for memory in known}
    for memory in corrupt_memories(damaged):
        unreadable.setdefault(memory.id, memory)
    return sorted(unreadable.values(), key=lambda memory: memory.id or "~")


def corrupt_memories(damaged: Iterable[str], *, core: bool = False) -> list[UnreadableMemory]:
    """Return the memories whose seal did not match in a read, in the given order."""
    return [UnreadableMemory(id=name, key=None, core=core, why=_SEAL_MISMATCH) for name in dict.fromkeys(damaged)]


def ids_of(unreadable: Iterable[UnreadableMemory]) -> tuple[str, ...]:
    """Return the known ids, in order."""
    return tuple(memory.id for memory in unreadable if memory.id is not None)


def unreadable_notes(unreadable: Sequence[UnreadableMemory]) -> list[str]:
    """Return one note on what was withheld and what to do; none if nothing was."""
    if not unreadable:
        return []
    named = [memory for memory in unreadable if memory.id is not None]
    details = [f"{_name_of(memory)}: {memory.why}" for memory in named[:_MAX_NAMED]]
    if len(named) > _MAX_NAMED:
        details.append(f"and {len(named) - _MAX_NAMED} more")
    details += [memory.why for memory in unreadable if memory.id is None]
    count = "1 memory is" if len(unreadable) == 1 else f"{len(unreadable)} memories are"
    repair = "`keepward verify` says more, `keepward rebuild` restores what the journal contains"
    return [f"{count} withheld ({'; '.join(details)}); {repair}"]


def require_core(unreadable: Sequence[UnreadableMemory], without: Collection[str]) -> None:
    """Refuse to compile a context if a core memory is withheld that ``without`` does not name.

    ``without`` has keys and ids; ``unknown`` names a memory that has neither any more.

    Raises:
        Tampered: such a memory is withheld.
    """
    missing = [memory for memory in unreadable if memory.core and not {memory.key, memory.id or "unknown"} & {*without}]
    if missing:
        details = "; ".join(f"{_name_of(memory)}: {memory.why}" for memory in missing)
        name = missing[0].key or missing[0].id or "unknown"
        raise Tampered(
            f"core memory is not complete, so no context was compiled ({details}); run `keepward verify`, and "
            f"`keepward rebuild` if the journal is intact, or name what may be left out: --without {name}"
        )


def _name_of(memory: UnreadableMemory) -> str:
    if memory.id is None:
        return "one of which nothing is left"
    return f"{memory.id} (`{memory.key}`)" if memory.key else memory.id


def descendants(context: RequestContext, ids: Iterable[str]) -> list[str]:
    """Return the ids of all memories derived from some, over any number of steps, sorted; without these."""
    start = set(ids)
    found: set[str] = set()
    added = sorted(start)
    while added:
        children = context.store.children(context.tenant, added)
        added = [name for name in children if name not in found and name not in start]
        found.update(added)
    return sorted(found)


def commit_of(context: RequestContext, name: str, *, partly: bool = False) -> CommitView:
    """Return a stored commit by its id, the beginning of its id, or its number; ``partly`` also a damaged one.

    Raises:
        NotFound: there is none.
        Tampered: it is damaged; with ``partly`` only if nothing of it can be read.
    """
    store, tenant, name = context.store, context.tenant, str(name)
    view = store.readable_commit(tenant, name) if partly else store.commit(tenant, name)
    if view is None:
        raise NotFound("there is no such commit in this tenant; `keepward log` lists them")
    return view


def items_of(receipt: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return, by id, what the receipt of a recall or context records of the memories in it."""
    return {item["id"]: item for item in items_in(receipt)}


def context_deliveries(
    context: RequestContext, since: Mapping[str, int], until: Mapping[str, int]
) -> dict[str, set[tuple[str, int]]]:
    """Return, by receipt, the memories that a context contained, with their versions, between given versions."""
    delivered: dict[str, set[tuple[str, int]]] = {}
    for memory_id, version, receipt_id in context.store.deliveries(context.tenant, sorted(since)):
        if since[memory_id] <= version < until.get(memory_id, version + 1):
            delivered.setdefault(receipt_id, set()).add((memory_id, version))
    return delivered


#: Receipts that can be replayed and compared.
COMPILE_RECEIPT_KINDS = {"compile": "compile receipt"}
