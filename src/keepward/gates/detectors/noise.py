"""The noise detector: does a text consist of a journal mark and nothing else?

A text is noise when one of ten phrases stands in it and, once the phrases, fillers, counters and times are taken away,
nothing is left. The answer names a phrase of the list, never a piece of the text.
"""

from __future__ import annotations

import functools
import unicodedata
from dataclasses import dataclass
from typing import Final, Literal

from keepward.core.patterns import lazy_regex
from keepward.gates.detectors.tables import columns, read, words

Code = Literal["journal", "empty_report"]

#: Characters; a longer text is taken for a fact unread.
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
    """The reason why a text says nothing that lasts."""

    #: ``journal``: a mark of the running system, worth keeping for a while.
    #: ``empty_report``: a report that nothing happened, worth keeping nowhere.
    code: Code
    #: The phrase that made the text noise; of several the first one in the text.
    phrase: str


class _Phrases:
    """The ten phrases, and how to find them in any wording that differs only in grammar."""

    def __init__(self) -> None:
        rows = [columns(line, "name", "sign", "said") for line in read("noise")["phrases"].splitlines()]
        self.names = tuple(row["name"] for row in rows)
        self.empty = {row["name"] for row in rows if "empty" in row}
        self.settings = {row["name"] for row in rows if "setting" in row}
        # Group n is the phrase at index n - 1.
        said = "|".join(f"({row['said']})" for row in rows)
        self.pattern = lazy_regex(rf"(?<![\w=])(?:{said})(?!\w|-\w|/\w|\.\w)")
        #: A word of each phrase, whatever its wording; without any of them there is none.
        self.signs = {row["sign"] for row in rows}
        self.no_trouble = lazy_regex(rf"(?<![\w-])no (?:new )?(?:{'|'.join(words('noise', 'troubles'))})(?![\w-])")


phrases = functools.cache(_Phrases)


def classify(text: str) -> NoiseReason | None:
    """Say why a text is pure noise, or return None because it may state a fact.

    Case, compatibility forms, dashes, zero-width characters and punctuation do not matter; a question mark
    does, since a question is not a report. Texts over ``MAX_NOISE_CHARS`` characters are facts.
    """
    known = phrases()
    if len(text) > MAX_NOISE_CHARS or (text.isascii() and not any(sign in text.lower() for sign in known.signs)):
        return None
    plain = " ".join(unicodedata.normalize("NFKC", text.translate(_PLAIN)).casefold().translate(_PLAIN).split())
    found = [(known.names[(hit.lastindex or 1) - 1], hit.end()) for hit in known.pattern.finditer(plain)]
    if not found or any(name in known.settings and _VALUE_AFTER.match(plain, end) for name, end in found):
        return None
    said = [name for name, _ in found]
    rest = known.no_trouble.sub(" ", known.pattern.sub(" ", plain))
    # "the agent has a heartbeat" and "the log is ephemeral" describe something, though every word is listed.
    if _OWNS.search(plain) or ("ephemeral" in said and _describes(rest)):
        return None
    if _says_something(rest, hour_of_day="check-in" in said):
        return None
    marks = [name for name in said if name not in known.empty]
    # A mark beside an empty report is rerouted, not refused: the milder outcome wins.
    return NoiseReason(code="journal", phrase=marks[0]) if marks else NoiseReason(code="empty_report", phrase=said[0])


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
