"""Structured personal identifiers: numbers with check digits, addresses of mail and networks, phone numbers.

A number without a telling form needs a label beside it, and where it has a check digit that must hold: python-stdnum
and phonenumbers say so. Nine-digit order numbers, 13-digit timestamps, versions, hashes and ISBNs yield nothing.
"""

from __future__ import annotations

import functools
import importlib
import ipaddress
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from keepward.gates.detectors.checks import count_digits
from keepward.gates.detectors.matcher import Check, Finding, Rule, RuleSet, merge_findings
from keepward.gates.detectors.normalize import Text
from keepward.gates.detectors.rules import any_word, literals_of
from keepward.gates.detectors.tables import columns, read, split_entries, words

Span = tuple[int, int] | None

_ANY_DIGITS = r"\d[^\n]{0,24}\d|@|\[at\]|\(at\)"
#: What a labelled number looks like that has no form of its own.
_NUMBER = r"[A-Z0-9][A-Z0-9](?:[ ./-]?[A-Z0-9]){4,20}"
#: What stands around a label.
_EDGE, _NO_LETTER = r"(?:^|[^\p{L}\p{N}_])", r"(?:$|[^\p{L}])"


@dataclass(frozen=True, kw_only=True)
class _Rules:
    """The rules of ``rules/identifiers.toml``."""

    forms: tuple[Rule, ...]
    shapes: tuple[Rule, ...]
    labelled: RuleSet
    #: Patterns that occur wherever a shape does, and wherever a label does.
    any_shape: str
    any_label: str


@functools.cache
def _rules() -> _Rules:
    tables = read("identifiers")
    forms: list[Rule] = []
    shapes: list[Rule] = []
    labelled: list[Rule] = []
    labels: list[str] = []
    for line in tables["rules"].splitlines():
        row = columns(line, "name", "pattern", "example")
        checks = tuple(map(_check, row.get("checks", "").split()))
        forms.append(_rule(row, row["pattern"], (), *checks))
    for line in tables["numbers"].splitlines():
        row = columns(line, "name", "number", "example", "labels")
        accepts = _number(row["number"])
        if "shape" in row:
            shapes.append(_rule(row, row["shape"], (), closed, _of_value(accepts), personal))
        if row["labels"] != "-":
            names = split_entries(row["labels"])
            labels += names
            pattern = f"(?i){_EDGE}{any_word(names)}{tables['between']}(?P<v>{row.get('pattern', _NUMBER)})"
            check = functools.partial(_longest_that_fits, accepts=accepts)
            labelled.append(_rule(row, pattern, literals_of(names), check))
    return _Rules(
        forms=tuple(forms),
        shapes=tuple(shapes),
        labelled=RuleSet(labelled),
        any_shape="|".join(f"(?:{rule.pattern})" for rule in shapes),
        any_label=rf"(?i){_EDGE}{any_word(dict.fromkeys(labels))}{_NO_LETTER}",
    )


def _rule(row: dict[str, str], pattern: str, literals: Sequence[str], *checks: Check) -> Rule:
    return Rule(
        name=row["name"],
        written=functools.partial(str, pattern),
        literals=tuple(literals),
        certainty="likely" if "likely" in row else "certain",
        checks=checks,
        gate=row.get("gate", ""),
    )


def cannot_match(text: Text) -> bool:
    """Whether a quick look rules out any finding in the text and in each of its lines.

    False means only that it has to be scanned.
    """
    return text.is_plain and not text.occurs(_ANY_DIGITS)


def scan(given: str | Text) -> list[Finding]:
    """Return structured personal identifiers, by start of span, then end, longer first.

    Spans refer to the text that was given, also where invisible characters or fullwidth digits stood inside.
    """
    text = given if isinstance(given, Text) else Text(given)
    form = text.normal
    return merge_findings(_all(form), len(text.text)) if form.occurs(_ANY_DIGITS) else []


def _all(form: Text) -> Iterator[Finding]:
    form.parses_left = Text.MOST_PARSES
    rules = _rules()
    for rule in rules.forms:
        yield from rule.findings(form)
    # All shapes in one pattern have too many states for a long text of numbers: it takes ten times what each takes.
    if len(form.data) > 8_192 or form.occurs(rules.any_shape):
        for rule in rules.shapes:
            yield from rule.findings(form)
    if form.occurs(rules.any_label):
        yield from rules.labelled.scan(form)


def _check(name: str) -> Check:
    """Return a check by its name in the table, such as ``closed``, ``number:us.ssn`` or ``phone:plus``."""
    kind, _, argument = name.partition(":")
    if kind == "number":
        return _of_value(_number(argument))
    if kind == "phone":
        return functools.partial(phone, kind=argument)
    checks: dict[str, Check] = {
        check.__name__: check
        for check in (closed, ended, personal, no_version, mailbox, public_ipv4, public_ipv6, iban, payment_card)
    }
    return checks[kind]


