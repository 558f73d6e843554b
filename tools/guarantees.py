"""Print docs/internals/guarantees.md with the tests of each promise. MkDocs runs the same as a hook.

    python tools/guarantees.py

The page lists the promises. A test names those that it proves: ``@pytest.mark.promise("A12")``.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "internals" / "guarantees.md"
ROW = re.compile(r"^\| ([A-Z]\d+) \| (.*) \|$", re.MULTILINE)


def promises(page: str) -> dict[str, str]:
    """Return the text of each promise by its number."""
    return dict(ROW.findall(page))


def _marks(path: Path) -> Iterator[tuple[str, str]]:
    """Yield (promise, test) for each mark in a file of tests."""
    source = path.read_text("utf-8")
    if "mark.promise(" not in source:
        return
    module = ast.parse(source)
    inside = [each for node in module.body if isinstance(node, ast.ClassDef) for each in node.body]
    for node in (*module.body, *inside):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        for call in (each for decorator in node.decorator_list for each in ast.walk(decorator)):
            if isinstance(call, ast.Call) and ast.unparse(call.func).endswith("mark.promise"):
                for argument in call.args:
                    yield ast.literal_eval(argument), node.name


@cache
def tests() -> dict[str, list[str]]:
    """Return the tests of each promise as ``path::test``, in order."""
    found: dict[str, list[str]] = {}
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        # Tests of frameworks are installed below this folder.
        if "node_modules" in path.parts:
            continue
        for number, name in _marks(path):
            found.setdefault(number, []).append(f"{path.relative_to(ROOT / 'tests').as_posix()}::{name}")
    return found


def with_tests(page: str) -> str:
    """Return the page with a third column: the tests of each promise."""
    found = tests()
    page = page.replace(
        "| promise | what is true |\n| --- | --- |", "| promise | what is true | tests |\n| --- | --- | --- |"
    )
    return ROW.sub(lambda row: f"{row[0]} {'<br>'.join(f'`{test}`' for test in found.get(row[1], []))} |", page)


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Add the tests when MkDocs builds the page."""
    return with_tests(markdown) if page.file.src_uri == "internals/guarantees.md" else markdown


if __name__ == "__main__":
    print(with_tests(PAGE.read_text("utf-8")), end="")
