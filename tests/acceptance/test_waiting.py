"""What a person is told while a store cannot be written: another process writes, or the disk is full."""

from __future__ import annotations

import logging
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from outcomes import committed_record

from keepward import Memory
from keepward.storage import sqlite as connection

pytestmark = pytest.mark.slow

#: Lets no file of this process grow beyond a kilobyte, which to SQLite is a disk without room.
FULL_DISK = """
import resource, sys
from keepward.cli.main import main
resource.setrlimit(resource.RLIMIT_FSIZE, (1024, 1024))
sys.exit(main(sys.argv[1:]))
"""


def begun(folder: Path, *arguments: str, script: str | None = None) -> subprocess.Popen[str]:
    names = {**os.environ, "KEEPWARD_HOME": str(folder / "home"), "KEEPWARD_DB": str(folder / "store.db")}
    names["KEEPWARD_EMBEDDER"] = "none"
    command = [sys.executable, *(["-m", "keepward"] if script is None else ["-c", script]), *arguments]
    return subprocess.Popen(
        command, env=names, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, bufsize=1
    )


def shell(folder: Path, *arguments: str, script: str | None = None) -> subprocess.CompletedProcess[str]:
    with begun(folder, *arguments, script=script) as process:
        out, err = process.communicate(timeout=120)
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def test_waiting_for_another_process_is_reported_once(
    owner: Memory, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(connection, "REPORT_AFTER_S", 0.05)
    with closing(sqlite3.connect(owner.path, isolation_level=None, check_same_thread=False)) as other:
        other.execute("BEGIN IMMEDIATE")
        release = logging.Handler(logging.WARNING)
        release.emit = lambda _: other.execute("ROLLBACK")  # type: ignore[assignment, method-assign]
        connection._log.addHandler(release)
        try:
            committed_record(owner.remember("The ferry leaves at six"))
        finally:
            connection._log.removeHandler(release)
    said = [each.getMessage() for each in caplog.records if each.levelno == logging.WARNING]
    assert said == ["another process is writing to the store; waiting for it, 30 seconds at most"]


def test_a_command_that_waits_says_so_on_stderr(tmp_path: Path) -> None:
    shell(tmp_path, "remember", "The ferry leaves at six")
    with closing(sqlite3.connect(tmp_path / "store.db", isolation_level=None, check_same_thread=False)) as other:
        other.execute("BEGIN IMMEDIATE")
        with begun(tmp_path, "remember", "Tea is served at nine") as waiting:
            told = waiting.stderr.readline() if waiting.stderr else ""
            other.execute("ROLLBACK")
            rest = waiting.communicate(timeout=60)[1]
    assert (waiting.returncode, (told + rest).count("another process is writing")) == (0, 1)


def test_command_on_a_full_disk_says_that_it_is_full(tmp_path: Path) -> None:
    shell(tmp_path, "remember", "The ferry leaves at six")
    for command in (("recall", "ferry"), ("remember", "Tea is served at nine")):
        done = shell(tmp_path, *command, script=FULL_DISK)
        assert (done.returncode, "the disk is full; free some space" in done.stderr) == (8, True)
    # With room again everything goes on.
    assert "ferry" in shell(tmp_path, "recall", "ferry").stdout
    assert shell(tmp_path, "remember", "Tea is served at nine").returncode == 0
    assert shell(tmp_path, "verify").returncode == 0


def test_an_open_store_is_read_on_a_full_disk(tmp_path: Path) -> None:
    script = """
import resource
from keepward import Memory
from keepward.errors import StoreUnavailable
with Memory.open("store.db", embedder=None) as memory:
    memory.remember("The ferry leaves at six")
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    resource.setrlimit(resource.RLIMIT_FSIZE, (1024, hard))
    assert memory.recall("ferry").hits
    try:
        memory.remember("Tea is served at nine")
    except StoreUnavailable as fault:
        print(fault)
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    print(type(memory.remember("Tea is served at nine")).__name__)
"""
    done = shell(tmp_path, script=script)
    assert "disk" in done.stdout.splitlines()[0]
    assert done.stdout.splitlines()[1:] == ["Committed"]
