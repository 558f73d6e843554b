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

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal, get_args

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
    SAME,
    UNITS,
)
from keepward.gates.detect.sameness import CLOSING, OPENING, SENTENCE_ENDS, digest, normalise

__all__ = ["LONGEST", "PROTECTED", "Likeness", "Protected", "compare", "digest", "is_duplicate", "match", "normalise"]

Protected = Literal["number", "date", "name", "unit", "negation", "quantifier", "order", "value"]

#: The order in which ``Likeness.differs`` names what differs.
PROTECTED: Final[tuple[Protected, ...]] = get_args(Protected)

#: Characters after normalisation; longer texts are duplicates only when they are equal.
LONGEST: Final = 8_000

_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]")
_CJK_TOKENS = re.compile(
    r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]|[^\W\d_]+|[+-]?\d[\d.]*|[^\s,;:!.。、・「」()]"
)
_MEASURE = re.compile(r"([$€£¥]?)([+-]?\d[\d.,]*)([^\W\d_]{0,6}|%|°[cCfF]?)")
_DATE = re.compile(
    r"\d{4}-\d{2}(?:-\d{2}.*)?|\d{1,2}[:/]\d{2}.*|\d{1,2}/\d{1,2}(?:/\d{2,4})?|\d+(?:st|nd|rd|th)|\d{1,2}\.\d{1,2}\.\d{4}"
)
_NUMBER = re.compile(r"[<>=≤≥≈~+±-]*\d[\d.,:/^_x*-]*")
_VERBS: Final = frozenset({"is", "was", "has", "will", "can", "must", "may", "should", "does", "and"})
_TENS: Final = frozenset({"20", "30", "40", "50", "60", "70", "80", "90"})
_ELISIONS: Final = frozenset({"l", "d", "j", "qu", "c", "s", "m", "t"})
_ENDINGS: Final = {"m": "", "re": "", "s": "", "ll": "will", "ve": "have", "d": "would"}


def _tokens(plain: str) -> list[str]:
    """Split a normalised text into what it says, in order: fillers gone, number words and synonyms unified."""
    out: list[str] = []
    chunks = plain.split()
    for at, chunk in enumerate(chunks):
        known = SAME.get(chunk)
        if known is not None:
            if known:
                out.extend(known.split())
        elif chunk.isascii() and chunk.isalpha():
            out.append(chunk)
        elif chunk == "-":
            # A dash between words is punctuation; beside a number it may be an operator.
            if any(near[:1].isdigit() for near in chunks[max(at - 1, 0) : at + 2]):
                out.append(chunk)
        else:
            out.extend(_split(chunk))
    return out


def _split(chunk: str) -> Iterator[str]:
    if _CJK.search(chunk):
        yield from _CJK_TOKENS.findall(chunk)
        return
    core = chunk.lstrip(OPENING).rstrip(CLOSING + "?")
    if not core:
        if chunk.startswith("..") or "?" in chunk:
            yield chunk
        return
    yield from _split_core(core)
    tail = chunk[chunk.index(core) + len(core) :]
    if "?" in tail:
        yield "?"
    if core[-1].isdigit():
        # 5! is a product, 5' a length.
        yield from (sign for sign in tail if sign in "!\"'")


def _split_core(core: str) -> Iterator[str]:
    known = SAME.get(core)
    if known is not None:
        yield from known.split()
    elif core.isalpha():
        yield core
    elif (measure := _MEASURE.fullmatch(core)) is not None:
        yield from (SAME.get(part) or part for part in measure.groups() if part)
    elif "'" in core and core.replace("'", "").isalpha():
        yield from _split_contraction(core)
    elif "-" in core and core.replace("-", "").isalpha() and not core.startswith("-"):
        parts = [SAME.get(part, part) for part in core.split("-")]
        if len(parts) == 2 and parts[0] in _TENS and parts[1].isdigit() and len(parts[1]) == 1:
            yield str(int(parts[0]) + int(parts[1]))
        else:
            yield from (part for part in parts if part)
    else:
        yield core


def _split_contraction(core: str) -> Iterator[str]:
    head, _, ending = core.rpartition("'")
    if ending == "t" and head.endswith("n"):
        head, tail = head[:-1], "not"
    elif head == "n":
        head, tail = "ne", ending
    elif head in _ELISIONS:
        head, tail = "", ending
    else:
        tail = _ENDINGS.get(ending, "'" + ending)
    yield from (SAME.get(part, part) for part in (head, tail) if SAME.get(part, part))


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
    tokens_a, tokens_b = _tokens(head_a), _tokens(head_b)
    found: set[Protected] = set()
    if max(len(plain_a), len(plain_b)) > LONGEST:
        found.add("value")
    elif tokens_a != tokens_b:
        found = _differences(tokens_a, tokens_b, _capitalised(a) | _capitalised(b))
    return Likeness(
        overlap=_overlap(tokens_a, tokens_b),
        ratio=_ratio(head_a, head_b),
        differs=tuple(kind for kind in PROTECTED if kind in found),
    )


def is_duplicate(a: str, b: str, *, overlap_floor: float = 0.60, ratio_floor: float = 0.70) -> bool:
    """Tell whether two texts state the same: equal as declared, or alike by either floor with no difference.

    Floors are inclusive, 0..1; 1.0 is the strictest.
    """
    return match(a, [b], overlap_floor=overlap_floor, ratio_floor=ratio_floor) is not None


def match(
    text: str, others: Sequence[str], *, overlap_floor: float = 0.60, ratio_floor: float = 0.70
) -> tuple[int, bool] | None:
    """Return the position of the first text that states the same, and whether it is equal as declared.

    An equal text comes before one that is merely alike; None where there is neither.
    """
    plain = normalise(text)
    plains = [normalise(other) for other in others]
    if plain in plains:
        return plains.index(plain), True
    tokens: list[str] | None = None
    for at, other in enumerate(plains):
        if max(len(plain), len(other)) > LONGEST:
            continue
        tokens = _tokens(plain) if tokens is None else tokens
        theirs = _tokens(other)
        if _numbers_apart(tokens, theirs):
            continue
        # The floors come first: most pairs are far apart, and naming what differs costs the most.
        if _overlap(tokens, theirs) < overlap_floor and _ratio(plain, other) < ratio_floor:
            continue
        if tokens == theirs or not _differences(tokens, theirs, _capitalised(text) | _capitalised(others[at])):
            return at, False
    return None


def _numbers_apart(a: list[str], b: list[str]) -> bool:
    """Whether one text has a token with a digit that the other lacks: they cannot state the same."""
    return any(not token.isalpha() and any(map(str.isdigit, token)) for token in set(a) ^ set(b))


def _overlap(a: list[str], b: list[str]) -> float:
    set_a, set_b = set(a), set(b)
    smaller = min(len(set_a), len(set_b))
    return len(set_a & set_b) / smaller if smaller else 0.0


def _ratio(a: str, b: str) -> float:
    from rapidfuzz.distance import Indel  # takes 50 ms to import

    return Indel.normalized_similarity(a, b)


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
