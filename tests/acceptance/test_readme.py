"""The README is true: its code runs as it stands, and its files are there."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.samples import blocks, printed

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
DOCS = ROOT / "docs"


def environment(home: Path) -> dict[str, str]:
    """What a fresh login has: nothing of ours is set but where the settings go."""
    return {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}", "HOME": str(home)}


#: A model that knows only what it is sent.
CHAT = """
def chat(messages):
    known, asked = messages[0]["content"], messages[1]["content"]
    if not asked.endswith("?"):
        return "Nice!"
    return "You moved to Porto in May." if "Porto" in known else "I do not know."
"""


@pytest.mark.promise("F15")
def test_the_python_of_the_readme_runs_as_it_is(tmp_path: Path) -> None:
    script = "\n".join([CHAT, *blocks("python", README)])
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", script],
        cwd=tmp_path,
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == printed(README)


@pytest.fixture
def served(tmp_path: Path) -> Iterator[dict[str, str]]:
    """What `keepward serve` says as JSON, for as long as it serves."""
    command = [sys.executable, "-m", "keepward", "serve", "--port", "0", "--quiet", "--json"]
    subprocess.run([sys.executable, "-m", "keepward", "init"], cwd=tmp_path, env=environment(tmp_path), check=True)
    with subprocess.Popen(
        command, cwd=tmp_path, env=environment(tmp_path), stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        yield json.loads(process.stdout.readline())
        process.terminate()
        assert process.wait(30) == 0


@pytest.mark.slow
def test_the_sample_of_the_client_runs_against_keepward_serve(served: dict[str, str], tmp_path: Path) -> None:
    script = next(block for block in blocks("python", (DOCS / "howto" / "client.md").read_text()) if "Client(" in block)
    script = script.replace("http://127.0.0.1:8321", served["url"])
    token = Path(served["token_file"]).read_text().strip()
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", f"token = {token!r}\n{script}"],
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.slow
@pytest.mark.promise("F15")
def test_the_commands_of_the_page_end_as_it_says(tmp_path: Path) -> None:
    wrong = []
    for line in "".join(blocks("console", (DOCS / "howto" / "terminal.md").read_text())).splitlines():
        command, _, remark = line.removeprefix("$ ").partition("   #")
        expected = int(found[1]) if (found := re.search(r"exit (\d)", remark)) else 0
        done = subprocess.run(
            shlex.split(command),
            cwd=tmp_path,
            env=environment(tmp_path),
            capture_output=True,
            text=True,
            check=False,
            stdin=subprocess.DEVNULL,
        )
        if done.returncode != expected:
            wrong.append((command, done.returncode, done.stderr))
    assert wrong == []


def test_first_sample_of_the_readme_is_short() -> None:
    lines = [line for line in blocks("python", README)[0].splitlines() if line.strip()]
    assert len(lines) <= 15


def test_the_readme_is_short() -> None:
    assert len(README.splitlines()) <= 80


@pytest.mark.parametrize("page", sorted(set(re.findall(r"\]\((?!http)([^)#]+)", README))))
def test_a_page_the_readme_links_is_there(page: str) -> None:
    assert (ROOT / page).exists()


def test_every_dependency_is_explained() -> None:
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [
        *project["dependencies"],
        *(each for extra in project["optional-dependencies"].values() for each in extra),
    ]
    names = [re.split(r"[<>=~!\[ ]", each)[0] for each in wanted]
    page = (DOCS / "reference" / "dependencies.md").read_text()
    assert [name for name in names if name not in page] == []
