"""Finds credentials in prose: "the wifi password is tulip-garden-44", "gate: tap in 5508".

An English phrase finds a value by a noun for a password, a PIN or a key, by a link such as "is", and by its shape. A
proximity rule finds a value by its shape and by kinds of words near it, in its own sentence or in an adjacent one that
belongs to it. ``rules/credentials_in_prose.toml`` lists the words, in many languages. Questions and sentences about
rules or formats contain no credential. Notes are read up to a maximum length; longer texts and code are not.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from keepward.core.linear_patterns import occurs
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
from keepward.gates.detectors.normalize import Text
from keepward.gates.detectors.rules import expand_lists, literals_of
from keepward.gates.detectors.tables import read, split_entries, words

_TABLE = "credentials_in_prose"
#: Maximum characters of a note, and the number of them that proximity rules read.
MAX_NOTE_CHARS, MAX_READ_CHARS = 16_384, 6_144
#: Maximum number of values in a note and of words in a line for proximity rules.
_MAX_VALUES, _MAX_WORDS = 64, 400
#: Values that phrases check in one text: at least this number, or one for this number of characters. The rest of a text
#: with more values is one finding.
_MIN_PHRASE_VALUES, _CHARS_PER_PHRASE_VALUE = 200, 320
_CODE = lazy_regex(
    r"[{}]|</|::|\(\)|\]\(|```|>>>|;\s*$|==|^\s*(?:use|def|import|package|try|return|from|---)\b|^---$|^#+ ",
    re.MULTILINE,
)
#: Half-open spans of a match by the names of its groups; the empty name is the complete match.
Groups = dict[str, tuple[int, int]]


@functools.cache
def phrase_patterns() -> tuple[str, tuple[tuple[str, str], ...]]:
    """Return a pattern that occurs in every text with a phrase, and (kind, pattern) of each phrase."""
    tables = read(_TABLE)
    found = tuple((row["kind"], expand_lists(row["pattern"], tables)) for row in tables["phrase"])
    return "(?i)" + "|".join(tables["prefilter"]), found


def find_in_prose(text: Text) -> Iterator[Finding]:
    """Yield values that prose presents as a password, PIN, code or key."""
    prefilter, found = phrase_patterns()
    if text.occurs(prefilter):
        budget = iter(range(max(_MIN_PHRASE_VALUES, len(text.text) // _CHARS_PER_PHRASE_VALUE)))
        for kind, pattern in found:
            yield from _by_phrase(kind, pattern, text, budget)
    if may_be_near_words(text):
        for start, end, _ in find_near_words(text.text):
            yield finding_at(text, start, end, "told_secret", "likely")


def _by_phrase(kind: str, pattern: str, text: Text, budget: Iterator[int]) -> Iterator[Finding]:
    content = text.text
    for groups in text.groups(pattern):
        start, end = groups["v"]
        if next(budget, None) is None:
            yield finding_at(text, start, len(content), "told_secret", "likely")
            return
        end = start + len(content[start:end].rstrip(".,;:)]}'’”…*"))
        if content[start:end].endswith(("!", "?")) and not count_digits(content[start:end]):
            end -= 1
        if content.startswith(";", end):
            end = start + len(_HTML_ENTITY.sub("", content[start:end]))
        if end - start >= 3 and _is_secret_value(content, start, end, kind, groups):
            yield finding_at(text, start, end, "told_secret", "likely")


_YEAR = lazy_regex("(?:19|20)[0-9]{2}")
#: An HTML entity at the end of a value, without its semicolon.
_HTML_ENTITY = lazy_regex(r"\.?&[a-z]{2,6}\Z")


def _listed(name: str) -> frozenset[str]:
    return words(_TABLE, "phrase_words", name)


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
    if named.startswith("pin") and _speaks_of_circuits(text[max(0, start - 80) : end + 80]):
        return False
    if noun == "n" and is_number:
        # Dates, times and versions are no code.
        odd = not value.isdigit() and is_everyday_token(value) and "-" not in value.strip("-")
        year = kind == "next" and _YEAR.fullmatch(value)
        fewest = 3 if named.startswith(("cv", "com")) else 4
        return fewest <= count_digits(value) <= 12 and not (is_counted or odd or year)
    if named.startswith("com") or (named.startswith("pin") and count_digits(value) * 2 < len(value)):
        return False
    if noun == "k":
        first, last = groups["k"]
        named_key = text[first:last].lower() == "key"
        if named_key and (":" in value or last_word(text[max(0, first - 24) : first]) in nonsecret_key_qualifiers()):
            return False
        if kind == "next":
            return not is_everyday_token(value) and high_entropy(value)
        random = high_entropy(value, min_length=12) or (
            looks_like_password(value) and len(value) >= 6 and count_digits(value) > 0
        )
        return random and not is_everyday_token(value) and not is_joined_words(value)
    if value.isdigit():
        return len(value) >= (5 if kind == "next" else 4) and not is_counted
    if looks_like_password(value):
        return not is_counted or not value[0].isdigit()
    if noun == "p" and (value.lower() in _listed("common") or passphrase(value)):
        return True
    return noun == "p" and kind != "next" and plain_word(value)


def plain_word(value: str) -> bool:
    """Whether a value is a word that can be a password: no description and no example."""
    lowered = value.lower()
    if lowered in _listed("not_values") or is_placeholder(value) or is_everyday_token(value) or len(value) < 4:
        return False
    describes = lowered.endswith(tuple(_listed("not_endings"))) and lowered not in _listed("nouns")
    return value.replace("-", "").replace("'", "").isalpha() and not describes


# --- values near words


class Lexicon:
    """The kinds of words as bits, by lists of words in any language."""

    def __init__(self, lists: Mapping[str, str]) -> None:
        self.kinds = {name: 1 << index for index, name in enumerate(lists)}
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
        self._kinds_of = functools.lru_cache(4_096)(self._find_kinds)

    def _find_kinds(self, word: str) -> int:
        found = self._words.get(word, 0)
        if "_" in word:  # the name of a variable, see ``_find_assigned`` in ``secrets``
            return found
        for length in self._lengths[0]:
            found |= self._begins.get(word[:length], 0)
        for length in self._lengths[1]:
            found |= self._ends.get(word[-length:], 0) if length < len(word) else 0
        return found

    def of(self, line: Sequence[str]) -> list[int]:
        """Return the kinds of each word of a line in lower case."""
        found = [self._kinds_of(word) for word in line]
        for index, word in enumerate(line):
            for more, bit in self._rows.get(word, ()):
                if list(line[index + 1 : index + 1 + len(more)]) == more:
                    for at in range(index, index + 1 + len(more)):
                        found[at] |= bit
        return found


def any_entry(lists: Iterable[str]) -> str:
    """Return a pattern that occurs in every text with an entry of a list; short entries match complete words only."""
    literals = {literal for text in lists for literal in literals_of(split_entries(text))}
    short = {literal for literal in literals if len(literal) < 4}
    return rf"{any_literal(literals - short)}|(?i:\b(?:{'|'.join(sorted(short) or ['-'])})\b)"


#: Every credential is near a word of one of these kinds.
_NOUNS = (
    *("password", "pin", "code", "key", "seed", "question"),
    *("device", "lock", "safe", "phone", "premises", "account", "file"),
)
#: Kinds of words directly before a value that exclude it, by its shape.
_DIGITAL = dict.fromkeys(("digits", "coded", "keyed"), "clock counted numbered")
_NEVER_AFTER = _DIGITAL | {
    "dialled": "clock counted numbered dated",
    "spoken": "counted",
    "turned": "counted",
    "words": "",
}
#: Punctuation before and after a word.
_OPENING, _CLOSING = "\"'`“”‘’„«»([{*", "\"'`“”‘’„«»)]}*,;:.!?…"
_ELIDED = lazy_regex("^(?:[ld]|dell|all|nell|qu|dall|sull)'|(?<!^it)(?<!^that)'s$")
_USER = lazy_regex("[a-z0-9._-]{3,}")
_SPOKEN = ("one", "two", "three", "four")


@functools.lru_cache(4_096)
def _in_lists(word: str) -> str:
    """Return a word in the form of the lists: in lower case, without accents, article and genitive."""
    return _ELIDED.sub("", (word if word.isascii() else Text(word).normal.text).lower().replace("’", "'"))


class WordSpan:
    """A word of a line without punctuation, and its span in the text."""

    __slots__ = ("after", "before", "end", "kinds", "lower", "sentence", "start", "text")

    def __init__(self, match: re.Match[str], offset: int) -> None:
        raw = match[0]
        self.text = raw.lstrip(_OPENING)
        self.before = raw[: len(raw) - len(self.text)]
        self.start = offset + match.start() + len(self.before)
        word = self.text.rstrip(_CLOSING)
        self.after = self.text[len(word) :]
        # A sign after a digit usually belongs to a password, not to the sentence.
        self.text = word + self.after[:1] * (self.after[:1] in {"!", "*"} and word[-1:].isdigit())
        self.end = self.start + len(self.text)
        self.lower = word.lower() if word.isalpha() and word.isascii() else _in_lists(word)
        self.kinds = self.sentence = 0


class CandidateValue(NamedTuple):
    """A value in a line: the indices of its first and last word, and its shape."""

    first: int
    last: int
    shape: str


@functools.cache
def lexicon() -> Lexicon:
    """Return the lexicon of the proximity rules."""
    return Lexicon(read(_TABLE)["words"])


@functools.cache
def _bits(kinds: str) -> int:
    return sum(lexicon().kinds[name] for name in kinds.split())


@functools.cache
def _shapes() -> tuple[tuple[str, re.Pattern[str]], ...]:
    return tuple((name, lazy_regex(pattern)) for name, pattern in read(_TABLE)["shapes"].items())


def _speaks_of_circuits(text: str) -> bool:
    return any(kinds & _bits("circuit") for kinds in lexicon().of(re.findall(r"\w+", text.lower())))


# --- the shape of a value

_NOT_A_WORD = lazy_regex(r"[0-9!#$&*?^_@.]|[a-z][A-Z]|[A-Z]-[A-Z]-[A-Z]")
_ODD = frozenset('()[]{}<>/\\|"`,;:…')
_SIGNS, _TYPED = frozenset("!#$&*?^_@"), frozenset("!#$&^")
_DECIMAL = lazy_regex(r"\d+[.,]|.*\d\.\d")
_FILE = lazy_regex(r"\.(?:[a-zA-Z]|[a-z]{2,3}|[a-z]{2,3}\d\d?|conf|html|java|json|jpeg|toml|yaml)$")
_NUMBERED = lazy_regex(r"[^\W\d_]{2,}(?:[-._][^\W\d_]{2,})*[-._]\d{1,4}|[^\W\d_]{4,}\d")
_DOTTED = lazy_regex(r"[^\W\d_]{3,}(?:\.[^\W\d_]{2,})+")


def shape_of(value: str) -> str | None:
    """Return the name of a value's shape, None if no secret has it."""
    if not 3 <= len(value) <= 80 or not _NOT_A_WORD.search(value) or is_placeholder(value):
        return None
    for name, pattern in _shapes():
        if pattern.fullmatch(value):
            return name
    if len(value) >= 16 and high_entropy(value) and count_digits(value) >= 3 and _ODD.isdisjoint(value):
        return "random"
    return _lettered(value)


