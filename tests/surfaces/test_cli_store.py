"""The commands on the store itself."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

import pytest

from support import tamper


def test_init_makes_a_store_once(run):
    assert [run("init", "--json").json["created"] for _ in range(2)] == [True, False]


def test_verify_exits_1_and_names_the_first_faulty_row(run, saved):
    tamper.delete(Path("keepward.db"), "records")
    ran = run("verify", "--json")
    assert (ran.code, bool(ran.json["first_fault"]["row"])) == (1, True)


def test_doctor_finds_only_a_missing_model_in_a_fresh_store(run, saved):
    run("reindex", "--embedder", "hashed")
    checks = run("doctor", "--embedder", "hashed", "--json").json["checks"]
    assert {each["name"] for each in checks if not each["ok"]} <= {"embedder"}


def test_doctor_finds_a_key_folder_that_refuses_new_heads(run, saved, tmp_path):
    [heads] = tmp_path.glob("home/stores/*/heads")
    shutil.rmtree(heads)
    heads.write_text("in the way")
    [fault] = [
        each for each in run("doctor", "--embedder", "hashed", "--json").json["checks"] if each["name"] == "seal"
    ]
    assert (fault["ok"], "takes no new heads" in fault["detail"], "write" in fault["remedy"]) == (False, True, True)


def test_store_without_a_key_location_remembers_nothing(run, tmp_path):
    (tmp_path / "home").write_text("in the way")
    ran = run("remember", "Ana prefers tabs")
    assert (ran.code, ran.out, "set KEEPWARD_HOME" in ran.err) == (8, "", True)


def test_version_is_the_packages_own(run):
    assert run("version", "--json").json["version"] == run("--version").out.split()[1]


@pytest.mark.parametrize("content", [b"not a store at all", b"SQLite format 3\0" + bytes(2000)])
def test_non_store_file_exits_8_and_stays_unchanged(run, tmp_path, content):
    other = tmp_path / "other.db"
    other.write_bytes(content)
    ran = run("status", "--db", str(other), "--json")
    assert (ran.code, "error" in ran.json, other.read_bytes()) == (8, True, content)


def test_a_store_of_a_newer_keepward_exits_8(run, saved):
    with sqlite3.connect("keepward.db") as base:
        base.execute("PRAGMA user_version = 99")
    base.close()
    ran = run("recall", "tabs", "--json")
    assert (ran.code, ran.json["error"]["code"]) == (8, "newer_schema")


def test_status_repeats_what_is_noted_of_the_store(run, saved, monkeypatch):
    from keepward.memory import Memory

    real = Memory.status
    monkeypatch.setattr(Memory, "status", lambda self: {**real(self), "notes": ["it was adopted from elsewhere"]})
    assert "it was adopted from elsewhere" in run("status").out


def test_status_at_the_terminal_says_what_waits(run, held):
    assert "1 pending proposal" in run("status").out


def test_status_and_doctor_at_the_terminal_say_when_the_store_was_verified_and_copied(run, saved):
    assert "never: `keepward verify`" in run("status").out
    run("verify")
    run("backup", "copy.db")
    shown = run("status").out
    assert "no faults" in shown
    assert str(Path("copy.db").absolute()) in "".join(shown.split())
    tamper.edit(Path("keepward.db"), "commits", "kind = 'approve'")
    run("verify")
    assert "DAMAGED" in run("status").out
    assert "FAULT   verification" in run("doctor").out
