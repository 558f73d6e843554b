"""Secrets that prose tells: "the wifi password is tulip-garden-44", "gate: tap in 5508".

An English phrase finds a value where a noun for a password, a PIN or a key, a link and a value of its shape stand.
A rule of proximity finds a value by its shape and by the kinds of words near it, in any language whose words are listed
in ``rules/credentials_in_prose.toml``: in its own sentence, and in the one before or after where that belongs to it. A
sentence that asks, or speaks of rules and formats, tells nothing. A note is read, up to so many characters and values;
longer texts and code are left to the other rules.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from keepward.core.patterns import lazy_regex
from keepward.gates.detectors.checks import (
    count_digits,
    high_entropy,
    is_everyday_token,
    is_joined_words,
    is_placeholder,
    looks_like_password,
    passphrase,
)
from keepward.gates.detectors.matcher import Finding, any_literal, finding_at
from keepward.gates.detectors.normalize import Text, occurs
from keepward.gates.detectors.rules import expand_lists, literals_of
from keepward.gates.detectors.tables import read, split_entries, words

_TABLE = "credentials_in_prose"
#: Characters of a note, and of those how many are read for values near words.
MAX_NOTE_CHARS, MAX_READ_CHARS = 16_384, 6_144
#: Values of a note and words of a line that are looked at.
_MAX_VALUES, _MAX_WORDS = 64, 400
#: Told values looked at in one text, all phrases together: so many at least, and one more for so many characters. What
#: comes after is covered as a flood.
_MIN_PHRASE_VALUES, _CHARS_PER_PHRASE_VALUE = 200, 320
_CODE = lazy_regex(
    r"[{}]|</|::|\(\)|\]\(|```|>>>|;\s*$|==|^\s*(?:use|def|import|package|try|return|from|---)\b|^---$|^#+ ",
    re.MULTILINE,
)
#: Half-open spans of a match by the names of its groups; the empty name is the whole.
Groups = dict[str, tuple[int, int]]


@functools.cache
def phrase_patterns() -> tuple[str, tuple[tuple[str, str], ...]]:
    """Return a pattern for what stands in every text that a phrase finds something in, and the phrases by kind."""
    tables = read(_TABLE)
    found = tuple((row["kind"], expand_lists(row["pattern"], tables)) for row in tables["phrase"])
    return "(?i)" + "|".join(tables["telling"]), found


def find_in_prose(text: Text) -> Iterator[Finding]:
    """Yield values that prose presents as a password, PIN, code or key."""
    telling, found = phrase_patterns()
    if text.occurs(telling):
        budget = iter(range(max(_MIN_PHRASE_VALUES, len(text.text) // _CHARS_PER_PHRASE_VALUE)))
        for kind, pattern in found:
            yield from _by_phrase(kind, pattern, text, budget)
    if may_be_near_words(text):
        for start, end, _ in find_near_words(text.text):
            yield finding_at(text, start, end, "told_secret", "likely")


def _by_phrase(kind: str, pattern: str, text: Text, budget: Iterator[int]) -> Iterator[Finding]:
    whole = text.text
    for groups in text.groups(pattern):
        start, end = groups["v"]
        if next(budget, None) is None:
            yield finding_at(text, start, len(whole), "told_secret", "likely")
            return
        end = start + len(whole[start:end].rstrip(".,;:)]}'’”…*"))
        if whole[start:end].endswith(("!", "?")) and not count_digits(whole[start:end]):
            end -= 1
        if whole.startswith(";", end):
            end = start + len(_HTML_ENTITY.sub("", whole[start:end]))
        if end - start >= 3 and _is_secret_value(whole, start, end, kind, groups):
            yield finding_at(text, start, end, "told_secret", "likely")


#: An HTML entity at the end of a value, without its semicolon.
_HTML_ENTITY = lazy_regex(r"\.?&[a-z]{2,6}\Z")


def _listed(name: str) -> frozenset[str]:
    return words(_TABLE, "told", name)


def last_word(text: str) -> str:
    """Return the letters that a text ends with, in lower case."""
    return re.split(r"[^a-z]+", text.lower().rstrip("_- "))[-1]


def nonsecret_key_qualifiers() -> frozenset[str]:
    """Return words before "key" that make it no secret: a primary key, a sort key."""
    return words(_TABLE, "assigned", "no_keys")


def _is_secret_value(text: str, start: int, end: int, kind: str, groups: Groups) -> bool:
    value = text[start:end]
    noun = "p" if "p" in groups else "n" if "n" in groups else "k"
    is_number = count_digits(value) > 0 and all(char.isdigit() or char in "-#*/." for char in value)
    if kind == "turned":
        after = text[slice(*groups.get("after", (0, 0)))].strip(" -").lower()
        plain = noun == "p" and plain_word(value) and value.lower() in _listed("common")
        plain = plain or (noun == "n" and is_number and len(value) >= 4)
        names_code = noun == "k" and count_digits(value) == 0
        return after not in _listed("compounds") and not names_code and (looks_like_password(value) or plain)
    if value[0] == "-" or value.lower() in _listed("not_values") or is_placeholder(value):
        return False
    if kind == "pair":
        return looks_like_password(value) or passphrase(value) or value.lower() in _listed("common")
    after = text[end : end + 24].lstrip("\"'`”’ ").split(" ", 1)[0].lower().strip(".,;:!?)\n")
    is_counted = after in _listed("units")
    named = text[slice(*groups["n"])].lower() if noun == "n" else ""
    if named.startswith("pin") and _speaks_of("circuit", text[max(0, start - 80) : end + 80]):
        return False
    if noun == "n" and is_number:
        # Digits that are a date, a time or a version are no code.
        odd = not value.isdigit() and is_everyday_token(value) and "-" not in value.strip("-")
        fewest = 3 if named.startswith(("cv", "com")) else 4
        return fewest <= count_digits(value) <= 12 and not (is_counted or odd)
    if named.startswith("com") or (named.startswith("pin") and count_digits(value) * 2 < len(value)):
        return False
    if noun == "k":
        first, last = groups["k"]
        named_key = text[first:last].lower() == "key"
        if named_key and (":" in value or last_word(text[max(0, first - 24) : first]) in nonsecret_key_qualifiers()):
            return False
        if kind == "beside":
            return not is_everyday_token(value) and high_entropy(value)
        random = high_entropy(value, min_length=12) or (
            looks_like_password(value) and len(value) >= 6 and count_digits(value) > 0
        )
        return random and not is_everyday_token(value) and not is_joined_words(value)
    if value.isdigit():
        return len(value) >= (5 if kind == "beside" else 4) and not is_counted
    if looks_like_password(value):
        return not is_counted or not value[0].isdigit()
    if noun == "p" and (value.lower() in _listed("common") or passphrase(value)):
        return True
    return noun == "p" and kind != "beside" and plain_word(value)


def plain_word(value: str) -> bool:
    """Whether a value is a word that can be a password: it describes nothing, and is no example."""
    lowered = value.lower()
    if lowered in _listed("not_values") or is_placeholder(value) or is_everyday_token(value) or len(value) < 4:
        return False
    describes = lowered.endswith(tuple(_listed("not_endings"))) and lowered not in _listed("nouns")
    return value.replace("-", "").replace("'", "").isalpha() and not describes


# Values near words.


class Lexicon:
    """Kinds of words, each a bit, by lists of words, of any language."""

    def __init__(self, lists: Mapping[str, str]) -> None:
        self.kinds = {name: 1 << place for place, name in enumerate(lists)}
        self._words: dict[str, int] = {}
        self._begins: dict[str, int] = {}
        self._ends: dict[str, int] = {}
        self._rows: dict[str, list[tuple[list[str], int]]] = {}
        for name, text in lists.items():
            for entry in split_entries(text):
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


def any_entry(lists: Iterable[str]) -> str:
    """Return a pattern that occurs wherever an entry of a list does; short ones count as words alone."""
    literals = {literal for text in lists for literal in literals_of(split_entries(text))}
    short = {literal for literal in literals if len(literal) < 4}
    return rf"{any_literal(literals - short)}|(?i:\b(?:{'|'.join(sorted(short) or ['-'])})\b)"


#: Kinds of which one stands near every told value.
_NOUNS = (
    *("password", "pin", "code", "key", "seed", "question"),
    *("device", "lock", "safe", "phone", "place", "account", "file"),
)
#: Kinds of words right before a value of a shape by which it is none of a secret.
_DIGITAL = dict.fromkeys(("digits", "coded", "keyed"), "clock counted numbered")
_NEVER_AFTER = _DIGITAL | {
    "dialled": "clock counted numbered dated",
    "spoken": "counted",
    "turned": "counted",
    "words": "",
}
#: What stands around a word, and belongs to it only by chance.
_OPENING, _CLOSING = "\"'`“”‘’„«»([{*", "\"'`“”‘’„«»)]}*,;:.!?…"
_ELIDED = lazy_regex("^(?:[ld]|dell|all|nell|qu|dall|sull)'|(?<!^it)(?<!^that)'s$")
_USER = lazy_regex("[a-z0-9._-]{3,}")
_SPOKEN = ("one", "two", "three", "four")


@functools.lru_cache(4_096)
def _in_lists(word: str) -> str:
    """Return a word as lists have it: in lower case, without accents, an article or a genitive."""
    return _ELIDED.sub("", (word if word.isascii() else Text(word).normal.text).lower().replace("’", "'"))


class WordSpan:
    """A word of a line without the marks around it, and where it stands in the text."""

    __slots__ = ("after", "before", "end", "kinds", "lower", "sentence", "start", "text")

    def __init__(self, match: re.Match[str], offset: int) -> None:
        raw = match[0]
        self.text = raw.lstrip(_OPENING)
        self.before = raw[: len(raw) - len(self.text)]
        self.start = offset + match.start() + len(self.before)
        kept = self.text.rstrip(_CLOSING)
        self.after = self.text[len(kept) :]
        # A sign after a digit is more often of the password than of the sentence.
        self.text = kept + self.after[:1] * (self.after[:1] in {"!", "*"} and kept[-1:].isdigit())
        self.end = self.start + len(self.text)
        self.lower = kept.lower() if kept.isalpha() and kept.isascii() else _in_lists(kept)
        self.kinds = self.sentence = 0


class CandidateValue(NamedTuple):
    """A value in its line: the places of its first and last word, and its shape."""

    first: int
    last: int
    shape: str


@functools.cache
def lexicon() -> Lexicon:
    """Return the words that rules of proximity speak of."""
    return Lexicon(read(_TABLE)["words"])


@functools.cache
def _bits(kinds: str) -> int:
    return sum(lexicon().kinds[name] for name in kinds.split())


@functools.cache
def _shapes() -> tuple[tuple[str, re.Pattern[str]], ...]:
    return tuple((name, lazy_regex(pattern)) for name, pattern in read(_TABLE)["shapes"].items())


def _speaks_of(kind: str, text: str) -> bool:
    return any(kinds & _bits(kind) for kinds in lexicon().of(re.findall(r"\w+", text.lower())))


# The shape of a value.

_TELLING = lazy_regex(r"[0-9!#$&*?^_@.]|[a-z][A-Z]|[A-Z]-[A-Z]-[A-Z]")
_ODD = frozenset('()[]{}<>/\\|"`,;:…')
_SIGNS, _TYPED = frozenset("!#$&*?^_@"), frozenset("!#$&^")
_DECIMAL = lazy_regex(r"\d+[.,]|.*\d\.\d")
_FILE = lazy_regex(r"\.(?:[a-zA-Z]|[a-z]{2,3}|[a-z]{2,3}\d\d?|conf|html|java|json|jpeg|toml|yaml)$")
_NUMBERED = lazy_regex(r"[^\W\d_]{2,}(?:[-._][^\W\d_]{2,})*[-._]\d{1,4}|[^\W\d_]{4,}\d")
_DOTTED = lazy_regex(r"[^\W\d_]{3,}(?:\.[^\W\d_]{2,})+")


def shape_of(value: str) -> str | None:
    """Name the shape of a value; None where it is that of no secret."""
    if not 3 <= len(value) <= 80 or not _TELLING.search(value) or is_placeholder(value):
        return None
    for name, pattern in _shapes():
        if pattern.fullmatch(value):
            return name
    if len(value) >= 16 and high_entropy(value) and count_digits(value) >= 3 and _ODD.isdisjoint(value):
        return "random"
    return _lettered(value)


def _lettered(value: str) -> str | None:
    """Name the shape of a value with letters."""
    signs = _SIGNS.intersection(value[1:-1])
    odd = not _ODD.isdisjoint(value) or _DECIMAL.match(value) or _FILE.search(value)
    if (
        odd
        or value.startswith("0x")
        or value[0] in "$%@&#-+~=_"
        or not any(map(str.islower, value))
        or ("@" in signs and "." in value)
    ):
        return None
    parts = re.split(r"[\W_]+", value)
    if any(kind & _bits("password pin key") for kind in lexicon().of([part.lower() for part in parts])):
        return None
    if _NUMBERED.fullmatch(value):
        return "joined" if len(parts) > 2 or "_" in value else "numbered"
    if count_digits(value) and (signs or value[-1] in "!#$*?"):
        return "odd" if len(value) >= 7 and not _TYPED.isdisjoint(value) else "mixed"
    if _DOTTED.fullmatch(value):
        return "dotted" if any(map(str.isupper, value[1:])) or len(parts) > 2 else None
    if is_everyday_token(value) or not looks_like_password(value):
        return None
    if signs:
        return "signed" if len(value) >= 8 and len(parts) in {2, 3} and min(map(len, parts)) >= 3 else None
    if count_digits(value) == 0:
        return None
    if value.isalnum():
        return "leet" if len(value) >= (6 if any(map(str.isupper, value)) else 7) else None
    scattered = count_digits(value) > 1 or any(map(str.isupper, value))
    return "joined" if scattered and len(value) >= 9 and count_digits(value) * 2 < len(value) else None


# What stands around it.


class ValueContext:
    """What stands around one value: the words near it, and the marks by which it is told."""

    def __init__(self, line: Sequence[WordSpan], value: CandidateValue) -> None:
        self.line, self.value = line, value
        first, last, _ = value
        self.places = [place for place in _sentence(line, first, last) if not first <= place <= last]
        self.kinds = functools.reduce(int.__or__, (line[place].kinds for place in self.places), 0)
        self.before = line[first - 1] if first else None
        self.next = line[last + 1] if last + 1 < len(line) else None

    @property
    def is_statement(self) -> bool:
        """Whether the sentence tells: it asks nothing, speaks of no rules, and counts nothing before the value."""
        asks = any("?" in self.line[place].after for place in self.places if place > self.value.last)
        asks = asks or self.line[self.value.last].after.startswith("?")
        stops = self.kinds & _bits("stop circuit")
        never = _bits(_NEVER_AFTER.get(self.value.shape, "article counted numbered"))
        counts = self.before is not None and self.before.kinds & never
        return not (asks or stops or counts or "[" in self.line[self.value.first].before)

    def near(self, kinds: int, before: int, after: int) -> bool:
        """Whether a word of one of the kinds stands at most so many words before or after the value."""
        if not self.kinds & kinds:
            return False
        first, last, _ = self.value
        return any(
            self.line[place].kinds & kinds
            for place in self.places
            if first - before <= place < first or last < place <= last + after
        )

    def is_announced(self) -> bool:
        """Whether a colon or a sign such as an arrow stands right before it."""
        before = self.before
        signs = {"-", "=", "->", "=>", "→", "–", "//", "/"}
        return before is not None and (":" in before.after or "=" in before.after or before.text in signs)

    def ends(self) -> bool:
        """Whether its clause ends with it."""
        marks = self.line[self.value.last].after
        return (
            self.next is None
            or any(mark in ",.;:!)" for mark in marks)
            or self.next.text in {"", "-", "–", "—", "//", "/"}
        )

    def may_end_clause(self) -> bool:
        """Whether its clause ends with it, or goes on to say when or where."""
        return self.ends() or (self.next is not None and bool(self.next.kinds & _bits("goes_on")))

    def is_paired(self) -> bool:
        """Whether the name of a user, or an e-mail address, is joined to it: ``ana@example.org / ...``."""
        place, joints = self.value.first - 1, 0
        while place >= 0 and self.line[place].kinds & _bits("joint sure_joint"):
            joints |= self.line[place].kinds
            place -= 1
        if place < 0 or not (joints or self.line[place].after == ","):
            return False
        user = self.line[place]
        if "@" in user.text or user.kinds & _bits("user"):
            return True
        sure = joints & _bits("sure_joint") or re.search(r"[a-z][._]?\d|[a-z][._][a-z]", user.text)
        return bool(sure) and _USER.fullmatch(user.text) is not None


def _sentence(line: Sequence[WordSpan], first: int, last: int) -> list[int]:
    """Return the places of the sentence around a value, and of those that belong to it."""

    def of(sentence: int, begin: int, end: int) -> list[int]:
        return [place for place in range(max(0, begin), min(len(line), end)) if line[place].sentence == sentence]

    own = of(line[first].sentence, first - 30, last + 20)
    begin, end = own[0], own[-1] + 1
    if begin and (first == begin or (first - begin <= 4 and line[begin].kinds & _bits("continues"))):
        own = of(line[begin - 1].sentence, begin - 20, begin) + own
    if end < len(line) and end - last <= 3 and line[end].kinds & _bits("that"):
        own += of(line[end].sentence, end, end + 12)
    return own


_NAMED_CONDITIONS: dict[str, Callable[[ValueContext], bool]] = {
    "announced": ValueContext.is_announced,
    "ends": ValueContext.ends,
    "goes on": ValueContext.may_end_clause,
    "paired": ValueContext.is_paired,
}
Condition = Callable[[ValueContext], bool]


class ProximityRule(NamedTuple):
    """What has to hold around a value, and what must not."""

    name: str
    needs: tuple[Condition, ...]
    unless: tuple[Condition, ...]


@functools.cache
def _rules() -> Mapping[str, Sequence[ProximityRule]]:
    """Return the rules by the shapes of the values that they are about."""
    found: dict[str, list[ProximityRule]] = {}
    for row in read(_TABLE)["rule"]:
        needs, unless = (tuple(map(_condition, row.get(name, ()))) for name in ("needs", "unless"))
        for shape in row["shapes"].split():
            found.setdefault(shape, []).append(ProximityRule(row["name"], needs, unless))
    return found


def _condition(written: str) -> Condition:
    """Make a condition: marks, or kinds of words with how many words before and after, any of which has to hold."""
    either = [_alternative(each) for each in written.split(" | ")]
    return either[0] if len(either) == 1 else lambda around: any(each(around) for each in either)


def _alternative(written: str) -> Condition:
    if written in _NAMED_CONDITIONS:
        return _NAMED_CONDITIONS[written]
    *kinds, before, after = written.split()
    bits, back, on = _bits(" ".join(kinds)), -int(before), int(after)
    return lambda around: around.near(bits, back, on)


# The values of a note.

_SEED_WORD = lazy_regex(r"[^\W\d_]{3,10}")
_PIECE, _FEW, _TURN = lazy_regex(r"\d{1,2}"), lazy_regex(r"\d{1,2}[#*]?"), lazy_regex(r"\d{1,3}")
_DIGITS, _HOUR = lazy_regex(r"\+?\d[\d/–-]*"), lazy_regex(r"(?:[01]\d|2[0-4])(?:[03]0|[14]5)")


def _candidate_values(line: Sequence[WordSpan]) -> Iterator[CandidateValue]:
    of_wallet = any(word.kinds & _bits("seed") for word in line)
    first = 0
    while first < len(line):
        last = first
        shape = None
        if (end := _dial_combination_end(line, first)) is not None:
            last, shape = end, "turned"
        elif _PIECE.fullmatch(line[first].text):
            text = line[first].text
            while last + 1 < len(line) and not line[last].after:
                dash = line[last + 1].text in {"-", "–"} and last + 2 < len(line)
                if not _FEW.fullmatch(line[last + 1 + dash].text):
                    break
                last += 1 + dash
                text += ("-" if dash else " ") + line[last].text
            shape = shape_of(text)
        elif of_wallet and (end := _seed_phrase_end(line, first)) is not None:
            last, shape = end, "words"
        elif line[first].kinds & _bits("digit"):
            while last + 1 < len(line) and line[last + 1].kinds & _bits("digit") and line[last].after in {"", ","}:
                last += 1
            said = tuple(word.lower for word in line[first : last + 1])
            shape = "spoken" if 4 <= len(said) <= 8 and said[:4] != _SPOKEN else None
        elif not _is_part(line, first):
            shape = shape_of(line[first].text)
        if shape is not None:
            yield CandidateValue(first, last, shape)
        first = last + 1


def _dial_combination_end(line: Sequence[WordSpan], first: int) -> int | None:
    """Return the place of the last of three numbers or more with a direction each; None without them."""
    if not (line[first].kinds & _bits("turn") or _TURN.fullmatch(line[first].text)):
        return None
    last, numbers, turns = first, 0, 0
    for place in range(first, min(first + 20, len(line))):
        number, turn = _TURN.fullmatch(line[place].text) is not None, line[place].kinds & _bits("turn")
        if not (number or turn or line[place].kinds & _bits("link joint")):
            break
        numbers, turns = numbers + number, turns + bool(turn)
        last = place if number or turn else last
    return last if numbers >= 3 and turns >= 2 else None


def _seed_phrase_end(line: Sequence[WordSpan], first: int) -> int | None:
    """Return the place of the last of twelve words, or 15 to 24, that may be those of a wallet; None without them."""

    def fits(word: WordSpan) -> bool:
        glue = word.lower in _listed("glue") or word.kinds & _bits("link")
        return not glue and _SEED_WORD.fullmatch(word.text) is not None

    if first and fits(line[first - 1]) and not line[first - 1].after:
        return None
    last = first
    while last < len(line) and fits(line[last]):
        last += 1
        if line[last - 1].after:
            break
    return last - 1 if last - first in {12, 15, 18, 21, 24} else None


def _is_part(line: Sequence[WordSpan], place: int) -> bool:
    """Whether digits stand right before or after these digits, as the groups of a telephone number do."""
    near = itertools.pairwise(line[max(0, place - 1) : place + 2])
    return any(
        one.after in {"", ")"} and _DIGITS.fullmatch(one.text) is not None and _DIGITS.fullmatch(next_.text) is not None
        for one, next_ in near
    ) or _is_hours(line, place)


def _is_hours(line: Sequence[WordSpan], place: int) -> bool:
    """Whether an hour stands here, and another one after or before a word such as "to"."""
    return any(
        _HOUR.fullmatch(line[one].text) is not None
        and _HOUR.fullmatch(line[one + 2].text) is not None
        and not line[one].after
        and line[one + 1].kinds & _bits("joint link clock")
        for one in (place - 2, place)
        if 0 <= one < len(line) - 2
    )


def _line(text: str, offset: int) -> list[WordSpan]:
    line = [WordSpan(match, offset) for match in itertools.islice(re.finditer(r"\S+", text), _MAX_WORDS)]
    sentence = 0
    for word, kinds in zip(line, lexicon().of([word.lower for word in line]), strict=True):
        # "The room's passcode" counts no rooms.
        word.kinds = kinds & ~_bits("counted") if word.text.endswith(("'s", "’s")) else kinds
        word.sentence = sentence
        sentence += any(mark in ".!?" for mark in word.after)
    return line


def _find_near_words(text: str) -> Iterator[tuple[int, int, str]]:
    offset = 0
    for part in text[:MAX_READ_CHARS].splitlines(keepends=True):
        line = _line(part, offset)
        offset += len(part)
        if not any(word.kinds & _bits(" ".join(_NOUNS)) for word in line):
            continue
        for value in _candidate_values(line):
            around = ValueContext(line, value)
            rule = _matching_rule(around) if around.is_statement else None
            if rule is not None:
                yield line[value.first].start, line[value.last].end, rule


def _matching_rule(around: ValueContext) -> str | None:
    for rule in _rules().get(around.value.shape, ()):
        if all(each(around) for each in rule.needs) and not any(each(around) for each in rule.unless):
            return rule.name
    return None


def find_near_words(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield the spans of values that are told, half-open, and the rule by which each is."""
    if len(text) <= MAX_NOTE_CHARS and not _CODE.search(text, 0, MAX_READ_CHARS):
        yield from itertools.islice(_find_near_words(text), _MAX_VALUES)


