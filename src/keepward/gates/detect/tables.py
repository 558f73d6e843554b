"""Read the tables that detectors work by: TOML files in ``rules``, each read at its first use."""

from __future__ import annotations

import functools
import pkgutil
import re
import tomllib
from typing import Any

#: What is there for readers and for tests; parsing it would take as long as all the rest.
_FOR_TESTS = re.compile(r"^(?:positive|negative|source|language) = .*\n", re.MULTILINE)


@functools.cache
def read(name: str, *, whole: bool = False) -> dict[str, Any]:
    """Return the tables of one file, without examples and sources unless it is asked for whole."""
    text = (pkgutil.get_data(__package__, f"rules/{name}.toml") or b"").decode()
    return tomllib.loads(text if whole else _FOR_TESTS.sub("", text))


@functools.cache
def words(name: str, *path: str) -> frozenset[str]:
    """Return the words of a text in one file."""
    found: Any = read(name)
    for each in path:
        found = found[each]
    return frozenset(found.split())


def listed(text: str) -> tuple[str, ...]:
    """Return the entries of a list whose entries may be of several words: ``this one | that one``."""
    return tuple(" ".join(text.split()).split(" | ")) if text else ()