def _lettered(value: str) -> str | None:
    """Return the name of the shape of a value with letters, or None."""
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


# --- the context of a value


class ValueContext:
    """The words and the punctuation around one value."""

    def __init__(self, line: Sequence[WordSpan], value: CandidateValue) -> None:
        self.line, self.value = line, value
        first, last, _ = value
        self.indices = [index for index in _sentence(line, first, last) if not first <= index <= last]
        self.kinds = functools.reduce(int.__or__, (line[index].kinds for index in self.indices), 0)
        self.before = line[first - 1] if first else None
        self.next = line[last + 1] if last + 1 < len(line) else None

    @property
    def is_statement(self) -> bool:
        """Whether the sentence is no question, not about rules or formats, and does not count or number the value."""
        asks = any("?" in self.line[index].after for index in self.indices if index > self.value.last)
        asks = asks or self.line[self.value.last].after.startswith("?")
        stops = self.kinds & _bits("stop circuit")
        never = _bits(_NEVER_AFTER.get(self.value.shape, "article counted numbered"))
        counts = self.before is not None and self.before.kinds & never
        return not (asks or stops or counts or "[" in self.line[self.value.first].before)

    def near(self, kinds: int, before: int, after: int) -> bool:
        """Whether a word of one of the kinds is at most this many words before or after the value."""
        if not self.kinds & kinds:
            return False
        first, last, _ = self.value
        return any(
            self.line[index].kinds & kinds
            for index in self.indices
            if first - before <= index < first or last < index <= last + after
        )

    def is_announced(self) -> bool:
        """Whether a colon or a sign such as an arrow is directly before it."""
        before = self.before
        signs = {"-", "=", "->", "=>", "→", "–", "//", "/"}
        return before is not None and (":" in before.after or "=" in before.after or before.text in signs)

    def ends(self) -> bool:
        """Whether its clause ends with it."""
        after = self.line[self.value.last].after
        return (
            self.next is None
            or any(char in ",.;:!)" for char in after)
            or self.next.text in {"", "-", "–", "—", "//", "/"}
        )

    def may_end_clause(self) -> bool:
        """Whether its clause ends with it, or continues with a time or location."""
        return self.ends() or (self.next is not None and bool(self.next.kinds & _bits("goes_on")))

    def is_paired(self) -> bool:
        """Whether a user name or an e-mail address is joined to it: ``ana@example.org / ...``."""
        index, joints = self.value.first - 1, 0
        while index >= 0 and self.line[index].kinds & _bits("joint sure_joint"):
            joints |= self.line[index].kinds
            index -= 1
        if index < 0 or not (joints or self.line[index].after == ","):
            return False
        user = self.line[index]
        if "@" in user.text or user.kinds & _bits("user"):
            return True
        sure = joints & _bits("sure_joint") or re.search(r"[a-z][._]?\d|[a-z][._][a-z]", user.text)
        return bool(sure) and _USER.fullmatch(user.text) is not None


