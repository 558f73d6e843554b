"""Orders to a model hidden in what should be remembered.

Invariants
(1) Wording helps and never decides: what a finding means depends on the origin of the text.
(2) ``certain`` is kept for forms ordinary writing does not have; a form that stands in quotation marks in a
    text about such attacks is only ``likely``.
(3) The text is read as given, unescaped, unspaced, in leetspeak, rotated, reversed and decoded.
"""

# ruff: noqa: E501

from __future__ import annotations

import codecs
import functools
from collections.abc import Iterator
from itertools import islice

from keepward.gates.detect.encoded import TRACES, hidden, unescaped
from keepward.gates.detect.engine import Haystack, Pack, Sieve, occurs, run, settled
from keepward.gates.detect.finding import Certainty, Finding
from keepward.gates.detect.hiding import TIGHT, hidden_characters
from keepward.gates.detect.normal import Normal, collapsed, is_plain, normal, tag_text, without
from keepward.gates.detect.orders import CERTAIN, LIKELY
from keepward.gates.detect.orders_abroad import ABROAD_CERTAIN, ABROAD_LIKELY

_SEPARATORS = " \t\r\n.,-_*|/\\~+'\"`:;#()[]{}"
_LEET = str.maketrans(
    {
        "0": "o",
        "1": "i",
        "3": "e",
        "4": "a",
        "5": "s",
        "7": "t",
        "8": "b",
        "@": "a",
        "$": "s",
        "!": "i",
        "|": "l",
        "9": "g",
        "€": "e",
        "+": "t",
    }
)
_SEPARATOR_BYTES = _SEPARATORS.encode()
_ASCII = bytes(range(128)).decode()
_LEET_BYTES = _ASCII.translate(_LEET).encode() + bytes(range(128, 256))
_ROT13_BYTES = codecs.encode(_ASCII, "rot13").encode() + bytes(range(128, 256))
#: Four letters or more, each by itself.
_SPELT = r"(?:^|[^\p{L}])(?:\p{L}[ .*_|/~-]{1,3}){4}"
_ABOUT = (
    r"(?i)prompt[- ]injection|jailbreak|attack(?:er|s|\b)|malicious|red[- ]team|phishing|payload|detector|scanner|adversarial"
    r"|such as|for example|e\.g\.|phrases? like|things like|strings? like|classic|famous|owasp|exploit|vulnerab|researchers?|the string|the phrase"
)
#: Rules that stay telling in a mangled text.
_CORE = frozenset({"override_instructions", "reveal_prompt", "role_play", "hide_from_user"})
_QUOTES = "\"'`“”‘’«»„「」『』"


@functools.cache
def _packs() -> tuple[Pack, Pack]:
    """All rules, and those that stay telling in a mangled text."""
    return Pack((*CERTAIN, *LIKELY)), Pack(tuple(rule for rule in CERTAIN if rule.name in _CORE))


@functools.cache
def _abroad() -> Pack:
    return Pack((*ABROAD_CERTAIN, *ABROAD_LIKELY))


@functools.cache
def _anything() -> Sieve:
    # Orders in other tongues take longer to compile than to look for by their literals.
    return Sieve((*(rule.pattern for rule in (*CERTAIN, *LIKELY)), _SPELT, *TRACES))


@functools.cache
def _disguised() -> Sieve:
    return Sieve(rule.pattern for rule in (*CERTAIN, *TIGHT) if rule.name in _CORE or rule in TIGHT)


def calm(text: str) -> bool:
    """Whether one look at the whole text rules out any finding, in it and in the lines it begins with.

    False means only that it has to be scanned.
    """
    if not is_plain(text):
        return False
    hay = Haystack(text)
    return (
        _anything().silent(hay.data)
        # All disguises in one search; what one of them is looked for in another is found again by ``scan``, or not.
        and _disguised().silent(b"\n".join((hay.data.translate(None, _SEPARATOR_BYTES), *_disguises(hay.data))))
        and not any(hay.occurs(rule.pattern) for rule in _abroad().awake(hay))
    )


def scan(text: str) -> list[Finding]:
    """Return wording and characters that try to steer a model, by start of span, then end, longer first."""
    if calm(text):
        return []
    form = normal(text)
    hay = Haystack(form.text)
    everything, core = _packs()
    findings = list(_mapped(form, [*everything.scan(hay), *_abroad().scan(hay)]))
    findings += hidden_characters(text)
    plain = unescaped(form)
    if plain is not None:
        findings += _mapped(plain, everything.scan(Haystack(plain.text)))
    for piece in hidden(hay):
        inner = Haystack(piece.text)
        found = next(iter([*everything.scan(inner), *_abroad().scan(inner)]), None)
        if found is not None:
            start, end = form.span(piece.start, piece.end)
            findings.append(Finding(detector="encoded_order", start=start, end=end))
    findings += _mangled(form, hay, core)
    if (
        not text.isascii()
        and any(0xE0000 <= ord(char) < 0xE0200 for char in set(text))
        and _has(everything, tag_text(text))
    ):
        findings.append(Finding(detector="invisible_order", start=0, end=len(text)))
    return settled(_weighed(text, findings), len(text))


