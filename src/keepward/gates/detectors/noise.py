"""The noise detector: whether a text is a journal entry without further content.

A text is noise if it contains one of ten phrases and nothing else except fillers, counters and times. The result names
a phrase of the list, never a part of the text.
"""

from __future__ import annotations

import functools
import unicodedata
from dataclasses import dataclass
from typing import Final, Literal

from keepward.core.patterns import lazy_regex
from keepward.gates.detectors.tables import columns, read, words

Code = Literal["journal", "empty_report"]

#: A text with more characters is never noise.
MAX_NOISE_CHARS: Final = 4_000

_TIME = lazy_regex(
    r"\d{4}[-/]\d{2}[-/]\d{2}(?:t\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:z|[+-]\d{2}:?\d{2})?)?"
    r"|t?\d{1,2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:z|utc|[ap]m)?"
)
_OWNS = lazy_regex(r"(?<!\w)(?:has|have|had) an? ")
_COUNTER = lazy_regex(r"#?\d+(?:/\d+)?")
_VALUE_AFTER = lazy_regex(r"\s*[:\-]\s*#?\d")
_PLAIN: Final = (
    dict.fromkeys(map(ord, "\u00ad\u200b\u2060\ufeff\ufe0f"))
    | dict.fromkeys(map(ord, "\u2010\u2011\u2012\u2013\u2014\u2015\u2212"), "-")
    | {ord("\u2019"): "'", ord("_"): " "}
)
_EDGES: Final = ".,;:!…()[]{}<>\"'“”„«»`*|~-"


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseReason:
    """The reason why a text is noise."""

    #: ``journal``: an entry of the running system, useful for a while.
    #: ``empty_report``: a report that nothing happened, not useful at all.
    code: Code
    #: The first phrase in the text that is noise.
    phrase: str


class _Phrases:
    """The ten phrases, and a pattern for their grammatical variants."""

    def __init__(self) -> None:
        rows = [columns(line, "name", "sign", "said") for line in read("noise")["phrases"].splitlines()]
        self.names = tuple(row["name"] for row in rows)
        self.empty = {row["name"] for row in rows if "empty" in row}
        self.settings = {row["name"] for row in rows if "setting" in row}
        # Group n is the phrase at index n - 1.
        names = "|".join(f"({row['said']})" for row in rows)
        self.pattern = lazy_regex(rf"(?<![\w=])(?:{names})(?!\w|-\w|/\w|\.\w)")
        #: A word that occurs in every variant of each phrase.
        self.signs = {row["sign"] for row in rows}
        self.no_trouble = lazy_regex(rf"(?<![\w-])no (?:new )?(?:{'|'.join(words('noise', 'troubles'))})(?![\w-])")


phrases = functools.cache(_Phrases)


def classify(text: str) -> NoiseReason | None:
    """Return why a text is noise, or None if it may state a fact.

    Case, compatibility forms, dashes, zero-width characters and punctuation do not matter. A question mark does,
    because a question is not a report. Texts over ``MAX_NOISE_CHARS`` characters are not noise.
    """
    phrase_table = phrases()
    if len(text) > MAX_NOISE_CHARS or (text.isascii() and not any(sign in text.lower() for sign in phrase_table.signs)):
        return None
    plain = " ".join(unicodedata.normalize("NFKC", text.translate(_PLAIN)).casefold().translate(_PLAIN).split())
    matches = [
        (phrase_table.names[(hit.lastindex or 1) - 1], hit.end()) for hit in phrase_table.pattern.finditer(plain)
    ]
    if not matches or any(name in phrase_table.settings and _VALUE_AFTER.match(plain, end) for name, end in matches):
        return None
    names = [name for name, _ in matches]
    rest = phrase_table.no_trouble.sub(" ", phrase_table.pattern.sub(" ", plain))
    # "the agent has a heartbeat" and "the log is ephemeral" describe something, though every word is listed.
    if _OWNS.search(plain) or ("ephemeral" in names and _describes(rest)):
        return None
    if _says_something(rest, hour_of_day="check-in" in names):
        return None
    journal = [name for name in names if name not in phrase_table.empty]
    # With a journal phrase next to an empty report, the milder outcome wins: the text is moved, not refused.
    return (
        NoiseReason(code="journal", phrase=journal[0]) if journal else NoiseReason(code="empty_report", phrase=names[0])
    )


def _says_something(rest: str, *, hour_of_day: bool) -> bool:
    """Find content in what is left. With ``hour_of_day`` a time is content, as in a hotel's check-in."""
    copula = numeric = False
    for chunk in rest.split():
        word = chunk.strip(_EDGES)
        is_time = _TIME.fullmatch(word) is not None
        if word in words("noise", "copulas"):
            copula = True
        elif is_time or (_COUNTER.fullmatch(word) and not chunk.startswith("-")):
            numeric = True
        elif word and word not in words("noise", "fillers"):
            return True
        if "?" in chunk or (is_time and hour_of_day):
            return True
    # "the heartbeat is 30" states a value, "the heartbeat is ok" does not.
    return copula and numeric


def _describes(rest: str) -> bool:
    used = {chunk.strip(_EDGES) for chunk in rest.split()}
    copulas = words("noise", "copulas")
    return not used.isdisjoint(copulas) and not used <= copulas | words("noise", "pointers") | {""}
