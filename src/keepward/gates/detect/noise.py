"""The noise detector: does a text consist of a journal mark and nothing else?

A text is noise when one of ten phrases stands in it and, once the phrases, fillers, counters, times and
status words are taken away, nothing is left.

Invariants
(1) The vocabulary is closed: a word, number or sign that is not on a list here counts as content, and one
    piece of content makes the text a fact. The lists may only hold words that say nothing beside a phrase.
(2) Negations, modals, units, prepositions of time and signs of equality are never on a list: "no heartbeat",
    "heartbeat 30 s", "no changes after 18:00" and "heartbeat = 30" say something.
(3) The answer names a canonical phrase, never a piece of the text.
(4) Work is linear in the text and bounded by ``LONGEST``.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from typing import Final, Literal

Code = Literal["journal", "empty_report"]

#: The ten phrases, in the order in which documentation lists them.
JOURNAL_PHRASES: Final[tuple[str, ...]] = (
    "tick marker",
    "runtime snapshot",
    "check-in",
    "heartbeat",
    "burst tick",
    "no changes",
    "nothing to report",
    "status unchanged",
    "routine scan",
    "ephemeral",
)

#: Characters; a longer text is taken for a fact unread.
LONGEST: Final = 4_000

_EMPTY: Final = frozenset({"no changes", "nothing to report", "status unchanged"})
# A number after these may be the value of a setting or an hour of the day: "heartbeat: 30", "check-in 15:00".
_NAMES_A_SETTING: Final = frozenset({"heartbeat", "check-in", "ephemeral"})

# Group n is the phrase at index n - 1. Wordings that differ only in grammar count as the phrase.
_PHRASE = re.compile(
    r"(?<![\w=])(?:"
    r"(tick markers?)|(runtime snapshots?)|(check-ins?|checkins?)|(heartbeats?)|(burst ticks?)|(no changes?)"
    r"|(nothing (?:new |else |further |more )?to report)"
    r"|(status (?:is |remains |still )?unchanged)"
    r"|(routine scans?)|(ephemeral)"
    r")(?!\w|-\w|/\w|\.\w)"
)
#: A word of each phrase; without any of them there is no phrase.
_WORDS_OF_PHRASES: Final = (
    "marker", "snapshot", "check", "heartbeat", "burst", "change", "report", "routine", "ephemeral",
)  # fmt: skip
_NO_TROUBLE = re.compile(
    r"(?<![\w-])no (?:new )?(?:issues?|errors?|anomal(?:y|ies)|findings?|alerts?|problems?|warnings?)(?![\w-])"
)


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_FILLERS: Final = _words(
    "a an the this that of for at and it its we i there there's it's everything all so far yet again still "
    "has have had been with since last previous tick ticks burst bursts marker cycle run loop iteration round "
    "seq sequence step number nr count counter entry log event journal note agent system systems status "
    "today utc gmt z am pm ts timestamp time"
)
_POINTERS: Final = frozenset({"a", "an", "the", "this", "that", "it", "it's"})
_COPULAS: Final = frozenset({"is", "are", "was", "were", "remains"})
_STATUS: Final = _words(
    "ok okay good fine green alive healthy nominal normal stable clean clear steady idle complete completed done "
    "finished passed started begun sent received emitted recorded logged saved stored taken written created "
    "success successful successfully acknowledged ack detected found observed seen ✅ ✓ ✔ ☑ 🟢 💚 💓 👍"
)

_TIME = re.compile(
    r"\d{4}[-/]\d{2}[-/]\d{2}(?:t\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:z|[+-]\d{2}:?\d{2})?)?"
    r"|t?\d{1,2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:z|utc|[ap]m)?"
)
_OWNS = re.compile(r"(?<!\w)(?:has|have|had) an? ")
_COUNTER = re.compile(r"#?\d+(?:/\d+)?")
_VALUE_AFTER = re.compile(r"\s*[:\-]\s*#?\d")
_DROPPED: Final = dict.fromkeys(map(ord, "\u00ad\u200b\u2060\ufeff\ufe0f"))
_DASHES: Final = dict.fromkeys(map(ord, "\u2010\u2011\u2012\u2013\u2014\u2015\u2212"), "-") | {
    ord("\u2019"): "'",
    ord("_"): " ",
}
_EDGES: Final = ".,;:!…()[]{}<>\"'“”„«»`*|~-"


@dataclass(frozen=True, slots=True, kw_only=True)
class Noise:
    """The reason why a text says nothing that lasts."""

    #: ``journal``: a mark of the running system, worth keeping for a while.
    #: ``empty_report``: a report that nothing happened, worth keeping nowhere.
    code: Code
    #: The member of ``JOURNAL_PHRASES`` that decided; with several, the first journal mark in the text.
    phrase: str


def judge(text: str) -> Noise | None:
    """Say why a text is pure noise, or return None because it may state a fact.

    Case, compatibility forms, dashes, zero-width characters and punctuation do not matter; a question mark
    does, since a question is not a report. Texts over ``LONGEST`` characters are facts.
    """
    if len(text) > LONGEST:
        return None
    if text.isascii():
        lower = text.lower()
        if not any(word in lower for word in _WORDS_OF_PHRASES):
            return None
    plain = unicodedata.normalize("NFKC", text.translate(_DROPPED)).casefold().translate(_DASHES)
    plain = " ".join(plain.split())
    found = [(JOURNAL_PHRASES[(hit.lastindex or 1) - 1], hit.end()) for hit in _PHRASE.finditer(plain)]
    if not found:
        return None
    for phrase, end in found:
        if phrase in _NAMES_A_SETTING and _VALUE_AFTER.match(plain, end):
            return None
    phrases = [phrase for phrase, _ in found]
    rest = _NO_TROUBLE.sub(" ", _PHRASE.sub(" ", plain))
    # "the agent has a heartbeat" and "the log is ephemeral" describe something, though every word is listed.
    if _OWNS.search(plain) or ("ephemeral" in phrases and _describes(rest)):
        return None
    if _says_something(rest, hour_of_day="check-in" in phrases):
        return None
    marks = [phrase for phrase in phrases if phrase not in _EMPTY]
    # A mark beside an empty report is rerouted, not refused: the milder outcome wins.
    return Noise(code="journal", phrase=marks[0]) if marks else Noise(code="empty_report", phrase=phrases[0])


def _says_something(rest: str, *, hour_of_day: bool) -> bool:
    """Find content in what is left. With ``hour_of_day`` a time is content, as in a hotel's check-in."""
    copula = numeric = False
    for chunk in rest.split():
        if "?" in chunk:
            return True
        word = chunk.strip(_EDGES)
        if not word or word in _FILLERS or word in _STATUS:
            continue
        if word in _COPULAS:
            copula = True
        elif _TIME.fullmatch(word):
            numeric = True
            if hour_of_day:
                return True
        elif _COUNTER.fullmatch(word) and not chunk.startswith("-"):
            numeric = True
        else:
            return True
    # "the heartbeat is 30" states a value, "the heartbeat is ok" does not.
    return copula and numeric


def _describes(rest: str) -> bool:
    words = {chunk.strip(_EDGES) for chunk in rest.split()}
    return not words.isdisjoint(_COPULAS) and not words <= _COPULAS | _POINTERS | {""}
