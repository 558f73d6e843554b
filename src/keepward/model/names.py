"""Names that are chosen from a list: what to say of one that is not on it.

What was given is never repeated: it may be a secret that went to the wrong place.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Collection
from difflib import get_close_matches
from typing import Any

from keepward.errors import InvalidInput

#: Most characters of a name that is compared with those there are.
_LONGEST = 64


def plain_key(key: str) -> str:
    """Return a key as it is kept and looked for: in Unicode's compatible form (NFKC), without blanks at its ends."""
    return key if key.isascii() and key == key.strip() else unicodedata.normalize("NFKC", key).strip()


def unknown(what: str, given: Any, known: Collection[str]) -> str:
    """Return the sentence about a name that there is not: the one that was probably meant, and all there are."""
    return f"unknown {what}: {meant(given, known)}use one of {', '.join(map(str, known))}"


def meant(given: Any, known: Collection[str]) -> str:
    """Return ``did you mean archival? `` where one of the names is near to what was given, else nothing."""
    word = given.strip().casefold() if isinstance(given, str) and len(given) <= _LONGEST else ""
    near = get_close_matches(word, [str(name) for name in known], n=1, cutoff=0.6) if word else []
    return f"did you mean {near[0]}? " if near else ""


def chosen(what: str, given: Any, known: Collection[str]) -> str:
    """Return a name of the list as plain text.

    Raises:
        InvalidInput: it is not on the list, or no text.
    """
    if not isinstance(given, str):
        raise InvalidInput(f"{what} is a text: use one of {', '.join(map(str, known))}")
    # A member of an enum is equal to its text, and a list may hold either.
    if given not in known:
        raise InvalidInput(unknown(what, given, known))
    return str(given)
