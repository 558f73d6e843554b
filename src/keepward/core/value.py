"""Shared values: base classes, instants, durations, names of closed sets, and texts of messages.

In memory, instants are aware UTC datetimes; on disk, whole microseconds since 1970. The conversion does not round.
Errors never repeat a given name: it may be a secret in the wrong place.
"""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from difflib import get_close_matches
from typing import Annotated, Any, Generic, TypeAlias, TypeVar, dataclass_transform, overload

import msgspec
from msgspec.structs import asdict

from keepward.core.brief import brief
from keepward.core.foreign_words import call_instead, known_argument, value_here
from keepward.core.json_form import to_json
from keepward.errors import InvalidInput

T = TypeVar("T")


class _Frozen(msgspec.StructMeta):
    """Makes each class a frozen Struct with keyword-only fields."""

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
    """An immutable value; ``msgspec.structs.replace`` makes a changed copy."""


#: An aware instant; in JSON, one with an offset, such as "2026-03-01T09:30:00Z".
Instant: TypeAlias = Annotated[datetime, msgspec.Meta(tz=True)]


def repr_without(value: Data, name: str) -> str:
    """Return the ``repr`` of a value without one secret field."""
    shown = (f"{field}={getattr(value, field)!r}" for field in value.__struct_fields__ if field != name)
    return f"{type(value).__name__}({', '.join(shown)})"


class Value(Data):
    """A result of an operation."""

    def __str__(self) -> str:
        """Return a short text of a few lines; ``repr`` has everything."""
        return brief(self)

    def to_dict(self) -> dict[str, Any]:
        """Return the result as JSON values for ``json.dumps``.

        Its keys are the names of the fields. Instants are ISO 8601 in UTC, enums are their names, bytes are hex digits.
        A server sends the same, and so does ``--json`` of a command.
        """
        fields: dict[str, Any] = to_json(self)
        return fields


class ListResult(Value, Generic[T], eq=False):
    """A result with ``items``, which is used and compared like a list of them."""

    items: tuple[T, ...] = ()

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[T]:
        return iter(self.items)

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> list[T]: ...
    def __getitem__(self, index: int | slice) -> T | list[T]:
        return list(self.items[index]) if isinstance(index, slice) else self.items[index]

    def __eq__(self, other: object) -> bool:
        if isinstance(other, list):
            return list(self.items) == other
        return isinstance(other, type(self)) and asdict(self) == asdict(other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self.items)


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_DURATION = re.compile(r"(-?\d{1,12})\s*(s|m|h|d|w)", re.ASCII)
_UNIT_SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
#: The longest accepted time to live.
MAX_DURATION = timedelta(days=36_525)
#: A duration in any form that ``parse_duration`` accepts.
Duration = timedelta | float | str
#: Invisible characters that are neither white space nor of the category Cf.
_INVISIBLE = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u3164\uffa0") | frozenset(
    map(chr, (*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)))
)


def is_blank(text: str) -> bool:
    """Whether a text has only white space and invisible characters."""
    if text and text[0].isascii() and text[0].isprintable() and text[0] != " ":
        return False
    return all(char.isspace() or char in _INVISIBLE or unicodedata.category(char) == "Cf" for char in text)


#: Deepest nesting of lists and objects in a value of a caller.
MAX_DEPTH = 32
_CONTAINERS = (Mapping, list, tuple)


def is_too_deep(value: Any, most: int = MAX_DEPTH) -> bool:
    """Whether lists and objects are nested in each other more than ``most`` times, or without end."""
    level = [value] if isinstance(value, _CONTAINERS) else []
    for _ in range(most):
        inside = (inner for each in level for inner in (each.values() if isinstance(each, Mapping) else each))
        # By identity: a list that contains itself twice would double each time.
        level = list({id(inner): inner for inner in inside if isinstance(inner, _CONTAINERS)}.values())
    return bool(level)


