"""Skeletons of names: one form for all spellings that look alike."""

from __future__ import annotations

import unicodedata
from functools import cache

from keepward.core.patterns import lazy_regex, load_toml

#: Invisible characters, for a character class: Unicode's Default_Ignorable_Code_Point, control
#: characters but for tab and line breaks, annotation characters and the empty Braille pattern.
INVISIBLE = (
    "\x00-\x08\x0e-\x1b\x1f\x7f-\x84\x86-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f"
    "\u202a-\u202e\u2060-\u206f\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3"
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
#: After case folding: digits and letters that look alike.
_LOOKALIKES = (("rn", "m"), ("vv", "w"))
#: No two digits become one letter, so that ``claude1`` and ``claude2`` stay two names.
_DIGITS = str.maketrans("012345789l", "oizeastbgi")
#: Before marks are removed: signs that resemble letters.
_SIGNS = str.maketrans("@$€!|+¡¢", "aseiitic")


@cache
def _latin() -> dict[int, str]:
    """Return the Latin letter for each lookalike, by code point."""
    letters = load_toml(__package__, "letters.toml")
    pairs = (("lookalikes", "lookalikes_as"), ("marked", "marked_as"))
    return {ord(letter): to for a, b in pairs for letter, to in zip(letters[a], letters[b], strict=True)}


def skeleton(name: str) -> str:
    """Return the skeleton of a name: Latin letters and digits, without case and accents.

    Use it only for comparison. Equal skeletons mean that a reader may confuse the names:
    ``skeleton("\u0430na\u200b") == skeleton("Ana")``. The letters are those of Unicode Technical Standard 39.
    """
    plain = unicodedata.normalize("NFKD", name).translate(_SIGNS).translate(_latin())
    visible = lazy_regex(f"[{INVISIBLE}]").sub("", plain)
    folded = "".join(filter(str.isalnum, visible)).casefold().translate(_DIGITS)
    for pair, one in _LOOKALIKES:
        folded = folded.replace(pair, one)
    return folded or name
