"""Export of one person, agent or project: what is in it, with old versions, proposals and contexts, and what is left out."""

from __future__ import annotations

import pytest
from outcomes import committed_record, quarantined_item

from keepward import Actor, InvalidInput, Memory, Unauthorised

ON_BOTH_DATABASES = True
NAME = "olga brandt"


@pytest.fixture
def told(owner: Memory, mem: Memory) -> dict[str, str]:
    """Six memories bound to a name in each way, and one that is not; returns the ids by how they are bound."""
    about = committed_record(mem.remember("She takes 8 mg", tier="archival", subject="Olga Brandt"))
    owner.revise(about.id, text="She takes 80 mg", reason="corrected")
    former = committed_record(mem.remember("The dog of olga brandt limps", tier="archival"))
    owner.revise(former.id, text="The dog is well", reason="healed")
    own = committed_record(owner.at(scope="/agents/lab").remember("Pipettes are in drawer two", tier="archival"))
    said = committed_record(mem.remember("The stairs are steep", tier="archival", speaker="Olga Brandt"))
    mentions = committed_record(mem.remember("A letter for Olga Brandt's sister", tier="archival"))
    mem.remember("The wolgabrandt is a river", tier="archival")
    return {"about": about.id, "former": former.id, "own": own.id, "said": said.id, "mentions": mentions.id}


def test_an_export_has_every_memory_that_is_bound_to_the_name(owner: Memory, told: dict[str, str]) -> None:
    found = owner.export_subject(NAME)
    bonds = {"about": "about", "said": "said", "mentions": "mentions", "former": "mentions"}
    assert {each.id: each.bond for each in found.memories} == {told[name]: bond for name, bond in bonds.items()}
    assert [(each.id, each.bond) for each in owner.export_subject("agent:lab").memories] == [(told["own"], "own")]


def test_an_export_has_old_versions_with_who_wrote_them(owner: Memory, told: dict[str, str]) -> None:
    memory = next(each for each in owner.export_subject(NAME).memories if each.id == told["about"])
    assert [(each.record.text, each.details.actor) for each in memory.versions] == [
        ("She takes 8 mg", "agent:agent"),
        ("She takes 80 mg", "operator:olga"),
    ]


def test_an_export_has_proposals_and_the_contexts_that_held_any(
    owner: Memory, mem: Memory, told: dict[str, str]
) -> None:
    item = quarantined_item(mem.remember("Olga Brandt owns the shop", key="mission", kind="state", tier="core"))
    rejected = quarantined_item(mem.remember("The shop is hers", key="operating_rules", kind="state", tier="core"))
    owner.reject(item.id, reason="not so")
    context = mem.context("What does Olga Brandt take, 80 mg?")
    found = owner.export_subject(NAME)
    assert [each.id for each in found.proposals] == [item.id]
    assert rejected.id not in {each.id for each in found.proposals}
    assert context.receipt is not None
    assert [each.receipt for each in found.contexts] == [context.receipt.id]


def test_an_export_says_what_is_left_out(owner: Memory, told: dict[str, str]) -> None:
    plan = owner.plan_erase(told["about"])
    owner.erase(plan.digest, told["about"])
    found = owner.export_subject(NAME)
    assert any("erased" in sentence for sentence in found.left_out)
    assert "80 mg" not in repr(found)


def test_only_the_owner_exports_and_only_everything(owner: Memory, mem: Memory) -> None:
    with pytest.raises(Unauthorised):
        mem.export_subject(NAME)
    with pytest.raises(Unauthorised):
        owner.as_actor(Actor.reviewer("mia")).export_subject(NAME)
    with pytest.raises(InvalidInput, match="scope /"):
        owner.user("ana").export_subject(NAME)
    with pytest.raises(InvalidInput):
        owner.export_subject(" ")
