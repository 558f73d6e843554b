"""Contradictions: pairs of memories that say nearly the same and differ, for a person to look at."""

from __future__ import annotations

import pytest
from outcomes import kept

from keepward import Actor, InvalidInput, Unauthorised

PORTS = tuple(f"the API runs on port {port}" for port in (8080, 9443))


def tell(mem, clock, *texts, **fields):
    records = []
    for text in texts:
        records.append(kept(mem.remember(text, tier="archival", **fields)))
        clock.move(days=1)
    return records


def pairs(mem, **asked):
    return [(each.older.text, each.newer.text) for each in mem.contradictions(**asked).items]


@pytest.mark.parametrize(
    ("texts", "differs"),
    [
        (PORTS, "number"),
        (("the lease in Lyon ends on 1 May 2027", "the lease in Lyon ends on 1 June 2027"), "date"),
        (("the key is kept by Ana Silva", "the key is kept by Ben Silva"), "name"),
        (("the shop is open on Sunday mornings", "the shop is not open on Sunday mornings"), "negation"),
    ],
)
def test_a_pair_names_what_differs(owner, clock, texts, differs):
    tell(owner, clock, texts[0], "Ana drinks coffee", texts[1])
    (pair,) = owner.contradictions().items
    assert ((pair.older.text, pair.newer.text), differs in pair.differs) == (texts, True)


def test_pairs_are_the_merge_candidates_that_differ(owner, clock):
    tell(owner, clock, *PORTS, "the shop closes at nine today", "the shop closes at ten today")
    candidates = {frozenset((each.first.text, each.second.text)) for each in owner.merge_candidates(floor=0.6)}
    assert {frozenset(pair) for pair in pairs(owner)} == candidates


def test_which_of_two_is_older_goes_by_when_it_happened(owner, clock):
    tell(owner, clock, PORTS[0], occurred_at="2026-02-02T09:00:00Z")
    tell(owner, clock, PORTS[1], occurred_at="2026-02-01T09:00:00Z")
    assert pairs(owner) == [(PORTS[1], PORTS[0])]


def test_the_closest_pair_comes_first_and_the_rest_are_counted(owner, clock):
    tell(owner, clock, *PORTS, "the shop closes at nine today", "the shop closes at ten today")
    found = owner.contradictions()
    assert [each.score for each in found.items] == sorted((each.score for each in found.items), reverse=True)
    assert (owner.contradictions(limit=1).items, owner.contradictions(limit=1).total) == (found.items[:1], 2)


def test_what_is_inactive_is_in_no_pair(owner, clock):
    first, _ = tell(owner, clock, *PORTS)
    owner.forget(first.id, reason="old")
    assert pairs(owner) == []


def test_agent_sees_no_pair_that_its_recall_would_hide(owner, clock):
    agent = owner.as_actor(Actor.agent("lyra"))
    tell(owner, clock, PORTS[0], sensitivity="sensitive")
    tell(owner, clock, PORTS[1], sensitivity="sensitive")
    tell(owner.at(scope="/agents/orion"), clock, "the lift runs on port 7000", "the lift runs on port 7001")
    assert (pairs(agent), pairs(owner, include_sensitive=True)) == ([], [PORTS])
    with pytest.raises(Unauthorised):
        agent.contradictions(include_sensitive=True)


def test_filters_narrow_both_sides(owner, clock):
    tell(owner, clock, *PORTS, subject="api")
    assert (pairs(owner, subject="api"), pairs(owner, subject="gateway")) == ([PORTS], [])


def test_a_limit_is_at_least_one(owner):
    with pytest.raises(InvalidInput):
        owner.contradictions(limit=0)