def load_json(text: str | bytes) -> Any:
    """Return the value of a JSON text.

    Raises:
        ValueError: it is not JSON, or nested too deeply.
    """
    try:
        value = json.loads(text)
    except RecursionError as exc:
        raise ValueError("nested too deeply") from exc
    if is_too_deep(value):
        raise ValueError("nested too deeply")
    return value


def to_micros(instant: datetime) -> int:
    """Return whole microseconds since 1970-01-01T00:00Z; the instant must be aware."""
    return (instant - _EPOCH) // _MICROSECOND


def from_micros(micros: int) -> datetime:
    """Return the aware UTC instant of whole microseconds since 1970."""
    return _EPOCH + _MICROSECOND * micros


def parse_instant(text: str) -> datetime:
    """Parse an ISO 8601 instant; without an offset it is UTC.

    Raises:
        InvalidInput: not ISO 8601, or outside the years 1 to 9999.
    """
    try:
        instant = datetime.fromisoformat(text)
        aware = instant if instant.tzinfo else instant.replace(tzinfo=UTC)
        return aware.astimezone(UTC)
    except (ValueError, OverflowError) as exc:
        raise InvalidInput("not an instant: use ISO 8601 such as 2026-03-01T09:30:00Z") from exc


def parse_duration(value: Duration) -> timedelta:
    """Parse a duration: a timedelta, a number of seconds, or text such as ``90s``, ``15m``, ``24h``, ``30d``, ``2w``.

    It may be negative or zero.

    Raises:
        InvalidInput: anything else, such as text without a unit, or more than a hundred years.
    """
    if isinstance(value, timedelta):
        return value
    if isinstance(value, str):
        match = _DURATION.fullmatch(value.strip())
        seconds: float = int(match[1]) * _UNIT_SECONDS[match[2]] if match else math.nan
    else:
        usable = isinstance(value, int | float) and not isinstance(value, bool)
        seconds = value if usable else math.nan
    if isinstance(seconds, float) and math.isnan(seconds):
        raise InvalidInput(
            "not a duration: use a whole number and s, m, h, d or w, such as 24h or 30d, or a number of seconds"
        )
    if abs(seconds) > MAX_DURATION.total_seconds():
        raise InvalidInput("a duration is at most a hundred years")
    return timedelta(seconds=seconds)


def duration_text(span: timedelta) -> str:
    """Return a duration as ``parse_duration`` reads it, in its largest exact unit up to days, such as ``30d``."""
    seconds = int(span.total_seconds())
    unit = next((unit for unit in "dhm" if seconds and seconds % _UNIT_SECONDS[unit] == 0), "s")
    return f"{seconds // _UNIT_SECONDS[unit]}{unit}"


#: A name that may be a misspelt field.
_FIELD = re.compile(r"[A-Za-z_-]{1,32}")
#: Maximum length of a name for which a suggestion is computed.
_MAX_SUGGESTION_INPUT = 64
#: A NUL or a lone surrogate; no database stores it.
_MALFORMED = re.compile("[\0\ud800-\udfff]")


def require_well_formed(name: str, text: str) -> None:
    """Raise InvalidInput if a text contains a NUL or a lone surrogate."""
    if what := _malformed(text):
        raise InvalidInput(f"{name} contains {what}: send well-formed text")


def _malformed(text: str) -> str | None:
    """Return which character of a text cannot be stored; None if all can."""
    found = None if text.isprintable() else _MALFORMED.search(text)
    return None if found is None else "a NUL character" if found[0] == "\0" else "a lone surrogate, half a character"


def json_problem(value: Any) -> str | None:
    """Return why a JSON value cannot be stored and sent: too deep, or a text or number that not every reader takes."""
    if is_too_deep(value):
        return f"nested more than {MAX_DEPTH} levels deep: write what is deeper as text"
    level = [value]
    while level:
        inside: list[Any] = []
        for each in level:
            if isinstance(each, Mapping):
                inside += (*each, *each.values())
            elif isinstance(each, list | tuple):
                inside += each
            elif isinstance(each, str):
                if malformed := _malformed(each):
                    return malformed
            elif isinstance(each, int) and not -(2**63) <= each < 2**63:
                return "an integer of more than 64 bits: write it as text"
            elif isinstance(each, float) and not math.isfinite(each):
                return "a number that is not finite"
        level = inside
    return None


