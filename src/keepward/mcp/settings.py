"""Settings of other programs, edited in place: one table put into JSON or TOML, or taken out again.

Invariants
(1) All else in the text stays, byte for byte: each way to edit it is read again and compared with what was meant, and
    the first one that is that is taken; a text of which there is none is refused.
(2) What is edited is plain: JSON as `json` reads it, with no comments, and TOML whose tables have headers of their own.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from keepward.errors import InvalidInput

_GAP = r"[ \t\r\n]*"
_HEADER = re.compile(r"\s*\[")


def load(text: str, *, toml: bool) -> dict[str, Any]:
    """Return what a text holds; nothing where it is empty.

    Raises:
        InvalidInput: it cannot be read, or is no table.
    """
    try:
        if toml:
            return tomllib.loads(text)
        value = json.loads(text, object_pairs_hook=_once) if text.strip() else {}
    except (ValueError, RecursionError) as fault:
        raise InvalidInput(f"it cannot be read as {'TOML' if toml else 'JSON without comments'}") from fault
    if not isinstance(value, dict):
        raise InvalidInput("it is no object")
    return value


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key stands there twice")
    return found


def put(text: str, place: Sequence[str], entry: Mapping[str, Any], *, toml: bool) -> str:
    """Return the text with the table at a path of keys; tables on the way are made.

    Raises:
        InvalidInput: see (1).
    """
    meant = inner = load(text, toml=toml)
    for key in place[:-1]:
        inner = inner.setdefault(key, {})
        if not isinstance(inner, dict):
            raise _refused()
    if toml:
        ways: Iterable[str] = [_with_table(text, place, entry)]
    else:
        text = drop(text, place, toml=False) if place[-1] in inner else text
        ways = _inserted(text if text.strip() else "{}\n", place, entry)
    inner[place[-1]] = entry
    return _first(ways, meant, toml=toml)


def drop(text: str, place: Sequence[str], *, toml: bool) -> str:
    """Return the text without the table at a path, and without tables on the way that are empty after that.

    Raises:
        InvalidInput: see (1).
    """
    meant = load(text, toml=toml)
    tables: list[dict[str, Any]] = [meant]
    for key in place[:-1]:
        tables.append(tables[-1][key])
    gone = len(place) - 1
    del tables[gone][place[gone]]
    while gone and not tables[gone]:
        gone -= 1
        del tables[gone][place[gone]]
    if not toml:
        return _first(_without(text, place[gone]), meant, toml=False)
    result = _lines_without(text, place)
    # A header without keys may be left of the tables on the way; it stands for nothing.
    left: dict[str, Any] = {key: {} for key in place[:1] if load(result, toml=True).get(key) == {}}
    return _first([result], meant | left, toml=True)


def _refused() -> InvalidInput:
    return InvalidInput("it is written in a way that is not edited here")


def _first(texts: Iterable[str], meant: dict[str, Any], *, toml: bool) -> str:
    """Return the first text that holds what is meant (1)."""
    for text in texts:
        try:
            if load(text, toml=toml) == meant:
                return text
        except InvalidInput:
            continue
    raise _refused()


def _inserted(text: str, place: Sequence[str], entry: Any) -> Iterator[str]:
    """Yield a text of JSON with an entry as the first member of each object where it may belong, innermost first."""
    unit = found[1] if (found := re.search(r"^([ \t]+)\"", text, re.MULTILINE)) else "  "
    newline = "\r\n" if "\r\n" in text else "\n"

    def written(indent: str) -> str:
        return f"{name}: {json.dumps(entry, indent=unit, ensure_ascii=False)}".replace("\n", newline + indent)

    for depth in reversed(range(len(place))):
        name = json.dumps(place[depth])
        opened = rf"{re.escape(json.dumps(place[depth - 1]))}{_GAP}:{_GAP}" if depth else rf"\A{_GAP}"
        for match in re.finditer(rf"{opened}\{{({_GAP})(\}}?)", text):
            at, gap = match.start(1), match[1]
            line = text[text.rfind("\n", 0, at) + 1 : at]
            base = line[: len(line) - len(line.lstrip(" \t"))]
            if match[2]:
                inside = newline + base + unit + written(base + unit) + newline + base
                yield text[:at] + inside + text[match.start(2) :]
            elif "\n" in gap:
                yield f"{text[:at]}{gap}{written(gap.rpartition(chr(10))[2])},{text[at:]}"
            else:
                yield f"{text[:at]}{gap}{name}: {json.dumps(entry, ensure_ascii=False)},{text[at:]}"
        entry = {place[depth]: entry}


def _without(text: str, key: str) -> Iterator[str]:
    """Yield a text of JSON without each of what may be members of that name."""
    for match in re.finditer(rf"{_GAP}{re.escape(json.dumps(key))}{_GAP}:{_GAP}", text):
        try:
            _, end = json.JSONDecoder().raw_decode(text, match.end())
        except ValueError:
            continue
        before, after = text[: match.start()], text[end:]
        yield before + after.lstrip(" \t\r\n").removeprefix(",")
        yield before.rstrip(" \t\r\n").removesuffix(",") + after


def _with_table(text: str, place: Sequence[str], entry: Mapping[str, Any]) -> str:
    newline = "\r\n" if "\r\n" in text else "\n"
    plain = {key: value for key, value in entry.items() if not isinstance(value, Mapping)}
    tables = {(): plain} | {(key,): value for key, value in entry.items() if isinstance(value, Mapping)}
    rows = []
    for path, values in tables.items():
        rows.append(f"[{'.'.join(map(_toml_key, (*place, *path)))}]")
        rows += [f"{_toml_key(key)} = {_toml(value)}" for key, value in values.items()]
    head = _lines_without(text, place)
    head += newline if head and not head.endswith("\n") else ""
    return head + (newline if head.strip() else "") + "".join(row + newline for row in rows)


def _lines_without(text: str, place: Sequence[str]) -> str:
    """Return a text of TOML without the tables at a path and beneath it, and the empty line above each."""
    dotted = r"\s*\.\s*".join(f'(?:{re.escape(key)}|"{re.escape(key)}")' for key in place)
    wanted = re.compile(rf"\s*\[\s*{dotted}\s*[.\]]")
    lines = text.splitlines(keepends=True)
    heads = [number for number, line in enumerate(lines) if _HEADER.match(line)]
    for start, after in reversed(list(zip(heads, [*heads[1:], len(lines)], strict=False))):
        if not wanted.match(lines[start]):
            continue
        end = after
        # What stands above the next header is said of the next table.
        while end > start + 1 and (not lines[end - 1].strip() or lines[end - 1].lstrip().startswith("#")):
            end -= 1
        del lines[start - 1 if start and not lines[start - 1].strip() else start : end]
    return "".join(lines)


def _toml_key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else _toml(key)


def _toml(value: Any) -> str:
    if isinstance(value, list) and all(isinstance(each, str | int | float) for each in value):
        return f"[{', '.join(map(_toml, value))}]"
    if not isinstance(value, str | int | float):
        raise _refused()
    # A basic string of TOML escapes as JSON does, and DEL besides.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
