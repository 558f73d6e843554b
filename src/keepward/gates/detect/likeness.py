"""Likeness of two texts: equal as declared, a harmless rewording, or a different fact.

Being similar never makes two texts duplicates by itself; everything that can carry a fact must agree too.
"Equal after normalisation" is a promise: what is not named in ``normalise`` is kept.

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
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from typing import Final, Literal, get_args

from keepward.gates.detect.tables import once, read, words
from keepward.model.patterns import regex

Protected = Literal["number", "date", "name", "unit", "negation", "quantifier", "order", "value"]

#: The order in which ``Likeness.differs`` names what differs.
PROTECTED: Final[tuple[Protected, ...]] = get_args(Protected)

#: Characters after normalisation; longer texts are duplicates only when they are equal.
LONGEST: Final = 8_000

# Compatibility forms that NFKC would fuse with the digits around them: 10² is not 102, 3½ is not 31/2.
_RAISED = regex("[²³¹⁰⁴-⁹⁺⁻]+|[₀-₉₊₋]+|[¼-¾⅐-⅞↉①-⓿]|№")
_UNIFIED: Final = str.maketrans("“”„‟«»‘’‚‛‐‑‒–—―−⁄﹘︱︲", '""""""\'\'\'\'-------/---') | dict.fromkeys(
    map(ord, "\u00ad\u200b\u2060\ufeff"), ""
)
# Two ligatures stand for whole sentences; spelt out they would multiply a text by eighteen.
_COMPOSABLE = regex("[^\ufdfa\ufdfb]+")
_OPENING: Final = "\"'([{`"
_CLOSING: Final = ".,;:!\"')]}`"
_SENTENCE_ENDS: Final = (".", "!", "?", ":")


def normalise(text: str) -> str:
    """Return the form under which two texts count as equal.

    Done, in this order: soft hyphens, zero-width spaces and byte order marks dropped; NFKC, with raised,
    lowered, fractional and circled digits kept apart from their neighbours; typographic quotes and dashes
    and the minus sign made plain; whitespace collapsed to single spaces and trimmed; words that are letters
    with at most a first capital put in lower case; the closing full stops (or, after a letter, exclamation
    marks) of the text dropped.

    Kept, because it can carry meaning: every digit, sign and unit; question marks; word order; the case of
    anything that is more than a first capital ("US" is not "us", nor "MB" "Mb", nor ``fooBar`` ``foobar``), that
    holds a digit or other sign (``/Data``, ``-V``), or that is one letter (except "A" opening a sentence); "ß".
    Words that differ by a first capital only ("Polish", "polish") are equal, since sentences capitalise.

    Idempotent. Linear in the text: NFKC spares the ligatures U+FDFA and U+FDFB, and is left out for a text with
    over thirty combining marks in a row, which no language writes.
    """
    if not text.isascii():
        text = _compose(_RAISED.sub(_apart, text.translate(_UNIFIED)))
    chunks = text.split()
    plain = " ".join(
        [
            word
            if word.islower() or word == word.lower()
            else _fold(word, first=not at or chunks[at - 1].endswith(_SENTENCE_ENDS))
            for at, word in enumerate(chunks)
        ]
    )
    return _without_end(plain if plain.isascii() else _compose(plain))


def _apart(match: re.Match[str]) -> str:
    shown = match[0]
    if shown == "№":
        return "#"
    plain = unicodedata.normalize("NFKC", shown).translate(_UNIFIED)
    tag = unicodedata.decomposition(shown[0])
    if tag.startswith("<super>"):
        return "^" + plain
    if tag.startswith("<sub>"):
        return "_" + plain
    return f" {plain} "


def _compose(text: str) -> str:
    run = 0
    for mark in map(unicodedata.combining, text):
        run = run + 1 if mark else 0
        if run > 30:
            return text
    return _COMPOSABLE.sub(lambda part: unicodedata.normalize("NFKC", part[0]), text)


def _fold(word: str, *, first: bool) -> str:
    core = word.strip(_OPENING + _CLOSING + "?")
    if len(core) < 2:
        return word.replace("A", "a") if first and core == "A" else word
    if core[1:] != core[1:].lower() or not core.replace("-", "").replace("'", "").isalpha():
        return word
    return word.replace(core, core[0].lower() + core[1:], 1) if core[0].isalpha() else word


def _without_end(plain: str) -> str:
    core = plain.rstrip(".。!…")
    # ".." and "../.." are paths and "5!" a product: only a word or a closing sign sheds its marks.
    if not core or not (core[-1].isalnum() or core[-1] in "\"')]"):
        return plain
    if core[-1].isalpha() or "!" not in plain[len(core) :]:
        return core
    return plain.rstrip(".。…")


_PREFIXES: Final = ("un", "in", "im", "dis", "non", "de")
_NEGATIONS_CJK = regex("[不没沒無无非未别勿]|ない|なかっ|なく|ません|ぬ")


class _Lexicon:
    """What the words of ``rules/likeness.toml`` mean."""

    def __init__(self) -> None:
        tables = read("likeness")
        lines = [line.split() for line in tables["same"].splitlines()]
        #: What a word is unified to; nothing for a filler.
        self.same = {other: word for word, *others in lines for other in others}
        self.same |= dict.fromkeys(tables["fillers"].split(), "")
        self.same |= {"can't": "can not", "cannot": "can not", "won't": "will not", "shan't": "shall not", "n'": "ne"}
        self.opposites = [tuple(line.split()) for line in tables["opposites"].splitlines()]


_lexicon = functools.cache(_Lexicon)


def _listed(token: str, table: str) -> bool:
    return token in words("likeness", table)


_CJK = regex(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]")
_CJK_TOKENS = regex(
    r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]|[^\W\d_]+|[+-]?\d[\d.]*|[^\s,;:!.。、・「」()]"
)
_MEASURE = regex(r"([$€£¥]?)([+-]?\d[\d.,]*)([^\W\d_]{0,6}|%|°[cCfF]?)")
_TENS: Final = frozenset({"20", "30", "40", "50", "60", "70", "80", "90"})
_ELISIONS: Final = frozenset({"l", "d", "j", "qu", "c", "s", "m", "t"})
_ENDINGS: Final = {"m": "", "re": "", "s": "", "ll": "will", "ve": "have", "d": "would"}


def tokens_of(plain: str) -> list[str]:
    """Split a normalised text into what it says, in order: fillers gone, number words and synonyms unified."""
    out: list[str] = []
    same = _lexicon().same
    chunks = plain.split()
    for at, chunk in enumerate(chunks):
        known = same.get(chunk)
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
    core = chunk.lstrip(_OPENING).rstrip(_CLOSING + "?")
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
    same = _lexicon().same
    known = same.get(core)
    if known is not None:
        yield from known.split()
    elif core.isalpha():
        yield core
    elif (measure := _MEASURE.fullmatch(core)) is not None:
        yield from (same.get(part) or part for part in measure.groups() if part)
    elif "'" in core and core.replace("'", "").isalpha():
        yield from _split_contraction(core)
    elif "-" in core and core.replace("-", "").isalpha() and not core.startswith("-"):
        parts = [same.get(part, part) for part in core.split("-")]
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
    same = _lexicon().same
    yield from (same.get(part, part) for part in (head, tail) if same.get(part, part))


_DATE = regex(
    r"\d{4}-\d{2}(?:-\d{2}.*)?|\d{1,2}[:/]\d{2}.*|\d{1,2}/\d{1,2}(?:/\d{2,4})?|\d+(?:st|nd|rd|th)|\d{1,2}\.\d{1,2}\.\d{4}"
)
_NUMBER = regex(r"[<>=≤≥≈~+±-]*\d[\d.,:/^_x*-]*")
_VERBS: Final = frozenset({"is", "was", "has", "will", "can", "must", "may", "should", "does", "and"})


class Form:
    """A text as it is compared: its normal form, and what it says. Made once where a text meets many."""

    def __init__(self, text: str) -> None:
        self.text = text
        #: ``normalise(text)``.
        self.plain = normalise(text)

    @once
    def tokens(self) -> list[str]:
        """What the first ``LONGEST`` characters of the normal form say, in order."""
        return tokens_of(self.plain[:LONGEST])

    @once
    def different(self) -> frozenset[str]:
        """The tokens, each once."""
        return frozenset(self.tokens)

    @once
    def numbers(self) -> frozenset[str]:
        """The tokens that hold a digit."""
        return frozenset(token for token in self.different if not token.isalpha() and any(map(str.isdigit, token)))

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
    one, other = Form(a), Form(b)
    if one.plain == other.plain:
        return Likeness(overlap=1.0, ratio=1.0, differs=())
    found: set[Protected] = {"value"} if max(len(one.plain), len(other.plain)) > LONGEST else _differences(one, other)
    return Likeness(
        overlap=_overlap(one.different, other.different),
        ratio=_ratio(one, other),
        differs=tuple(kind for kind in PROTECTED if kind in found),
    )


def alike(a: str | Form, b: str | Form, *, overlap_floor: float, ratio_floor: float) -> bool:
    """Whether two texts reach either floor, whatever differs; the measures are those of ``compare``."""
    one, other = _formed(a), _formed(b)
    if one.plain == other.plain or _overlap(one.different, other.different) >= overlap_floor:
        return True
    return _ratio(one, other) >= ratio_floor


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
        if alike(form, other, overlap_floor=overlap_floor, ratio_floor=ratio_floor) and not _differences(form, other):
            return at, False
    return None


def _overlap(a: Set[str], b: Set[str]) -> float:
    smaller = min(len(a), len(b))
    return len(a & b) / smaller if smaller else 0.0


def _ratio(a: Form, b: Form) -> float:
    return _indel()(a.plain[:LONGEST], b.plain[:LONGEST])


@functools.cache
def _indel() -> Callable[[str, str], float]:
    from rapidfuzz.distance import Indel  # takes 50 ms to import

    return Indel.normalized_similarity


def _differences(one: Form, other: Form) -> set[Protected]:
    """Name what differs between two texts; a name is what is capitalised inside a sentence."""
    a, b = one.tokens, other.tokens
    if a == b:
        return set()
    names = _capitalised(one.text) | _capitalised(other.text)
    left_a, left_b = Counter(a), Counter(b)
    only_a, only_b = list((left_a - left_b).elements()), list((left_b - left_a).elements())
    same = _inflections(only_a, only_b, names)
    found: set[Protected] = set()
    opposed = _opposed(only_a, only_b)
    if opposed or len(_NEGATIONS_CJK.findall("".join(a))) != len(_NEGATIONS_CJK.findall("".join(b))):
        found.add("negation")
    found |= {_kind(token, names) for token in {*only_a, *only_b} - opposed}
    b = [same.get(token, token) for token in b]
    if found:
        shared = Counter(a) & Counter(b)
        a, b = _shared_only(a, shared), _shared_only(b, shared)
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
    if not (word.isascii() and word.isalpha() and word.islower()) or _listed(word, "not_inflected"):
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
        for one, other in _lexicon().opposites if these and those else ():
            if one in these and other in those:
                opposed |= {these[one], those[other]}
        for root, word in these.items():
            if root.startswith(_PREFIXES):
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
    if _listed(token, "negations"):
        return "negation"
    if _listed(token, "quantifiers"):
        return "quantifier"
    if _listed(token, "units"):
        return "unit"
    if _listed(token, "dates") or _DATE.fullmatch(token):
        return "date"
    if _NUMBER.fullmatch(token):
        return "number"
    if token in names or token != token.lower() or (len(token) > 1 and not token.isalpha()):
        return "name"
    return "value"


def _capitalised(raw: str) -> set[str]:
    """Collect, in lower case, the words with a capital that no sentence start explains."""
    chunks = [".", *raw.split(), ""]
    return {
        word.strip(_OPENING + _CLOSING + "?").lower().removesuffix("'s")
        for at, word in enumerate(chunks)
        if not word.islower()
        and word != word.lower()
        and (not chunks[at - 1].endswith(_SENTENCE_ENDS) or chunks[at + 1] in _VERBS)
    }


def _shared_only(tokens: list[str], shared: Counter[str]) -> list[str]:
    room = Counter(shared)
    found: list[str] = []
    for token in tokens:
        room[token] -= 1
        if room[token] >= 0:
            found.append(token)
    return found


def _is_fronted(a: list[str], b: list[str]) -> bool:
    """Tell whether one short adverbial phrase moved to or from the front, within a single clause.

    "Ben calls on Monday" and "On Monday Ben calls" share their roles; any other reordering may not.
    """
    if not words("likeness", "joints").isdisjoint(a):
        return False
    end = len(a)
    while end and a[end - 1] == b[end - 1]:
        end -= 1
    if end < len(a) and not _listed(a[end], "openers"):
        return False
    front, moved = a[:end], b[:end]
    cuts = sorted({*range(1, min(7, end)), *range(max(1, end - 6), end)})
    return any(
        front[cut:] + front[:cut] == moved
        and ((_listed(front[0], "openers") and cut <= 6) or (_listed(front[cut], "openers") and end - cut <= 6))
        for cut in cuts
    )
