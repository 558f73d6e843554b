"""Messages: the list of ``{role, content, name?, timestamp?}`` that every chat API speaks.

Accepted are a JSON list, ``{"messages": [...]}``, and JSONL with one message or one such object a line.
Each message becomes an episodic event that stays, said by its name or else its role. Messages without
text (calls of tools, pictures alone) are skipped and counted. A message is known again by its own id or
else by its place in the session together with its text.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Any

from keepward.errors import InvalidInput
from keepward.interchange.reading import Flaw, Item, Plan, Source, Unusable, numbered, well_formed
from keepward.model.memory import Tier
from keepward.model.value import from_micros, parse_instant

if TYPE_CHECKING:
    from keepward.memory import Memory

ROLES = ("user", "assistant", "system", "developer", "tool", "function")
_TIMES = ("timestamp", "created_at", "create_time", "time", "date", "ts")
_NAMES = ("session", "session_id", "conversation_id", "thread_id")
_LONGEST_NAME = 200
#: How many lines are looked at for an object before the file is taken for one document.
_PROBE = 50


def looks_like(value: Any) -> bool:
    """Whether a JSON value is a message or an object that holds messages."""
    if not isinstance(value, dict):
        return False
    return isinstance(value.get("messages"), list) or ("role" in value and "content" in value)


def plan(source: Source, mem: Memory, session: str | None) -> Plan:
    """Read JSONL one line at a time, or one JSON document; ``session`` names what names no session of its own.

    Raises:
        InvalidInput: neither, cut, or no messages.
    """
    rows: Iterable[tuple[int, Any]] = source.values()
    many = True
    if _is_document(source):
        document = source.document()
        listed = document if isinstance(document, list) else [document]
        if not isinstance(document, list) and not looks_like(document):
            raise InvalidInput("not a list of messages: each is an object with role and content")
        rows = enumerate(listed, 1)
        many = sum(isinstance(row, dict) and isinstance(row.get("messages"), list) for row in listed) > 1
        total = sum(len(row["messages"]) if looks_like(row) and "messages" in row else 1 for row in listed)
    else:
        total = source.checked_lines()
    name = session or " ".join(source.stem.split())[:_LONGEST_NAME] or "import"
    made = Plan(total=total, entries=iter(()))
    made.entries = _through(_opened(rows, many=many), name, mem.policy.text_limit[Tier.EPISODIC], made)
    return made


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


def _through(rows: Iterator[_Row], session: str, limit: int, plan: Plan) -> Iterator[Item | Flaw]:
    skipped: Counter[str] = Counter()
    for number, own, place, row in rows:
        name = session if own is None else f"{session}{own}" if own.startswith("#") else own[:_LONGEST_NAME]
        try:
            if isinstance(row, Unusable):
                raise row
            fields = _fields(row, name, place, skipped)
            if fields is None:
                continue
            named = isinstance(row.get("id"), str) and bool(row["id"].strip())
            for part in numbered(fields, limit):
                yield Item(number=number, fields=part, named=named)
        except Unusable as fault:
            yield Flaw(number=number, reason=str(fault))
    plan.notes += [f"skipped: {count} {what}" for what, count in sorted(skipped.items())]


def _fields(row: Any, session: str, place: int, skipped: Counter[str]) -> dict[str, Any] | None:
    if not isinstance(row, dict):
        raise Unusable("a message is an object with role and content")
    well_formed(row)
    role, name = row.get("role"), row.get("name")
    if not isinstance(role, str) or role not in ROLES:
        raise Unusable(f"the role is one of {', '.join(ROLES)}")
    if name is not None and not isinstance(name, str):
        raise Unusable("the name is a text")
    text = _text_of(row.get("content"), skipped)
    at = _time_of(row)
    if not text:
        skipped["messages without text (calls of tools, pictures)"] += 1
        return None
    own = row.get("id")
    alias = own.strip() if isinstance(own, str) and own.strip() else f"{session}#{place}"
    return {
        "text": text,
        "tier": "episodic",
        "kind": "event",
        "stability": "stable",
        "session": session,
        "speaker": " ".join((name or "").split()) or role,
        "occurred_at": at,
        "aliases": (alias,),
        "evidence": (f"{session}#{place}",),
        "metadata": {"role": role},
    }


def _text_of(content: Any, skipped: Counter[str]) -> str:
    if content is None:
        return ""
    if isinstance(content, str):
        return content.strip()
    if not isinstance(content, list):
        raise Unusable("the content is a text or a list of parts")
    texts: list[str] = []
    others = 0
    for part in content:
        text = part if isinstance(part, str) else part.get("text") if isinstance(part, dict) else None
        if isinstance(text, str):
            texts.append(text.strip())
        elif isinstance(part, dict):
            others += 1
        else:
            raise Unusable("a part of the content is a text or an object")
    if others and any(texts):
        # A message with nothing but such parts is counted as a whole.
        skipped["parts that are not text (pictures, files)"] += others
    return "\n\n".join(text for text in texts if text)


def _time_of(row: dict[str, Any]) -> datetime | None:
    value = next((row[key] for key in _TIMES if row.get(key) not in (None, "")), None)
    if value is None:
        return None
    try:
        return read_time(value)
    except InvalidInput as fault:
        raise Unusable("the timestamp is ISO 8601 or seconds or milliseconds since 1970") from fault


def read_time(value: Any) -> datetime:
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
