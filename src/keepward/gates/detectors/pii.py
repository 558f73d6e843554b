"""Structured personal identifiers: numbers with check digits, e-mail and IP addresses, phone numbers.

A number without a characteristic form needs a label next to it. Check digits must be valid, by python-stdnum and
phonenumbers. Nine-digit order numbers, 13-digit timestamps, versions, hashes and ISBNs are no findings.

Late imports: few texts need it.
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
#: Default pattern of a number after a label such as "passport no.": letters and digits in groups.
_NUMBER = r"[A-Z0-9][A-Z0-9](?:[ ./-]?[A-Z0-9]){4,20}"
#: Boundaries of a label.
_EDGE, _NO_LETTER = r"(?:^|[^\p{L}\p{N}_])", r"(?:$|[^\p{L}])"


@dataclass(frozen=True, kw_only=True)
class _Rules:
    """The rules of ``rules/identifiers.toml``."""

    forms: tuple[Rule, ...]
    shapes: tuple[Rule, ...]
    labelled: RuleSet
    #: Patterns that occur in every text with a shape, and in every text with a label.
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
            shapes.append(_rule(row, row["shape"], (), has_no_adjacent_digits, _of_value(accepts), personal))
        if row["labels"] != "-":
            names = split_entries(row["labels"])
            labels += names
            pattern = f"(?i){_EDGE}{any_word(names)}{tables['between']}(?P<v>{row.get('pattern', _NUMBER)})"
            check = functools.partial(_longest_valid, accepts=accepts)
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
        make_pattern=functools.partial(str, pattern),
        literals=tuple(literals),
        certainty="likely" if "likely" in row else "certain",
        checks=checks,
        gate=row.get("gate", ""),
    )


def cannot_match(text: Text) -> bool:
    """Whether a prefilter excludes any finding in the text and in each of its lines. False: it must be scanned."""
    return text.is_plain and not text.occurs(_ANY_DIGITS)


def scan(given: str | Text) -> list[Finding]:
    """Return structured personal identifiers, by start of span, then end, longer first.

    Spans refer to the original text, even if it contains invisible characters or fullwidth digits.
    """
    text = given if isinstance(given, Text) else Text(given)
    form = text.normal
    return merge_findings(_all(form), len(text.text)) if form.occurs(_ANY_DIGITS) else []


def _all(form: Text) -> Iterator[Finding]:
    form.phone_parses_left = Text.MAX_PHONE_PARSES
    rules = _rules()
    for rule in rules.forms:
        yield from rule.findings(form)
    # For a long text of numbers one pattern of all shapes has too many states: it takes ten times as long as each.
    if len(form.data) > 8_192 or form.occurs(rules.any_shape):
        for rule in rules.shapes:
            yield from rule.findings(form)
    if form.occurs(rules.any_label):
        yield from rules.labelled.scan(form)


def _check(name: str) -> Check:
    """Return a check by its name in the table, such as ``personal``, ``number:us.ssn`` or ``phone:plus``."""
    kind, _, argument = name.partition(":")
    if kind == "number":
        return _of_value(_number(argument))
    if kind == "phone":
        return functools.partial(phone, kind=argument)
    checks: dict[str, Check] = {
        check.__name__: check
        for check in (
            has_no_adjacent_digits,
            has_no_digits_after,
            personal,
            no_version,
            mailbox,
            public_ipv4,
            public_ipv6,
            iban,
            payment_card,
        )
    }
    return checks[kind]


def _of_value(accepts: Callable[[str], bool]) -> Check:
    return lambda text, start, end: (start, end) if accepts(text.text[start:end]) else None


@functools.cache
def _number(name: str) -> Callable[[str], bool]:
    """Return the check of a number by its name in python-stdnum, or by several joined by a bar; ``any`` accepts all."""
    if name == "any":
        return bool

    def accepts(value: str) -> bool:
        # python-stdnum accepts only dashes in numbers of the United States.
        dashed = re.sub("[ ._/-]+", "-", value)
        return any(
            importlib.import_module(f"stdnum.{kind}").is_valid(dashed if kind in {"us.ssn", "us.itin"} else value)
            for kind in name.split("|")
        )

    return accepts


def _alnum(char: str) -> bool:
    return char.isascii() and char.isalnum()


def _neighbours(text: str, start: int, end: int) -> tuple[str, str]:
    return text[start - 1] if start else " ", text[end] if end < len(text) else " "


def has_no_adjacent_digits(text: Text, start: int, end: int) -> Span:
    """No letter, digit or joining mark continues the number on either side."""
    content = text.text
    before = content[start - 1] if start else " "
    glued = _alnum(before) or (before in "-/._" and start > 1 and content[start - 2].isalnum())
    return None if glued else has_no_digits_after(text, start, end)


def has_no_digits_after(text: Text, start: int, end: int) -> Span:
    """No letter, digit or joining mark continues the number after its end."""
    after, further = (*text.text[end : end + 2], " ", " ")[:2]
    return None if _alnum(after) or (after in "-/." and further.isdigit()) else (start, end)


def _longest_valid(text: Text, start: int, end: int, accepts: Callable[[str], bool]) -> Span:
    """Drop pieces from the end until the number is valid; the match may include the next word ("12 345 678 and")."""
    for _ in range(6):
        cut = max(text.text.rfind(mark, start, end) for mark in " ./-")
        # No number ends in a word, and the check is slow.
        ends_in_word = start < cut < end - 3 and text.text[cut + 1 : end].isalpha()
        if not ends_in_word and accepts(text.text[start:end]) and has_no_adjacent_digits(text, start, end):
            return (start, end) if count_digits(text.text[start:end]) >= 5 else None
        end = cut
        if end <= start:
            return None
    return None


def personal(text: Text, start: int, end: int) -> Span:
    """The words before a number do not say that it is an order, build or serial number, for example."""
    return None if text.occurs_before(_other_numbers(), start) else (start, end)


@functools.cache
def _other_numbers() -> str:
    tables = read("identifiers")
    names = "|".join(ends_in_word.replace(" ", r"\s+") for ends_in_word in split_entries(tables["other_numbers"]))
    return str(tables["before_other_numbers"]).replace("WORDS", names)


def context_patterns() -> tuple[str, ...]:
    """Return the patterns of words before a number."""
    return _other_numbers(), read("identifiers")["before_versions"], _card_words()


@functools.cache
def _card_words() -> str:
    return "(?i)(?:" + "|".join(split_entries(read("identifiers")["card_words"])) + ")"


def no_version(text: Text, start: int, end: int) -> Span:
    """The words before a number do not say that it is a version or a section."""
    return None if text.occurs_before(read("identifiers")["before_versions"], start, 24) else (start, end)


def mailbox(text: Text, start: int, end: int) -> Span:
    """An e-mail address, not a file, a git remote or a credential in a URL."""
    content = text.text
    # The last 64 characters before the @ count. A repetition count in the pattern would be compiled that many times.
    start = max(start, content.index("@", start) - 64)
    while start < end and content[start] in ".'%-":
        start += 1
    local, _, domain = content[start:end].lower().partition("@")
    after = content[end : end + 60]
    if not local or local in {"git", "hg", "svn"} or domain.endswith(tuple(words("identifiers", "file_endings"))):
        return None
    if content[max(0, start - 3) : start] == "://" or (after[:1] == ":" and after[1:2].isalpha() and "/" in after):
        return None
    # user:secret@host in a URL is a credential, not a mailbox.
    return None if content[start - 1 : start] == ":" and "://" in content[max(0, start - 100) : start] else (start, end)


def public_ipv4(text: Text, start: int, end: int) -> Span:
    """A public IPv4 address, not a version or a section."""
    content = text.text
    before, after = content[start - 1 : start] if start else "", content[end : end + 2]
    if before and (_alnum(before) or before in "._-/@="):
        return None
    if (after and _alnum(after[0])) or (after[:1] in ".-+_" and after[1:].isalnum()):
        return None
    parts = content[start:end].split(".")
    small = all(int(part) < 32 for part in parts)
    public = ipaddress.ip_address(content[start:end]).is_global and not small and len(set(parts)) > 1
    return no_version(text, start, end) if public else None


def public_ipv6(text: Text, start: int, end: int) -> Span:
    """A public IPv6 address."""
    before = text.text[start - 1] if start else " "
    try:
        public = ipaddress.IPv6Address(text.text[start:end]).is_global
    except ValueError:
        return None
    return (start, end) if public and not before.isalnum() and before != ":" else None


def iban(text: Text, start: int, end: int) -> Span:
    """An account number with the format of its country and valid check digits (ISO 13616)."""
    import stdnum.iban

    content = text.text
    need = _iban_lengths().get(content[start : start + 2].upper())
    if need is None or (start and _alnum(content[start - 1])):
        return None
    indices = [index for index in range(start, end) if content[index].isalnum()][:need]
    compact = "".join(content[index] for index in indices).upper()
    if len(compact) < need or not stdnum.iban.is_valid(compact, check_country=False):
        return None
    end = indices[-1] + 1
    return None if _alnum(content[end : end + 1] or " ") else (start, end)


@functools.cache
def _iban_lengths() -> dict[str, int]:
    return {entry[:2]: int(entry[2:]) for entry in read("identifiers")["iban_lengths"].split()}


def payment_card(text: Text, start: int, end: int) -> Span:
    """A card number: issuer range, length and Luhn digit (ISO/IEC 7812-1)."""
    from stdnum import luhn

    content = text.text
    before, after = _neighbours(content, start, end)
    if before in "_$" or after == "_" or _alnum(before) or _alnum(after):
        return None
    # 0.4111... and 12-4111-... are parts of a longer number.
    if (before in ".-/" and start > 1 and content[start - 2].isalnum()) or (
        after in ".-/" and end + 1 < len(content) and content[end + 1].isalnum()
    ):
        return None
    number = "".join(filter(str.isdigit, content[start:end]))
    if not luhn.is_valid(number) or len(set(number)) == 1:
        return None
    is_labelled = text.occurs_before(_card_words(), start)
    issued = _issued(number, "cards") or (is_labelled and _issued(number, "labelled_cards"))
    return (start, end) if issued and (is_labelled or personal(text, start, end)) else None


def _issued(number: str, ranges: str) -> bool:
    return any(
        low <= int(number[: len(str(low))]) <= high and len(number) in lengths for low, high, lengths in _cards(ranges)
    )


@functools.cache
def _cards(ranges: str) -> tuple[tuple[int, int, tuple[int, ...]], ...]:
    rows = re.findall(r"(\d+)-(\d+):([\d,]+)", read("identifiers")[ranges])
    return tuple((int(low), int(high), tuple(map(int, lengths.split(",")))) for low, high, lengths in rows)


def phone(text: Text, start: int, end: int, kind: str) -> Span:
    """A separate phone number: in international form, in North American form, or after a label."""
    content = text.text
    before, after = _neighbours(content, start, end)
    if _alnum(before) or _alnum(after) or (after in "-/._:" and end + 1 < len(content) and content[end + 1].isdigit()):
        return None
    # "12 0345..." is part of a longer number, such as an account number.
    if start > 1 and (
        (before == " " and content[start - 2].isdigit() and content[start] == "0")
        or (before in ".-/_" and content[start - 2].isalnum())
    ):
        return None
    if kind != "label" and not personal(text, start, end):
        return None
    return (start, end) if _dialled(text, content[start:end], kind) else None


def _dialled(text: Text, value: str, kind: str) -> bool:
    if kind == "nanp" and (value.startswith("(") or value.count("-") >= 2 or value.count(".") >= 2):
        # Invented numbers have the same form, so the area code need not be assigned.
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
        # After the budget is used up the form is enough: a flood must cost time linear in the text.
        text.phone_parses_left -= 1
        if text.phone_parses_left < 0:
            return True
        try:
            number = phonenumbers.parse(value, region)
        except phonenumbers.NumberParseException:
            continue
        spaced = international and (kind == "label" or any(mark in value for mark in " -()."))
        if phonenumbers.is_valid_number(number) or (spaced and phonenumbers.is_possible_number(number)):
            return True
    return False
