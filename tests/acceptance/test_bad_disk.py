"""A disk that fails below SQLite, at every call in turn: nothing acknowledged is lost, it is told, and it goes on.

``bad_disk.c`` is built here and loaded in front of the C library; where that cannot be done the tests are skipped.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
pytestmark = pytest.mark.slow


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The failing disk, built."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None or not sys.platform.startswith("linux"):
        pytest.skip("it takes Linux and a C compiler to make a disk fail below SQLite")
    built = tmp_path_factory.mktemp("disk") / "bad_disk.so"
    done = subprocess.run(
        [compiler, "-shared", "-fPIC", "-O1", "-o", built, HERE / "bad_disk.c", "-ldl"],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        pytest.skip(f"the compiler cannot build a library here: {done.stderr.strip()[:200]}")
    return built


@pytest.fixture(scope="session")
def played(library: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Plays a phase on a kind of failure once; returns one result a failed call."""
    known: dict[tuple[str, str], list[dict[str, Any]]] = {}

    def play(phase: str, kind: str) -> list[dict[str, Any]]:
        if (phase, kind) not in known:
            folder = tmp_path_factory.mktemp("failing")
            done = subprocess.run(
                [sys.executable, HERE / "bad_disk.py", folder / "here", phase, kind],
                cwd=ROOT,
                env={**os.environ, "LD_PRELOAD": str(library)},
                capture_output=True,
                text=True,
                check=False,
            )
            assert done.returncode == 0, done.stderr
            results = [json.loads(line) for line in done.stdout.splitlines()]
            # Below a Python that brings its own SQLite nothing passes by the library, and nothing would be shown.
            assert results[-1]["calls"] > 10
            known[phase, kind] = results[:-1]
        return known[phase, kind]

    return play


PLAYS = [(phase, kind) for phase in ("open", "write", "close") for kind in ("error", "full", "short")]


@pytest.mark.promise("T8")
@pytest.mark.parametrize(("phase", "kind"), PLAYS)
def test_whichever_call_of_the_disk_fails_nothing_acknowledged_is_lost(played: Any, phase: str, kind: str) -> None:
    assert [each for each in played(phase, kind) if each["lost"]] == []


@pytest.mark.promise("T8")
@pytest.mark.parametrize(("phase", "kind"), PLAYS)
def test_store_verifies_and_continues_after_any_failed_disk_call(played: Any, phase: str, kind: str) -> None:
    assert [each for each in played(phase, kind) if not each["ok"] or each["after"] != "committed"] == []


@pytest.mark.parametrize("kind", ["error", "full", "short"])
def test_write_that_reported_failure_is_not_stored(played: Any, kind: str) -> None:
    assert [each for each in played("write", kind) if each["more"]] == []


@pytest.mark.parametrize("kind", ["error", "full", "short"])
def test_one_failed_disk_call_fails_only_one_write(played: Any, kind: str) -> None:
    assert {(each["told"], len(each["faults"])) for each in played("write", kind)} == {(3, 1)}


@pytest.mark.parametrize("phase", ["open", "write"])
@pytest.mark.parametrize("kind", ["error", "full", "short"])
def test_what_is_reported_is_that_it_was_the_disk(played: Any, phase: str, kind: str) -> None:
    told = {fault for each in played(phase, kind) for fault in each["faults"]}
    words = ("disk", "No space left on device", "Input/output error")
    assert told
    assert {fault for fault in told if not any(word in fault for word in words)} == set()


@pytest.mark.parametrize("kind", ["error", "full", "short"])
def test_failed_creation_of_a_store_does_not_block_the_next(played: Any, kind: str) -> None:
    assert {each["told"] for each in played("open", kind)} == {3}


def cut(library: Path, folder: Path, synchronous: str) -> dict[str, int]:
    done = subprocess.run(
        [sys.executable, HERE / "bad_disk.py", folder / "here", "power-cut", synchronous, "25"],
        cwd=ROOT,
        env={**os.environ, "LD_PRELOAD": str(library)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    told: dict[str, int] = json.loads(done.stdout)
    return told


@pytest.mark.promise("T8")
def test_a_power_cut_after_any_write_loses_nothing_acknowledged(library: Path, tmp_path: Path) -> None:
    assert cut(library, tmp_path, "FULL") == {"writes": 25, "lost": 0, "faults": 0}


def test_without_flushing_each_commit_the_same_power_cut_loses_some(library: Path, tmp_path: Path) -> None:
    # What the test before shows is worth only as much as this one.
    assert cut(library, tmp_path, "NORMAL")["lost"] > 0
