"""Orders to a model hidden in what should be remembered.

Invariants
(1) Wording helps and never decides: what a finding means depends on the origin of the text.
(2) ``certain`` is kept for forms ordinary writing does not have; a form that stands in quotation marks in a
    text about such attacks is only ``likely``.
(3) The text is read as given, unescaped, unspaced, in leetspeak, rotated, reversed and decoded.
(4) A likely order that is told to people (staff, guests, readers of a manual or a licence) is none, in a note where
    nothing speaks of a model.
(5) The kinds of the words of a note are weighed: an order is found in wordings without a rule, and a likely one is
    dropped whose words are not those of an order.
"""

from __future__ import annotations

import codecs
import functools
import itertools
from collections.abc import Iterator
from dataclasses import replace

from keepward.gates.detect import sentences
from keepward.gates.detect.engine import SHORT, Certainty, Finding, Pack, Sieve, located, settled
from keepward.gates.detect.rules import any_word, load
from keepward.gates.detect.tables import listed, read
from keepward.gates.detect.text import TRACES, Text, occurs, tag_text

_SEPARATORS = " \t\r\n.,-_*|/\\~+'\"`:;#()[]{}"
_SEPARATOR_BYTES = _SEPARATORS.encode()
_ASCII = bytes(range(128)).decode()
_LEET_BYTES = _ASCII.translate(str.maketrans("0134578@$!|9+", "oieastbasilgt")).encode() + bytes(range(128, 256))
_ROT13_BYTES = codecs.encode(_ASCII, "rot13").encode() + bytes(range(128, 256))
#: Four letters or more, each by itself.
_SPELT = r"(?:^|[^\p{L}])(?:\p{L}[ .*_|/~-]{1,3}){4}"
#: The same in ASCII, which compiles in a tenth of the time.
_SPELT_PLAIN = _SPELT.replace(r"[^\p{L}]", "[^A-Za-z]").replace(r"\p{L}", "[A-Za-z]")
#: The least score of a note in which a likely order counts, and how many kinds of words make its language known.
_LEAST, _KNOWN = -9.5, 4
#: Characters of a note that may be excused as told to people.
_LONGEST_NOTE = 2_000
_DISGUISED = "disguised_order"
#: What ends a sentence.
_ENDS = ".!?\n。！？"
_QUOTES = "\"'`“”‘’«»„「」『』"


@functools.cache
def _packs() -> tuple[Pack, Pack, Pack]:
    """Return the rules for English, those for other languages, and those that stay telling in a mangled text."""
    core = read("orders")["core"].split()
    mangled = (rule for rule in load("orders") if rule.certainty == "certain" and rule.name in core)
    abroad = (*load("orders_abroad", "override"), *load("orders_abroad", "sentence"), *load("orders_abroad"))
    return Pack(load("orders")), Pack(abroad), Pack(mangled)


@functools.cache
def _anything() -> Sieve:
    # Orders in other tongues take longer to compile than to look for by their literals.
    return Sieve(lambda: itertools.chain((rule.pattern for rule in load("orders")), (_SPELT, *TRACES)))


@functools.cache
def _disguised() -> Sieve:
    return Sieve(lambda: (rule.pattern for rule in (*_packs()[2].rules, *load("orders", "tight"))))


def calm(text: Text) -> bool:
    """Whether one look at the whole text rules out any finding, in it and in the lines it begins with.

    False means only that it has to be scanned.
    """
    return (
        text.is_plain
        and not sentences.may_order(text)
        and _anything().silent(text.data)
        and _undisguised(text.data.translate(None, _SEPARATOR_BYTES), *_disguises(text.data))
        and not any(text.occurs(rule.pattern) for rule in _packs()[1].awake(text))
    )


