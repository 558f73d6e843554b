"""The tables of ``rules/*.toml``, each read on first use, and a cached property."""

from __future__ import annotations

import functools
import pkgutil
import re
import tomllib
from collections.abc import Callable
from typing import Any, Generic, TypeVar

_Value = TypeVar("_Value")


class lazy_property(Generic[_Value]):  # noqa: N801 - used like ``property``
    """A property that is computed once: ``functools.cached_property`` without the lock of Python 3.11."""

    def __init__(self, make: Callable[[Any], _Value]) -> None:
        self.make = make
        self.__doc__ = make.__doc__

    def __get__(self, item: Any, owner: type) -> _Value:
        value = item.__dict__[self.make.__name__] = self.make(item)
        return value


#: Lines for readers and tests; to parse them would take as long as everything else.
_FOR_TESTS = re.compile(r"^(?:positive|negative|source|language) = .*\n", re.MULTILINE)


@functools.cache
def read(name: str, *, include_examples: bool = False) -> dict[str, Any]:
    """Return the tables of one file, by default without examples and sources."""
    text = (pkgutil.get_data(__package__, f"rules/{name}.toml") or b"").decode()
    return tomllib.loads(text if include_examples else _FOR_TESTS.sub("", text))


@functools.cache
def words(name: str, *path: str) -> frozenset[str]:
    """Return the words of the text at a path of keys in one file."""
    value: Any = read(name)
    for key in path:
        value = value[key]
    return frozenset(value.split())


def split_entries(text: str) -> tuple[str, ...]:
    """Return the entries of a list with entries of several words: ``this one | that one``."""
    return tuple(" ".join(text.split()).split(" | ")) if text else ()


def columns(line: str, *names: str) -> dict[str, str]:
    """Return the columns of a line of rules, separated by two blanks: the named ones, then options.

    An option is for example ``checks: mixed``; one without a value has its name as the value. Middle dots
    are dropped: they stop scanners of repositories from reporting the file.
    """
    parts = re.split(" {2,}", line.replace("·", ""))
    options = (part.partition(": ") for part in parts[len(names) :])
    return dict(zip(names, parts, strict=False)) | {name: value or name for name, _, value in options}
