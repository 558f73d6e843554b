"""Time expressions resolved against the day they were said, as words that a question would use.

Invariants
(1) pure: no clock; the day of reference is an argument.
(2) a phrase is as exact as the expression: a day ("7 May 2023"), a month ("April 2023") or a year ("2022");
    weeks give the month they mostly lie in.
(3) English expressions and ISO dates; other languages give nothing, never something wrong.
"""

import re
from datetime import UTC, date, datetime, timedelta
from typing import Final

MONTHS: Final = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
WEEKDAYS: Final = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_COUNTS: Final = {
    word: n
    for n, words in enumerate(("", "a an one", "two couple", "three few", "four", "five", "six", "seven"))
    for word in words.split()
}
_EXPRESSION: Final = re.compile(
    r"(?P<iso>\b[0-9]{4}-[0-9]{2}-[0-9]{2}\b)"
    r"|\b(?P<near>day before yesterday|yesterday|last night|today|tonight|this morning|tomorrow)\b"
    rf"|\b(?P<which>last|this|next)\s+(?P<unit>week|weekend|month|year|{'|'.join(WEEKDAYS)})\b"
    r"|\b(?P<count>[0-9]{1,3}|" + "|".join(_COUNTS) + r")\s+(?:of\s+)?(?P<span>day|week|month|year)s?\s+ago\b",
    re.IGNORECASE,
)
_NEAR: Final = {"day before yesterday": -2, "yesterday": -1, "last night": -1, "tomorrow": 1}
_SHIFT: Final = {"last": -1, "this": 0, "next": 1}


def day_of(instant: int) -> date:
    """The UTC day of an instant in microseconds since the epoch; clipped to the years 1 to 9999."""
    try:
        return (_EPOCH + timedelta(microseconds=instant)).date()
    except OverflowError:
        return date.max if instant > 0 else date.min


def phrase(day: date) -> str:
    """`7 May 2023`."""
    return f"{day.day} {_month(day)}"


def _month(day: date) -> str:
    return f"{MONTHS[day.month - 1]} {day.year}"


def _months_from(day: date, months: int) -> date:
    count = day.year * 12 + day.month - 1 + months
    return date(count // 12, count % 12 + 1, 1)


def _shifted(unit: str, shift: int, said: date) -> str:
    if unit == "year":
        return str(date(said.year + shift, 1, 1).year)
    if unit == "month":
        return _month(_months_from(said, shift))
    if unit == "week":
        return _month(said + timedelta(days=7 * shift))
    if unit == "weekend":
        monday = said - timedelta(days=said.weekday())
        return phrase(monday + timedelta(days=5 + 7 * shift))
    wanted = WEEKDAYS.index(unit)
    if shift < 0:
        return phrase(said - timedelta(days=(said.weekday() - wanted - 1) % 7 + 1))
    return phrase(said + timedelta(days=(wanted - said.weekday() - (1 if shift else 0)) % 7 + (1 if shift else 0)))


def _resolved(found: re.Match[str], said: date) -> str:
    if found["iso"]:
        return phrase(date.fromisoformat(found["iso"]))
    if found["near"]:
        return phrase(said + timedelta(days=_NEAR.get(found["near"].lower(), 0)))
    if found["which"]:
        return _shifted(found["unit"].lower(), _SHIFT[found["which"].lower()], said)
    count = int(found["count"]) if found["count"].isdigit() else _COUNTS[found["count"].lower()]
    span = found["span"].lower()
    if span == "day":
        return phrase(said - timedelta(days=count))
    return _shifted(span, -count, said)


def resolve(text: str, said_at: int) -> list[str]:
    """Dates meant by the time expressions of a text said at this instant (microseconds since the epoch).

    In order of first mention, each once; dates outside the calendar are left out.
    """
    said = day_of(said_at)
    phrases: dict[str, None] = {}
    for found in _EXPRESSION.finditer(text):
        try:
            phrases[_resolved(found, said)] = None
        except (ValueError, OverflowError):
            # "2023-02-31", "9000 years ago": no such day, so there is nothing to add.
            continue
    return list(phrases)


def spelled_out(text: str, said_at: int) -> str:
    """The text with every relative time expression replaced by the date that it means, such as "on 7 May 2023"."""
    said = day_of(said_at)

    def date_of(found: re.Match[str]) -> str:
        if found["iso"]:
            return found[0]
        try:
            meant = _resolved(found, said)
        except (ValueError, OverflowError):
            return found[0]
        return f"{'on' if meant[0].isdigit() and ' ' in meant else 'in'} {meant}"

    return _EXPRESSION.sub(date_of, text)
