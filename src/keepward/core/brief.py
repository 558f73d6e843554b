"""Results as short text: the few lines that ``print`` shows.

A class with a line of its own registers it at ``line``, or at ``field_text`` for where it is a field. For example, a
memory is its id, version and text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from enum import Enum
from functools import singledispatch
from typing import Any

import msgspec

#: Limits of the short text: characters of a value, characters of a line, lines of a result.
MAX_TEXT, MAX_LINE, MAX_LINES = 80, 160, 20
#: A longer list or mapping is shown as its length.
_MAX_LISTED = 6


def brief(value: Any) -> str:
    """Return the few lines that ``print`` shows of a result; ``repr()`` and ``to_dict()`` have everything."""
    has_own_line = line.dispatch(type(value)) is not line.dispatch(object)
    lines = [line(value), *([] if has_own_line else _item_lines(value))]
    if len(lines) > MAX_LINES:
        rest = len(lines) - MAX_LINES + 1
        lines[MAX_LINES - 1 :] = [f"  ... and {rest} more; to_dict() has all of them"]
    return "\n".join(lines)


@singledispatch
def line(value: Any) -> str:
    """Return a result in one line: its class, and its fields that are not empty."""
    texts = (f"{name} {text}" for name, item in _fields(value) if (text := field_text(item)))
    name, fields = type(value).__name__, ", ".join(texts)
    return shorten(f"{name}: {fields}" if fields else f"{name}: {_size(value)}", 2 * MAX_LINE)


def _fields(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the fields of a result and their values."""
    if isinstance(value, msgspec.Struct):
        yield from ((name, getattr(value, name)) for name in value.__struct_fields__)


@singledispatch
def field_text(value: Any) -> str:
    """Return the text of a field in a line: nothing if it is empty, the number of items if it is long."""
    match value:
        case None | "" | bytes():
            return ""
        case Enum():
            return str(getattr(value, "label", value.value))
        case bool() | int():
            return str(value)
        case float():
            return f"{value:.3g}"
        case datetime():
            return f"{value:%Y-%m-%d %H:%M}"
        case str():
            return shorten(value, MAX_TEXT)
        case Mapping():
            if len(value) > _MAX_LISTED or not all(isinstance(item, int | str) for item in value.values()):
                return _size(value)
            return shorten(", ".join(f"{name} {item}" for name, item in value.items()), MAX_TEXT)
        case Sequence() | frozenset():
            if len(value) > _MAX_LISTED or not all(isinstance(item, str) for item in value):
                return _size(value)
            return shorten(", ".join(value), MAX_TEXT)
    return str(getattr(value, "id", "")) or shorten(line(value).partition(": ")[2], MAX_TEXT)


def _item_lines(value: Any) -> Iterator[str]:
    """Yield a line for each item of the lists of a result."""
    lists = [("", value)] if isinstance(value, Sequence) else _fields(value)
    for _, items in lists:
        if isinstance(items, Sequence) and not isinstance(items, str | bytes):
            yield from (f"  {shorten(line(item), MAX_LINE)}" for item in items if isinstance(item, msgspec.Struct))


def _size(value: Any) -> str:
    count = len(value) if hasattr(value, "__len__") else 0
    return f"({count})" if count else ""


def shorten(text: str, max_length: int) -> str:
    """Return a text in one line of at most ``max_length`` characters, without control characters."""
    flat = " ".join(text.split())
    shown = flat if flat.isprintable() else repr(flat)[1:-1]
    return shown if len(shown) <= max_length else f"{shown[: max_length - 3]}..."
