"""Adapters: a memory handle as the stores, tools and sessions of agent frameworks.

Each adapter is a module that imports its framework; importing this package imports none.

Invariants
(1) An adapter uses only operations of a handle, so all gates apply. It reports their reasons in the framework's way.
(2) Every other surface can read the memories of an adapter: there is no storage format of its own.
(3) A model sees the origin of every memory with less trust than an agent's own notes.
(4) A refused write raises ``NotStored``, unless the framework only takes notes. So does a quarantined write that is
    useless until it is stored.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING

from keepward.context.lines import trust_label
from keepward.core.escaping import indented
from keepward.core.principals import Trust
from keepward.errors import KeepwardError, NotFound
from keepward.integrations.namespaces import key_of

if TYPE_CHECKING:
    from keepward.core.change import KindName
    from keepward.core.memory import Record
    from keepward.core.proposal import Outcome
    from keepward.memory import Memory


_QUARANTINE_NOTICE = "it is quarantined until a reviewer decides"


class NotStored(KeepwardError):
    """The write was refused or is quarantined; ``outcome`` has the reasons and a receipt."""

    code = "not_stored"

    def __init__(self, outcome: Outcome) -> None:
        notice = [_QUARANTINE_NOTICE] if outcome.outcome == "quarantined" else []
        super().__init__("; ".join(dict.fromkeys([*notice, *(reason.detail for reason in outcome.reasons)])))
        self.outcome = outcome


class GateWarning(UserWarning):
    """A write was quarantined, or stored with changes."""


#: Kinds of items and files; messages of a conversation are events.
KINDS: tuple[KindName, ...] = ("fact", "state", "rule", "summary", "document")
_ID_LENGTH = len("01900000-0000-7000-8000-000000000000")
#: Field with the origin in a value or in the metadata of a framework's record. It is set on reading and never stored.
ORIGIN_FIELD = "keepward_origin"
#: Gates and codes of reasons that are not reported, because the write was stored unchanged. For example, every user
#: message that an agent relays gets the reason ``claimed_source``.
_UNREPORTED_CODES = frozenset({"duplicate", "shape", "claimed_source", "other_case"})


def origin_of(record: Record) -> str | None:
    """Return the origin in words, such as "from web, unverified"; None if the trust is an agent's or higher."""
    return trust_label(record) if record.effective_trust < Trust.AGENT else None


def text_with_origin(record: Record) -> str:
    """Return the text for a model; one with an origin to show follows it in brackets, with its other lines indented."""
    origin = origin_of(record)
    return f"[{origin}] {indented(record.text)}" if origin else record.text


def text_without_origin(text: str, origin: str | None) -> str:
    """Return a text as it is stored, from the form that ``text_with_origin`` makes for a model."""
    return text.removeprefix(f"[{origin}] ").replace("\n    ", "\n") if origin else text


def find_item(handle: Memory, name: str) -> Record | None:
    """Return the active item of a handle's scope by its key, or by its id if it has no key."""
    records = list(handle.list_memories(key=key_of(name), kinds=KINDS, limit=None))
    if not records and len(name) == _ID_LENGTH:
        with suppress(NotFound):
            records = [handle.get(name)]
    own = (record for record in records if record.scope == handle.scope and record.kind in KINDS)
    return next((record for record in own if record.status == "active"), None)


def warnings_for(outcomes: Iterable[Outcome]) -> list[str]:
    """Return sentences about quarantined and changed writes; raise ``NotStored`` for a refused one."""
    sentences: list[str] = []
    for outcome in outcomes:
        if outcome.outcome == "refused":
            raise NotStored(outcome)
        sentences += [_QUARANTINE_NOTICE] if outcome.outcome == "quarantined" else []
        sentences += [reason.detail for reason in outcome.reasons if not {reason.gate, reason.code} & _UNREPORTED_CODES]
    return list(dict.fromkeys(sentences))


def notes_for(outcomes: Iterable[Outcome]) -> list[str]:
    """Return sentences about refused, quarantined and changed writes."""
    sentences: list[str] = []
    for outcome in outcomes:
        try:
            sentences += warnings_for([outcome])
        except NotStored as fault:
            sentences.append(f"nothing was stored: {fault}")
    return list(dict.fromkeys(sentences))


def emit_warnings(outcomes: Iterable[Outcome], *, stacklevel: int = 4) -> None:
    """Warn of quarantined and changed writes; raise ``NotStored`` for a refused one."""
    notes = warnings_for(outcomes)
    if notes:
        warnings.warn("; ".join(notes), GateWarning, stacklevel=stacklevel)


def emit_notes(outcomes: Iterable[Outcome], *, stacklevel: int = 3) -> None:
    """Emit one warning for each refused, quarantined or changed write."""
    for note in notes_for(outcomes):
        warnings.warn(note, GateWarning, stacklevel=stacklevel)


def require_stored(outcome: Outcome | None, *, stacklevel: int = 5) -> None:
    """Raise ``NotStored`` if a write was not stored; else warn like ``emit_warnings``."""
    if outcome is not None:
        if not outcome.ok:
            raise NotStored(outcome)
        emit_warnings([outcome], stacklevel=stacklevel)


def require_all_stored(outcomes: Iterable[Outcome], *, stacklevel: int = 4) -> list[Record]:
    """Return the stored memories and warn of changes; raise ``NotStored`` if one was not stored."""
    stored = list(outcomes)
    for outcome in stored:
        if not outcome.records:
            raise NotStored(outcome)
    emit_warnings(stored, stacklevel=stacklevel + 1)
    return [record for outcome in stored for record in outcome.records]
