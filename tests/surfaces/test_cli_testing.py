"""``keepward test`` and ``keepward bisect --test``: files of memory tests, and their reports."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

YAML = """# what the agent must know
tests:
  - name: the deploy target
    objective: Where do we deploy?
    contains: db-7
  - name: "no, never: 50%"
    objective: Where do we deploy?
    lacks: [db-7, "\\u0007"]
"""
TOML = """[[tests]]
objective = "Where do we deploy?"
contains = ["db-7"]
"""


@pytest.fixture
def file(run, tmp_path):
    run("remember", "The deploy target is db-7", "--as", "operator")
    path = tmp_path / "agent.memory.yaml"
    path.write_text(YAML)
    return str(path)


def test_a_failed_test_exits_1_and_shows_its_context(run, file):
    done = run("test", file)
    assert done.code == 1
    assert "passed  the deploy target" in done.out
    assert "not allowed: db-7" in done.out
    assert "[fact] The deploy target is db-7" in done.out
    assert "1 passed, 1 failed at commit 1." in done.out


def test_tests_that_pass_exit_0(run, file, tmp_path):
    (tmp_path / "agent.memory.toml").write_text(TOML)
    done = run("test", str(tmp_path / "agent.memory.toml"), file, "--only", "DEPLOY", "--json")
    assert (done.code, done.json["passed"], done.json["failed"]) == (0, 2, 0)
    assert [(each["file"], [item["line"] for item in each["items"]]) for each in done.json["files"]] == [
        (str(tmp_path / "agent.memory.toml"), [1]),
        (file, [3]),
    ]


def test_a_past_state_can_be_tested(run, file):
    run("remember", "The deploy target is db-9 now", "--as", "operator")
    (saved,) = [item for item in run("list", "--json").json["items"] if "db-7" in item["text"]]
    run("forget", saved["id"], "--reason", "old", "--as", "operator")
    assert run("test", file, "--only", "target").code == 1
    assert run("test", file, "--only", "target", "--at", "1").code == 0


def test_a_report_for_ci_systems_names_each_test(run, file, tmp_path):
    report = tmp_path / "results.xml"
    run("test", file, "--junit-xml", str(report))
    suite = ElementTree.parse(report).getroot().find("testsuite")
    assert (suite.get("tests"), suite.get("failures")) == ("2", "1")
    cases = suite.findall("testcase")
    assert [(each.get("name"), each.get("line"), each.find("failure") is None) for each in cases] == [
        ("the deploy target", "3", True),
        ("no, never: 50%", "6", False),
    ]
    assert "db-7" in cases[1].find("failure").text


def test_a_report_that_cannot_be_written_is_a_clear_error(run, file, tmp_path):
    done = run("test", file, "--junit-xml", str(tmp_path))
    assert (done.code, "cannot be written" in done.err) == (2, True)


def test_github_shows_a_failed_test_at_its_line(run, file, monkeypatch):
    assert "::error" not in run("test", file).err
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    done = run("test", file, "--json")
    assert done.json["failed"] == 1
    place = file.replace(":", "%3A").replace(",", "%2C")
    assert f"::error file={place},line=6,title=no%2C never%3A 50%25::not allowed: db-7\n" in done.err


@pytest.mark.parametrize(("name", "content", "says"), [
    ("a.yaml", "tests: [", "is not YAML, line 1"),
    ("a.yaml", "tests: []", "no list `tests`"),
    ("a.yaml", "- x", "no list `tests`"),
    ("a.yaml", "", "no list `tests`"),
    ("a.yaml", "tests: [{objective: x, contains: 2026-01-01}]", "test 1: contains is a text"),
    ("a.yaml", "tests: [{objective: x, contains: y}]\nuser: ana", "no field `user`"),
    ("a.yaml", "tests: !!python/object:os.system {}", "is not YAML"),
    ("a.yaml", "tests: " + "[" * 9999, "is not YAML"),
    ("a.toml", "tests = 1", "no list `tests`"),
    ("a.toml", "[[tests]", "is not TOML"),
    ("a.yaml", "\udcff", "is not UTF-8"),
    ("a.yaml", "#" * 1_000_001, "more than 1,000,000 bytes"),
])  # fmt: skip
def test_a_wrong_file_is_a_clear_error(run, file, tmp_path, name, content, says):
    path = tmp_path / name
    path.write_bytes(content.encode("utf-8", "surrogateescape"))
    done = run("test", str(path))
    assert (done.code, says in done.err, "Traceback" in done.err) == (2, True, False)


def test_a_missing_file_and_a_name_that_fits_nothing_are_clear_errors(run, file):
    assert "cannot be read" in run("test", "nowhere.yaml").err
    done = run("test", file, "--only", "zeppelin")
    assert (done.code, "the deploy target" in done.err) == (2, True)


def test_bisect_takes_a_test_of_a_file(run, file):
    for number in range(6):
        run("remember", f"Station {number} sells maps of valley {number}", "--as", "operator")
    (saved,) = [item for item in run("list", "--json").json["items"] if "db-7" in item["text"]]
    gone = run("forget", saved["id"], "--reason", "old", "--as", "operator", "--json").json
    found = run("bisect", "--test", file, "--only", "target", "--json")
    assert (found.code, found.json["commit"]["commit"]["id"]) == (0, gone["commit"]["id"])
    assert found.json["next"][0] == f"keepward rollback {gone['commit']['id']}"


def test_bisect_needs_one_test_that_fails(run, file):
    assert "every test passes" in run("bisect", "--test", file, "--only", "target").err
    run("forget", run("list", "--json").json["items"][0]["id"], "--reason", "old", "--as", "operator")
    run("remember", "Nobody: db-7 deploy", "--as", "operator")
    path = Path(file).with_name("both.memory.yaml")
    path.write_text("tests:\n- {objective: a, contains: zeppelin}\n- {objective: c, contains: zeppelin}\n")
    assert "name one with --only: a, c" in run("bisect", "--test", str(path)).err


def test_status_shows_the_newest_run(run, file):
    run("test", file, "--only", "target")
    shown = run("status", "--json").json["memory_tests"]
    assert (shown["passed"], shown["failed"], shown["label"].endswith("only target")) == (1, 0, True)
