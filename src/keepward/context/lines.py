"""Lines: one memory or document as it stands in a context, kept inside its place.

Invariants
(1) Whatever changes the bytes of unchanged lines raises ``RENDERER``; receipts name it, and every earlier one is kept.
(2) What is trusted less than a person stands under a heading that says where it is from, one for all of a section;
    no name that it gives to a speaker or a key takes it out of there.
(3) What ``guard`` does can be undone, and after it no line of a memory opens a heading, a code fence, a rule, one
    of our own ``[kind]`` markers or a chat turn, and no chat markup stands whole anywhere in it. Text without any of
    these is left byte for byte as it is. The escape is one backslash: before the first character of a structural line,
    and after the first character of chat markup; text that already carries backslashes there gets one more.
"""

from __future__ import annotations

import html
import json
from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import date
from functools import lru_cache
from typing import TypeAlias

from keepward.context.sections import PREFIX, Format, happened_at, is_turn
from keepward.model.compiled import Mask
from keepward.model.memory import CORE_BLOCKS, ContentType, Kind, Record
from keepward.model.patterns import regex
from keepward.model.query import CONTEXT_LEGEND
from keepward.model.trust import Trust

#: Number of this way of rendering. 1 marked each line of an origin below an agent, and told nothing of agents; 2 opened
#: a heading for each session of a day, and dated nothing else but what has an instant of its own.
RENDERER = 3
#: Stands where an erased memory or a lost document stood.
TOMBSTONE = "[erased]"
#: Opens the dynamic tail, once.
LEGEND = CONTEXT_LEGEND
_HEADING = {
    "pinned": "Lasting Memory",
    "state": "State",
    "working": "Working Memory",
    "recalled": "Memory Context",
}
_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
#: How the group of an origin begins in XML; no memory's own paragraph begins so.
FROM = "<from "
escape = json.JSONEncoder(ensure_ascii=False).encode

