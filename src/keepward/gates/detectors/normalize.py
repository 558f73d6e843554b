"""A text for detectors: its bytes, its normal form, its decoded runs, and the mapping back to the original.

Invariants
(1) ``original_span`` maps a span of a form to the original text. It covers every code point that contributed, and all
    that was deleted in between. Spans are half-open, in code points.
(2) Plain ASCII is its own normal form and costs one check. Each form of a text is computed once.
(3) Letters are mapped one by one from tables; work on the complete text is limited to a few passes of C code.
(4) Look-alike letters become Latin in words with Latin letters, and in words of look-alikes only if the text is mostly
    Latin. Russian and Greek words stay as they are.
(5) Only decodings that are readable text count. Together they are no longer than the text; nothing is decoded twice.

Late imports: few texts need it.
"""

from __future__ import annotations

import binascii
import codecs
import functools
import html
import re
import string
import unicodedata
import urllib.parse
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, compress, repeat
from typing import NamedTuple

from keepward.core.letters import INVISIBLE
from keepward.core.linear_patterns import compile_bytes, named_groups, occurs
from keepward.core.patterns import lazy_regex, load_toml
from keepward.gates.detectors.tables import lazy_property

#: Maximum number of decoded runs of one text.
_MAX_DECODED_RUNS = 64
#: Bytes that continue a code point in UTF-8.
_CONTINUED = bytes(range(0x80, 0xC0))


