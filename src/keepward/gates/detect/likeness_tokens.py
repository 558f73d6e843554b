"""What a normalised text says, token by token: fillers gone, number words and synonyms unified.

Invariants
(1) Every word, number and sign that is not a declared filler is kept, in order.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from keepward.gates.detect.likeness_words import SAME
from keepward.gates.detect.sameness import CLOSING, OPENING

_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]")
_CJK_TOKENS = re.compile(
    r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]|[^\W\d_]+|[+-]?\d[\d.]*|[^\s,;:!.。、・「」()]"
)
_MEASURE = re.compile(r"([$€£¥]?)([+-]?\d[\d.,]*)([^\W\d_]{0,6}|%|°[cCfF]?)")
_TENS: Final = frozenset({"20", "30", "40", "50", "60", "70", "80", "90"})
_ELISIONS: Final = frozenset({"l", "d", "j", "qu", "c", "s", "m", "t"})
_ENDINGS: Final = {"m": "", "re": "", "s": "", "ll": "will", "ve": "have", "d": "would"}


def tokens_of(plain: str) -> list[str]:
    """Split a normalised text into what it says, in order: fillers gone, number words and synonyms unified."""
    out: list[str] = []
    chunks = plain.split()
    for at, chunk in enumerate(chunks):
        known = SAME.get(chunk)
        if known is not None:
            if known:
                out.extend(known.split())
        elif chunk.isascii() and chunk.isalpha():
            out.append(chunk)
        elif chunk == "-":
            # A dash between words is punctuation; beside a number it may be an operator.
            if any(near[:1].isdigit() for near in chunks[max(at - 1, 0) : at + 2]):
                out.append(chunk)
        else:
            out.extend(_split(chunk))
    return out


def _split(chunk: str) -> Iterator[str]:
    if _CJK.search(chunk):
        yield from _CJK_TOKENS.findall(chunk)
        return
    core = chunk.lstrip(OPENING).rstrip(CLOSING + "?")
    if not core:
        if chunk.startswith("..") or "?" in chunk:
            yield chunk
        return
    yield from _split_core(core)
    tail = chunk[chunk.index(core) + len(core) :]
    if "?" in tail:
        yield "?"
    if core[-1].isdigit():
        # 5! is a product, 5' a length.
        yield from (sign for sign in tail if sign in "!\"'")


def _split_core(core: str) -> Iterator[str]:
    known = SAME.get(core)
    if known is not None:
        yield from known.split()
    elif core.isalpha():
        yield core
    elif (measure := _MEASURE.fullmatch(core)) is not None:
        yield from (SAME.get(part) or part for part in measure.groups() if part)
    elif "'" in core and core.replace("'", "").isalpha():
        yield from _split_contraction(core)
    elif "-" in core and core.replace("-", "").isalpha() and not core.startswith("-"):
        parts = [SAME.get(part, part) for part in core.split("-")]
        if len(parts) == 2 and parts[0] in _TENS and parts[1].isdigit() and len(parts[1]) == 1:
            yield str(int(parts[0]) + int(parts[1]))
        else:
            yield from (part for part in parts if part)
    else:
        yield core


def _split_contraction(core: str) -> Iterator[str]:
    head, _, ending = core.rpartition("'")
    if ending == "t" and head.endswith("n"):
        head, tail = head[:-1], "not"
    elif head == "n":
        head, tail = "ne", ending
    elif head in _ELISIONS:
        head, tail = "", ending
    else:
        tail = _ENDINGS.get(ending, "'" + ending)
    yield from (SAME.get(part, part) for part in (head, tail) if SAME.get(part, part))
