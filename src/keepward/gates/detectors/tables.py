"""What detectors work out once: the tables of ``rules/*.toml``, each read at its first use, and values of an object."""

from __future__ import annotations

import functools
import pkgutil
import re
import tomllib
from collections.abc import Callable
from typing import Any, Generic, TypeVar

_Value = TypeVar("_Value")


class lazy_property(Generic[_Value]):  # noqa: N801 - used like ``property``
    """A property that is worked out once: ``functools.cached_property`` without the lock that costs more than it."""

    def __init__(self, make: Callable[[Any], _Value]) -> None:
        self.make = make
        self.__doc__ = make.__doc__

    def __get__(self, item: Any, owner: type) -> _Value:
        value = item.__dict__[self.make.__name__] = self.make(item)
        return value


#: What is there for readers and for tests; parsing it would take as long as all the rest.
_FOR_TESTS = re.compile(r"^(?:positive|negative|source|language) = .*\n", re.MULTILINE)


@functools.cache
def read(name: str, *, include_examples: bool = False) -> dict[str, Any]:
    """Return the tables of one file, without examples and sources unless it is asked for whole."""
    text = (pkgutil.get_data(__package__, f"rules/{name}.toml") or b"").decode()
    return tomllib.loads(text if include_examples else _FOR_TESTS.sub("", text))


@functools.cache
def words(name: str, *path: str) -> frozenset[str]:
    """Return the words of a text in one file."""
    found: Any = read(name)
    for each in path:
        found = found[each]
    return frozenset(found.split())


def split_entries(text: str) -> tuple[str, ...]:
    """Return the entries of a list whose entries may be of several words: ``this one | that one``."""
    return tuple(" ".join(text.split()).split(" | ")) if text else ()


def columns(line: str, *names: str) -> dict[str, str]:
    """Return the columns of a line of rules, two blanks between: the named ones, and options such as ``checks: apart``.

    An option without a value is its own name. A middle dot falls away.
    """
    parts = re.split(" {2,}", line.replace("·", ""))
    options = (part.partition(": ") for part in parts[len(names) :])
    return dict(zip(names, parts, strict=False)) | {name: value or name for name, _, value in options}
