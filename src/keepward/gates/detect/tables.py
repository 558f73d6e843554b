"""Read the tables that detectors work by: TOML files in ``rules``, each read at its first use."""

from __future__ import annotations

import functools
import pkgutil
import tomllib
from typing import Any


@functools.cache
def read(name: str) -> dict[str, Any]:
    """Return the tables of one file."""
    return tomllib.loads((pkgutil.get_data(__package__, f"rules/{name}.toml") or b"").decode())


@functools.cache
def words(name: str, *path: str) -> frozenset[str]:
    """Return the words of one list, which a file may hold as lines of words."""
    found: Any = read(name)
    for each in path:
        found = found[each]
    return frozenset(found.split() if isinstance(found, str) else found)
