"""Messages: the list of ``{role, content, name?, timestamp?}`` that every chat API speaks.

Accepted are a JSON list, ``{"messages": [...]}``, and JSONL with one message or one such object a line.
Each message becomes an episodic event that stays, said by its name or else its role. Messages without
text (calls of tools, pictures alone) are left out and counted. A message is known again by its own id or
else by its place in the session together with its text.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from keepward.core.memory import Tier
from keepward.core.messages import message_of
from keepward.errors import InvalidInput
from keepward.interchange.reading import Flaw, Item, Plan, Source, well_formed
from keepward.services.parts import Unusable, numbered

if TYPE_CHECKING:
    from keepward.memory import Memory

_NAMES = ("session", "session_id", "conversation_id", "thread_id")
_LONGEST_NAME = 200
#: How many lines are looked at for an object before the file is taken for one document.
_PROBE = 50


def looks_like(value: Any) -> bool:
    """Whether a JSON value is a message or an object that holds messages."""
    if not isinstance(value, dict):
        return False
    return isinstance(value.get("messages"), list) or ("role" in value and "content" in value)


def plan(source: Source, mem: Memory) -> Plan:
    """Read JSONL one line at a time, or one JSON document."""
    rows, total, many = _rows(source)
    session = source.session or " ".join(source.stem.split())[:_LONGEST_NAME] or "import"
    limit, left = mem.policy.text_limit[Tier.EPISODIC], Counter[str]()

    def entries() -> Iterator[Item | Flaw]:
        for number, own, place, row in _opened(rows, many=many):
            name = session if own is None else f"{session}{own}" if own.startswith("#") else own[:_LONGEST_NAME]
            yield from turns([(place, row)], name, limit, left, number)

    return Plan(total=total, entries=entries(), left=left)


def turns(
    rows: Iterable[tuple[int, Any]], session: str, limit: int, left: Counter[str], number: int | None = None
) -> Iterator[Item | Flaw]:
    """Yield the events of one session from (place, message) in order; what has no text is counted in ``left``.

    ``number`` is that of all of them; by default each has its place.
    """
    for place, row in rows:
        at = place if number is None else number
        try:
            if isinstance(row, Unusable):
                raise row
            fields = _fields(row, session, place, left)
            if fields is None:
                continue
            named = isinstance(row.get("id"), str) and bool(row["id"].strip())
            for part in numbered(fields, limit):
                yield Item(number=at, fields=part, named=named)
        except Unusable as fault:
            yield Flaw(number=at, reason=str(fault))


def messages_in(source: Source) -> list[Any]:
    """Return the messages of a file in their order, as they stand there."""
    rows, _, many = _rows(source)
    found = []
    for number, _, _, row in _opened(rows, many=many):
        if isinstance(row, Unusable):
            raise InvalidInput(f"line {number}: {row}") from row
        found.append(row)
    return found


def _rows(source: Source) -> tuple[Iterable[tuple[int, Any]], int, bool]:
    """Return lines or items with their numbers, how many messages there are, and whether in several talks."""
    if not _is_document(source):
        return source.values(), source.checked_lines(), True
    listed, total, talks = source.first() == "[", 0, 0
    try:
        for _, row in source.elements():
            if not listed and not looks_like(row):
                raise InvalidInput("not a list of messages: each is an object with role and content")
            inner = isinstance(row, dict) and isinstance(row.get("messages"), list)
            talks += inner
            total += len(row["messages"]) if inner else 1
    except Unusable as fault:
        raise source.unreadable(fault) from fault
    return source.elements(), total, talks > 1


def _is_document(source: Source) -> bool:
    """Whether a file of messages is one JSON value, and not one value a line."""
    return source.first() == "[" or not any(
        isinstance(value, dict) for _, value in itertools.islice(source.values(), _PROBE)
    )


#: Line or item number, session of its own if any, place in the session from 1, the message.
_Row = tuple[int, str | None, int, Any]


def _opened(rows: Iterable[tuple[int, Any]], *, many: bool) -> Iterator[_Row]:
    """Lay out messages one after the other; those inside an object count as a session of their own."""
    place = 0
    for number, row in rows:
        if isinstance(row, dict) and isinstance(row.get("messages"), list):
            own = next((row[key] for key in _NAMES if isinstance(row.get(key), str) and row[key].strip()), None)
            if own is None and many:
                own = f"#{number}"
            for inner, message in enumerate(row["messages"], 1):
                yield number if many else inner, own, inner, message
        else:
            place += 1
            yield number, None, place, row


def _fields(row: Any, session: str, place: int, left: Counter[str]) -> dict[str, Any] | None:
    if isinstance(row, dict):
        well_formed(row)
    try:
        message = message_of(row)
    except InvalidInput as fault:
        raise Unusable(str(fault)) from fault
    if not message.text:
        # A message with nothing but parts that are no text is counted as a whole.
        left["messages without text (calls of tools, pictures)"] += 1
        return None
    if message.others:
        left["parts that are not text (pictures, files)"] += message.others
    return {
        "text": message.text,
        "tier": "episodic",
        "kind": "event",
        "stability": "stable",
        "session": session,
        "speaker": message.name or message.role,
        "occurred_at": message.said_at,
        "aliases": (message.id or f"{session}#{place}",),
        "evidence": (f"{session}#{place}",),
        "metadata": {"role": message.role} | ({"title": row["title"]} if isinstance(row.get("title"), str) else {}),
    }