def may_be_near_words(text: Text) -> bool:
    """Whether a line holds what every value near words needs: the shape of a value, and a word of what it opens."""
    noun, value = _noun_and_value()
    if not (text.occurs(noun) and text.occurs(value)):
        return False
    return any(occurs(noun, line) and occurs(value, line) for line in text.data.splitlines())


@functools.cache
def _noun_and_value() -> tuple[str, str]:
    """Return a pattern for the words one of which is near every value, and one that occurs wherever a value does."""
    lists = read(_TABLE)["words"]
    spoken = any_literal(set(split_entries(lists["digit"])))
    turn, seed, lock = (any_entry([lists[name]]) for name in ("turn", "seed", "lock"))
    digit = r"\pL-\pL-|[0-9]{4}|[0-9]{3}[#*]|[0-9] ?[-–/ ] ?[0-9]|[0-9]\pL|[\pL._-][0-9]"
    words = rf"(?:{turn})\W+[0-9]|[0-9]\W+(?:{turn})|{spoken}\W+{spoken}|{seed}|(?:{lock})[^\n]*[0-9]{{3}}"
    noun = any_entry(lists[name] for name in _NOUNS)
    return noun, rf"{digit}|\pL[!#$&*?^_@.]\w|\p{{Ll}}\p{{Lu}}|{words}"
