"""Contradictions of a part of the memories are those of the whole store that lie in that part, most alike first."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from keepward import InvalidInput, Memory
from keepward.core.memory import ContentType, Kind, Sensitivity, Tier
from keepward.core.principals import Trust
from keepward.jobs import contradictions
from support.bulk_data import put_records

ON_BOTH_DATABASES = True
DAY = timedelta(days=1)
#: Fields of two of the memories in each group; the other two have those that tests give by default.
GROUPS: list[dict[str, Any]] = [
    {},
    {"subject": "Ana"},
    {"tier": Tier.EPISODIC},
    {"kind": Kind.STATE},
    {"category": "mill"},
    {"session": "morning"},
    {"tags": ("rye", "mill")},
    {"content_type": ContentType.IMAGE},
    {"source": "web", "trust": Trust.WEB},
    {"sensitivity": Sensitivity.SENSITIVE},
    {"scope": "/agents/orion"},
    {"metadata_json": '{"city":"Linz"}'},
    {"importance": 0.9},
]
FILTERS: list[dict[str, Any]] = [
    {},
    {"subject": "Ana"},
    {"subject": "nobody"},
    {"tiers": ["episodic"]},
    {"kinds": ["state"]},
    {"category": "mill"},
    {"session": "morning"},
    {"tags": ["rye"]},
    {"content_types": ["image"]},
    {"include_sensitive": True},
    {"within": "/agents/orion"},
    {"where": {"city": "Linz"}},
    {"min_importance": 0.8},
]


@pytest.fixture
def mill(owner: Memory, clock: Any) -> Memory:
    """Return a store with groups of four nearly equal texts, of which the last two have a field more."""
    for group, fields in enumerate(GROUPS):
        for more in ({}, fields):
            for number in range(2):
                # Each group has words of its own, so that its memories are compared with one another alone.
                words = [
                    f"{word}{chr(ord('a') + group)}" for word in ("mill", "river", "grind", "sack", "rye", "house")
                ]
                text = f"{' '.join(words)} {number + 2 * bool(more)}"
                clock.move(days=1)
                put_records(owner, [text], **more)
    return owner


def pairs(found: Any) -> list[tuple[str, str, tuple[str, ...], float]]:
    return [(each.older.text, each.newer.text, each.differs, each.score) for each in found.items]


@pytest.mark.parametrize("asked", FILTERS, ids=str)
def test_filter_gives_the_pairs_of_the_store_that_pass_it(mill: Memory, asked: dict[str, Any]) -> None:
    wide = {key: asked[key] for key in ("within",) if key in asked} | {"include_sensitive": True}
    every = mill.contradictions(limit=100, **wide)
    passing = {record.id for record in mill.list_memories(limit=None, **{"include_sensitive": False, **asked})}
    both = [each for each in every.items if {each.older.id, each.newer.id} <= passing]
    found = mill.contradictions(limit=100, **asked)
    assert (found.total, found.compared, list(found.items)) == (len(both), len(passing), both)
    assert bool(both) is (asked.get("subject") != "nobody")


def test_time_narrows_as_a_list_does(mill: Memory, clock: Any) -> None:
    half: datetime = clock.now() - len(GROUPS) * 2 * DAY
    early, late = mill.contradictions(limit=100, until=half), mill.contradictions(limit=100, since=half)
    assert pairs(early)
    assert pairs(late)
    assert (
        max(each.newer.created_at for each in early.items) < half <= min(each.older.created_at for each in late.items)
    )


def test_most_alike_come_first_and_the_others_are_told(mill: Memory) -> None:
    every = mill.contradictions(limit=100, include_sensitive=True)
    some = mill.contradictions(limit=3, include_sensitive=True)
    scores = [each.score for each in every.items]
    assert scores == sorted(scores, reverse=True)
    assert (pairs(some), some.total, every.notes) == (pairs(every)[:3], every.total, ())
    assert some.notes == (
        f"{every.total - 3} more pairs are not listed; ask for a part of the memories, such as those about one subject",
    )


def test_at_most_a_hundred_pairs_are_listed(owner: Memory) -> None:
    put_records(owner, [f"The mill at the river grinds {n} sacks of rye a day for the house." for n in range(60)])
    with pytest.raises(InvalidInput, match="100"):
        owner.contradictions(limit=101)
    found = owner.contradictions(limit=100)
    assert (len(found.items), found.total > 100) == (100, True)
    # Each was compared with the newest of those that share its words, so the total is not of all pairs.
    assert [note.split(":")[0] for note in found.notes][1:] == [
        "many memories share their words, and each was compared with the newest of them, in all 1,588 pairs"
    ]
    few = owner.contradictions(subject="nobody")
    assert (few.items, few.notes) == ((), ())


def test_near_equal_texts_are_compared_up_to_a_bound_that_is_told(
    owner: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_records(owner, [f"The mill at the river grinds {n} sacks of rye a day for the house." for n in range(60)])
    every = owner.contradictions()
    monkeypatch.setattr(contradictions, "MAX_COMPARISONS", 240)
    found = owner.contradictions()
    assert (found.is_partial, 0 < found.total < every.total) == (True, True)
    note = next(note for note in found.notes if "in all" in note)
    # Each memory is compared with a few in any case, and the last may be with all that share its words.
    assert int(note.split("in all ")[1].split()[0]) <= 300
    assert not owner.contradictions(subject="nobody").is_partial
