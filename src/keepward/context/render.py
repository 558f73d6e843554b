"""Render: from an ordered list of lines to the bytes a model reads, now and again from a receipt.

Invariants
(1) The text depends on the lines and the format alone: no policy, no clock, no counter.
(2) ``replay`` of a context's facts gives its bytes; an erased memory shows as one fixed line instead.
(3) The stable prefix is the same bytes whatever follows it.
(4) Whatever changes the bytes of unchanged lines raises ``RENDERER``; receipts name it, and every earlier one is kept.
(5) What is trusted less than a person stands under a heading that says where it is from, one for all of a section;
    no name that it gives to a speaker or a key takes it out of there.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, TypeAlias

from keepward.context.guard import guard, label, masked, xml_attribute, xml_text
from keepward.context.sections import PREFIX, Format, happened_at, is_turn
from keepward.errors import InvalidInput
from keepward.model.compiled import Mask, Replayed
from keepward.model.memory import CORE_BLOCKS, ContentType, Record
from keepward.model.query import CONTEXT_LEGEND
from keepward.model.trust import Trust

#: Number of this way of rendering. 1 marked each line of an origin below an agent, and told nothing of agents.
RENDERER = 2
_KNOWN = frozenset({1, RENDERER})
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
_FROM = "<from "
_escape = json.JSONEncoder(ensure_ascii=False).encode

#: What has been opened so far: sections, blocks, groups.
Opened: TypeAlias = set[tuple[str, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
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
    renderer: int = RENDERER
    #: Its own paragraph by format: a line is priced, placed and told of in the receipt, and written once.
    _own: dict[Format, str] = field(default_factory=dict, init=False, repr=False, compare=False)

    def own(self, form: Format) -> str:
        """Return the paragraph that is the line itself, without the headings above it."""
        known = self._own.get(form)
        if known is None:
            known = self._own[form] = _own(self, form)
        return known


@dataclass(frozen=True, slots=True, kw_only=True)
class Rendered:
    """A text and whose each part of it is."""

    text: str
    #: Characters of the stable prefix.
    split: int
    #: Section, tier and end offset of each run, in order.
    runs: tuple[tuple[str, str, int], ...]

    @property
    def prefix_digest(self) -> str:
        """SHA-256 of the stable prefix, in hex."""
        return digest(self.text[: self.split])

    @property
    def tail_digest(self) -> str:
        """SHA-256 of the dynamic tail, in hex."""
        return digest(self.text[self.split :])

    def section_digests(self) -> dict[str, str]:
        """Return SHA-256 in hex of each section's part of the text."""
        found: dict[str, str] = {}
        start = 0
        for name, runs in groupby(self.runs, key=lambda run: run[0]):
            end = [run[2] for run in runs][-1]
            found[name] = digest(self.text[start:end])
            start = end
        return found


