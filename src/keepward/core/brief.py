"""Results in short: what ``str()`` and ``print`` show of them; ``repr()`` and ``to_dict()`` have everything."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from enum import Enum
from typing import Any

from keepward.core.journal import Version
from keepward.core.memory import Record
from keepward.core.query import Hit
from keepward.core.value import Data

#: Most characters of a text and of a line, and most lines of one result.
MAX_TEXT, MAX_LINE, MAX_LINES = 80, 160, 20
#: Most texts or counts that are named one by one.
_MAX_NAMED = 6


def brief(value: Any) -> str:
    """Return a result in a few lines."""
    if isinstance(value, Record | Hit):
        return _line(value)
    lines = [_line(value), *_items(value)]
    if len(lines) > MAX_LINES:
        rest = len(lines) - MAX_LINES + 1
        lines[MAX_LINES - 1 :] = [f"  ... and {rest} more; to_dict() has all of them"]
    return "\n".join(lines)


def _line(value: Any) -> str:
    """Return a value in one line."""
    if isinstance(value, Record):
        said = f"{value.id} v{value.version} {value.tier.value} {value.kind.value}"
        ended = "" if value.status.value == "active" else f" ({value.status.value})"
        return _shorten(f"{said}{ended}: {_shorten(value.text, MAX_TEXT)}", MAX_LINE)
    if isinstance(value, Hit):
        weak = ", weak" if value.weak else ""
        return _shorten(
            f"{value.rank}. {_shorten(value.memory.text, MAX_TEXT)} (score {value.score:.2f}{weak})", MAX_LINE
        )
    parts = (f"{name} {said}" for name, each in _fields(value) if (said := _field_text(each)))
    name, told = type(value).__name__, ", ".join(parts)
    return _shorten(f"{name}: {told}" if told else f"{name}: {_size(value)}", 2 * MAX_LINE)


def _fields(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the fields of a result and their values."""
    if isinstance(value, Data):
        yield from ((each, getattr(value, each)) for each in value.__struct_fields__)


def _field_text(value: Any) -> str:
    """Return what a line says of a field; nothing of an empty one, the number of items of a long one."""
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
            few = len(value) <= _MAX_NAMED and all(isinstance(each, int | str) for each in value.values())
            return (
                _shorten(", ".join(f"{name} {each}" for name, each in value.items()), MAX_TEXT) if few else _size(value)
            )
        case Sequence() | frozenset():
            few = len(value) <= _MAX_NAMED and all(isinstance(each, str) for each in value)
            return _shorten(", ".join(value), MAX_TEXT) if few else _size(value)
        case Record():
            return _line(value)
    return str(getattr(value, "id", "")) or _shorten(_line(value).partition(": ")[2], MAX_TEXT)


def _items(value: Any) -> Iterator[str]:
    """Yield a line for each item that a result holds."""
    listed = [("", value)] if isinstance(value, Sequence) else _fields(value)
    for _, each in listed:
        if isinstance(each, Sequence) and not isinstance(each, str | bytes):
            yield from (f"  {_shorten(_line(item), MAX_LINE)}" for item in each if isinstance(item, Data))


def _size(value: Any) -> str:
    count = len(value) if hasattr(value, "__len__") else 0
    return f"({count})" if count else ""


def _shorten(text: str, most: int) -> str:
    """Return a text in one line of at most so many characters, without control characters."""
    flat = " ".join(text.split())
    shown = flat if flat.isprintable() else repr(flat)[1:-1]
    return shown if len(shown) <= most else f"{shown[: most - 3]}..."
