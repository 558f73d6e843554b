"""What people wrote keeps its place in a context, however sure an agent is of its own notes."""

from __future__ import annotations

from outcomes import kept

from keepward import Memory

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


def test_certain_notes_of_an_agent_push_nothing_of_a_person_out(owner: Memory, mem: Memory) -> None:
    owners = filled(owner, mem)
    context = owner.context("which payment")
    assert {item.id for section in context.sections for item in section.items} >= {*owners}
    assert RULE in context.text
    assert owner.replay(context.receipt.id).text == context.text


def test_what_a_person_wrote_and_fell_out_is_told(owner: Memory, mem: Memory) -> None:
    owners = filled(owner, mem)
    context = owner.context("which payment", budget_tokens=40)
    lost = [each.id for each in context.excluded if each.id in owners and each.reason.code == "budget"]
    assert lost
    notes = [note for note in context.notes if "a person wrote" in note]
    assert all(each in notes[0] for each in lost)
