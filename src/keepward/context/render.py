"""Render: from an ordered list of lines to the bytes a model reads, now and again from a receipt.

Invariants
(1) The text depends on the lines and the format alone: no policy, no clock, no counter.
(2) ``replay`` of a context's facts gives its bytes; an erased memory shows as one fixed line instead.
(3) The stable prefix is the same bytes whatever follows it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, TypeAlias

from keepward.context.lines import FROM, RENDERER, Line, Opened, document, escape, headings, line_of
from keepward.context.sections import PREFIX, Format
from keepward.errors import InvalidInput
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


def _paragraphs(lines: Sequence[Line], form: Format) -> Iterator[tuple[str, str, str, int]]:
    opened: Opened = {}
    group: tuple[str, ...] | None = None
    days = [None, *(line.under for line in lines), None]
    place: tuple[object, ...] = ()
    for at, line in enumerate(lines):
        before, last_place = len(opened), place
        place = line.section, line.block, line.mark, line.under
        if place == last_place and line.renderer > 2:
            # It opens nothing, and its day is not its own.
            yield line.section, line.tier, line.own(form), at
            continue
        # A day of its own takes fewer tokens on the line than above it.
        alone = line.renderer > 2 and line.under is not None and line.under not in days[at : at + 3 : 2]
        parts = [*headings(line, form, opened, grouped=not alone), line.own(form, grouped=not alone)]
        # A group ends where another begins; it is opened anew when its day comes back.
        last = next(reversed(opened)) if len(opened) > before else None
        if last and last[0] == "group":
            if group:
                del opened[group]
            group = last
        yield from ((line.section, line.tier, part, at) for part in parts)


def render(lines: Sequence[Line], form: Format) -> Rendered:
    """Return the text of lines in their order; nothing for no lines."""
    numbered = list(_paragraphs(lines, form))
    found = [each[:3] for each in numbered]
    if not found:
        text = "[]" if form == "messages" else ""
        return Rendered(text=text, split=0, runs=())
    border = sum(1 for section, _, _ in found if section in PREFIX)
    pieces = _wrapped(found, border, form)
    runs: list[tuple[str, str, int]] = []
    ends = [0] * len(lines)
    at = 0
    for (section, tier, _, number), piece in zip(numbered, pieces, strict=True):
        at += len(piece)
        ends[number] = at
        if runs and runs[-1][:2] == (section, tier):
            runs.pop()
        runs.append((section, tier, at))
    closing = {"markdown": "", "xml": "</context>", "messages": "]"}[form]
    # The last character of the whole belongs to the tail, so that (3) holds for a context without one.
    split = sum(len(piece) for piece in pieces[:border]) - (len(closing) if border == len(pieces) else 0)
    return Rendered(text="".join(pieces), split=split, runs=tuple(runs), ends=tuple(ends))


def _wrapped(found: Sequence[tuple[str, str, str]], border: int, form: Format) -> list[str]:
    if form == "markdown":
        return [("\n\n" if at else "") + part for at, (_, _, part) in enumerate(found)]
    if form == "xml":
        names = [section for section, _, _ in found]
        pieces = [f"{part}\n" for _, _, part in found]
        within = False
        for at, name in enumerate(names):
            within = within or found[at][2].startswith(FROM)
            ends = at + 1 == len(names) or names[at + 1] != name
            if within and (ends or found[at + 1][2].startswith(FROM)):
                pieces[at] += "</from>\n"
                within = False
            if ends:
                pieces[at] += f"</{name}>\n"
        pieces[0] = f"<context>\n{pieces[0]}"
        pieces[-1] += "</context>"
        return pieces
    # JSON escapes character by character, so that the parts can be escaped one by one.
    pieces = [escape(part if at in {0, border} else f"\n\n{part}")[1:-1] for at, (_, _, part) in enumerate(found)]
    if border:
        pieces[0] = f'[{{"role": "system", "content": "{pieces[0]}'
        pieces[border - 1] += '"}'
    if border < len(pieces):
        pieces[border] = f'{", " if border else "["}{{"role": "user", "content": "{pieces[border]}'
        pieces[-1] += '"}'
    pieces[-1] += "]"
    return pieces


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """Tokens of a text."""

    whole: int
    by_section: Mapping[str, int]
    by_tier: Mapping[str, int]
    #: Section the text closes with, where that is of the stable prefix, and the tokens of the closing mark.
    closing: tuple[str, int] = ("", 0)

    def of(self, sections: Iterable[str]) -> int:
        """Return the tokens of some sections together.

        The mark that closes a text without a tail is left out, so that the prefix is the same with one.
        """
        names = frozenset(sections)
        last, mark = self.closing
        return sum(self.by_section.get(name, 0) for name in names) - (mark if last in names else 0)


def tally(rendered: Rendered, count: Callable[[str], int]) -> Tally:
    """Count a text as a whole, and give each run what the text up to its end has more than up to its start.

    A counter for which a longer text counts less gives that run 0, so that numbers are at least 0 and sum to the whole.
    """
    whole = count(rendered.text)
    by_section: dict[str, int] = {}
    by_tier: dict[str, int] = {}
    before = 0
    closing = ("", 0)
    for at, (section, tier, end) in enumerate(rendered.runs):
        last = at + 1 == len(rendered.runs)
        until = whole if last else max(before, min(whole, count(rendered.text[:end])))
        if last and section in PREFIX:
            closing = section, until - max(before, min(whole, count(rendered.text[: rendered.split])))
        by_section[section] = by_section.get(section, 0) + until - before
        by_tier[tier] = by_tier.get(tier, 0) + until - before
        before = until
    return Tally(whole=whole, by_section=by_section, by_tier=by_tier, closing=closing)


Fetch: TypeAlias = Callable[[str, int], Record | None]
Artefact: TypeAlias = Callable[[str, str], str | None]


def replay(facts: Mapping[str, Any], fetch: Fetch, artefact: Artefact) -> Replayed:
    """Render a context again from its facts, with each record at the version the facts name.

    ``artefact`` is asked for the kinds ``identity`` and ``user_file``. What either does not have is shown
    as a tombstone and listed.

    Raises:
        InvalidInput: the facts are of a renderer this version does not have.
    """
    named, missing = _lines(facts, fetch, artefact)
    again = render([line for _, line in named], facts["format"])
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


def pieces(facts: Mapping[str, Any], fetch: Fetch, artefact: Artefact) -> list[tuple[str, str, str]]:
    """Return (section, name, text) of each line of a context in order; together they are the text of ``replay``.

    The name is a memory's id, ``identity`` or ``user_file``; headings belong to the line that they open.
    """
    named, _ = _lines(facts, fetch, artefact)
    again = render([line for _, line in named], facts["format"])
    starts = (0, *again.ends)
    return [
        (line.section, name, again.text[start:end])
        for (name, line), start, end in zip(named, starts, again.ends, strict=False)
    ]


def _lines(
    facts: Mapping[str, Any], fetch: Fetch, artefact: Artefact
) -> tuple[list[tuple[str, Line]], list[tuple[str, int]]]:
    """Return the lines of a context in order, each with its name, and what of it is gone."""
    renderer = facts.get("renderer")
    if not isinstance(renderer, int) or not 1 <= renderer <= RENDERER:
        raise InvalidInput("the context was rendered by another version; replay it with the Keepward that made it")
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
                line = Line(
                    section=section["name"],
                    tier=item["tier"],
                    body=None,
                    block=item.get("block"),
                    renderer=renderer,
                )
            else:
                masks = [(start, end, name) for start, end, name in item["masks"]]
                line = line_of(section["name"], record, masks, renderer=renderer)
            lines.append(line)
            names[id(line)] = item["id"]
    ordered = with_documents(lines, documents["identity"], documents["user_file"])
    return [(names[id(line)], line) for line in ordered], missing
