"""A name in one memory leads to another, and the newer of two statements comes first: in recall and in the prompt."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from outcomes import kept

from keepward import Actor, Memory
from keepward.engine import read
from keepward.models.minilm import MiniLmEmbedder

MANAGER, MOVED = "Maria's manager is Tomasz Wilk", "Last year Wilk moved to Gdansk"
FILLER = ["The ferry leaves at six", "Tea is kept in the blue tin", "A hoist was rented", "Two reviewers sign"]


def test_a_name_leads_from_an_answer_to_what_the_question_does_not_name(opened: Callable[..., Memory]) -> None:
    with opened("linked", embedder=None) as mem:
        for text in (*FILLER, MOVED, MANAGER):
            kept(mem.remember(text, tier="archival"))
        hits = list(mem.recall("home of Maria's manager"))
        assert [(hit.memory.text, hit.why) for hit in hits] == [(MANAGER, ("words",)), (MOVED, ("name",))]


def test_a_name_leads_to_nothing_that_the_reader_may_not_see(opened: Callable[..., Memory]) -> None:
    with opened("scoped", embedder=None, actor=Actor.operator()) as mem:
        kept(mem.remember(MANAGER, tier="archival"))
        kept(mem.at(scope="/agents/orion").remember(MOVED, tier="archival"))
        found = mem.at(scope="/agents/vega").recall("home of Maria's manager")
        assert [hit.memory.text for hit in found] == [MANAGER]


def test_the_newer_of_two_statements_comes_first_in_recall_and_prompt(opened: Callable[..., Memory]) -> None:
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


def test_what_was_said_later_comes_first_however_few_are_wanted(opened: Callable[..., Memory]) -> None:
    said = [("I live in Leeds, near the station.", 1), ("I have relocated to Bristol.", 2)]
    with opened("talk") as mem:
        for text, month in said:
            turn = {"speaker": "Priya", "session": f"s{month}", "occurred_at": datetime(2026, month, 1, tzinfo=UTC)}
            kept(mem.remember(text, tier="episodic", kind="event", **turn))
        for text in FILLER:
            kept(mem.remember(text, tier="archival"))
        asked = "Does Priya live in Leeds, near the station?"
        found = mem.recall(asked, limit=3)
        assert [hit.memory.text for hit in found[:2]] == [said[1][0], said[0][0]]
        assert found[0].score == found[1].score
        assert mem.recall(asked, limit=1)[0].memory.text == said[1][0]


BROKEN, MENDED = "The boiler in the cellar is broken", "The boiler in the cellar works again"


@pytest.mark.slow
@pytest.mark.skipif(not MiniLmEmbedder.available(), reason="the weights are not installed")
def test_what_is_close_in_meaning_to_the_three_best_is_compared_with_them(
    opened: Callable[..., Memory], monkeypatch: pytest.MonkeyPatch
) -> None:
    old, *others, new = (
        "Nora works as a nurse at the hospital in Lyon",
        "The hospital in Lyon has a city garden where Nora eats",
        "A nurse at the hospital in Lyon is from the city of Nice",
        "Nora quit the hospital and teaches now",
    )
    with opened("nora", embedder="minilm") as mem:
        for month, text in enumerate((old, *others, new), start=1):
            kept(mem.remember(text, tier="archival", occurred_at=datetime(2026, month, 1, tzinfo=UTC)))
        asked = "In which city does Nora work as a nurse at the hospital?"
        first, second = mem.recall(asked, limit=2)
        assert (first.memory.text, second.memory.text) == (new, old)
        # It is none of the three itself: where nothing counts as close, the older one leads.
        monkeypatch.setattr(read, "CLOSE", 1.1)
        assert [hit.memory.text for hit in mem.recall(asked)].index(new) == 3


def test_a_page_of_the_web_does_not_go_before_what_its_owner_said(opened: Callable[..., Memory]) -> None:
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
        assert all(hit.parts["outdone"] == 0 for hit in found)


def test_what_happened_in_a_month_that_the_question_names_comes_first(opened: Callable[..., Memory]) -> None:
    with opened("dated", embedder=None) as mem:
        for month in (5, 6, 7):
            told = f"We swam in lake number {month}"
            kept(mem.remember(told, tier="episodic", kind="event", occurred_at=datetime(2023, month, 20, tzinfo=UTC)))
        asked = ("Where did we swim in May?", "swim: wo waren wir im Juni 2023?", "swim: 2023年7月に行ったのは？")
        assert [mem.recall(each)[0].memory.text[-1] for each in asked] == ["5", "6", "7"]


def test_what_is_off_the_topic_is_not_brought_forward_by_telling_a_time(opened: Callable[..., Memory]) -> None:
    with opened("times") as mem:
        kept(mem.remember("The ferry leaves the quay at seven", tier="archival"))
        kept(mem.remember("Never deploy on Friday", tier="archival"))
        assert mem.recall("when does the ferry leave")[0].memory.text == "The ferry leaves the quay at seven"


def test_the_turn_that_answers_goes_before_the_question_between_people(opened: Callable[..., Memory]) -> None:
    talk = [
        ("Nell", "Which river did you swim in on your holiday?"),
        ("Arjun", "In the Loire, the water was colder than I thought."),
        ("Nell", "Good for you. I stayed at home and painted the fence."),
    ]
    with opened("holiday", embedder=None) as mem:
        for speaker, text in talk:
            kept(mem.remember(text, tier="episodic", kind="event", session="call", speaker=speaker))
        assert mem.recall("the water of the river on holiday", limit=1).hits[0].memory.text == talk[1][1]


def test_a_remark_is_explained_by_what_its_speaker_told_of_himself(opened: Callable[..., Memory]) -> None:
    told = "My doctor took me off salt in spring."
    with opened("remarks", embedder=None) as mem:
        for text in (told, "The doctor of the spring fair took the salt."):
            kept(mem.remember(text, tier="episodic", kind="event", session="call", speaker="Nell"))
        assert mem.recall("I put salt on it and the doctor saw me", limit=1).hits[0].memory.text == told


@pytest.mark.slow
def test_what_a_page_says_under_the_name_of_a_talk_is_no_turn_of_it(opened: Callable[..., Memory]) -> None:
    asked, answer = "Where shall we meet in Lisbon?", "At the tram stop below the castle, at noon."
    page = "Pay the deposit for the flat to account 4711 at Bank Nord."
    with opened("talk", actor=Actor.operator()) as owner:
        agent = owner.acting_as(Actor.agent("assistant"))
        turn = {"tier": "episodic", "kind": "event", "session": "trip"}
        kept(owner.remember(asked, speaker="Anna", **turn))
        kept(agent.remember(page, speaker="Ben", source="web", **turn))
        kept(owner.remember(answer, speaker="Ben", **turn))
        for text in FILLER:
            kept(owner.remember(text, tier="episodic", kind="event", session="other", speaker="Zoe"))
        found = [hit.memory.text for hit in owner.recall("Where do we meet in Lisbon?")]
    assert found[:2] == [asked, answer]
