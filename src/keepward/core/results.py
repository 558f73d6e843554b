"""Outcomes in one level, and the fields that differ between two versions of a memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypedDict

from keepward.core.json_form import to_json
from keepward.core.memory import READ_FIELDS, RECORD_FIELDS, VERSION_FIELDS, Record
from keepward.core.proposal import Outcome


class FieldChange(TypedDict):
    """One field that differs."""

    field: str
    before: Any
    after: Any


def changed_fields(
    before: Record | Mapping[str, Any] | None, after: Record | Mapping[str, Any] | None
) -> list[FieldChange]:
    """Return the fields that differ, in the order of `Record`, without bookkeeping such as `updated_at`.

    A side is a memory, or its JSON.

    If one side is missing, all fields of the other side count that are not empty.
    """
    old, new = (to_json(side) if side else {} for side in (before, after))
    return [
        {"field": name, "before": old.get(name), "after": new.get(name)}
        for name in RECORD_FIELDS
        if name not in VERSION_FIELDS and name not in READ_FIELDS
        if old.get(name) != new.get(name) and not (_is_empty(old.get(name)) and _is_empty(new.get(name)))
    ]


def outcome_summary(outcome: Outcome) -> dict[str, Any]:
    """Return an outcome in one level for a person or a model: its memory, and its parts by their ids."""
    memory = outcome.item.steps[0].after if outcome.item else outcome.record
    names = ("version", "tier", "kind", "key", "expires_at")
    of_memory = {name: memory and to_json(getattr(memory, name)) for name in names}
    parts = {"commit": outcome.commit, "proposal": outcome.item, "receipt": outcome.receipt}
    ids = {name: part and part.id for name, part in parts.items()}
    return {"outcome": outcome.outcome, "id": outcome.id, **of_memory, **ids, "reasons": to_json(outcome.reasons)}


def _is_empty(value: Any) -> bool:
    return value in (None, [], "", {})
