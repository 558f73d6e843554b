"""Present: values as plain JSON values (see ``model.plain``), and texts made fit for a screen."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

from keepward.model.plain import (
    changed,
    commit,
    difference,
    hit,
    instant,
    outcome,
    plain,
    reasons,
    recall,
    record,
    step,
    waiting,
)

__all__ = [
    "changed",
    "commit",
    "counted",
    "difference",
    "hit",
    "instant",
    "outcome",
    "plain",
    "reasons",
    "recall",
    "record",
    "redaction",
    "step",
    "visible",
    "waiting",
]

#: Joiners that ordinary writing needs: Persian, Indic scripts, emoji.
_JOINERS = "\u200c\u200d"


def visible(text: str, *, joiners: bool = True) -> str:
    """Return text with control and invisible characters written out as `<U+202E>`.

    Line breaks and tabs stay. With `joiners` False the two joiners are written out as well, as a
    reviewer needs them. What comes out cannot move a terminal's cursor or hide a word.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        f"<U+{ord(char):04X}>"
        if unicodedata.category(char) in {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
        and char not in "\n\t"
        and not (joiners and char in _JOINERS)
        else char
        for char in text
    )


def counted(number: int, one: str, many: str) -> str:
    """Return `1 memory` or `3 memories`."""
    return f"{number} {one if number == 1 else many}"


def redaction(kinds: Iterable[str]) -> str:
    """Return the words that say what was replaced and how to keep it; empty where nothing was."""
    named = ", ".join(each.replace("_", " ") for each in kinds)
    return f"redacted: {named} (given with consent, it is kept)" if named else ""
