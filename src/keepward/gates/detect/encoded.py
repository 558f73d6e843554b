"""Texts inside a text: what base64, hexadecimal, percent, entity and escape encodings hide.

Invariants
(1) A hidden text is returned with the span of the original that encodes it.
(2) Only decodings that read as text are returned; random bytes, paths and hashes are not.
(3) The sum of all decodings is no longer than the text; no decoding of a decoding happens here.
"""

from __future__ import annotations

import base64
import binascii
import html
import urllib.parse
from collections.abc import Iterator
from dataclasses import dataclass

from keepward.gates.detect.engine import Haystack
from keepward.gates.detect.normal import Normal, traced

_MOST = 64
_GATE = (
    r"[A-Za-z0-9+/_=-]{16}|%[0-9A-Fa-f]{2}|&#|&[a-z]{2,6};|\\[ux][0-9A-Fa-f]{2}"
    r"|(?:[0-9A-Fa-f]{2}[ :]){8}|[01]{8} [01]{8}|(?:\d{2,3}[ ,]+){8}"
)
#: What the decoders and ``unescaped`` begin from; a text without it hides nothing from them.
TRACES = (_GATE, r"\\u\{[0-9A-Fa-f]")
_BASE64 = r"[A-Za-z0-9+/_-]{16,}(?:\r?\n[ \t]{0,12}[A-Za-z0-9+/_-]{4,})*={0,2}"
_HEX = r"(?:0x|\\x)?[0-9A-Fa-f]{2}(?:(?:[ :,]|\\x|, ?0x)?[0-9A-Fa-f]{2}){9,}"
_BINARY = r"[01]{8}(?: [01]{8}){7,}"
_DECIMAL = r"\d{2,3}(?:[ ,]{1,2}\d{2,3}){9,}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Hidden:
    """A decoded text and the original span that encodes all of it."""

    text: str
    start: int
    end: int


def hidden(hay: Haystack) -> list[Hidden]:
    """Decode runs of base64, hexadecimal, binary or decimal character codes, in order of position."""
    if not hay.occurs(_GATE):
        return []
    found: list[Hidden] = []
    for pattern, decode in ((_HEX, _hex), (_BASE64, _base64), (_BINARY, _binary), (_DECIMAL, _decimal)):
        for start, end in hay.spans(pattern):
            if len(found) >= _MOST:
                break
            found += (Hidden(text=text, start=start, end=end) for text in decode(hay.text[start:end]))
    return sorted(found, key=lambda h: (h.start, h.end, h.text))


def _readable(raw: bytes) -> Iterator[str]:
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        try:
            text = raw.decode("utf-16-le") if len(raw) % 2 == 0 and raw[1:2] == b"\x00" else ""
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
            raw = base64.b64decode(piece + "=" * (-len(piece) % 4), validate=True)
        except (binascii.Error, ValueError):
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


def unescaped(form: Normal) -> Normal | None:
    """Undo percent, entity and backslash escapes, keeping the way back; None when there are none."""
    text = form.text
    if "%" not in text and "&" not in text and "\\" not in text:
        return None
    out: list[str] = []
    origin: list[int] = []
    position = 0
    for start, end in Haystack(text).spans(_ESCAPES):
        out.append(text[position:start])
        origin.extend(range(position, start))
        plain = _plain(text[start:end])
        out.append(plain)
        origin.extend([start] * len(plain))
        position = end
    if position == 0:
        return None
    out.append(text[position:])
    origin.extend(range(position, len(text)))
    origin.append(len(text))
    return Normal(text="".join(out), origin=traced(form, origin), encoded=True)


_ESCAPES = (
    r"(?:%[0-9A-Fa-f]{2})+|&#[0-9]{1,7};?|&#[xX][0-9A-Fa-f]{1,6};?|&(?:amp|lt|gt|quot|apos|nbsp|colon|equals|period|sol|lowbar);"
    r"|\\u[0-9A-Fa-f]{4}|\\u\{[0-9A-Fa-f]{1,6}\}|\\x[0-9A-Fa-f]{2}"
)


def _plain(escape: str) -> str:
    if escape[0] == "%":
        return urllib.parse.unquote(escape, errors="replace")
    if escape[0] == "&":
        return html.unescape(escape)
    code = int(escape[2:].strip("{}"), 16)
    return chr(code) if code < 0x110000 and not 0xD800 <= code < 0xE000 else "\ufffd"
