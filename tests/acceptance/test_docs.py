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
PROGRAMS = ["tutorial", "four-eyes", "erasure", "evaluating"]


#: Pages whose samples are one program, and say in words what they print.
UNCHECKED = ["users", "talks"]


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


@pytest.mark.parametrize("name", PROGRAMS)
def test_page_prints_what_it_says(name: str, tmp_path: Path) -> None:
    page = (DOCS / f"{name}.md").read_text()
    assert run(page, tmp_path) == printed(page)


@pytest.mark.parametrize("name", UNCHECKED)
def test_samples_of_a_page_run(name: str, tmp_path: Path) -> None:
    run((DOCS / f"{name}.md").read_text(), tmp_path)


def test_every_exported_name_is_on_a_reference_page() -> None:
    pages = "".join((DOCS / "reference" / f"{name}.md").read_text() for name in ("python", "values"))
    assert [name for name in keepward.__all__ if not re.search(rf"keepward\.{name}\b", pages)] == []


@pytest.mark.parametrize("name", ["AGENTS.md", "llms.txt", "SECURITY.md", "CONTRIBUTING.md"])
def test_linked_files_exist(name: str) -> None:
    links = re.findall(r"\]\((?!http)([^)#]+)", (DOCS.parent / name).read_text())
    assert [link for link in links if not (DOCS.parent / link).exists()] == []
