"""Instructions to a model in a text.

The consequence of a finding depends on the trust of the text. A finding is certain if the text has a form that ordinary
writing does not have, such as "Ignore all previous instructions", or hidden characters. It is likely if the hidden
characters also have an ordinary use. The rules read the original text and its unescaped, decoded, spaced-out,
leetspeak, rot13 and reversed forms.

Text before or after an instruction never makes a finding less certain: no rule requires the start or the end of the
text, and no words near a finding excuse it.
"""

from __future__ import annotations

import codecs
import functools
import itertools
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from keepward.core.linear_patterns import compile_prefilter, occurs
from keepward.core.patterns import lazy_regex
from keepward.gates.detectors.matcher import Certainty, Finding, Rule, finding_at, merge_findings
from keepward.gates.detectors.normalize import TRACES, Text, tag_text
from keepward.gates.detectors.rules import any_word, load
from keepward.gates.detectors.tables import read

#: Name of the rules for texts that let an agent act without confirmation.
WEAKENS_SAFEGUARD = "weakens_safeguard"
_SEPARATORS = " \t\r\n.,-_*|/\\~+'\"`:;#()[]{}"
_SEPARATOR_BYTES = _SEPARATORS.encode()
_ASCII = bytes(range(128)).decode()
#: Signs for letters, and digits for letters alone, because a sign such as ``!`` may also follow a word.
_LEET_TABLES = tuple(
    _ASCII.translate(str.maketrans(signs, "oieastbgasilt"[: len(signs)])).encode() + bytes(range(128, 256))
    for signs in ("01345789@$!|+", "01345789")
)
_ROT13_BYTES = codecs.encode(_ASCII, "rot13").encode() + bytes(range(128, 256))
_DISGUISED = "disguised_order"
#: Signs around a statement that a rule takes for letters: underscores that are in no name, and escaped line ends.
_FRAME = lazy_regex(r"(?<![A-Za-z0-9])_+|_+(?![A-Za-z0-9])|\\[nrt]")


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
    if not text.is_plain:
        return False
    framed = _without_frame(text)
    if _filter().Match(text.data) is not None or (framed is not None and _filter().Match(framed.data) is not None):
        return False
    forms = (text,) if framed is None else (text, framed)
    apart = text.data.translate(None, _SEPARATOR_BYTES)
    together = b"\n".join((apart, *itertools.chain.from_iterable(map(_disguised_forms, forms))))
    return _disguise_rules()[1].Match(together) is None


def scan(given: str | Text, *, likely: bool = True) -> list[Finding]:
    """Return instructions to a model, by start of span, then end, longer first.

    ``likely=False`` returns certain findings only.
    """
    text = given if isinstance(given, Text) else Text(given)
    if cannot_match(text):
        return []
    findings = _find(text)
    return merge_findings((each for each in findings if likely or each.certainty == "certain"), len(text.text))


def _without_frame(text: Text) -> Text | None:
    """Return the text with blanks instead of the signs around its statements; None if there are none."""
    plain = text.text
    if "_" in plain or "\\" in plain:
        plain = _FRAME.sub(lambda run: " " * len(run[0]), plain)
    if not plain.isascii():
        # The normal form of some symbols is a letter.
        plain = plain.translate({ord(char): " " for char in set(plain) if _is_sign(char)})
    return None if plain == text.text else Text(plain, text.origin)


def _is_sign(char: str) -> bool:
    """Whether a character is a symbol, or a styled letter that may serve as one."""
    return unicodedata.category(char) == "So" or (not char.isascii() and unicodedata.normalize("NFKC", char).isascii())


def _find(text: Text) -> Iterator[Finding]:
    yield from _hidden_characters(text)
    framed = _without_frame(text)
    for form in (text.normal,) if framed is None else (text.normal, framed.normal):
        yield from _by_rules(form)
        if form.unescaped is not None:
            yield from _by_rules(form.unescaped)
        for piece in form.decoded_runs:
            if any(True for _ in _by_rules(Text(piece.text))):
                yield Finding(detector="encoded_order", start=piece.start, end=piece.end)
        for finding in _find_disguised(form):
            yield replace(finding, detector=_DISGUISED)
    yield from _find_spaced_out(text.normal)
    if any(0xE0000 <= ord(char) < 0xE0200 for char in set(text.text)) and any(_by_rules(Text(tag_text(text.text)))):
        yield Finding(detector="invisible_order", start=0, end=len(text.text))