class Text:
    """A text, or a form of one, with the mapping back to the original.

    A lone surrogate becomes one question mark in ``data``, so positions are valid for any str.
    """

    #: Maximum number of parses as a phone number in one scan, counted per region, because a parse is slow.
    MAX_PHONE_PARSES = 600

    def __init__(self, text: str, origin: Sequence[int] | None = None, *, encoded: bool = False) -> None:
        self.text = text
        self.data = text.encode("utf-8", "replace")
        #: Original offset of each code point, one more for the end; None when offsets are equal.
        self.origin = origin
        #: Whether several original code points may encode one, so that a span must reach to the next.
        self.encoded = encoded
        self.phone_parses_left = self.MAX_PHONE_PARSES
        #: A byte offset, and the number of code points before it.
        self._counted = (0, 0)

    @lazy_property
    def lower(self) -> str:
        """The text in lower case, for literal tests only; its length may differ."""
        return self.text.lower()

    @lazy_property
    def is_plain(self) -> bool:
        """Whether the text is its own normal form (2)."""
        return self.text.isascii() and "\x00" not in self.text and "\x08" not in self.text

    @lazy_property
    def normal(self) -> Text:
        """The text without invisible characters; compatibility forms, accents and look-alike letters folded.

        Case, spacing and line breaks stay.
        """
        if self.is_plain:
            return self
        text = self.text
        table = {char: _fold(char) for char in set(text)}
        origin: tuple[int, ...] | None = None
        if any(char != folded for char, folded in table.items()):
            pieces = list(map(table.__getitem__, text))
            widths = bytes(map(len, pieces))
            if widths.count(1) != len(widths):
                at = range(len(text))
                steps = compress(at, widths) if max(widths) < 2 else chain.from_iterable(map(repeat, at, widths))
                origin = (*steps, len(text))
            text = "".join(pieces)
        return Text(_fold_lookalikes(text), origin)

    @lazy_property
    def unescaped(self) -> Text | None:
        """The text with percent, entity and backslash escapes undone; None when there are none."""
        if "%" not in self.text and "&" not in self.text and "\\" not in self.text:
            return None
        found = self.replaced(_unescaped(self.text), encoded=True)
        return None if found is self else found

    @lazy_property
    def decoded_runs(self) -> list[DecodedText]:
        """The decoded texts of runs of base64 or hexadecimal digits, by position (5)."""
        found: list[DecodedText] = []
        for pattern, decode in _DECODERS.items() if self.occurs(_GATE) else ():
            for start, end in self.spans(pattern):
                if len(found) >= _MAX_DECODED_RUNS:
                    break
                found += (DecodedText(plain, *self.original_span(start, end)) for plain in decode(self.text[start:end]))
        return sorted(found, key=lambda h: (h.start, h.end, h.text))

    def derived(self, text: str, indices: Iterable[int], *, encoded: bool = False) -> Text:
        """Return a form of this text; ``indices`` are the positions of its code points, and of its end, in this one."""
        origin = tuple(indices) if self.origin is None else tuple(map(self.origin.__getitem__, indices))
        return Text(text, origin, encoded=encoded)

    def original_span(self, start: int, end: int) -> tuple[int, int]:
        """Map a span to the original text (1)."""
        if self.origin is None:
            return start, end
        if start >= end:
            return self.origin[start], self.origin[start]
        # Characters dropped or encoded after the last code point belong to it, except blanks.
        return self.origin[start], max(self.origin[end - 1] + 1, self.origin[end] if self.encoded else 0)

    def char_offset(self, offset: int) -> int:
        """Convert a byte offset to a code point offset."""
        if len(self.data) == len(self.text):
            return offset
        # Offsets are requested nearly in order, so only the bytes since the last one are counted.
        last, chars = self._counted
        step = -1 if offset < last else 1
        between = self.data[last:offset] if step > 0 else self.data[offset:last]
        chars += step * len(between.translate(None, _CONTINUED))
        self._counted = (offset, chars)
        return chars

    def occurs(self, pattern: str) -> bool:
        """Whether the pattern matches anywhere."""
        return occurs(pattern, self.data)

    def spans(self, pattern: str) -> Iterator[tuple[int, int]]:
        """Yield spans of the pattern, or of its group ``v`` if it has one."""
        group = named_groups(pattern).get("v", 0)
        for match in compile_bytes(pattern).finditer(self.data):
            start, end = match.span(group)
            if start >= 0:
                yield self.char_offset(start), self.char_offset(end)

    def groups(self, pattern: str) -> Iterator[dict[str, tuple[int, int]]]:
        """Yield for each match the spans of all named groups that took part; ``""`` is the complete match."""
        names = named_groups(pattern)
        for match in compile_bytes(pattern).finditer(self.data):
            start, end = match.span()
            found = {"": (self.char_offset(start), self.char_offset(end))}
            for name, index in names.items():
                start, end = match.span(index)
                if start >= 0:
                    found[name] = (self.char_offset(start), self.char_offset(end))
            yield found

    def occurs_before(self, pattern: str, start: int, max_chars: int = 40) -> bool:
        """Whether the pattern occurs in the characters before ``start``."""
        return (
            compile_bytes(pattern).search(self.text[max(0, start - max_chars) : start].encode("utf-8", "replace"))
            is not None
        )

    def without(self, dropped: str) -> Text:
        """Delete the given ASCII characters."""
        # In bytes, because str.translate of non-ASCII text works letter by letter.
        data = self.text.encode("utf-8", "surrogatepass").translate(None, dropped.encode())
        text = data.decode("utf-8", "surrogatepass")
        if len(text) == len(self.text):
            return self
        return self.derived(text, (*self.indices_without(dropped), len(self.text)))

    def indices_without(self, dropped: str) -> list[int]:
        """Return the indices of all characters except the given ASCII characters."""
        if self.text.isascii():
            remains: Iterable[int] = self.data.translate(_remaining(dropped))
        else:
            remains = map(set(self.text).difference(dropped).__contains__, self.text)
        return list(compress(range(len(self.text)), remains))

    def replaced(self, pieces: Iterable[tuple[int, int, str, int]], *, encoded: bool = False) -> Text:
        """Replace spans by texts. ``step`` is the distance of the letters in the original; 0: all map to the start."""
        out: list[str] = []
        origin: list[int] = []
        last = 0
        for start, end, text, step in pieces:
            out += (self.text[last:start], text)
            origin += range(last, start)
            origin += range(start, end, step) if step else [start] * len(text)
            last = end
        if not out:
            return self
        out.append(self.text[last:])
        return self.derived("".join(out), (*origin, *range(last, len(self.text) + 1)), encoded=encoded)


@functools.cache
def _remaining(dropped: str) -> bytes:
    return bytes(chr(byte) not in dropped for byte in range(256))


class _Letters:
    """Letters that resemble Latin ones, and accented letters that Unicode does not decompose."""

    def __init__(self) -> None:
        tables = load_toml("keepward.core", "letters.toml")
        lookalikes: dict[str, str] = dict(zip(tables["lookalikes"], tables["lookalikes_as"], strict=True))
        self.lookalikes = frozenset(lookalikes)
        self.latin_or_alike = self.lookalikes | frozenset(map(chr, range(128)))
        self.table: dict[int, str] = {ord(char): latin for char, latin in lookalikes.items()}
        self.folds: dict[str, str] = dict(zip(tables["marked"], tables["marked_as"], strict=True))
        for first in (0x1F150, 0x1F170, 0x1F1E6):
            self.folds |= {chr(first + index): letter for index, letter in enumerate(string.ascii_uppercase)}


