"""Weigh the sentences of a note by the kinds of their words: how likely one gives an order to a model.

Invariants
(1) A word has kinds by the lists in ``rules/sentences.toml``, of any language; an entry of several words counts where
    they follow each other.
(2) A score is a sum: of the weights of what is there, and of what is there together. Weights are numbers in the same
    file, learned on the texts we develop on by ``python -m evals.weights``, and never written by hand.
(3) A note is weighed, up to so many characters and sentences; longer texts and what comes after are left to the rules.
"""

from __future__ import annotations

import functools
import itertools
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from keepward.gates.detect.engine import any_literal
from keepward.gates.detect.rules import literals_of
from keepward.gates.detect.tables import listed, read
from keepward.gates.detect.text import Text
from keepward.model.patterns import regex

#: Characters of a note, and how many of them and of its sentences are weighed (3).
LONGEST_NOTE, LONGEST, MOST = 16_384, 6_144, 64


class Lexicon:
    """Kinds of words, each a bit, by lists of words (1)."""

    def __init__(self, lists: Mapping[str, str]) -> None:
        self.kinds = {name: 1 << place for place, name in enumerate(lists)}
        self._words: dict[str, int] = {}
        self._begins: dict[str, int] = {}
        self._ends: dict[str, int] = {}
        self._rows: dict[str, list[tuple[list[str], int]]] = {}
        for name, text in lists.items():
            for entry in listed(text):
                first, *more = entry.split()
                bit = self.kinds[name]
                if more:
                    self._rows.setdefault(first, []).append((more, bit))
                elif first.startswith("*"):
                    self._ends[first[1:]] = self._ends.get(first[1:], 0) | bit
                elif first.endswith("*"):
                    self._begins[first[:-1]] = self._begins.get(first[:-1], 0) | bit
                else:
                    self._words[first] = self._words.get(first, 0) | bit
        self._lengths = sorted({len(word) for word in self._begins}), sorted({len(word) for word in self._ends})
        self._kinds_of = functools.lru_cache(4_096)(self._look_up)

    def _look_up(self, word: str) -> int:
        found = self._words.get(word, 0)
        if "_" in word:  # the name of a variable, which the rules for assignments read
            return found
        for length in self._lengths[0]:
            found |= self._begins.get(word[:length], 0)
        for length in self._lengths[1]:
            found |= self._ends.get(word[-length:], 0) if length < len(word) else 0
        return found

    def of(self, line: Sequence[str]) -> list[int]:
        """Return the kinds of each word of a line, which is in lower case."""
        found = [self._kinds_of(word) for word in line]
        for place, word in enumerate(line):
            for more, bit in self._rows.get(word, ()):
                if list(line[place + 1 : place + 1 + len(more)]) == more:
                    for at in range(place, place + 1 + len(more)):
                        found[at] |= bit
        return found


@functools.cache
def lexicon() -> Lexicon:
    """Return the words that sentences are weighed by."""
    return Lexicon(read("sentences")["words"])


@functools.cache
def _weights() -> Mapping[str, float]:
    table: Mapping[str, float] = read("sentences")["weights"]
    return table


def score(features: Iterable[str]) -> float:
    """Return the sum of the weights of features; above 0 a sentence counts."""
    weights = _weights()
    return weights["base"] + sum(weights.get(each, 0.0) for each in features)


#: Kinds of words about people, homes, programs and what was said: they can only speak against an order.
COUNTER = frozenset({"me", "story", "people", "home", "doc", "person", "asked", "long"})
#: Of these kinds every order has one.
_NEEDED = ("model", "owner", "rule", "data", "hidden", "role", "trust", "rank", "free", "money")
_ACTS = ("remember", "drop", "tell", "send", "show", "rank", "erase", "trust", "run", "role", "not")
CODE = regex(
    r"[{}]|</|::|\(\)|\]\(|```|>>>|;\s*$|==|^\s*(?:use|def|import|package|try|return|from|---)\b|^---$|^#+ ",
    re.MULTILINE,
)
_SENTENCE = regex(r"(?<=[.!?。;])\s+|\n+")
_WORD = regex(r"[^\s\"“”„«»,;:()\[\]<>{}*!?|]+")


