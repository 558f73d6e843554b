"""Coming from another memory: every command of the page runs, and a year comes in, is seen, approved, undone and erased."""

from __future__ import annotations

import ast
import inspect
import json
import os
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from keepward import Memory
from keepward.cli.main import main
from support import foreign

ROOT = Path(__file__).parents[2]
HOWTO = ROOT / "docs" / "howto"
#: The pages on imports, the general one first.
PAGE = "".join(page.read_text() for page in sorted(HOWTO.glob("import*.md"), key=lambda page: page.stem))


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Any]:
    for name in [name for name in os.environ if name.startswith("KEEPWARD_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("KEEPWARD_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("KEEPWARD_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("KEEPWARD_EMBEDDER", "none")
    monkeypatch.chdir(tmp_path)

    def call(*arguments: str) -> dict[str, Any]:
        code = main([*arguments, "--json"])
        printed = capsys.readouterr()
        assert code in {0, 6}, printed.err
        answer: dict[str, Any] = json.loads(printed.out)
        return answer

    return call


@pytest.mark.slow
def test_every_command_of_the_page_does_what_it_says(run: Callable[..., Any], tmp_path: Path) -> None:
    foreign.written(tmp_path)
    (tmp_path / "notes.csv").write_text("text,tags\nThe ferry leaves at six,harbour\n")
    (tmp_path / "notes.txt").write_text("The ferry is blue\nThe pier is closed\n")
    commands = re.findall(r"^\$ keepward (.*)$", PAGE, re.MULTILINE)
    assert len(commands) >= 15
    for command in commands:
        done = run(*shlex.split(command))
        if command.startswith("import"):
            assert (done["failed"], done["refused"], done["total"] > 0) == ([], 0, True)


def test_attest_command_raises_trust_of_an_imported_memory(run: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text("# Notes\n\n- Ana drinks tea\n")
    run("import", "notes.md")
    memory = run("list")["memories"][0]
    found = re.search(r"`keepward (revise ID [^`]*)`", PAGE)
    assert found is not None
    done = run(*(memory["id"] if word == "ID" else word for word in shlex.split(found[1])))
    after = run("get", memory["id"])
    assert (memory["trust"], done["outcome"], after["trust"], after["source"], after["text"]) == (
        "import",
        "committed",
        "owner",
        "operator",
        memory["text"],
    )


def test_each_call_of_the_word_list_exists() -> None:
    page = (ROOT / "docs" / "reference" / "coming-from.md").read_text()
    calls = [call for code in re.findall(r"`(mem\.[^`]*)`", page) for call in called(code)]
    assert len(calls) > 60
    assert [
        (name, extra) for name, extra in calls if extra - set(inspect.signature(getattr(Memory, name)).parameters)
    ] == []


def called(code: str) -> list[tuple[str, set[str]]]:
    """Return each method that code calls, with the names of its arguments."""
    found = [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Call)]
    return [
        (call.func.attr, {str(each.arg) for each in call.keywords})
        for call in found
        if isinstance(call.func, ast.Attribute)
    ]


def test_every_format_is_on_the_reference_page() -> None:
    from keepward.interchange import FORMATS

    page = (ROOT / "docs" / "reference" / "formats.md").read_text()
    assert [name for name in FORMATS if f"`{name}`" not in page and name != "auto"] == []


@pytest.mark.slow
def test_year_of_history_is_imported_approved_undone_and_erased(
    run: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Summaries that jobs write meanwhile would change the plan that was shown.
    monkeypatch.setenv("KEEPWARD_MAINTENANCE", "off")
    foreign.zipped(tmp_path / "year.zip", {"conversations.json": foreign.chatgpt_year(120, 20)})
    source = ("--source", "import:year.zip")

    def live() -> int:
        return int(run("status")["by_status"].get("active", 0))

    came = run("import", "year.zip", "--facts", "--subject", "Ana")
    assert (came["committed"], came["quarantined"], came["refused"], came["failed"]) == (2402, 2, 0, [])
    assert came["reference"] == source[1]
    seen = run("impact", *source)
    assert (len(seen["direct"]), len(seen["waiting"])) == (2402, 2)
    run("approve", run("pending")["proposals"][0]["id"])
    assert live() == 2403
    digest = run("contain", *source)["digest"]
    contained = run("contain", *source, "--apply", digest)
    assert live() == 0
    run("rollback", contained["commit"] if isinstance(contained["commit"], str) else contained["commit"]["id"])
    assert live() == 2403
    digest = run("erase", *source)["plan"]["digest"]
    run("erase", *source, "--apply", digest)
    assert (live(), run("pending")["proposals"], run("verify")["ok"]) == (0, [], True)
    assert b"stands beside the" not in b"".join(
        path.read_bytes() for path in (tmp_path / "data").rglob("*") if path.is_file()
    )
