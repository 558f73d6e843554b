"""The commands that propose: what they store, what they say, how they exit."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest


def test_remember_makes_a_missing_store_and_says_so_on_stderr(run):
    assert f"made a new store at {Path.cwd() / 'keepward.db'}" in run("remember", "Ana prefers tabs", "--json").err


def test_remember_reads_the_text_from_stdin(run):
    run("remember", "-", "--as", "operator", stdin="tea, never\r\ncoffee ☕\r\n".encode())
    assert run("list", "--json").json["items"][0]["text"] == "tea, never\ncoffee ☕"


def test_stdin_that_is_not_utf8_is_a_usage_error(run):
    assert run("remember", "-", stdin=b"\xff\xfe").code == 2


def test_every_field_that_remember_takes_is_stored(run):
    options = {"kind": "fact", "key": "indent", "subject": "ana", "category": "style", "session": "s1"}
    options |= {"confidence": 0.9, "importance": 0.8, "access": "read_only"}
    flat = [part for name, value in options.items() for part in (f"--{name}", str(value))]
    made = run("remember", "tabs", "--tier", "archival", "--as", "operator", "--json", *flat).json
    stored = run("get", made["id"], "--json").json
    assert {name: stored[name] for name in options} == options


def test_a_quarantined_write_says_how_to_approve_it(run, held):
    assert held["next"] == f"pending review: approve it with `keepward approve {held['item']['id']}`"


def test_a_refused_write_exits_5_and_says_why(run):
    ran = run("remember", "a memory", "--confidence", "1.5", "--json")
    assert (ran.code, ran.json["outcome"], ran.json["reasons"][0]["gate"]) == (5, "refused", "shape")


@pytest.mark.parametrize(
    ("option", "word", "meant"),
    [("--tier", "archivall", "archival"), ("--kind", "rul", "rule"), ("--source", "user_mesage", "user_message")],
)
def test_unknown_name_is_answered_with_a_suggestion(run, option, word, meant):
    ran = run("remember", "a memory", option, word)
    assert (ran.code, f"did you mean {meant}?" in ran.err) == (2, True)


def test_long_text_is_refused_with_the_command_that_stores_it(run):
    long = "The crane at pier nine lifts forty tonnes. " * 60
    told = run("remember", "-", "--json", stdin=long.encode())
    assert (told.code, told.json["next"] in told.err) == (5, True)
    assert "`keepward import --from markdown FILE`" in told.json["next"]
    assert run("import", "--from", "markdown", "-", stdin=long.encode()).code == 0


def test_refused_write_says_that_nothing_was_stored(run):
    assert "nothing was stored" in run("remember", "").err


def test_a_secret_is_refused_and_never_printed(run):
    key = "AK" + "IA" + "QWERTYUIOPASDFGH"
    ran = run("remember", f"the key is {key}", "--json")
    assert (ran.code, key in ran.out + ran.err) == (5, False)


def test_metadata_that_is_no_object_is_a_usage_error(run, saved):
    assert run("revise", saved["id"], "--metadata", "[1]", "--reason", "x").code == 2


def test_the_key_of_what_was_forgotten_leads_to_its_id(run):
    made = run("remember", "Ana lives in Leeds", "--key", "home", "--kind", "state", "--json").json
    run("forget", "home", "--reason", "moved")
    ran = run("restore", "home", "--reason", "back again")
    assert (ran.code, f"retired: name it by its id, {made['id']}" in ran.err) == (3, True)


@pytest.mark.parametrize("command", ["archive", "forget", "restore", "revise"])
def test_an_unknown_id_exits_3(run, saved, command):
    more: list[Any] = ["text"] if command == "revise" else []
    assert run(command, "nobody", *more, "--reason", "x").code == 3


def test_forgetting_needs_no_reason(run, saved):
    done = run("forget", saved["id"], "--as", "operator", "--json").json
    assert run("show", done["commit"]["id"], "--json").json["details"]["reason"] == "forgotten"


def test_a_memory_loses_its_key_at_the_terminal(run):
    kept = run("remember", "The office is in Porto", "--key", "office", "--as", "operator", "--json").json["id"]
    run("move", kept, "--no-key", "--reason", "it is over", "--as", "operator")
    assert run("get", kept, "--json").json["key"] is None


@pytest.mark.parametrize("asked", [[], ["--to", "../up"]])
def test_a_move_that_says_no_target_is_a_usage_error(run, saved, asked):
    assert run("move", saved["id"], *asked, "--reason", "x").code == 2


def test_a_block_is_written_with_its_access(run):
    run("block", "mission", "Ship by June", "--as", "operator")
    run("block", "mission", "--access", "read_only", "--as", "operator")
    [shown] = run("block", "mission", "--json").json["blocks"]
    assert (shown["text"], shown["access"], shown["version"]) == ("Ship by June", "read_only", 2)
    assert run("block", "mission", "Ship by July").code == 5


@pytest.mark.parametrize("asked", [("mission", "--access", "append"), ("--access", "append")])
def test_access_needs_a_block_that_has_a_text(run, asked):
    run("init")
    assert run("block", *asked).code == 2


@pytest.mark.parametrize("more", [[], ["{id}"]])
def test_a_merge_takes_two_memories(run, saved, more):
    ran = run("merge", saved["id"], *(each.format(**saved) for each in more), "--reason", "x")
    assert (ran.code, "two memories" in ran.err) == (2, True)


def test_a_merge_of_an_id_and_its_key_is_a_merge_of_one(run):
    made = run("remember", "tabs", "--key", "indent", "--as", "operator", "--json").json
    ran = run("merge", made["id"], "indent", "--reason", "x", "--as", "operator")
    assert (ran.code, "name one memory" in ran.err) == (2, True)


def test_revise_that_changes_nothing_says_so(run, saved):
    told = run("revise", saved["id"], "--tag", "style", "--reason", "again", "--as", "operator")
    assert (told.code, told.out.split()[:2], "nothing was changed" in told.err) == (0, ["outcome", "unchanged"], True)
    assert "committed" not in told.out


def test_forget_matching_lists_with_scores_and_changes_nothing(run, saved):
    plan = run("forget", "--matching", "tabs", "--json")
    assert [(each["id"], 0 < each["score"] <= 1) for each in plan.json["matches"]] == [(saved["id"], True)]
    assert (plan.json["outcome"], "--yes" in plan.err) == (None, True)
    assert run("get", saved["id"], "--json").json["status"] == "active"


@pytest.mark.parametrize(("typed", "status"), [("y", "retired"), ("n", "active")])
def test_forget_matching_asks_at_a_terminal(run, saved, typed, status):
    theirs, ours = pty.openpty()
    os.write(theirs, f"{typed}\n".encode())
    command = [sys.executable, "-m", "keepward", "forget", "--matching", "tabs", "--as", "operator"]
    done = subprocess.run(command, stdin=ours, stdout=ours, stderr=ours, timeout=60, check=False)
    os.close(ours)
    told = os.read(theirs, 65_536).decode()
    os.close(theirs)
    assert (done.returncode, "Forget 1 memory? [y/N]" in told) == (0, True)
    assert run("get", saved["id"], "--json").json["status"] == status


def test_forget_matching_with_yes_names_the_rollback(run, saved):
    done = run("forget", "--matching", "tabs", "--yes", "--as", "operator")
    assert (done.code, "1 memory, in one commit" in done.err) == (0, True)
    undo = done.err.split("`keepward ")[1].split("`")[0]
    run(*undo.split(), "--as", "operator")
    assert run("get", saved["id"], "--json").json["status"] == "active"


def test_forget_matching_of_core_memory_waits_for_a_person(run, saved):
    run("remember", "Ship the ordering app", "--tier", "core", "--key", "mission", "--as", "operator")
    assert run("forget", "--matching", "ordering app", "--yes").code == 6


@pytest.mark.parametrize("wrong", [(), ("ID", "--yes"), ("--matching", " ")])
def test_forget_takes_an_id_or_words(run, saved, wrong):
    assert run("forget", *wrong).code == 2
