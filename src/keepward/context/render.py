"""Render: from an ordered list of lines to the bytes a model reads, now and again from a receipt.

Invariants
(1) The text depends on the lines alone: no policy, no clock, no counter. As messages it is the same text in two parts.
(2) ``replay`` of a context's facts gives its bytes; an erased memory shows as one fixed line instead.
(3) The stable prefix is the same bytes whatever follows it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from operator import itemgetter
from typing import Any, TypeAlias

from keepward.context.lines import HEADING, LEGEND, Line, document_line, escape_label, line_of
from keepward.context.sections import PREFIX_SECTIONS, Format
from keepward.core.compiled import Replayed
from keepward.core.memory import Record


@dataclass(frozen=True, slots=True, kw_only=True)
class RenderedText:
    """A text and whose each part of it is."""

    text: str
    #: Characters of the stable prefix.
    split: int
    #: Section, tier and end offset of each run, in order.
    runs: tuple[tuple[str, str, int], ...]
    #: End offset of each line, in order, with the headings that it opens before it.
    ends: tuple[int, ...] = ()

    def formatted(self, form: Format) -> str:
        """Return the text, or as ``messages`` a JSON list: the prefix by the system, the tail by the user."""
        if form == "markdown":
            return self.text
        parts = ("system", self.text[: self.split]), ("user", self.text[self.split :].removeprefix("\n\n"))
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
        """Return SHA-256 in hex of each section's part of the text."""
        found: dict[str, str] = {}
        start = 0
        for name, runs in groupby(self.runs, key=itemgetter(0)):
            end = [run[2] for run in runs][-1]
            found[name] = digest(self.text[start:end])
            start = end
        return found


def digest(text: str) -> str:
    """Return SHA-256 of the text's UTF-8 bytes, in hex."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def insert_documents(lines: Sequence[Line], identity: Line | None, user_file: Line | None) -> list[Line]:
    """Return the lines with the identity document first and the user file at the head of ``human``."""
    at = sum(1 for line in lines if line.section == "core" and line.block == "persona")
    middle = [] if user_file is None else [user_file]
    return [*([] if identity is None else [identity]), *lines[:at], *middle, *lines[at:]]


_NO_POSITION: tuple[str | None, ...] = (None, None, None)


def render(lines: Sequence[Line]) -> RenderedText:
    """Return the text of lines in their order; nothing for no lines.

    Lines of one section and origin share a heading. Two or more lines of one day share a further one; a single line
    carries its date behind the text, where no text of a memory can stand.
    """
    #: Section or block, origin and day of each line. A line that is gone stays in the place of the one before.
    places: list[tuple[str | None, ...]] = [_NO_POSITION]
    for line in lines:
        if line.section not in HEADING:
            places.append((f"block {line.block or 'core'}", None, None))
        elif line.body is not None or places[-1][0] != line.section:
            places.append((line.section, line.mark, line.day))
        else:
            places.append(places[-1])
    places.append(_NO_POSITION)
    text, legend = "", f"\n{LEGEND}"
    split = 0
    runs: list[tuple[str, str, int]] = []
    ends: list[int] = []
    for n, line in enumerate(lines, 1):
        last, place, following = places[n - 1 : n + 2]
        if n > 1:
            text += "\n\n"
        if place[:2] != last[:2]:
            if line.section not in HEADING:
                text += f"## {escape_label(line.block or 'core')}\n\n"
            else:
                mark = f" · {place[1]}" if place[1] else ""
                text += f"## {HEADING[line.section]}{mark}{'' if line.section in PREFIX_SECTIONS else legend}\n\n"
                legend = legend if line.section in PREFIX_SECTIONS else ""
        shares = place[2] is not None and place in (last, following)
        if shares and place != last:
            text += f"### {place[2]}\n\n"
        text += line.own if shares or line.day is None else f"{line.own} ({line.day[:10]})"
        ends.append(len(text))
        if line.section in PREFIX_SECTIONS:
            split = len(text)
        if runs and runs[-1][:2] == (line.section, line.tier):
            runs.pop()
        runs.append((line.section, line.tier, len(text)))
    return RenderedText(text=text, split=split, runs=tuple(runs), ends=tuple(ends))


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenCounts:
    """Tokens of a text."""

    whole: int
    by_section: Mapping[str, int]
    by_tier: Mapping[str, int]


def count_section_tokens(rendered: RenderedText, count: Callable[[str], int]) -> TokenCounts:
    """Count a text as a whole, and give each run what the text up to its end has more than up to its start.

    A counter for which a longer text counts less gives that run 0, so that numbers are at least 0 and sum to the whole.
    """
    whole = count(rendered.text)
    by_section: dict[str, int] = {}
    by_tier: dict[str, int] = {}
    before = 0
    for at, (section, tier, end) in enumerate(rendered.runs, start=1):
        until = whole if at == len(rendered.runs) else max(before, min(whole, count(rendered.text[:end])))
        by_section[section] = by_section.get(section, 0) + until - before
        by_tier[tier] = by_tier.get(tier, 0) + until - before
        before = until
    return TokenCounts(whole=whole, by_section=by_section, by_tier=by_tier)


RecordLookup: TypeAlias = Callable[[str, int], Record | None]
ArtefactLookup: TypeAlias = Callable[[str, str], str | None]


def replay(facts: Mapping[str, Any], fetch: RecordLookup, artefact: ArtefactLookup) -> Replayed:
    """Render a context again from its facts, with each record at the version the facts name.

    ``artefact`` is asked for the kinds ``identity`` and ``user_file``. What either does not have is shown
    as a tombstone and listed.
    """
    lines, missing = _lines(facts, fetch, artefact)
    again = render(lines)
    text = again.formatted(facts["format"])
    now = again.section_digests()
    return Replayed(
        text=text,
        same=digest(text) == facts["digests"]["text"],
        prefix_digest=again.prefix_digest,
        tail_digest=again.tail_digest,
        unchanged=tuple(each["name"] for each in facts["sections"] if now.get(each["name"]) == each["digest"]),
        missing=tuple(missing),
    )


def rendered_lines(
    facts: Mapping[str, Any], fetch: RecordLookup, artefact: ArtefactLookup
) -> list[tuple[str, str, str]]:
    """Return (section, name, text) of each line of a context in order; together they are its text.

    The name is a memory's id, ``identity`` or ``user_file``; headings belong to the line that they open.
    """
    lines, _ = _lines(facts, fetch, artefact)
    again = render(lines)
    spans = pairwise((0, *again.ends))
    return [(line.section, line.name, again.text[start:end]) for line, (start, end) in zip(lines, spans, strict=True)]


def _lines(
    facts: Mapping[str, Any], fetch: RecordLookup, artefact: ArtefactLookup
) -> tuple[list[Line], list[tuple[str, int]]]:
    """Return the lines of a context in order, and what of it is gone."""
    missing: list[tuple[str, int]] = []
    documents: dict[str, Line | None] = {}
    for kind, version in facts["documents"].items():
        text = artefact(kind, version)
        if text is None:
            missing.append((kind, 0))
        documents[kind] = document_line(kind, text)
    lines: list[Line] = []
    for section in facts["sections"]:
        for item in section["items"]:
            record = fetch(item["id"], item["version"])
            if record is None or record.version != item["version"]:
                missing.append((item["id"], item["version"]))
                lines.append(Line(item["id"], section["name"], item["tier"], None, block=item.get("block")))
            else:
                masks = [(start, end, name) for start, end, name in item["masks"]]
                lines.append(line_of(section["name"], record, masks))
    return insert_documents(lines, documents.get("identity"), documents.get("user_file")), missing
