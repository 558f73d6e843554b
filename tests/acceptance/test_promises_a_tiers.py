"""What belongs to which tier, and how a keyed memory is kept current (promises A8-A10, A22, A47, A52-A59, A85-A86)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from outcomes import kept

from keepward import Actor, Memory, Quarantined
from keepward.interchange import load

BLOCKS = {
    "human": "Olga founded the harbour museum in 1998",
    "operating_rules": "Never promise a refund",
    "mission": "Keep the museum open all year",
}


def tell(owner: Memory) -> None:
    """Write the core blocks; the block about a person rests on that person's own message."""
    said = kept(owner.remember("I founded the harbour museum in 1998", tier="episodic", source="user_message"))
    for key, text in BLOCKS.items():
        kept(owner.remember(text, tier="core", key=key, confidence=1.0, evidence=[said.id]))


@pytest.mark.promise("A8", "A85", "D27")
def test_bio_rules_and_mission_come_first_in_every_prompt(owner: Memory) -> None:
    tell(owner)
    kept(owner.remember("The ferry leaves at six", tier="archival", stability="permanent"))
    kept(owner.update_by_key("current_projects", "Projects: repaint the ferry", tier="archival"))
    kept(owner.remember("Ask when the ferry leaves", tier="working"))
    for reader, objective in ((owner, "when does the ferry leave"), (owner.at(scope="orion"), "something else")):
        text = reader.context(objective).text
        ends = [text.index(each) for each in BLOCKS.values()]
        assert ends == sorted(ends)
        assert max(ends) < min(text.index(other) for other in ("The ferry leaves", "repaint", "Ask when"))


@pytest.mark.promise("A10", "A47", "A52", "A53")
@pytest.mark.parametrize("tier", ["working", "archival"])
def test_second_write_under_a_key_updates_the_first(mem: Memory, tier: str) -> None:
    first = kept(mem.remember("Projects: dashboard", kind="state", key="current_projects", tier=tier))
    again = kept(mem.remember("Projects: dashboard, email", kind="state", key="current_projects", tier=tier))
    assert (first.version, again.id, again.version) == (1, first.id, 2)
    assert mem.list_memories(key="current_projects") == [again]
    assert len(mem.list_memories(include_ended=True)) == 1


@pytest.mark.promise("A47")
def test_a_key_belongs_to_one_scope(mem: Memory) -> None:
    shared = kept(mem.update_by_key("mood", "calm"))
    own = kept(mem.update_by_key("mood", "busy", scope="orion"))
    assert (own.id != shared.id, own.version, mem.get(shared.id).text) == (True, 1, "calm")


@pytest.mark.promise("A55")
def test_twenty_rewordings_under_one_key_leave_one_memory(mem: Memory) -> None:
    for n in range(20):
        mem.update_by_key("current_projects", f"We are working on {'really ' * (n % 3)}the dashboard, part {n // 2}")
    assert [each.text for each in mem.list_memories()] == ["We are working on really the dashboard, part 9"]


EVERYBODY = [Actor.agent(), Actor.user(), Actor.operator("olga"), Actor.importer()]


@pytest.mark.promise("A22")
@pytest.mark.parametrize("actor", EVERYBODY, ids=lambda actor: actor.kind.value)
def test_write_without_a_tier_is_permanent_and_never_core(owner: Memory, actor: Actor, clock: Any) -> None:
    made = kept(owner.as_actor(actor).remember("The harbour opens at six"))
    assert (made.tier.value, made.kind.value, made.stability.value) == ("archival", "fact", "stable")
    assert (made.expires_at, made.pinned) == (None, False)
    clock.move(days=400)
    assert [each.id for each in owner.list_memories()] == [made.id]
    assert [hit.memory.id for hit in owner.recall("when does the harbour open")] == [made.id]


@pytest.mark.promise("A22")
@pytest.mark.parametrize(
    ("scope", "tier"),
    [
        ("/agents/orion/tasks/42", "working"),
        ("/tasks/7", "working"),
        ("/agents/orion/tasks/42/steps", "working"),
        ("/agents/orion/tasks", "archival"),
        ("/agents/tasks", "archival"),
        ("orion", "archival"),
    ],
)
def test_task_scope_alone_defaults_to_working_memory(owner: Memory, scope: str, tier: str) -> None:
    assert kept(owner.at(scope=scope).remember("The blue key sticks")).tier.value == tier
    assert kept(owner.remember("The red key is lost", scope=scope)).tier.value == tier
    assert kept(owner.remember("The lock was oiled", scope=scope, tier="archival")).expires_at is None


def old_line(path: Path, **fields: object) -> Path:
    """Write a vault file of the old kind with one line."""
    line = {"id": "0123456789ab", "text": "Keep the museum open", "scope": "shared", "version": 1, **fields}
    path.write_text(json.dumps(line) + "\n")
    return path


@pytest.mark.promise("A22")
def test_old_line_without_a_tier_is_pinned_for_an_owner(owner: Memory, tmp_path: Path) -> None:
    assert load(owner, old_line(tmp_path / "old.jsonl")).committed == 1
    assert "Keep the museum open" in owner.context("").text


@pytest.mark.promise("A22", "C57")
def test_old_line_without_a_tier_is_quarantined_for_an_agent(mem: Memory, tmp_path: Path) -> None:
    assert load(mem, old_line(tmp_path / "old.jsonl")).quarantined == 1
    assert "museum" not in mem.context("the museum").text
    assert [each.steps[0].after.text for each in mem.pending()] == ["Keep the museum open"]


@pytest.mark.promise("A59")
def test_promotion_gives_lasting_text_and_preserves_history(mem: Memory, owner: Memory) -> None:
    made = kept(mem.update_by_key("opening", "we seem to want to stay open", tier="archival"))
    canonical = "Keep the museum open all year"
    asked = mem.promote(made.id, canonical, reason="settled")
    assert isinstance(asked, Quarantined)
    assert canonical not in mem.context("").text
    lasting = kept(owner.approve(asked.item.id))
    assert (lasting.id, lasting.version, lasting.text, lasting.source) == (made.id, 2, canonical, "promotion")
    assert (lasting.tier.value, lasting.kind.value, lasting.stability.value) == ("archival", "fact", "permanent")
    assert [each.record.text for each in mem.history(made.id)] == [made.text, canonical]
    assert canonical in mem.at(scope="orion").context("").text


@pytest.mark.promise("A59")
def test_promotion_without_a_block_is_pinned_and_never_expires(mem: Memory, owner: Memory, clock: Any) -> None:
    made = kept(mem.remember("The ferry is yellow"))
    kept(owner.promote(made.id, "The ferry has always been yellow", reason="settled"))
    clock.move(days=400)
    assert "The ferry has always been yellow" in mem.context("").text


@pytest.mark.promise("A86")
def test_projects_priorities_and_self_state_are_current_in_every_prompt(mem: Memory) -> None:
    for key in ("current_projects", "priorities", "self_state"):
        kept(mem.update_by_key(key, f"the first of my {key}", tier="archival"))
        kept(mem.update_by_key(key, f"the newest of my {key}", tier="archival"))
        text = mem.context("an unrelated question").text
        assert f"{key}: the newest of my {key}" in text
        assert "the first" not in text
