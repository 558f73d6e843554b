"""Lines: one memory or document as it appears in a context, unable to imitate the context's own structure.

Memories that are trusted less than a person appear under a heading that says where they are from.
``escape_structure`` is reversible. After it no line of a memory opens a heading, a code fence, a rule, one of our
``[kind]`` markers or a chat message, and no chat markup is intact. Other text stays byte for byte the same. The escape
is one backslash: before the first character of a structural line, and after the first character of chat markup. Text
that already has backslashes there gets one more.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import date
from functools import lru_cache
from typing import NamedTuple

from keepward.core import letters
from keepward.core.compiled import Mask
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

_LINE_BREAK_CHARS = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"
_INVISIBLE_CHARS = letters.INVISIBLE
_BLANK_CHARS = " \t\xa0\u1680\u2000-\u200a\u202f\u205f\u3000"
#: Blanks, quote marks and list markers. The quantifier is possessive, so a long run takes linear time.
_LINE_PREFIX = (
    rf"(?:[>{_BLANK_CHARS}{_INVISIBLE_CHARS}]|(?:[-*+•]|[0-9]{{1,9}}[.)])"
    rf"(?=[{_BLANK_CHARS}{_INVISIBLE_CHARS}]++[^{_BLANK_CHARS}{_INVISIBLE_CHARS}{_LINE_BREAK_CHARS}]))*+"
)
_LINE_END = rf"(?:\Z|(?=[{_LINE_BREAK_CHARS}]))"


def _pattern_ignoring_invisible(*words: str) -> str:
    """Return a pattern for any of some words, with any invisible characters between their letters."""
    return "(?:" + "|".join(f"[{_INVISIBLE_CHARS}]*+".join(word) for word in words) + ")"


_ROLE = _pattern_ignoring_invisible("system", "assistant", "user", "human", "developer", "tool", "ai")
_TITLES = (*HEADING.values(), *CORE_BLOCKS, "operating rules", "workspace state")
_STRUCTURE = (
    rf"[#＃﹟]|(?i:<[/{_INVISIBLE_CHARS}]*+"
    + _pattern_ignoring_invisible(
        "h1", "h2", "h3", "h4", "h5", "h6", "hgroup", "header", "section", "article", "title", "summary", "legend"
    )
    + r"\b|<[/\s]*+"
    + _pattern_ignoring_invisible(
        "user", "developer", "model", "tool", "instructions", "rules", "rule", "memory", "context", *CORE_BLOCKS
    )
    + rf"\b[^<>\n]{{0,80}}>)|{_pattern_ignoring_invisible('```', '~~~')}"
    rf"|(?:[=][={_BLANK_CHARS}{_INVISIBLE_CHARS}]*+|-[-{_BLANK_CHARS}{_INVISIBLE_CHARS}]*+|\*[*{_BLANK_CHARS}{_INVISIBLE_CHARS}]*+|__[_{_BLANK_CHARS}{_INVISIBLE_CHARS}]*+){_LINE_END}"
    rf"|[*_]{{0,3}}(?:[\[［][{_INVISIBLE_CHARS}]*+"
    + _pattern_ignoring_invisible("identity", "rule", "fact", "state", "event", "summary", "document", "erased")
    + rf"\b|(?i:{_ROLE}(?:[ \t]+(?:prompt|message|instructions?))?[*_]{{0,3}}[ \t]{{0,3}}[:：]))"
    # A title alone on a line after another line.
    + rf"|(?<=[{_BLANK_CHARS}{_INVISIBLE_CHARS}{_LINE_BREAK_CHARS}>*+•.)-])[*_]{{0,3}}"
    + rf"(?i:{_pattern_ignoring_invisible(*_TITLES)})"
    + rf"(?:[ \t]*·[^\n]*|[*_:：{_BLANK_CHARS}{_INVISIBLE_CHARS}]*+){_LINE_END}"
)
_LINE_BREAK = lazy_regex(rf"[{_LINE_BREAK_CHARS}]")
_INVISIBLE = lazy_regex(f"[{_INVISIBLE_CHARS}]")
_LINE_WITH_INVISIBLE = rf"(?:\A|(?<=[{_LINE_BREAK_CHARS}]))({_LINE_PREFIX})(\\*)(?={_STRUCTURE})"
#: The two patterns agree on texts without invisible characters. The short one compiles in 2 ms, the long one in 50 ms.
_LONG_LINE = lazy_regex(_LINE_WITH_INVISIBLE)
_LINE = lazy_regex(_LINE_WITH_INVISIBLE.replace(f"[{_INVISIBLE_CHARS}]*+", "").replace(_INVISIBLE_CHARS, ""))
_MARKUP = lazy_regex(
    r"(?i)(?:"
    rf"(?P<tag><[{_INVISIBLE_CHARS}]*+)(?P<a>\\*)(?=[|｜]|</?sys>>|/?(?:system|assistant|human|think|thinking|antml:\w+"
    r"|tool_\w+|function_\w+|start_of_turn|end_of_turn|s|[be]os)\b[^<>\n]{0,80}>)"
    rf"|(?P<box>\[[{_INVISIBLE_CHARS}]*+)(?P<b>\\*)(?=/?inst\])"
    r")"
)
_SPACE = lazy_regex(rf"[\s{_LINE_BREAK_CHARS}\0]+")


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
    #: The day of a recalled memory, such as ``2026-03-01 Sun``.
    day: str | None = None


def escape_structure(text: str) -> str:
    """Return the text with every structural line start and all chat markup escaped."""
    # Most memories are one plain line without markup: check the start of that line only.
    line = _LINE if _INVISIBLE.search(text) is None else _LONG_LINE
    plain = _LINE_BREAK.search(text) is None and line.match(text) is None
    lined = text if plain else line.sub(r"\1\\\2", text)
    if "<" not in lined and "[" not in lined:
        return lined
    return _MARKUP.sub(lambda match: f"{match['tag'] or match['box']}\\{match['a'] or match['b'] or ''}", lined)


def escape_label(text: str) -> str:
    """Return a name such as a key or speaker as one escaped line; white space becomes single spaces."""
    return escape_structure(_SPACE.sub(" ", text).strip())


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


def line_of(section: str, record: Record, masks: Collection[Mask]) -> Line:
    """Return the line of a memory after applying merged masks."""
    body = apply_masks(record.text, masks) if masks else record.text
    listed, dated = section in HEADING, day_of(record) if section == "recalled" else None
    text = escape_structure(body)
    if listed:
        label = record.kind._value_
        if record.content_type is not ContentType.TEXT:
            label += f" · {record.content_type.value}"
        if dated is None and record.occurred_at is not None:
            label += f" · {day_of(record)}"
        # A key that is the name of a core block is not shown outside core.
        for name in (None if record.key in CORE_BLOCKS else record.key, record.speaker):
            if name:
                prefix = f"{escape_label(name)}:"
                text = text if text.casefold().startswith(prefix.casefold()) else f"{prefix} {text}"
        text = f"[{label}] {text}"
    block = record.key or "core" if section == "core" else None
    trust = trust_label(record) if listed else None
    return Line(record.id, section, record.tier._value_, body, text, block, trust, dated)


def document_line(kind: str, text: str | None) -> Line | None:
    """Return the line of an ``identity`` or ``user_file`` document; None if it is blank."""
    body = None if text is None else text.strip()
    if body == "":
        return None
    section, block = ("identity", "persona") if kind == "identity" else ("core", "human")
    # A document is the owner's own file, so its structure is not escaped.
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


def day_of(record: Record) -> str:
    """Return the UTC day of the text, such as ``2026-03-01 Sun``."""
    return _format_day(record.said_at.date())


@lru_cache(maxsize=4_096)
def _format_day(at: date) -> str:
    return f"{at.isoformat()} {_DAYS[at.weekday()]}"
