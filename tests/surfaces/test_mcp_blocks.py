"""The profile `blocks`: core blocks read, appended to and replaced."""

from __future__ import annotations

import pytest
from mcp_made import call, opened, result_text, served

from keepward import Access, Actor, Memory, Policy, Tier

APPEND = Policy(access={**Policy().access, Tier.CORE: Access.APPEND})


@pytest.fixture
def owner(tmp_path):
    with opened(tmp_path) as memory:
        memory.remember("Ship the app before Easter", tier="core", key="mission")
        yield memory


@pytest.fixture
def server(agent):
    return served(agent, "blocks")


def text_of(owner, label="mission"):
    return {record.key: record.text for record in owner.list_memories(tiers=["core"])}.get(label)


def test_every_block_is_read_with_its_size_and_access(server):
    found = call(server, "read_blocks").structured_content["blocks"]
    assert [(each["label"], each["text"], each["access"]) for each in found] == [
        ("persona", "", "read_only"),
        ("human", "", "approval"),
        ("operating_rules", "", "approval"),
        ("mission", "Ship the app before Easter", "approval"),
        ("workspace_state", "", "approval"),
    ]


@pytest.mark.promise("F10")
def test_an_addition_waits_for_a_person(owner, server):
    result = call(server, "block_append", {"label": "mission", "text": "and tell nobody", "reason": "asked"})
    assert (result.structured_content["outcome"], text_of(owner)) == ("quarantined", "Ship the app before Easter")


def test_an_approved_addition_is_on_a_line_of_its_own(owner, server):
    held = call(server, "block_append", {"label": "mission", "text": "and tell nobody", "reason": "asked"})
    owner.approve(held.structured_content["proposal"])
    assert text_of(owner) == "Ship the app before Easter\nand tell nobody"


def test_under_an_access_of_append_an_addition_is_committed(tmp_path):
    with opened(tmp_path, APPEND) as owner:
        owner.remember("Ship the app", tier="core", key="mission")
        server = served(owner.as_actor(Actor.agent("claude")), "blocks")
        result = call(server, "block_append", {"label": "mission", "text": "and tell nobody", "reason": "asked"})
    assert result.structured_content["outcome"] == "committed"


def test_a_passage_is_replaced(owner, server):
    asked = {"label": "mission", "old": "Easter", "new": "summer", "reason": "moved"}
    owner.approve(call(server, "block_replace", asked).structured_content["proposal"])
    assert text_of(owner) == "Ship the app before summer"


@pytest.mark.parametrize("old", ["Christmas", "e", ""])
def test_passage_that_is_not_unique_is_an_error(server, old):
    result = call(server, "block_replace", {"label": "mission", "old": old, "new": "x", "reason": "r"})
    assert (result.is_error, "exactly once" in result_text(result)) == (True, True)


def test_an_empty_block_can_be_written(owner, server):
    asked = {"label": "operating_rules", "new": "Answer in French", "reason": "asked"}
    owner.approve(call(server, "block_replace", asked).structured_content["proposal"])
    assert text_of(owner, "operating_rules") == "Answer in French"


def test_a_passage_of_an_empty_block_is_an_error(server):
    result = call(server, "block_replace", {"label": "operating_rules", "old": "Answer", "new": "x"})
    assert (result.is_error, "this block is empty" in result_text(result)) == (True, True)


def test_a_block_that_policy_does_not_know_is_refused(server):
    result = call(server, "block_append", {"label": "diary", "text": "x y", "reason": "r"})
    assert result.structured_content["outcome"] == "refused"


def test_the_persona_is_refused(server):
    result = call(server, "block_append", {"label": "persona", "text": "You are free", "reason": "r"})
    assert result.structured_content["outcome"] == "refused"


def test_block_change_without_a_reason_names_the_operation(owner, server):
    result = call(server, "block_append", {"label": "mission", "text": "and rest well"})
    assert owner.proposal(result.structured_content["proposal"]).reason == "appended"


def test_a_block_that_changed_meanwhile_is_not_overwritten(owner, server, monkeypatch):
    real = Memory.revise

    def later(*given, **options):
        owner.remember("Ship two apps", key="mission", kind="state", tier="core")
        return real(*given, **options)

    monkeypatch.setattr(Memory, "revise", later)
    result = call(server, "block_replace", {"label": "mission", "new": "Rest", "reason": "r"})
    assert (result.is_error, text_of(owner)) == (True, "Ship two apps")
