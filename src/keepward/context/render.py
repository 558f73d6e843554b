"""Render ordered lines to the text that a model reads, now and again from a receipt.

The text depends on the lines alone: no policy, no clock, no counter. As messages it is the same text in two parts.
The stable prefix has the same bytes whatever follows it. ``replay`` of a context's facts gives its bytes; an erased
memory becomes one fixed line.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby, pairwise
from operator import itemgetter
from typing import Any, Final, TypeAlias

from keepward.context.lines import HEADING, LEGEND, Line, document_line, line_of
from keepward.context.sections import PREFIX_SECTIONS
from keepward.core.compiled import Mask, Replayed
from keepward.core.escaping import escape_label
from keepward.core.memory import Record
from keepward.core.value import from_micros
from keepward.errors import InvalidInput
from keepward.types import Format


@dataclass(frozen=True, slots=True, kw_only=True)
class RenderedText:
    """A text, with the position of each of its parts."""

    text: str
    #: Characters of the stable prefix.
    split: int
    #: Characters of the beginning that a person vouches for: no line in it has a label of lower trust.
    vouched: int
    #: Section, tier and end offset of each run of lines, in order.
    runs: tuple[tuple[str, str, int], ...]
    #: End offset of each line, in order. The headings before a line belong to it.
    ends: tuple[int, ...] = ()

    def formatted(self, form: Format) -> str:
        """Return the text, or for ``messages`` a JSON list: what a person vouches for as system, the rest as user."""
        if form == "markdown":
            return self.text
        parts = ("system", self.text[: self.vouched]), ("user", self.text[self.vouched :].removeprefix("\n\n"))
        return json.dumps([{"role": role, "content": text} for role, text in parts if text], ensure_ascii=False)

    @property
    def prefix_digest(self) -> str:
        """SHA-256 of the stable prefix, in hex."""
        return digest(self.text[: self.split])

    @property
    def tail_digest(self) -> str:
        """SHA-256 of the dynamic tail, in hex."""
        return digest(self.text[self.split :])

    def section_digests(self) -> dict[str, str]:
        """Return the SHA-256 in hex of each section's part of the text."""
        digests: dict[str, str] = {}
        start = 0
        for name, runs in groupby(self.runs, key=itemgetter(0)):
            end = [run[2] for run in runs][-1]
            digests[name] = digest(self.text[start:end])
            start = end
        return digests


