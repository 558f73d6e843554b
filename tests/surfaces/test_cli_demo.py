"""The demo: what it promises to show is what really happened."""

from __future__ import annotations

import base64
import hashlib
import json
import shlex

import pytest

from keepward import Actor, Memory
from keepward.cli.demo import play


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo")
    handle = Memory.open(folder / "demo.db", actor=Actor.operator("ana"), embedder="hashed", config_dir=folder / "home")
    with handle as owner:
        return {scene.name: scene.data for scene in play(owner)}


def outcomes(step):
    return [each["outcome"] for each in step["writes"]]


@pytest.mark.parametrize(
    ("step", "outcome"),
    [
        ("facts", "committed"),
        ("states", "committed"),
        ("refused", "refused"),
        ("quarantined", "quarantined"),
        ("waiting", "quarantined"),
    ],
)
def test_each_step_ends_as_it_should(shown, step, outcome):
    assert set(outcomes(shown[step])) == {outcome}


def test_an_exact_and_a_near_duplicate_are_merged(shown):
    assert outcomes(shown["duplicates"]) == ["committed", "duplicate"] * 2


def test_no_key_byte_is_in_any_file_or_output(run, tmp_path):
    said = run("demo", "--db", "demo.db", "--embedder", "hashed", "--json").out.encode()
    key = base64.b32encode(hashlib.sha256(b"a bakery has no cloud").digest())[:16]
    assert [key in data for data in (said, *(each.read_bytes() for each in tmp_path.glob("demo.db*")))].count(True) == 0


def test_something_stays_out_of_the_context_with_a_reason(shown):
    assert {"sensitive", "budget"} <= {each["reason"]["code"] for each in shown["context"]["excluded"]}


def test_the_agents_own_approval_is_refused(shown):
    assert shown["own_approval"]["refused"] is True


def test_approved_edit_is_in_the_context_until_its_rollback(shown):
    told = [shown[f"context_after_{when}"]["edit_is_in"] for when in ("approval", "rollback")]
    assert told == [True, False]


def test_it_fits_80_columns_without_colour(run):
    told = run("demo", "--db", "demo.db", "--embedder", "hashed").out
    play = told.partition("Next, try")[0]
    assert [line for line in play.splitlines() if len(line) > 80 or "\x1b" in line] == []


def test_it_ends_with_commands_that_work(run):
    last = run("demo", "--db", "demo.db", "--embedder", "hashed", "--json").json["next"]
    assert [run(*shlex.split(line)[1:]).code for line in last] == [0, 0, 0]


def test_it_plays_into_a_new_store_alone(run, saved):
    assert run("demo", "--db", "keepward.db").code == 2


def test_it_leaves_the_store_of_the_environment_alone(run, tmp_path, monkeypatch):
    monkeypatch.setenv("KEEPWARD_DB", str(tmp_path / "mine.db"))
    made = run("demo", "--json", "--embedder", "hashed")
    assert (json.loads(made.out)["path"] != str(tmp_path / "mine.db"), (tmp_path / "mine.db").exists()) == (True, False)
