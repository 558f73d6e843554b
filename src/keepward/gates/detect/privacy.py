"""Structured personal identifiers: numbers with check digits, addresses of mail and phone, labelled dates.

Invariants
(1) A number without a telling form needs a label beside it, and where it has a check digit that must hold.
(2) Nine-digit order numbers, 13-digit timestamps, versions, hashes and ISBNs yield nothing.
(3) Spans refer to the text that was given, also where invisible characters or fullwidth digits stood inside.
"""

# ruff: noqa: E501, PLW2901

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Iterator

from keepward.gates.detect.checks import OWN_CHECKS
from keepward.gates.detect.contact import CONTACT, PHONE_DIGITS, addresses, phones
from keepward.gates.detect.engine import MAX_CANDIDATES, Haystack, Sieve, compiled, occurs, settled
from keepward.gates.detect.finding import Certainty, Finding
from keepward.gates.detect.identifiers import BIRTH, DATE, LABELLED, NOT_PERSONAL, SHAPES, UNCHECKED
from keepward.gates.detect.money import CARD, CARD_DIGITS, IBAN, cards, ibans
from keepward.gates.detect.normal import is_plain, normal

_ANY_DIGITS = r"\d[^\n]{0,24}\d|@|\[at\]|\(at\)"
_PASSPORT = r"[PIACV][A-Z<][A-Z]{3}[A-Z<]{20,39}\s+[A-Z0-9<]{28,44}"
_EDGE = r"(?:^|[^\p{L}\p{N}_])"
_NUMBER = r"(?P<v>[A-Z0-9][A-Z0-9](?:[ ./-]?[A-Z0-9]){4,20})"
_BETWEEN = r"(?:[\s]*(?:number|no|nr|num|numero|nummer|id|#|№|:|=|is|ist|es|e|est|card|code|jest|der|of|for|von|de|mijn|mein|my|su|la|el|il|le|är|on|to|é|è|was|are|:|-|–|号|號|は|是|为|為|는|은|（|\(|\)|\"|'|,|\.|[A-Z][a-z]+|'s|\w{1,12}\s+(?:is|ist|es|est)))*[\s:#=\"'(]*"


@functools.cache
def _anything() -> Sieve:
    return Sieve((*CONTACT, IBAN, CARD, _any_shape(), _label_gate(), _PASSPORT))


def calm(text: str) -> bool:
    """Whether one look at the whole text rules out any finding, in it and in each of its lines.

    False means only that it has to be scanned.
    """
    if not is_plain(text):
        return False
    data = text.encode()
    return not occurs(_ANY_DIGITS, data) or _anything().silent(data)


def scan(text: str) -> list[Finding]:
    """Return structured personal identifiers, by start of span, then end, longer first."""
    form = normal(text)
    hay = Haystack(form.text)
    if not hay.occurs(_ANY_DIGITS):
        return []
    findings = list(_all(hay))
    if form.text != text:
        mapped = []
        for finding in findings:
            start, end = form.span(finding.start, finding.end)
            mapped.append(Finding(detector=finding.detector, start=start, end=end, certainty=finding.certainty))
        findings = mapped
    return settled(findings, len(text))


def _all(hay: Haystack) -> Iterator[Finding]:
    digits = len(hay.data) - len(hay.data.translate(None, b"0123456789"))
    yield from addresses(hay)
    if hay.occurs(IBAN):
        yield from ibans(hay)
    if digits >= CARD_DIGITS:
        yield from cards(hay)
    if digits >= PHONE_DIGITS:
        yield from phones(hay)
    if hay.occurs(_any_shape()):
        for name, modules, shape in SHAPES:
            yield from _shape(hay, name, modules, shape)
    if hay.occurs(_label_gate()):
        for name, modules, label in LABELLED:
            yield from _labelled(hay, name, label, _NUMBER, _checker(modules), "certain")
        for name, label, shape in UNCHECKED:
            yield from _labelled(hay, name, label, rf"(?P<v>{shape})", _any, "likely")
        for start, end in hay.spans(rf"(?i){_EDGE}{BIRTH}[^\n\d]{{0,24}}?(?P<v>{DATE})"):
            if _closed(hay.text, start, end):
                yield Finding(detector="date_of_birth", start=start, end=end, certainty="likely")
    if hay.occurs(_PASSPORT):
        for start, end in hay.spans(_PASSPORT):
            yield Finding(detector="passport", start=start, end=end)


