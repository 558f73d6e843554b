"""Whether two texts state the same: equal in normal form, or equal word by word except for filler words.

Every word, number and sign that is not a filler counts, in order. In doubt both facts are stored: a duplicate is a
nuisance, a refused fact is a loss. All results are symmetric in the two texts.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal, get_args

from keepward.core.patterns import lazy_regex
from keepward.gates.detectors.tables import lazy_property, read, words

Difference = Literal["number", "date", "name", "unit", "negation", "order", "value"]

#: The order of the differences in ``Similarity.differs``.
DIFFERENCES: Final[tuple[Difference, ...]] = get_args(Difference)

#: Characters after normalisation. Longer texts are duplicates only if they are equal.
MAX_COMPARED_CHARS: Final = 8_000

_UNIFIED: Final = str.maketrans("“”„‟«»‘’‚‛‐‑‒–—―−⁄﹘︱︲", '""""""\'\'\'\'-------/---') | dict.fromkeys(
    map(ord, "\u00ad\u200b\u2060\ufeff"), ""
)
# Superscript, subscript, fractional and circled digits stay, because NFKC would merge them with the digits around them
# (10² is not 102). So do two ligatures of complete sentences, which NFKC would expand to eighteen times their length.
_COMPOSABLE = lazy_regex("[^²³¹⁰⁴-⁹⁺⁻₀-₉₊₋¼-¾⅐-⅞↉①-⓿№\ufdfa\ufdfb]+")
_OPENING: Final = "\"'([{`"
_CLOSING: Final = ".,;:!\"')]}`"
_SENTENCE_ENDS: Final = (".", "!", "?", ":")


def normalise(text: str) -> str:
    """Return the form under which two texts count as equal.

    Steps, in this order: drop soft hyphens, zero-width spaces and byte order marks; replace typographic quotes, dashes
    and the minus sign by ASCII; NFKC, except for superscript, subscript, fractional and circled digits; collapse and
    trim white space; lower-case words of letters with at most a first capital; drop the final full stops (or, after a
    letter, exclamation marks).

    These stay, because they can change the meaning: digits, signs, units, question marks, word order, and "ß". Case
    stays in words with more than a first capital ("US" is not "us"), with a digit or sign (``/Data``, ``-V``), or of
    one letter (except "A" at the start of a sentence). "Polish" and "polish" are equal, because sentences capitalise.

    Idempotent, and linear in the text.
    """
    if not text.isascii():
        text = _compose(text.translate(_UNIFIED))
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


def fold(text: str) -> str:
    """Return the form under which a text that was withdrawn is recognised, whatever its capitals, widths and accents.

    It is the normal form in NFKC without case. "5 mW" and "5 MW" have one form, so only what withholds may use it.
    """
    plain = normalise(text)
    if not plain.isascii() and _has_few_accents(plain):
        plain = unicodedata.normalize("NFKC", plain)
    return _without_end(" ".join(plain.casefold().split()))


def _has_few_accents(text: str) -> bool:
    run = 0
    for combining in map(unicodedata.combining, text):
        run = run + 1 if combining else 0
        # No language has so many accents in a row, and sorting them takes quadratic time.
        if run > 30:
            return False
    return True


def _compose(text: str) -> str:
    if not _has_few_accents(text):
        return text
    return _COMPOSABLE.sub(lambda part: unicodedata.normalize("NFKC", part[0]).translate(_UNIFIED), text)


def _fold(word: str, *, first: bool) -> str:
    core = word.strip(_OPENING + _CLOSING + "?")
    if len(core) < 2:
        return word.replace("A", "a") if first and core == "A" else word
    if core[1:] != core[1:].lower() or not core.replace("-", "").replace("'", "").isalpha():
        return word
    return word.replace(core, core[0].lower() + core[1:], 1) if core[0].isalpha() else word


def _without_end(plain: str) -> str:
    core = plain.rstrip(".。!…")
    # ".." and "../.." are paths and "5!" a factorial: only a word or a closing sign loses its punctuation.
    if not core or not (core[-1].isalnum() or core[-1] in "\"')]"):
        return plain
    if core[-1].isalpha() or "!" not in plain[len(core) :]:
        return core
    return plain.rstrip(".。…")


_IDEOGRAPHS: Final = r"\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff"
_CHUNK = lazy_regex(rf"[{_IDEOGRAPHS}]|[^\s{_IDEOGRAPHS}]+")
_DATE = lazy_regex(r"\d{4}-\d{2}(?:-\d{2}.*)?|\d{1,2}[:/]\d{2}.*|\d+(?:st|nd|rd|th)|\d{1,2}\.\d{1,2}\.\d{4}")


def _tokens(plain: str) -> Iterator[str]:
    """Yield the words of a normalised text in order, without surrounding punctuation and without fillers."""
    fillers = words("likeness", "fillers")
    for chunk in plain.split() if plain.isascii() else _CHUNK.findall(plain):
        if chunk in fillers:
            continue
        if chunk.isalpha():
            yield chunk
            continue
        core = chunk.lstrip(_OPENING).rstrip(_CLOSING + "?")
        # 5! is a factorial, 5' a length.
        core = core if core[-1:].isalpha() else chunk.lstrip(_OPENING).rstrip(".,;:)]}?")
        # A chunk of punctuation only is a token: ".." is a path.
        parts = core.split("-") if core[:1] != "-" and core.replace("-", "").isalpha() else [core or chunk]
        yield from (part for part in parts if part and part not in fillers)
        if core and "?" in chunk[-3:]:
            yield "?"


class NormalizedText:
    """A text for comparison: its normal form and its tokens, each computed once."""

    def __init__(self, text: str) -> None:
        self.text = text
        #: ``normalise(text)``.
        self.plain = normalise(text)

    @lazy_property
    def tokens(self) -> list[str]:
        """The tokens of the first ``MAX_COMPARED_CHARS`` characters of the normal form, in order."""
        return list(_tokens(self.plain[:MAX_COMPARED_CHARS]))

    @lazy_property
    def distinct_tokens(self) -> frozenset[str]:
        """The tokens, each once."""
        return frozenset(self.tokens)

    @property
    def token_signature(self) -> bytes:
        """8 bytes, equal for texts that differ only in fillers and in capitals, widths and accents."""
        words = " ".join(_tokens(fold(self.text)))
        return hashlib.blake2b(words.encode("utf-8", "surrogatepass"), digest_size=8).digest()


def _as_normalized(text: str | NormalizedText) -> NormalizedText:
    return text if isinstance(text, NormalizedText) else NormalizedText(text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Similarity:
    """The similarity of two texts, and their differences."""

    #: Overlap coefficient of the two token sets, 0..1, without fillers.
    overlap: float
    #: Normalised indel similarity of the normalised texts, 0..1.
    ratio: float
    #: Members of ``DIFFERENCES``, in its order; empty if the texts state the same.
    differs: tuple[Difference, ...]


def compare(a: str | NormalizedText, b: str | NormalizedText) -> Similarity:
    """Measure the similarity of two texts and name their differences.

    ``overlap`` is |A & B| / min(|A|, |B|) over sets of tokens; when either is empty, 1.0 for equal texts and
    else 0.0. The measures read the first ``MAX_COMPARED_CHARS`` characters; in longer texts any inequality is the
    difference "value". "order" means the same tokens in another order.
    """
    first, other = _as_normalized(a), _as_normalized(b)
    if first.plain == other.plain:
        return Similarity(overlap=1.0, ratio=1.0, differs=())
    return Similarity(overlap=_overlap(first, other), ratio=ratio(first, other), differs=_differences(first, other))


def has_differences(a: NormalizedText, b: NormalizedText) -> bool:
    """Whether ``Similarity.differs`` names any; much faster than ``compare``."""
    if a.plain == b.plain:
        return False
    return max(len(a.plain), len(b.plain)) > MAX_COMPARED_CHARS or a.tokens != b.tokens


def differ_in_grammar_only(a: str | NormalizedText, b: str | NormalizedText) -> bool:
    """Whether two texts have the same words but for function words and the s of a plural or of a verb.

    Tense, number words, directions ("to", "from"), pronouns and modals count, as does the s of a name.

    Example:
        "Deploy with Kubernetes" and "Deploy using Kubernetes".
    """
    first, other = _as_normalized(a), _as_normalized(b)
    if max(len(first.plain), len(other.plain)) > MAX_COMPARED_CHARS:
        return first.plain == other.plain
    changed = first.distinct_tokens ^ other.distinct_tokens
    connectives = words("likeness", "connectives") | _equal_connectives().keys()
    if any(token not in connectives and token[-1:] != "s" and f"{token}s" not in changed for token in changed):
        # Most pairs end here, where the rest takes ten times as long.
        return False
    names = _capitalised(first.text) | _capitalised(other.text)
    return _without_grammar(first.tokens, names) == _without_grammar(other.tokens, names)


def is_near_duplicate(
    a: str | NormalizedText, b: str | NormalizedText, *, overlap_floor: float, ratio_floor: float
) -> bool:
    """Whether two texts reach either minimum, whatever differs; the measures are those of ``compare``."""
    first, other = _as_normalized(a), _as_normalized(b)
    return first.plain == other.plain or _overlap(first, other) >= overlap_floor or ratio(first, other) >= ratio_floor


def match(
    text: str | NormalizedText, others: Sequence[str | NormalizedText], *, ratio_floor: float = 0.70
) -> tuple[int, bool] | None:
    """Return the index of the first duplicate, and whether it is equal in normal form; None if there is none.

    An equal text comes before one that differs in fillers.
    """
    form = _as_normalized(text)
    forms = [_as_normalized(other) for other in others]
    for at, other in enumerate(forms):
        if other.plain == form.plain:
            return at, True
    for at, other in enumerate(forms):
        if form.tokens != other.tokens or max(len(form.plain), len(other.plain)) > MAX_COMPARED_CHARS:
            continue
        if ratio(form, other) >= ratio_floor:
            return at, False
    return None


def _without_grammar(tokens: Sequence[str], names: Collection[str]) -> list[str]:
    """Return the tokens without function words that add nothing and without a final s; equal connectives are one."""
    dropped, one_of = words("likeness", "connectives"), _equal_connectives()
    return [
        token[:-1]
        if len(token) > 3
        and token[-1] == "s"
        and token.islower()
        and token.isalpha()
        and token not in names
        and not token.endswith(("ss", "us", "is"))
        else one_of.get(token, token)
        for token in tokens
        if token not in dropped
    ]


@functools.cache
def _equal_connectives() -> dict[str, str]:
    groups = (line.split() for line in read("likeness")["equal_connectives"])
    return {word: group[0] for group in groups for word in group}


def _overlap(a: NormalizedText, b: NormalizedText) -> float:
    smaller = min(len(a.distinct_tokens), len(b.distinct_tokens))
    return len(a.distinct_tokens & b.distinct_tokens) / smaller if smaller else 0.0


def ratio(a: NormalizedText, b: NormalizedText) -> float:
    """Return ``Similarity.ratio`` alone."""
    return _indel()(a.plain[:MAX_COMPARED_CHARS], b.plain[:MAX_COMPARED_CHARS])


@functools.cache
def _indel() -> Callable[[str, str], float]:
    from rapidfuzz.distance import Indel  # takes 50 ms to import

    return Indel.normalized_similarity


def _differences(first: NormalizedText, other: NormalizedText) -> tuple[Difference, ...]:
    """Name the differences of two texts; a name is a word with a capital inside a sentence."""
    if not has_differences(first, other):
        return ()
    if max(len(first.plain), len(other.plain)) > MAX_COMPARED_CHARS:
        return ("value",)
    a, b = Counter(first.tokens), Counter(other.tokens)
    names = _capitalised(first.text) | _capitalised(other.text)
    found = {_kind(token, names) for token in (a - b) | (b - a)} or {"order"}
    return tuple(kind for kind in DIFFERENCES if kind in found)


def _kind(token: str, names: set[str]) -> Difference:
    if token in words("likeness", "negations") or token.endswith("n't"):
        return "negation"
    if token in words("likeness", "units"):
        return "unit"
    if token in words("likeness", "dates") or _DATE.fullmatch(token):
        return "date"
    if any(map(str.isdigit, token)) and not token[0].isalpha() and token[0] != "/":
        return "number"
    return "name" if token in names or token != token.lower() or (len(token) > 1 and not token.isalpha()) else "value"


def _capitalised(raw: str) -> set[str]:
    """Return, in lower case, the capitalised words that do not start a sentence."""
    chunks = [".", *raw.split()]
    return {
        word.strip(_OPENING + _CLOSING + "?").lower()
        for before, word in itertools.pairwise(chunks)
        if word != word.lower() and not before.endswith(_SENTENCE_ENDS)
    }
