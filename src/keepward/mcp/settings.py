"""Settings of other programs, edited in place: one table put into JSON or TOML, or taken out again.

Invariants
(1) All else in the text stays, byte for byte. The result is read again and compared with what was meant; a text where
    it is not that is refused.
(2) What is edited is plain: JSON as `json` reads it, with no comments, and TOML whose tables have headers of their own.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from keepward.errors import InvalidInput

_GAP = re.compile(r"[ \t\r\n]*")
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
    inner[place[-1]] = entry
    edit = _put_toml if toml else _put_json
    return _checked(edit(text if toml or text.strip() else "{}\n", place, entry), meant, toml)


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
        return _checked(_drop_json(text, place[: gone + 1]), meant, toml)
    result = _lines_without(text, place)
    # A header without keys may be left of the tables on the way; it stands for nothing.
    return _checked(result, meant | {key: {} for key in place[:1] if load(result, toml=True).get(key) == {}}, toml)


def _refused() -> InvalidInput:
    return InvalidInput("it is written in a way that is not edited here")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key stands there twice")
    return found


def _checked(text: str, meant: dict[str, Any], toml: bool) -> str:
    try:
        found = load(text, toml=toml)
    except InvalidInput as fault:
        raise _refused() from fault
    if found != meant:
        raise _refused()
    return text


class _Member(NamedTuple):
    key: str
    start: int
    value: int
    end: int


def _members(text: str, at: int) -> Iterator[_Member]:
    """Yield the members of the JSON object that begins at a place."""
    decode = json.JSONDecoder().raw_decode
    at = _skip(text, at + 1)
    while text[at] != "}":
        key, end = decode(text, at)
        value = _skip(text, _skip(text, end) + 1)
        _, end = decode(text, value)
        yield _Member(key, at, value, end)
        at = _skip(text, end)
        at = _skip(text, at + 1) if text[at] == "," else at


def _put_json(text: str, place: Sequence[str], entry: Any) -> str:
    at = _skip(text, 0)
    for depth, key in enumerate(place):
        members = list(_members(text, at))
        found = next((each for each in members if each.key == key), None)
        if found is None:
            for outer in reversed(place[depth + 1 :]):
                entry = {outer: entry}
            return _insert(text, at, members, key, entry)
        at = found.value
    return text[:at] + _written(text, entry, _indent(text, at)) + text[found.end :] if found else text


def _insert(text: str, at: int, members: Sequence[_Member], key: str, value: Any) -> str:
    name, newline = json.dumps(key), "\r\n" if "\r\n" in text else "\n"
    if not members:
        base, rest = _indent(text, at), text[_skip(text, at + 1) :]
        inner = base + _unit(text)
        return f"{text[: at + 1]}{newline}{inner}{name}: {_written(text, value, inner)}{newline}{base}{rest}"
    last = members[-1]
    if "\n" in text[at : last.start]:
        inner = _indent(text, last.start)
        return f"{text[: last.end]},{newline}{inner}{name}: {_written(text, value, inner)}{text[last.end :]}"
    return f"{text[: last.end]}, {name}: {json.dumps(value, ensure_ascii=False)}{text[last.end :]}"


def _drop_json(text: str, place: Sequence[str]) -> str:
    at = _skip(text, 0)
    for key in place[:-1]:
        at = next(each.value for each in _members(text, at) if each.key == key)
    members = list(_members(text, at))
    number = next(n for n, each in enumerate(members) if each.key == place[-1])
    if len(members) == 1:
        return text[: at + 1] + text[_skip(text, members[0].end) :]
    if number == len(members) - 1:
        return text[: members[number - 1].end] + text[members[number].end :]
    return text[: members[number].start] + text[members[number + 1].start :]


def _written(text: str, value: Any, indent: str) -> str:
    shown = json.dumps(value, indent=_unit(text), ensure_ascii=False)
    return shown.replace("\n", ("\r\n" if "\r\n" in text else "\n") + indent)


def _unit(text: str) -> str:
    found = re.search(r"^([ \t]+)\"", text, re.MULTILINE)
    return found[1] if found else "  "


def _indent(text: str, at: int) -> str:
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _skip(text: str, at: int) -> int:
    found = _GAP.match(text, at)
    return found.end() if found else at


def _put_toml(text: str, place: Sequence[str], entry: Mapping[str, Any]) -> str:
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
