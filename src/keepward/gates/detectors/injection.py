"""Instructions to a model in a text.

The consequence of a finding depends on the trust of the text. A finding is certain if the text has a form that ordinary
writing does not have, such as "Ignore all previous instructions", or hidden characters. It is likely if a text about
attacks quotes a certain form. The rules read the original text and its unescaped, decoded, spaced-out, leetspeak, rot13
and reversed forms.
"""

from __future__ import annotations

import codecs
import functools
import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from keepward.gates.detectors.matcher import Certainty, Finding, Rule, finding_at, merge_findings
from keepward.gates.detectors.normalize import TRACES, Text, compile_prefilter, occurs, tag_text
from keepward.gates.detectors.rules import any_word, load
from keepward.gates.detectors.tables import read

#: Name of the rules for texts that let an agent act without confirmation.
WEAKENS_SAFEGUARD = "weakens_safeguard"
_SEPARATORS = " \t\r\n.,-_*|/\\~+'\"`:;#()[]{}"
_SEPARATOR_BYTES = _SEPARATORS.encode()
_ASCII = bytes(range(128)).decode()
_LEET_BYTES = _ASCII.translate(str.maketrans("0134578@$!|9+", "oieastbasilgt")).encode() + bytes(range(128, 256))
_ROT13_BYTES = codecs.encode(_ASCII, "rot13").encode() + bytes(range(128, 256))
_DISGUISED = "disguised_order"
_QUOTES = "\"'`“”‘’«»„「」『』"


@functools.cache
def _rules() -> tuple[Rule, ...]:
    elsewhere = (
        Rule(name="override_instructions", make_pattern=_override(lists))
        for lists in read("injection")["override"].values()
    )
    return (*load("injection"), *elsewhere)


def _override(lists: str) -> Callable[[], str]:
    """Return a function that makes the pattern of "ignore all earlier instructions" in one language."""

    def written() -> str:
        edge, more = (r"\b", r"\w*") if lists.isascii() else ("", r"[^\x00-\x7f]*")
        drop, prior, order = (any_word(words.strip().split("|")) + more for words in lists.split(" / "))
        orders = (edge + drop, prior, order), (edge + drop, order, prior), (prior, order, drop)
        return "(?i)(?:" + "|".join(map(r"[^.!?\n]{0,40}?".join, orders)) + ")"

    return written


@functools.cache
def _filter() -> Any:
    """One prefilter for all rules, and for encodings that may hide an instruction."""
    return compile_prefilter((*(rule.pattern for rule in _rules()), *TRACES))


@functools.cache
def _disguise_rules() -> tuple[tuple[Rule, ...], Any]:
    """Return the rules that also read disguised texts, and a prefilter for them."""
    names = read("injection")["disguised"].split()
    rules = tuple(rule for rule in load("injection") if rule.name in names)
    return rules, compile_prefilter((*(rule.pattern for rule in rules), read("injection")["closed_up"]))


def cannot_match(text: Text) -> bool:
    """Whether a prefilter excludes any finding in the text. False: it must be scanned."""
    if not text.is_plain or _filter().Match(text.data) is not None:
        return False
    together = b"\n".join((text.data.translate(None, _SEPARATOR_BYTES), *_disguised_forms(text.data)))
    return _disguise_rules()[1].Match(together) is None


def scan(given: str | Text, *, likely: bool = True) -> list[Finding]:
    """Return instructions to a model, by start of span, then end, longer first.

    ``likely=False`` returns certain findings only.
    """
    text = given if isinstance(given, Text) else Text(given)
    if cannot_match(text):
        return []
    findings = _quoted_are_likely(text, list(_certain(text)))
    return merge_findings((each for each in findings if likely or each.certainty == "certain"), len(text.text))


def _certain(text: Text) -> Iterator[Finding]:
    form = text.normal
    yield from _by_rules(form)
    yield from _hidden_characters(text)
    if form.unescaped is not None:
        yield from _by_rules(form.unescaped)
    for piece in form.decoded_runs:
        if any(True for _ in _by_rules(Text(piece.text))):
            yield Finding(detector="encoded_order", start=piece.start, end=piece.end)
    for finding in _find_disguised(form):
        yield replace(finding, detector=_DISGUISED)
    if any(0xE0000 <= ord(char) < 0xE0200 for char in set(text.text)) and any(_by_rules(Text(tag_text(text.text)))):
        yield Finding(detector="invisible_order", start=0, end=len(text.text))


def _by_rules(form: Text) -> Iterator[Finding]:
    rules = _rules()
    for index in _filter().Match(form.data) or ():
        if index < len(rules):
            yield from rules[index].findings(form)


