"""Markdown: each list item or paragraph under headings becomes one archival memory.

A list item, with what is nested in it, is a fact; a paragraph, table, quotation or code block is a document. The
headings above it, outermost first, are its category. Numbers are lines of the file. The file is the session of its
blocks, and a block is known again by its text there, since lines move when a file is edited. What becomes of
properties, links and the ways of other programs stands in docs/howto/import-notes.md.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from keepward.core.messages import parse_timestamp
from keepward.errors import InvalidInput
from keepward.interchange.parsing import Row, Source, parse
from keepward.interchange.run import ImportRun
from keepward.services.splitter import UnusableItem

_HEADING = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*?))?(?:[ \t]+#+)?[ \t]*")
_UNDERLINE = re.compile(r" {0,3}(=+|-+)[ \t]*")
_ITEM = re.compile(r"([ \t]*)(?:[-*+]|\d{1,9}[.)])(?:[ \t]+|$)")
_FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})")
_RULE = re.compile(r" {0,3}(?:(?:-[ \t]*){3,}|(?:\*[ \t]*){3,}|(?:_[ \t]*){3,})")
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_ENDINGS = frozenset({".md", ".markdown", ".mdown", ".mkd", ".txt"})
_MAX_LABEL, _MAX_PROPERTIES = 256, 32
_POINTER = re.compile(r"@[~\w./-]+")
_FRONT = re.compile(r"\ufeff?---[ \t]*\r?\n(.*?)^---[ \t]*\r?\n", re.DOTALL | re.MULTILINE)
_MAX_FRONT = 65_536
_PROPERTY = re.compile(r"([^\s:#\-\[{\"'][^:\n]*):(?:[ \t]+(.*))?")
_ENTRY = re.compile(r"[ \t]*-[ \t]+(.*)")


def detect(text: str, suffix: str) -> bool:
    """Whether a text is Markdown, by its ending or by a heading or list item in it."""
    if suffix in _ENDINGS:
        return True
    return any(_HEADING.fullmatch(line) or _ITEM.match(line) for line in text.splitlines()[:200])


def read(source: Source, run: ImportRun) -> Iterator[Row]:
    """Read the blocks of a file."""
    text = source.text()
    properties, body = front_matter(text)
    body, comments = _COMMENT.subn(lambda match: "\n" * match[0].count("\n"), body)
    splitter = _Splitter()
    for number, row in enumerate(body.split("\n"), text.count("\n") - body.count("\n") + 1):
        splitter.take(number, row.rstrip("\r"))
    splitter.close()
    if not splitter.blocks:
        raise InvalidInput(f"{source.name} holds no list item and no paragraph")
    run.skipped["comments"] += comments
    for block in splitter.blocks:
        if _POINTER.fullmatch("\n".join(block.rows).strip()):
            run.skipped["lines that only name another file"] += 1
        else:
            yield block.line, _item(block, source, properties)


@dataclass(slots=True, kw_only=True)
class _Block:
    line: int
    kind: str
    category: str | None
    #: Columns before the marker of a list item.
    indent: int = 0
    rows: list[str] = field(default_factory=list)


@dataclass(slots=True)
class _Splitter:
    """Splits text into blocks, row by row; at most one block is open."""

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
            category = " / ".join(title for _, title in self.headings if title)[:_MAX_LABEL].strip()
            kind = "fact" if item else "document"
            self.open = _Block(line=number, kind=kind, category=category or None, indent=columns)
            row = row[item.end() :] if item else row
        self._continue(row.rstrip())
        if opening:
            self.fence = opening[1]


def _item(block: _Block, source: Source, properties: dict[str, Any]) -> dict[str, Any]:
    item: dict[str, Any] = {
        "text": "\n".join(block.rows).strip(),
        "tier": "archival",
        "kind": block.kind,
        "category": block.category,
        "session": " ".join(source.name.split())[:_MAX_LABEL] or None,
        "evidence": (f"{source.name}:{block.line}",),
    }
    if properties:
        item |= _properties_of(source, properties)
    with suppress(InvalidInput):
        item["occurred_at"] = parse_timestamp(properties.get("date") or properties.get("created"))
    return item


def _properties_of(source: Source, properties: dict[str, Any]) -> dict[str, Any]:
    """Return what the properties of a note say of its blocks."""
    given = properties.get("tags") or []
    tags = (
        str(each).strip().removeprefix("#") for each in (given if isinstance(given, list) else str(given).split(","))
    )
    short = {name: value for name, value in properties.items() if len(str(value)) <= _MAX_LABEL}
    title = " ".join(str(properties.get("title") or source.stem).split())[:_MAX_LABEL]
    return {
        # basic-memory states what is so of the note itself, without its name.
        "subject": title if "permalink" in properties else None,
        "metadata": {"note": dict(itertools.islice(short.items(), _MAX_PROPERTIES))},
        "tags": tuple(dict.fromkeys(each for each in tags if each)),
    }


def front_matter(text: str) -> tuple[dict[str, Any], str]:
    """Return the properties at the beginning of a note, and the text behind them.

    Read are texts, lists of texts and JSON values; what else YAML knows stays as it is written.
    """
    found = _FRONT.match(text[:_MAX_FRONT])
    if found is None:
        return {}, text
    properties: dict[str, Any] = {}
    name = ""
    for row in found[1].splitlines():
        if (entry := _ENTRY.fullmatch(row)) and name:
            values = properties[name] if isinstance(properties[name], list) else []
            properties[name] = [*values, _value(entry[1])]
        elif given := _PROPERTY.fullmatch(row):
            name = given[1].strip()
            properties[name] = _value(given[2] or "")
    return properties, text[found.end() :]


def _value(text: str) -> Any:
    text = text.strip()
    with suppress(UnusableItem):
        return parse(text)
    if text[:1] == "[" and text[-1:] == "]":
        return [_value(each) for each in text[1:-1].split(",") if each.strip()]
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] == "'" else text