def scan(given: str | Text) -> list[Finding]:
    """Return wording and characters that try to steer a model, by start of span, then end, longer first."""
    text = given if isinstance(given, Text) else Text(given)
    if calm(text):
        return []
    form = text.normal
    english, abroad, _ = _packs()
    findings = [*english.scan(form), *abroad.scan(form), *_hidden_characters(text)]
    if form.unescaped is not None:
        findings += english.scan(form.unescaped)
    for piece in form.hidden:
        inner = Text(piece.text)
        if any(True for pack in (english, abroad) for _ in pack.scan(inner)):
            findings.append(Finding(detector="encoded_order", start=piece.start, end=piece.end))
    findings += (replace(finding, detector=_DISGUISED) for finding in _mangled(form))
    if any(0xE0000 <= ord(char) < 0xE0200 for char in set(text.text)) and any(english.scan(Text(tag_text(text.text)))):
        findings.append(Finding(detector="invisible_order", start=0, end=len(text.text)))
    return settled(_weighed(text, findings), len(text.text))


def _mangled(form: Text) -> Iterator[Finding]:
    """Find override wording in letters set apart, leetspeak, rot13 and reversed text."""
    core = _packs()[2]
    if form.occurs(_SPELT_PLAIN if form.text.isascii() else _SPELT):
        joined = form.collapsed()
        if joined is not form:
            yield from core.scan(joined)
    (tight,) = load("orders", "tight")
    if occurs(tight.pattern, form.data.translate(None, _SEPARATOR_BYTES)):
        closed_up = form.without(_SEPARATORS)
        if closed_up is not form:
            yield from _broken_up(form, closed_up, tight.pattern)
    if len(form.data) == len(form.text) and _undisguised(*_disguises(form.data)):
        return
    size = len(form.text)
    if any(map(str.isdigit, form.text)) or "@" in form.text or "$" in form.text:
        # Bytes are translated ten times as fast as a text of other letters, and only signs of one byte change.
        given, leet = form.data.decode(), form.data.translate(_LEET_BYTES).decode()
        for finding in core.scan(Text(leet)):
            if leet[finding.start : finding.end] != given[finding.start : finding.end]:
                yield located(form, finding.start, finding.end, _DISGUISED, finding.certainty)
    if form.text.isascii():
        for finding in core.scan(Text(codecs.encode(form.text, "rot13"))):
            yield located(form, finding.start, finding.end, _DISGUISED, finding.certainty)
    for finding in core.scan(Text(form.text[::-1])):
        yield located(form, size - finding.end, size - finding.start, _DISGUISED, finding.certainty)


def _undisguised(*forms: bytes) -> bool:
    """Whether it is known that no pattern occurs in any form of a text: in one search, or one each of a long text."""
    # What one of them is looked for in another is found again by ``scan``, or not.
    together = b"\n".join(forms)
    return all(map(_disguised().silent, forms if len(together) > SHORT else (together,)))


def _disguises(data: bytes) -> tuple[bytes, bytes, bytes]:
    """Return ASCII text as leetspeak, rot13 and reversed writing would have hidden it."""
    return data.translate(_LEET_BYTES), data.translate(_ROT13_BYTES), data[::-1]


def _broken_up(form: Text, closed_up: Text, pattern: str) -> Iterator[Finding]:
    """Yield orders whose letters are set apart; words in their normal spacing are for the ordinary rules."""
    kept = form.places_without(_SEPARATORS)
    for start, end in itertools.islice(closed_up.spans(pattern), 100):
        first, last = kept[start], kept[end - 1] + 1
        words = form.text[first:last].split()
        short = sum(1 for word in words if len(word.strip(_SEPARATORS)) <= 2)
        marked = any(mark in word.strip(_SEPARATORS) for word in words for mark in ".-_*|/\\~+")
        if short * 2 >= len(words) or marked or len(words) == 1:
            yield located(form, first, last, _DISGUISED, "certain")


