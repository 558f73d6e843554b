"""Messages: the list of ``{role, content, name?, timestamp?}`` of chat APIs.

Accepted are a JSON list, ``{"messages": [...]}``, and JSONL with one message or one such object a line. Each message
becomes a stable episodic event; its speaker is the name, or else the role. Messages without text, such as calls of
tools, are skipped and counted. A ``user_id`` of a message, or of the object around it, names its user.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from keepward.core.messages import parse_message
from keepward.errors import InvalidInput
from keepward.interchange.parsing import PROBED_LINES, ImportSource, Row
from keepward.interchange.run import ImportRun
from keepward.services.writing.splitter import UnusableItem

_SESSIONS = ("session", "session_id", "conversation_id", "thread_id")
_USERS = ("user_id", "userId")
_MAX_NAME = 200
#: Line or item number, session of its own if any, position in the session from 1, the message.
_Message = tuple[int, str | None, int, Any]


def detect(value: Any) -> bool:
    """Whether a JSON value is a message or an object with messages."""
    if not isinstance(value, dict):
        return False
    return isinstance(value.get("messages"), list) or ("role" in value and "content" in value)


def read(source: ImportSource, run: ImportRun) -> Iterator[Row]:
    """Read JSONL one line at a time, or one JSON document."""
    session = run.session or " ".join(source.stem.split())[:_MAX_NAME] or "import"
    for number, own, position, message in _messages(source):
        name = session if own is None else f"{session}{own}" if own.startswith("#") else own[:_MAX_NAME]
        yield from ((number, item) for _, item in events([(position, message)], name, run.skipped))


def events(messages: Iterable[tuple[int, Any]], session: str, skipped: Counter[str]) -> Iterator[Row]:
    """Yield the events of one session from (position, message) in order; ``skipped`` counts messages without text."""
    for position, value in messages:
        try:
            if isinstance(value, UnusableItem):
                raise value
            message = parse_message(value)
        except (UnusableItem, InvalidInput) as exc:
            yield position, exc if isinstance(exc, UnusableItem) else UnusableItem(str(exc))
            continue
        if not message.text:
            # A message that has only parts without text counts once, not by part.
            skipped["messages without text (calls of tools, pictures)"] += 1
            continue
        if message.others:
            skipped["parts that are not text (pictures, files)"] += message.others
        title = value.get("title")
        yield (
            position,
            {
                "text": message.text,
                "tier": "episodic",
                "kind": "event",
                "stability": "stable",
                "session": session,
                "speaker": message.name or message.role,
                "occurred_at": message.said_at,
                "name": message.id or None,
                "evidence": (f"{session}#{position}",),
                "metadata": {"role": message.role} | ({"title": title} if isinstance(title, str) else {}),
                "user": user_of(value),
            },
        )


def user_of(*values: Any) -> str | None:
    """Return the user that the first of these objects names."""
    named = (value.get(name) for value in values if isinstance(value, dict) for name in _USERS)
    return next((str(each) for each in named if isinstance(each, str | int) and str(each).strip()), None)


def messages_in(source: ImportSource) -> list[Any]:
    """Return the messages of a file in their order, unchanged."""
    found = []
    for number, _, _, message in _messages(source):
        if isinstance(message, UnusableItem):
            raise InvalidInput(f"line {number}: {message}") from message
        found.append(message)
    return found


def _messages(source: ImportSource) -> Iterator[_Message]:
    """Yield messages one after the other; those inside an object count as a session of their own."""
    lines = source.first() != "[" and any(
        isinstance(value, dict) for _, value in itertools.islice(source.values(), PROBED_LINES)
    )
    if not lines and source.first() != "[" and not detect(source.document()):
        raise InvalidInput("not a list of messages: each is an object with role and content")
    # A single conversation has the name of the file.
    many = lines or sum(_has_messages(row) for _, row in source.elements()) > 1
    position = 0
    for number, row in source.objects() if lines else source.elements():
        if not _has_messages(row):
            position += 1
            yield number, None, position, row
            continue
        own = next((row[key] for key in _SESSIONS if isinstance(row.get(key), str) and row[key].strip()), None)
        own = f"#{number}" if own is None and many else own
        user = user_of(row)
        for inner, message in enumerate(row["messages"], 1):
            whose = {"user_id": user} if user and isinstance(message, dict) else {}
            yield number if many else inner, own, inner, {**whose, **message} if whose else message


def _has_messages(row: Any) -> bool:
    return isinstance(row, dict) and isinstance(row.get("messages"), list)
