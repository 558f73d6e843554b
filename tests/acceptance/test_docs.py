"""The pages are true: their code runs as it stands and prints what they say."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import keepward
from support.samples import blocks, printed

DOCS = Path(__file__).parents[2] / "docs"
#: Pages whose samples are one program, with a comment after each ``print``.
PROGRAMS = [
    *("index", "tutorial"),
    *("howto/blobs", "howto/branches", "howto/cookbook", "howto/erasure", "howto/evaluating", "howto/forgetting"),
    *("howto/four-eyes",),
    *("howto/freshness", "howto/from-letta", "howto/from-mem0", "howto/import"),
    *("howto/learning", "howto/memory-tests", "howto/messages", "howto/model", "howto/plugins", "howto/shadow"),
    *("concepts/contexts", "concepts/detectors", "concepts/gates"),
    *("concepts/journal", "concepts/roles", "concepts/scopes"),
    *("internals/ranking", "reference/errors", "reference/formats"),
]
#: Pages whose samples are one program, and say in words what they print.
UNCHECKED = ["howto/asyncio", "howto/users", "reference/python"]
#: Pages whose samples another test runs: of agents, of the client, and of each framework.
ELSEWHERE = ["howto/agent-loop", "howto/client", "howto/frameworks/"]
LONGEST_HOWTO = 120


def run(page: str, folder: Path) -> list[str]:
    """Return the lines that the samples of a page print, run as one program by a user without settings."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", "\n".join(blocks("python", page))],
        cwd=folder,
        env={"PATH": os.environ["PATH"], "HOME": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.slow] * name.startswith(("howto/", "internals/"))) for name in PROGRAMS],
)
def test_page_prints_what_it_says(name: str, tmp_path: Path) -> None:
    page = (DOCS / f"{name}.md").read_text()
    assert run(page, tmp_path) == printed(page)


@pytest.mark.parametrize("name", UNCHECKED)
def test_samples_of_a_page_run(name: str, tmp_path: Path) -> None:
    run((DOCS / f"{name}.md").read_text(), tmp_path)


def test_every_sample_is_run_or_says_why_not() -> None:
    pages = {str(path.relative_to(DOCS).with_suffix("")): path.read_text() for path in DOCS.rglob("*.md")}
    not_run = {
        name: page
        for name, page in pages.items()
        if name not in {*PROGRAMS, *UNCHECKED} and not name.startswith(tuple(ELSEWHERE))
    }
    unmarked = r"(?<!-->\n\n)^```python\n"
    assert [name for name, page in not_run.items() if re.search(unmarked, page, re.MULTILINE)] == []


def test_howto_pages_are_short() -> None:
    lengths = {path.name: len(path.read_text().splitlines()) for path in (DOCS / "howto").rglob("*.md")}
    assert {name: length for name, length in lengths.items() if length > LONGEST_HOWTO} == {}


def test_every_exported_name_is_on_a_reference_page() -> None:
    pages = "".join((DOCS / "reference" / f"{name}.md").read_text() for name in ("python", "values"))
    assert [name for name in keepward.__all__ if not re.search(rf"keepward\.{name}\b", pages)] == []


def test_pages_that_code_names_exist() -> None:
    root = DOCS.parent
    sources = [path for folder in ("src", "tools", "evals", "benchmarks") for path in (root / folder).rglob("*.py")]
    named = {page for path in sources for page in re.findall(r"docs/[\w/-]+\.md", path.read_text("utf-8"))}
    assert [page for page in sorted(named) if not (root / page).exists()] == []


@pytest.mark.parametrize("name", ["AGENTS.md", "llms.txt", "SECURITY.md", "CONTRIBUTING.md"])
def test_linked_files_exist(name: str) -> None:
    links = re.findall(r"\]\((?!http)([^)#]+)", (DOCS.parent / name).read_text())
    assert [link for link in links if not (DOCS.parent / link).exists()] == []
