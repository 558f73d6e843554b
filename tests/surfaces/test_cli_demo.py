"""The demo: what it promises to show is what really happened."""

from __future__ import annotations

import base64
import hashlib
import json
import shlex
from datetime import UTC, datetime

import pytest

from keepward import Actor, Memory
from keepward.cli.demo import play
from keepward.cli.demo_store import furnish


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo")
    handle = Memory.open(folder / "demo.db", actor=Actor.operator("ana"), embedder="hashed", config_dir=folder / "home")
    with handle as owner:
        return {scene.name: scene.data for scene in play(owner.acting_as(Actor.agent("assistant")), owner)}


def outcomes(step):
    return [each["outcome"] for each in step["writes"]]


def test_the_conversation_is_committed_whole(shown):
    assert {each["outcome"] for each in shown["conversation"]["turns"]} == {"committed"}


def test_facts_are_committed(shown):
    assert outcomes(shown["committed"]) == ["committed"] * 3


def test_no_fact_of_the_agents_is_found_fault_with(shown):
    assert [each["reasons"] for each in shown["committed"]["writes"]] == [[]] * 3


def test_an_exact_and_a_near_duplicate_are_merged(shown):
    assert outcomes(shown["merged"]) == ["duplicate"] * 2


def test_a_keyed_state_is_updated_in_place(shown):
    first, second = shown["updated"]["writes"]
    assert (first["id"], second["version"]) == (second["id"], 2)


def test_a_cloud_key_is_refused(shown):
    assert outcomes(shown["refused"]) == ["refused"]


def test_no_byte_of_the_key_is_in_any_file_or_in_the_output(run, tmp_path):
    said = run("demo", "--db", "demo.db", "--embedder", "hashed", "--json").out.encode()
    key = base64.b32encode(hashlib.sha256(b"a bakery has no cloud").digest())[:16]
    assert [key in data for data in (said, *(each.read_bytes() for each in tmp_path.glob("demo.db*")))].count(True) == 0


def test_an_agents_edit_of_the_mission_is_held(shown):
    assert outcomes(shown["held"]) == ["quarantined"]


def test_the_first_context_does_not_hold_the_edit(shown):
    assert shown["context"]["edit_is_in"] is False


def test_something_stays_out_of_the_context_with_a_reason(shown):
    assert {"sensitive", "budget"} <= {each["code"] for each in shown["context"]["excluded"]}


def test_the_agents_own_approval_is_refused(shown):
    assert shown["own_approval"]["refused"] is True


def test_the_approved_edit_is_in_the_context_and_gone_after_the_rollback(shown):
    told = [shown[f"context_after_{when}"]["edit_is_in"] for when in ("approval", "rollback")]
    assert told == [True, False]


def test_the_store_verifies_at_the_end(shown):
    assert shown["verified"]["ok"] is True


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


# --- the store of `serve --demo`

NOW = datetime(2026, 11, 22, 20, 0, tzinfo=UTC)


@pytest.fixture(scope="module")
def furnished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("furnished")
    given = {"actor": Actor.operator("ana"), "embedder": "hashed", "config_dir": folder / "home"}
    furnish(folder / "demo.db", given["actor"], embedder="hashed", config_dir=folder / "home", now=NOW)
    with Memory.open(folder / "demo.db", maintenance=False, **given) as owner:
        yield owner


@pytest.mark.slow
def test_what_waits_in_the_furnished_store_has_every_reason_to_be_held(furnished):
    held = {reason.code for item in furnished.pending() for reason in item.reasons}
    assert held >= {
        *("needs_approval", "lower_trust", "untrusted_origin", "permanence_needs_approval", "below_floor"),
        *("rule_without_evidence", "override_instructions", "invisible_text", "bidi_control", "similar"),
    }


@pytest.mark.slow
def test_the_furnished_store_verifies_and_holds_nothing_later_than_its_moment(furnished):
    assert (furnished.verify().ok, furnished.log(limit=1)[0].commit.at <= NOW) == (True, True)


@pytest.mark.slow
def test_a_learned_ranking_serves_in_the_furnished_store(furnished):
    assert furnished.status()["reranker"]["serving"] is True


@pytest.mark.slow
def test_a_page_of_the_web_reached_contexts_of_the_furnished_store(furnished):
    found = furnished.impact(source="https://nut-trade.example/krume")
    assert (len(found.direct), len(found.derived), len(found.contexts) >= 1) == (3, 1, True)


@pytest.mark.slow
def test_the_furnished_store_has_a_picture_a_sound_and_a_file(furnished):
    kept = furnished.find(content_types=["image", "audio", "file"], limit=None)
    assert sorted(each.content_type for each in kept) == ["audio", "file", "image"]


@pytest.mark.slow
def test_history_of_the_furnished_store_has_an_erasure_a_containment_and_a_rollback(furnished):
    assert {each.commit.kind for each in furnished.log(limit=500)} >= {"erase", "contain", "rollback", "approve"}
