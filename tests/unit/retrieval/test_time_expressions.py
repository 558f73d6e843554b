"""Time expressions resolved against Monday, 8 May 2023."""

from datetime import UTC, datetime

import numpy as np
import pytest

from keepward.retrieval import chunking
from keepward.retrieval.time_expressions import Period, closeness, named_days, resolve

MAY_8 = 1_683_554_160_000_000


def at(*days: str) -> np.ndarray:
    noons = [datetime.fromisoformat(f"{day}T12:00").replace(tzinfo=UTC) for day in days]
    return np.array([int(noon.timestamp()) * 1_000_000 for noon in noons], dtype=np.int64)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("yesterday", "7 May 2023"),
        ("Last night", "7 May 2023"),
        ("last Saturday", "6 May 2023"),
        ("next Monday", "15 May 2023"),
        ("a few days ago", "5 May 2023"),
        ("two weeks ago", "April 2023"),
        ("a couple of months ago", "March 2023"),
        ("3 years ago", "2020"),
        ("on 2023-02-03", "3 February 2023"),
    ],
)
def test_an_expression_means_a_date(text: str, meant: str) -> None:
    assert resolve(text, MAY_8) == [meant]


def test_what_is_no_date_means_nothing() -> None:
    assert [text for text in ["2023-02-31", "9000 years ago", "0 years hence", "gestern"] if resolve(text, MAY_8)] == []


def test_a_date_meant_twice_is_given_once() -> None:
    assert resolve("yesterday, I said yesterday", MAY_8) == ["7 May 2023"]


def test_an_instant_outside_the_calendar_is_clipped() -> None:
    assert [instant for instant in [10**19, -(10**19)] if resolve("tea", instant)] == []


def test_the_dates_a_message_speaks_of_are_indexed() -> None:
    assert chunking.indexed_metadata("I ran yesterday", created_at=MAY_8).split("\n") == ["8 May 2023", "7 May 2023"]


@pytest.mark.parametrize(
    ("question", "meant"),
    [
        ("What did I do in May?", (None, 5, None, 1)),
        ("Who came on May 3, 2022?", (2022, 5, 3, 1)),
        ("What happened last spring?", (2022, 3, None, 3)),
        ("What did I buy last April?", (2023, 4, None, 1)),
        ("What did I plant in mid-August 2022?", (2022, 8, None, 1)),
        ("What did I eat yesterday?", (2023, 5, 7, 1)),
    ],
)
def test_a_question_names_days(question: str, meant: tuple[int | None, int, int | None, int]) -> None:
    assert named_days(question, MAY_8) == (Period(*meant),)


def test_a_word_that_may_be_something_else_names_no_day() -> None:
    assert [
        question
        for question in ["May I go?", "What did April say?", "Is it spring water?", "30 February"]
        if named_days(question, MAY_8) != ()
    ] == []


def test_day_and_month_without_a_year_match_any_year() -> None:
    days = at("2021-05-31", "2023-05-01", "2023-04-30", "2023-06-08")
    assert closeness(named_days("in May", MAY_8), days).tolist() == [1.0, 1.0, 0.0, 0.0]


def test_a_winter_goes_on_into_the_next_year() -> None:
    days = at("2022-12-01", "2023-02-28", "2023-03-10", "2022-02-28")
    assert closeness(named_days("in winter 2022", MAY_8), days).tolist() == [1.0, 1.0, 0.0, 0.0]


def test_event_within_a_week_after_is_half_as_close() -> None:
    days = at("2022-05-02", "2022-05-03", "2022-05-04", "2022-05-10", "2022-05-11")
    assert closeness(named_days("on 3 May 2022", MAY_8), days).tolist() == [0.0, 1.0, 0.5, 0.5, 0.0]