def _hidden_characters(text: Text) -> Iterator[Finding]:
    """Yield runs of characters that hide text or turn its direction."""
    if text.text.isascii():
        return
    tables = read("orders")["hidden_characters"]
    for pattern in tables["runs"]:
        for start, end in itertools.islice(text.spans(pattern), 100):
            # Flags of England, Scotland and Wales are a black flag and six tags.
            if not (start and text.text[start - 1] == "\U0001f3f4" and end - start <= 7):
                yield Finding(detector="invisible_text", start=start, end=end)
    # Three are enough to tell hiding from a stray soft hyphen.
    inside = [(start + 1, end - 1) for start, end in itertools.islice(text.spans(tables["inside"]), 3)]
    if len(inside) >= 3 or any(text.text[start] != "\u00ad" for start, _ in inside):
        certainty: Certainty = "certain" if len(inside) >= 3 else "likely"
        yield Finding(detector="invisible_text", start=inside[0][0], end=inside[-1][1], certainty=certainty)
    turned = [start for start, _ in itertools.islice(text.spans(tables["turning"]), 100)]
    if turned:
        right_to_left = any("\u0590" <= char <= "\u08ff" for char in text.text)
        certainty = "likely" if right_to_left else "certain"
        yield Finding(detector="bidi_control", start=turned[0], end=turned[-1] + 1, certainty=certainty)


def _weighed(text: Text, findings: list[Finding]) -> Iterator[Finding]:
    """Lower quoted forms to ``likely`` in a text that talks about attacks (2)."""
    about: bool | None = None
    findings = _by_words(text, _without_excused(text, findings))
    for finding in findings:
        hidden = finding.detector in {"invisible_order", "encoded_order"}
        if finding.certainty == "certain" and not hidden and _quoted(text.text, finding):
            if about is None:
                about = text.occurs("(?i)" + "|".join(read("orders")["about_attacks"]))
            yield replace(finding, certainty="likely") if about else finding
        else:
            yield finding


def _by_words(text: Text, findings: list[Finding]) -> list[Finding]:
    """Drop likely orders whose words speak against one, and find one where they speak for it (5)."""
    if any(each.certainty == "certain" for each in findings) or not (findings or sentences.may_order(text.normal)):
        return findings
    order = sentences.order(text.normal.text)
    if order is None:
        return findings
    if findings:
        return [] if order.kinds >= _KNOWN and order.best < _LEAST else findings
    ordered = order.score > 0 and sentences.may_order(text.normal)
    return [located(text.normal, order.start, order.end, "order_by_words", "likely")] if ordered else []


def _without_excused(text: Text, findings: list[Finding]) -> list[Finding]:
    """Drop likely orders of a note that is addressed to people, and names neither a model nor what one does (4)."""
    names = read("orders")["excused"]["names"].split()
    held = [each for each in findings if each.certainty == "certain" or each.detector not in names]
    if held or not findings or len(text.text) > _LONGEST_NOTE:
        return findings
    models, people = _excuses()
    if text.normal.occurs(models):
        return findings
    return [each for each in findings if not Text(_sentence(text.text, each)).normal.occurs(people)]


def _sentence(text: str, finding: Finding) -> str:
    first = max(text.rfind(mark, 0, finding.start) for mark in _ENDS) + 1
    return text[first : min((at for mark in _ENDS if (at := text.find(mark, finding.end)) >= 0), default=len(text))]


@functools.cache
def _excuses() -> tuple[str, str]:
    """Return what no excused note holds, and one of which each holds."""
    table = read("orders")["excused"]
    models, readers = (any_word(listed(table[name]), begin=r"\b", end=r"\b") for name in ("models", "readers"))
    return f"(?i){models}", f"(?i:{readers})|{table['people']}"


def _quoted(text: str, finding: Finding) -> bool:
    before = text[max(0, finding.start - 60) : finding.start]
    after = text[finding.end : finding.end + 80]
    return any(mark in before for mark in _QUOTES) and any(mark in after for mark in _QUOTES)
