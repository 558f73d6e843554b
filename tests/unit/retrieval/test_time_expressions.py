"""Time expressions resolved against Monday, 8 May 2023."""

import pytest

from keepward.retrieval import units

MAY_8 = 1_683_554_160_000_000


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("yesterday", "7 May 2023"),
        ("the day before yesterday", "6 May 2023"),
        ("Last night", "7 May 2023"),
        ("tomorrow", "9 May 2023"),
        ("last Saturday", "6 May 2023"),
        ("last Monday", "1 May 2023"),
        ("this Friday", "12 May 2023"),
        ("next Monday", "15 May 2023"),
        ("last weekend", "6 May 2023"),
        ("a few days ago", "5 May 2023"),
        ("two weeks ago", "April 2023"),
        ("last month", "April 2023"),
        ("a couple of months ago", "March 2023"),
        ("next year", "2024"),
        ("3 years ago", "2020"),
        ("on 2023-02-03", "3 February 2023"),
    ],
)
def test_an_expression_means_a_date(text: str, meant: str) -> None:
    assert units.resolve(text, MAY_8) == [meant]


@pytest.mark.parametrize("text", ["2023-02-31", "9000 years ago", "0 years hence", "gestern"])
def test_what_is_no_date_means_nothing(text: str) -> None:
    assert units.resolve(text, MAY_8) == []


def test_a_date_meant_twice_is_given_once() -> None:
    assert units.resolve("yesterday, I said yesterday", MAY_8) == ["7 May 2023"]


@pytest.mark.parametrize("instant", [10**19, -(10**19)])
def test_an_instant_outside_the_calendar_is_clipped(instant: int) -> None:
    assert units.resolve("tea", instant) == []


def test_the_dates_a_turn_speaks_of_are_indexed() -> None:
    assert units.around("I ran yesterday", created_at=MAY_8).split("\n") == ["8 May 2023", "7 May 2023"]
