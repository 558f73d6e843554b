"""Names as they look: one form for all spellings that a reader takes for the same name."""

from __future__ import annotations

import unicodedata
from functools import cache

from keepward.core.patterns import lazy_regex, load_toml

#: Characters that a reader does not see, for a character class: Unicode's Default_Ignorable_Code_Point, control
#: characters but for tab and line breaks, annotation marks and the empty Braille pattern.
INVISIBLE = (
    "\x00-\x08\x0e-\x1b\x1f\x7f-\x84\x86-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f"
    "\u202a-\u202e\u2060-\u206f\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3"
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
#: After case is folded: digits and letters that fonts draw alike.
_LOOKALIKES = (("rn", "m"), ("vv", "w"))
_DIGITS = str.maketrans("01l", "oii")


@cache
def _latin() -> dict[int, str]:
    """Return Latin letters by the code of the letters that pass for them."""
    letters = load_toml(__package__, "letters.toml")
    pairs = (("lookalikes", "lookalikes_as"), ("marked", "marked_as"))
    return {ord(each): to for a, b in pairs for each, to in zip(letters[a], letters[b], strict=True)}


def skeleton(name: str) -> str:
    """Return a name as it looks: Latin letters and digits alone, without case and accents.

    For comparing alone; it is no spelling of the name. Equal skeletons mean that a reader may take one for the other:
    ``skeleton("\u0430na\u200b") == skeleton("Ana")``. Letters are those of Unicode Technical Standard 39.
    """
    plain = unicodedata.normalize("NFKD", name).translate(_latin())
    seen = lazy_regex(f"[{INVISIBLE}]").sub("", plain)
    folded = "".join(filter(str.isalnum, seen)).casefold().translate(_DIGITS)
    for pair, one in _LOOKALIKES:
        folded = folded.replace(pair, one)
    return folded or name
