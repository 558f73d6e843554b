"""What values of every sort share: plain JSON, instants and durations, names that are chosen from a list, and words.

Instants are aware UTC datetimes in memory and whole microseconds since 1970 on disk; the two forms convert without
rounding. What was given for a name is never repeated: it may be a secret that went to the wrong place.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Collection, Iterable
from datetime import UTC, datetime, timedelta
from difflib import get_close_matches
from typing import Any, dataclass_transform

import msgspec

from keepward.errors import InvalidInput


class _Frozen(msgspec.StructMeta):
    """Makes each class a frozen Struct whose fields are named where one is made."""

    def __new__(
        mcls,
        name: str,
        bases: tuple[type, ...],
        namespace: dict[str, Any],
        *,
        frozen: bool = True,
        kw_only: bool = True,
        **options: Any,
    ) -> Any:
        return super().__new__(mcls, name, bases, namespace, frozen=frozen, kw_only=kw_only, **options)


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(msgspec.field,))
class Data(msgspec.Struct, frozen=True, metaclass=_Frozen):
    """What never changes: ``msgspec.structs.replace`` makes another."""


def repr_without(value: Data, name: str) -> str:
    """Return what ``repr`` gives of a value, but for one field that nobody is to read in a log."""
    shown = (f"{each}={getattr(value, each)!r}" for each in value.__struct_fields__ if each != name)
    return f"{type(value).__name__}({', '.join(shown)})"


class ResultMixin:
    """What an operation returns, as a person and as a program read it."""

    __slots__ = ()

    def __str__(self) -> str:
        """Return it in a few lines for a person; ``repr`` has everything."""
        from keepward.core.results import brief

        return brief(self)

    def to_dict(self) -> dict[str, Any]:
        """Return it as an object of plain JSON values that ``json.dumps`` takes.

        Instants are ISO 8601 in UTC, spans of time are seconds, enums are their names, bytes are hex digits. Where a
        command prints the same with ``--json``, the keys are the same.
        """
        from keepward.core.results import to_plain

        found: dict[str, Any] = to_plain(self)
        return found


class Value(ResultMixin, Data):
    """A result of an operation."""


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_DURATION = re.compile(r"(-?\d{1,12})\s*(s|m|h|d|w)", re.ASCII)
_UNIT_SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
#: The longest accepted time to live.
MAX_DURATION = timedelta(days=36_525)
#: A span of time as people give it: see ``parse_duration``.
Duration = timedelta | float | str


#: Characters that show nothing and are neither white space nor of the category Cf.
_INVISIBLE = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u3164\uffa0") | frozenset(
    map(chr, (*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)))
)


def is_blank(text: str) -> bool:
    """Whether a text shows nothing: white space, zero-width characters and the like."""
    if text and text[0].isascii() and text[0].isprintable() and text[0] != " ":
        return False
    return all(each.isspace() or each in _INVISIBLE or unicodedata.category(each) == "Cf" for each in text)


def to_micros(instant: datetime) -> int:
    """Return whole microseconds since 1970-01-01T00:00Z; the instant must be aware."""
    return (instant - _EPOCH) // _MICROSECOND


def from_micros(micros: int) -> datetime:
    """Return the aware UTC instant of whole microseconds since 1970."""
    return _EPOCH + _MICROSECOND * micros


def parse_instant(text: str) -> datetime:
    """Read an ISO 8601 instant; one without an offset is taken as UTC.

    Raises:
        InvalidInput: not ISO 8601, or outside the years 1 to 9999.
    """
    try:
        instant = datetime.fromisoformat(text)
        aware = instant if instant.tzinfo else instant.replace(tzinfo=UTC)
        return aware.astimezone(UTC)
    except (ValueError, OverflowError) as fault:
        raise InvalidInput("not an instant: use ISO 8601 such as 2026-03-01T09:30:00Z") from fault


def parse_duration(value: Duration) -> timedelta:
    """Read a span of time: a timedelta, a number of seconds, or text such as ``90s``, ``15m``, ``24h``, ``30d``.

    ``w`` is a week. It may be negative or zero.

    Raises:
        InvalidInput: anything else, such as text without a unit, or beyond a hundred years.
    """
    if isinstance(value, timedelta):
        return value
    if isinstance(value, str):
        match = _DURATION.fullmatch(value.strip())
        seconds: float = int(match[1]) * _UNIT_SECONDS[match[2]] if match else math.nan
    else:
        usable = isinstance(value, int | float) and not isinstance(value, bool)
        seconds = value if usable else math.nan
    if math.isnan(seconds):
        raise InvalidInput(
            "not a duration: use a whole number and s, m, h, d or w, such as 24h or 30d, or a number of seconds"
        )
    if abs(seconds) > MAX_DURATION.total_seconds():
        raise InvalidInput("a duration is at most a hundred years")
    return timedelta(seconds=seconds)


#: A name of a field as somebody may mistype it.
_FIELD = re.compile(r"[A-Za-z_-]{1,32}")
#: Most characters of a name that is compared with those there are.
_MAX_SUGGESTION_INPUT = 64


def plain_key(key: str) -> str:
    """Return a key as it is kept and looked for: in Unicode's compatible form (NFKC), without blanks at its ends."""
    return key if key.isascii() and key == key.strip() else unicodedata.normalize("NFKC", key).strip()


