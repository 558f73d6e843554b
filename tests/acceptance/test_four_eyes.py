"""Under four eyes one person does not play two: tokens count as who made them, names as they look."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from outcomes import held, kept

from keepward import Actor, Memory, Policy, Unauthorised

STRICT = Policy(four_eyes=True)
MISSION: dict[str, Any] = {"tier": "core", "key": "mission"}
Enter = Callable[..., Memory]


def refused(approver: Memory, name: str) -> None:
    with pytest.raises(Unauthorised, match="propos"):
        approver.approve(name)
    with pytest.raises(Unauthorised, match="propos"):
        approver.amend(name, "Sail to Bergen")
    (one,) = approver.approve_many([name])
    assert isinstance(one.error, Unauthorised)
    assert approver.proposal(name).may_approve is False


def test_the_token_that_a_proposer_made_approves_nothing_of_it(owner: Memory, entering: Enter) -> None:
    ana = entering(token=owner.create_token("ana", rights="owner").secret, policy=STRICT)
    item = held(ana.remember("Sail to Oslo", **MISSION))
    for rights in ("reviewer", "owner"):
        refused(entering(token=ana.create_token(f"bob {rights}", rights=rights).secret, policy=STRICT), item.id)
    bob = entering(token=owner.create_token("bob", rights="reviewer").secret, policy=STRICT)
    assert kept(bob.approve(item.id)).text == "Sail to Oslo"


def test_a_chain_of_tokens_counts_as_its_first_maker(owner: Memory, entering: Enter) -> None:
    ana = entering(token=owner.create_token("ana", rights="owner").secret, policy=STRICT)
    eve = entering(token=ana.create_token("eve", rights="owner").secret, policy=STRICT)
    last = entering(token=eve.create_token("rob", rights="reviewer").secret, policy=STRICT)
    refused(last, held(ana.remember("Sail to Oslo", **MISSION)).id)
    refused(ana, held(eve.remember("Sail to Rome", **MISSION)).id)


def test_a_maker_does_not_approve_what_its_agents_token_proposed(owner: Memory, entering: Enter) -> None:
    ana = entering(token=owner.create_token("ana", rights="owner").secret, policy=STRICT)
    agent = entering(token=ana.create_token("planner").secret, policy=STRICT)
    item = held(agent.remember("Sail to Oslo", **MISSION))
    refused(ana, item.id)
    refused(entering(token=ana.create_token("rita", rights="reviewer").secret, policy=STRICT), item.id)


def test_owner_at_the_machine_counts_as_the_tokens_it_created(owner: Memory, entering: Enter) -> None:
    local = entering(Actor.operator("olga"), policy=STRICT)
    item = held(local.remember("Sail to Oslo", **MISSION))
    refused(entering(token=local.create_token("rita", rights="reviewer").secret, policy=STRICT), item.id)


def test_a_token_of_unknown_maker_approves_nothing(owner: Memory, entering: Enter, monkeypatch: Any) -> None:
    monkeypatch.setattr("keepward.services.tokens.AT_MACHINE", None)
    old = owner.create_token("bob", rights="reviewer").secret
    monkeypatch.undo()
    ana = entering(token=owner.create_token("ana", rights="owner").secret, policy=STRICT)
    refused(entering(token=old, policy=STRICT), held(ana.remember("Sail to Oslo", **MISSION)).id)


def test_without_four_eyes_a_reviewer_decides_about_the_owners_agents(owner: Memory, entering: Enter) -> None:
    ana = entering(token=owner.create_token("ana", rights="owner").secret)
    item = held(entering(token=ana.create_token("planner").secret).remember("Sail to Oslo", **MISSION))
    kept(entering(token=ana.create_token("rita", rights="reviewer").secret).approve(item.id))


LOOKS = ["Ana", "аna", "аnа", "a\u034fna", "a\u3164na", "ａｎａ", "AΝΑ", "áná", "a na", "ana."]


@pytest.mark.parametrize("name", LOOKS)
def test_a_name_that_looks_the_same_approves_nothing(owner: Memory, entering: Enter, name: str) -> None:
    agent = entering(Actor.agent("ana"))
    item = held(agent.remember("Sail to Oslo", **MISSION))
    token = owner.create_token(name, rights="reviewer").secret
    refused(entering(token=token), item.id)
    kept(entering(token=owner.create_token("anna", rights="reviewer").secret).approve(item.id))


def test_the_owner_at_the_machine_decides_about_its_agents(owner: Memory, entering: Enter) -> None:
    item = held(entering(token=owner.create_token("planner").secret, policy=STRICT).remember("Sail on", **MISSION))
    assert kept(entering(Actor.operator("olga"), policy=STRICT).approve(item.id)).text == "Sail on"
