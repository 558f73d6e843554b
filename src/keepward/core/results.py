"""Results as short text, and the fields that differ between two versions of a memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from enum import Enum
from typing import Any, TypedDict

from keepward.core.journal import Version
from keepward.core.memory import READ_FIELDS, RECORD_FIELDS, VERSION_FIELDS, Record
from keepward.core.proposal import Outcome
from keepward.core.query import Hit
from keepward.core.serialization import to_json
from keepward.core.value import Data


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


#: Limits of the short text: characters of a value, characters of a line, lines of a result.
MAX_TEXT, MAX_LINE, MAX_LINES = 80, 160, 20
#: A longer list or mapping is shown as its length.
_MAX_LISTED = 6


def brief(value: Any) -> str:
    """Return the few lines that ``print`` shows of a result; ``repr()`` and ``to_dict()`` have everything."""
    if isinstance(value, Record | Hit):
        return _line(value)
    lines = [_line(value), *_item_lines(value)]
    if len(lines) > MAX_LINES:
        rest = len(lines) - MAX_LINES + 1
        lines[MAX_LINES - 1 :] = [f"  ... and {rest} more; to_dict() has all of them"]
    return "\n".join(lines)


def _line(value: Any) -> str:
    """Return a value in one line."""
    if isinstance(value, Record):
        status = "" if value.status.value == "active" else f" ({value.status.value})"
        name = f"{value.id} v{value.version} {value.tier.value} {value.kind.value}"
        return _shorten(f"{name}{status}: {_shorten(value.text, MAX_TEXT)}", MAX_LINE)
    if isinstance(value, Hit):
        weak = ", weak" if value.weak else ""
        return _shorten(
            f"{value.rank}. {_shorten(value.memory.text, MAX_TEXT)} (score {value.score:.2f}{weak})", MAX_LINE
        )
    texts = (f"{name} {text}" for name, item in _fields(value) if (text := _field_text(item)))
    name, fields = type(value).__name__, ", ".join(texts)
    return _shorten(f"{name}: {fields}" if fields else f"{name}: {_size(value)}", 2 * MAX_LINE)


def _fields(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the fields of a result and their values."""
    if isinstance(value, Data):
        yield from ((name, getattr(value, name)) for name in value.__struct_fields__)


def _field_text(value: Any) -> str:
    """Return the text of a field in a line: nothing if it is empty, the number of items if it is long."""
    match value:
        case None | "" | bytes():
            return ""
        case Version():
            return f"commit {value.commit.seq}"
        case Enum():
            return str(getattr(value, "label", value.value))
        case bool() | int():
            return str(value)
        case float():
            return f"{value:.3g}"
        case datetime():
            return f"{value:%Y-%m-%d %H:%M}"
        case str():
            return _shorten(value, MAX_TEXT)
        case Mapping():
            if len(value) > _MAX_LISTED or not all(isinstance(item, int | str) for item in value.values()):
                return _size(value)
            return _shorten(", ".join(f"{name} {item}" for name, item in value.items()), MAX_TEXT)
        case Sequence() | frozenset():
            if len(value) > _MAX_LISTED or not all(isinstance(item, str) for item in value):
                return _size(value)
            return _shorten(", ".join(value), MAX_TEXT)
        case Record():
            return _line(value)
    return str(getattr(value, "id", "")) or _shorten(_line(value).partition(": ")[2], MAX_TEXT)


def _item_lines(value: Any) -> Iterator[str]:
    """Yield a line for each item of the lists of a result."""
    lists = [("", value)] if isinstance(value, Sequence) else _fields(value)
    for _, items in lists:
        if isinstance(items, Sequence) and not isinstance(items, str | bytes):
            yield from (f"  {_shorten(_line(item), MAX_LINE)}" for item in items if isinstance(item, Data))


def _size(value: Any) -> str:
    count = len(value) if hasattr(value, "__len__") else 0
    return f"({count})" if count else ""


def _shorten(text: str, max_length: int) -> str:
    """Return a text in one line of at most ``max_length`` characters, without control characters."""
    flat = " ".join(text.split())
    shown = flat if flat.isprintable() else repr(flat)[1:-1]
    return shown if len(shown) <= max_length else f"{shown[: max_length - 3]}..."