def digest(text: str) -> str:
    """Return SHA-256 of the text's UTF-8 bytes, in hex."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def line_of(section: str, record: Record, masks: Iterable[Mask], *, renderer: int = RENDERER) -> Line:
    """Return the line of a memory with its tidy masks applied."""
    return Line(
        section=section,
        tier=record.tier._value_,
        body=masked(record.text, masks),
        record=record,
        block=record.key or "core" if section == "core" else None,
        renderer=renderer,
    )


def with_documents(lines: Sequence[Line], identity: Line | None, user_file: Line | None) -> list[Line]:
    """Return the lines with the identity document first and the user file at the head of ``human``."""
    at = sum(1 for line in lines if line.section == "core" and line.block == "persona")
    middle = [] if user_file is None else [user_file]
    return [*([] if identity is None else [identity]), *lines[:at], *middle, *lines[at:]]


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
    at = happened_at(record)
    return f"{at.date().isoformat()} {_DAYS[at.weekday()]}"


def paragraphs(line: Line, form: Format, opened: Opened) -> list[str]:
    """Return the paragraphs a line adds, and note in ``opened`` what it opens."""
    return [*_headings(line, form, opened), line.own(form)]


def _headings(line: Line, form: Format, opened: Opened) -> list[str]:
    section, record = line.section, line.record
    mark = origin(record, line.renderer) if record is not None else None
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
    if record is not None and _grouped(line):
        told = day(record)
        if _opens(opened, ("group", record.session or "", told, mark or "")):
            parts.append(f"### {told}{f' · {mark}' if mark and not group else ''}")
    return parts


def _group(mark: str) -> str:
    return f"<from{xml_attribute('origin', mark)}>"


def _opens(opened: Opened, key: tuple[str, ...]) -> bool:
    fresh = key not in opened
    if fresh:
        opened.add(key)
    return fresh


def _grouped(line: Line) -> bool:
    """Whether the line stands under the day of its session."""
    return line.section == "recalled" and line.record is not None and is_turn(line.record)


def _own(line: Line, form: Format) -> str:
    if form == "xml":
        return _xml_item(line)
    if line.section in _HEADING:
        return _item(line, grouped=_grouped(line))
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
        if record.occurred_at is not None:
            marks.append(day(record))
        marks += [mark for mark in (origin(record, 1),) if mark and line.renderer == 1]
    text = guard(line.body)
    for name in (_line_key(line), record.speaker):
        if name:
            head = f"{label(name)}:"
            text = text if text.casefold().startswith(head.casefold()) else f"{head} {text}"
    return f"[{' · '.join(marks)}] {text}"


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
    dated = record.occurred_at is not None or is_turn(record)
    attributes = (
        xml_attribute("kind", record.kind.value)
        + xml_attribute("type", typed)
        + xml_attribute("key", _line_key(line))
        + xml_attribute("speaker", record.speaker)
        + xml_attribute("date", day(record) if dated else None)
        + xml_attribute("origin", origin(record, 1) if line.renderer == 1 else None)
    )
    return f"<memory{attributes}>{body}</memory>"


def added(line: Line, form: Format, opened: Opened) -> list[str]:
    """Return, near enough to price them, the parts of text a line adds; the line itself is the last."""
    closing = [f"\n</{line.section}>"] if form == "xml" and ("section", line.section) not in opened else []
    headings = _headings(line, form, opened)
    return [*closing, *(_added(part, form) for part in headings), alone_in(line, form)]


def alone_in(line: Line, form: Format) -> str:
    """Return the part of text that is the line itself, as ``added`` does."""
    return _added(line.own(form), form)


def _added(part: str, form: Format) -> str:
    return _escape(f"\n\n{part}")[1:-1] if form == "messages" else f"\n\n{part}"


def _paragraphs(lines: Iterable[Line], form: Format) -> Iterator[tuple[str, str, str]]:
    opened: Opened = set()
    group: Opened = set()
    for line in lines:
        before = {key for key in opened if key[0] == "group"}
        parts = paragraphs(line, form, opened)
        fresh = {key for key in opened if key[0] == "group"} - before
        # A group ends where another begins; it is opened anew when the session comes back.
        if fresh:
            opened -= group
            group = fresh
        yield from ((line.section, line.tier, part) for part in parts)


def render(lines: Sequence[Line], form: Format) -> Rendered:
    """Return the text of lines in their order; nothing for no lines."""
    found = list(_paragraphs(lines, form))
    if not found:
        text = "[]" if form == "messages" else ""
        return Rendered(text=text, split=0, runs=())
    border = sum(1 for section, _, _ in found if section in PREFIX)
    pieces = _wrapped(found, border, form)
    ends: list[tuple[str, str, int]] = []
    at = 0
    for (section, tier, _), piece in zip(found, pieces, strict=True):
        at += len(piece)
        if ends and ends[-1][:2] == (section, tier):
            ends.pop()
        ends.append((section, tier, at))
    closing = {"markdown": "", "xml": "</context>", "messages": "]"}[form]
    # The last character of the whole belongs to the tail, so that (3) holds for a context without one.
    split = sum(len(piece) for piece in pieces[:border]) - (len(closing) if border == len(pieces) else 0)
    return Rendered(text="".join(pieces), split=split, runs=tuple(ends))


def _wrapped(found: Sequence[tuple[str, str, str]], border: int, form: Format) -> list[str]:
    if form == "markdown":
        return [("\n\n" if at else "") + part for at, (_, _, part) in enumerate(found)]
    if form == "xml":
        names = [section for section, _, _ in found]
        pieces = [f"{part}\n" for _, _, part in found]
        within = False
        for at, name in enumerate(names):
            within = within or found[at][2].startswith(_FROM)
            ends = at + 1 == len(names) or names[at + 1] != name
            if within and (ends or found[at + 1][2].startswith(_FROM)):
                pieces[at] += "</from>\n"
                within = False
            if ends:
                pieces[at] += f"</{name}>\n"
        pieces[0] = f"<context>\n{pieces[0]}"
        pieces[-1] += "</context>"
        return pieces
    # JSON escapes character by character, so that the parts can be escaped one by one.
    pieces = [_escape(part if at in {0, border} else f"\n\n{part}")[1:-1] for at, (_, _, part) in enumerate(found)]
    if border:
        pieces[0] = f'[{{"role": "system", "content": "{pieces[0]}'
        pieces[border - 1] += '"}'
    if border < len(pieces):
        pieces[border] = f'{", " if border else "["}{{"role": "user", "content": "{pieces[border]}'
        pieces[-1] += '"}'
    pieces[-1] += "]"
    return pieces


def replay(
    facts: Mapping[str, Any],
    fetch: Callable[[str, int], Record | None],
    artefact: Callable[[str, str], str | None],
) -> Replayed:
    """Render a context again from its facts, with each record at the version the facts name.

    ``artefact`` is asked for the kinds ``identity`` and ``user_file``. What either does not have is shown
    as a tombstone and listed.

    Raises:
        InvalidInput: the facts are of a renderer this version does not have.
    """
    renderer = facts.get("renderer")
    if renderer not in _KNOWN:
        raise InvalidInput("the context was rendered by another version; replay it with the Keepward that made it")
    missing: list[tuple[str, int]] = []
    documents: dict[str, Line | None] = {"identity": None, "user_file": None}
    for kind, version in facts["documents"].items():
        text = artefact(kind, version)
        if text is None:
            missing.append((kind, 0))
        documents[kind] = document(kind, text)
    lines: list[Line] = []
    for section in facts["sections"]:
        for item in section["items"]:
            record = fetch(item["id"], item["version"])
            if record is None or record.version != item["version"]:
                missing.append((item["id"], item["version"]))
                gone = Line(
                    section=section["name"],
                    tier=item["tier"],
                    body=None,
                    block=item.get("block"),
                    renderer=renderer,
                )
                lines.append(gone)
            else:
                masks = [(start, end, name) for start, end, name in item["masks"]]
                lines.append(line_of(section["name"], record, masks, renderer=renderer))
    again = render(with_documents(lines, documents["identity"], documents["user_file"]), facts["format"])
    then = {section["name"]: section["digest"] for section in facts["sections"]}
    now = again.section_digests()
    return Replayed(
        text=again.text,
        same=digest(again.text) == facts["digests"]["text"],
        prefix_digest=again.prefix_digest,
        tail_digest=again.tail_digest,
        unchanged=tuple(name for name in then if now.get(name) == then[name]),
        missing=tuple(missing),
    )
