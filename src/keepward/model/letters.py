"""Names as they look: one form for all spellings that a reader takes for the same name."""

from __future__ import annotations

import unicodedata
from functools import cache

from keepward.model.patterns import table

#: Characters that are drawn as nothing, though their category says letter or symbol.
_BLANK = "\u115f\u1160\u3164\uffa0\u2800"
#: After case is folded: digits and letters that fonts draw alike.
_ALIKE = (("rn", "m"), ("vv", "w"))
_DIGITS = str.maketrans("01l", "oii")


@cache
def _latin() -> dict[int, str]:
    """Return Latin letters by the code of the letters that pass for them."""
    letters = table(__package__, "letters.toml")
    pairs = (("lookalikes", "lookalikes_as"), ("marked", "marked_as"))
    return {ord(each): to for a, b in pairs for each, to in zip(letters[a], letters[b], strict=True)}


def skeleton(name: str) -> str:
    """Return a name as it looks: Latin letters and digits alone, without case and accents.

    For comparing alone; it is no spelling of the name. Equal skeletons mean that a reader may take one for the other:
    ``skeleton("\u0430na\u200b") == skeleton("Ana")``. Letters are those of Unicode Technical Standard 39.
    """
    plain = unicodedata.normalize("NFKD", name).translate(_latin())
    folded = "".join(each for each in plain if each.isalnum() and each not in _BLANK).casefold().translate(_DIGITS)
    for pair, one in _ALIKE:
        folded = folded.replace(pair, one)
    return folded or name
