"""Structured personal identifiers: numbers with check digits, addresses of mail and phone, labelled dates.

Invariants
(1) A number without a telling form needs a label beside it, and where it has a check digit that must hold.
(2) Nine-digit order numbers, 13-digit timestamps, versions, hashes and ISBNs yield nothing.
(3) Spans refer to the text that was given, also where invisible characters or fullwidth digits stood inside.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator

from keepward.gates.detect.engine import SHORT, Finding, Pack, Sieve, settled
from keepward.gates.detect.rules import label_gate, load
from keepward.gates.detect.text import Text, occurs

_SPELT = r"(?i:(?:zero|oh|one|two|three|four|five|six|seven|eight|nine)[ ,.-]{1,3}){3}"
_ANY_DIGITS = rf"\d[^\n]{{0,24}}\d|@|\[at\]|\(at\)|{_SPELT}"


@functools.cache
def _gates() -> tuple[str, str]:
    """Return what occurs wherever a shape does, and wherever a label does."""
    return "|".join(f"(?:{rule.pattern})" for rule in load("identifiers", "shape")), label_gate("identifiers")


@functools.cache
def _labels() -> Pack:
    return Pack((*load("identifiers", "label"), *load("identifiers", "dated")))


@functools.cache
def _anything() -> Sieve:
    return Sieve(lambda: (*(rule.gate or rule.pattern for rule in load("identifiers")), *_gates()))


def calm(text: Text) -> bool:
    """Whether one look at the whole text rules out any finding, in it and in each of its lines.

    False means only that it has to be scanned.
    """
    if not text.is_plain:
        return False
    return not occurs(_ANY_DIGITS, text.data) or _anything().silent(text.data)


def scan(given: str | Text) -> list[Finding]:
    """Return structured personal identifiers, by start of span, then end, longer first."""
    text = given if isinstance(given, Text) else Text(given)
    form = text.normal
    return settled(_all(form), len(text.text)) if form.occurs(_ANY_DIGITS) else []


def _all(form: Text) -> Iterator[Finding]:
    form.parses_left = Text.MOST_PARSES
    shapes, labels = _gates()
    for rule in load("identifiers"):
        yield from rule.findings(form)
    # All shapes in one pattern have too many states for a long text of numbers: it takes ten times what each takes.
    if len(form.data) > SHORT or form.occurs(shapes):
        for rule in load("identifiers", "shape"):
            yield from rule.findings(form)
    if form.occurs(labels):
        yield from _labels().scan(form)