def plain_key(key: str) -> str:
    """Return a key as stored and searched: NFKC, without surrounding blanks."""
    return key if key.isascii() and key == key.strip() else unicodedata.normalize("NFKC", key).strip()


def plain_name(name: str) -> str:
    """Return a name as stored and searched: composed (NFC), so that all spellings of "Zoë" are equal."""
    return name if name.isascii() else unicodedata.normalize("NFC", name)


def name_forms(names: Iterable[str]) -> list[str]:
    """Return names composed and decomposed, without repeats."""
    return list(dict.fromkeys(unicodedata.normalize(form, name) for name in names for form in ("NFC", "NFD")))


def unknown_name_message(what: str, given: Any, known: Collection[str]) -> str:
    """Return the message about an unknown name: the nearest name and all known names."""
    here = value_here(what, given)
    hint = f"{given} is here {here}; else " if here else suggestion(given, known)
    return f"unknown {what}: {hint}use one of {', '.join(map(str, known))}"


def unknown_field_message(what: str, given: Any, known: Collection[str]) -> str:
    """Return the message about an unknown field or parameter, with the name that is meant or all names.

    A name that might be a value, such as one with digits, is not repeated.
    """
    shown = f"`{given}`" if isinstance(given, str) and _FIELD.fullmatch(given) else "by that name"
    if shown.startswith("`"):
        foreign, call = known_argument(given, known), call_instead(given)
        if call and not foreign:
            return f"no {what} {shown}; here it is {call}"
        near = [foreign, *get_close_matches(given.casefold(), list(known), n=1, cutoff=0.6)]
        if meant := next(filter(None, near), None):
            return f"no {what} {shown}; did you mean `{meant}`?"
    return f"no {what} {shown}; there are: {', '.join(known)}" if known else f"no {what} {shown}; there are none"


def suggestion(given: Any, known: Collection[str]) -> str:
    """Return ``did you mean archival? `` with the nearest known name; empty if none is near."""
    word = given.strip().casefold() if isinstance(given, str) and len(given) <= _MAX_SUGGESTION_INPUT else ""
    near = get_close_matches(word, [str(name) for name in known], n=1, cutoff=0.6) if word else []
    return f"did you mean {near[0]}? " if near else ""


def one_of(what: str, given: Any, known: Collection[str]) -> str:
    """Return a name of a closed set as text.

    Raises:
        InvalidInput: it is not a name of the set.
    """
    if not isinstance(given, str):
        raise InvalidInput(f"{what} is a text: use one of {', '.join(map(str, known))}")
    # A member of a StrEnum equals its text; the set may contain either.
    if given not in known:
        raise InvalidInput(unknown_name_message(what, given, known))
    return str(given)


def is_loopback(host: str) -> bool:
    """Whether a host is this machine."""
    # Few programs need it.
    from ipaddress import ip_address

    try:
        return host.lower() == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def format_time(at: str | None) -> str:
    """Return an ISO 8601 instant as date and time to the minute; the empty text for None."""
    return f"{at[:16].replace('T', ' ')} UTC" if at else ""


def pluralize(number: int, one: str, many: str) -> str:
    """Return `1 memory` or `3 memories`."""
    return f"{number} {one if number == 1 else many}"


def redaction_note(kinds: Iterable[str]) -> str:
    """Return the note about redacted texts and how to keep identifiers; empty if nothing was redacted."""
    named = ", ".join(kind.replace("_", " ") for kind in kinds)
    return f"redacted: {named} (identifiers given with consent are kept)" if named else ""