def _of_value(accepts: Callable[[str], bool]) -> Check:
    return lambda text, start, end: (start, end) if accepts(text.text[start:end]) else None


@functools.cache
def _number(name: str) -> Callable[[str], bool]:
    """Return the check of a number by its name in python-stdnum, several joined by a bar; ``any`` accepts all."""
    if name == "any":
        return bool
    names = name.split("|")

    def accepts(value: str) -> bool:
        return any(_is_valid_number(each, value) for each in names)

    return accepts


def _is_valid_number(name: str, value: str) -> bool:
    # The numbers of the United States may be written with dashes there, and with nothing else.
    value = re.sub("[ ._/-]+", "-", value) if name in {"us.ssn", "us.itin"} else value
    return bool(importlib.import_module(f"stdnum.{name}").is_valid(value))


def _alnum(char: str) -> bool:
    return char.isascii() and char.isalnum()


def _around(text: str, start: int, end: int) -> tuple[str, str]:
    return text[start - 1] if start else " ", text[end] if end < len(text) else " "


def closed(text: Text, start: int, end: int) -> Span:
    """No letter, digit or joining mark continues the number on either side."""
    whole = text.text
    before = whole[start - 1] if start else " "
    glued = _alnum(before) or (before in "-/._" and start > 1 and whole[start - 2].isalnum())
    return None if glued else ended(text, start, end)


def ended(text: Text, start: int, end: int) -> Span:
    """No letter, digit or joining mark continues the number behind it."""
    after, further = (*text.text[end : end + 2], " ", " ")[:2]
    return None if _alnum(after) or (after in "-/." and further.isdigit()) else (start, end)


def _longest_that_fits(text: Text, start: int, end: int, accepts: Callable[[str], bool]) -> Span:
    """Drop pieces from the end until the number fits: it may run into the next word ("12 345 678 and")."""
    for _ in range(6):
        cut = max(text.text.rfind(mark, start, end) for mark in " ./-")
        # No number ends in a word, and to ask takes long.
        word = start < cut < end - 3 and text.text[cut + 1 : end].isalpha()
        if not word and accepts(text.text[start:end]) and closed(text, start, end):
            return (start, end) if count_digits(text.text[start:end]) >= 5 else None
        end = cut
        if end <= start:
            return None
    return None


def personal(text: Text, start: int, end: int) -> Span:
    """The words right before a number do not say that it is an order, a build, a serial and the like."""
    return None if text.before(_other_numbers(), start) else (start, end)


@functools.cache
def _other_numbers() -> str:
    tables = read("identifiers")
    names = "|".join(word.replace(" ", r"\s+") for word in split_entries(tables["other_numbers"]))
    return str(tables["before_other_numbers"]).replace("WORDS", names)


def no_version(text: Text, start: int, end: int) -> Span:
    """The words right before a number do not say that it is a version or a section."""
    return None if text.before(read("identifiers")["before_versions"], start, 24) else (start, end)


def mailbox(text: Text, start: int, end: int) -> Span:
    """An e-mail address, and not a file, a remote of git or a credential in a URL."""
    whole = text.text
    # Of the part before the sign the last 64 characters count. What is counted in the pattern is compiled as often.
    start = max(start, whole.index("@", start) - 64)
    while start < end and whole[start] in ".'%-":
        start += 1
    local, _, domain = whole[start:end].lower().partition("@")
    after = whole[end : end + 60]
    if not local or local in {"git", "hg", "svn"} or domain.endswith(tuple(words("identifiers", "file_endings"))):
        return None
    if whole[max(0, start - 3) : start] == "://" or (after[:1] == ":" and after[1:2].isalpha() and "/" in after):
        return None
    # user:secret@host in a URL is a credential, not a mailbox.
    return None if whole[start - 1 : start] == ":" and "://" in whole[max(0, start - 100) : start] else (start, end)


def public_ipv4(text: Text, start: int, end: int) -> Span:
    """A public address, and not a version or a section."""
    whole = text.text
    before, after = whole[start - 1 : start] if start else "", whole[end : end + 2]
    if before and (_alnum(before) or before in "._-/@="):
        return None
    if (after and _alnum(after[0])) or (after[:1] in ".-+_" and after[1:].isalnum()):
        return None
    parts = whole[start:end].split(".")
    small = all(int(part) < 32 for part in parts)
    public = ipaddress.ip_address(whole[start:end]).is_global and not small and len(set(parts)) > 1
    return no_version(text, start, end) if public else None


