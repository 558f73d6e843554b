"""Normal forms of a text, each with a way back to the text that was given.

Invariants
(1) ``spans`` of a normal form map onto the original: the original span covers every code point that
    contributed to the normal one, and what was deleted between them.
(2) Plain ASCII is its own normal form and costs one check.
(3) Letters are mapped one by one from tables; no text-length work but a few passes of C code.
(4) Look-alike letters turn Latin only in words that hold Latin letters, or wholly look-alike words of a
    text that is mostly Latin: Russian and Greek stay what they are.
"""

from __future__ import annotations

import functools
import re
import string
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain, compress, repeat

from keepward.gates.detect.lookalikes import LATIN_FOLDS, LOOKALIKES, STYLED

_TAG_FIRST, _TAG_LAST = 0xE0020, 0xE007E


@dataclass(frozen=True, slots=True, kw_only=True)
class Normal:
    """A normal form and where each of its code points came from."""

    text: str
    #: Original offset of each code point, one more for the end; None when offsets are equal.
    origin: tuple[int, ...] | None
    #: Whether several original code points may stand for one, so that a span must reach to the next.
    encoded: bool = False

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Map a span of the normal form to the original."""
        if self.origin is None or start >= end:
            return (start, end) if self.origin is None else (self.origin[start], self.origin[start])
        # What was dropped or encoded after the last code point belongs to it, blanks excepted.
        return self.origin[start], max(self.origin[end - 1] + 1, self._reach(end))

    def _reach(self, end: int) -> int:
        assert self.origin is not None
        return self.origin[end] if self.encoded else 0


def is_plain(text: str) -> bool:
    """Whether a text is its own normal form (2)."""
    return text.isascii() and "\x00" not in text and "\x08" not in text


def normal(text: str) -> Normal:
    """Delete invisible characters, fold compatibility forms, accents and look-alike letters.

    Case, spacing and line breaks stay.
    """
    if is_plain(text):
        return Normal(text=text, origin=None)
    table = {char: _fold(char) for char in set(text)}
    origin: tuple[int, ...] | None = None
    if any(char != folded for char, folded in table.items()):
        pieces = list(map(table.__getitem__, text))
        widths = bytes(map(len, pieces))
        if widths.count(1) != len(widths):
            places = range(len(text))
            steps = compress(places, widths) if max(widths) < 2 else chain.from_iterable(map(repeat, places, widths))
            origin = (*steps, len(text))
        text = "".join(pieces)
    return Normal(text=_latin(text), origin=origin)


@functools.lru_cache(maxsize=4096)
def _fold(char: str) -> str:
    if char in STYLED:
        return STYLED[char]
    if char in LATIN_FOLDS:
        return LATIN_FOLDS[char]
    if invisible(char):
        return ""
    code = ord(char)
    if 0x300 <= code <= 0x36F:
        return ""
    category = unicodedata.category(char)
    if category == "Zs":
        return " "
    if char in "\u2028\u2029\x85":
        return "\n"
    folded = unicodedata.normalize("NFKC", char)
    if 0xC0 <= code <= 0x24F or 0x1E00 <= code <= 0x1EFF or 0x386 <= code <= 0x3CE or char in "ёЁ":
        base = unicodedata.normalize("NFD", folded)
        folded = "".join(c for c in base if not unicodedata.combining(c))
    return folded or char


def invisible(char: str) -> bool:
    """Whether a reader sees nothing: format, tag, filler and control characters other than tab and line ends."""
    if char in "\n\t\r":
        return False
    code = ord(char)
    return (
        unicodedata.category(char) in {"Cf", "Cc"}
        or 0xFE00 <= code <= 0xFE0F
        or 0xE0000 <= code <= 0xE0FFF
        or code in {0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x180B, 0x180C, 0x180D, 0x3164, 0xFFA0, 0x2800}
    )


def _latin(text: str) -> str:
    found = LOOKALIKES.keys() & set(text)
    if not found:
        return text
    ascii_only = text.encode("ascii", "ignore")
    latin = len(ascii_only) - len(ascii_only.translate(None, _ASCII_LETTERS))
    if not latin:
        return text
    mostly = latin * 4 >= sum(map(str.isalpha, text)) * 3
    return _WORD.sub(lambda match: _latin_word(match[0], mostly=mostly), text)


def _latin_word(word: str, *, mostly: bool) -> str:
    letters = set(word)
    if letters <= _LATIN_OR_ALIKE and (mostly or not letters.isdisjoint(string.ascii_letters)):
        return word.translate(_LOOKALIKE_TABLE)
    return word


_ASCII_LETTERS = string.ascii_letters.encode()
_LATIN_OR_ALIKE = frozenset(LOOKALIKES) | frozenset(map(chr, range(128)))
#: Letters, digits and the underscore, as long as they go on, with one beyond ASCII among them. It begins where a word
#: does and takes nothing back: one pass, whatever the text.
_WORD = re.compile(r"(?<!\w)[0-9A-Za-z_]*+[^\W\x00-\x7f]\w*+")
_LOOKALIKE_TABLE = {ord(char): latin for char, latin in LOOKALIKES.items()}


def without(form: Normal, dropped: str) -> Normal:
    """Delete the given ASCII characters, keeping the way back to the first original."""
    # As bytes, since a text of other letters is translated letter by letter.
    text = form.text.encode("utf-8", "surrogatepass").translate(None, dropped.encode()).decode("utf-8", "surrogatepass")
    if len(text) == len(form.text):
        return form
    kept = set(form.text).difference(dropped)
    places = compress(range(len(form.text)), map(kept.__contains__, form.text))
    return Normal(text=text, origin=traced(form, (*places, len(form.text))))


def traced(form: Normal, places: Iterable[int]) -> tuple[int, ...]:
    """Return where places of a normal form stand in the original."""
    return tuple(places) if form.origin is None else tuple(map(form.origin.__getitem__, places))


def collapsed(form: Normal) -> Normal:
    """Join letters set apart one by one: ``i g n o r e  a l l`` becomes ``ignore all``.

    A run needs four single letters with the same separator (blank, dot, hyphen, underscore, star, bar or
    slash) between them; two or more separators, or a blank among other separators, end a word.
    """
    text = form.text
    out: list[str] = []
    origin: list[int] = []
    last = 0
    for run in _APART.finditer(text):
        start, end = run.span()
        out += (text[last:start], text[start:end:2])
        origin += range(last, start)
        origin += range(start, end, 2)
        last = end
    if not out:
        return form
    out.append(text[last:])
    origin += range(last, len(text) + 1)
    return Normal(text="".join(out), origin=traced(form, origin))


#: Four letters or more, each by itself, with one and the same separator between them. Each step is one way or the end,
#: and a start that fails has looked at six characters: time grows with the text and no faster.
_APART = re.compile(r"(?<![^\W_])[^\W_](?=([ .\-_*|/~]))(?:\1[^\W_](?![^\W_])){3,}")


def tag_text(text: str) -> str:
    """Return what tag characters or variation selectors spell, which no reader sees: whichever are more."""
    tags = _NO_TAG.sub("", text).translate(_TAGS)
    selectors = _NO_SELECTOR.sub("", text)
    # A selector may stand for any byte; those that are no signs are of emoji.
    return _NO_SIGN.sub("", selectors.translate(_SELECTORS)) if len(selectors) > len(tags) else tags


_TAGS = {code: code - 0xE0000 for code in range(_TAG_FIRST, _TAG_LAST + 1)}
_SELECTORS = {0xFE00 + n: n for n in range(16)} | {0xE0100 - 16 + n: n for n in range(16, 256)}
_NO_TAG = re.compile(f"[^{chr(_TAG_FIRST)}-{chr(_TAG_LAST)}]+")
_NO_SELECTOR = re.compile("[^\ufe00-\ufe0f\U000e0100-\U000e01ef]+")
_NO_SIGN = re.compile("[^ -~]+")


def show_invisible(text: str) -> str:
    """Write every invisible, bidirectional, control and tag character as ``⟦U+200B⟧``; the rest unchanged.

    Blanks other than the plain one are shown too, and lone surrogates; tab and line ends are not.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(f"⟦U+{ord(char):04X}⟧" if _hard_to_see(char) else char for char in text)


def _hard_to_see(char: str) -> bool:
    if char in "\n\t ":
        return False
    return char == "\r" or invisible(char) or unicodedata.category(char) in {"Zs", "Zl", "Zp", "Cs", "Cn"}


def odd_unicode(text: str) -> str | None:
    """Name the first character no memory may hold, such as ``U+0000 NUL``; None when there is none.

    Odd are lone surrogates, NUL, noncharacters, and C0 or C1 controls other than tab and line ends.
    """
    if text.isascii() and text.isprintable():
        return None
    for char in text:
        code = ord(char)
        if code < 0x20 and char not in "\n\t\r":
            return f"U+{code:04X} {'NUL' if code == 0 else 'control character'}"
        if 0x7F <= code <= 0x9F:
            return f"U+{code:04X} control character"
        if 0xD800 <= code <= 0xDFFF:
            return f"U+{code:04X} lone surrogate"
        if 0xFDD0 <= code <= 0xFDEF or code & 0xFFFE == 0xFFFE:
            return f"U+{code:04X} noncharacter"
    return None
