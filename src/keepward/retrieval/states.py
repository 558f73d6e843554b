"""Tell states that exclude each other: "the boiler is broken" and "the boiler runs again".

Each state has two sides, which are data (`states.toml`). In one of them is a thing that a clause speaks of, or the
person who is its subject.

Invariants
(1) A pure function of the text and its speaker; what is returned of a text is hashes of its words.
(2) Two clauses exclude each other only where they speak of the same thing or person, and neither names another one.
(3) What is wished, asked or supposed is no state.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, reduce
from operator import or_
from typing import Any, Final, NamedTuple

from keepward.model.patterns import regex, table
from keepward.retrieval.analyze import MONTHS, NUMBERS, WEEKDAYS, analyse, term_hash, word_hashes

Match = re.Match[str]

_LISTS: Final[dict[str, Any]] = table(__package__, "states.toml")
#: What denies nothing, such as "can't wait".
IDIOMS: Final = regex(rf"\b(?:{_LISTS.pop('idioms')})\b", re.IGNORECASE)
_TOKEN: Final = regex(r"\w+(?:[-.']\w+)*")
_DAYS: Final = regex(
    rf"\b(?:(?:{'|'.join(WEEKDAYS)}|weekend|weekday|morning|evening|night)s|winter|spring|summer|autumn)\b",
    re.IGNORECASE,
)
_FIRST: Final = frozenset(("i", "i'm", "i've", "we", "we're", "we've", "me", "us"))
_OTHERS: Final = frozenset(("you", "you're", "he", "he's", "she", "she's", "they", "they're", "your"))
_INDEFINITE: Final = frozenset(("a", "an", "some", "any", "another", "more", "every", "each", "two", "three"))
#: What may stand between "of" and what tells which one it is.
_OF_WHICH: Final = frozenset(("the", "my", "our", "your", "his", "her", "their", "a", "an"))
#: Words before a side in which a denial of it may stand, in characters that they may take.
_BEFORE: Final = 3
#: Matches nothing: some states have one side, and are of the other one where that is denied.
_NOTHING: Final = r"[^\x{0}-\x{10FFFF}]"


class Phrase(NamedTuple):
    """A noun with what tells which one it is: "my phone's screen"."""

    head: int
    words: frozenset[int]
    #: Whether both sides know which one is meant.
    known: bool
    named: bool


class State(NamedTuple):
    """What a clause says of something."""

    #: The bit of its side, and that of the other side.
    side: int
    other: int
    #: What the clause speaks of; for a state of a person the words of its subject alone.
    phrases: tuple[Phrase, ...]
    subject: frozenset[int]
    #: On which days or in which seasons it is so again and again.
    days: frozenset[int]


class _Rules(NamedTuple):
    """Patterns of the sides in the order of their bits, which states are of a person, and which of the thing alone."""

    every: Any
    sides: tuple[str, ...]
    person: frozenset[int]
    exact: frozenset[int]
    denials: re.Pattern[str]
    ends: re.Pattern[str]
    supposed: re.Pattern[str]
    clauses: re.Pattern[str]
    skipped: frozenset[str]


@cache
def _rules() -> _Rules:
    import re2

    lists = dict(_LISTS)
    options = re2.Options()
    options.case_sensitive = False
    be, habit, words = (
        lists.pop("be"),
        lists.pop("habit"),
        {name: lists.pop(name) for name in ("denials", "ends", "supposed", "clauses")},
    )
    skipped = frozenset((*lists.pop("wrappers"), *lists.pop("light"), *NUMBERS, *WEEKDAYS, *map(str.lower, MONTHS)))
    sides = [
        rf"\b(?:{'|'.join(each[side]) or _NOTHING})\b".replace("BE ", be).replace("HABIT ", habit)
        for each in lists.values()
        for side in ("one", "other")
    ]
    every = re2.Set.SearchSet(options)
    for side in sides:
        every.Add(side)
    every.Compile()
    return _Rules(
        every,
        tuple(sides),
        frozenset(at for at, each in enumerate(lists.values()) if each["of"] == "person"),
        frozenset(at for at, each in enumerate(lists.values()) if each.get("exact")),
        regex(rf"\b(?:{words['denials']})(?!\w)", re.IGNORECASE),
        regex(rf"\b{words['ends']}", re.IGNORECASE),
        regex(rf"\b(?:{words['supposed']})\b", re.IGNORECASE),
        regex(words["clauses"], re.IGNORECASE),
        skipped,
    )


@cache
def _side(words: str) -> Any:
    import re2

    options = re2.Options()
    options.case_sensitive = False
    # "Is out of order" and not "is out".
    options.longest_match = True
    return re2.compile(words, options)


def read(text: str, speaker: str) -> tuple[State, ...]:
    """Return the states that a text tells of, clause by clause; of a talk by who says it."""
    rules = _rules()
    if not rules.every.Match(text):
        return ()
    return tuple(state for clause in clauses(text) for state in _clause(rules, clause.strip(), speaker))


def named(text: str) -> int:
    """Return the bits of the states of which a clause names a side: it can tell of no others."""
    every = _rules().every
    places = (place for clause in clauses(text) for place in every.Match(clause.strip()) or ())
    return reduce(or_, (1 << place // 2 for place in places), 0) if every.Match(text) else 0


def clauses(text: str) -> list[str]:
    """Return the clauses of a text."""
    return _rules().clauses.split(text)


def _clause(rules: _Rules, clause: str, speaker: str) -> Iterator[State]:
    places = rules.every.Match(clause)
    if not places or rules.supposed.search(clause):
        return
    found = [
        (match.start(), match.end(), place) for place in places for match in _side(rules.sides[place]).finditer(clause)
    ]
    # A side that is a part of a longer one is none: "lost interest in", "out of order".
    longest = [
        each
        for each in found
        if not any(
            other[0] <= each[0] and each[1] <= other[1] and other[1] - other[0] > each[1] - each[0] for other in found
        )
    ]
    days = frozenset(term_hash(day.lower()) for day in _DAYS.findall(clause))
    sides: dict[int, tuple[int, int, int]] = {}
    for start, end, place in sorted(longest):
        reach = None if place // 2 in rules.person else -_BEFORE
        before = " ".join(clause[:start].split()[reach:])
        denied = len(rules.denials.findall(f"{before} {clause[start:end]}")) % 2
        denied ^= rules.ends.search(clause, end) is not None
        sides.setdefault(place ^ denied, (start, end, place))
    for side, (start, end, place) in sides.items():
        if side ^ 1 in sides:
            continue
        bits = (1 << side, 1 << (side ^ 1))
        if place // 2 in rules.person:
            subject = _subject(rules, clause[:start], clause[start:end], speaker)
            if subject:
                yield State(*bits, (), subject, days)
        else:
            # What the state is told by is no thing: a verb stands in its place, at which a phrase ends.
            rest, upto = "", 0
            for begin, stop, _ in sorted(each for each in longest if each[2] // 2 == place // 2):
                rest += f"{clause[upto:begin]} is "
                upto = max(upto, stop)
            rest += clause[upto:]
            yield State(*bits, tuple(_phrases(rules, rest)), frozenset(), days)


def _subject(rules: _Rules, before: str, said: str, speaker: str) -> frozenset[int]:
    """Return the words of whom a clause speaks; none where it is not told."""
    words = [token.lower() for token in _TOKEN.findall(before)]
    oneself = frozenset(map(term_hash, analyse(speaker).terms or ("i",)))
    if not _FIRST.isdisjoint(words):
        return oneself
    named = frozenset(word for phrase in _phrases(rules, before) for word in phrase.words)
    if named:
        return named
    return oneself if speaker and _OTHERS.isdisjoint((*words, *said.lower().split())) else frozenset()


def _phrases(rules: _Rules, clause: str) -> Iterator[Phrase]:
    """Yield the phrases of a clause; what follows "of" tells which one the noun before it is."""
    words: list[int] = []
    own: list[int] = []
    known, named, before, joined = True, False, "", False
    for token in (*_TOKEN.findall(clause), ""):
        lower = token.lower()
        skipped = rules.skipped.intersection((lower, lower.removesuffix("'s"), lower.removesuffix("s")))
        # What a number counts is none either.
        counted = before[:1].isdigit() or before in NUMBERS
        kept = () if skipped or counted or lower[:1].isdigit() else word_hashes(token)
        ends = not kept or (lower.endswith(("ed", "ly")) and token.islower() and len(lower) > 4)
        if ends and words:
            if lower == "of" and not joined:
                own, words, joined = words, [], True
                continue
            yield _phrase(words, own, known, named)
            words, own, joined = [], [], False
        elif ends and joined and lower not in _OF_WHICH:
            yield _phrase(words, own, known, named)
            own, joined = [], False
        elif not ends:
            if not words and not joined:
                known = before not in _INDEFINITE
            # "Deploys are done by hand": what begins a sentence is no name where it is a plural.
            named = token.istitle() and not (not before and lower.endswith("s"))
            words.extend(kept)
        before = lower
    if own and not words:
        yield _phrase(words, own, known, named)


def _phrase(words: Sequence[int], own: Sequence[int], known: bool, named: bool) -> Phrase:
    return Phrase((own or words)[-1], frozenset((*own, *words)), known, named)


def exclude(after: Iterable[State], before: Sequence[State]) -> bool:
    """Whether a newer text says of the same thing or person what excludes what an older one says (2)."""
    exact = _rules().exact
    return any(
        new.side == old.other and _same(new, old, exact=(new.side.bit_length() - 1) // 2 in exact)
        for new in after
        for old in before
    ) and not any(new.side == old.side and _same(new, old, exact=False) for new in after for old in before)


def _same(new: State, old: State, *, exact: bool) -> bool:
    if new.days and old.days and new.days != old.days:
        return False
    if new.subject or old.subject:
        return new.subject == old.subject
    said, known = (frozenset(word for each in state.phrases for word in each.words) for state in (new, old))
    heads = {each.head for state in (new, old) for each in state.phrases}
    # "The boiler's pump" is no boiler: each word in common is what a phrase is of, or tells which one of them it is.
    topics = {
        word
        for word in said & known
        if all(each.head in said & known for state in (new, old) for each in state.phrases if word in each.words)
    }
    rest, gone = said - known, known - said
    named = {each.head for state in (new, old) for each in state.phrases if each.named}
    # Who is lost and who has found something is not what is lost and found.
    alone = exact or not topics & heads - named
    definite = any(each.known and each.head in topics for each in new.phrases)
    return bool(topics & heads) and not ((rest or gone) if alone else (rest and gone)) and (definite or exact)
