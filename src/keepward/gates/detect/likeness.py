"""Likeness of two texts: equal as declared, a harmless rewording, or a different fact.

Being similar never makes two texts duplicates by itself; everything that can carry a fact must agree too.

Invariants
(1) Texts that are equal after ``normalise`` are duplicates, and ``compare`` finds no difference in them.
(2) Every word, number and sign that is not a declared filler counts; a leftover one, substituted or added,
    is a difference. Doubt keeps both facts: a duplicate kept is a nuisance, a fact refused is a loss.
(3) All answers are symmetric in their two texts.
(4) Work is linear in the texts up to ``LONGEST`` characters; beyond it only equality is examined.
(5) Nothing of a text is kept between calls: there is no cache that would outlive an erasure.
"""

from __future__ import annotations

import functools
import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import dataclass
from typing import Final, Literal, get_args

from keepward.gates.detect.likeness_tokens import tokens_of
from keepward.gates.detect.likeness_words import (
    DATES,
    JOINTS,
    NEGATIONS,
    NEGATIONS_CJK,
    NOT_INFLECTED,
    OPENERS,
    OPPOSITES,
    PREFIXES,
    QUANTIFIERS,
    UNITS,
)
from keepward.gates.detect.sameness import CLOSING, OPENING, SENTENCE_ENDS, digest, normalise

__all__ = [
    "LONGEST",
    "PROTECTED",
    "Form",
    "Likeness",
    "Protected",
    "alike",
    "compare",
    "digest",
    "is_duplicate",
    "match",
    "normalise",
]

Protected = Literal["number", "date", "name", "unit", "negation", "quantifier", "order", "value"]

#: The order in which ``Likeness.differs`` names what differs.
PROTECTED: Final[tuple[Protected, ...]] = get_args(Protected)

#: Characters after normalisation; longer texts are duplicates only when they are equal.
LONGEST: Final = 8_000

_DATE = re.compile(
    r"\d{4}-\d{2}(?:-\d{2}.*)?|\d{1,2}[:/]\d{2}.*|\d{1,2}/\d{1,2}(?:/\d{2,4})?|\d+(?:st|nd|rd|th)|\d{1,2}\.\d{1,2}\.\d{4}"
)
_NUMBER = re.compile(r"[<>=≤≥≈~+±-]*\d[\d.,:/^_x*-]*")
_VERBS: Final = frozenset({"is", "was", "has", "will", "can", "must", "may", "should", "does", "and"})


