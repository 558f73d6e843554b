"""What a query asks for: advice, an action, a name, a time, and whose words."""

from __future__ import annotations

import pytest

from keepward.retrieval.advice import asks_advice, is_advice_or_task, requests_action
from keepward.retrieval.answers import asks_name, time_terms
from keepward.retrieval.preferences import preference_topic, states_preference
from keepward.retrieval.roles import other_roles


def test_task_is_no_request_for_advice() -> None:
    assert [
        text
        for text in ["format this file", "Please write a reply to the landlord", "Create a helper that counts words"]
        if (asks_advice(text), is_advice_or_task(text)) != (False, True)
    ] == []


def test_question_about_the_past_is_no_request_for_advice() -> None:
    cases = [
        "Who wrote Hamlet?",
        "Do whales sleep?",
        "Test results of March?",
        "What did Sam suggest Evan try?",
        "Which book did Tim recommend to John?",
    ]
    assert [text for text in cases if asks_advice(text)] == []


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("How do I move boxes over a long distance?", True),
        ("Would you look this over?", True),
        ("What should I cook?", True),
        ("How did you advise me to pack?", False),
        ("Could you tell whether Ana called?", False),
        ("Who wrote Hamlet?", False),
    ],
)
def test_request_for_action_differs_from_question(text: str, asked: bool) -> None:
    assert requests_action(text) is asked


@pytest.mark.parametrize(
    ("text", "other"),
    [
        ("Which loaf did you suggest for my sister?", "user"),
        ("What were your recommendations?", "user"),
        ("How far do I cycle to work?", "assistant"),
        ("What would you recommend for me?", "assistant"),
        ("What did Anna suggest to Tom?", ""),
    ],
)
def test_question_says_who_did_not_say_the_answer(text: str, other: str) -> None:
    roles = other_roles(text)
    assert (other in roles) if other else not roles


@pytest.mark.parametrize(
    ("text", "name", "time"),
    [
        ("Where does Ana live?", True, False),
        ("Which books has Ana read?", True, False),
        ("What is her dog called?", True, False),
        ("When did Ana move?", False, True),
        ("In which month was the fair?", False, True),
        ("How is Ana?", False, False),
    ],
)
def test_question_asks_for_a_name_or_a_time(text: str, name: bool, time: bool) -> None:
    assert (asks_name(text), bool(time_terms(text))) == (name, time)


def test_preference_is_recognised() -> None:
    cases = [
        "From now on answer in German",
        "Always reply with bullet points",
        "I strongly dislike spicy food",
        "We are allergic to nuts",
        "My favourite drink is tea",
        "Please keep it short, never more than three lines",
    ]
    assert [text for text in cases if not states_preference(text)] == []


def test_subject_of_a_preference_is_what_remains_of_it() -> None:
    assert (preference_topic("I strongly dislike spicy food"), preference_topic("I love it")) == ("spicy food", None)
