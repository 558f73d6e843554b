"""The pages of guarantees and the tests say the same."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs" / "guarantees").glob("*.md"))
TESTS = {
    path.stem.removeprefix("test_").removeprefix("promises_"): path
    for path in (ROOT / "tests").rglob("test_*.py")
    # Tests of frameworks are fetched to there.
    if "node_modules" not in path.parts
}
#: How many promises there are of each letter; every one has a row.
LISTED = {"A": 93, "B": 85, "C": 121, "D": 45, "E": 56}


def rows() -> list[tuple[str, str]]:
    """Return (promise, rest of the row) of every page."""
    found = re.findall(r"^\| ([A-Z]\d+) \|(.*)\|$", "\n".join(page.read_text() for page in PAGES), re.MULTILINE)
    return [(number, rest) for number, rest in found]


@pytest.mark.parametrize("letter", LISTED)
def test_every_promise_has_a_row(letter: str) -> None:
    numbers = {number for number, _ in rows()}
    assert [f"{letter}{n}" for n in range(1, LISTED[letter] + 1) if f"{letter}{n}" not in numbers] == []


def test_every_row_names_a_test() -> None:
    assert [number for number, rest in rows() if "::test_" not in rest] == []


def test_no_row_says_later() -> None:
    assert [number for number, rest in rows() if re.search(r"\bLater\b", rest)] == []


@cache
def functions() -> dict[tuple[str, str], str]:
    """Return the decorators of every test function, as text, by (file, name)."""
    return {
        (stem, node.name): " ".join(map(ast.unparse, node.decorator_list))
        for stem, path in TESTS.items()
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef)
    }


def named() -> list[tuple[str, tuple[str, str]]]:
    """Return (promise, (file, test)) for every test that a row names."""
    return [
        (number, (Path(place).stem.removeprefix("test_").removeprefix("promises_"), name))
        for number, rest in rows()
        for place, name in re.findall(r"([\w./]+)::(test_\w+)", rest)
    ]


def test_every_test_that_a_row_names_is_there() -> None:
    there = functions()
    assert [(number, test) for number, test in named() if test not in there] == []


def test_every_test_that_a_row_names_says_so_itself() -> None:
    there = functions()
    assert [(number, test) for number, test in named() if f"'{number}'" not in there.get(test, "")] == []