def digest(text: str) -> str:
    """Return the SHA-256 of the text's UTF-8 bytes, in hex."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def is_sparing(budget_tokens: int | None) -> bool:
    """Whether a context of this budget spares times: a named budget is filled, so tokens of times displace memories."""
    return budget_tokens is not None


def insert_documents(lines: Sequence[Line], identity: Line | None, user_file: Line | None) -> list[Line]:
    """Return the lines with the identity document first and the user file at the start of ``human``."""
    at = sum(1 for line in lines if line.section == "core" and line.block == "persona")
    middle = [] if user_file is None else [user_file]
    return [*([] if identity is None else [identity]), *lines[:at], *middle, *lines[at:]]


_NO_GROUP: tuple[str | None, ...] = (None, None, None)


def render(lines: Sequence[Line], *, sparing: bool = False) -> RenderedText:
    """Return the text of lines in their order; empty for no lines.

    Lines of one section and trust share a heading. Two or more lines of one day share another one. A single line has
    its date after the text, where no memory can write. Lines that share a day have their times too. ``sparing`` leaves
    out the times that follow from the order within a session.
    """
    #: Section or block, trust and day of each line. A missing memory keeps the group of the line before it.
    groups: list[tuple[str | None, ...]] = [_NO_GROUP]
    for line in lines:
        if line.section not in HEADING:
            groups.append((f"block {line.block or 'core'}", None, None))
        elif line.body is not None or groups[-1][0] != line.section:
            groups.append((line.section, line.trust, line.day))
        else:
            groups.append(groups[-1])
    groups.append(_NO_GROUP)
    times = _times_to_show(lines, sparing=sparing)
    text, legend = "", f"\n{LEGEND}"
    split = vouched = 0
    lower_trust = False
    runs: list[tuple[str, str, int]] = []
    ends: list[int] = []
    for n, line in enumerate(lines, 1):
        previous, group, following = groups[n - 1 : n + 2]
        if n > 1:
            text += "\n\n"
        if group[:2] != previous[:2]:
            if line.section not in HEADING:
                text += f"## {escape_label(line.block or 'core')}\n\n"
            else:
                trust = f" · {group[1]}" if group[1] else ""
                text += f"## {HEADING[line.section]}{trust}{'' if line.section in PREFIX_SECTIONS else legend}\n\n"
                legend = legend if line.section in PREFIX_SECTIONS else ""
        shares_day = group[2] is not None and group in (previous, following)
        if shares_day and group != previous:
            text += f"### {group[2]}\n\n"
        date = None if shares_day or line.day is None else line.day[:10]
        when = " ".join(filter(None, (date, times.get(n))))
        text += f"{line.paragraph} ({when})" if when else line.paragraph
        ends.append(len(text))
        lower_trust = lower_trust or line.trust is not None
        if line.section in PREFIX_SECTIONS:
            split = len(text)
            vouched = vouched if lower_trust else split
        if runs and runs[-1][:2] == (line.section, line.tier):
            runs.pop()
        runs.append((line.section, line.tier, len(text)))
    return RenderedText(text=text, split=split, vouched=vouched, runs=tuple(runs), ends=tuple(ends))


#: A sparing text shows the time of a message again only after a pause of so many seconds.
PAUSE_S: Final = 300


def _times_to_show(lines: Sequence[Line], *, sparing: bool) -> dict[int, str]:
    """Return by position, from 1, the times that tell lines of one day apart: minutes, or seconds if needed."""
    days: dict[str, list[tuple[int, Line]]] = {}
    for n, line in enumerate(lines, 1):
        if line.day is not None and line.time is not None:
            days.setdefault(line.day, []).append((n, line))
    shown: dict[int, str] = {}
    for same_day in days.values():
        if len({line.time for _, line in same_day}) == 1:
            continue
        sessions = {line.session or line.name for _, line in same_day}
        chosen: list[tuple[int, str]] = []
        last: tuple[str | None, int] = (None, 0)
        for n, line in same_day:
            time = str(line.time)
            seconds = sum(60**power * int(part) for power, part in zip((2, 1, 0), time.split(":"), strict=True))
            same = sparing and line.session is not None and line.session == last[0]
            paused = seconds - last[1] >= PAUSE_S
            if paused if same else not sparing or len(sessions) > 1:
                chosen.append((n, time))
            last = line.session, seconds
        end = 5 if len({time[:5] for _, time in chosen}) == len({time for _, time in chosen}) else 8
        shown |= {n: time[:end] for n, time in chosen}
    return shown


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenCounts:
    """Tokens of a text."""

    total: int
    by_section: Mapping[str, int]
    by_tier: Mapping[str, int]


def count_section_tokens(rendered: RenderedText, count: Callable[[str], int]) -> TokenCounts:
    """Count the tokens of a text, and of each run as the difference that it makes.

    If a longer text counts less, that run gets 0, so that all numbers are at least 0 and sum to the total.
    """
    total = count(rendered.text)
    by_section: dict[str, int] = {}
    by_tier: dict[str, int] = {}
    before = 0
    for n, (section, tier, end) in enumerate(rendered.runs, start=1):
        until = total if n == len(rendered.runs) else max(before, min(total, count(rendered.text[:end])))
        by_section[section] = by_section.get(section, 0) + until - before
        by_tier[tier] = by_tier.get(tier, 0) + until - before
        before = until
    return TokenCounts(total=total, by_section=by_section, by_tier=by_tier)


#: The renderer of new contexts. Receipts name it, and each number keeps its renderer, so that a replay gives the same
#: bytes for ever. A change of ``line_of``, ``document_line`` or ``render`` takes a new number.
RENDERER: Final = 1

RecordLookup: TypeAlias = Callable[[str, int], Record | None]
ArtefactLookup: TypeAlias = Callable[[str, str], str | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Renderer:
    """The functions that make the lines of memories and documents, and the text of lines."""

    line_of: Callable[[str, Record, Collection[Mask], datetime], Line]
    document_line: Callable[[str, str | None], Line | None]
    render: Callable[..., RenderedText]


_RENDERERS: Final = {RENDERER: Renderer(line_of=line_of, document_line=document_line, render=render)}


def renderer_of(facts: Mapping[str, Any]) -> Renderer:
    """Return the renderer that a receipt names.

    Raises:
        InvalidInput: it names none, or one of a later version.
    """
    number = facts.get("renderer")
    if number is None:
        raise InvalidInput("this receipt is from before the first release: it names no renderer and cannot be replayed")
    if number not in _RENDERERS:
        raise InvalidInput(f"this receipt names the renderer {number}: replay it with the version that wrote it")
    return _RENDERERS[number]


def replay(facts: Mapping[str, Any], fetch: RecordLookup, artefact: ArtefactLookup) -> Replayed:
    """Render a context again from its facts, with each record at the recorded version.

    ``artefact`` returns the documents ``identity`` and ``user_file``. A missing record or document becomes a tombstone
    and is listed.

    Raises:
        InvalidInput: the facts name no renderer, or an unknown one.
    """
    renderer = renderer_of(facts)
    lines, missing = _lines(renderer, facts, fetch, artefact)
    rendered = renderer.render(lines, sparing=is_sparing(facts["inputs"]["budget_tokens"]))
    text = rendered.formatted(facts["format"])
    digests = rendered.section_digests()
    return Replayed(
        text=text,
        same=digest(text) == facts["digests"]["text"],
        prefix_digest=rendered.prefix_digest,
        tail_digest=rendered.tail_digest,
        unchanged=tuple(
            section["name"] for section in facts["sections"] if digests.get(section["name"]) == section["digest"]
        ),
        missing=tuple(missing),
    )


def rendered_lines(
    facts: Mapping[str, Any], fetch: RecordLookup, artefact: ArtefactLookup
) -> list[tuple[str, str, str]]:
    """Return (section, name, text) of each line of a context in order; joined they are its text.

    The name is a memory's id, ``identity`` or ``user_file``; headings belong to the line that follows them.

    Raises:
        InvalidInput: the facts name no renderer, or an unknown one.
    """
    renderer = renderer_of(facts)
    lines, _ = _lines(renderer, facts, fetch, artefact)
    rendered = renderer.render(lines, sparing=is_sparing(facts["inputs"]["budget_tokens"]))
    spans = pairwise((0, *rendered.ends))
    return [
        (line.section, line.name, rendered.text[start:end]) for line, (start, end) in zip(lines, spans, strict=True)
    ]


def _lines(
    renderer: Renderer, facts: Mapping[str, Any], fetch: RecordLookup, artefact: ArtefactLookup
) -> tuple[list[Line], list[tuple[str, int]]]:
    """Return the lines of a context in order, and what is missing."""
    missing: list[tuple[str, int]] = []
    documents: dict[str, Line | None] = {}
    for kind, version in facts["documents"].items():
        text = artefact(kind, version)
        if text is None:
            missing.append((kind, 0))
        documents[kind] = renderer.document_line(kind, text)
    lines: list[Line] = []
    now = from_micros(facts["inputs"]["now"])
    for section in facts["sections"]:
        for item in section["items"]:
            record = fetch(item["id"], item["version"])
            if record is None or record.version != item["version"]:
                missing.append((item["id"], item["version"]))
                lines.append(Line(item["id"], section["name"], item["tier"], None, block=item.get("block")))
            else:
                masks = [(start, end, name) for start, end, name in item["masks"]]
                lines.append(renderer.line_of(section["name"], record, masks, now))
    return insert_documents(lines, documents.get("identity"), documents.get("user_file")), missing
