"""The pytest plug-in runs each memory test of a file as a test, in a pytest of its own."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow

TESTS = """tests:
  - {name: target, objective: "Where do we deploy?", contains: db-7}
  - {name: target, objective: "Where do we deploy?", lacks: db-7}
"""


@pytest.fixture
def folder(tmp_path):
    code, out = run(
        tmp_path, "remember", "The deploy target is db-7", "--as", "operator", "--db", "m.db", of="keepward"
    )
    assert code == 0, out
    (tmp_path / "agent.memory.yaml").write_text(TESTS)
    return tmp_path


def run(folder, *args, of="pytest", **environ):
    args = ("-p", "no:cacheprovider", "-q", *args) if of == "pytest" else args
    done = subprocess.run(
        [sys.executable, "-m", of, *args],
        cwd=folder,
        env={"PATH": os.environ["PATH"], "HOME": str(folder), "KEEPWARD_EMBEDDER": "hashed", **environ},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("how", ["option", "setting", "variable"])
def test_each_test_of_a_file_is_a_test_of_pytest(folder, how):
    args, environ = [], {}
    if how == "option":
        args = ["--keepward-db", "m.db"]
    elif how == "setting":
        (folder / "pytest.ini").write_text("[pytest]\nkeepward_db = m.db\n")
    else:
        environ = {"KEEPWARD_DB": "m.db"}
    code, out = run(folder, *args, **environ)
    assert (code, "1 failed, 1 passed" in out) == (1, True), out
    assert "agent.memory.yaml::target (2)" in out
    assert "not allowed: db-7" in out
    assert "[fact] The deploy target is db-7" in out
    assert "Traceback" not in out


def test_one_test_is_run_by_its_name(folder):
    code, out = run(folder, "--keepward-db", "m.db", "agent.memory.yaml::target")
    assert (code, "1 passed" in out) == (0, True), out


def test_a_wrong_file_and_a_missing_store_are_clear_errors(folder):
    code, out = run(folder, "--keepward-db", "nowhere.db")
    assert (code, "Traceback" in out, "nowhere.db" in out) == (1, False, True), out
    (folder / "agent.memory.yaml").write_text("tests: [{objective: x}]")
    code, out = run(folder, "--keepward-db", "m.db")
    assert (code, "test 1 tests nothing" in out, "Traceback" in out) == (2, True, False), out
