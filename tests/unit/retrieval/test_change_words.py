"""Whether a text tells of a change, or says what is to be heeded."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keepward.retrieval.analyze import tells_change, tells_wish


@pytest.mark.parametrize(
    "text",
    [
        "Priya moved: she now sits on the fifth floor",
        "The landlord raised the rent",
        "We decided against green",
        "From this month a single reviewer is enough",
        "Das Treffen wurde auf Freitag verschoben",
        "Elle a déménagé à Lyon",
        "La oficina se mudó a Sevilla",
        "会议改到了周五",
        "会議は金曜日に変更です",
    ],
)
def test_a_change_is_told(text: str) -> None:
    assert tells_change(text)


@pytest.mark.parametrize(
    "text", ["The rent is 900 euros", "Ana sits on the first floor", "I know nothing", "妹は看護師です", ""]
)
def test_nothing_is_told_of_a_change(text: str) -> None:
    assert not tells_change(text)


@pytest.mark.parametrize(
    "text",
    [
        "It works now. Please always name the version you mean.",
        "When you write me a plan, put it into a table",
        "And never mention the price to me!",
        "Sign with my initials whenever you draft a mail",
        "Answer me in Portuguese, it is quicker",
        "Use metric units with us",
        "Please send at most three links",
        "Thanks. Don't suggest flights",
        "Call me Bea",
        "I don't like coriander",
        "I am badly allergic to bees",
        "Ab jetzt bitte ohne Anrede",
        "Je préfère le train",
        "No soporto el ruido",
        "以后请用中文回答",
    ],
)
def test_a_wish_is_told(text: str) -> None:
    assert tells_wish(text)


@pytest.mark.parametrize(
    "text",
    [
        "Could you explain how to seal it?",
        "The train was late",
        "Is it always so?",
        "They answer in Portuguese",
        "He came with me to use the lift",
        "",
    ],
)
def test_nothing_is_told_of_a_wish(text: str) -> None:
    assert not tells_wish(text)


@given(st.text(max_size=80))
def test_no_text_makes_it_raise(text: str) -> None:
    assert {tells_change(text), tells_wish(text)} <= {True, False}
