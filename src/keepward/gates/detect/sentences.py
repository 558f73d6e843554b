"""Weigh sentences by the kinds of their words: how likely one tells a secret, how likely one gives an order to a model.

Invariants
(1) A word has kinds by the lists in ``rules/sentences.toml``, of any language; an entry of several words counts where
    they follow each other.
(2) A score is a sum: of the weights of what is there, and of what is there together. Weights are numbers in the same
    file, learned on the texts we develop on by ``python -m evals.weights``, and never written by hand.
(3) A note is weighed, up to so many characters of lines that may hold something and so many values; longer texts and
    what comes after are left to the rules.
"""

from __future__ import annotations

import functools
import itertools
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from keepward.gates.detect.checks import digits, high_entropy, ordinary, passphrase, placeholder, strong
from keepward.gates.detect.engine import any_literal
from keepward.gates.detect.rules import literals_of
from keepward.gates.detect.tables import listed, read, words
from keepward.gates.detect.text import Text

#: Characters of a note, and how many of them and of its values are weighed (3).
LONGEST_NOTE, LONGEST, MOST = 16_384, 6_144, 64
#: What stands around a word, and belongs to it only by chance.
_OPENING, _CLOSING = "\"'`“”‘’„«»([{*「『", "\"'`“”‘’„«»)]}*,;:.!?…」』"


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
def lexicon(of: str) -> Lexicon:
    """Return the words of one table."""
    return Lexicon(read("sentences")[of]["words"])


@functools.cache
def _weights(of: str) -> Mapping[str, float]:
    table: Mapping[str, float] = read("sentences")[of]["weights"]
    return table


def score(of: str, features: Iterable[str]) -> float:
    """Return the sum of the weights of features; above 0 a sentence counts."""
    weights = _weights(of)
    return weights["base"] + sum(weights.get(each, 0.0) for each in features)


# What tells a secret.

#: Kinds of words whose distance from a value counts.
_NOUNS = ("password", "code", "key", "phrase", "opened", "account", "question")
_SEEN = ("giving", "opening", "denied", "counted")
_JOINS = ("giving", "opening", "link", "colon", "quoted", "last", "clause", "sign", "first")
_TELLING = re.compile(r"[0-9!#$%&@_*+~^=?]|[a-z][A-Z]|[^\W\d_][.-][^\W\d_]")
_SHAPES: tuple[tuple[str, str], ...] = (
    ("year", r"(?:19|20)\d\d"),
    ("3 digits", r"\d{3}[#*]?"),
    ("4 digits", r"\d{4}[#*]?"),
    ("6 digits", r"\d{5,6}[#*]?"),
    ("digits", r"\d{7,12}[#*]?"),
    ("groups", r"\d{1,6}(?:[-– /]\d{1,6}){2,9}[#*]?|\d{3,4}[- ]\d{3,4}[#*]?"),
    ("license", r"[A-Z0-9]{3,8}(?:-[A-Z0-9]{3,8}){2,}"),
)
_NUMBERS = frozenset(name for name, _ in _SHAPES if name != "license")
_SHAPE = re.compile("|".join(f"({pattern})" for _, pattern in _SHAPES))
_WORD_AND_NUMBER = re.compile(r"[A-Za-z]{4,}\d{1,4}")
_JOINED = re.compile(r"[^\W\d_]{2,}(?:[-.][^\W\d_]{2,})+(?:[-.]\d+)?")
_PLAIN = re.compile(r"[^\W\d_]{4,}")
_OF_PHRASE = re.compile(r"[^\W\d_]{3,10}")
_FEW = re.compile(r"\d{1,4}")
_NEXT = re.compile(r"\d{1,4}[#*]?")
_NO_VALUE = frozenset("()[]{}<>")
_UNIT = re.compile(
    r"%|€|£|\$|(?:eur|kg|g|km|m|mm|cm|gb|mb|mbit|ms|kwh|mah|h|l|x)$"
    r"|(?:litr|kilo|met|gram|min|people|euro|pound|year|time|word|day|hour|bit|byte|char)"
)
#: Code and documents with markup are left to the rules.
_CODE = re.compile(
    r"[{}]|</|::|\(\)|\]\(|```|>>>|;\s*$|==|^\s*(?:use|def|import|package|try|return|from|---)\b|^---$|^#+ ",
    re.MULTILINE,
)
#: A number that is named by a unit, or a word that says what else it is, speaks against.
AGAINST = frozenset({"denied", "counted", "unit", "numbered", "numbered 2", "named", "when"})


