"""Markdown: each list item or paragraph under headings becomes one archival memory.

A list item, with what is nested in it, is a fact; a paragraph, table, quotation or code block is a
document. The headings above it, outermost first, are its category. Front matter, comments and rules
hold nothing to remember. Numbers are lines of the file. The file is the session of its blocks, and a
block is known again by its text there, since lines move when a file is edited.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from keepward.errors import InvalidInput
from keepward.interchange.reading import Flaw, Item, Plan, Source, Unusable, numbered, well_formed
from keepward.model.memory import Tier

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


def looks_like(text: str, suffix: str) -> bool:
    """Whether a text is Markdown, by its ending or by a heading or list item in it."""
    if suffix in _ENDINGS:
        return True
    return any(_HEADING.fullmatch(line) or _ITEM.match(line) for line in text.splitlines()[:200])


def plan(source: Source, mem: Memory, session: str | None) -> Plan:
    """Read a document into items.

    Raises:
        InvalidInput: there is nothing in it but headings and comments.
    """
    del session  # a file is the session of its blocks
    text, comments = _COMMENT.subn(lambda match: "\n" * match[0].count("\n"), source.text())
    reader = _Reader()
    for number, row in _after_front_matter(text.split("\n")):
        reader.take(number, row.rstrip("\r"))
    reader.close()
    if not reader.blocks:
        raise InvalidInput(f"{source.name} holds no list item and no paragraph")
    limit = mem.policy.text_limit[Tier.ARCHIVAL]
    notes = [f"comments left out: {comments}"] if comments else []
    entries = [entry for block in reader.blocks for entry in _entries(block, source.name, limit)]
    return Plan(total=len(entries), entries=iter(entries), notes=notes)


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


def _entries(block: _Block, name: str, limit: int) -> Iterator[Item | Flaw]:
    fields: dict[str, Any] = {
        "text": "\n".join(block.rows).strip(),
        "tier": "archival",
        "kind": block.kind,
        "category": block.category,
        "session": " ".join(name.split())[:_LONGEST_CATEGORY] or None,
        "evidence": (f"{name}:{block.line}",),
    }
    try:
        well_formed(fields)
        for part in numbered(fields, limit):
            yield Item(number=block.line, fields=part)
    except Unusable as fault:
        yield Flaw(number=block.line, reason=str(fault))


def _after_front_matter(rows: list[str]) -> Iterator[tuple[int, str]]:
    start = 0
    if rows[0].strip() == "---":
        ends = [place for place, row in enumerate(rows[1:200], 1) if row.strip() in {"---", "..."}]
        start = ends[0] + 1 if ends else 0
    yield from enumerate(rows[start:], start + 1)
