"""Several processes write at once, and processes die while they write."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from keepward.machine.trust_store import TrustStore
from keepward.storage.store import open_store

SCRIPT = Path(__file__).with_name("writers.py")


def _start(folder, name, count):
    command = [sys.executable, str(SCRIPT), str(folder / "m.db"), str(folder / "config"), name, str(count)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def _run(folder, processes, count):
    running = [_start(folder, f"p{n}", count) for n in range(processes)]
    said = [each.communicate() for each in running]
    # Of so many some wait for longer than a second, and say so.
    assert [line for _, err in said for line in err.splitlines() if "another process is writing" not in line] == []
    return sorted(int(line) for out, _ in said for line in out.split())


@pytest.mark.parametrize(
    ("processes", "count"), [pytest.param(8, 200, marks=pytest.mark.slow), pytest.param(64, 20, marks=pytest.mark.slow)]
)
def test_many_processes_write_without_error_gap_or_fork(tmp_path, processes, count):
    assert _run(tmp_path, processes, count) == list(range(1, processes * count + 1))


def test_two_processes_that_begin_together_share_one_new_store(tmp_path):
    assert _run(tmp_path, 2, 3) == [1, 2, 3, 4, 5, 6]


@pytest.mark.slow
def test_what_many_processes_wrote_verifies(tmp_path):
    _run(tmp_path, 4, 50)
    with open_store(tmp_path / "m.db", anchor=TrustStore(tmp_path / "config")) as store:
        assert store.verify()[1] == []


def _killed(folder, after):
    """Kill a writer after it has acknowledged some commits; return how many."""
    process = _start(folder, "dies", 100_000)
    acknowledged = 0
    for _ in range(after):
        acknowledged = int(process.stdout.readline())
    process.kill()
    process.communicate()
    return acknowledged


def test_a_killed_writer_loses_nothing_it_was_reported_is_stored(tmp_path):
    acknowledged = _killed(tmp_path, 5)
    with open_store(tmp_path / "m.db", anchor=TrustStore(tmp_path / "config")) as store:
        assert store.head("ada").seq >= acknowledged


@pytest.mark.slow
@pytest.mark.parametrize("after", [1, 2, 3, 7, 20, 50])
def test_a_killed_writer_leaves_a_sound_store(tmp_path, after):
    _killed(tmp_path, after)
    with open_store(tmp_path / "m.db", anchor=TrustStore(tmp_path / "config")) as store:
        assert store.verify()[1] == []