class Token:
    """A word of a line without the marks around it, and where it stands in the text."""

    __slots__ = ("after", "before", "end", "lower", "start", "text")

    def __init__(self, match: re.Match[str], offset: int) -> None:
        raw = match[0]
        self.text = raw.lstrip(_OPENING)
        self.before = raw[: len(raw) - len(self.text)]
        self.start = offset + match.start() + len(self.before)
        kept = self.text.rstrip(_CLOSING)
        self.after, self.text = self.text[len(kept) :], kept
        self.end = self.start + len(kept)
        self.lower = kept.lower()


Candidate = tuple[int, int, list[str]]


def candidates(text: str) -> Iterator[Candidate]:
    """Yield what may be a told secret: its span, half-open, and the features by which it is weighed."""
    offset = weighed = 0
    if _CODE.search(text, 0, LONGEST):
        return
    for line in text.splitlines(keepends=True):
        if weighed < LONGEST and (_TELLING.search(line) or line.count(" ") >= 4 or '"' in line or "'" in line):
            weighed += len(line)
            yield from _in_line(line[:LONGEST], offset)
        offset += len(line)


def _in_line(line: str, offset: int) -> Iterator[Candidate]:
    tokens = [Token(match, offset) for match in re.finditer(r"\S+", line)]
    kinds = lexicon("told").of([token.lower for token in tokens])
    bits = lexicon("told").kinds
    nouns, enough = (sum(bits[name] for name in names) for names in (_NOUNS, ("password", "code", "opened")))
    if not any(kind & nouns for kind in kinds):
        return
    first = 0
    while first < len(tokens):
        last = first
        if _FEW.fullmatch(tokens[first].text):
            # Digits in groups are one value.
            while last + 1 < len(tokens) and not tokens[last].after and _NEXT.fullmatch(tokens[last + 1].text):
                last += 1
        value = " ".join(token.text for token in tokens[first : last + 1])
        shape = _shape(value, quoted=bool(tokens[first].before.strip("*([{")))
        # Three or four digits are no key: they open something, or are called a code.
        too_few = shape in {"3 digits", "4 digits"} and not any(kind & enough for kind in kinds)
        if shape and not too_few and not _counts(shape, tokens, kinds, last):
            yield tokens[first].start, tokens[last].end, _features(shape, tokens, kinds, first, last)
        first = last + 1
    for first, last in _phrases(tokens):
        shape = "10 words" if last - first >= 9 else "4 words"
        yield tokens[first].start, tokens[last].end, _features(shape, tokens, kinds, first, last)


def _counts(shape: str, tokens: Sequence[Token], kinds: Sequence[int], last: int) -> bool:
    """Whether digits count what comes after them: a word that neither opens, nor gives, nor goes on to say when."""
    if shape not in _NUMBERS or tokens[last].after or last == len(tokens) - 1:
        return False
    bits = lexicon("told").kinds
    goes_on = kinds[last + 1] & (sum(bits[name] for name in _NOUNS) | bits["opening"] | bits["giving"] | bits["link"])
    following = words("opened", "words", "goes_on") | words("told", "words", "next_clause")
    return not goes_on and tokens[last + 1].lower not in following and tokens[last + 1].lower.isalpha()


