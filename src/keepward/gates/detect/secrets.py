"""Secrets in a text: documented provider formats, keys, credentials, assignments and told passwords.

Invariants
(1) Findings of a documented format are ``certain``; told and assigned values are ``likely``.
(2) The same rules read the text as given, with invisible characters and look-alikes undone, with escapes
    undone, with quotes and line breaks squeezed out, and decoded from base64 or hexadecimal.
(3) Spans always refer to the text that was given.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterator

from keepward.gates.detect.assigned import GATE, assignments
from keepward.gates.detect.encoded import TRACES, hidden, unescaped
from keepward.gates.detect.engine import Haystack, Pack, Sieve, settled
from keepward.gates.detect.finding import Finding
from keepward.gates.detect.keyblocks import BLOCKS
from keepward.gates.detect.normal import Normal, is_plain, normal, without
from keepward.gates.detect.providers import PREFIXED, SQUEEZED
from keepward.gates.detect.strength import entropy, not_example
from keepward.gates.detect.told import GATED, TELLING, tells, told

_JUNK = " \t\r\n\"'`+\\"
_JUNK_BYTES = _JUNK.encode()


@functools.cache
def _pack() -> Pack:
    return Pack((*PREFIXED, *BLOCKS))


@functools.cache
def _squeezed() -> Pack:
    return Pack(SQUEEZED)


#: Where in ``_anything`` the patterns of the pack end, and those of ``told`` begin.
_RULES = len(PREFIXED) + len(BLOCKS)
_TOLD = _RULES + 1


#: Rules without a telling string: nobody sees at a glance where they cannot match. Every match of theirs holds a run.
BARE = frozenset(
    {
        "artifactory_password", "asana_token", "aws_access_key", "beamer_token", "discord_token", "flyio_token",
        "mailgun_key", "session_cookie", "supabase_key", "twilio_key", "vault_token", "yandex_key",
    }
)  # fmt: skip
RUN = r"[A-Za-z0-9%+./=_~-]{16}"


@functools.cache
def _anything() -> Sieve:
    rules = (*PREFIXED, *BLOCKS)
    bare = [place for place, rule in enumerate(rules) if rule.name in BARE]
    patterns = (*(rule.pattern for rule in rules), GATE, *tells(), *TRACES)
    return Sieve(patterns, {RUN: bare, TELLING: range(_TOLD, _TOLD + GATED)})


@functools.cache
def _anything_split() -> Sieve:
    return Sieve(rule.pattern for rule in SQUEEZED)


def calm(text: str) -> bool:
    """Whether one look at the whole text rules out any finding, in it and in each of its lines.

    False means only that it has to be scanned.
    """
    if not is_plain(text):
        return False
    data = text.encode()
    return _anything().silent(data) and _anything_split().silent(data.translate(None, _JUNK_BYTES))


def scan(text: str) -> list[Finding]:
    """Return what looks like a secret, by start of span, then end, longer first."""
    hay = Haystack(text)
    form = normal(text)
    findings = list(_plain(hay, _anything().matching(hay.data))) if form.text == text else list(_mapped(form))
    if form.text != text and form.origin is None:
        # A folded letter may have been part of the secret itself.
        findings += _plain(hay)
    plain = unescaped(form)
    if plain is not None:
        findings += _mapped(plain)
    for piece in hidden(Haystack(form.text)):
        # One finding covers the run: half an encoding is no safer than the whole.
        inner = next(iter(_plain(Haystack(piece.text))), None)
        if inner is not None:
            start, end = form.span(piece.start, piece.end)
            findings.append(Finding(detector=inner.detector, start=start, end=end, certainty=inner.certainty))
    if not _anything_split().silent(form.text.encode("utf-8", "replace").translate(None, _JUNK_BYTES)):
        findings += _split(form)
    return settled(findings, len(text))


def _plain(hay: Haystack, occurring: Collection[int] | None = None) -> Iterator[Finding]:
    """Yield findings of all rules, or only of those that are known to occur, by their places in ``_anything``."""
    if occurring is None:
        yield from _pack().scan(hay)
        yield from assignments(hay)
        yield from told(hay)
    elif occurring:
        if min(occurring) < _RULES:
            yield from _pack().scan(hay)
        yield from assignments(hay)
        yield from told(hay, {place - _TOLD for place in occurring if place >= _TOLD})


def _mapped(form: Normal) -> Iterator[Finding]:
    for finding in _plain(Haystack(form.text)):
        start, end = form.span(finding.start, finding.end)
        yield Finding(detector=finding.detector, start=start, end=end, certainty=finding.certainty)


def _split(form: Normal) -> Iterator[Finding]:
    """Find keys broken up by blanks, line ends, quotes and plus signs."""
    whole = form.text
    # Asked of bytes first: to know where each letter stood takes ten times as long.
    rules = _squeezed().awake(Haystack(whole.encode("utf-8", "replace").translate(None, _JUNK_BYTES).decode()))
    if not rules:
        return
    tight = without(Normal(text=whole, origin=None), _JUNK)
    if tight.origin is None:
        return
    hay = Haystack(tight.text)
    for rule in rules:
        for count, (start, end) in enumerate(hay.spans(rule.pattern)):
            if count > 200:
                return
            first, last = tight.span(start, end)
            body = tight.text[start:end]
            while last < len(whole) and (whole[last] in "-_" or (whole[last].isascii() and whole[last].isalnum())):
                last += 1
            if last - first <= end - start or not _starts(whole, first):
                continue
            if not_example(body) and entropy(body) >= 3.2 and sum(map(str.isdigit, body[4:])) >= 1:
                first, last = form.span(first, last)
                yield Finding(detector=rule.name, start=first, end=last)


def _starts(text: str, position: int) -> bool:
    return position == 0 or not (text[position - 1].isascii() and text[position - 1].isalnum())
