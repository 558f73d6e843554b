"""Contradictions: pairs of live statements of the same thing, for a person to look at."""

from __future__ import annotations

import pytest
from outcomes import kept

from keepward import Actor, InvalidInput, Unauthorised
from keepward.engine import contradictions

PORTS = tuple(f"the API runs on port {port}" for port in (8080, 9443))


def tell(mem, clock, *texts, **fields):
    records = []
    for text in texts:
        records.append(kept(mem.remember(text, tier="archival", **fields)))
        clock.move(days=1)
    return records


def pairs(mem, **asked):
    return [(each.older.text, each.newer.text) for each in mem.contradictions(**asked).items]


@pytest.mark.parametrize("together", [1_000, 1])
def test_the_newer_of_two_statements_stands_beside_the_one_it_outdoes(owner, clock, monkeypatch, together):
    monkeypatch.setattr(contradictions, "TOGETHER", together)
    tell(owner, clock, PORTS[0], "Ana drinks coffee", PORTS[1], "the shop closes at nine")
    assert pairs(owner) == [PORTS]


def test_among_many_statements_the_newest_are_compared_and_a_note_says_so(owner, clock, monkeypatch):
    monkeypatch.setattr(contradictions, "TOGETHER", 2)
    monkeypatch.setattr(contradictions, "LOOKED", 1)
    monkeypatch.setattr(contradictions, "NEAREST", 2)
    tell(owner, clock, *PORTS, "the shop closes at nine", "the shop closes at ten")
    found = owner.contradictions()
    assert (pairs(owner), found.compared) == ([("the shop closes at nine", "the shop closes at ten")], 1)
    assert any("narrow it" in note for note in found.notes)


def test_looking_changes_nothing(owner, clock):
    tell(owner, clock, *PORTS)
    before = owner.head
    owner.contradictions()
    assert (owner.head, [each.status for each in owner.find()]) == (before, ["active", "active"])


def test_the_surest_pair_comes_first_and_the_rest_are_counted(owner, clock):
    tell(owner, clock, *PORTS, "Priya lives in Leeds", "Priya moved to Bristol and lives there")
    found = owner.contradictions(limit=1)
    assert (found.items[0].signs, found.total) == (("property", "change"), 2)


def test_statements_of_one_form_about_others_are_no_pair(owner, clock):
    tell(owner, clock, "Ana lives in Leeds", "Ben lives in Bristol", "room 4 is green", "room 5 is blue")
    assert pairs(owner) == []


def test_what_no_longer_holds_is_in_no_pair(owner, clock):
    first, _ = tell(owner, clock, *PORTS)
    owner.forget(first.id, reason="old")
    assert pairs(owner) == []


@pytest.mark.parametrize("together", [1_000, 0])
def test_an_agent_sees_no_pair_that_its_recall_would_not_show(owner, clock, monkeypatch, together):
    monkeypatch.setattr(contradictions, "TOGETHER", together)
    agent = owner.acting_as(Actor.agent("lyra"))
    tell(owner, clock, PORTS[0])
    tell(owner, clock, PORTS[1], sensitivity="sensitive")
    tell(owner.at(scope="/agents/orion"), clock, "the API runs on port 7000")
    assert (pairs(agent), pairs(owner, include_sensitive=True)) == ([], [PORTS])
    with pytest.raises(Unauthorised):
        agent.contradictions(include_sensitive=True)


def test_filters_narrow_both_sides(owner, clock):
    tell(owner, clock, PORTS[0], subject="api")
    tell(owner, clock, PORTS[1], subject="gateway")
    assert (pairs(owner, subject="api"), pairs(owner, subject="gateway"), pairs(owner)) == ([], [], [PORTS])


def test_a_limit_is_at_least_one(owner):
    with pytest.raises(InvalidInput):
        owner.contradictions(limit=0)
