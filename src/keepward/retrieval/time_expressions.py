"""Dates in stored texts and in questions: English expressions and ISO dates. Days are UTC.

"yesterday", said on 8 May 2023, resolves to "7 May 2023". A question for "last May" names the period May 2022.
"""

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from keepward.core.patterns import lazy_regex

MONTHS: Final = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
WEEKDAYS: Final = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
#: What an event tells mostly happened within so many days before; such an event scores this share of a direct match.
REPORTED_WITHIN_DAYS: Final = 7
REPORTED_LATER_CLOSENESS: Final = 0.5

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_DAY_US: Final = 86_400_000_000
_DAY = np.timedelta64(1, "D")
_COUNTS: Final = {
    word: n
    for n, words in enumerate(("", "a an one", "two couple", "three few", "four", "five", "six", "seven"))
    for word in words.split()
}
_RELATIVE: Final = lazy_regex(
    # The lookahead skips most words of a long text, which takes a quarter of the time.
    r"\b(?=[0-9acdflnosty])(?:(?P<iso>[0-9]{4}-[0-9]{2}-[0-9]{2}\b)"
    r"|(?P<near>day before yesterday|yesterday|last night|today|tonight|this morning|tomorrow)\b"
    rf"|(?P<which>last|this|next)\s+(?P<unit>week|weekend|month|year|{'|'.join(WEEKDAYS)})\b"
    rf"|(?P<count>[0-9]{{1,3}}|{'|'.join(_COUNTS)})\s+(?:of\s+)?(?P<span>day|week|month|year)s?\s+ago\b)",
    re.IGNORECASE,
)
_DAY_OFFSETS: Final = {"day before yesterday": -2, "yesterday": -1, "last night": -1, "tomorrow": 1}
_SHIFT: Final = {"last": -1, "this": 0, "next": 1}
#: First month and number of months of each word; seasons are those of the northern hemisphere.
_NAMED: Final = {
    **{name.lower(): (n, 1) for n, name in enumerate(MONTHS, 1)},
    **{name[:3].lower(): (n, 1) for n, name in enumerate(MONTHS, 1)},
    "sept": (9, 1),
    "spring": (3, 3),
    "summer": (6, 3),
    "autumn": (9, 3),
    "fall": (9, 3),
    "winter": (12, 3),
}
_ISO: Final = lazy_regex(r"\b(?P<year>[0-9]{4})-(?P<month>[0-9]{2})(?:-(?P<day>[0-9]{2}))?\b")
_PERIOD: Final = lazy_regex(
    r"\b(?:(?P<lead>(?:in|during|over|throughout|since|by|around|of|early|late|mid)(?:[ -](?:the|early|late|mid))*[ -])"
    r"|(?P<this>this ))?(?:(?:the )?(?P<past>last|past) )?"
    rf"(?:(?:(?P<before>[0-9]{{1,2}})(?:st|nd|rd|th)? (?:of )?)?\b(?P<word>{'|'.join(_NAMED)})\b"
    r"(?: (?P<behind>[0-9]{1,2})(?:st|nd|rd|th)?(?![0-9:]))?(?:,? ?(?:of )?(?P<year>(?:19|20)[0-9]{2})\b)?"
    r"|(?P<alone>(?:19|20)[0-9]{2})\b(?![.:-][0-9]))"
)


def day_of(instant: int) -> date:
    """The day of an instant in microseconds since 1970; clipped to the years 1 to 9999."""
    try:
        return (_EPOCH + timedelta(microseconds=instant)).date()
    except OverflowError:
        return date.max if instant > 0 else date.min


def phrase(day: date) -> str:
    """`7 May 2023`."""
    return f"{day.day} {_month(day)}"


def _month(day: date) -> str:
    return f"{MONTHS[day.month - 1]} {day.year}"


