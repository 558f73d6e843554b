"""The kind of answer that a question asks for: a time or a name. English."""

import re
from functools import cache
from typing import Final

from keepward.core.patterns import lazy_regex
from keepward.retrieval import tokenizer

_ASKS_TIME: Final = lazy_regex(
    r"^when\b|\bwhen (?:did|was|were|is|are|does|do|has|had|will)\b"
    r"|\b(?:which|what) (?:day|date|month|year|week|time)\b",
    re.IGNORECASE,
)
_TIME_WORDS: Final = (
    "yesterday today tonight tomorrow week weekend month year ago since recently "
    "monday tuesday wednesday thursday friday saturday sunday"
)
#: Things that have names, as in "which books".
_THINGS: Final = (
    "city|cities|country|countries|states?|places?|towns?|villages?|areas?|regions?|parks?|locations?|islands?|"
    "beach|beaches|museums?|restaurants?|shops?|stores?|schools?|university|universities|company|companies|teams?|"
    "shelters?|books?|movies?|films?|songs?|bands?|games?|artists?|musicians?|authors?|brands?|shows?|series|"
    "festivals?|languages?"
)
_ASKS_NAME: Final = lazy_regex(
    r"^(?:(?:from|to|in|at) )?where\b|\bwhere (?:did|was|were|is|are|does|do|has|have|had)\b"
    rf"|^(?:(?:with|to|from|for) )?who(?:m|se)?\b|\bnames?\b|\bcalled\b|\b(?:which|what) (?:\w+ )?(?:{_THINGS})\b",
    re.IGNORECASE,
)


def asks_name(query: str) -> bool:
    """Whether a text asks where or who, or for a thing with a name: "Which book did Ana read?"."""
    return _ASKS_NAME.search(query) is not None


def time_terms(query: str) -> frozenset[int]:
    """Return hashes of terms that name a time; empty if the text does not ask for a time."""
    return _time_hashes() if _ASKS_TIME.search(query) else frozenset()


@cache
def _time_hashes() -> frozenset[int]:
    return frozenset(map(tokenizer.term_hash, tokenizer.terms(_TIME_WORDS)))
