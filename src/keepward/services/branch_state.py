"""The state of the branch that a handle is on: its own record, and which memories of main it has a state of.

A branch is a part of the scope tree: what is written at ``/users/ana`` on the branch ``try-x`` is an ordinary memory at
``/@try-x/users/ana``. A change of a memory of main makes a new one there, with ``branched_from``; reads on the branch
leave the memory of main out. So a branch reads main as it is now under its own changes, and nothing is copied.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from keepward.core.memory import Record, Status
from keepward.core.principals import branch_of, registry_scopes
from keepward.core.query import Filter
from keepward.errors import NotFound

if TYPE_CHECKING:
    from keepward.services.request_context import RequestContext


@dataclass(frozen=True, slots=True)
class BranchState:
    """One branch as a handle sees it."""

    #: Its own record in the registry, with its name as key.
    record: Record
    #: By the id of a memory of main, the id of its state on the branch.
    states: Mapping[str, str]


_NO_STATES: Mapping[str, str] = MappingProxyType({})


def branch_state(context: RequestContext) -> BranchState | None:
    """Return the state of the branch that a handle is on, read once for its context; None on main.

    Raises:
        NotFound: there is no open branch of this name in the scopes that the handle sees.
    """
    name = branch_of(context.scope)
    if name is None:
        return None
    if not context.branch_states:
        context.branch_states.append(_read(context, name))
    state: BranchState = context.branch_states[0]
    return state


def branch_states(context: RequestContext, *, as_of: int | None = None) -> Mapping[str, str]:
    """Return, by the id of a memory of main, the id of its state on the handle's branch, now or after a commit."""
    state = branch_state(context)
    if state is None:
        return _NO_STATES
    return state.states if as_of is None else _states(branch_records(context, as_of=as_of))


def branch_records(context: RequestContext, *, as_of: int | None = None) -> Sequence[Record]:
    """Return the memories of any status on the handle's branch, in any scope, in order of arrival."""
    store, tenant = context.store, context.tenant
    ids = store.ids_on_branch(tenant, branch_of(context.scope) or "")
    found = {record.id: record for record in store.records(tenant, ids, as_of=as_of).records} if ids else {}
    return [found[name] for name in ids if name in found]


def branch_record(context: RequestContext, name: str) -> Record | None:
    """Return the record of the open branch of a name that a handle sees; None if there is none."""
    scopes = registry_scopes(context.scope)
    named = Filter(scopes=scopes, key=name, include_sensitive=True)
    found = context.store.find(context.tenant, named, live_at=context.clock.now(), limit=None).records
    return min(found, key=lambda record: scopes.index(record.scope), default=None)


def _read(context: RequestContext, name: str) -> BranchState:
    head = context.store.head(context.tenant)
    cached = context.engine.branches.get((context.tenant, context.scope))
    if cached is None or cached[0] != head:
        record = branch_record(context, name)
        if record is None:
            raise _missing(name)
        cached = (head, BranchState(record, _states(branch_records(context))))
        context.engine.branches[context.tenant, context.scope] = cached
    state = cached[1]
    if state.record.status_at(context.clock.now()) is not Status.ACTIVE:
        raise _missing(name)
    return state


def _missing(name: str) -> NotFound:
    return NotFound(
        f"there is no open branch `{name}` here: `keepward branch list` shows them, "
        f"and `keepward branch create {name}` makes one"
    )


def _states(records: Sequence[Record]) -> dict[str, str]:
    return {record.branched_id: record.id for record in records if record.branched_id is not None}
