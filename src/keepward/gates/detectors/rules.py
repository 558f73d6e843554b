"""Make rules from the tables in ``rules/*.toml``: patterns with their literals, and lists of words in any language.

A word of a list is in normal form: a blank matches any spacing, ``*`` any further letters.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from keepward.core.linear_patterns import escape_literal
from keepward.gates.detectors.checks import check_named
from keepward.gates.detectors.matcher import Rule
from keepward.gates.detectors.tables import read, split_entries


@functools.cache
def load(name: str, table: str = "rule") -> tuple[Rule, ...]:
    """Return the rules of one table of a file, in its order."""
    tables = read(name)
    return tuple(
        make_rule(row, functools.partial(expand_lists, row["pattern"], tables), split_entries(row.get("literals", "")))
        for row in tables[table]
    )


def expand_lists(pattern: str, tables: Mapping[str, Any]) -> str:
    """Replace names in braces by the lists of a file."""
    for name, alternatives in tables.get("lists", {}).items():
        pattern = pattern.replace(f"{{{name}}}", f"(?:{'|'.join(alternatives)})")
    return pattern


def make_rule(
    row: Mapping[str, Any], make_pattern: Callable[[], str], literals: Iterable[str] = (), *checks: str
) -> Rule:
    """Make a rule from a row; ``make_pattern`` makes its pattern on first use."""
    return Rule(
        name=row["name"],
        make_pattern=make_pattern,
        literals=tuple(literals),
        certainty=row.get("certainty", "certain"),
        checks=tuple(map(check_named, (*row.get("checks", "").split(), *checks))),
        gate=row.get("gate", ""),
        split=row.get("split", ""),
        bare=bool(row.get("bare")),
    )


def any_word(words: Iterable[str], *, begin: str = "", end: str = "") -> str:
    """Return a pattern for any word of a list, with ``begin`` and ``end`` at its word boundaries, except at a ``*``."""
    patterns = []
    for word in filter(None, words):
        begins = begin if word[0].isascii() and word[0].isalnum() else ""
        ends = end if word[-1].isascii() and word[-1].isalnum() else ""
        patterns.append(begins + "".join(map(_part, re.split(r"(.?\*| )", word.lstrip("*")))) + ends)
    return "(?:" + "|".join(patterns) + ")"


def _part(part: str) -> str:
    if part == " ":
        return r"\s+"
    if part[-1:] == "*":
        return escape_literal(part[:-1]) + (r"\w*" if part[:-1].isascii() else r"[^\x00-\x7f]*")
    return escape_literal(part)


def literals_of(words: Iterable[str]) -> tuple[str, ...]:
    """Return literals, one of which occurs in every text that contains one of the words."""
    return tuple(dict.fromkeys(max(word.replace("*", " ").split(), key=len) for word in words))
