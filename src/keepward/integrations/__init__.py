"""Adapters: a handle on memories as the stores, tools and sessions that agent frameworks expect.

Each is a module of its own that imports its framework; importing this package imports none.

Invariants
(1) An adapter says all it has to say through the operations of a handle: what a gate refuses, holds or rewrites there,
    it does here as well, and the framework is told in its own way.
(2) What one adapter keeps, every other surface reads: nothing is stored in a form of its own.
(3) A model sees the origin of every memory that is trusted less than an agent's own notes.
(4) What was refused is ``NotStored``, unless notes are all that is told; so is what is held, where it only makes sense
    once it is stored.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING

from keepward.context.lines import trust_label
from keepward.core.principals import Trust
from keepward.errors import KeepwardError, NotFound
from keepward.integrations.namespaces import key_of

if TYPE_CHECKING:
    from keepward.core.change import KindName
    from keepward.core.memory import Record
    from keepward.core.proposal import Outcome
    from keepward.memory import Memory


_HELD_NOTICE = "it is held until a person decides"


class NotStored(KeepwardError):
    """Nothing of it was stored, or not yet; ``outcome`` says why, and has a receipt."""

    code = "not_stored"

    def __init__(self, outcome: Outcome) -> None:
        held = [_HELD_NOTICE] if outcome.outcome == "quarantined" else []
        super().__init__("; ".join(dict.fromkeys([*held, *(each.detail for each in outcome.reasons)])))
        self.outcome = outcome


class GateWarning(UserWarning):
    """Something was held for a person, or stored otherwise than it was given."""


#: What is an item or a file: turns of a conversation are not.
KINDS: tuple[KindName, ...] = ("fact", "state", "rule", "summary", "document")
_ID_LENGTH = len("01900000-0000-7000-8000-000000000000")
#: Where a value or the metadata of a framework's record holds an origin. It is set on reading and never stored.
ORIGIN_FIELD = "keepward_origin"
#: What a gate may say of what was stored as it was given, by gate and by code: that what a user said to an agent counts
#: as the agent's is so for each message.
_UNREPORTED_CODES = frozenset({"duplicate", "shape", "claimed_source"})


def origin_of(record: Record) -> str | None:
    """Return the origin in words, such as "from web, unverified"; None if it is trusted like an agent's own notes."""
    return trust_label(record) if record.effective_trust < Trust.AGENT else None


def text_with_origin(record: Record) -> str:
    """Return the text for a model to read, after its origin in brackets where there is one to show."""
    found = origin_of(record)
    return f"[{found}] {record.text}" if found else record.text


def find_item(handle: Memory, name: str) -> Record | None:
    """Return the active item of a handle's scope by its key, or by its id if it has no key."""
    found = list(handle.list_memories(key=key_of(name), kinds=KINDS, limit=None))
    if not found and len(name) == _ID_LENGTH:
        with suppress(NotFound):
            found = [handle.get(name)]
    own = (each for each in found if each.scope == handle.scope and each.kind in KINDS)
    return next((each for each in own if each.status == "active"), None)


def warnings_for(outcomes: Iterable[Outcome]) -> list[str]:
    """Return what was done otherwise than it was asked for: held, or changed, in sentences."""
    found: list[str] = []
    for outcome in outcomes:
        if outcome.outcome == "refused":
            raise NotStored(outcome)
        found += [_HELD_NOTICE] if outcome.outcome == "quarantined" else []
        found += [each.detail for each in outcome.reasons if not {each.gate, each.code} & _UNREPORTED_CODES]
    return list(dict.fromkeys(found))


def notes_for(outcomes: Iterable[Outcome]) -> list[str]:
    """Return in sentences what was refused, held or changed."""
    found: list[str] = []
    for outcome in outcomes:
        try:
            found += warnings_for([outcome])
        except NotStored as fault:
            found.append(f"nothing was stored: {fault}")
    return list(dict.fromkeys(found))


def emit_warnings(outcomes: Iterable[Outcome], *, stacklevel: int = 4) -> None:
    """Warn of what was done otherwise than it was asked for."""
    notes = warnings_for(outcomes)
    if notes:
        warnings.warn("; ".join(notes), GateWarning, stacklevel=stacklevel)


def emit_notes(outcomes: Iterable[Outcome], *, stacklevel: int = 3) -> None:
    """Warn of what was refused, held or changed, each by itself."""
    for note in notes_for(outcomes):
        warnings.warn(note, GateWarning, stacklevel=stacklevel)


def require_stored(outcome: Outcome | None, *, stacklevel: int = 5) -> None:
    """Warn as ``emit_warnings`` does, of what only makes sense once it is stored."""
    if outcome is not None:
        if not outcome.ok:
            raise NotStored(outcome)
        emit_warnings([outcome], stacklevel=stacklevel)


def require_all_stored(outcomes: Iterable[Outcome], *, stacklevel: int = 4) -> list[Record]:
    """Return the memories, which all have to be stored, and warn of what was changed."""
    found = list(outcomes)
    for each in found:
        if not each.records:
            raise NotStored(each)
    emit_warnings(found, stacklevel=stacklevel + 1)
    return [record for each in found for record in each.records]
