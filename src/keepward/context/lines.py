"""Lines: one memory or document as it appears in a context, unable to imitate the context's own structure.

Memories that are trusted less than a person appear under a heading that says where they are from.
The first line of a memory follows its kind, such as ``[fact]``, and the others are indented by four spaces. In core the
kind is left out before a person's plain prose. So no line of a memory begins where a heading, a role or one of our
markers would. Names in a label close no bracket, and a claimed role is in quotes.
No chat markup is intact: it gets a backslash after its first character; backslashes that are there get one more.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from datetime import date, datetime, time
from functools import lru_cache
from typing import NamedTuple

from keepward.core import letters
from keepward.core.compiled import Mask
from keepward.core.escaping import LINE_BREAK, escape_label, quoted
from keepward.core.memory import CORE_BLOCKS, ContentType, Kind, Record
from keepward.core.patterns import lazy_regex
from keepward.core.principals import Trust
from keepward.core.query import CONTEXT_LEGEND

#: Replaces an erased memory or a missing document.
TOMBSTONE = "[erased]"
#: Opens the dynamic tail once.
LEGEND = CONTEXT_LEGEND
#: Titles of the sections that are lists of lines.
HEADING = {
    "pinned": "Lasting Memory",
    "state": "State",
    "working": "Working Memory",
    "recalled": "Memory Context",
}
_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")

#: Colons and invisible characters.
_UNPLAIN = lazy_regex(rf"[:：﹕︓∶꞉ː{letters.INVISIBLE}]")
#: Names that speak for the owner or the host, in any spelling.
_AUTHORITIES = (
    *("system", "developer", "assistant", "user", "human", "tool", "owner", "operator", "admin", "administrator"),
    *("root", "keepward", "memory", "core"),
)
#: Speakers of messages whose role is known and not their name.
_SPEAKING_ROLES = frozenset({"user", "assistant", "tool"})


class Line(NamedTuple):
    """One thing to render."""

    #: Id of the memory, or ``identity`` or ``user_file`` for a document.
    name: str
    section: str
    tier: str
    #: The masked text; None if the memory is erased or missing.
    body: str | None
    #: The escaped paragraph, without headings and date.
    paragraph: str = TOMBSTONE
    #: Label of the core block that it belongs to.
    block: str | None = None
    #: Where a memory is from that is trusted less than a person; None for a person's own.
    trust: str | None = None
    #: The UTC day and time of a recalled memory, such as ``2026-03-01 Sun`` and ``09:30:00``.
    day: str | None = None
    time: str | None = None
    #: The session of a message, whose lines stand together in the order they were said.
    session: str | None = None


def name_label(name: str, record: Record) -> str:
    """Return a key or speaker for the label of a memory; a role that no person vouches for is in quotes."""
    label = escape_label(name)
    if record.effective_trust >= Trust.USER or (record.kind is Kind.EVENT and name in _SPEAKING_ROLES):
        return label
    return f'"{label}"' if _claims_authority(label) else label


@lru_cache(maxsize=4_096)
def _claims_authority(label: str) -> bool:
    authorities = set(map(letters.skeleton, _AUTHORITIES))
    return not authorities.isdisjoint(map(letters.skeleton, (label, *label.split())))


def merge_spans(masks: Collection[Mask], length: int) -> tuple[Mask, ...]:
    """Return masks in order and without overlap, within a text of ``length`` characters.

    Overlapping spans become one with the name of the first; empty ones are dropped.
    """
    if not masks:
        return ()
    merged: list[Mask] = []
    for start, end, name in sorted(masks):
        begin, stop = max(0, start), min(length, end)
        if begin >= stop:
            continue
        if merged and begin < merged[-1][1]:
            first, until, first_name = merged[-1]
            merged[-1] = (first, max(until, stop), first_name)
        else:
            merged.append((begin, stop, name))
    return tuple(merged)


def apply_masks(text: str, masks: Collection[Mask]) -> str:
    """Return the text with each span of merged masks replaced by ``[NAME]``."""
    parts: list[str] = []
    at = 0
    for start, end, name in masks:
        parts += (text[at:start], f"[{name}]")
        at = end
    return "".join((*parts, text[at:]))


def line_of(section: str, record: Record, masks: Collection[Mask], now: datetime) -> Line:
    """Return the line of a memory after applying merged masks.

    Where its valid time ends or has not begun at ``now``, the line says so.
    """
    body = apply_masks(record.text, masks) if masks else record.text
    listed, at = section in HEADING, record.said_at if section == "recalled" else None
    text, label = quoted(body), record.kind._value_
    if listed:
        if record.content_type is not ContentType.TEXT:
            label += f" · {record.content_type.value}"
        if at is None and record.occurred_at is not None:
            label += f" · {_format_day(record.occurred_at.date())}"
        # A key that is the name of a core block is not shown outside core.
        for name in (None if record.key in CORE_BLOCKS else record.key, record.speaker):
            if name:
                prefix = f"{name_label(name, record)}:"
                text = text if text.casefold().startswith(prefix.casefold()) else f"{prefix} {text}"
    since = listed and record.kind is Kind.STATE and at is None and record.occurred_at is None
    remarks = ", ".join(_remarks(record, now, since=since))
    # The first line decides whether it is prose, so the remark comes after.
    prose = _is_prose(text)
    text += f" ({remarks})" if remarks else ""
    if listed or record.effective_trust < Trust.USER or not prose:
        text = f"[{label}] {text}"
    block = record.key or "core" if section == "core" else None
    trust = trust_label(record) if listed else None
    day, time = (None, None) if at is None else (_format_day(at.date()), at.strftime("%H:%M:%S"))
    session = record.session if at is not None and record.kind is Kind.EVENT else None
    return Line(record.id, section, record.tier._value_, body, text, block, trust, day, time, session)


def _remarks(record: Record, now: datetime, *, since: bool) -> Iterator[str]:
    """Yield since when a state holds, the valid time of what ends or has not begun, and whether it is stale."""
    if since and (record.valid_from is None or record.valid_from <= now):
        yield f"since {format_instant(record.valid_from or record.text_at, day=record.valid_from is None)}"
    if (valid := valid_time(record, now)) is not None:
        yield valid
    if record.stale_at is not None:
        yield f"its source changed on {record.stale_at.date().isoformat()}"


def valid_time(record: Record, at: datetime) -> str | None:
    """Return when a memory holds, as seen at an instant: ``holds until 2027-01-03``; None if it just holds."""
    begins, ends = record.valid_from, record.valid_until
    if begins is not None and begins > at:
        return f"holds from {format_instant(begins)}" + ("" if ends is None else f" until {format_instant(ends)}")
    if ends is None:
        return None
    return f"{'holds' if ends > at else 'held'} until {format_instant(ends)}"


def format_instant(at: datetime, *, day: bool = False) -> str:
    """Return the UTC day of an instant, such as ``2027-01-03``; without ``day`` also a time other than midnight."""
    date = at.date().isoformat()
    return (
        date
        if day or at.time() == time()
        else f"{date} {at.time().isoformat('seconds' if at.second else 'minutes')} UTC"
    )


def _is_prose(text: str) -> bool:
    """Whether the first line begins with a letter and has neither a colon nor invisible characters, as prose has."""
    first = LINE_BREAK.split(text, maxsplit=1)[0]
    return first[:1].isalpha() and _UNPLAIN.search(first) is None


def document_line(kind: str, text: str | None) -> Line | None:
    """Return the line of an ``identity`` or ``user_file`` document; None if it is blank."""
    body = None if text is None else text.strip()
    if body == "":
        return None
    section, block = ("identity", "persona") if kind == "identity" else ("core", "human")
    # A document is the owner's own file, so its lines stay as they are.
    return Line(kind, section, "core", body, TOMBSTONE if body is None else body, block)


def trust_label(record: Record) -> str | None:
    """Return the heading suffix for a memory that is trusted less than a person; None for a person's own."""
    if record.trust >= Trust.AGENT and record.heard is not None:
        if record.kind is Kind.EVENT:
            # A message is tainted by what its speaker read before it.
            return f"trusted as {_named(record.heard)}, unverified"
        return f"noted by an agent after reading {_named(record.heard)}, unverified"
    if record.trust >= Trust.USER:
        return None
    return "noted by an agent" if record.trust is Trust.AGENT else f"from {_named(record.trust)}, unverified"


def _named(trust: Trust) -> str:
    return "unknown source" if trust is Trust.UNKNOWN else trust.label


@lru_cache(maxsize=4_096)
def _format_day(at: date) -> str:
    return f"{at.isoformat()} {_DAYS[at.weekday()]}"
