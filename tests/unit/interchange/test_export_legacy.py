"""The live memories as lines of a legacy vault, and back."""

import io
import json

import pytest

from keepward import Actor
from keepward.errors import InvalidInput, Unauthorised
from keepward.interchange import load, write_legacy


@pytest.fixture
def filled(mem):
    mem.remember("Keep the museum open", stability="permanent", tags=["museum"])
    mem.remember("Atlas, then Borealis", kind="state", key="projects", scope="/agents/orion")
    mem.remember("Atlas, then Cassiopeia", kind="state", key="projects", scope="/agents/orion")
    mem.remember("I like tea", tier="episodic", kind="event", session="monday")
    mem.remember("Ana rows", scope="/users/ana")
    return mem


def test_live_memories_are_lines_of_the_old_form(filled, tmp_path):
    count, notes = write_legacy(filled, tmp_path / "vault.jsonl")
    lines = [json.loads(line) for line in (tmp_path / "vault.jsonl").read_text().splitlines()]
    assert [(each["scope"], each["tier"], each["topic_id"], each["version"], each["text"]) for each in lines] == [
        ("shared", "canon", None, 1, "Keep the museum open"),
        ("orion", "register", "projects", 2, "Atlas, then Cassiopeia"),
    ]
    assert (count, notes) == (
        2,
        [
            "left out: 1 events and working memory, which belong to its journal",
            "left out: 1 memories of scopes that are neither shared nor an agent's",
        ],
    )


def test_lines_of_the_old_form_come_back(filled, make_store, tmp_path):
    write_legacy(filled, tmp_path / "vault.jsonl")
    other = make_store("other")
    done = load(other, tmp_path / "vault.jsonl")
    (waiting,) = other.pending()
    other.approve(waiting.id)
    found = {(each.scope, each.key, each.text, each.pinned) for each in other.list_memories(within="/")}
    assert (done.format, done.failed, found) == (
        "legacy-jsonl",
        (),
        {("/", None, "Keep the museum open", True), ("/agents/orion", "projects", "Atlas, then Cassiopeia", False)},
    )


def test_an_old_id_stays(mem, put, tmp_path):
    load(mem, put("old.jsonl", [{"id": "0123456789ab", "text": "The archive moved", "tier": "register", "version": 3}]))
    write_legacy(mem, tmp_path / "new.jsonl")
    line = json.loads((tmp_path / "new.jsonl").read_text())
    assert (line["id"], line["text"]) == ("0123456789ab", "The archive moved")


def test_the_legacy_export_takes_the_owner_and_a_new_file(filled, put):
    with pytest.raises(Unauthorised):
        write_legacy(filled.as_actor(Actor.agent("lyra")), io.StringIO())
    vault = put("vault.jsonl", [{"id": "0123456789ab", "text": "The archive moved", "version": 1}])
    before = vault.read_bytes()
    with pytest.raises(InvalidInput, match="name a new file"):
        write_legacy(filled, vault)
    assert vault.read_bytes() == before