def _phrases(tokens: Sequence[Token]) -> Iterator[tuple[int, int]]:
    """Yield the first and last place of four words or more in a row that may be those of a wallet."""
    glue = words("told", "words", "glue")
    first = 0
    for place, token in enumerate(tokens):
        fits = _OF_PHRASE.fullmatch(token.text) is not None and token.lower not in glue
        last = place if fits else place - 1
        if not fits or place == len(tokens) - 1 or any(mark in ".:;!?" for mark in token.after):
            if last - first >= 3:
                yield first, last
            first = place + 1


def _shape(value: str, *, quoted: bool) -> str | None:
    """Name the shape of a value; None where it is that of no secret."""
    # What is called, indexed or a tag is code.
    if not value or placeholder(value) or not _NO_VALUE.isdisjoint(value):
        return None
    if found := _SHAPE.fullmatch(value):
        return _SHAPES[(found.lastindex or 1) - 1][0]
    if len(value) >= 16 and high_entropy(value):
        return "random"
    if ordinary(value) and not (_JOINED.fullmatch(value) and digits(value)):
        return None
    if passphrase(value):
        return "joined 4"
    if strong(value):
        signs = not value.isalnum()
        if not any(map(str.islower, value)):
            return "capitals"
        if digits(value):
            plain = "word and number" if _WORD_AND_NUMBER.fullmatch(value) else "letters and digits"
            return "mixed" if signs else plain
        return "signs" if signs else "camel"
    if _JOINED.fullmatch(value):
        return "joined"
    if quoted and _PLAIN.fullmatch(value) and value.lower() not in words("told", "words", "not_values"):
        return "word"
    return None


def _features(shape: str, tokens: Sequence[Token], kinds: Sequence[int], first: int, last: int) -> list[str]:
    bits = lexicon("told").kinds
    found: list[str] = []
    nouns: list[str] = []

    def near(name: str, begin: int, end: int) -> bool:
        bit = bits[name]
        around = itertools.chain(kinds[max(0, begin) : min(first, end)], kinds[max(last + 1, begin) : max(0, end)])
        return any(kind & bit for kind in around)

    for name in _NOUNS:
        before = next((steps for steps in (3, 6, 14) if near(name, first - steps, first)), 0)
        after = next((steps for steps in (3, 7) if near(name, last + 1, last + 1 + steps)), 0)
        nouns += [f"{name} -{before}"] * bool(before) + [f"{name} +{after}"] * bool(after)
    found += [name for name in _SEEN if near(name, first - 12, last + 9)]
    if first:
        previous, kind = tokens[first - 1], kinds[first - 1]
        nouns += [f"{name} before" for name in ("password", "code", "key", "opened", "account") if kind & bits[name]]
        found += ["numbered"] * bool(kind & (bits["counted"] | bits["time"]))
        found += ["link"] * bool(kind & bits["link"]) + ["named"] * bool(kind & bits["named"])
        found += ["colon"] * any(mark in ":=" for mark in previous.after)
        found += ["sign"] * (previous.text in {"", "-", "=", "->", "→", "/", "–", "|"})
        found += ["numbered 2"] * (first > 1 and bool(kinds[first - 2] & bits["counted"]))
    else:
        found.append("first")
    found += ["quoted"] * bool(tokens[first].before.strip("*([{"))
    if last == len(tokens) - 1:
        found.append("last")
    elif any(mark in ",.;:!?)" for mark in tokens[last].after):
        found.append("clause")
    elif _UNIT.match(tokens[last + 1].lower):
        found.append("unit")
    elif kinds[last + 1] & bits["time"]:
        found.append("when")
    joins = [name for name in found if name in _JOINS]
    return [
        f"is {shape}",
        *nouns,
        *found,
        *(f"{shape}, {name}" for name in (*nouns, *found)),
        *(f"{noun}, {name}" for noun in nouns for name in joins),
        *(f"{one}, {other}" for one, other in itertools.combinations(nouns, 2)),
    ]


