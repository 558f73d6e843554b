"""One text as detectors read it: bytes to search, its normal form, what it encodes, and the way back.

Invariants
(1) ``span`` maps a span of a form onto the text that was given: it covers every code point that contributed, and what
    was deleted between them. Spans are half-open, in code points.
(2) Plain ASCII is its own normal form and costs one check; each form of a text is worked out once, whoever asks.
(3) Letters are mapped one by one from tables; no text-length work but a few passes of C code.
(4) Look-alike letters turn Latin only in words that hold Latin letters, or wholly look-alike words of a text that is
    mostly Latin: Russian and Greek stay what they are.
(5) Only decodings that read as text count; their sum is no longer than the text, and nothing is decoded twice.
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
from typing import Any, NamedTuple

from keepward.core.letters import INVISIBLE
from keepward.core.patterns import lazy_regex, load_toml
from keepward.gates.detectors.tables import lazy_property

#: Decoded runs of one text.
_MAX_DECODED_RUNS = 64
#: Bytes that continue a code point; any other begins one.
_CONTINUED = bytes(range(0x80, 0xC0))


@functools.cache
def compile_pattern(pattern: str) -> Any:
    """Compile once, over bytes: byte offsets spare re2's own costly conversion. RE2 takes time linear in the text."""
    import re2

    options = re2.Options()
    options.log_errors = False
    options.max_mem = 32 << 20
    return re2.compile(pattern.encode(), options)


@functools.cache
def _groups(pattern: str) -> dict[str, int]:
    """Return the named groups of a pattern; re2 makes the table anew each time, which costs more than a search."""
    return {name.decode(): index for name, index in compile_pattern(pattern).groupindex.items()}


def compile_prefilter(patterns: Sequence[str]) -> Any:
    """Compile patterns together; ``Match`` gives the places of those that occur, or None (RE2's ``FilteredRE2``).

    It first looks for strings without which a pattern cannot match, all of them in one pass, and runs the
    patterns that are left.
    """
    import re2

    options = re2.Options()
    options.log_errors = False
    options.never_capture = True
    options.max_mem = 32 << 20
    found = re2.Filter()
    for pattern in patterns:
        found.Add(pattern.encode(), options)
    found.Compile()
    return found


@functools.cache
def _compile_occurrence_test(pattern: str) -> Any:
    """Compile a pattern that only asks whether something occurs; captures are off, which is faster."""
    return compile_prefilter((pattern,))


def occurs(pattern: str, data: bytes) -> bool:
    """Whether the pattern matches anywhere in UTF-8 text."""
    return _compile_occurrence_test(pattern).Match(data) is not None


