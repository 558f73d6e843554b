"""Sameness: the declared normalisation under which two texts count as equal.

It is declared because "equal after normalisation" is a promise: what is not named in ``normalise`` is kept.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from typing import Final

# Compatibility forms that NFKC would fuse with the digits around them: 10² is not 102, 3½ is not 31/2.
_RAISED = re.compile("[²³¹⁰⁴-⁹⁺⁻]+|[₀-₉₊₋]+|[¼-¾⅐-⅞↉①-⓿]|№")
_UNIFIED: Final = str.maketrans("“”„‟«»‘’‚‛‐‑‒–—―−⁄﹘︱︲", '""""""\'\'\'\'-------/---') | dict.fromkeys(
    map(ord, "\u00ad\u200b\u2060\ufeff"), ""
)
# Two ligatures stand for whole sentences; spelt out they would multiply a text by eighteen.
_COMPOSABLE = re.compile("[^\ufdfa\ufdfb]+")
OPENING: Final = "\"'([{`"
CLOSING: Final = ".,;:!\"')]}`"
SENTENCE_ENDS: Final = (".", "!", "?", ":")


def normalise(text: str) -> str:
    """Return the form under which two texts count as equal.

    Done, in this order: soft hyphens, zero-width spaces and byte order marks dropped; NFKC, with raised,
    lowered, fractional and circled digits kept apart from their neighbours; typographic quotes and dashes
    and the minus sign made plain; whitespace collapsed to single spaces and trimmed; words that are letters
    with at most a first capital put in lower case; the closing full stops (or, after a letter, exclamation
    marks) of the text dropped.

    Kept, because it can carry meaning: every digit, sign and unit; question marks; word order; the case of
    anything that is more than a first capital ("US" is not "us", nor "MB" "Mb", nor ``fooBar`` ``foobar``), that
    holds a digit or other sign (``/Data``, ``-V``), or that is one letter (except "A" opening a sentence); "ß".
    Words that differ by a first capital only ("Polish", "polish") are equal, since sentences capitalise.

    Idempotent. Linear in the text: NFKC spares the ligatures U+FDFA and U+FDFB, and is left out for a text with
    over thirty combining marks in a row, which no language writes.
    """
    if not text.isascii():
        text = _compose(_RAISED.sub(_apart, text.translate(_UNIFIED)))
    words = text.split()
    plain = " ".join(
        [
            word
            if word.islower() or word == word.lower()
            else _fold(word, first=not at or words[at - 1].endswith(SENTENCE_ENDS))
            for at, word in enumerate(words)
        ]
    )
    return _without_end(plain if plain.isascii() else _compose(plain))


def digest(text: str) -> str:
    """Return the SHA-256 of ``normalise(text)`` in UTF-8, as 64 hex digits; lone surrogates are allowed."""
    return hashlib.sha256(normalise(text).encode("utf-8", "surrogatepass")).hexdigest()


def _apart(match: re.Match[str]) -> str:
    shown = match[0]
    if shown == "№":
        return "#"
    plain = unicodedata.normalize("NFKC", shown).translate(_UNIFIED)
    tag = unicodedata.decomposition(shown[0])
    if tag.startswith("<super>"):
        return "^" + plain
    if tag.startswith("<sub>"):
        return "_" + plain
    return f" {plain} "


def _compose(text: str) -> str:
    run = 0
    for mark in map(unicodedata.combining, text):
        run = run + 1 if mark else 0
        if run > 30:
            return text
    return _COMPOSABLE.sub(lambda part: unicodedata.normalize("NFKC", part[0]), text)


def _fold(word: str, *, first: bool) -> str:
    core = word.strip(OPENING + CLOSING + "?")
    if len(core) < 2:
        return word.replace("A", "a") if first and core == "A" else word
    if core[1:] != core[1:].lower() or not core.replace("-", "").replace("'", "").isalpha():
        return word
    return word.replace(core, core[0].lower() + core[1:], 1) if core[0].isalpha() else word


def _without_end(plain: str) -> str:
    core = plain.rstrip(".。!…")
    # ".." and "../.." are paths and "5!" a product: only a word or a closing sign sheds its marks.
    if not core or not (core[-1].isalnum() or core[-1] in "\"')]"):
        return plain
    if core[-1].isalpha() or "!" not in plain[len(core) :]:
        return core
    return plain.rstrip(".。…")
