"""Render: from an ordered list of lines to the bytes a model reads, now and again from a receipt.

Invariants
(1) The text depends on the lines alone: no policy, no clock, no counter. As messages it is the same text in two parts.
(2) ``replay`` of a context's facts gives its bytes; an erased memory shows as one fixed line instead.
(3) The stable prefix is the same bytes whatever follows it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, TypeAlias

from keepward.context.lines import HEADING, LEGEND, Line, document, label, line_of
from keepward.context.sections import PREFIX, Format
from keepward.model.compiled import Replayed
from keepward.model.memory import Record


@dataclass(frozen=True, slots=True, kw_only=True)
class Rendered:
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
        for name, runs in groupby(self.runs, key=lambda run: run[0]):
            end = [run[2] for run in runs][-1]
            found[name] = digest(self.text[start:end])
            start = end
        return found


def digest(text: str) -> str:
    """Return SHA-256 of the text's UTF-8 bytes, in hex."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def with_documents(lines: Sequence[Line], identity: Line | None, user_file: Line | None) -> list[Line]:
    """Return the lines with the identity document first and the user file at the head of ``human``."""
    at = sum(1 for line in lines if line.section == "core" and line.block == "persona")
    middle = [] if user_file is None else [user_file]
    return [*([] if identity is None else [identity]), *lines[:at], *middle, *lines[at:]]


_NOWHERE: tuple[str | None, ...] = (None, None, None)


def _place(line: Line, before: tuple[str | None, ...]) -> tuple[str | None, ...]:
    """Return what lines under the same headings share; a line that is gone stays in the place of the one before."""
    if line.section not in HEADING:
        return f"block {line.block or 'core'}", None, None
    if line.record is None and before[0] == line.section:
        return before
    return line.section, line.mark, line.day


def _paragraphs(lines: Sequence[Line]) -> Iterator[tuple[Line, list[str]]]:
    """Yield each line with its paragraphs: the headings that it opens, and itself."""
    place = last = _NOWHERE
    places = [place := _place(line, place) for line in lines]
    legend = f"\n{LEGEND}"
    for line, place, following in zip(lines, places, [*places, _NOWHERE][1:], strict=True):
        parts: list[str] = []
        if place[:2] != last[:2]:
            if line.section not in HEADING:
                parts.append(f"## {label(line.block or 'core')}")
            else:
                mark = f" · {place[1]}" if place[1] else ""
                parts.append(f"## {HEADING[line.section]}{mark}{'' if line.section in PREFIX else legend}")
                legend = legend if line.section in PREFIX else ""
        # Two or more lines of one day share a heading; a single one carries its date itself.
        shares = place[2] is not None and place in {last, following}
        if shares and place != last:
            parts.append(f"### {place[2]}")
        yield line, [*parts, line.own if shares else line.dated]
        last = place


def render(lines: Sequence[Line]) -> Rendered:
    """Return the text of lines in their order; nothing for no lines."""
    texts: list[str] = []
    runs: list[tuple[str, str, int]] = []
    ends: list[int] = []
    split = at = 0
    for line, parts in _paragraphs(lines):
        text = "\n\n".join(parts)
        texts.append(f"\n\n{text}" if texts else text)
        at += len(texts[-1])
        ends.append(at)
        if line.section in PREFIX:
            split = at
        if runs and runs[-1][:2] == (line.section, line.tier):
            runs.pop()
        runs.append((line.section, line.tier, at))
    return Rendered(text="".join(texts), split=split, runs=tuple(runs), ends=tuple(ends))


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """Tokens of a text."""

    whole: int
    by_section: Mapping[str, int]
    by_tier: Mapping[str, int]

    def of(self, sections: Iterable[str]) -> int:
        """Return the tokens of some sections together."""
        return sum(self.by_section.get(name, 0) for name in sections)


def tally(rendered: Rendered, count: Callable[[str], int]) -> Tally:
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
    return Tally(whole=whole, by_section=by_section, by_tier=by_tier)


Fetch: TypeAlias = Callable[[str, int], Record | None]
Artefact: TypeAlias = Callable[[str, str], str | None]


def replay(facts: Mapping[str, Any], fetch: Fetch, artefact: Artefact) -> Replayed:
    """Render a context again from its facts, with each record at the version the facts name.

    ``artefact`` is asked for the kinds ``identity`` and ``user_file``. What either does not have is shown
    as a tombstone and listed.
    """
    named, missing = _lines(facts, fetch, artefact)
    again = render([line for _, line in named])
    text = again.formatted(facts["format"])
    then = {section["name"]: section["digest"] for section in facts["sections"]}
    now = again.section_digests()
    return Replayed(
        text=text,
        same=digest(text) == facts["digests"]["text"],
        prefix_digest=again.prefix_digest,
        tail_digest=again.tail_digest,
        unchanged=tuple(name for name in then if now.get(name) == then[name]),
        missing=tuple(missing),
    )


def pieces(facts: Mapping[str, Any], fetch: Fetch, artefact: Artefact) -> list[tuple[str, str, str]]:
    """Return (section, name, text) of each line of a context in order; together they are its text.

    The name is a memory's id, ``identity`` or ``user_file``; headings belong to the line that they open.
    """
    named, _ = _lines(facts, fetch, artefact)
    again = render([line for _, line in named])
    starts = (0, *again.ends)
    return [
        (line.section, name, again.text[start:end])
        for (name, line), start, end in zip(named, starts, again.ends, strict=False)
    ]


def _lines(
    facts: Mapping[str, Any], fetch: Fetch, artefact: Artefact
) -> tuple[list[tuple[str, Line]], list[tuple[str, int]]]:
    """Return the lines of a context in order, each with its name, and what of it is gone."""
    missing: list[tuple[str, int]] = []
    documents: dict[str, Line | None] = {"identity": None, "user_file": None}
    for kind, version in facts["documents"].items():
        text = artefact(kind, version)
        if text is None:
            missing.append((kind, 0))
        documents[kind] = document(kind, text)
    lines: list[Line] = []
    names = {id(line): kind for kind, line in documents.items()}
    for section in facts["sections"]:
        for item in section["items"]:
            record = fetch(item["id"], item["version"])
            if record is None or record.version != item["version"]:
                missing.append((item["id"], item["version"]))
                line = Line(section=section["name"], tier=item["tier"], body=None, block=item.get("block"))
            else:
                masks = [(start, end, name) for start, end, name in item["masks"]]
                line = line_of(section["name"], record, masks)
            lines.append(line)
            names[id(line)] = item["id"]
    ordered = with_documents(lines, documents["identity"], documents["user_file"])
    return [(names[id(line)], line) for line in ordered], missing
