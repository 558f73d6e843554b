"""Who decides, and what origin may change: the owner's word, names that prove nothing, and text of lower trust."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from outcomes import codes, held, kept

from keepward import Actor, Memory, Policy, Trust, Unauthorised

MISSION: dict[str, Any] = {"tier": "core", "key": "mission"}
Enter = Callable[..., Memory]


@pytest.mark.parametrize(
    "fields",
    [
        MISSION,
        {"tier": "core", "key": "human"},
        {"tier": "core", "key": "operating_rules"},
        {"kind": "rule"},
        {"kind": "rule", "confidence": 0.6, "tier": "archival"},
        {"stability": "permanent", "tier": "archival"},
    ],
)
def test_what_the_owner_writes_is_decided_by_that(owner: Memory, fields: dict[str, Any]) -> None:
    rule = kept(owner.remember("Never deploy on a Friday", **fields))
    assert rule.trust is Trust.OWNER
    assert "Never deploy" in owner.context("may I deploy on Friday").text
    assert owner.pending() == []
    assert len(owner.log()) == 1


def test_the_owner_approves_what_the_owner_proposed(owner: Memory) -> None:
    item = held(owner.remember("maybe so", tier="archival", confidence=0.1))
    assert kept(owner.approve(item.id, digest=item.digest)).text == "maybe so"


@pytest.mark.parametrize("fields", [MISSION, {"kind": "rule", "tier": "archival"}])
def test_where_policy_asks_for_four_eyes_the_owners_edit_waits_for_another_person(
    owner: Memory, entering: Enter, fields: dict[str, Any]
) -> None:
    strict = entering(Actor.operator("olga"), policy=Policy(four_eyes=True))
    item = held(strict.remember("Never deploy on a Friday", **fields))
    for same in (strict, entering(Actor.operator("petra"), policy=Policy(four_eyes=True))):
        with pytest.raises(Unauthorised, match="another person"):
            same.approve(item.id)
    secret = owner.create_token("petra", rights="reviewer").secret
    assert kept(entering(token=secret, policy=Policy(four_eyes=True)).approve(item.id)).text.startswith("Never")


@pytest.mark.promise("Z24")
@pytest.mark.parametrize("name", ["agent", "Agent", "ａｇｅｎｔ", " agent"])
def test_a_reviewer_that_is_named_like_the_proposing_agent_approves_nothing(
    owner: Memory, mem: Memory, entering: Enter, name: str
) -> None:
    item = held(mem.remember("Sail to Oslo", **MISSION))
    with pytest.raises(Unauthorised, match="another person"):
        entering(Actor.reviewer(name)).approve(item.id)
    secret = owner.create_token(name.strip(), rights="reviewer").secret
    with pytest.raises(Unauthorised, match="another person"):
        entering(token=secret).approve(item.id)
    assert [each.id for each in owner.pending()] == [item.id]


def test_an_agent_needs_evidence_for_a_rule_as_before(mem: Memory) -> None:
    outcome = mem.remember("Never deploy on a Friday", kind="rule", confidence=0.95)
    held(outcome)
    assert "rule_without_evidence" in codes(outcome)
