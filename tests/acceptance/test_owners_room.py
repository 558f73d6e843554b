"""What people wrote keeps its place in a context, however sure an agent is of its own notes."""

from __future__ import annotations

import pytest
from outcomes import kept

from keepward import Memory
from keepward.core.compiled import CompiledContext

RULE = "Always ask Ana before a payment"


def filled(owner: Memory, mem: Memory) -> list[str]:
    """Write three states and a rule of the owner, then 70 keyed notes of an agent that claims to be certain."""
    owners = [
        kept(owner.remember(f"The {each} stays closed", kind="state", key=each, tier="working")).id for each in "abc"
    ]
    owners.append(kept(owner.remember(RULE, kind="rule", stability="permanent", tier="archival")).id)
    for number in range(70):
        text = f"Note {number}: " + f"crane {number} at pier {number * 7} lifts " * 6
        mem.remember(text, kind="state", key=f"note-{number}", tier="working", confidence=1.0, source="user")
    return owners


def test_certain_agent_notes_displace_no_memory_of_a_person(owner: Memory, mem: Memory) -> None:
    owners = filled(owner, mem)
    context = owner.context("which payment")
    assert {item.id for section in context.sections for item in section.items} >= {*owners}
    assert RULE in context.text
    assert owner.replay(context.receipt.id).text == context.text


def test_what_a_person_wrote_and_fell_out_is_reported(owner: Memory, mem: Memory) -> None:
    owners = filled(owner, mem)
    context = owner.context("which payment", budget_tokens=40)
    lost = [each.id for each in context.excluded if each.id in owners and each.reason.code == "budget"]
    assert lost
    notes = [note for note in context.notes if "a person wrote" in note]
    assert all(each in notes[0] for each in lost)


@pytest.mark.parametrize("budget", [200, 400, 1_000, 2_000, 4_000])
def test_notes_of_an_agent_leave_room_for_a_persons_tail(owner: Memory, mem: Memory, budget: int) -> None:
    owners = [*filled(owner, mem), kept(owner.remember("The task: pay the crane bill", tier="working")).id]
    owners.append(kept(owner.remember("Bo pays the crane bill on Fridays")).id)
    context = owner.context("who pays the crane bill", budget_tokens=budget)
    assert {item.id for section in context.sections for item in section.items} >= {*owners}


def spent_by_agents(context: CompiledContext, owners: list[str]) -> int:
    fixed = (section for section in context.sections if section.name in {"pinned", "state", "working"})
    return sum(item.tokens for section in fixed for item in section.items if item.id not in owners)


@pytest.mark.parametrize("budget", [400, 1_000, 2_000])
def test_agent_notes_use_at_most_half_of_contested_room(owner: Memory, mem: Memory, budget: int) -> None:
    owners = filled(owner, mem)
    for number in range(40):
        said = (
            f"Crane bill {number}: " + f"Bo pays the crane bill number {number} on Fridays in the yard of Leeds. " * 3
        )
        owners.append(kept(owner.remember(said)).id)
    context = owner.context("who pays the crane bill", budget_tokens=budget)
    assert 0 < spent_by_agents(context, owners) <= budget // 2
    assert owner.replay(context.receipt.id).text == context.text


def test_working_notes_of_an_agent_leave_half_of_the_tail(owner: Memory, mem: Memory) -> None:
    for number in range(70):
        mem.remember(f"Note {number}: " + f"crane {number} at pier {number * 7} lifts " * 6, tier="working")
    said = [kept(owner.remember(f"Crane bill {n}: Bo pays bill {n} of the crane on day {n}")).id for n in range(20)]
    context = owner.context("who pays the crane bill")
    assert {item.id for section in context.sections for item in section.items} >= {*said}


def test_an_agent_alone_uses_all_of_a_budget(mem: Memory) -> None:
    for number in range(70):
        text = f"Note {number}: " + f"crane {number} at pier {number * 7} lifts " * 6
        mem.remember(text, kind="state", key=f"note-{number}", tier="working")
        mem.remember(f"Found {number}: the crane at pier {number} was painted")
    context = mem.context("which crane was painted", budget_tokens=1_000)
    assert spent_by_agents(context, []) > 850