def public_ipv6(text: Text, start: int, end: int) -> Span:
    """A public address of the long kind."""
    before = text.text[start - 1] if start else " "
    try:
        public = ipaddress.IPv6Address(text.text[start:end]).is_global
    except ValueError:
        return None
    return (start, end) if public and not before.isalnum() and before != ":" else None


def iban(text: Text, start: int, end: int) -> Span:
    """An account number whose length and check digits hold (ISO 13616, ISO 7064 mod 97-10)."""
    from stdnum.iso7064 import mod_97_10

    whole = text.text
    need = _iban_lengths().get(whole[start : start + 2].upper())
    if need is None or (start and _alnum(whole[start - 1])):
        return None
    places = [place for place in range(start, end) if whole[place].isalnum()][:need]
    compact = "".join(whole[place] for place in places).upper()
    if len(compact) < need or not mod_97_10.is_valid(compact[4:] + compact[:4]):
        return None
    end = places[-1] + 1
    return None if _alnum(whole[end : end + 1] or " ") else (start, end)


@functools.cache
def _iban_lengths() -> dict[str, int]:
    return {each[:2]: int(each[2:]) for each in read("identifiers")["iban_lengths"].split()}


def payment_card(text: Text, start: int, end: int) -> Span:
    """A card number: issuer range, length and Luhn digit (ISO/IEC 7812-1)."""
    from stdnum import luhn

    whole = text.text
    before, after = _around(whole, start, end)
    if before in "_$" or after == "_" or _alnum(before) or _alnum(after):
        return None
    # 0.4111... and 12-4111-... are parts of something longer.
    if (before in ".-/" and start > 1 and whole[start - 2].isalnum()) or (
        after in ".-/" and end + 1 < len(whole) and whole[end + 1].isalnum()
    ):
        return None
    number = "".join(filter(str.isdigit, whole[start:end]))
    if not luhn.is_valid(number) or len(set(number)) == 1:
        return None
    tables = read("identifiers")
    called = text.before("(?i)(?:" + "|".join(split_entries(tables["card_words"])) + ")", start)
    issued = _issued(number, "cards") or (called and _issued(number, "cards_beside_a_word"))
    return (start, end) if issued and (called or personal(text, start, end)) else None


def _issued(number: str, ranges: str) -> bool:
    return any(
        low <= int(number[: len(str(low))]) <= high and len(number) in lengths for low, high, lengths in _cards(ranges)
    )


@functools.cache
def _cards(ranges: str) -> tuple[tuple[int, int, tuple[int, ...]], ...]:
    rows = re.findall(r"(\d+)-(\d+):([\d,]+)", read("identifiers")[ranges])
    return tuple((int(low), int(high), tuple(map(int, lengths.split(",")))) for low, high, lengths in rows)


def phone(text: Text, start: int, end: int, kind: str) -> Span:
    """A phone number that stands by itself: in international form, in North American form, or beside a label."""
    whole = text.text
    before, after = _around(whole, start, end)
    if _alnum(before) or _alnum(after) or (after in "-/._:" and end + 1 < len(whole) and whole[end + 1].isdigit()):
        return None
    # "12 0345..." is a group inside a longer row of digits, such as an account number.
    if start > 1 and (
        (before == " " and whole[start - 2].isdigit() and whole[start] == "0")
        or (before in ".-/_" and whole[start - 2].isalnum())
    ):
        return None
    if kind != "label" and not personal(text, start, end):
        return None
    return (start, end) if _dialled(text, whole[start:end], kind) else None


def _dialled(text: Text, value: str, kind: str) -> bool:
    if kind == "nanp" and (value.startswith("(") or value.count("-") >= 2 or value.count(".") >= 2):
        # Who makes up a number writes it like any other: the form tells, whether its area is assigned or not.
        return True
    compact = "".join(char for char in value if char not in "-/.")
    if kind == "label" and len(compact) == 8 and compact[:2] in {"19", "20"} and any(mark in value for mark in "-/."):
        return False  # a date
    import phonenumbers

    international = kind == "plus" or value.startswith("+")
    value = "+" + value[2:] if international and value.startswith("00") else value
    regions: Sequence[Any] = read("identifiers")["phone_regions"].split()
    if international or kind == "nanp":
        regions = (None,) if international else ("US",)
    for region in regions:
        # Beyond the budget a shape is enough: a flood must cost time linear in the text.
        text.parses_left -= 1
        if text.parses_left < 0:
            return True
        try:
            number = phonenumbers.parse(value, region)
        except phonenumbers.NumberParseException:
            continue
        spaced = international and (kind == "label" or any(mark in value for mark in " -()."))
        if phonenumbers.is_valid_number(number) or (spaced and phonenumbers.is_possible_number(number)):
            return True
    return False
