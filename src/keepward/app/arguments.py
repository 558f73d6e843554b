"""Arguments as people give them, turned into what changes hold."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from keepward.domain.instant import parse_duration
from keepward.errors import InvalidInput

_TEXTS = ("tier", "kind", "key", "subject", "category", "source", "stability", "sensitivity", "session", "speaker")


def duration(value: timedelta | str | None) -> timedelta | None:
    """Return a time to live given as a timedelta or as text such as ``30d``."""
    return parse_duration(value) if isinstance(value, str) else value


def durations(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields with a textual ``ttl`` read."""
    given = dict(fields)
    if isinstance(given.get("ttl"), str):
        given["ttl"] = parse_duration(given["ttl"])
    return given


def texts(name: str, value: Any) -> tuple[str, ...]:
    """Return a list of texts as a tuple.

    Raises:
        InvalidInput: it is one text, or holds something else.
    """
    if isinstance(value, str) or not all(isinstance(item, str) for item in value):
        raise InvalidInput(f"{name} is a list of texts")
    return tuple(value)


def usable(text: Any, fields: Mapping[str, Any]) -> None:
    """Make sure that what has to be text is text.

    Raises:
        InvalidInput: it is something else.
    """
    if text is not None and not isinstance(text, str):
        raise InvalidInput("text is a text")
    for name in _TEXTS:
        value = fields.get(name)
        if value is not None and not isinstance(value, str):
            raise InvalidInput(f"{name} is a text")
    if text is None:
        raise InvalidInput("text is a text")
