"""JSON with comments, edited in place: one value put or taken out, every other byte kept.

Invariants
(1) Comments, trailing commas, indentation, line ends and the order of keys stay as they were found.
(2) What cannot be read is refused; nothing is guessed. The result is read again and compared with what was meant.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from keepward.errors import InvalidInput

_GAP = re.compile(r"(?:[ \t\r\n]+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
_PLAIN = re.compile(r"-?\d[\d.eE+-]*|true|false|null")
_DEEPEST = 100


@dataclass(slots=True)
class _Node:
    start: int
    end: int
    value: Any
    #: Key, where it stands, and its value; of objects alone.
    members: list[tuple[str, int, _Node]] = field(default_factory=list)


def load(text: str) -> Any:
    """Return the value of a text; None of an empty one.

    Raises:
        InvalidInput: it is not JSON with comments.
    """
    return _parse(text).value if text.strip() else None


def put(text: str, path: Sequence[str], value: Any) -> str:
    """Return the text with the value at a path of keys; objects on the way are made."""
    if not text.strip():
        text = "{}\n"
    meant = inner = load(text)
    for key in path[:-1]:
        inner = _table(inner).setdefault(key, {})
    _table(inner)[path[-1]] = value
    return _checked(_put(text, path, value), meant)


def drop(text: str, path: Sequence[str]) -> str:
    """Return the text without the value at a path, and without objects on the way that are empty after that."""
    for depth in range(len(path), 0, -1):
        meant = load(text)
        node, inner = _parse(text), meant
        for key in path[: depth - 1]:
            found = _member(_object(node), key)
            if found is None:
                return text
            node, inner = found, inner[key]
        key = path[depth - 1]
        if _member(_object(node), key) is None:
            return text
        del inner[key]
        try:
            text = _checked(_remove(text, node, key), meant)
        except InvalidInput:
            # A comment that runs to the end of its line stands before it: the line break is left.
            text = _checked(_remove(text, node, key, tidy=False), meant)
        if inner:
            break
    return text


def _put(text: str, path: Sequence[str], value: Any) -> str:
    node = _object(_parse(text))
    for depth, key in enumerate(path):
        found = _member(node, key)
        if found is None:
            for outer in reversed(path[depth + 1 :]):
                value = {outer: value}
            return _insert(text, node, key, value)
        node = found if depth == len(path) - 1 else _object(found)
    shown = _written(value, _indent_of(text, node.start), _unit(text), _newline(text))
    return text[: node.start] + shown + text[node.end :]


def _checked(text: str, meant: Any) -> str:
    if load(text) != meant:
        raise InvalidInput("it is written in a way that is not edited here")
    return text


def _table(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _unreadable("an object is expected")
    return value


def _insert(text: str, node: _Node, key: str, value: Any) -> str:
    newline, unit, close = _newline(text), _unit(text), node.end - 1
    last = len(text[:close].rstrip(" \t\r\n"))
    # A comma behind the last member stays the custom of the object.
    end = node.members[-1][2].end if node.members else None
    trails = end is not None and text[_skip(text, end)] == ","
    if node.members and "\n" not in text[node.start : node.end]:
        lines, tail = f" {json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}", text[last:close]
    else:
        base = _indent_of(text, node.start)
        first = node.members[0][1] if node.members else None
        indent = _indent_of(text, first) if first is not None and _begins_line(text, first) else base + unit
        lines = f"{newline}{indent}{json.dumps(key)}: {_written(value, indent, unit, newline)}"
        tail = text[last:close] if "\n" in text[last:close] else newline + base
    result = text[:last] + lines + ("," if trails else "") + tail + text[close:]
    return result if end is None or trails else result[:end] + "," + result[end:]


def _remove(text: str, node: _Node, key: str, *, tidy: bool = True) -> str:
    place = next(n for n, member in enumerate(node.members) if member[0] == key)
    _, start, gone = node.members[place]
    after = _skip(text, gone.end)
    comma = after if text[after] == "," else None
    if tidy:
        start = len(text[:start].rstrip(" \t\r\n"))
    end = gone.end if comma is None else comma + 1
    result = text[:start] + text[end:]
    if comma is None and place > 0:
        before = node.members[place - 1][2].end
        before = _skip(text, before)
        result = result[:before] + result[before + 1 :]
    if len(node.members) == 1:
        close = node.end - 1 - (len(text) - len(result))
        if not result[node.start + 1 : close].strip():
            result = result[: node.start + 1] + result[close:]
    return result


def _written(value: Any, indent: str, unit: str, newline: str) -> str:
    text = json.dumps(value, indent=unit, ensure_ascii=False)
    return text.replace("\n", newline + indent)


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _unit(text: str) -> str:
    found = re.search(r"^([ \t]+)\"", text, re.MULTILINE)
    return found[1] if found else "  "


def _indent_of(text: str, at: int) -> str:
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _begins_line(text: str, at: int) -> bool:
    return not text[text.rfind("\n", 0, at) + 1 : at].strip()


def _member(node: _Node, key: str) -> _Node | None:
    return next((value for name, _, value in node.members if name == key), None)


def _object(node: _Node) -> _Node:
    if not isinstance(node.value, dict):
        raise _unreadable("an object is expected")
    return node


def _parse(text: str) -> _Node:
    start = _skip(text, 1 if text.startswith("\ufeff") else 0)
    node = _value(text, start, 0)
    if _skip(text, node.end) != len(text):
        raise _unreadable("there is more than one value")
    return node


def _value(text: str, at: int, depth: int) -> _Node:
    if depth > _DEEPEST:
        raise _unreadable("it is nested too deeply")
    head = text[at : at + 1]
    if head == "{":
        return _members(text, at, depth)
    if head == "[":
        return _items(text, at, depth)
    found = _STRING.match(text, at) or _PLAIN.match(text, at)
    if found is None:
        raise _unreadable(f"line {text.count(chr(10), 0, at) + 1}")
    return _Node(at, found.end(), _scalar(found[0]))


def _members(text: str, at: int, depth: int) -> _Node:
    node = _Node(at, at, {})
    place = _skip(text, at + 1)
    while text[place : place + 1] != "}":
        key = _STRING.match(text, place)
        colon = _skip(text, key.end()) if key else place
        if key is None or text[colon : colon + 1] != ":":
            raise _unreadable(f"line {text.count(chr(10), 0, place) + 1}")
        name, value = _scalar(key[0]), _value(text, _skip(text, colon + 1), depth + 1)
        if name in node.value:
            raise _unreadable("a key stands there twice")
        node.members.append((name, place, value))
        node.value[name] = value.value
        place = _next(text, value.end, "}")
    node.end = place + 1
    return node


def _items(text: str, at: int, depth: int) -> _Node:
    node = _Node(at, at, [])
    place = _skip(text, at + 1)
    while text[place : place + 1] != "]":
        value = _value(text, place, depth + 1)
        node.value.append(value.value)
        place = _next(text, value.end, "]")
    node.end = place + 1
    return node


def _next(text: str, at: int, closing: str) -> int:
    place = _skip(text, at)
    if text[place : place + 1] == ",":
        return _skip(text, place + 1)
    if text[place : place + 1] != closing:
        raise _unreadable(f"line {text.count(chr(10), 0, place) + 1}")
    return place


def _scalar(word: str) -> Any:
    try:
        return json.loads(word)
    except ValueError as fault:
        raise _unreadable("a word in it is not JSON") from fault


def _skip(text: str, at: int) -> int:
    found = _GAP.match(text, at)
    return found.end() if found else at


def _unreadable(where: str) -> InvalidInput:
    return InvalidInput(f"it cannot be read as JSON with comments ({where})")
