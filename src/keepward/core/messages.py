"""Talk: messages as chat APIs write them, what they tell that is worth knowing for longer, and what became of both."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from keepward.core.proposal import Outcome
from keepward.core.value import Data, Value, from_micros, parse_instant
from keepward.errors import InvalidInput

#: Who may speak, and the source that a memory of it names; None for instructions to the model, which are no memories.
ROLES: Mapping[str, str | None] = {
    "user": "user_message",
    "assistant": "assistant",
    "system": None,
    "developer": None,
    "tool": "tool",
    "function": "tool",
}
_TIMES = ("timestamp", "created_at", "create_time", "time", "date", "ts")


class Message(Data):
    """One message as it was given."""

    role: str
    #: Who spoke; the empty text where only the role is known.
    name: str
    #: Its parts that are text, with an empty line between them; empty for a call of a tool or a picture alone.
    text: str
    #: Its own id; the empty text where it has none.
    id: str
    said_at: datetime | None
    #: How many parts are no text.
    others: int


def parse_message(value: Any) -> Message:
    """Read ``{role, content, name?, id?, timestamp?}``; content is a text or a list of parts.

    Raises:
        InvalidInput: it is no message; what was given is not repeated.
    """
    if not isinstance(value, dict):
        raise InvalidInput("a message is an object with role and content")
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
    found = next((value[key] for key in _TIMES if value.get(key) not in (None, "")), None)
    if found is None or isinstance(found, datetime):
        return found
    try:
        return parse_timestamp(found)
    except InvalidInput as fault:
        raise InvalidInput("the timestamp is ISO 8601 or seconds or milliseconds since 1970") from fault


def parse_timestamp(value: Any) -> datetime:
    """Read ISO 8601, or seconds, milliseconds or microseconds since 1970, told apart by their size.

    Raises:
        InvalidInput: neither, or outside the years 1 to 9999.
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
    except (OverflowError, ValueError) as fault:
        raise InvalidInput("not a time") from fault


class Turn(Data):
    """One message of a talk, as it is stored."""

    role: str
    #: What who spoke is called in facts, such as ``Ana`` or ``The user``.
    speaker: str
    text: str
    #: Microseconds since the epoch; None where nobody said when.
    said_at: int | None = None


class Fact(Data, kw_only=False):
    """One thing that a talk tells."""

    text: str
    #: The words that it rests on, as they stand in the turn.
    quote: str
    #: Number of the turn that told it.
    turn: int = 0
    #: 0..1.
    importance: float = 0.5
    #: 0..1.
    confidence: float = 0.8


class Added(Value):
    """What became of a talk: its messages, and the facts that they tell."""

    #: What became of each message that has a text and is no instruction to the model, or of each part of a long one, in
    #: order.
    turns: tuple[Outcome, ...]
    #: What became of each fact, in the order in which they were told.
    facts: tuple[Outcome, ...]
    #: Plain sentences on what was left out and why.
    notes: tuple[str, ...] = ()
