"""Markdown: each list item or paragraph under headings becomes one archival memory.

A list item, with what is nested in it, is a fact; a paragraph, table, quotation or code block is a document. The
headings above it, outermost first, are its category. Numbers are lines of the file. The file is the session of its
blocks, and a block is known again by its text there, since lines move when a file is edited. What becomes of
properties, links and the ways of other programs stands in docs/coming-from.md.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from keepward.core.memory import Tier
from keepward.core.messages import instant_of
from keepward.errors import InvalidInput
from keepward.interchange.notes import ID, front_matter, plan_note
from keepward.interchange.reading import Flaw, Item, Plan, Source, few_enough, well_formed
from keepward.services.parts import Unusable, numbered

if TYPE_CHECKING:
    from keepward.memory import Memory

_HEADING = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*?))?(?:[ \t]+#+)?[ \t]*")
_UNDERLINE = re.compile(r" {0,3}(=+|-+)[ \t]*")
_ITEM = re.compile(r"([ \t]*)(?:[-*+]|\d{1,9}[.)])(?:[ \t]+|$)")
_FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})")
_RULE = re.compile(r" {0,3}(?:(?:-[ \t]*){3,}|(?:\*[ \t]*){3,}|(?:_[ \t]*){3,})")
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_ENDINGS = frozenset({".md", ".markdown", ".mdown", ".mkd", ".txt"})
_LONGEST_CATEGORY = 256
_MOST_LINKS = 32
_LINK = re.compile(r"\[\[([^\[\]\n]{1,300})\]\]|\]\((?!\w+:)([^()\s]{1,300}\.md)(?:#[^()\s]*)?\)")
_POINTER = re.compile(r"@[~\w./-]+|\[[^\[\]\n]*\]\((?!\w+:)([^()\s]+\.md)\)(?:\s*[-–—:].*)?")
_OBSERVATION = re.compile(r"\[([^\[\]()]{2,60})\][ \t]+(.*)", re.DOTALL)
_RELATION = re.compile(r"([\w \"'-]{0,60}?)\s*\[\[([^\[\]\n]+)\]\](?:\s*\((.*)\))?")
_TAG = re.compile(r"(?<!\S)#([\w/-]+)")


def looks_like(text: str, suffix: str) -> bool:
    """Whether a text is Markdown, by its ending or by a heading or list item in it."""
    if suffix in _ENDINGS:
        return True
    return any(_HEADING.fullmatch(line) or _ITEM.match(line) for line in text.splitlines()[:200])


def plan(source: Source, mem: Memory) -> Plan:
    whole = source.text()
    few_enough(source.name, whole.count("\n"))
    properties, body = front_matter(whole)
    if isinstance(properties.get(ID), str):
        return plan_note(properties, body.removeprefix("\n").removesuffix("\n"), mem)
    text, comments = _COMMENT.subn(lambda match: "\n" * match[0].count("\n"), body)
    reader = _Reader()
    before = whole.count("\n") - body.count("\n")
    for number, row in enumerate(text.split("\n"), before + 1):
        reader.take(number, row.rstrip("\r"))
    reader.close()
    blocks = [block for block in reader.blocks if not _points_on(block, source)]
    if not reader.blocks:
        raise InvalidInput(f"{source.name} holds no list item and no paragraph")
    limit = mem.policy.text_limit[Tier.ARCHIVAL]
    left = {"comments": comments, "lines that only name another file": len(reader.blocks) - len(blocks)}
    entries = (entry for block in blocks for entry in _entries(block, source, properties, limit))
    return Plan(total=len(blocks), entries=entries, left=Counter(left))


@dataclass(slots=True, kw_only=True)
class _Block:
    line: int
    kind: str
    category: str | None
    #: Columns before the marker of a list item.
    indent: int = 0
    rows: list[str] = field(default_factory=list)


@dataclass(slots=True)
class _Reader:
    """Takes rows one by one; at most one block is open."""

    blocks: list[_Block] = field(default_factory=list)
    headings: list[tuple[int, str]] = field(default_factory=list)
    open: _Block | None = None
    #: The marker that ends the code block being read.
    fence: str | None = None
    after_blank: bool = True

    def take(self, number: int, row: str) -> None:
        if self.fence is not None:
            self._continue(row)
            if row.strip().startswith(self.fence) and not row.strip().strip(self.fence[0]):
                self.fence = None
            return
        if not row.strip():
            self._continue("")
            self.after_blank = True
            return
        if not self._heading(row):
            if _RULE.fullmatch(row):
                self.close()
            else:
                self._text(number, row)
        self.after_blank = False

    def close(self) -> None:
        if self.open is not None and any(row.strip() for row in self.open.rows):
            self.blocks.append(self.open)
        self.open = None

    def _continue(self, row: str) -> None:
        if self.open is not None:
            self.open.rows.append(row)

    def _heading(self, row: str) -> bool:
        if marked := _HEADING.fullmatch(row):
            self.close()
            self._enter(len(marked[1]), marked[2] or "")
            return True
        under = _UNDERLINE.fullmatch(row)
        block = self.open
        # A row of dashes under a single line of text makes that line a heading.
        if under and block and block.kind == "document" and len(block.rows) == 1 and not self.after_blank:
            self.open = None
            self._enter(1 if under[1][0] == "=" else 2, block.rows[0])
            return True
        return False

    def _enter(self, level: int, title: str) -> None:
        self.headings = [*(each for each in self.headings if each[0] < level), (level, title.strip())]

    def _text(self, number: int, row: str) -> None:
        item, opening, block = _ITEM.match(row), _FENCE.match(row), self.open
        columns = len(row) - len(row.lstrip())
        nested = block is not None and block.kind == "fact" and columns > block.indent
        runs_on = block is not None and not self.after_blank and not item and not opening
        if not (nested or runs_on):
            self.close()
            category = " / ".join(title for _, title in self.headings if title)[:_LONGEST_CATEGORY].strip()
            kind = "fact" if item else "document"
            self.open = _Block(line=number, kind=kind, category=category or None, indent=columns)
            row = row[item.end() :] if item else row
        self._continue(row.rstrip())
        if opening:
            self.fence = opening[1]


def _entries(block: _Block, source: Source, properties: dict[str, Any], limit: int) -> Iterator[Item | Flaw]:
    name, text = source.name, "\n".join(block.rows).strip()
    fields: dict[str, Any] = {
        "text": text,
        "tier": "archival",
        "kind": block.kind,
        "category": block.category,
        "session": " ".join(name.split())[:_LONGEST_CATEGORY] or None,
        "evidence": (f"{name}:{block.line}", *_linked(text, source)),
    }
    if properties:
        fields |= _noted(text, source, properties)
    try:
        well_formed(fields)
        with suppress(InvalidInput):
            fields["occurred_at"] = instant_of(properties.get("date") or properties.get("created"))
        for part in numbered(fields, limit):
            yield Item(number=block.line, fields=part)
    except Unusable as fault:
        yield Flaw(number=block.line, reason=str(fault))


def _points_on(block: _Block, source: Source) -> bool:
    """Whether a block does no more than name another file of instructions, or a note that came with it."""
    found = _POINTER.fullmatch("\n".join(block.rows).strip())
    return found is not None and (found[1] is None or _plain(found[1]) in source.beside)


def _noted(text: str, source: Source, properties: dict[str, Any]) -> dict[str, Any]:
    """Return what the properties of a note, and basic-memory's way of writing, say of a block."""
    title = " ".join(str(properties.get("title") or source.stem).split())[:_LONGEST_CATEGORY]
    given = properties.get("tags") or []
    tags = given if isinstance(given, list) else str(given).split(",")
    short = {name: value for name, value in properties.items() if len(str(value)) <= _LONGEST_CATEGORY}
    found: dict[str, Any] = {"metadata": {"note": dict(itertools.islice(short.items(), _MOST_LINKS))}}
    if "permalink" in properties:
        found["subject"] = title
    if said := _OBSERVATION.fullmatch(text):
        found |= {"category": said[1].strip(), "text": said[2].strip()}
        tags = [*tags, *_TAG.findall(said[2])]
    elif related := _RELATION.fullmatch(text):
        target = related[2].split("|")[0].split("#")[0].strip()
        words = related[1].strip(" \"'").replace("_", " ") or "links to"
        context = f" ({related[3]})" if related[3] else ""
        found |= {"category": "relation", "text": f"{title} {words} {target}{context}"}
    named = (str(each).strip().removeprefix("#") for each in tags)
    return found | {"tags": tuple(dict.fromkeys(each for each in named if each))}


def _linked(text: str, source: Source) -> tuple[str, ...]:
    """Return what a text links to: the path of a note that came with it, else the link as it is written."""
    targets = (wiki or path for wiki, path in _LINK.findall(text))
    found = (source.beside.get(_plain(each), f"[[{each.strip()}]]") for each in targets)
    return tuple(dict.fromkeys(each[:_LONGEST_CATEGORY] for each in found))[:_MOST_LINKS]


def _plain(target: str) -> str:
    """Return the target of a link as notes are named in ``Source.beside``."""
    return unquote(target).split("|")[0].split("#")[0].strip().lower().removesuffix(".md").removeprefix("./")
