"""Secrets in the content of a blob: whole texts of any length, and the readable runs of anything else.

Invariants
(1) A text is read in windows that overlap by more than the longest key block, so that none is cut in two.
(2) Of bytes that are no text the runs of readable characters are looked at, and there a documented format alone
    counts: what reads like a password is too often chance.
(3) What is packed or enciphered is not opened. A secret inside of an archive is not found, and nobody says it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from keepward.gates.detect import secrets

#: Characters that are looked at at once, and how many of them the next window looks at again.
WINDOW = 65_536
OVERLAP = 8_192
_RUNS = re.compile(rb"[\t\n\r\x20-\x7e]{16,}")
_WIDE = re.compile(rb"(?:[\t\n\r\x20-\x7e]\0){16,}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The first secret of a content."""

    detector: str
    #: Line of a text, from 1; None in what is no text.
    line: int | None


def secret_in(data: bytes, text: str | None) -> Found | None:
    """Return the first secret of a content, None when there is none; ``text`` is the content read as a text."""
    if text is not None:
        for start, part in _windows(text):
            found = secrets.scan(part)
            if found:
                line = text.count("\n", 0, start + found[0].start) + 1
                return Found(detector=found[0].detector, line=line)
        return None
    for runs in (_joined(_RUNS, data), _joined(_WIDE, data).replace("\0", "")):
        for _, part in _windows(runs):
            for finding in secrets.scan(part):
                if finding.certainty == "certain":
                    return Found(detector=finding.detector, line=None)
    return None


def _joined(pattern: re.Pattern[bytes], data: bytes) -> str:
    return "\n".join(match[0].decode("ascii") for match in pattern.finditer(data))


def _windows(text: str) -> Iterator[tuple[int, str]]:
    """Yield (start, part) of a text; a part ends at a line's end where there is one in its last quarter."""
    start = 0
    while True:
        end = start + WINDOW
        if end >= len(text):
            if text[start:].strip():
                yield start, text[start:]
            return
        cut = text.rfind("\n", end - WINDOW // 4, end)
        end = end if cut < 0 else cut
        yield start, text[start:end]
        start = end - OVERLAP
