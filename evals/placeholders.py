"""Tell examples of rules that only stand for a secret: a value that nobody's generator of keys would make.

An example counts as a placeholder when each of its values does. Values are the runs of at least ten characters of keys;
where there is none, the longest run is the value. A value is a placeholder when

* it holds a word of those that documentation writes (``example``, ``your``, ``xxxx`` ...), or
* one character fills more than a third of it, or stands five times in a row, or
* six characters in a row count up or down (``abcdef``, ``654321``, ``qwerty``), or a piece comes thrice, or
* its entropy is below 2.5 bits a character, that of nine letters of which three are the same.
"""

from __future__ import annotations

import re
from collections import Counter

from keepward.gates.detectors.checks import entropy

_RUN = re.compile(r"[A-Za-z0-9+/_=.~-]{10,}")
_SHORTER = re.compile(r"[^\s\"'`<>]+")
_WORDS = re.compile(
    r"example|sample|placeholder|your|dummy|change_?me|redacted|secret_?here|insert|replace|fake|foo_?bar|xxx|\*\*\*|\.\.\.",
    re.IGNORECASE,
)
_REPEATED = re.compile(r"(.)\1{4}|(.{2,8})\2\2")
_ROWS = ("abcdefghijklmnopqrstuvwxyz", "01234567890123456789", "qwertyuiopasdfghjklzxcvbnm", "0123456789abcdef")
_COUNTED = tuple(
    {part for row in _ROWS for way in (row, row[::-1]) for part in (way[at : at + 6] for at in range(len(way) - 5))}
)


def placeholder(example: str) -> bool:
    """Whether an example shows no value that could be a secret."""
    values = _RUN.findall(example) or [max(_SHORTER.findall(example), key=len, default="")]
    return all(map(_made_up, values))


def _made_up(value: str) -> bool:
    lowered = value.lower()
    most = Counter(lowered).most_common(1)
    return bool(
        not most
        or most[0][1] * 3 > len(value)
        or _WORDS.search(value)
        or _REPEATED.search(value)
        or any(part in lowered for part in _COUNTED)
        or entropy(value) < 2.5
    )
