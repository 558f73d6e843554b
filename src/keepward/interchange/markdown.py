"""Markdown: each list item or paragraph under headings becomes one archival memory.

A list item, with its nested lines, is a fact; a paragraph, table, quotation or code block is a document. The headings
above it, outermost first, are its category. Numbers are lines of the file. The file is the session of its blocks. A
block is recognized by its text in that file, because its line changes when the file is edited.
docs/howto/import-notes.md describes properties, links and the formats of other programs.

Late imports: few texts need it.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, NamedTuple

from keepward.core.messages import parse_timestamp
from keepward.errors import InvalidInput
from keepward.gates.validation import MAX_SHORT_CHARS
from keepward.interchange.parsing import ImportSource, Row, parse
from keepward.interchange.run import ImportRun
from keepward.services.writing.splitter import UnusableItem

_ITEM = re.compile(r"[ \t]*(?:[-*+]|\d{1,9}[.)])(?:[ \t]+|$)")
_HEADING = re.compile(r" {0,3}#{1,6}(?:[ \t]|$)")
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_ENDINGS = frozenset({".md", ".markdown", ".mdown", ".mkd", ".txt"})
#: Maximum number of properties in metadata.
_MAX_PROPERTIES = 32
#: A parsed line takes up to 2 kB of memory.
_MAX_LINES = 200_000
#: Tokens that are no block of their own.
_NO_BLOCKS = frozenset({"heading_open", "bullet_list_open", "ordered_list_open", "hr"})
_POINTER = re.compile(r"@[~\w./-]+")
_FRONT = re.compile(r"\ufeff?---[ \t]*\r?\n(.*?)^---[ \t]*\r?\n", re.DOTALL | re.MULTILINE)
_MAX_FRONT = 65_536
_PROPERTY = re.compile(r"([^\s:#\-\[{\"'][^:\n]*):(?:[ \t]+(.*))?")
_ENTRY = re.compile(r"[ \t]*-[ \t]+(.*)")


def detect(text: str, suffix: str) -> bool:
    """Whether a text is Markdown, by its ending or by a heading or list item in it."""
    if suffix in _ENDINGS:
        return True
    return any(_HEADING.match(line) or _ITEM.match(line) for line in text.splitlines()[:200])


def read(source: ImportSource, run: ImportRun) -> Iterator[Row]:
    """Read the blocks of a file."""
    text = re.sub("\r\n?", "\n", source.text())
    if text.count("\n") > _MAX_LINES:
        raise InvalidInput(f"{source.name} has more than {_MAX_LINES} lines: split it, and import the parts")
    properties, body = front_matter(text)
    body, comments = _COMMENT.subn(lambda match: "\n" * match[0].count("\n"), body)
    blocks = list(_blocks(body, text.count("\n") - body.count("\n") + 1))
    if not blocks:
        raise InvalidInput(f"{source.name} contains no list item and no paragraph")
    run.skipped["comments"] += comments
    for block in blocks:
        if _POINTER.fullmatch(block.text):
            run.skipped["lines that only name another file"] += 1
        else:
            yield block.line, _item(block, source, properties)


class _Block(NamedTuple):
    line: int
    kind: str
    category: str | None
    text: str


def _blocks(body: str, first_line: int) -> Iterator[_Block]:
    """Yield the blocks of a text whose first line has this number."""
    from markdown_it import MarkdownIt

    # Links, emphasis and HTML stay as they are written.
    parser = MarkdownIt("commonmark").disable(["inline", "reference", "html_block"])
    rows = body.split("\n")
    headings: list[tuple[int, str]] = []
    tokens = parser.parse(body)
    for number, token in enumerate(tokens):
        if token.type == "heading_open" and token.level == 0:
            level = int(token.tag[1:])
            headings = [*(each for each in headings if each[0] < level), (level, tokens[number + 1].content.strip())]
        is_item = token.type == "list_item_open" and token.level == 1
        if token.map is None or not (is_item or (token.level == 0 and token.type not in _NO_BLOCKS)):
            continue
        start, end = token.map
        text = "\n".join(row.rstrip() for row in rows[start:end])
        text = (_ITEM.sub("", text, count=1) if is_item else text).strip()
        category = " / ".join(title for _, title in headings if title)[:MAX_SHORT_CHARS].strip() or None
        if text:
            yield _Block(first_line + start, "fact" if is_item else "document", category, text)


def _item(block: _Block, source: ImportSource, properties: dict[str, Any]) -> dict[str, Any]:
    item: dict[str, Any] = {
        "text": block.text,
        "tier": "archival",
        "kind": block.kind,
        "category": block.category,
        "session": " ".join(source.name.split())[:MAX_SHORT_CHARS] or None,
        "evidence": (f"{source.name}:{block.line}",),
    }
    if properties:
        given = properties.get("tags") or []
        tags = (str(each).strip() for each in (given if isinstance(given, list) else str(given).split(",")))
        short = {name: value for name, value in properties.items() if len(str(value)) <= MAX_SHORT_CHARS}
        title = " ".join(str(properties.get("title") or source.stem).split())[:MAX_SHORT_CHARS]
        item |= {
            # Notes of basic-memory describe their own subject without its name.
            "subject": title if "permalink" in properties else None,
            "metadata": {"note": dict(itertools.islice(short.items(), _MAX_PROPERTIES))},
            "tags": tuple(dict.fromkeys(tag for each in tags if (tag := each.removeprefix("#")))),
        }
    with suppress(InvalidInput):
        item["occurred_at"] = parse_timestamp(properties.get("date") or properties.get("created"))
    return item


def front_matter(text: str) -> tuple[dict[str, Any], str]:
    """Return the properties at the beginning of a note, and the text after them.

    Texts, lists of texts and JSON values are read; other YAML stays as it is written.
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