def _sentence(line: Sequence[WordSpan], first: int, last: int) -> list[int]:
    """Return the indices of the words in the sentence of a value, and in adjacent sentences that belong to it."""

    def of(sentence: int, begin: int, end: int) -> list[int]:
        return [index for index in range(max(0, begin), min(len(line), end)) if line[index].sentence == sentence]

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
    """The required and the excluding conditions around a value."""

    name: str
    needs: tuple[Condition, ...]
    unless: tuple[Condition, ...]

    def applies(self, around: ValueContext) -> bool:
        """Whether every required condition holds, and no excluding one."""
        return all(each(around) for each in self.needs) and not any(each(around) for each in self.unless)


@functools.cache
def _rules() -> Mapping[str, Sequence[ProximityRule]]:
    """Return the rules by shape."""
    found: dict[str, list[ProximityRule]] = {}
    for row in read(_TABLE)["rule"]:
        needs, unless = (tuple(map(_condition, row.get(name, ()))) for name in ("needs", "unless"))
        for shape in row["shapes"].split():
            found.setdefault(shape, []).append(ProximityRule(row["name"], needs, unless))
    return found


def _condition(written: str) -> Condition:
    """Return a condition from its text; one of its alternatives must hold."""
    either = [_alternative(each) for each in written.split(" | ")]
    return either[0] if len(either) == 1 else lambda around: any(each(around) for each in either)