def told(text: str) -> Iterator[tuple[int, int]]:
    """Yield the spans that sentences tell as a password, code, key or phrase."""
    found = candidates(text) if len(text) <= LONGEST_NOTE else ()
    for start, end, features in itertools.islice(found, MOST):
        if score("told", features) > 0:
            yield start, end


@functools.cache
def telling() -> str:
    """Return a pattern that occurs in every text in which a secret may be told."""
    lists = read("sentences")["told"]["words"]
    nouns = any_literal({literal for name in _NOUNS for literal in literals_of(listed(lists[name]))})
    digit = r"[0-9]{4}|[0-9]{3}(?:[.,;!?)#*\"'\n]|$)|[0-9][- ][0-9]|[A-Za-z][0-9]|[0-9][A-Za-z]"
    mark = rf"(?:{digit}|[!#$&@_*+~^][^\s]|[\"'`“„«][^\s]|[a-z][A-Z]|\pL[.-]\pL)"
    phrase = any_literal(set(literals_of(listed(lists["phrase"]))))
    return rf"(?:{nouns})[^\n]*{mark}|{mark}[^\n]*(?:{nouns})|{phrase}"


# What gives an order to a model.

#: Kinds of words about people, homes, programs and what was said: they can only speak against an order.
COUNTER = frozenset({"me", "story", "people", "home", "doc", "person", "asked", "long"})
#: Of these kinds every order has one.
_NEEDED = ("model", "owner", "rule", "data", "hidden", "role", "trust", "rank", "free", "money")
_ACTS = ("remember", "drop", "tell", "send", "show", "rank", "erase", "trust", "run", "role", "not")
_SENTENCE = re.compile(r"(?<=[.!?。;])\s+|\n+")
_WORD = re.compile(r"[^\s\"“”„«»,;:()\[\]<>{}*!?|]+")


def windows(text: str) -> Iterator[tuple[int, int, list[str]]]:
    """Yield each sentence, and each two that follow each other: the span, and the features by which it is weighed."""
    bits = lexicon("orders").kinds
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
    found = lexicon("orders").of(line)
    bits = lexicon("orders").kinds
    acts = sum(bits[name] for name in _ACTS)
    first = next((kind for kind, word in zip(found, line, strict=True) if word not in {"please", "bitte", ""}), 0)
    marks = {"begins": bool(first & acts), "asked": sentence.rstrip().endswith("?"), "long": len(line) > 30}
    kinds = functools.reduce(int.__or__, found, 0)
    if "://" in sentence or ("@" in sentence and "." in sentence):
        kinds |= bits["place"]
    return kinds, frozenset(name for name, holds in marks.items() if holds)


@functools.lru_cache(1_024)
def _of_order(kinds: int, marks: frozenset[str], *, model: bool) -> list[str]:
    names = [name for name, bit in lexicon("orders").kinds.items() if kinds & bit] + sorted(marks)
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
    found = [(score("orders", features), -start, -end, features) for start, end, features in windows(text)]
    if not found:
        return None
    best, start, end, features = max(found)
    chance = 2 * math.log((len(found) + 1) / 2)
    kinds = len(lexicon("orders").kinds.keys() & set(features))
    return Order(start=-start, end=-end, score=best - chance, best=best, kinds=kinds)


def may_order(text: Text) -> bool:
    """Whether a text has a word without which nothing is weighed as an order, and is none of code."""
    return text.occurs(ordering()) and not _CODE.search(text.text, 0, LONGEST)


@functools.cache
def ordering() -> str:
    """Return a pattern that occurs in every text in which something is weighed as an order."""
    lists = read("sentences")["orders"]["words"]
    literals = {literal for name in _NEEDED for literal in literals_of(listed(lists[name]))}
    short = {literal for literal in literals if len(literal) < 4}
    brief = "|".join(sorted(short))
    return rf"{any_literal(literals - short)}|(?i:\b(?:{brief})\b)"
