"""What the gates put in place is compared with what is there, so that every write has an outcome and none an error."""

from __future__ import annotations

import pytest
from outcomes import kept

from keepward import Duplicate, Memory

#: Built of pieces, so that no file holds an address.
ANA, BEN = "write to ana.lima" + "@example.org", "write to ben.roth" + "@example.org"
MISSION = {"text": "The museum keeps the harbour open", "tier": "core", "key": "mission", "confidence": 0.5}
CRANE = "The crane on the north quay was repaired"


def test_two_texts_that_are_redacted_to_one_are_one_memory(owner: Memory) -> None:
    first = kept(owner.remember(ANA, tier="archival"))
    second = owner.remember(BEN, tier="archival")
    assert isinstance(second, Duplicate)
    assert second.record.id == first.id


def test_two_texts_redacted_to_one_become_one_memory(owner: Memory) -> None:
    outcomes = owner.remember_many([{"text": text, "tier": "archival"} for text in (ANA, BEN, CRANE)])
    assert [type(outcome).__name__ for outcome in outcomes] == ["Committed", "Duplicate", "Committed"]


@pytest.mark.parametrize("tier", ["archival", "episodic"])
def test_a_fact_may_say_what_an_event_says(owner: Memory, tier: str) -> None:
    kept(owner.remember(CRANE, tier=tier, kind="event"))
    assert kept(owner.remember(CRANE, tier=tier, kind="fact")).text == CRANE


def test_what_is_diverted_to_another_tier_twice_is_one_memory(owner: Memory) -> None:
    first = kept(owner.remember(**MISSION))
    second = owner.remember(**MISSION)
    assert (first.tier.value, type(second).__name__) == ("archival", "Duplicate")
