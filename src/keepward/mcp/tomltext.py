"""TOML edited in place: one table put or taken out, every other line kept.

Invariants
(1) The result is parsed and compared with what was meant; a file that writes its tables in a way that this does
    not follow is refused and left alone.
(2) Comments and line ends stay as they were found, those inside of the table as well.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any

from keepward.errors import InvalidInput

_HEADER = re.compile(r"\s*\[")


def load(text: str) -> dict[str, Any]:
    """Return the tables of a text.

    Raises:
        InvalidInput: it is not TOML.
    """
    try:
        return tomllib.loads(text.removeprefix("\ufeff"))
    except tomllib.TOMLDecodeError as fault:
        raise InvalidInput("it cannot be read as TOML") from fault


def put(text: str, path: Sequence[str], value: Mapping[str, Any]) -> str:
    """Return the text with these keys in the table at a path; a table among the values becomes one of its own.

    Raises:
        InvalidInput: see (1).
    """
    meant = load(text)
    inner = meant
    for key in path:
        inner = inner.setdefault(key, {})
        if not isinstance(inner, dict):
            raise _foreign()
    plain = {key: each for key, each in value.items() if not isinstance(each, Mapping)}
    inner.update(plain)
    result = _set(text, path, plain)
    for key, each in value.items():
        if isinstance(each, Mapping) and each:
            inner.setdefault(key, {}).update(each)
            result = _set(result, (*path, key), each)
    return _checked(result, meant)


def drop(text: str, path: Sequence[str]) -> str:
    """Return the text without the table at a path and those beneath it.

    Raises:
        InvalidInput: see (1).
    """
    meant = load(text)
    outer: Any = meant
    for key in path[:-1]:
        outer = outer.get(key, {})
    outer.pop(path[-1], None)
    lines = text.splitlines(keepends=True)
    kept = list(lines)
    for start, end in reversed(_spans(lines, path, below=True)):
        # The empty line above goes too: it was put there with the table.
        above = start - 1 if start and not kept[start - 1].strip() else start
        del kept[above:end]
    # A table without keys may be left of those on the way; it stands for nothing.
    return _checked("".join(kept), meant, empty_too=path[:-1])


def _set(text: str, path: Sequence[str], values: Mapping[str, Any]) -> str:
    newline = "\r\n" if "\r\n" in text else "\n"
    lines = text.splitlines(keepends=True)
    spans = _spans(lines, path, below=False)
    rows = {key: f"{_key(key)} = {_written(each)}{newline}" for key, each in values.items()}
    if not spans:
        block = [f"[{'.'.join(map(_key, path))}]{newline}", *rows.values()]
        head = text if not text or text.endswith("\n") else text + newline
        return head + (newline if head.strip() else "") + "".join(block)
    start, end = spans[0]
    for key, row in rows.items():
        found = _assignment(lines, start + 1, end, key)
        if found is None:
            lines.insert(start + 1, row)
            end += 1
        else:
            lines[found[0] : found[1]] = [row]
            end -= found[1] - found[0] - 1
    return "".join(lines)


def _spans(lines: Sequence[str], path: Sequence[str], *, below: bool) -> list[tuple[int, int]]:
    """Return the lines of each table at a path, or beneath it too: its header to its last key."""
    dotted = r"\s*\.\s*".join(f'(?:{re.escape(key)}|"{re.escape(key)}")' for key in path)
    wanted = re.compile(rf"\s*\[\s*{dotted}\s*" + (r"[.\]]" if below else r"\]"))
    heads = [number for number, line in enumerate(lines) if _HEADER.match(line)]
    found = []
    for place, start in enumerate(heads):
        if not wanted.match(lines[start]):
            continue
        end = heads[place + 1] if place + 1 < len(heads) else len(lines)
        # What stands above the next header is said of the next table.
        while end > start + 1 and (not lines[end - 1].strip() or lines[end - 1].lstrip().startswith("#")):
            end -= 1
        found.append((start, end))
    return found


def _assignment(lines: Sequence[str], start: int, end: int, key: str) -> tuple[int, int] | None:
    """Return the lines of one key, which may be several."""
    wanted = re.compile(rf'\s*(?:{re.escape(key)}|"{re.escape(key)}")\s*=')
    for first in range(start, end):
        if not wanted.match(lines[first]):
            continue
        for last in range(first + 1, end + 1):
            try:
                tomllib.loads("".join(lines[first:last]))
            except tomllib.TOMLDecodeError:
                continue
            return first, last
    return None


def _checked(text: str, meant: dict[str, Any], *, empty_too: Sequence[str] = ()) -> str:
    try:
        found = tomllib.loads(text.removeprefix("\ufeff"))
    except tomllib.TOMLDecodeError as fault:
        raise _foreign() from fault
    for tables in (found, meant):
        if empty_too and tables.get(empty_too[0]) == {}:
            del tables[empty_too[0]]
    if found != meant:
        raise _foreign()
    return text


def _foreign() -> InvalidInput:
    return InvalidInput("it writes its tables in a way that is not edited here")


def _key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else json.dumps(key, ensure_ascii=False)


def _written(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_written(each) for each in value) + "]"
    # A basic string of TOML escapes as JSON does, and DEL besides.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
