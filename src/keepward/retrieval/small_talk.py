"""Objectives without content: greetings, thanks, acknowledgements and bare arithmetic, in eleven languages.

Everything else has content: an unknown word, a name, or a number among other words.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache, lru_cache
from typing import Any, Final

from keepward.core.patterns import lazy_regex, load_toml

#: A longer text has content, in characters.
MAX_LENGTH: Final = 120
_UNSPACED: Final = ("japanese", "chinese")
_ARITHMETIC: Final = "arithmetic"
_UNSPACED_ARITHMETIC: Final = "unspaced_arithmetic"
_WORD: Final = lazy_regex(r"[^\W\d_]+(?:['’\-][^\W\d_]+)*")
_DIGIT: Final = lazy_regex(r"\d")
#: Whatever is neither a word nor a sign of arithmetic or of a sentence: an emoji is small talk, a path is content.
_CONTENT_SIGN: Final = lazy_regex(r"[/\\@#_{}\[\]<>|$&~`]")


@cache
def _words() -> tuple[frozenset[str], frozenset[str]]:
    """Return the words of small talk, and those of arithmetic."""
    lists: dict[str, Any] = load_toml(__package__, "small_talk.toml")
    other = {_ARITHMETIC, _UNSPACED_ARITHMETIC}
    talk = {word for name, words in lists.items() if name not in other for word in words.split()}
    return frozenset(talk), frozenset(lists[_ARITHMETIC].split())


@cache
def _pieces(*names: str) -> re.Pattern[str]:
    """Return a pattern for a run of words of some lists of languages without spaces."""
    lists: dict[str, Any] = load_toml(__package__, "small_talk.toml")
    pieces = sorted({piece for name in names for piece in lists[name].split()}, key=len, reverse=True)
    return re.compile(f"(?:{'|'.join(map(re.escape, pieces))})++")


@lru_cache(maxsize=64)
def has_content(objective: str) -> bool:
    """Whether a memory could bear on an objective: not for "hi", "thanks, bye" and "What is 17 times 23?"."""
    text = unicodedata.normalize("NFKC", objective).casefold().replace("’", "'").strip()
    if len(text) > MAX_LENGTH:
        return True
    talk, arithmetic = _words()
    words = _WORD.findall(text)
    numbers = _DIGIT.search(text) is not None
    if numbers:
        bare = re.sub(r"[\d\s.,+\-*/×÷^%=?!¿¡。、()x:]", "", " ".join(_WORD.sub(" ", text).split()))
        pieces = _pieces(_UNSPACED_ARITHMETIC)
        return bool(bare) or not all(word in arithmetic or pieces.fullmatch(word) for word in words)
    if _CONTENT_SIGN.search(text) is not None:
        return True
    return not all(word in talk or _pieces(*_UNSPACED).fullmatch(word) for word in words)
