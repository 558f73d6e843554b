"""The days that a question names: "in May 2023", "am 3. Mai", "l'été dernier", "2023年5月".

Invariants
(1) Pure: what "last" and "this" mean is reckoned from the instant of asking; days are those of UTC.
(2) Without a year a month, a season or a day is that of any year.
(3) A word that may be something else names nothing by itself, see `words.toml`.
(4) Seasons are those of the north, winter begins in December.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from datetime import date
from functools import cache
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from keepward.model.patterns import regex
from keepward.retrieval import units
from keepward.retrieval.analyze import MONTHS, WORDS

_DAY: Final = 86_400_000_000
#: What happened is mostly told of within so many days; such a telling is half as close as one on the day itself.
TOLD_WITHIN: Final = 7
TOLD_LATER: Final = 0.5
#: First months of the seasons, from spring on.
_SEASONS: Final = (3, 6, 9, 12)
_ISO: Final = regex(r"\b(?P<year>[0-9]{4})-(?P<month>[0-9]{2})(?:-(?P<day>[0-9]{2}))?\b")
#: What a year begins with that stands alone.
_CENTURIES: Final = ("19", "20")
_WORD: Final = regex(r"[^\W_]+")
_HAN_DIGITS: Final = {"十": 10, "十一": 11, "十二": 12} | {digit: n for n, digit in enumerate("一二三四五六七八九", 1)}
_HAN: Final = regex(
    r"(?:(?P<year>[0-9]{4})年|(?P<past>去年|昨年)|(?P<this>今年))?[的の]?"
    rf"(?:(?P<month>[0-9]{{1,2}}|{'|'.join(sorted(_HAN_DIGITS, reverse=True))})月(?!間)(?:(?P<day>[0-9]{{1,2}})[日号])?"
    r"|(?P<season>[春夏秋冬])(?P<sure>[天季にの])?)?"
)


class Period(NamedTuple):
    """A day, or whole months."""

    #: None for any.
    year: int | None
    month: int
    #: Of the month, from 1; None for ``months`` whole ones.
    day: int | None
    months: int = 1

    @property
    def phrase(self) -> str:
        """What it is called in the words of a memory, see ``units.phrase``; "" for what has no name there."""
        if self.months not in (1, 12):
            return ""
        name = MONTHS[self.month - 1] if self.months == 1 else None
        return " ".join(str(part) for part in (self.day, name, self.year) if part is not None)


def named_days(text: str, asked_at: int) -> tuple[Period, ...]:
    """Return the periods that a question names, each once, in no order that means anything.

    ``asked_at`` is in microseconds since 1970, UTC. What lies outside the calendar is left out.
    """
    now = units.day_of(asked_at)
    # Phrases of relative expressions are as exact as these: a day, a month, or a year.
    plain = unicodedata.normalize("NFKC", text).casefold()
    lines = [plain, *(f"in {phrase}".casefold() for phrase in units.resolve(text, asked_at))]
    found: dict[Period, None] = {}
    for line in lines:
        for period in _read(line, now):
            found[period] = None
    return tuple(found)


def closeness(periods: Sequence[Period], instants: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """Return by instant 1 within a period, `TOLD_LATER` shortly after, else 0; instants in microseconds since 1970."""
    days = (instants // _DAY).astype("datetime64[D]")
    found = np.zeros(len(instants))
    for period in periods:
        if period.year is None:
            years = days.astype("datetime64[Y]")
            begins = np.where(_begin(period, years) > days, _begin(period, years - 1), _begin(period, years))
        else:
            begins = np.full(len(days), _begin(period, np.array(period.year - 1970).astype("datetime64[Y]")))
        ends = begins + 1 if period.day else (begins.astype("datetime64[M]") + period.months).astype("datetime64[D]")
        within, later = (begins <= days) & (days < ends), (ends <= days) & (days < ends + TOLD_WITHIN)
        found = np.maximum(found, np.where(within, 1.0, np.where(later, TOLD_LATER, 0.0)))
    return found


def _begin(period: Period, years: npt.NDArray[np.datetime64]) -> npt.NDArray[np.datetime64]:
    months = years.astype("datetime64[M]") + (period.month - 1)
    return np.asarray(months.astype("datetime64[D]") + ((period.day or 1) - 1))


def _read(line: str, now: date) -> Iterator[Period]:
    for each in _ISO.finditer(line):
        day = int(each["day"]) if each["day"] else None
        yield from _checked(int(each["year"]), int(each["month"]), day)
    if not line.isascii():
        for each in _HAN.finditer(line):
            yield from _of_han(each, now)
    # Most questions name no day, and are not read seven times to see that.
    said = _WORD.findall(line)
    if not _all_words().isdisjoint(said) or any(len(word) == 4 and word.startswith(_CENTURIES) for word in said):
        for pattern, words in _languages():
            for each in pattern.finditer(line):
                yield from _of_words(each, words, now)


def _checked(year: int | None, month: int, day: int | None, months: int = 1) -> Iterator[Period]:
    try:
        # In a leap year every day of the calendar is there.
        date(2024 if year is None else year, month, day or 1)
    except ValueError:
        return
    yield Period(year, month, day, months)


def _last(now: date, month: int, months: int) -> int:
    """Return the year of the latest such months that are over."""
    over = (now.year - 1) * 12 + now.month >= (now.year - 1) * 12 + month + months
    return now.year if over else now.year - 1


def _of_han(found: re.Match[str], now: date) -> Iterator[Period]:
    if found["month"]:
        month, months = _HAN_DIGITS.get(found["month"]) or int(found["month"]), 1
    elif found["season"] and (found["sure"] or found["year"] or found["past"] or found["this"]):
        month, months = _SEASONS["春夏秋冬".index(found["season"])], 3
    elif found["year"] or found["past"] or found["this"]:
        month, months = 1, 12
    else:
        return
    year = int(found["year"]) if found["year"] else now.year if found["this"] else None
    # "去年" is the year before, whatever of it is over.
    yield from _checked(
        now.year - 1 if found["past"] else year, month, int(found["day"]) if found["day"] else None, months
    )


def _of_words(found: re.Match[str], words: dict[str, tuple[int, int]], now: date) -> Iterator[Period]:
    day, past = found["before"] or found["behind"], found["past"] or found["late"]
    if not (found["lead"] or found["this"] or past or day or found["year"]):
        return
    if found["alone"]:
        yield from _checked(int(found["alone"]), 1, None, 12)
        return
    month, months = words[found["word"]]
    year = int(found["year"]) if found["year"] else now.year if found["this"] else None
    if past and year is None:
        year = _last(now, month, months)
    if not (day and months > 1):
        yield from _checked(year, month, int(day) if day else None, months)


@cache
def _languages() -> list[tuple[re.Pattern[str], dict[str, tuple[int, int]]]]:
    """Return for each language its pattern and, by word, first month and number of months."""
    return [(_pattern(table), dict(_words(table))) for table in WORDS["dates"].values()]


@cache
def _all_words() -> frozenset[str]:
    return frozenset(word for _, words in _languages() for word in words)


def _words(table: dict[str, Any]) -> Iterator[tuple[str, tuple[int, int]]]:
    for month, names in enumerate(table["months"], 1):
        yield from ((name.casefold(), (month, 1)) for name in names.split())
    for month, names in zip(_SEASONS, table["seasons"], strict=True):
        yield from ((name.casefold(), (month, 3)) for name in names.split())


def _pattern(table: dict[str, Any]) -> re.Pattern[str]:
    names = "|".join(re.escape(name) for name, _ in _words(table))
    past = table["past"]
    return regex(
        rf"\b(?:(?P<lead>{table['lead']})|(?P<this>{table['this']}))?(?:(?:the )?(?P<past>{past}) )?"
        r"(?:"
        r"(?:(?P<before>[0-9]{1,2})(?:st|nd|rd|th|er|\.|º|°)? (?:of |de |di )?)?"
        rf"\b(?P<word>{names})\b"
        r"(?: (?P<behind>[0-9]{1,2})(?:st|nd|rd|th)?(?![0-9:]))?"
        rf"(?:,? ?(?:of |de |del |do )?(?P<year>(?:19|20)[0-9]{{2}})\b)?(?: (?P<late>{past})\b)?"
        r"|(?P<alone>(?:19|20)[0-9]{2})\b(?![.:-][0-9])"
        r")"
    )