class Form:
    """A text as it is compared: its normal form, and what it says. Made once where a text meets many."""

    __slots__ = ("_different", "_numbers", "_tokens", "plain", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        #: ``normalise(text)``.
        self.plain = normalise(text)
        self._tokens: list[str] | None = None
        self._different: frozenset[str] | None = None
        self._numbers: frozenset[str] | None = None

    @property
    def tokens(self) -> list[str]:
        """What the first ``LONGEST`` characters of the normal form say, in order."""
        if self._tokens is None:
            self._tokens = tokens_of(self.plain[:LONGEST])
        return self._tokens

    @property
    def different(self) -> frozenset[str]:
        """The tokens, each once."""
        if self._different is None:
            self._different = frozenset(self.tokens)
        return self._different

    @property
    def numbers(self) -> frozenset[str]:
        """The tokens that hold a digit."""
        if self._numbers is None:
            held = [token for token in self.different if not token.isalpha() and any(map(str.isdigit, token))]
            self._numbers = frozenset(held)
        return self._numbers

    @property
    def trait(self) -> bytes:
        """8 bytes, equal for any two texts of which ``match`` would find one alike the other and not equal to it.

        What an inflection leaves of a word is at least its first two letters, and nothing else may differ but
        the order.
        """
        beginnings = sorted([token[:2] for token in self.tokens])
        return hashlib.blake2b(" ".join(beginnings).encode("utf-8", "surrogatepass"), digest_size=8).digest()


def _formed(text: str | Form) -> Form:
    return text if isinstance(text, Form) else Form(text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Likeness:
    """How alike two texts are, and what keeps them apart."""

    #: Overlap coefficient of the two token sets, 0..1, fillers left out.
    overlap: float
    #: Normalised indel similarity of the normalised texts, 0..1.
    ratio: float
    #: Members of ``PROTECTED`` that differ, in its order; empty when the texts state the same.
    differs: tuple[Protected, ...]


def compare(a: str, b: str) -> Likeness:
    """Measure how alike two texts are and name what differs.

    ``overlap`` is |A & B| / min(|A|, |B|) over sets of tokens; when either is empty, 1.0 for equal texts and
    else 0.0. Over ``LONGEST`` characters the measures read the first ``LONGEST``, and any inequality is the
    difference "value". "order" means the same tokens in another order, except for one phrase moved to the front.
    A word in another inflection (plural, third person, -ing) is the same; another tense is not.
    """
    plain_a, plain_b = normalise(a), normalise(b)
    if plain_a == plain_b:
        return Likeness(overlap=1.0, ratio=1.0, differs=())
    head_a, head_b = plain_a[:LONGEST], plain_b[:LONGEST]
    tokens_a, tokens_b = tokens_of(head_a), tokens_of(head_b)
    found: set[Protected] = set()
    if max(len(plain_a), len(plain_b)) > LONGEST:
        found.add("value")
    elif tokens_a != tokens_b:
        found = _differences(tokens_a, tokens_b, _capitalised(a) | _capitalised(b))
    return Likeness(
        overlap=_overlap(set(tokens_a), set(tokens_b)),
        ratio=_ratio(head_a, head_b),
        differs=tuple(kind for kind in PROTECTED if kind in found),
    )


def is_duplicate(a: str, b: str, *, overlap_floor: float = 0.60, ratio_floor: float = 0.70) -> bool:
    """Tell whether two texts state the same: equal as declared, or alike by either floor with no difference.

    Floors are inclusive, 0..1; 1.0 is the strictest.
    """
    return match(a, [b], overlap_floor=overlap_floor, ratio_floor=ratio_floor) is not None


def alike(a: str | Form, b: str | Form, *, overlap_floor: float, ratio_floor: float) -> bool:
    """Whether two texts reach either floor, whatever differs; the measures are those of ``compare``."""
    one, other = _formed(a), _formed(b)
    if one.plain == other.plain or _overlap(one.different, other.different) >= overlap_floor:
        return True
    return _ratio(one.plain[:LONGEST], other.plain[:LONGEST]) >= ratio_floor


def match(
    text: str | Form, others: Sequence[str | Form], *, overlap_floor: float = 0.60, ratio_floor: float = 0.70
) -> tuple[int, bool] | None:
    """Return the position of the first text that states the same, and whether it is equal as declared.

    An equal text comes before one that is merely alike; None where there is neither.
    """
    form = _formed(text)
    forms = [_formed(other) for other in others]
    for at, other in enumerate(forms):
        if other.plain == form.plain:
            return at, True
    for at, other in enumerate(forms):
        # Where one text has a number that the other lacks, they cannot state the same.
        if max(len(form.plain), len(other.plain)) > LONGEST or form.numbers != other.numbers:
            continue
        # The floors come first: most pairs are far apart, and naming what differs costs the most.
        if not alike(form, other, overlap_floor=overlap_floor, ratio_floor=ratio_floor):
            continue
        if form.tokens == other.tokens or not _differences(
            form.tokens, other.tokens, _capitalised(form.text) | _capitalised(other.text)
        ):
            return at, False
    return None


def _overlap(a: Set[str], b: Set[str]) -> float:
    smaller = min(len(a), len(b))
    return len(a & b) / smaller if smaller else 0.0


def _ratio(a: str, b: str) -> float:
    return _indel()(a, b)


@functools.cache
def _indel() -> Callable[[str, str], float]:
    from rapidfuzz.distance import Indel  # takes 50 ms to import

    return Indel.normalized_similarity


def _differences(a: list[str], b: list[str], names: set[str]) -> set[Protected]:
    """Name what differs between two token lists; ``names`` holds what is capitalised inside a sentence."""
    left_a, left_b = Counter(a), Counter(b)
    left_a.subtract(b)
    left_b.subtract(a)
    only_a, only_b = list((+left_a).elements()), list((+left_b).elements())
    same = _inflections(only_a, only_b, names)
    found: set[Protected] = set()
    opposed = _opposed(only_a, only_b)
    if opposed:
        found.add("negation")
    found |= {_kind(token, names) for token in {*only_a, *only_b} - opposed}
    if len(NEGATIONS_CJK.findall("".join(a))) != len(NEGATIONS_CJK.findall("".join(b))):
        found.add("negation")
    b = [same.get(token, token) for token in b]
    if found:
        shared = Counter(a) & Counter(b)
        a, b = _keep(a, shared), _keep(b, shared)
    if a != b and not _is_fronted(a, b):
        found.add("order")
    return found


def _inflections(only_a: list[str], only_b: list[str], names: set[str]) -> dict[str, str]:
    """Take pairs that differ in inflection out of both lists; return them as b's word -> a's word."""
    by_stem: dict[str, list[str]] = {}
    for token in only_b:
        for stem in sorted(_stems(token)) if token not in names else ():
            by_stem.setdefault(stem, []).append(token)
    same: dict[str, str] = {}
    for token in tuple(only_a):
        for stem in sorted(by_stem.keys() & _stems(token)) if token not in names else ():
            waiting = by_stem.get(stem)
            if waiting and waiting[-1] in only_b:
                other = waiting.pop()
                only_a.remove(token)
                only_b.remove(other)
                same[other] = token
                break
    return same


def _stems(word: str) -> set[str]:
    stems = {word}
    if not (word.isascii() and word.isalpha() and word.islower()) or word in NOT_INFLECTED:
        return stems
    if len(word) > 4 and word.endswith("ies"):
        stems.add(word[:-3] + "y")
    elif len(word) > 4 and word.endswith(("ses", "xes", "zes", "ches", "shes", "oes")):
        stems |= {word[:-2], word[:-1]}
    elif len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        stems.add(word[:-1])
    elif len(word) > 5 and word.endswith("ing") and any(vowel in word[:-3] for vowel in "aeiouy"):
        stems |= {word[:-3], word[:-3] + "e"}
        if word[-4] == word[-5]:
            stems.add(word[:-4])
    return stems


def _opposed(only_a: list[str], only_b: list[str]) -> set[str]:
    """Return the leftover words that face their opposite in the other text."""
    roots_a, roots_b = _roots(dict.fromkeys(only_a)), _roots(dict.fromkeys(only_b))
    opposed: set[str] = set()
    for these, those in ((roots_a, roots_b), (roots_b, roots_a)):
        for one, other in OPPOSITES if these and those else ():
            if one in these and other in those:
                opposed |= {these[one], those[other]}
        for root, word in these.items():
            if root.startswith(PREFIXES):
                for plain in (root[2:], root[3:]):
                    opposed |= {word, those[plain]} if plain in those else set()
    return opposed


def _roots(words: Iterable[str]) -> dict[str, str]:
    roots: dict[str, str] = {}
    for word in words:
        for root in (*_stems(word), *((word[:-1], word[:-2]) if word.endswith("ed") else ())):
            roots.setdefault(root, word)
    return roots


def _kind(token: str, names: set[str]) -> Protected:
    if token in NEGATIONS:
        return "negation"
    if token in QUANTIFIERS:
        return "quantifier"
    if token in UNITS:
        return "unit"
    if token in DATES or _DATE.fullmatch(token):
        return "date"
    if _NUMBER.fullmatch(token):
        return "number"
    if token in names or token != token.lower() or (len(token) > 1 and not token.isalpha()):
        return "name"
    return "value"


def _capitalised(raw: str) -> set[str]:
    """Collect, in lower case, the words with a capital that no sentence start explains."""
    words = [".", *raw.split(), ""]
    return {
        word.strip(OPENING + CLOSING + "?").lower().removesuffix("'s")
        for at, word in enumerate(words)
        if not word.islower()
        and word != word.lower()
        and (not words[at - 1].endswith(SENTENCE_ENDS) or words[at + 1] in _VERBS)
    }


def _keep(tokens: list[str], shared: Counter[str]) -> list[str]:
    room = Counter(shared)
    kept: list[str] = []
    for token in tokens:
        room[token] -= 1
        if room[token] >= 0:
            kept.append(token)
    return kept


def _is_fronted(a: list[str], b: list[str]) -> bool:
    """Tell whether one short adverbial phrase moved to or from the front, within a single clause.

    "Ben calls on Monday" and "On Monday Ben calls" share their roles; any other reordering may not.
    """
    if not JOINTS.isdisjoint(a):
        return False
    end = len(a)
    while end and a[end - 1] == b[end - 1]:
        end -= 1
    if end < len(a) and a[end] not in OPENERS:
        return False
    front, moved = a[:end], b[:end]
    cuts = sorted({*range(1, min(7, end)), *range(max(1, end - 6), end)})
    return any(
        front[cut:] + front[:cut] == moved
        and ((front[0] in OPENERS and cut <= 6) or (front[cut] in OPENERS and end - cut <= 6))
        for cut in cuts
    )