_letters = functools.cache(_Letters)


@functools.lru_cache(maxsize=4096)
def _fold(char: str) -> str:
    folds = _letters().folds
    if char in folds:
        return folds[char]
    code = ord(char)
    if invisible(char) or 0x300 <= code <= 0x36F:
        return ""
    if unicodedata.category(char) == "Zs":
        return " "
    if char in "\u2028\u2029\x85":
        return "\n"
    folded = unicodedata.normalize("NFKC", char)
    if 0xC0 <= code <= 0x24F or 0x1E00 <= code <= 0x1EFF or 0x386 <= code <= 0x3CE or char in "ёЁ":
        base = unicodedata.normalize("NFD", folded)
        folded = "".join(c for c in base if not unicodedata.combining(c))
    return folded or char


#: A word with a non-ASCII letter. The pattern starts at a word boundary and cannot backtrack, so one pass suffices.
_WORD = lazy_regex(r"(?<!\w)[0-9A-Za-z_]*+[^\W\x00-\x7f]\w*+")


def _fold_lookalikes(text: str) -> str:
    """Replace look-alike letters by Latin ones in Latin words (4)."""
    letters = _letters()
    if letters.lookalikes.isdisjoint(text):
        return text
    latin = sum(map(text.count, string.ascii_letters))
    if not latin:
        return text
    is_mostly_latin = latin * 4 >= sum(map(str.isalpha, text)) * 3

    def to_latin(match: re.Match[str]) -> str:
        word: str = match[0]
        characters = set(word)
        if characters <= letters.latin_or_alike and (
            is_mostly_latin or not characters.isdisjoint(string.ascii_letters)
        ):
            return word.translate(letters.table)
        return word

    latin_text: str = _WORD.sub(to_latin, text)
    return latin_text


_INVISIBLE = lazy_regex(f"[{INVISIBLE}]")


def invisible(char: str) -> bool:
    """Whether a character is invisible; tab and line ends are not."""
    return char not in "\n\t\r" and (unicodedata.category(char) == "Cc" or _INVISIBLE.match(char) is not None)


def tag_text(text: str) -> str:
    """Return the text that invisible tag characters or variation selectors encode, whichever are more."""
    tags = [ord(char) - 0xE0000 for char in re.findall("[\U000e0020-\U000e007e]", text)]
    codes = map(ord, re.findall("[\ufe00-\ufe0f\U000e0100-\U000e01ef]", text))
    selectors = [code & 15 if code < 0xE0000 else code - 0xE00F0 for code in codes]
    # A selector may encode any byte; those outside of printable ASCII belong to emoji.
    return "".join(chr(code) for code in (selectors if len(selectors) > len(tags) else tags) if 32 <= code < 127)