class Text:
    """A text, or a form of one, with the way back to what was given.

    A lone surrogate becomes one question mark in ``data``, so positions stay true for any str.
    """

    #: How often something is read as a phone number in one scan, each region counted; it takes long.
    MOST_PARSES = 600

    def __init__(self, text: str, origin: Sequence[int] | None = None, *, encoded: bool = False) -> None:
        self.text = text
        self.data = text.encode("utf-8", "replace")
        #: Original offset of each code point, one more for the end; None when offsets are equal.
        self.origin = origin
        #: Whether several original code points may stand for one, so that a span must reach to the next.
        self.encoded = encoded
        self.parses_left = self.MOST_PARSES
        #: A byte offset, and how many code points begin before it.
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
        return self if self.is_plain else _normal_form(self.text)

    @lazy_property
    def unescaped(self) -> Text | None:
        """The text with percent, entity and backslash escapes undone; None when there are none."""
        if "%" not in self.text and "&" not in self.text and "\\" not in self.text:
            return None
        found = self.replaced(_unescaped(self.text), encoded=True)
        return None if found is self else found

    @lazy_property
    def hidden(self) -> list[DecodedText]:
        """What runs of base64, hexadecimal, binary or decimal character codes say, in order of position (5)."""
        found: list[DecodedText] = []
        for pattern, decode in _DECODERS.items() if self.occurs(_GATE) else ():
            for start, end in self.spans(pattern):
                if len(found) >= _MAX_DECODED_RUNS:
                    break
                found += (DecodedText(plain, *self.span(start, end)) for plain in decode(self.text[start:end]))
        return sorted(found, key=lambda h: (h.start, h.end, h.text))

    def derived(self, text: str, places: Iterable[int], *, encoded: bool = False) -> Text:
        """Return a form of this text whose code points, and its end, stand at these places in it."""
        origin = tuple(places) if self.origin is None else tuple(map(self.origin.__getitem__, places))
        return Text(text, origin, encoded=encoded)

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Map a span onto the text that was given (1)."""
        if self.origin is None:
            return start, end
        if start >= end:
            return self.origin[start], self.origin[start]
        # What was dropped or encoded after the last code point belongs to it, blanks excepted.
        return self.origin[start], max(self.origin[end - 1] + 1, self.origin[end] if self.encoded else 0)

    def point(self, offset: int) -> int:
        """Turn a byte offset into a code point offset."""
        if len(self.data) == len(self.text):
            return offset
        # Offsets are asked for nearly in order: counted is what lies between this one and the last.
        before, point = self._counted
        step = -1 if offset < before else 1
        between = self.data[before:offset] if step > 0 else self.data[offset:before]
        point += step * len(between.translate(None, _CONTINUED))
        self._counted = (offset, point)
        return point

    def occurs(self, pattern: str) -> bool:
        """Whether the pattern matches anywhere."""
        return occurs(pattern, self.data)

    def spans(self, pattern: str) -> Iterator[tuple[int, int]]:
        """Yield spans of the pattern, or of its group ``v`` where it has one."""
        group = _groups(pattern).get("v", 0)
        for match in compile_pattern(pattern).finditer(self.data):
            start, end = match.span(group)
            if start >= 0:
                yield self.point(start), self.point(end)

    def groups(self, pattern: str) -> Iterator[dict[str, tuple[int, int]]]:
        """Yield, a match, the spans of all named groups that took part; ``""`` is the whole match."""
        names = _groups(pattern)
        for match in compile_pattern(pattern).finditer(self.data):
            start, end = match.span()
            found = {"": (self.point(start), self.point(end))}
            for name, index in names.items():
                start, end = match.span(index)
                if start >= 0:
                    found[name] = (self.point(start), self.point(end))
            yield found

    def before(self, pattern: str, start: int, max_chars: int = 40) -> bool:
        """Whether the pattern occurs in the characters right before a place."""
        return (
            compile_pattern(pattern).search(self.text[max(0, start - max_chars) : start].encode("utf-8", "replace"))
            is not None
        )

    def without(self, dropped: str) -> Text:
        """Delete the given ASCII characters."""
        # As bytes, since a text of other letters is translated letter by letter.
        data = self.text.encode("utf-8", "surrogatepass").translate(None, dropped.encode())
        text = data.decode("utf-8", "surrogatepass")
        if len(text) == len(self.text):
            return self
        return self.derived(text, (*self.places_without(dropped), len(self.text)))

    def places_without(self, dropped: str) -> list[int]:
        """Return where the characters stand that are none of the given ASCII characters."""
        if self.text.isascii():
            keeps: Iterable[int] = self.data.translate(_keeping(dropped))
        else:
            keeps = map(set(self.text).difference(dropped).__contains__, self.text)
        return list(compress(range(len(self.text)), keeps))

    def join_spaced_letters(self) -> Text:
        """Join letters set apart one by one: ``i g n o r e  a l l`` becomes ``ignore all``.

        A run needs four single letters with the same separator (blank, dot, hyphen, underscore, star, bar or
        slash) between them; two or more separators, or a blank among other separators, end a word.
        """
        return self.replaced((*run.span(), run[0][::2], 2) for run in _APART.finditer(self.text))

    def replaced(self, pieces: Iterable[tuple[int, int, str, int]], *, encoded: bool = False) -> Text:
        """Put texts in place of spans; ``step``: how far apart their letters stood, 0 for all of the span."""
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
def _keeping(dropped: str) -> bytes:
    return bytes(chr(byte) not in dropped for byte in range(256))


#: Four letters or more, each by itself, with one and the same separator between them. Each step is one way or the end,
#: and a start that fails has looked at six characters: time grows with the text and no faster.
_APART = lazy_regex(r"(?<![^\W_])[^\W_](?=([ .\-_*|/~]))(?:\1[^\W_](?![^\W_])){3,}")


def _normal_form(text: str) -> Text:
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
    return Text(_fold_lookalikes(text), origin)


class _Letters:
    """Letters that pass for Latin ones, and those with marks that decomposition leaves alone."""

    def __init__(self) -> None:
        tables = load_toml("keepward.core", "letters.toml")
        alike: dict[str, str] = dict(zip(tables["lookalikes"], tables["lookalikes_as"], strict=True))
        self.alike = frozenset(alike)
        self.latin_or_alike = self.alike | frozenset(map(chr, range(128)))
        self.table: dict[int, str] = {ord(char): latin for char, latin in alike.items()}
        self.folds: dict[str, str] = dict(zip(tables["marked"], tables["marked_as"], strict=True))
        for first in (0x1F150, 0x1F170, 0x1F1E6):
            self.folds |= {chr(first + place): letter for place, letter in enumerate(string.ascii_uppercase)}


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


#: Letters, digits and the underscore, as long as they go on, with one beyond ASCII among them. It begins where a word
#: does and takes nothing back: one pass, whatever the text.
_WORD = lazy_regex(r"(?<!\w)[0-9A-Za-z_]*+[^\W\x00-\x7f]\w*+")


def _fold_lookalikes(text: str) -> str:
    """Turn look-alike letters Latin where the words around them are (4)."""
    letters = _letters()
    if letters.alike.isdisjoint(text):
        return text
    latin = sum(map(text.count, string.ascii_letters))
    if not latin:
        return text
    mostly = latin * 4 >= sum(map(str.isalpha, text)) * 3

    def turned(match: re.Match[str]) -> str:
        word: str = match[0]
        used = set(word)
        if used <= letters.latin_or_alike and (mostly or not used.isdisjoint(string.ascii_letters)):
            return word.translate(letters.table)
        return word

    latin_text: str = _WORD.sub(turned, text)
    return latin_text


_INVISIBLE = lazy_regex(f"[{INVISIBLE}]")


def invisible(char: str) -> bool:
    """Whether a reader does not see a character; tab and line ends count as seen."""
    return char not in "\n\t\r" and (unicodedata.category(char) == "Cc" or _INVISIBLE.match(char) is not None)


def tag_text(text: str) -> str:
    """Return what tag characters or variation selectors spell, which no reader sees: whichever are more."""
    tags = [ord(char) - 0xE0000 for char in re.findall("[\U000e0020-\U000e007e]", text)]
    codes = map(ord, re.findall("[\ufe00-\ufe0f\U000e0100-\U000e01ef]", text))
    selectors = [code & 15 if code < 0xE0000 else code - 0xE00F0 for code in codes]
    # A selector may stand for any byte; those that are no signs are of emoji.
    return "".join(chr(code) for code in (selectors if len(selectors) > len(tags) else tags) if 32 <= code < 127)


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


#: Bytes that stand in no readable UTF-8 text.
_CONTROLS = bytes({*range(32), 127} - set(b"\r\n\t"))
#: Characters that no memory may hold.
_FORBIDDEN_CHARS = lazy_regex(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef"
    + "".join(f"{chr(plane + 0xFFFE)}{chr(plane + 0xFFFF)}" for plane in range(0, 0x110000, 0x10000))
    + "]"
)


def first_forbidden_char(text: str) -> str | None:
    """Name the first character no memory may hold, such as ``U+0000 NUL``; None when there is none.

    Odd are lone surrogates, NUL, noncharacters, and C0 or C1 controls other than tab and line ends.
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
    r"|(?:[0-9A-Fa-f]{2}[ :]){8}|[01]{8} [01]{8}|(?:\d{2,3}[ ,]+){8}"
)
#: What ``hidden`` and ``unescaped`` begin from; a text without it hides nothing from them.
TRACES = (_GATE, r"\\u\{[0-9A-Fa-f]")
#: Each way is told by its first two characters and of a bounded length: time grows with the text and no faster.
_ESCAPES = lazy_regex(
    r"(?:%[0-9A-Fa-f]{2})++|&#[0-9]{1,7};?|&#[xX][0-9A-Fa-f]{1,6};?"
    r"|&(?:amp|lt|gt|quot|apos|nbsp|colon|equals|period|sol|lowbar);"
    r"|\\u[0-9A-Fa-f]{4}|\\u\{[0-9A-Fa-f]{1,6}\}|\\x[0-9A-Fa-f]{2}"
)