def _alternative(written: str) -> Condition:
    if written in _NAMED_CONDITIONS:
        return _NAMED_CONDITIONS[written]
    *kinds, before, after = written.split()
    bits, back, on = _bits(" ".join(kinds)), -int(before), int(after)
    return lambda around: around.near(bits, back, on)


# --- the values of a note

_SEED_WORD = lazy_regex(r"[^\W\d_]{3,10}")
_PIECE, _FEW, _NUMBER = lazy_regex(r"\d{1,2}"), lazy_regex(r"\d{1,2}[#*]?"), lazy_regex(r"\d{1,3}")
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
    """Return the index of the last word of a dial combination, such as "left 17, right 3, left 88", or None."""
    if not (line[first].kinds & _bits("direction") or _NUMBER.fullmatch(line[first].text)):
        return None
    last, numbers, directions = first, 0, 0
    for index in range(first, min(first + 20, len(line))):
        number, direction = _NUMBER.fullmatch(line[index].text) is not None, line[index].kinds & _bits("direction")
        if not (number or direction or line[index].kinds & _bits("link joint")):
            break
        numbers, directions = numbers + number, directions + bool(direction)
        last = index if number or direction else last
    return last if numbers >= 3 and directions >= 2 else None


def _seed_phrase_end(line: Sequence[WordSpan], first: int) -> int | None:
    """Return the index of the last of 12, 15, 18, 21 or 24 words that may be the seed phrase of a wallet, or None."""

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


