"""Permissions and approval by another than the proposer (promises D1-D2, D5-D10, D15-D21, D27-D34, D38-D41)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from outcomes import held, kept

from keepward import Actor, Committed, Conflict, Memory, Outcome, Unauthorised

ACCESS = ("read_only", "approval", "append", "read_write")
#: What becomes of an agent's operation on a memory with each access, in the order of ACCESS.
OPERATIONS: dict[str, tuple[Callable[[Memory, str], Outcome], tuple[str, str, str, str]]] = {
    "update": (
        lambda mem, name: mem.revise(name, "new", reason="better"),
        ("refused", "quarantined", "quarantined", "committed"),
    ),
    "append": (
        lambda mem, name: mem.append(name, "new", reason="more"),
        ("refused", "quarantined", "committed", "committed"),
    ),
    "upsert": (
        lambda mem, _: mem.remember("new", key="log", tier="archival"),
        ("refused", "quarantined", "committed", "committed"),
    ),
    "delete": (
        lambda mem, name: mem.forget(name, reason="old"),
        ("refused", "quarantined", "quarantined", "committed"),
    ),
    "move": (
        lambda mem, name: mem.move(name, tier="working", reason="for now"),
        ("refused", "quarantined", "quarantined", "committed"),
    ),
    "rename": (
        lambda mem, name: mem.move(name, key="diary", reason="better name"),
        ("refused", "quarantined", "quarantined", "committed"),
    ),
    "supersede": (
        lambda mem, name: mem.supersede(name, kept(mem.remember("other words")).id, reason="other words"),
        ("refused", "quarantined", "quarantined", "committed"),
    ),
    "merge": (
        lambda mem, name: mem.merge([name, kept(mem.remember("other words")).id], "both", reason="one thing"),
        ("refused", "quarantined", "quarantined", "committed"),
    ),
    "delete among many": (
        lambda mem, name: mem.forget_many([name], reason="old")[0],
        ("refused", "quarantined", "quarantined", "committed"),
    ),
    "delete in a draft": (
        lambda mem, name: _drafted(mem, name),
        ("refused", "quarantined", "quarantined", "committed"),
    ),
    "promote": (
        lambda mem, name: mem.promote(name, "new", reason="lasting"),
        ("refused", "quarantined", "quarantined", "quarantined"),
    ),
}


def _drafted(mem: Memory, name: str) -> Outcome:
    with mem.draft(reason="old") as draft:
        draft.insert("harmless")
        draft.retire(name)
    return draft.outcome


CASES = [(what, access) for what in OPERATIONS for access in ACCESS]


@pytest.mark.promise("D2", "D15", "D16", "D30", "D31", "D32", "D33", "Z4")
@pytest.mark.parametrize(("what", "access"), CASES, ids=str)
def test_access_decides_what_an_agent_may_do_with_a_memory(mem: Memory, owner: Memory, what: str, access: str) -> None:
    made = kept(owner.remember("old", key="log", tier="archival", access=access))
    operation, expected = OPERATIONS[what]
    outcome = operation(mem, made.id)
    assert outcome.outcome == expected[ACCESS.index(access)]
    if not isinstance(outcome, Committed):
        assert mem.get(made.id) == made
        assert mem.list_memories(key="log") == [made]
    assert len(mem.pending()) == (outcome.outcome == "quarantined")


@pytest.mark.promise("D2")
@pytest.mark.parametrize(
    ("access", "becomes"), list(zip(ACCESS, ("refused", "quarantined", "committed", "committed"), strict=True))
)
def test_an_agent_creates_only_what_it_might_itself_change(mem: Memory, access: str, becomes: str) -> None:
    assert mem.remember("a new diary", tier="archival", access=access).outcome == becomes


@pytest.mark.promise("D17", "D32", "D18", "D33")
def test_append_adds_a_line_and_write_replaces_the_text(mem: Memory, owner: Memory) -> None:
    diary = kept(owner.remember("monday", key="diary", tier="archival", access="append"))
    assert kept(mem.append(diary.id, "tuesday", reason="a new day")).text == "monday\ntuesday"
    assert kept(mem.remember("wednesday", key="diary", tier="archival")).text == "monday\ntuesday\nwednesday"
    board = kept(owner.remember("monday", key="board", tier="archival", access="read_write"))
    assert kept(mem.remember("tuesday", key="board", tier="archival")).text == "tuesday"
    assert kept(mem.revise(board.id, "wednesday", reason="a new day")).text == "wednesday"


@pytest.mark.promise("D1", "D27", "D28", "D29")
def test_core_is_always_in_the_prompt_and_archival_on_request(opened: Callable[..., Memory], clock) -> None:
    with opened("tiers", embedder=None, actor=Actor.operator()) as owner:
        mem = owner.as_actor(Actor.agent())
        kept(owner.remember("Keep the museum open", tier="core", key="mission"))
        kept(mem.remember("The roof is being mended", tier="working"))
        kept(owner.remember("Tickets cost 4 euros", tier="archival"))

        def parts(objective: str) -> list[bool]:
            text = mem.context(objective).text
            return [each in text for each in ("Keep the museum open", "roof", "Tickets")]

        assert parts("what do tickets cost") == [True, True, True]
        assert parts("an unrelated question") == [True, True, False]
        clock.move(hours=24)
        assert parts("what do tickets cost") == [True, False, True]


@pytest.mark.promise("D4", "D20", "D39", "Z26")
def test_every_change_leaves_one_event_that_outlives_the_memory(mem: Memory, owner: Memory) -> None:
    made = kept(mem.remember("monday", tier="archival"))
    kept(mem.append(made.id, "tuesday", reason="a new day"))
    kept(owner.revise(made.id, "wednesday", reason="tidied"))
    kept(owner.forget(made.id, reason="over"))
    kept(owner.restore(made.id, reason="not yet"))
    told = [(each.op, each.details.actor, each.details.reason) for each in mem.history(made.id)]
    assert told == [
        ("insert", "agent:agent", "remembered"),
        ("append", "agent:agent", "a new day"),
        ("replace", "operator:olga", "tidied"),
        ("retire", "operator:olga", "over"),
        ("restore", "operator:olga", "not yet"),
    ]
    assert sum(len(events) for _, events in owner.journal()) == mem.status()["events"] == 5


@pytest.mark.promise("D5", "D10", "D34")
def test_no_one_approves_a_proposal_of_their_own(mem: Memory, owner: Memory) -> None:
    item = held(mem.remember("Keep the museum open", tier="core", key="mission", confidence=0.9))
    assert [each.id for each in mem.pending()] == [item.id]
    with pytest.raises(Unauthorised):
        mem.approve(item.id)
    with pytest.raises(Unauthorised):
        mem.reject(item.id, reason="no")
    with pytest.raises(Unauthorised):
        mem.as_actor(owner.actor)
    weak = held(owner.remember("maybe so", tier="archival", confidence=0.1))
    with pytest.raises(Unauthorised, match="propos"):
        owner.as_actor(Actor.reviewer("mia")).approve(weak.id)
    owner.reject(weak.id, reason="on second thoughts")
    kept(owner.approve(item.id))
    assert mem.pending() == []


@pytest.mark.promise("D40", "D41", "D5", "Z3")
def test_time_alone_never_approves_and_in_the_end_rejects(mem: Memory, owner: Memory, clock: Any) -> None:
    item = held(mem.remember("Keep the museum open", tier="core", key="mission", confidence=0.9))
    for _ in range(4):
        clock.move(days=7)
        assert [each.state for each in mem.pending()] == ["pending"]
        assert mem.list_memories(tiers=["core"]) == []
    clock.move(days=7)
    assert [each.state for each in mem.pending(state="all")] == ["expired"]
    with pytest.raises(Conflict, match="expired"):
        owner.approve(item.id)
    assert mem.list_memories(tiers=["core"]) == []


@pytest.mark.promise("D9")
def test_a_list_is_of_everything_or_of_one_tier(owner: Memory) -> None:
    for tier in ("working", "episodic", "archival"):
        kept(owner.remember(f"this is {tier}", tier=tier))
    assert [each.text for each in owner.list_memories()] == ["this is archival", "this is episodic", "this is working"]
    assert [each.text for each in owner.list_memories(tiers=["episodic"])] == ["this is episodic"]


@pytest.mark.promise("D38", "D27")
def test_memory_created_or_moved_in_core_is_always_prompted(owner: Memory) -> None:
    kept(owner.remember("Keep the museum open", tier="core", key="mission"))
    fact = kept(owner.remember("Never promise a refund", tier="archival"))
    kept(owner.move(fact.id, tier="core", key="operating_rules", reason="it always holds"))
    text = owner.at(scope="orion").context("an unrelated question").text
    assert "Keep the museum open" in text
    assert "Never promise a refund" in text