class DecodedText(NamedTuple):
    """A decoded text and the span of the original that encodes all of it."""

    text: str
    start: int
    end: int


def _unescaped(text: str) -> Iterator[tuple[int, int, str, int]]:
    """Yield what stands in place of each escape, so that every letter keeps its own place (1)."""
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
        for place, code in zip(range(start + 3, end + 3, 3), bytes.fromhex(escape.replace("%", "")), strict=True):
            letters = decoder.decode(bytes((code,)), final=place == end)
            if letters:
                yield start, place, letters, 0
                start = place


@functools.lru_cache(maxsize=1024)
def _unescape(escape: str) -> str:
    if escape[0] == "&":
        return html.unescape(escape)
    code = int(escape[2:].strip("{}"), 16)
    return chr(code) if code < 0x110000 and not 0xD800 <= code < 0xE000 else "\ufffd"


def _readable(raw: bytes) -> Iterator[str]:
    # What is no text at all is told from its bytes, which is cheaper than to try.
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
    # Lines of one wrapped encoding belong together; a word on the next line does not.
    whole = list(_base64_run(run))
    if whole or "\n" not in run:
        yield from whole
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


def _hex(run: str) -> Iterator[str]:
    digits = "".join(char for char in run.replace("0x", "").replace("\\x", "") if char not in " :,")
    if len(digits) % 2 == 0:
        yield from _readable(bytes.fromhex(digits))


def _binary(run: str) -> Iterator[str]:
    yield from _readable(bytes(int(piece, 2) for piece in run.split(" ")))


def _decimal(run: str) -> Iterator[str]:
    codes = [int(piece) for piece in run.replace(",", " ").split()]
    if all(32 <= code < 127 or code in (10, 13) for code in codes):
        yield bytes(codes).decode("ascii")


_DECODERS: dict[str, Callable[[str], Iterator[str]]] = {
    r"(?:0x|\\x)?[0-9A-Fa-f]{2}(?:(?:[ :,]|\\x|, ?0x)?[0-9A-Fa-f]{2}){9,}": _hex,
    r"[A-Za-z0-9+/_-]{16,}(?:\r?\n[ \t]{0,12}[A-Za-z0-9+/_-]{4,})*={0,2}": _base64,
    r"[01]{8}(?: [01]{8}){7,}": _binary,
    r"\d{2,3}(?:[ ,]{1,2}\d{2,3}){9,}": _decimal,
}