def _is_part(line: Sequence[WordSpan], index: int) -> bool:
    """Whether digits are directly before or after these digits, as in a telephone number."""
    near = itertools.pairwise(line[max(0, index - 1) : index + 2])
    return any(
        one.after in {"", ")"} and _DIGITS.fullmatch(one.text) is not None and _DIGITS.fullmatch(next_.text) is not None
        for one, next_ in near
    ) or _is_hours(line, index)


def _is_hours(line: Sequence[WordSpan], index: int) -> bool:
    """Whether this is an hour of a range, such as "1800 to 2000"."""
    return any(
        _HOUR.fullmatch(line[one].text) is not None
        and _HOUR.fullmatch(line[one + 2].text) is not None
        and not line[one].after
        and line[one + 1].kinds & _bits("joint link clock")
        for one in (index - 2, index)
        if 0 <= one < len(line) - 2
    )


def _line(text: str, offset: int) -> list[WordSpan]:
    line = [WordSpan(match, offset) for match in itertools.islice(re.finditer(r"\S+", text), _MAX_WORDS)]
    sentence = 0
    for word, kinds in zip(line, lexicon().of([word.lower for word in line]), strict=True):
        # "The room's passcode" does not number the room.
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
            rules = _rules().get(value.shape, ()) if around.is_statement else ()
            rule = next((rule for rule in rules if rule.applies(around)), None)
            if rule is not None:
                yield line[value.first].start, line[value.last].end, rule.name


def find_near_words(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield the half-open span of each value, and the name of its rule."""
    if len(text) <= MAX_NOTE_CHARS and not _CODE.search(text, 0, MAX_READ_CHARS):
        yield from itertools.islice(_find_near_words(text), _MAX_VALUES)


def may_be_near_words(text: Text) -> bool:
    """Whether a line contains the shape of a value and a word of ``_NOUNS``, which every match needs."""
    noun, value = _noun_and_value()
    if not (text.occurs(noun) and text.occurs(value)):
        return False
    return any(occurs(noun, line) and occurs(value, line) for line in text.data.splitlines())


@functools.cache
def _noun_and_value() -> tuple[str, str]:
    """Return a pattern for the words of ``_NOUNS``, and one that occurs in every text with a value."""
    lists = read(_TABLE)["words"]
    spoken = any_literal(set(split_entries(lists["digit"])))
    direction, seed, lock = (any_entry([lists[name]]) for name in ("direction", "seed", "lock"))
    digit = r"\pL-\pL-|[0-9]{4}|[0-9]{3}[#*]|[0-9] ?[-–/ ] ?[0-9]|[0-9]\pL|[\pL._-][0-9]"
    words = rf"(?:{direction})\W+[0-9]|[0-9]\W+(?:{direction})|{spoken}\W+{spoken}|{seed}|(?:{lock})[^\n]*[0-9]{{3}}"
    noun = any_entry(lists[name] for name in _NOUNS)
    return noun, rf"{digit}|\pL[!#$&*?^_@.]\w|\p{{Ll}}\p{{Lu}}|{words}"
