"""Core memory: blocks, the identity, and who may change them (promises C3-C14, C93 in part)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from outcomes import held, kept, refused

from keepward import ContextTooSmall, InvalidInput, Memory, Policy

BLOCKS = ("human", "operating_rules", "mission", "workspace_state")


class Words:
    """Counts words, so that budgets can be reckoned in the head."""

    name = "words"

    def count(self, text: str) -> int:
        return len(text.split())


def fields_of(block: str) -> dict[str, Any]:
    """Return what the owner has to give for a block to be taken."""
    return {"key": block, "tier": "core", "evidence": ["chat:1"]}


@pytest.mark.promise("C3")
def test_each_tier_has_a_policy_of_its_own(mem: Memory) -> None:
    held(mem.remember("Sail to Oslo", **fields_of("mission")))
    working = kept(mem.remember("ask for the tide table", tier="working"))
    assert working.expires_at is not None
    kept(mem.revise(working.id, "ask for the tide table twice", reason="sure"))
    event = kept(mem.remember("Ana waved", tier="episodic"))
    refused(mem.revise(event.id, "Ana frowned", reason="looked again"))
    fact = kept(mem.remember("The tide turns at six", tier="archival"))
    assert fact.expires_at is None
    kept(mem.revise(fact.id, "The tide turns at seven", reason="measured"))


@pytest.mark.promise("C4", "C8", "C9", "C10", "D6", "D21")
@pytest.mark.parametrize("block", BLOCKS)
def test_block_is_read_back_and_in_every_prompt(owner: Memory, block: str) -> None:
    kept(owner.remember(f"The {block} text", **fields_of(block)))
    assert [each.text for each in owner.list_memories(key=block)] == [f"The {block} text"]
    for objective in ("", "zebra crossings in Peru", block):
        for handle in (owner, owner.at(scope="/agents/orion/tasks/42")):
            assert f"## {block}\n\nThe {block} text" in handle.context(objective).text


@pytest.mark.promise("C5", "C74")
def test_blocks_have_their_fixed_order_in_any_write_order(
    opened: Callable[..., Memory], owner: Memory, tmp_path: Path
) -> None:
    (tmp_path / "identity.md").write_text("I am Orion.")
    with opened("own", identity=tmp_path / "identity.md", actor=owner.actor) as memory:
        for block in reversed(BLOCKS):
            kept(memory.remember(f"The {block} text", **fields_of(block)))
        headings = [line[3:] for line in memory.context("").text.splitlines() if line.startswith("## ")]
    assert headings == ["persona", *BLOCKS]


@pytest.mark.promise("C6", "C73")
def test_the_persona_follows_its_document_and_nothing_else(
    opened: Callable[..., Memory], owner: Memory, tmp_path: Path
) -> None:
    page = tmp_path / "identity.md"
    page.write_text("I am Orion.")
    with opened("own", identity=page, actor=owner.actor) as memory:
        assert memory.context("").text == "## persona\n\nI am Orion."
        refused(memory.remember("I am Nova.", key="persona", tier="core"))
        kept(memory.remember("Orion is called Nova now", tier="archival"))
        assert memory.context("").text == "## persona\n\nI am Orion."
        page.write_text("I am Orion, and I sail.")
        assert memory.context("").text == "## persona\n\nI am Orion, and I sail."


@pytest.mark.promise("C7")
def test_human_block_is_the_current_user_file_and_facts(
    opened: Callable[..., Memory], owner: Memory, tmp_path: Path
) -> None:
    page = tmp_path / "USER.md"
    page.write_text("Ana, captain.")
    with opened("own", user_file=page, actor=owner.actor) as memory:
        kept(memory.remember("Ana is left-handed.", **fields_of("human")))
        assert memory.context("").text == "## human\n\nAna, captain.\n\nAna is left-handed."
        page.write_text("Ana, admiral.")
        assert memory.context("").text == "## human\n\nAna, admiral.\n\nAna is left-handed."
        page.unlink()
        assert memory.context("").text == "## human\n\nAna is left-handed."


@pytest.mark.promise("C7")
def test_user_file_that_is_not_text_is_named_not_shown(opened: Callable[..., Memory], tmp_path: Path) -> None:
    page = tmp_path / "USER.md"
    page.write_bytes(b"Ana \xff\xfe captain")
    with opened("own", user_file=page) as memory, pytest.raises(InvalidInput, match=r"USER\.md") as fault:
        memory.context("")
    assert "captain" not in str(fault.value)


@pytest.mark.promise("C11", "C13", "C90", "C57", "A9", "D16", "Z3")
@pytest.mark.parametrize("block", BLOCKS)
def test_agent_edit_of_a_block_needs_approval_before_any_prompt(mem: Memory, owner: Memory, block: str) -> None:
    # The human block asks for a recorded message of the user on top.
    message = kept(owner.remember("I sail", kind="event", source="user_message")).id
    waiting = held(mem.remember("Sails by night", key=block, tier="core", evidence=[message]))
    assert "night" not in mem.context("sails by night").text
    assert mem.list_memories(key=block) == []
    kept(owner.approve(waiting.id))
    assert f"## {block}\n\nSails by night" in mem.context("").text
    current = mem.list_memories(key=block)[0]
    waiting = held(mem.revise(current.id, "Sails by day", evidence=[message], reason="seen"))
    assert "Sails by night" in mem.context("").text
    assert "by day" not in mem.context("").text
    owner.reject(waiting.id, reason="not so")
    assert "Sails by night" in mem.context("").text


@pytest.mark.promise("C12")
def test_block_over_its_budget_is_refused_and_unchanged(opened: Callable[..., Memory], owner: Memory) -> None:
    policy = Policy(block_budget={"mission": 4})
    with opened("small", policy=policy, counter=Words(), actor=owner.actor) as memory:
        record = kept(memory.remember("one two three four", **fields_of("mission")))
        assert "over_budget" in refused(memory.revise(record.id, "one two three four five", reason="more"))
        assert "over_budget" in refused(memory.append(record.id, "five", reason="more"))
        assert "over_budget" in refused(memory.remember("a b c d e", **fields_of("mission")))
        assert memory.context("").text == "## mission\n\none two three four"


@pytest.mark.promise("C12", "C82")
def test_block_over_a_later_budget_is_an_error_never_cut(opened: Callable[..., Memory], owner: Memory) -> None:
    with opened("small", counter=Words(), actor=owner.actor) as memory:
        kept(memory.remember("one two three four", **fields_of("mission")))
    policy = Policy(block_budget={"mission": 3})
    with opened("small", counter=Words(), policy=policy) as memory, pytest.raises(ContextTooSmall, match="budget of 3"):
        memory.context("")


@pytest.mark.promise("C14")
def test_no_rollback_reaches_the_identity(opened: Callable[..., Memory], tmp_path: Path, owner: Memory) -> None:
    page = tmp_path / "identity.md"
    page.write_text("I am Orion.")
    with opened("own", identity=page, actor=owner.actor) as memory:
        kept(memory.remember("Sail to Oslo", **fields_of("mission")))
        page.write_text("I am Orion the second.")
        for entry in memory.log():
            memory.rollback(entry.commit.id)
        assert memory.context("").text == "## persona\n\nI am Orion the second."
