"""Conversations: messages as chat APIs write them, facts extracted from them, and the result of adding both."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from keepward.core.foreign_words import ForeignFields
from keepward.core.principals import ROLES
from keepward.core.proposal import Outcome
from keepward.core.value import Data, Value, from_micros, parse_instant
from keepward.errors import InvalidInput

_TIMES = ("timestamp", "created_at", "create_time", "time", "date", "ts")


class Message(Data):
    """One message."""

    role: str
    #: Name of the speaker; empty if only the role is known.
    name: str
    #: Its text parts, joined by an empty line; empty for a tool call or an image.
    text: str
    #: Its id; empty if it has none.
    id: str
    said_at: datetime | None
    #: Number of parts that are not text.
    others: int


def parse_message(value: Any) -> Message:
    """Parse ``{role, content, name?, id?, timestamp?}``; the content is a text or a list of parts.

    Raises:
        InvalidInput: it is not a message. The error does not repeat the value.
    """
    if not isinstance(value, dict):
        raise InvalidInput('a message is an object, such as {"role": "user", "content": "..."}')
    role, name, own = value.get("role"), value.get("name"), value.get("id")
    if not isinstance(role, str) or role not in ROLES:
        raise InvalidInput(f"the role is one of {', '.join(ROLES)}")
    if name is not None and not isinstance(name, str):
        raise InvalidInput("the name is a text")
    text, others = _text_of(value.get("content"))
    return Message(
        role=role,
        name=" ".join((name or "").split()),
        text=text,
        id=own.strip() if isinstance(own, str) else "",
        said_at=_time_of(value),
        others=others,
    )


def _text_of(content: Any) -> tuple[str, int]:
    if content is None:
        return "", 0
    if isinstance(content, str):
        return content.strip(), 0
    if not isinstance(content, list):
        raise InvalidInput("the content is a text or a list of parts")
    texts: list[str] = []
    others = 0
    for part in content:
        text = part if isinstance(part, str) else part.get("text") if isinstance(part, dict) else None
        if isinstance(text, str):
            texts.append(text.strip())
        elif isinstance(part, dict):
            others += 1
        else:
            raise InvalidInput("a part of the content is a text or an object")
    return "\n\n".join(text for text in texts if text), others


def _time_of(value: Mapping[str, Any]) -> datetime | None:
    timestamp = next((value[key] for key in _TIMES if value.get(key) not in (None, "")), None)
    if timestamp is None or isinstance(timestamp, datetime):
        return timestamp
    try:
        return parse_timestamp(timestamp)
    except InvalidInput as exc:
        raise InvalidInput("the timestamp is ISO 8601 or seconds or milliseconds since 1970") from exc


def parse_timestamp(value: Any) -> datetime:
    """Parse ISO 8601, or seconds, milliseconds or microseconds since 1970, distinguished by their size.

    Raises:
        InvalidInput: it is neither, or its year is not from 1 to 9999.
    """
    if isinstance(value, str):
        try:
            number = float(value)
        except ValueError:
            return parse_instant(value.strip())
        value = number
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidInput("not a time")
    unit = 1 if abs(value) >= 1e14 else 1_000 if abs(value) >= 1e11 else 1_000_000
    try:
        return from_micros(round(value * unit))
    except (OverflowError, ValueError) as exc:
        raise InvalidInput("not a time") from exc


class Turn(Data):
    """One stored message of a conversation."""

    role: str
    #: Name of the speaker in facts, such as ``Ana`` or ``The user``.
    speaker: str
    text: str
    #: Microseconds since 1970; None without a timestamp.
    said_at: int | None = None


class Fact(Data, kw_only=False):
    """One extracted fact."""

    text: str
    #: The words that it is based on, as in the message.
    quote: str
    #: Number of its message.
    turn: int = 0
    #: 0..1.
    importance: float = 0.5
    #: 0..1.
    confidence: float = 0.8


class Added(ForeignFields, Value):
    """The result of ``add``: the outcomes of the messages and of the facts."""

    #: Outcome of each message with text that is not an instruction to the model, in order. A long message has one
    #: outcome for each part.
    turns: tuple[Outcome, ...]
    #: Outcome of each fact, in the order of the messages.
    facts: tuple[Outcome, ...]
    #: Sentences about what was left out and why.
    notes: tuple[str, ...] = ()
