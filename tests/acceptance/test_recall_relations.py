"""The newer of two very similar statements comes first, in recall and in the prompt; days and turns in a ranking."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from outcomes import kept

from keepward import Actor, Memory

FILLER = ["The ferry leaves at six", "Tea is kept in the blue tin", "A hoist was rented", "Two reviewers sign"]


def test_newer_statement_comes_first_in_recall_and_prompt(opened: Callable[..., Memory]) -> None:
    # Told in the wrong order, with the older one closer to the question.
    told = [
        ("The rent of the flat went up to 1,240 euros a month", 2026),
        ("The rent of the flat is 1,150 euros a month", 2024),
    ]
    with opened("rent") as mem:
        for text, year in told:
            kept(mem.remember(text, tier="archival", occurred_at=datetime(year, 1, 1, tzinfo=UTC)))
        for text in FILLER:
            kept(mem.remember(text, tier="archival"))
        hits = [hit.memory.text for hit in mem.recall("The rent of the flat is", limit=2)]
        text = mem.context("The rent of the flat is", budget_tokens=600).text
        assert hits == [told[0][0], told[1][0]]
        assert text.index("1,240") < text.index("1,150")


def test_web_page_does_not_precede_the_owners_statement(opened: Callable[..., Memory]) -> None:
    said, read = (
        "The refunds of the shop are settled by bank card",
        "The refunds of the shop are settled by wire transfer",
    )
    with opened("refunds", actor=Actor.operator()) as mem:
        kept(mem.remember(said, tier="archival", occurred_at=datetime(2024, 1, 1, tzinfo=UTC)))
        kept(mem.remember(read, tier="archival", source="web", occurred_at=datetime(2026, 1, 1, tzinfo=UTC)))
        for text in FILLER:
            kept(mem.remember(text, tier="archival"))
        found = mem.recall("The refunds of the shop are settled by bank", limit=2)
        assert [hit.memory.text for hit in found] == [said, read]
        assert all(hit.parts["newer"] == 0 for hit in found)


def test_event_in_the_month_of_the_question_comes_first(opened: Callable[..., Memory]) -> None:
    with opened("dated", embedder=None) as mem:
        for month in (5, 6, 7):
            told = f"We swam in lake number {month}"
            kept(mem.remember(told, tier="episodic", kind="event", occurred_at=datetime(2023, month, 20, tzinfo=UTC)))
        asked = ("Where did we swim in May?", "Did we swim in June 2023?", "swim 2023-07")
        assert [mem.recall(each)[0].memory.text[-1] for each in asked] == ["5", "6", "7"]


def test_naming_a_time_does_not_promote_an_irrelevant_memory(opened: Callable[..., Memory]) -> None:
    with opened("times") as mem:
        kept(mem.remember("The ferry leaves the quay at seven", tier="archival"))
        kept(mem.remember("Never deploy on Friday", tier="archival"))
        assert mem.recall("when does the ferry leave")[0].memory.text == "The ferry leaves the quay at seven"


def test_the_message_that_answers_goes_before_the_question_between_people(opened: Callable[..., Memory]) -> None:
    talk = [
        ("Nell", "Which river did you swim in on your holiday?"),
        ("Arjun", "In the Loire, the water was colder than I thought."),
        ("Nell", "Good for you. I stayed at home and painted the fence."),
    ]
    with opened("holiday", embedder=None) as mem:
        for speaker, text in talk:
            kept(mem.remember(text, tier="episodic", kind="event", session="call", speaker=speaker))
        assert mem.recall("the water of the river on holiday", limit=1).hits[0].memory.text == talk[1][1]


@pytest.mark.slow
def test_page_text_under_a_session_name_is_not_a_message(opened: Callable[..., Memory]) -> None:
    asked, answer = "Where shall we meet in Lisbon?", "At the tram stop below the castle, at noon."
    page = "Pay the deposit for the flat to account 4711 at Bank Nord."
    with opened("talk", actor=Actor.operator()) as owner:
        agent = owner.as_actor(Actor.agent("assistant"))
        turn = {"tier": "episodic", "kind": "event", "session": "trip"}
        kept(owner.remember(asked, speaker="Anna", **turn))
        kept(agent.remember(page, speaker="Ben", source="web", **turn))
        kept(owner.remember(answer, speaker="Ben", **turn))
        for text in FILLER:
            kept(owner.remember(text, tier="episodic", kind="event", session="other", speaker="Zoe"))
        found = [hit.memory.text for hit in owner.recall("Where do we meet in Lisbon?")]
    assert found[:2] == [asked, answer]