def _shifted(unit: str, shift: int, said: date) -> str:
    monday = said - timedelta(days=said.weekday())
    if unit == "year":
        return str(date(said.year + shift, 1, 1).year)
    if unit == "month":
        months = said.year * 12 + said.month - 1 + shift
        return _month(date(months // 12, months % 12 + 1, 1))
    if unit == "week":
        return _month(said + timedelta(days=7 * shift))
    if unit == "weekend":
        return phrase(monday + timedelta(days=5 + 7 * shift))
    wanted = WEEKDAYS.index(unit)
    if shift < 0:
        return phrase(said - timedelta(days=(said.weekday() - wanted - 1) % 7 + 1))
    return phrase(said + timedelta(days=(wanted - said.weekday() - (1 if shift else 0)) % 7 + (1 if shift else 0)))


def _resolved(found: re.Match[str], said: date) -> str:
    if found["iso"]:
        return phrase(date.fromisoformat(found["iso"]))
    if found["near"]:
        return phrase(said + timedelta(days=_DAY_OFFSETS.get(found["near"].lower(), 0)))
    if found["which"]:
        return _shifted(found["unit"].lower(), _SHIFT[found["which"].lower()], said)
    count = int(found["count"]) if found["count"].isdigit() else _COUNTS[found["count"].lower()]
    span = found["span"].lower()
    return phrase(said - timedelta(days=count)) if span == "day" else _shifted(span, -count, said)


def resolve(text: str, said_at: int) -> list[str]:
    """Dates that the expressions of a text mean, said at this instant (microseconds since 1970).

    In order of first mention, each once: a day ("7 May 2023"), a month ("April 2023", also for a week) or a year.
    Dates outside the calendar are left out.
    """
    said = day_of(said_at)
    phrases: dict[str, None] = {}
    for found in _RELATIVE.finditer(text):
        try:
            phrases[_resolved(found, said)] = None
        except (ValueError, OverflowError):
            continue  # "2023-02-31", "9000 years ago": there is no such day.
    return list(phrases)


def spell_out_dates(text: str, said_at: int) -> str:
    """The text with every relative expression replaced by the date that it means, such as "on 7 May 2023"."""
    said = day_of(said_at)

    def date_of(found: re.Match[str]) -> str:
        try:
            meant = "" if found["iso"] else _resolved(found, said)
        except (ValueError, OverflowError):
            meant = ""
        return f"{'on' if meant[0].isdigit() and ' ' in meant else 'in'} {meant}" if meant else found[0]

    return _RELATIVE.sub(date_of, text)


class Period(NamedTuple):
    """A day or whole months that a question names."""

    #: None for any year.
    year: int | None
    month: int
    #: Of the month, from 1; None for ``months`` whole ones.
    day: int | None
    months: int = 1

    @property
    def phrase(self) -> str:
        """Its words as `phrase` writes them; "" for a season."""
        if self.months not in (1, 12):
            return ""
        name = MONTHS[self.month - 1] if self.months == 1 else None
        return " ".join(str(part) for part in (self.day, name, self.year) if part is not None)


def named_days(text: str, asked_at: int) -> tuple[Period, ...]:
    """Return the periods that a question names, asked at this instant (microseconds since 1970), each once."""
    now = day_of(asked_at)
    lines = [text.casefold(), *(f"in {each}".casefold() for each in resolve(text, asked_at))]
    return tuple(dict.fromkeys(each for line in lines for each in _periods(line, now)))


def _periods(line: str, now: date) -> Iterator[Period]:
    for found in _ISO.finditer(line):
        yield from _checked(int(found["year"]), int(found["month"]), int(found["day"]) if found["day"] else None)
    for found in _PERIOD.finditer(line):
        day, past = found["before"] or found["behind"], found["past"]
        # "may" and "spring" alone are something else mostly.
        if not (found["lead"] or found["this"] or past or day or found["year"]):
            continue
        if found["alone"]:
            yield from _checked(int(found["alone"]), 1, None, 12)
            continue
        month, months = _NAMED[found["word"]]
        year = int(found["year"]) if found["year"] else now.year if found["this"] else None
        if past and year is None:
            year = now.year if now.month >= month + months else now.year - 1
        if not (day and months > 1):
            yield from _checked(year, month, int(day) if day else None, months)


def _checked(year: int | None, month: int, day: int | None, months: int = 1) -> Iterator[Period]:
    try:
        date(2024 if year is None else year, month, day or 1)
    except ValueError:
        return
    yield Period(year, month, day, months)


def closeness(periods: Sequence[Period], instants: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """Return 1 for instants (µs since 1970) in a period, `REPORTED_LATER_CLOSENESS` shortly after, else 0."""
    days = (instants // _DAY_US).astype("datetime64[D]")
    found = np.zeros(len(instants))
    for period in periods:
        if period.year is None:
            years = days.astype("datetime64[Y]")
            begins = np.where(
                _begin(period, years) > days, _begin(period, _months_after(years, -12)), _begin(period, years)
            )
        else:
            begins = np.full(len(days), _begin(period, np.array(period.year - 1970).astype("datetime64[Y]")))
        ends = begins + _DAY if period.day else _months_after(begins, period.months)
        within, later = (begins <= days) & (days < ends), (ends <= days) & (days < ends + REPORTED_WITHIN_DAYS * _DAY)
        found = np.maximum(found, np.where(within, 1.0, np.where(later, REPORTED_LATER_CLOSENESS, 0.0)))
    return found


def _begin(period: Period, years: npt.NDArray[np.datetime64]) -> npt.NDArray[np.datetime64]:
    return np.asarray(_months_after(years, period.month - 1) + ((period.day or 1) - 1) * _DAY)


def _months_after(begins: npt.NDArray[np.datetime64], months: int) -> npt.NDArray[np.datetime64]:
    return np.asarray((begins.astype("datetime64[M]") + np.timedelta64(months, "M")).astype("datetime64[D]"))
