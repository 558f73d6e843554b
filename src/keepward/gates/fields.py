"""The stored texts of a case: every string that would reach the disk, by name.

Gates that read content read all of these, so that nothing hides in a tag or a reason.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Any

from keepward.gates.verdict import Case
from keepward.model.memory import Record

_SINGLE = ("text", "key", "subject", "category", "metadata", "source", "session", "speaker", "job", "blob")
_MANY = ("tags", "evidence", "aliases")
#: Where they are kept: of an object, its JSON text.
_KEPT = {**{name: name for name in _SINGLE}, "metadata": "metadata_json"}
_singles, _manies = attrgetter(*_KEPT.values()), attrgetter(*_MANY)
#: Fields by which memories are looked up: one marker in place of two names would make them one.
NAMES = frozenset({"key", "subject", "session", "job", "source"})
#: Handles of other systems, and hashes: nobody reads them.
HANDLES = frozenset({"aliases", "blob"})


def texts(case: Case) -> Sequence[tuple[str, str]]:
    """Return (field name, text) for every non-empty stored text of a case; the reason comes last."""
    found = case.collected
    if not found:
        found += named(case.after)
        if case.reason:
            found.append(("reason", case.reason))
    return found


def whole(case: Case) -> str:
    """Return all stored texts, one a line, for one quick look at once."""
    return "\n".join([text for _, text in texts(case)])


def stored_texts(record: Record) -> list[str]:
    """Return every non-empty stored text of a record."""
    return [text for _, text in named(record)]


def named(record: Record) -> list[tuple[str, str]]:
    """Return (field name, text) for every non-empty stored text of a record."""
    found = [pair for pair in zip(_SINGLE, _singles(record), strict=True) if pair[1]]
    for name, items in zip(_MANY, _manies(record), strict=True):
        if items:
            found += [(name, item) for item in items]
    return found


def aside(case: Case) -> str:
    """Return all stored texts but the memory's own, one a line, for one quick look at once."""
    return "\n".join([text for name, text in texts(case) if name != "text"])


def mapped(record: Record, change: Callable[[str, str], str]) -> Record:
    """Return the record with ``change(field name, text)`` in place of every stored text."""
    fields: dict[str, Any] = {}
    for name, kept in _KEPT.items():
        value = getattr(record, kept)
        if value:
            fields[kept] = change(name, value)
    for name in _MANY:
        values = getattr(record, name)
        if values:
            fields[name] = tuple(change(name, item) for item in values)
    return replace(record, **fields)