def _find_disguised(form: Text) -> Iterator[Finding]:
    """Find override wording in spaced-out, leetspeak, rot13 and reversed text."""
    rules, _ = _disguise_rules()

    def core(text: Text) -> Iterator[Finding]:
        return itertools.chain.from_iterable(rule.findings(text) for rule in rules)

    pattern = read("injection")["closed_up"]
    if occurs(pattern, form.data.translate(None, _SEPARATOR_BYTES)):
        closed_up = form.without(_SEPARATORS)
        if closed_up is not form:
            yield from _find_spaced_out(form, closed_up, pattern)
    if form.text.isascii() and _disguise_rules()[1].Match(b"\n".join(_disguised_forms(form.data))) is None:
        return
    size = len(form.text)
    if any(map(str.isdigit, form.text)) or "@" in form.text or "$" in form.text:
        # Bytes are translated ten times as fast as a text of other letters, and only signs of one byte change.
        given, leet = form.data.decode(), form.data.translate(_LEET_BYTES).decode()
        for finding in core(Text(leet)):
            if leet[finding.start : finding.end] != given[finding.start : finding.end]:
                yield finding_at(form, finding.start, finding.end, _DISGUISED, finding.certainty)
    if form.text.isascii():
        for finding in core(Text(codecs.encode(form.text, "rot13"))):
            yield finding_at(form, finding.start, finding.end, _DISGUISED, finding.certainty)
    for finding in core(Text(form.text[::-1])):
        yield finding_at(form, size - finding.end, size - finding.start, _DISGUISED, finding.certainty)


def _disguised_forms(data: bytes) -> tuple[bytes, bytes, bytes]:
    """Return ASCII text as leetspeak, rot13 and reversed writing would have hidden it."""
    return data.translate(_LEET_BYTES), data.translate(_ROT13_BYTES), data[::-1]


def _find_spaced_out(form: Text, closed_up: Text, pattern: str) -> Iterator[Finding]:
    """Yield orders whose letters are set apart; words in their normal spacing are for the ordinary rules."""
    original = form.indices_without(_SEPARATORS)
    for start, end in itertools.islice(closed_up.spans(pattern), 100):
        first, last = original[start], original[end - 1] + 1
        words = form.text[first:last].split()
        short = sum(1 for word in words if len(word.strip(_SEPARATORS)) <= 2)
        marked = any(mark in word.strip(_SEPARATORS) for word in words for mark in ".-_*|/\\~+")
        if short * 2 >= len(words) or marked or len(words) == 1:
            yield finding_at(form, first, last, _DISGUISED, "certain")


def _hidden_characters(text: Text) -> Iterator[Finding]:
    """Yield runs of characters that hide text or reverse its direction."""
    if text.text.isascii():
        return
    tables = read("injection")["hidden_characters"]
    for start, end in itertools.islice(text.spans(tables["runs"]), 100):
        # Flags of England, Scotland and Wales are a black flag and six tags.
        if not (start and text.text[start - 1] == "\U0001f3f4" and end - start <= 7):
            yield Finding(detector="invisible_text", start=start, end=end)
    # Three are no stray soft hyphen.
    inside = [(start + 1, end - 1) for start, end in itertools.islice(text.spans(tables["inside"]), 3)]
    if len(inside) >= 3 or any(text.text[start] != "\u00ad" for start, _ in inside):
        certainty: Certainty = "certain" if len(inside) >= 3 else "likely"
        yield Finding(detector="invisible_text", start=inside[0][0], end=inside[-1][1], certainty=certainty)
    turned = [start for start, _ in itertools.islice(text.spans(tables["turning"]), 100)]
    if turned:
        right_to_left = any("\u0590" <= char <= "\u08ff" for char in text.text)
        certainty = "likely" if right_to_left else "certain"
        yield Finding(detector="bidi_control", start=turned[0], end=turned[-1] + 1, certainty=certainty)


def _quoted_are_likely(text: Text, findings: list[Finding]) -> Iterator[Finding]:
    """Lower quoted forms to ``likely`` in a text that talks about attacks."""
    about: bool | None = None
    for finding in findings:
        hidden = finding.detector in {"invisible_order", "encoded_order"}
        if finding.certainty == "certain" and not hidden and _is_quoted(text.text, finding):
            about = text.occurs(read("injection")["about_attacks"]) if about is None else about
            yield replace(finding, certainty="likely") if about else finding
        else:
            yield finding


def _is_quoted(text: str, finding: Finding) -> bool:
    before = text[max(0, finding.start - 60) : finding.start]
    after = text[finding.end : finding.end + 80]
    return any(mark in before for mark in _QUOTES) and any(mark in after for mark in _QUOTES)