def _has(pack: Pack, text: str) -> bool:
    return next(iter(pack.scan(Haystack(text))), None) is not None


def _mapped(form: Normal, findings: Iterator[Finding] | list[Finding]) -> Iterator[Finding]:
    for finding in findings:
        start, end = form.span(finding.start, finding.end)
        yield Finding(detector=finding.detector, start=start, end=end, certainty=finding.certainty)


def _mangled(form: Normal, hay: Haystack, core: Pack) -> Iterator[Finding]:
    """Find override wording in letters set apart, leetspeak, rot13 and reversed text."""
    whole = Normal(text=form.text, origin=None)
    joined = collapsed(whole) if hay.occurs(_SPELT) else whole
    if joined is not whole:
        for finding in core.scan(Haystack(joined.text)):
            yield _back(form, *joined.span(finding.start, finding.end), finding.certainty)
    if occurs(TIGHT[0].pattern, hay.data.translate(None, _SEPARATOR_BYTES)):
        tight = without(whole, _SEPARATORS)
        if tight.origin is not None:
            yield from _tight(form, tight, Haystack(tight.text))
    if len(hay.data) == len(form.text) and _disguised().silent(b"\n".join(_disguises(hay.data))):
        return
    if any(map(str.isdigit, form.text)) or "@" in form.text or "$" in form.text:
        # Bytes are translated ten times as fast as a text of other letters, and only signs of one byte change.
        given, leet = hay.data.decode(), hay.data.translate(_LEET_BYTES).decode()
        for finding in core.scan(Haystack(leet)):
            if leet[finding.start : finding.end] != given[finding.start : finding.end]:
                yield _back(form, finding.start, finding.end, finding.certainty)
    if form.text.isascii():
        turned = codecs.encode(form.text, "rot13")
        for finding in core.scan(Haystack(turned)):
            yield _back(form, finding.start, finding.end, finding.certainty)
    size = len(form.text)
    for finding in core.scan(Haystack(form.text[::-1])):
        yield _back(form, size - finding.end, size - finding.start, finding.certainty)


def _disguises(data: bytes) -> tuple[bytes, bytes, bytes]:
    """Return ASCII text as leetspeak, rot13 and reversed writing would have hidden it."""
    return data.translate(_LEET_BYTES), data.translate(_ROT13_BYTES), data[::-1]


def _tight(form: Normal, tight: Normal, hay: Haystack) -> Iterator[Finding]:
    for finding in islice(run(TIGHT[0], hay), 100):
        start, end = tight.span(finding.start, finding.end)
        # Words in their normal spacing are for the ordinary rules; this one is for broken-up letters.
        if _broken(form.text[start:end]):
            yield _back(form, start, end, "certain")


def _broken(text: str) -> bool:
    words = text.split()
    short = sum(1 for word in words if len(word.strip(_SEPARATORS)) <= 2)
    return (
        short * 2 >= len(words)
        or any(mark in word.strip(_SEPARATORS) for word in words for mark in ".-_*|/\\~+")
        or len(words) == 1
    )


def _back(form: Normal, start: int, end: int, certainty: Certainty) -> Finding:
    first, last = form.span(start, end)
    return Finding(detector="disguised_order", start=first, end=last, certainty=certainty)


def _weighed(text: str, findings: list[Finding]) -> Iterator[Finding]:
    """Lower quoted forms to ``likely`` in a text that talks about attacks."""
    about: bool | None = None
    for finding in findings:
        if (
            finding.certainty == "certain"
            and finding.detector not in {"invisible_order", "encoded_order"}
            and _quoted(text, finding)
        ):
            if about is None:
                about = Haystack(text).occurs(_ABOUT)
            if about:
                yield Finding(detector=finding.detector, start=finding.start, end=finding.end, certainty="likely")
                continue
        yield finding


def _quoted(text: str, finding: Finding) -> bool:
    before = text[max(0, finding.start - 60) : finding.start]
    after = text[finding.end : finding.end + 80]
    return any(mark in before for mark in _QUOTES) and any(mark in after for mark in _QUOTES)
