"""Lifting: an owner allows that what was erased is remembered again, when somebody says it anew.

Invariants
(1) A lift is a commit of kind ``lift`` with a receipt: the tombstone loses its marks and stays a tombstone. What was
    erased stays erased; no copy, backup or rollback brings it back.
(2) Whatever else was erased with the same text or name no longer stands against it; its own other marks stay.
(3) What is refused again has to be erased again: a lift is not undone.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from keepward.engine.commit import Moved, store_steps
from keepward.engine.kit import Kit, Who
from keepward.engine.view import fetch
from keepward.errors import Conflict, InvalidInput
from keepward.model.codec import digest
from keepward.model.commit import MARK, Commit, Step
from keepward.model.journal import Lifted
from keepward.model.memory import Record, Status
from keepward.model.query import Filter
from keepward.model.value import to_micros

#: The op of its events, the kind of its commit and receipt, and the name of its entries on the list.
LIFT = "lift"
_log = logging.getLogger(__name__)


def lift(kit: Kit, who: Who, name: str) -> Lifted:
    """Allow what an erased memory said, in any of its versions, and its foreign names to be remembered again.

    Raises:
        NotFound: no memory by that id within reach.
        InvalidInput: it was not erased.
        Conflict: nothing stands in the way; or another commit came in between.
    """
    record = fetch(kit, who, name)
    if record.status is not Status.ERASED:
        raise InvalidInput("that memory was not erased; name an erased one, by the id that the refusal names")
    marks = _marks(record)
    if not marks:
        raise Conflict(
            "nothing stands against what that memory said: it was lifted, or erased on a machine without a key"
        )
    steps = [_step(kit, who, each, marks) for each in (record, *_others(kit, who, record, marks))]
    try:
        stored = store_steps(
            kit,
            who,
            steps,
            base={step.after.id: step.after.version - 1 for step in steps},
            reason="said again, it is remembered",
            kind=LIFT,
            receipt_kind="lift",
        )
    except Moved as fault:
        raise Conflict("a tombstone has changed in the meantime; lift it again") from fault
    _list(kit, who, stored.commit, [step.after.id for step in steps])
    return Lifted(tombstones=tuple(step.after.id for step in steps), commit=stored.commit, receipt=stored.receipt)


def lifted(entries: Iterable[Mapping[str, Any]]) -> set[str]:
    """Return the ids of memories whose erasure is carried out anew without marks, as the list says."""
    return {name for entry in entries if entry.get("entry") == LIFT for name in entry["memories"][:1]}


def _marks(record: Record) -> set[str]:
    return {alias for alias in record.aliases if alias.startswith(MARK)}


def _others(kit: Kit, who: Who, record: Record, marks: set[str]) -> list[Record]:
    """Return the other tombstones of the tenant with any of these marks, by id."""
    everything = Filter(scopes=(), include_sensitive=True)
    found = kit.store.find(who.tenant, everything, live_at=None, limit=None).records
    stones = [each for each in found if each.status is Status.ERASED and each.id != record.id]
    return sorted((each for each in stones if not marks.isdisjoint(each.aliases)), key=lambda each: each.id)


def _step(kit: Kit, who: Who, record: Record, marks: set[str]) -> Step:
    after = replace(
        record,
        version=record.version + 1,
        aliases=tuple(alias for alias in record.aliases if alias not in marks),
        author=who.actor.label,
        updated_at=kit.clock.now(),
    )
    return Step(op=LIFT, before=record, after=after)


def _list(kit: Kit, who: Who, commit: Commit, ids: list[str]) -> None:
    """Note it beside the erasures: an older copy in which they are carried out anew refuses no more than this one."""
    if kit.erasures is None:
        return
    entry = {
        "entry": LIFT,
        "store": kit.store.store_id,
        "tenant": digest("tenant", who.tenant.encode()).hex(),
        "commit": commit.id,
        "at": to_micros(commit.at),
        "memories": ids,
    }
    try:
        kit.erasures.note([entry])
    except OSError as fault:
        _log.warning("the lift could not be listed outside the store: %s", fault, extra={"action": "not_listed"})