def _by_rules(form: Text) -> Iterator[Finding]:
    rules = _rules()
    for index in _filter().Match(form.data) or ():
        if index < len(rules):
            yield from rules[index].findings(form)


def _find_disguised(form: Text) -> Iterator[Finding]:
    """Find override wording in leetspeak, rot13 and reversed text."""
    rules, _ = _disguise_rules()

    def core(text: Text) -> Iterator[Finding]:
        return itertools.chain.from_iterable(rule.findings(text) for rule in rules)

    if _disguise_rules()[1].Match(b"\n".join(_disguised_forms(form))) is None:
        return
    size = len(form.text)
    if any(map(str.isdigit, form.text)) or "@" in form.text or "$" in form.text:
        # Bytes are translated ten times as fast as a text of other letters, and only signs of one byte change.
        given = form.data.decode()
        for table in _LEET_TABLES:
            leet = form.data.translate(table).decode()
            for finding in core(Text(leet)):
                if leet[finding.start : finding.end] != given[finding.start : finding.end]:
                    yield finding_at(form, finding.start, finding.end, _DISGUISED, finding.certainty)
    for finding in core(Text(codecs.encode(form.text, "rot13"))):
        yield finding_at(form, finding.start, finding.end, _DISGUISED, finding.certainty)
    for finding in core(Text(form.text[::-1])):
        yield finding_at(form, size - finding.end, size - finding.start, _DISGUISED, finding.certainty)


def _disguised_forms(form: Text) -> tuple[bytes, ...]:
    """Return a text as leetspeak, rot13 and reversed writing would have hidden it."""
    data = form.data
    turned = data[::-1] if len(data) == len(form.text) else form.text[::-1].encode("utf-8", "replace")
    return *map(data.translate, _LEET_TABLES), data.translate(_ROT13_BYTES), turned


def _find_spaced_out(form: Text) -> Iterator[Finding]:
    """Yield orders whose letters are set apart; words in their normal spacing are for the ordinary rules."""
    pattern = read("injection")["closed_up"]
    if not occurs(pattern, form.data.translate(None, _SEPARATOR_BYTES)):
        return
    closed_up = form.without(_SEPARATORS)
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
    hidden = (span for span in text.spans(tables["runs"]) if not _is_flag(text.text, *span))
    for start, end in itertools.islice(hidden, 100):
        yield Finding(detector="invisible_text", start=start, end=end)
    # Three are no stray soft hyphen.
    inside = [(start + 1, end - 1) for start, end in itertools.islice(text.spans(tables["inside"]), 3)]
    if len(inside) >= 3 or any(text.text[start] != "\u00ad" for start, _ in inside):
        certainty: Certainty = "certain" if len(inside) >= 3 else "likely"
        yield Finding(detector="invisible_text", start=inside[0][0], end=inside[-1][1], certainty=certainty)
    turned = [start for start, _ in itertools.islice(text.spans(tables["turning"]), 100)]
    if turned:
        # Text from right to left needs isolates and embeddings, and hardly ever an override.
        ordinary = any("\u0590" <= char <= "\u08ff" for char in text.text) and not {*"\u202d\u202e"} & {*text.text}
        certainty = "likely" if ordinary else "certain"
        yield Finding(detector="bidi_control", start=turned[0], end=turned[-1] + 1, certainty=certainty)


def _is_flag(text: str, start: int, end: int) -> bool:
    """Whether a run is the tags of a flag, such as that of Scotland: a black flag and six tags."""
    return text[max(0, start - 1)] == "\U0001f3f4" and end - start <= 7 and text[end - 1] == "\U000e007f"