def plain_name(name: str) -> str:
    """Return a name as it is kept and looked for: composed (NFC), so that "Zoë" is one name however it was typed."""
    return name if name.isascii() else unicodedata.normalize("NFC", name)


def name_forms(names: Iterable[str]) -> list[str]:
    """Return names composed and decomposed, without repeats: an earlier release kept them as they were typed."""
    return list(dict.fromkeys(unicodedata.normalize(form, name) for name in names for form in ("NFC", "NFD")))


def unknown_name_message(what: str, given: Any, known: Collection[str]) -> str:
    """Return the sentence about a name that there is not: the one that was probably meant, and all there are."""
    return f"unknown {what}: {suggestion(given, known)}use one of {', '.join(map(str, known))}"


def unknown_field_message(what: str, given: Any, known: Collection[str]) -> str:
    """Return the sentence about a field or parameter that does not exist, with the nearest name or all names.

    A name that might be a value, such as one with digits, is not repeated.
    """
    shown = f"`{given}`" if isinstance(given, str) and _FIELD.fullmatch(given) else "by that name"
    near = get_close_matches(given.casefold(), list(known), n=1, cutoff=0.6) if shown.startswith("`") else []
    if near:
        return f"no {what} {shown}; did you mean `{near[0]}`?"
    return f"no {what} {shown}; there are: {', '.join(known)}" if known else f"no {what} {shown}; there are none"


def suggestion(given: Any, known: Collection[str]) -> str:
    """Return ``did you mean archival? `` where one of the names is near to what was given, else nothing."""
    word = given.strip().casefold() if isinstance(given, str) and len(given) <= _MAX_SUGGESTION_INPUT else ""
    near = get_close_matches(word, [str(name) for name in known], n=1, cutoff=0.6) if word else []
    return f"did you mean {near[0]}? " if near else ""


def one_of(what: str, given: Any, known: Collection[str]) -> str:
    """Return a name of the list as plain text.

    Raises:
        InvalidInput: it is not on the list, or no text.
    """
    if not isinstance(given, str):
        raise InvalidInput(f"{what} is a text: use one of {', '.join(map(str, known))}")
    # A member of an enum is equal to its text, and a list may hold either.
    if given not in known:
        raise InvalidInput(unknown_name_message(what, given, known))
    return str(given)


def is_loopback(host: str) -> bool:
    """Whether a host names this machine alone."""
    from ipaddress import ip_address

    try:
        return host.lower() == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def pluralize(number: int, one: str, many: str) -> str:
    """Return `1 memory` or `3 memories`."""
    return f"{number} {one if number == 1 else many}"


def redaction_note(kinds: Iterable[str]) -> str:
    """Return the words that say what was replaced and how to keep an identifier; empty where nothing was."""
    named = ", ".join(each.replace("_", " ") for each in kinds)
    return f"redacted: {named} (identifiers given with consent are kept)" if named else ""
