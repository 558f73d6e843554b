"""What an agent's write meets on its way to core (promises C88-C91)."""

from __future__ import annotations

from typing import Any

import pytest
from outcomes import codes, held, kept, refused

from keepward import Actor, Conflict, Memory


@pytest.mark.promise("C88")
@pytest.mark.parametrize("key", ["system_prompt", "Mission", None])
def test_core_takes_no_block_outside_the_list(mem: Memory, owner: Memory, key: str | None) -> None:
    for handle in (mem, owner):
        assert "unknown_block" in refused(handle.remember("Sail to Oslo", key=key, tier="core"))
    # No memory elsewhere can bear a block's name, in whatever letters.
    own = None if key is None or key.casefold() == "mission" else key
    fact = kept(mem.remember("The tide turns at six", tier="archival", key=own))
    assert "unknown_block" in refused(mem.move(fact.id, tier="core", reason="important"))
    assert "Sail to Oslo" not in mem.context("").text


@pytest.mark.promise("C89")
def test_agent_writes_about_a_person_only_with_their_message(mem: Memory, owner: Memory) -> None:
    about: dict[str, Any] = {"key": "human", "tier": "core"}
    assert "needs_user_evidence" in refused(mem.remember("Ana likes tea", **about))
    assert "needs_user_evidence" in refused(mem.remember("Ana likes tea", evidence=["chat:42"], **about))
    own = kept(mem.remember("Ana said: I like tea", kind="event", source="user_message")).id
    assert "needs_user_evidence" in refused(mem.remember("Ana likes tea", evidence=[own], **about))
    said = kept(owner.as_actor(Actor.user("ana")).remember("I like tea", kind="event")).id
    assert "needs_approval" in codes(mem.remember("Ana likes tea", evidence=[said], **about))
    assert len(mem.pending()) == 1


def test_user_proposes_the_human_block_with_a_recorded_message(mem: Memory, owner: Memory) -> None:
    mem.add([{"role": "user", "content": "I like tea", "id": "m1"}], session="s1")
    said = mem.get("m1").id
    about: dict[str, Any] = {"key": "human", "tier": "core", "evidence": [said]}
    outcome = mem.remember("Ana likes tea", **about)
    assert refused(outcome) == {"needs_user_evidence"}
    assert "If the user or the owner proposes the block" in outcome.reasons[0].detail
    user = owner.as_actor(Actor.user("ana"))
    assert "needs_user_evidence" in refused(user.remember("Ana likes tea", **about | {"evidence": ["m2"]}))
    assert "needs_approval" in codes(user.remember("Ana likes tea", **about))
    assert kept(owner.remember("Ana likes tea", **about)).evidence == (said,)


@pytest.mark.promise("C89")
def test_evidence_of_an_earlier_text_does_not_support_another(mem: Memory, owner: Memory) -> None:
    said = kept(owner.as_actor(Actor.user("ana")).remember("I like tea", kind="event")).id
    waiting = held(mem.remember("Ana likes tea", key="human", tier="core", evidence=[said]))
    block = kept(owner.approve(waiting.id))
    assert "needs_user_evidence" in refused(mem.revise(block.id, "Ana likes gin", reason="inferred"))
    assert "needs_user_evidence" in refused(mem.append(block.id, "and gin", reason="inferred"))
    assert "needs_user_evidence" in refused(mem.remember("Ana likes gin", key="human", tier="core"))
    held(mem.revise(block.id, "Ana loves tea", evidence=[said], reason="she said so"))
    held(mem.append(block.id, "Ana loves tea", evidence=[said], reason="she said so"))
    held(mem.forget(block.id, reason="she left"))


@pytest.mark.promise("C90")
def test_every_agent_change_of_core_ends_in_the_queue(mem: Memory, owner: Memory) -> None:
    block = kept(owner.remember("Sail to Oslo", key="mission", tier="core"))
    other = kept(mem.remember("Sail to Bergen", tier="archival"))
    held(mem.revise(block.id, "Sail to Bergen", reason="x"))
    held(mem.append(block.id, "by night", reason="x"))
    held(mem.forget(block.id, reason="x"))
    held(mem.supersede(block.id, other.id, reason="x"))
    held(mem.move(block.id, tier="archival", key=None, reason="x"))
    held(mem.move(block.id, scope="orion", reason="x"))
    held(mem.move(other.id, tier="core", key="workspace_state", reason="x"))
    held(mem.promote(other.id, "Sail to Bergen", reason="x"))
    held(mem.reinforce(block.id))
    assert mem.context("").text.startswith("## mission\n\nSail to Oslo")
    assert mem.get(block.id) == block


@pytest.mark.promise("C91")
def test_unsure_core_write_goes_to_the_archive_with_notice(mem: Memory) -> None:
    outcome = mem.remember("Sail to Bergen", key="mission", tier="core", confidence=0.5)
    record = kept(outcome)
    assert (record.tier.value, record.key) == ("archival", None)
    assert "diverted_to_archival" in codes(outcome)
    assert [each.id for each in mem.list_memories(tiers=["archival"])] == [record.id]
    assert mem.list_memories(tiers=["core"]) == []
    assert mem.recall("Bergen")[0].memory.id == record.id
    assert "## mission" not in mem.context("Bergen").text


@pytest.mark.promise("C91")
def test_what_is_too_unsure_even_for_the_archive_waits(mem: Memory) -> None:
    outcome = mem.remember("Sail to Bergen", key="mission", tier="core", confidence=0.29)
    held(outcome)
    assert "below_floor" in codes(outcome)
    assert mem.list_memories() == []
    assert mem.context("Bergen").text == ""


@pytest.mark.promise("C91")
def test_an_unsure_edit_of_a_block_leaves_the_block_alone(mem: Memory, owner: Memory) -> None:
    block = kept(owner.remember("Sail to Oslo", key="mission", tier="core"))
    for outcome in (
        mem.remember("Sail to Bergen", key="mission", tier="core", confidence=0.5),
        mem.revise(block.id, "Sail to Bergen", confidence=0.5, reason="guess"),
    ):
        assert [(step.after.id, step.after.tier.value) for step in held(outcome).steps] == [(block.id, "core")]
        assert "below_floor" in codes(outcome)
    assert mem.context("").text == "## mission\n\nSail to Oslo"


@pytest.mark.promise("C88")
def test_used_key_survives_a_move_or_a_restore(mem: Memory) -> None:
    holder = kept(mem.remember("Quay four", tier="archival", key="berth"))
    other = kept(mem.remember("Quay nine is wide", tier="archival"))
    with pytest.raises(Conflict, match="another memory has this key"):
        mem.move(other.id, key="berth", reason="better")
    kept(mem.forget(holder.id, reason="sold"))
    kept(mem.move(other.id, key="berth", reason="better"))
    with pytest.raises(Conflict, match="another memory has this key"):
        mem.restore(holder.id, reason="bought back")
    assert [each.text for each in mem.list_memories(key="berth")] == ["Quay nine is wide"]