@functools.cache
def _any_shape() -> str:
    return "|".join(f"(?:{shape})" for _, _, shape in SHAPES)


@functools.cache
def _label_gate() -> str:
    labels = [label for _, _, label in LABELLED] + [label for _, label, _ in UNCHECKED]
    return rf"(?i){_EDGE}(?:{BIRTH}|{'|'.join(labels)})(?:$|[^\p{{L}}])"


def _closed(text: str, start: int, end: int) -> bool:
    """Whether no letter, digit or joining mark continues the number on either side."""
    before = text[start - 1] if start else " "
    after = text[end] if end < len(text) else " "
    if (before.isascii() and before.isalnum()) or (after.isascii() and after.isalnum()):
        return False
    further = text[end + 1] if end + 1 < len(text) else " "
    if after in "-/." and further.isdigit():
        return False
    return not (before in "-/._" and start > 1 and text[start - 2].isalnum())


def _shape(hay: Haystack, name: str, modules: tuple[str, ...], shape: str) -> Iterator[Finding]:
    text = hay.text
    check = _checker(modules)
    for count, (start, end) in enumerate(hay.spans(shape)):
        if count >= MAX_CANDIDATES:
            yield Finding(detector=name, start=start, end=len(text))
            return
        if _closed(text, start, end) and check(text[start:end]) and not disowned(text, start):
            yield Finding(detector=name, start=start, end=end)


def _labelled(
    hay: Haystack, name: str, label: str, number: str, check: Callable[[str], bool], certainty: Certainty
) -> Iterator[Finding]:
    if not hay.occurs(rf"(?i){_EDGE}(?:{label})(?:$|[^\p{{L}}])"):
        return
    text = hay.text
    for count, (start, end) in enumerate(hay.spans(rf"(?i){_EDGE}(?:{label}){_BETWEEN}{number}")):
        if count >= MAX_CANDIDATES:
            yield Finding(detector=name, start=start, end=len(text), certainty=certainty)
            return
        end = _fitting(text, start, end, check)
        if end > start and sum(map(str.isdigit, text[start:end])) >= 5:
            yield Finding(detector=name, start=start, end=end, certainty=certainty)


def _fitting(text: str, start: int, end: int, check: Callable[[str], bool]) -> int:
    # The number may run into the next word ("12 345 678 and"); drop pieces from the end until it fits.
    for _ in range(6):
        if check(text[start:end]) and _closed(text, start, end):
            return end
        cut = max(text.rfind(mark, start, end) for mark in " ./-")
        if cut <= start:
            return start
        end = cut
    return start


#: Checks that know dashes between the groups of a number, and no blanks.
_SPACED = frozenset({"us.ssn", "us.itin"})


def _any(value: str) -> bool:
    return True


def disowned(text: str, start: int) -> bool:
    """Whether the words right before a number say that it is an order, a build, a serial and the like."""
    return compiled(NOT_PERSONAL).search(text[max(0, start - 40) : start].encode("utf-8", "replace")) is not None


@functools.cache
def _checker(modules: tuple[str, ...]) -> Callable[[str], bool]:
    checks = [check for name in modules if (check := _module(name)) is not None]

    def accepts(value: str) -> bool:
        return any(check(value) for check in checks)

    return accepts


@functools.cache
def _module(name: str) -> Callable[[str], bool] | None:
    if name in OWN_CHECKS:
        return OWN_CHECKS[name]
    try:
        module = importlib.import_module(f"stdnum.{name}")
    except ModuleNotFoundError:
        return None
    check: Callable[[str], bool] = module.is_valid
    if name in _SPACED:
        return lambda value: check(value.replace(" ", "-"))
    return check
