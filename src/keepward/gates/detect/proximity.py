"""Told secrets without a phrase for them: a value of the shape of a secret, in the proximity of words about one.

Invariants
(1) A value has a shape by itself: letters mixed with digits and signs, digits as one types them, numbers as spoken.
(2) A rule of ``rules/proximity.toml`` says which kinds of words stand how near a value of which shape, and which do
    not. A word has kinds by the lists in the same file, of any language that puts blanks between words.
(3) What is near stands in the sentence of the value, in the one before where the value's own goes on with it, and in
    the one after where that says what it was. A sentence that asks, or speaks of rules and formats, tells nothing.
(4) A note is read, up to so many characters and values; longer texts and code are left to the other rules.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from keepward.gates.detect.checks import digits, high_entropy, ordinary, placeholder, strong
from keepward.gates.detect.engine import any_literal
from keepward.gates.detect.sentences import CODE, LONGEST, LONGEST_NOTE, Lexicon, any_entry
from keepward.gates.detect.tables import listed, read, words
from keepward.gates.detect.text import Text
from keepward.model.patterns import regex

#: Values of a note that are looked at, and words of a line (4).
_MOST, _MOST_WORDS = 64, 400
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
_QUOTES, _UNQUOTES = frozenset("\"'`“‘„«"), frozenset("\"'`”“’»")
_ELIDED = regex("^(?:[ld]|dell|all|nell|qu|dall|sull)'|(?<!^it)(?<!^that)'s$")
_USER = regex("[a-z0-9._-]{3,}")
_SPOKEN = ("one", "two", "three", "four")


@functools.lru_cache(4_096)
def _in_lists(word: str) -> str:
    """Return a word as lists have it: in lower case, without accents, an article or a genitive."""
    return _ELIDED.sub("", (word if word.isascii() else Text(word).normal.text).lower().replace("’", "'"))


class Word:
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


class Value(NamedTuple):
    """A value in its line: the places of its first and last word, and its shape."""

    first: int
    last: int
    shape: str


@functools.cache
def lexicon() -> Lexicon:
    """Return the words that rules of proximity speak of."""
    return Lexicon(read("proximity")["words"])


@functools.cache
def _bits(kinds: str) -> int:
    return sum(lexicon().kinds[name] for name in kinds.split())


@functools.cache
def _shapes() -> tuple[tuple[str, re.Pattern[str]], ...]:
    return tuple((name, regex(pattern)) for name, pattern in read("proximity")["shapes"].items())


def is_counted(text: str, start: int) -> bool:
    """Whether the word right before a place says what a number there counts: a page, an hour, a thing with a number."""
    before = text[max(0, start - 24) : start].split()
    return bool(before) and speaks_of("clock counted numbered", before[-1])


def speaks_of(kind: str, text: str) -> bool:
    """Whether a word of a kind stands in a text."""
    return any(kinds & _bits(kind) for kinds in lexicon().of(re.findall(r"\w+", text.lower())))


# The shape of a value (1).

_TELLING = regex(r"[0-9!#$&*?^_@.]|[a-z][A-Z]|[A-Z]-[A-Z]-[A-Z]")
_ODD = frozenset('()[]{}<>/\\|"`,;:…')
_SIGNS, _TYPED = frozenset("!#$&*?^_@"), frozenset("!#$&^")
_DECIMAL = regex(r"\d+[.,]|.*\d\.\d")
_FILE = regex(r"\.(?:[a-zA-Z]|[a-z]{2,3}|[a-z]{2,3}\d\d?|conf|html|java|json|jpeg|toml|yaml)$")
#: Names of code, files and issues, and what holds the name of an algorithm.
_NAME = regex(
    r"[\w.]+(?:_\w+){2,}|[a-z]{2,}(?:_[a-z]+\d?)+|[a-z]+\d+_\w+|[A-Z0-9]+(?:_[A-Za-z0-9]+)+"
    r"|\w*(?:_[Tt]ype|_[Ii][Dd]|\d_\d)\w*|.*#\d{3,}|[A-Z]+#.*|.*\*-.*|.*-[$*].*|.*[.]{2}.*"
    r"|.*\b(?:sha|aes|tls|ssl|utf)\b.*"
)
_NUMBERED = regex(r"[^\W\d_]{2,}(?:[-._][^\W\d_]{2,})*[-._]\d{1,4}|[^\W\d_]{4,}\d")
_DOTTED = regex(r"[^\W\d_]{3,}(?:\.[^\W\d_]{2,})+")
_ENDED = regex(r"[^\W\d_]{4,}\d{2,5}")
_CAMEL = regex(r"[A-Z]?[a-z]{2,}(?:[A-Z][a-z]+){2,}")
_TYPE = regex(
    "Array|Buffer|List|Object|Type|Model|Bytes|String|Secret|Pass|Text|Data|Error|Key|Id|App|Script|Book|Hub|Lab|Cloud|Net"
)
_COUNTED = regex(r"\d(?![a-zA-Z]+.*\d|[a-z]{4,})")


def shape_of(value: str) -> str | None:
    """Name the shape of a value; None where it is that of no secret."""
    if not 3 <= len(value) <= 80 or not _TELLING.search(value) or placeholder(value):
        return None
    for name, pattern in _shapes():
        if pattern.fullmatch(value):
            return name
    if len(value) >= 16 and high_entropy(value) and digits(value) >= 3 and _ODD.isdisjoint(value):
        return "random"
    return _lettered(value)


def _lettered(value: str) -> str | None:
    """Name the shape of a value with letters."""
    signs = _SIGNS.intersection(value[1:-1])
    odd = not _ODD.isdisjoint(value) or _DECIMAL.match(value) or _FILE.search(value) or _NAME.fullmatch(value)
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
    if digits(value) and (signs or value[-1] in "!#$*?"):
        return "odd" if len(value) >= 7 and not _TYPED.isdisjoint(value) else "mixed"
    if _DOTTED.fullmatch(value):
        return "dotted" if any(map(str.isupper, value[1:])) or len(parts) > 2 else None
    if ordinary(value) or not strong(value):
        return None
    if signs:
        return "signed" if len(value) >= 8 and len(parts) in {2, 3} and min(map(len, parts)) >= 3 else None
    if digits(value) == 0:
        return "camel" if len(value) >= 8 and _CAMEL.fullmatch(value) and not _TYPE.search(value) else None
    if _COUNTED.match(value):
        return None
    if _ENDED.fullmatch(value):
        return "ended"
    if value.isalnum():
        return "leet" if len(value) >= (6 if any(map(str.isupper, value)) else 8) else None
    scattered = digits(value) > 1 or any(map(str.isupper, value))
    return "joined" if scattered and len(value) >= 9 and digits(value) * 2 < len(value) else None


# What stands around it (2, 3).


class Around:
    """What stands around one value: the words near it, and the marks by which it is told."""

    def __init__(self, line: Sequence[Word], value: Value) -> None:
        self.line, self.value = line, value
        first, last, _ = value
        self.places = [place for place in _sentence(line, first, last) if not first <= place <= last]
        self.kinds = functools.reduce(int.__or__, (line[place].kinds for place in self.places), 0)
        self.before = line[first - 1] if first else None
        self.next = line[last + 1] if last + 1 < len(line) else None

    @property
    def tells(self) -> bool:
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

    def is_quoted(self) -> bool:
        """Whether it begins with a quotation mark."""
        apart = self.before.before if self.before is not None and not self.before.text else ""
        return not _QUOTES.isdisjoint(self.line[self.value.first].before + apart)

    def is_announced(self) -> bool:
        """Whether a colon or a sign such as an arrow stands right before it."""
        before = self.before
        signs = {"-", "=", "->", "=>", "→", "–", "//", "/"}
        return before is not None and (":" in before.after or "=" in before.after or before.text in signs)

    def is_joined(self) -> bool:
        """Whether it is quoted, announced or linked: "is", "with", "type"."""
        linked = self.before is not None and bool(self.before.kinds & _bits("link unlock"))
        return linked or self.is_announced() or self.is_quoted()

    def is_first(self) -> bool:
        """Whether the line begins with it."""
        return self.before is None

    def ends(self) -> bool:
        """Whether its clause ends with it."""
        marks = self.line[self.value.last].after
        return (
            self.next is None
            or any(mark in ",.;:!)" for mark in marks)
            or self.next.text in {"", "-", "–", "—", "//", "/"}
        )

    def goes_on(self) -> bool:
        """Whether its clause ends with it, or goes on to say when or where."""
        return self.ends() or (self.next is not None and bool(self.next.kinds & _bits("goes_on")))

    def is_swapped(self) -> bool:
        """Whether a number of the same digits in another order stands near: a slip, and what is right."""
        own = self.line[self.value.first].text
        near = (self.line[place].text for place in self.places if abs(place - self.value.first) < 8)
        return not _HOUR.fullmatch(own) and any(other != own and sorted(other) == sorted(own) for other in near)

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


def _sentence(line: Sequence[Word], first: int, last: int) -> list[int]:
    """Return the places of the sentence around a value, and of those that belong to it (3)."""

    def of(sentence: int, begin: int, end: int) -> list[int]:
        return [place for place in range(max(0, begin), min(len(line), end)) if line[place].sentence == sentence]

    own = of(line[first].sentence, first - 30, last + 20)
    begin, end = own[0], own[-1] + 1
    if begin and (first == begin or (first - begin <= 4 and line[begin].kinds & _bits("continues"))):
        own = of(line[begin - 1].sentence, begin - 20, begin) + own
    if end < len(line) and end - last <= 3 and line[end].kinds & _bits("that"):
        own += of(line[end].sentence, end, end + 12)
    return own


_MARKS: dict[str, Callable[[Around], bool]] = {
    "quoted": Around.is_quoted,
    "announced": Around.is_announced,
    "joined": Around.is_joined,
    "first": Around.is_first,
    "ends": Around.ends,
    "goes on": Around.goes_on,
    "paired": Around.is_paired,
    "swapped": Around.is_swapped,
}
Condition = Callable[[Around], bool]


class Rule(NamedTuple):
    """What has to hold around a value, and what must not (2)."""

    name: str
    needs: tuple[Condition, ...]
    unless: tuple[Condition, ...]


@functools.cache
def _rules() -> Mapping[str, Sequence[Rule]]:
    """Return the rules by the shapes of the values that they are about."""
    found: dict[str, list[Rule]] = {}
    for row in read("proximity")["rule"]:
        needs, unless = (tuple(map(_condition, row.get(name, ()))) for name in ("needs", "unless"))
        for shape in row["shapes"].split():
            found.setdefault(shape, []).append(Rule(row["name"], needs, unless))
    return found


def _condition(written: str) -> Condition:
    """Make a condition: marks, or kinds of words with how many words before and after, any of which has to hold."""
    either = [_alternative(each) for each in written.split(" | ")]
    return either[0] if len(either) == 1 else lambda around: any(each(around) for each in either)


def _alternative(written: str) -> Condition:
    if written in _MARKS:
        return _MARKS[written]
    *kinds, before, after = written.split()
    bits, back, on = _bits(" ".join(kinds)), -int(before), int(after)
    return lambda around: around.near(bits, back, on)


# The values of a note.

_OF_WALLET = regex(r"[^\W\d_]{3,10}")
_PIECE, _FEW, _GROUP, _TURN = regex(r"\d{1,2}"), regex(r"\d{1,2}[#*]?"), regex(r"\d{3,4}"), regex(r"\d{1,3}")
_DIGITS, _HOUR = regex(r"\+?\d[\d/–-]*"), regex(r"(?:[01]\d|2[0-4])(?:[03]0|[14]5)")


def _values(line: Sequence[Word]) -> Iterator[Value]:
    of_wallet = any(word.kinds & _bits("seed") for word in line)
    first = 0
    while first < len(line):
        last = first
        shape = None
        if (end := _quoted(line, first)) is not None:
            last, shape = end, "phrase" if end > first else shape_of(line[first].text) or "quoted"
        elif (end := _turned(line, first)) is not None:
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
        elif _GROUP.fullmatch(line[first].text) and _goes_on(line, first, len(line[first].text)):
            last, shape = first + 1, "grouped"
        elif of_wallet and (end := _row(line, first)) is not None:
            last, shape = end, "words"
        elif line[first].kinds & _bits("digit"):
            while last + 1 < len(line) and line[last + 1].kinds & _bits("digit") and line[last].after in {"", ","}:
                last += 1
            said = tuple(word.lower for word in line[first : last + 1])
            shape = "spoken" if 4 <= len(said) <= 8 and said[:4] != _SPOKEN else None
        elif not _is_part(line, first):
            shape = shape_of(line[first].text)
        if shape is not None:
            yield Value(first, last, shape)
        first = last + 1


def _turned(line: Sequence[Word], first: int) -> int | None:
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


def _row(line: Sequence[Word], first: int) -> int | None:
    """Return the place of the last of twelve words, or 15 to 24, that may be those of a wallet; None without them."""

    def fits(word: Word) -> bool:
        glue = word.lower in words("told", "words", "glue") or word.kinds & _bits("link")
        return not glue and _OF_WALLET.fullmatch(word.text) is not None

    if first and fits(line[first - 1]) and not line[first - 1].after:
        return None
    last = first
    while last < len(line) and fits(line[last]):
        last += 1
        if line[last - 1].after:
            break
    return last - 1 if last - first in {12, 15, 18, 21, 24} else None


def _quoted(line: Sequence[Word], first: int) -> int | None:
    """Return the place of the last of up to nine words in quotation marks; None without them."""
    apart = line[first - 1].before if first and not line[first - 1].text else ""
    if _QUOTES.isdisjoint(line[first].before + apart) or len(line[first].text) < 3:
        return None
    for last in range(first, min(first + 9, len(line))):
        behind = line[last + 1].after if last + 1 < len(line) and not line[last + 1].text else ""
        if not _UNQUOTES.isdisjoint(line[last].after + behind):
            return last
    return None


def _is_part(line: Sequence[Word], place: int) -> bool:
    """Whether digits stand right before or after these digits, as the groups of a telephone number do."""
    near = itertools.pairwise(line[max(0, place - 1) : place + 2])
    return any(
        one.after in {"", ")"} and _DIGITS.fullmatch(one.text) is not None and _DIGITS.fullmatch(next_.text) is not None
        for one, next_ in near
    ) or _is_hours(line, place)


def _is_hours(line: Sequence[Word], place: int) -> bool:
    """Whether an hour stands here, and another one after or before a word such as "to"."""
    return any(
        _HOUR.fullmatch(line[one].text) is not None
        and _HOUR.fullmatch(line[one + 2].text) is not None
        and not line[one].after
        and line[one + 1].kinds & _bits("joint link clock")
        for one in (place - 2, place)
        if 0 <= one < len(line) - 2
    )


def _goes_on(line: Sequence[Word], place: int, length: int) -> bool:
    """Whether as many digits as here stand in the next word, and not in the one after."""
    if line[place].after or place + 1 >= len(line):
        return False
    groups = [len(word.text) == length and word.text.isdigit() for word in line[place + 1 : place + 3]]
    return groups in ([True], [True, False])


def _line(text: str, offset: int) -> list[Word]:
    line = [Word(match, offset) for match in itertools.islice(re.finditer(r"\S+", text), _MOST_WORDS)]
    sentence = 0
    for word, kinds in zip(line, lexicon().of([word.lower for word in line]), strict=True):
        # "The room's passcode" counts no rooms.
        word.kinds = kinds & ~_bits("counted") if word.text.endswith(("'s", "’s")) else kinds
        word.sentence = sentence
        sentence += any(mark in ".!?" for mark in word.after)
    return line


def _found(text: str) -> Iterator[tuple[int, int, str]]:
    offset = 0
    for part in text[:LONGEST].splitlines(keepends=True):
        line = _line(part, offset)
        offset += len(part)
        if not any(word.kinds & _bits(" ".join(_NOUNS)) for word in line):
            continue
        for value in _values(line):
            around = Around(line, value)
            rule = _holding(around) if around.tells else None
            if rule is not None:
                yield line[value.first].start, line[value.last].end, rule


def _holding(around: Around) -> str | None:
    for rule in _rules().get(around.value.shape, ()):
        if all(each(around) for each in rule.needs) and not any(each(around) for each in rule.unless):
            return rule.name
    return None


def find(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield the spans of values that are told, half-open, and the rule by which each is."""
    if len(text) <= LONGEST_NOTE and not CODE.search(text, 0, LONGEST):
        yield from itertools.islice(_found(text), _MOST)


@functools.cache
def telling() -> str:
    """Return a pattern that occurs in every text in which a value is told."""
    lists = read("proximity")["words"]
    noun, seed = any_entry(lists[name] for name in _NOUNS), any_entry([lists["seed"]])
    spoken = any_literal(set(listed(lists["digit"])))
    digit = r"[\"“„«]\pL|\pL-\pL-|[0-9]{4}|[0-9]{3}[#*]|[0-9] ?[-–/ ] ?[0-9]|[0-9]\pL|[\pL._-][0-9]"
    lock, turn = any_entry([lists["lock"]]), any_entry([lists["turn"]])
    mark = rf"(?:{digit}|(?:{turn})\W+[0-9]|[0-9]\W+(?:{turn})|\pL[!#$&*?^_@.]\w|\p{{Ll}}\p{{Lu}}|{spoken}\W+{spoken})"
    return rf"(?:{noun})[^\n]*{mark}|{mark}[^\n]*(?:{noun})|(?:{lock})[^\n]*[0-9]{{3}}|{seed}"
