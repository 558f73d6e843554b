"""Parse an argument by its type: what ``api.py`` annotates, within the limits of ``types.py``.

A value of another type or outside a limit raises ``InvalidInput``, which names the argument and says what it is. The
limits of one HTTP request are left out, and those that a gate checks.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from functools import cache
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from msgspec import Meta

from keepward.core.filters import parse_where
from keepward.core.json_form import MAX_SAFE_INTEGER
from keepward.core.memory_test import parse_test
from keepward.core.value import is_blank, one_of, parse_instant, require_well_formed, to_micros, unknown_field_message
from keepward.errors import InvalidInput
from keepward.services.arguments import (
    PAST_STATE,
    ArgumentReader,
    boolean,
    duration,
    expiry_time,
    instant,
    items,
    number_reader,
    plain_text,
    reader_of_type,
    texts,
)

#: Limits and the description of a type, as ``Meta`` names them.
_LIMITS = ("ge", "le", "title", "min_length", "max_length", "pattern", "description")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


def argument_reader(name: str, kind: Any, hint: Any, label: str) -> ArgumentReader:
    """Return the parser of an argument by its types in JSON and in Python; ``label`` names an item of a list."""
    python = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    origins = {get_origin(part) for part in python}
    read = _python_reader(name, python, origins) or _json_reader(kind, label)
    if Sequence in origins and str in python:
        # One item may be given without a list.
        several = read
        read = lambda name, value: several(name, (value,) if isinstance(value, str) else value)  # noqa: E731
    if type(None) not in python:
        return read
    return lambda name, value: None if value is None else read(name, value)


def group_reader(group: str, readers: Mapping[str, ArgumentReader]) -> ArgumentReader:
    """Return the parser of a group of arguments, such as ``Filters``, by the parsers of its fields."""

    def read(name: str, value: Any) -> Any:
        if value is None:
            return None
        if not isinstance(value, Mapping):
            raise InvalidInput(f"{name} is keepward.{group}(...), not {type(value).__name__}")
        if (unknown := next((field for field in value if field not in readers), None)) is not None:
            raise InvalidInput(f"{name}: {unknown_field_message('argument', unknown, readers)}")
        return {field: readers[field](field, each) for field, each in value.items()}

    return read


def _python_reader(name: str, python: tuple[Any, ...], origins: set[Any]) -> ArgumentReader | None:
    """Return the parser of an argument that has several types in Python; None if it has that of JSON."""
    if name == "messages":
        return _messages
    if name == "where":
        return _conditions
    if name == "test":
        return lambda _, value: parse_test(value)
    if name == "tests":
        return lambda name, value: [
            parse_test(test, n) for n, test in enumerate(items(name, value, "a list of tests"), 1)
        ]
    if name == "commit":
        return _commit
    if bytes in python:
        return reader_of_type(bytes, "bytes")
    if Callable in origins:
        return _function
    if datetime in python:
        return expiry_time if timedelta in python else _past_state if int in python else instant
    if timedelta in python:
        return duration
    return None


@cache
def _json_reader(kind: Any, label: str) -> ArgumentReader:
    """Return the parser of a type in JSON."""
    limits: dict[str, Any] = {}
    gated = False
    if get_origin(kind) is Annotated:
        kind, *notes = get_args(kind)
        for note in (note for note in notes if isinstance(note, Meta)):
            in_python = {name: getattr(note, name) for name in _LIMITS} if note.extra is None else note.extra
            limits |= {name: value for name, value in in_python.items() if value is not None}
            gated = gated or note.extra_json_schema is not None
        gated = gated and limits.keys() <= {"description"}
    origin, parts = get_origin(kind), get_args(kind)
    if origin is list:
        what = "a list" if parts[0] is Any else "a list of texts"
        return texts if gated else _list_reader(_json_reader(parts[0], label), what, limits)
    if origin is dict:
        return _mapping_reader(*(_json_reader(part, label) for part in parts))
    if origin is Literal:
        return lambda _, value: one_of(label.replace("_", " "), value, parts)
    if origin in (Union, UnionType):
        plain = [part for part in parts if part is not type(None)]
        if len(plain) == 1:
            read = _json_reader(plain[0], label)
            return lambda name, value: None if value is None else read(name, value)
    if kind is str:
        return plain_text if gated else _text_reader(limits)
    if kind in (int, float):
        return number_reader(kind, limits)
    return boolean if kind is bool else lambda _, value: value


def _mapping_reader(read_key: ArgumentReader, read: ArgumentReader) -> ArgumentReader:
    def read_all(name: str, value: Any) -> dict[str, Any]:
        if not isinstance(value, Mapping):
            raise InvalidInput(f"{name} is an object, not {type(value).__name__}")
        return {read_key(f"a key of {name}", key): read(f"a value of {name}", each) for key, each in value.items()}

    return read_all


def _text_reader(limits: Mapping[str, Any]) -> ArgumentReader:
    least, most = limits.get("min_length", 0), limits.get("max_length")
    what = "a text" + (f" of {'1 to' if least else 'at most'} {most:,} characters" if most else "")
    # In Python, ``$`` also matches before a final line break.
    pattern = re.compile(re.sub(r"\$$", r"\\Z", limits["pattern"])) if "pattern" in limits else None
    wanted = limits.get("description", "").rstrip(".")

    def read(name: str, value: Any) -> str:
        given = plain_text(name, value)
        if len(given) < least or (most is not None and len(given) > most):
            raise InvalidInput(f"{name} is {what}")
        require_well_formed(name, given)
        if pattern is not None and not pattern.search(given):
            problem = (
                "and not blank" if is_blank(given) else "in one line" if _CONTROL.search(given) else f"here: {wanted}"
            )
            raise InvalidInput(f"{name} is {what} {problem}")
        return given

    return read


def _list_reader(item: ArgumentReader, what: str, limits: Mapping[str, Any]) -> ArgumentReader:
    most = limits.get("max_length")

    def read(name: str, value: Any) -> tuple[Any, ...]:
        given = items(name, value, what)
        if most is not None and len(given) > most:
            raise InvalidInput(f"{name} has at most {most} items")
        return tuple([item(f"an item of {name}", each) for each in given])

    return read


def _messages(name: str, value: Any) -> tuple[Any, ...]:
    """Return messages as a tuple. A text is none: it does not say whether a user or a tool said it."""
    if isinstance(value, str | Mapping):
        raise InvalidInput(
            f'{name} is a list that says who spoke: add([{{"role": "user", "content": "..."}}]); a statement of your '
            'own is remember("...")'
        )
    return items(name, value)


def _conditions(name: str, value: Any) -> Any:
    parse_where(value)
    return value


def _commit(name: str, value: Any) -> str:
    if isinstance(value, int | None):
        if type(value) is not int or not 0 <= value <= MAX_SAFE_INTEGER:
            raise InvalidInput(f"{name} is a commit's number, its id, or the first characters of its id")
        return str(value)
    return _NAMED_COMMIT(name, value)  # type: ignore[no-any-return]


def _past_state(name: str, value: Any) -> Any:
    moment = value
    if isinstance(value, str):
        usable = 1 <= len(value) <= 64 and value.isprintable() and not is_blank(value)
        with suppress(InvalidInput):
            # Any other text is the id of a commit, or the name of a head.
            moment = parse_instant(value)
    else:
        usable = isinstance(value, datetime) or (type(value) is int and 0 <= value <= MAX_SAFE_INTEGER)
    if isinstance(moment, datetime):
        usable = usable and moment.tzinfo is not None and abs(to_micros(moment)) <= MAX_SAFE_INTEGER
    if not usable:
        raise InvalidInput(f"{name} is {PAST_STATE}")
    return value


def _function(name: str, value: Any) -> Any:
    if not callable(value):
        raise InvalidInput(f"{name} is a function, not {type(value).__name__}")
    return value


_NAMED_COMMIT = _text_reader({"min_length": 1, "max_length": 64})