def show_invisible(text: str) -> str:
    """Write every invisible, bidirectional, control and tag character as ``⟦U+200B⟧``; the rest unchanged.

    Blanks other than the plain one, carriage returns, lone surrogates and unassigned characters are shown too; tabs
    and line feeds are not.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(f"⟦U+{ord(char):04X}⟧" if _hard_to_see(char) else char for char in text)


def _hard_to_see(char: str) -> bool:
    if char in "\n\t ":
        return False
    return char == "\r" or invisible(char) or unicodedata.category(char) in {"Zs", "Zl", "Zp", "Cs", "Cn"}


#: Bytes that do not occur in readable UTF-8 text.
_CONTROLS = bytes({*range(32), 127} - set(b"\r\n\t"))
#: Characters that no memory may contain.
_FORBIDDEN_CHARS = lazy_regex(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef"
    + "".join(f"{chr(plane + 0xFFFE)}{chr(plane + 0xFFFF)}" for plane in range(0, 0x110000, 0x10000))
    + "]"
)


def first_forbidden_char(text: str) -> str | None:
    """Return the name of the first forbidden character, such as ``U+0000 NUL``, or None.

    Forbidden are lone surrogates, NUL, noncharacters, and C0 or C1 controls other than tab and line ends.
    """
    if text.isascii() and len((data := text.encode()).translate(None, _CONTROLS)) == len(data):
        return None
    found = _FORBIDDEN_CHARS.search(text)
    if found is None:
        return None
    code = ord(found[0])
    if code < 0xA0:
        what = "control character" if code else "NUL"
    else:
        what = "lone surrogate" if 0xD800 <= code < 0xE000 else "noncharacter"
    return f"U+{code:04X} {what}"


_GATE = (
    r"[A-Za-z0-9+/_=-]{16}|%[0-9A-Fa-f]{2}|&#|&[a-z]{2,6};|\\[ux][0-9A-Fa-f]{2}"
    r"|(?:(?:0x)?[0-9A-Fa-f]{2}[ :;,-] ?){8}"
)
#: Patterns, one of which occurs in every text with ``decoded_runs`` or an ``unescaped`` form.
TRACES = (_GATE, r"\\u\{[0-9A-Fa-f]")
#: The first two characters decide the alternative, and each has a maximum length, so the time is linear in the text.
_ESCAPES = lazy_regex(
    r"(?:%[0-9A-Fa-f]{2})++|&#[0-9]{1,7};?|&#[xX][0-9A-Fa-f]{1,6};?"
    r"|&(?:amp|lt|gt|quot|apos|nbsp|colon|equals|period|sol|lowbar);"
    r"|\\u[0-9A-Fa-f]{4}|\\u\{[0-9A-Fa-f]{1,6}\}|\\x[0-9A-Fa-f]{2}"
)


class DecodedText(NamedTuple):
    """A decoded text and the span of the original that encodes it."""

    text: str
    start: int
    end: int


def _unescaped(text: str) -> Iterator[tuple[int, int, str, int]]:
    """Yield the replacement of each escape, so that every letter maps to its own escape (1)."""
    for match in _ESCAPES.finditer(text):
        (start, end), escape = match.span(), match[0]
        if escape[0] != "%":
            yield start, end, _unescape(escape), 0
            continue
        plain = urllib.parse.unquote(escape, errors="replace")
        if len(plain) * 3 == len(escape):
            yield start, end, plain, 3
            continue
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        for index, code in zip(range(start + 3, end + 3, 3), bytes.fromhex(escape.replace("%", "")), strict=True):
            letters = decoder.decode(bytes((code,)), final=index == end)
            if letters:
                yield start, index, letters, 0
                start = index


@functools.lru_cache(maxsize=1024)
def _unescape(escape: str) -> str:
    if escape[0] == "&":
        return html.unescape(escape)
    code = int(escape[2:].strip("{}"), 16)
    return chr(code) if code < 0x110000 and not 0xD800 <= code < 0xE000 else "\ufffd"


def _readable(raw: bytes) -> Iterator[str]:
    # Control bytes show that it is not text, which is cheaper than decoding it.
    encoding = "utf-8" if len(raw.translate(None, _CONTROLS)) == len(raw) else "utf-16-le"
    if encoding == "utf-16-le" and (len(raw) % 2 or raw[1:2] != b"\x00"):
        return
    try:
        text = raw.decode(encoding)
    except UnicodeDecodeError:
        return
    if len(text) >= 6 and all(char.isprintable() or char in "\r\n\t" for char in text):
        yield text


def _base64(run: str) -> Iterator[str]:
    # First as one encoding wrapped into lines; else line by line, because a line may be an ordinary word.
    decoded = list(_base64_run(run))
    if decoded or "\n" not in run:
        yield from decoded
        return
    for line in run.splitlines():
        yield from _base64_run(line.strip())


def _base64_run(run: str) -> Iterator[str]:
    body = "".join(run.split()).rstrip("=").replace("-", "+").replace("_", "/")
    for skip in (0, 1, 2, 3):
        piece = body[skip:]
        piece = piece[: len(piece) - 1] if len(piece) % 4 == 1 else piece
        try:
            raw = binascii.a2b_base64(piece + "=" * (-len(piece) % 4))
        except binascii.Error:
            continue
        texts = list(_readable(raw))
        if texts:
            yield from texts
            return
        if len(body) < 24:
            return


_PRINTABLE = re.compile(rb"[\t\r\n -~]{12,}")


def _hex(run: str) -> Iterator[str]:
    digits = "".join(char for char in run.replace("0x", "").replace("\\x", "") if char not in " :;,-")
    if len(digits) % 2 == 0:
        raw = bytes.fromhex(digits)
        texts = list(_readable(raw))
        # Digits next to the text, such as a time, are not encoded text.
        yield from texts or (part.decode() for part in _PRINTABLE.findall(raw))


_DECODERS: dict[str, Callable[[str], Iterator[str]]] = {
    r"(?:0x|\\x)?[0-9A-Fa-f]{2}(?:(?:\\x|[:;,-]? ?(?:0x)?)[0-9A-Fa-f]{2}){9,}": _hex,
    r"[A-Za-z0-9+/_-]{16,}(?:\r?\n[ \t]{0,12}[A-Za-z0-9+/_-]{4,})*={0,2}": _base64,
}
