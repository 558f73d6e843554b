"""Every promise has a test that names it, and every mark names a promise."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SPEC = importlib.util.spec_from_file_location("guarantees", ROOT / "tools" / "guarantees.py")
assert SPEC is not None
assert SPEC.loader is not None
guarantees = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(guarantees)

PROMISES = guarantees.promises(guarantees.PAGE.read_text("utf-8"))
#: How many promises each letter has at least.
LISTED = {"A": 93, "B": 92, "C": 125, "D": 45, "E": 56}


@pytest.mark.parametrize("letter", LISTED)
def test_every_promise_is_on_the_page(letter: str) -> None:
    assert [f"{letter}{n}" for n in range(1, LISTED[letter] + 1) if f"{letter}{n}" not in PROMISES] == []


def test_every_promise_has_a_test() -> None:
    assert [number for number in PROMISES if number not in guarantees.tests()] == []


def test_every_mark_names_a_promise() -> None:
    assert {number: tests for number, tests in guarantees.tests().items() if number not in PROMISES} == {}


def test_page_of_the_site_names_the_tests() -> None:
    page = guarantees.with_tests("| promise | what is true |\n| --- | --- |\n| A1 | It is durable. |\n")
    assert page.startswith("| promise | what is true | tests |")
    assert f"| A1 | It is durable. | `{guarantees.tests()['A1'][0]}`" in page