def windows(text: str) -> Iterator[tuple[int, int, list[str]]]:
    """Yield each sentence, and each two that follow each other: the span, and the features by which it is weighed."""
    bits = lexicon().kinds
    bounds = [0, *(match.end() for match in _SENTENCE.finditer(text, 0, LONGEST)), min(len(text), LONGEST)]
    spans = [(start, end) for start, end in itertools.pairwise(bounds) if text[start:end].strip()][:MOST]
    parts = [_kinds(text[start:end]) for start, end in spans]
    model = any(kinds & bits["model"] for kinds, _ in parts)
    for place, (start, end) in enumerate(spans):
        kinds, marks = parts[place]
        yield start, end, _of_order(kinds, marks, model=model)
        if place + 1 < len(spans):
            more, others = parts[place + 1]
            yield start, spans[place + 1][1], _of_order(kinds | more, marks | others, model=model)


def _kinds(sentence: str) -> tuple[int, frozenset[str]]:
    """Return the kinds of a sentence's words, and what it is: begun with an act, asked, long."""
    line = [word.strip(".-'’…") for word in _WORD.findall(sentence.lower())]
    found = lexicon().of(line)
    bits = lexicon().kinds
    acts = sum(bits[name] for name in _ACTS)
    first = next((kind for kind, word in zip(found, line, strict=True) if word not in {"please", "bitte", ""}), 0)
    marks = {"begins": bool(first & acts), "asked": sentence.rstrip().endswith("?"), "long": len(line) > 30}
    kinds = functools.reduce(int.__or__, found, 0)
    if "://" in sentence or ("@" in sentence and "." in sentence):
        kinds |= bits["place"]
    return kinds, frozenset(name for name, holds in marks.items() if holds)


@functools.lru_cache(1_024)
def _of_order(kinds: int, marks: frozenset[str], *, model: bool) -> list[str]:
    names = [name for name, bit in lexicon().kinds.items() if kinds & bit] + sorted(marks)
    plain = [name for name in names if name not in COUNTER]
    pairs = (f"{one}, {other}" for one, other in itertools.combinations(plain, 2))
    return [*names, *pairs, *(["a model"] if model else [])]


class Order(NamedTuple):
    """The part of a note that is most like an order: its span, half-open, and how it was weighed."""

    start: int
    end: int
    #: Above 0 it speaks for an order. The longer a note, the more of it may seem one by chance.
    score: float
    #: The same, whatever the length of the note.
    best: float
    #: How many kinds of words it has: with few of them, its language is not known.
    kinds: int


def order(text: str) -> Order | None:
    """Return the part of a note that is most like an order to a model; None for what is no note, or empty."""
    if len(text) > LONGEST_NOTE:
        return None
    found = [(score(features), -start, -end, features) for start, end, features in windows(text)]
    if not found:
        return None
    best, start, end, features = max(found)
    chance = 2 * math.log((len(found) + 1) / 2)
    kinds = len(lexicon().kinds.keys() & set(features))
    return Order(start=-start, end=-end, score=best - chance, best=best, kinds=kinds)


def may_order(text: Text) -> bool:
    """Whether a text has a word without which nothing is weighed as an order, and is none of code."""
    return text.occurs(ordering()) and not CODE.search(text.text, 0, LONGEST)


@functools.cache
def ordering() -> str:
    """Return a pattern that occurs in every text in which something is weighed as an order."""
    lists = read("sentences")["words"]
    return any_entry(lists[name] for name in _NEEDED)


def any_entry(lists: Iterable[str]) -> str:
    """Return a pattern that occurs wherever an entry of a list does; short ones count as words alone."""
    literals = {literal for text in lists for literal in literals_of(listed(text))}
    short = {literal for literal in literals if len(literal) < 4}
    return rf"{any_literal(literals - short)}|(?i:\b(?:{'|'.join(sorted(short) or ['-'])})\b)"