_BREAK = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"
_PAD = "[ \t\xa0\xad\u1680\u180e\u2000-\u200f\u202a-\u202f\u205f-\u2064\u3000\ufeff]*"
_END = rf"(?=[ \t]*(?:\Z|[{_BREAK}]))"
_STRUCTURE = (
    r"#|```|~~~"
    rf"|=+{_END}|-+{_END}|\*\*\*+{_END}|___+{_END}"
    r"|\[(?:identity|rule|fact|state|event|summary|document|erased)\b"
    r"|(?i:system|assistant|user|human|developer|tool)[ \t]{0,3}[:：]"
)
_BREAKS = regex(rf"[{_BREAK}]")
_LINE = regex(rf"(?:\A|(?<=[{_BREAK}]))({_PAD})(\\*)(?={_STRUCTURE})")
_MARKUP = regex(
    r"(?i)(?:"
    r"(?P<tag><)(?P<a>\\*)(?=[|｜]|</?sys>>|/?(?:system|assistant|human|think|thinking|antml:\w+"
    r"|tool_\w+|function_\w+|start_of_turn|end_of_turn|s)\b[^<>\n]{0,80}>)"
    r"|(?P<box>\[)(?P<b>\\*)(?=/?inst\])"
    r")"
)
_SPACE = regex(rf"[\s{_BREAK}\0]+")
_NOT_XML = regex("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

#: What has been opened so far, in order: sections, blocks, groups.
Opened: TypeAlias = dict[tuple[str, ...], None]


@dataclass(slots=True, kw_only=True, eq=False)
class Line:
    """One thing to render."""

    section: str
    tier: str
    #: Already masked; None when it is gone.
    body: str | None
    #: None for a document and for what is gone.
    record: Record | None = None
    #: Label of the core block it stands in.
    block: str | None = None
    #: Whether a newer memory in the text says otherwise.
    earlier: bool = False
    renderer: int = RENDERER
    #: Words for where it is from, see (2), and the day and these words, which lines share that stand under one day;
    #: None for any other line.
    mark: str | None = None
    under: tuple[str, str] | None = None
    #: Its own paragraph by format: a line is priced, placed and told of in the receipt, and written once.
    _own: dict[Format, str] = field(default_factory=dict, init=False)

    def own(self, form: Format, *, grouped: bool = True) -> str:
        """Return the paragraph that is the line itself, without the headings above it.

        What is not ``grouped`` under its day is dated by itself, behind its text, where no text of a memory can stand.
        """
        known = self._own.get(form)
        if known is None:
            known = self._own[form] = _own(self, form)
        if form == "xml" or self.body is None:
            return known
        notes = [self.date] if not grouped else []
        notes += ["earlier"] if self.earlier else []
        return f"{known} ({', '.join(notes)})" if notes else known

    @property
    def date(self) -> str:
        """The day alone, such as ``2026-03-01``; empty for what stands under none."""
        return self.under[0].partition(" ")[0] if self.under else ""


def guard(text: str) -> str:
    """Return the text with every structural line start and all chat markup escaped."""
    # Most memories are one plain line: then there is one place to look at, and no markup.
    plain = _BREAKS.search(text) is None and _LINE.match(text) is None
    lined = text if plain else _LINE.sub(r"\1\\\2", text)
    if "<" not in lined and "[" not in lined:
        return lined
    return _MARKUP.sub(lambda found: f"{found['tag'] or found['box']}\\{found['a'] or found['b'] or ''}", lined)


def label(text: str) -> str:
    """Return a name such as a key or speaker as one guarded line; runs of white space become one space."""
    return guard(_SPACE.sub(" ", text).strip())


def tidy(masks: Collection[Mask], length: int) -> tuple[Mask, ...]:
    """Return masks in order and without overlap, within a text of ``length`` characters.

    Overlapping spans become one, named after the first; empty ones are dropped.
    """
    if not masks:
        return ()
    clean: list[Mask] = []
    for start, end, name in sorted(masks):
        begin, stop = max(0, start), min(length, end)
        if begin >= stop:
            continue
        if clean and begin < clean[-1][1]:
            first, until, kept = clean[-1]
            clean[-1] = (first, max(until, stop), kept)
        else:
            clean.append((begin, stop, name))
    return tuple(clean)


def masked(text: str, masks: Collection[Mask]) -> str:
    """Return the text with each span of tidy masks replaced by ``[NAME]``."""
    if not masks:
        return text
    parts: list[str] = []
    at = 0
    for start, end, name in masks:
        parts += (text[at:start], f"[{name}]")
        at = end
    return "".join((*parts, text[at:]))


def xml_text(text: str) -> str:
    """Return the text as XML character data; characters XML cannot hold become U+FFFD."""
    return html.escape(_NOT_XML.sub("\ufffd", text), quote=False)


def xml_attribute(name: str, value: str | None) -> str:
    """Return `` name="value"``, or nothing for None."""
    if value is None:
        return ""
    plain = _NOT_XML.sub("\ufffd", _SPACE.sub(" ", value).strip())
    return f' {name}="{html.escape(plain)}"'


def line_of(
    section: str, record: Record, masks: Collection[Mask], *, earlier: bool = False, renderer: int = RENDERER
) -> Line:
    """Return the line of a memory with its tidy masks applied."""
    mark = origin(record, renderer)
    dated = section == "recalled" and (renderer > 2 or is_turn(record))
    return Line(
        section=section,
        tier=record.tier._value_,
        body=masked(record.text, masks),
        record=record,
        block=record.key or "core" if section == "core" else None,
        earlier=earlier,
        renderer=renderer,
        mark=mark,
        under=(day(record), mark or "") if dated else None,
    )


def document(kind: str, text: str | None) -> Line | None:
    """Return the line of an ``identity`` or ``user_file`` document; None for a blank one."""
    body = None if text is None else text.strip()
    if body == "":
        return None
    section, block = ("identity", "persona") if kind == "identity" else ("core", "human")
    return Line(section=section, tier="core", body=body, block=block)


def origin(record: Record, renderer: int = RENDERER) -> str | None:
    """Return the words for an origin that is trusted less than a person, or None."""
    if record.trust >= Trust.AGENT and record.heard is not None:
        if record.kind is Kind.EVENT:
            # A turn of a talk is marked for what its speaker read before, or for what it says itself.
            return f"trusted as {_named(record.heard)}, unverified"
        return f"noted by an agent after reading {_named(record.heard)}, unverified"
    if record.trust >= (Trust.AGENT if renderer == 1 else Trust.USER):
        return None
    if record.trust is Trust.AGENT:
        return "noted by an agent"
    return f"from {_named(record.trust)}, unverified"


def _named(trust: Trust) -> str:
    return "unknown source" if trust is Trust.UNKNOWN else trust.label


def day(record: Record) -> str:
    """Return the UTC day on which it happened, such as ``2026-03-01 Sun``."""
    return _day(happened_at(record).date())


@lru_cache(maxsize=4_096)
def _day(at: date) -> str:
    return f"{at.isoformat()} {_DAYS[at.weekday()]}"


def headings(line: Line, form: Format, opened: Opened, *, grouped: bool = True) -> list[str]:
    """Return the headings that a line opens; ``grouped`` is whether it stands under its day, where it may."""
    section, mark = line.section, line.mark
    # The group of an origin within its section (5); a line that is gone stands where it stood.
    group = mark if line.renderer > 1 and section in _HEADING else None
    if form == "xml":
        parts = [f"<about>{LEGEND}</about>"] if section not in PREFIX and _opens(opened, ("tail",)) else []
        parts += [f"<{section}>"] if _opens(opened, ("section", section)) else []
        return [*parts, _group(group)] if group and _opens(opened, ("origin", section, group)) else parts
    if section not in _HEADING:
        block = line.block or "core"
        return [f"## {label(block)}"] if _opens(opened, ("block", block)) else []
    parts = []
    fresh = _opens(opened, ("section", section))
    if _opens(opened, ("origin", section, group)) if group else fresh:
        legend = "" if section in PREFIX or not _opens(opened, ("tail",)) else f"\n{LEGEND}"
        parts.append(f"## {_HEADING[section]}{f' · {group}' if group else ''}{legend}")
    if line.record is not None and grouped and line.under:
        told = line.under[0]
        session = line.record.session or "" if line.renderer < 3 else ""
        if _opens(opened, ("group", session, told, mark or "")):
            parts.append(f"### {told}{f' · {mark}' if mark and not group else ''}")
    return parts


def _group(mark: str) -> str:
    return f"<from{xml_attribute('origin', mark)}>"


def _opens(opened: Opened, key: tuple[str, ...]) -> bool:
    fresh = key not in opened
    opened[key] = None
    return fresh


def _own(line: Line, form: Format) -> str:
    if form == "xml":
        return _xml_item(line)
    if line.section in _HEADING:
        return _item(line, grouped=line.under is not None)
    if line.body is None:
        return TOMBSTONE
    # A document is the owner's own file, structure and all; a memory is not.
    return line.body if line.record is None else guard(line.body)


def _item(line: Line, *, grouped: bool) -> str:
    record = line.record
    if record is None or line.body is None:
        return TOMBSTONE
    marks = [record.kind._value_]
    if record.content_type is not ContentType.TEXT:
        marks.append(record.content_type.value)
    if not grouped:
        if record.occurred_at is not None and not _dated(line):
            marks.append(day(record))
        marks += [mark for mark in (origin(record, 1),) if mark and line.renderer == 1]
    text = guard(line.body)
    for name in (_line_key(line), record.speaker):
        if name:
            head = f"{label(name)}:"
            text = text if text.casefold().startswith(head.casefold()) else f"{head} {text}"
    return f"[{' · '.join(marks)}] {text}"


def _dated(line: Line) -> bool:
    """Whether the line shows when the memory is from, whatever it is."""
    return line.section == "recalled" and line.renderer > 2


def _line_key(line: Line) -> str | None:
    """Return the key of a memory; one that was given the name of a core block, before these were reserved, has none."""
    key = line.record.key if line.record is not None else None
    return None if line.renderer > 1 and key in CORE_BLOCKS else key


def _xml_item(line: Line) -> str:
    record = line.record
    body = "<erased/>" if line.body is None else xml_text(line.body)
    if line.section in {"identity", "core"}:
        return f"<block{xml_attribute('name', line.block or 'core')}>{body}</block>"
    if record is None or line.body is None:
        return "<erased/>"
    typed = None if record.content_type is ContentType.TEXT else record.content_type.value
    dated = record.occurred_at is not None or is_turn(record) or _dated(line)
    attributes = (
        xml_attribute("kind", record.kind.value)
        + xml_attribute("type", typed)
        + xml_attribute("key", _line_key(line))
        + xml_attribute("speaker", record.speaker)
        + xml_attribute("date", day(record) if dated else None)
        + xml_attribute("earlier", "yes" if line.earlier else None)
        + xml_attribute("origin", origin(record, 1) if line.renderer == 1 else None)
    )
    return f"<memory{attributes}>{body}</memory>"


def added(line: Line, form: Format, opened: Opened) -> tuple[list[str], str]:
    """Return, near enough to price them, the parts of text a line adds, itself the last, and what it takes away."""
    closing = [f"\n</{line.section}>"] if form == "xml" and ("section", line.section) not in opened else []
    known = line.under if form != "xml" else None
    # The first of a day is dated by itself; a second one opens a heading for both.
    grouped = known is None or not _opens(opened, ("day", *known))
    parts = headings(line, form, opened, grouped=grouped)
    paired = grouped and known is not None and _opens(opened, ("pair", *known))
    gone = f" ({line.date})" if paired else ""
    return [*closing, *(_added(part, form) for part in (*parts, line.own(form, grouped=grouped)))], gone


def alone_in(line: Line, form: Format) -> str:
    """Return the part of text that is the line itself, as ``added`` does."""
    return _added(line.own(form), form)


def _added(part: str, form: Format) -> str:
    return escape(f"\n\n{part}")[1:-1] if form == "messages" else f"\n\n{part}"
