"""Text to terms, the same on every machine and every store.

Invariants
(1) `terms` accepts any text and depends on the text alone.
(2) Documents and queries are analysed by the same rules, so a query can produce every stored term.
(3) `pack` writes hashes in ascending order. Its first byte is the layout; `unpack` refuses other layouts.
(4) A text of stop words only is indexed by these, so that it can still be found.
(5) A name is always one of the terms of its text.

Late imports: few texts need it.
"""

import re
import struct
import unicodedata
from collections.abc import Collection, Iterator, Sequence
from functools import cache, lru_cache
from hashlib import blake2b
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from keepward.core.patterns import lazy_regex, load_toml
from keepward.ports.store import TERMS_HEADER
from keepward.retrieval.time_expressions import MONTHS, WEEKDAYS

#: Stop words and families of irregular forms.
WORDS: Final[dict[str, Any]] = load_toml(__package__, "words.toml")
#: Layout of a packed blob: version byte, uint32 document length, n ascending uint32 hashes, n bytes of a count
#: in the low seven bits and whether the term is a name in the high one.
PACK_VERSION: Final = 2
_MAX_TERM_COUNT: Final = 0x7F
_NAME: Final = 0x80
#: After these, a capital letter starts a sentence, a line or a quotation, so it does not mark a name.
_OPENING: Final = frozenset(".!?:;\n\r\"'“”‘„«»([{-–—*•>|。！？…")
#: The period of a title ends no sentence: what follows it is a name.
_TITLE: Final = lazy_regex(r"\b(?:dr|dra|mr|mrs|ms|prof|sr|sra|mme)\.$", re.IGNORECASE)
#: Capitalised words of dates are not names: two memories of the same month may have nothing else in common.
_DATES: Final = frozenset(word.casefold() for word in (*MONTHS, *WEEKDAYS))
_LONGEST_TERM: Final = 64
#: Features of a text that are stored like terms: it states a preference; it ends in a question.
PREFERENCE_TERM: Final = "\0wish"
QUESTION_TERM: Final = "\0asks"

# Scripts written without spaces between words; Hangul is among them because its words carry particles.
_UNSPACED: Final = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u1100-\u11ff\u3040-\u30ff\u3130-\u318f\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff\u3005\u3007"
)
_HAN: Final = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
# In Japanese, a single Han character between others is a word, and the characters next to it are grammar.
_LONE_HAN: Final = lazy_regex(f"(?<![{_HAN}])[{_HAN}](?![{_HAN}])")
# `re` does not treat vowel signs of Indic scripts as word characters; without this a word would be split.
_LETTER: Final = rf"(?:(?![{_UNSPACED}])(?:[^\W_]|[\u0300-\u036f\u0900-\u0dff]))"
_TOKEN: Final = lazy_regex(rf"[{_UNSPACED}]+|{_LETTER}+(?:[_.\-/:@#'’,+]+{_LETTER}+)*")
_ASCII_TOKEN: Final = lazy_regex(r"[A-Za-z0-9]+(?:[_.\-/:@#',+]+[A-Za-z0-9]+)*")
_JOINT: Final = lazy_regex(r"[_.\-/:@#'’,+]+")
_CAMEL: Final = lazy_regex(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+")
_CLITIC: Final = lazy_regex(r"(?:n['’]t|['’](?:s|m|re|ve|ll|d|t))$", re.IGNORECASE)
_THOUSANDS: Final = lazy_regex(r"[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]+)?$")
_ORDINAL: Final = lazy_regex(r"([0-9]+)(?:st|nd|rd|th)$")
_UNSPACED_START: Final = lazy_regex(f"[{_UNSPACED}]")


def _bases() -> dict[str, str]:
    forms: dict[str, str] = {}
    for family in WORDS["families"].replace("\n", "|").split("|"):
        base, *others = family.split() or [""]
        for form in others:
            forms.setdefault(form, base)
    return {form: forms.get(base, base) for form, base in forms.items() if form != forms.get(base, base)}


STOP_WORDS: Final = frozenset(WORDS["stop"].split())
#: Irregular form -> base; a base is never an irregular form itself.
IRREGULAR: Final = _bases()


@cache
def _stemmer() -> Any:
    try:
        import Stemmer
    except ImportError:
        # There is no wheel for this system or Python. The same algorithm in Python takes longer.
        import snowballstemmer

        return snowballstemmer.stemmer("english")
    # The caller caches words, so that folding and irregular forms are cached too.
    return Stemmer.Stemmer("english", 0)


def _fold(text: str) -> str:
    if text.isascii():
        return text.lower()
    decomposed = unicodedata.normalize("NFD", unicodedata.normalize("NFKC", text).casefold())
    return unicodedata.normalize("NFC", re.sub(r"[\u0300-\u036f]", "", decomposed))


def _word(part: str) -> str:
    folded = _fold(part)[:_LONGEST_TERM]
    if not folded.isascii():
        return folded
    if not folded.isalpha():
        ordinal = _ORDINAL.match(folded)
        return ordinal.group(1) if ordinal else folded
    stem: str = _stemmer().stemWord(IRREGULAR.get(folded, folded))
    return stem


def _identifier(token: str, parts: Sequence[str]) -> bool:
    """Whether a token is one identifier (`user_id`, `ABC-12`, `node.js`, `getUser`), not a compound word."""
    if len(parts) == 1:
        return False
    return any(c.isdigit() for c in token) or any(c in "_./:@#" for c in token) or "-" not in token


@lru_cache(maxsize=32_768)
def _token_terms(token: str) -> tuple[tuple[str, bool], ...]:
    """Terms of one token, each with whether it is a stop word."""
    if _UNSPACED_START.match(token):
        token = _fold(token)
        if len(token) == 1:
            return ((token, False),)
        grams = [token[i : i + 2] for i in range(len(token) - 1)]
        return tuple((gram, False) for gram in (*grams, *_LONE_HAN.findall(token)))
    if _THOUSANDS.match(token):
        return ((token.replace(",", ""), False),)
    token = _CLITIC.sub("", token)
    pieces = [p for p in _JOINT.split(token) if p]
    parts: list[str] = []
    for piece in pieces:
        # "10km" and "sha256" are not split: only a change of case inside a token separates words.
        camel = _CAMEL.findall(piece) if piece.isascii() and re.search("[a-z][A-Z]", piece) else []
        parts.extend(camel if len(camel) > 1 else [piece])
    found = [(_word(p), len(pieces) == 1 and _fold(p) in STOP_WORDS) for p in parts]
    if _identifier(token, parts):
        found.append((_fold(token)[:_LONGEST_TERM], False))
    return tuple((term, stop) for term, stop in found if term)


class Analysed(NamedTuple):
    """The result of one pass over a text: index terms in reading order, with repetitions."""

    kept: list[str]
    #: English stop words; they are used only if there are no other terms.
    stopped: list[str]
    #: Terms that look like names of people or things.
    names: set[str]

    @property
    def terms(self) -> list[str]:
        return self.kept or self.stopped


def analyse(text: str, *, dates: bool = False) -> Analysed:
    """Analyse a text: folded (NFKC, case, accents), stop words apart, English words stemmed.

    An identifier gives its parts and then its whole; scripts without spaces give character bigrams, the single
    character of a run of one, and single Han characters between others. Names are words with a capital letter inside
    a sentence (days and months only where `dates`), and identifiers as a whole. In a language that writes all its nouns
    so, those are names too; in one without capitals, identifiers alone are.
    """
    kept: list[str] = []
    stopped: list[str] = []
    names: set[str] = set()
    for match in _matches(text):
        token = match.group()
        pairs = _token_terms(token)
        for term, stop in pairs:
            (stopped if stop else kept).append(term)
        if token.islower() and token.isalpha():
            continue
        own = [term for term, stop in pairs if not stop]
        if len(own) > 1 and own[-1] == _fold(_CLITIC.sub("", token))[:_LONGEST_TERM]:
            names.add(own[-1])
        elif token[0].isupper() and (dates or _fold(token) not in _DATES) and not _opens(match):
            names.update(own)
    return Analysed(kept, stopped, names)


def _matches(text: str) -> Iterator[re.Match[str]]:
    return _ASCII_TOKEN.finditer(text) if text.isascii() else _TOKEN.finditer(unicodedata.normalize("NFKC", text))


def terms(text: str) -> list[str]:
    """Return the index terms of a text; its stop words if it has no other terms."""
    return analyse(text).terms


def adds_qualifier(query: Collection[str], older: str, newer: str) -> bool:
    """Whether the newer text puts another word before a word of the query: "the staging API" for "the API".

    ``query`` are terms. Such a text is about another thing, and does not replace the older one.
    """
    known = {*query, *analyse(older).kept}
    pairs = [(before, word) for before, word in _neighbours(newer) if word in query]
    return any(before not in known for before, _ in pairs) and not any(
        before not in query for before, word in _neighbours(older) if word in query
    )


def _neighbours(text: str) -> Iterator[tuple[str, str]]:
    """Yield the terms of neighbouring words that are no stop words, with nothing but a space between them."""
    last: tuple[str, int] | None = None
    for match in _matches(text):
        content = [term for term, stop in _token_terms(match.group()) if not stop]
        if content and last is not None and match.string[last[1] : match.start()] == " ":
            yield last[0], content[0]
        last = (content[-1], match.end()) if content else None


def _opens(match: re.Match[str]) -> bool:
    """Whether a word is at a position where every word has a capital letter."""
    before = match.string[max(0, match.start() - 8) : match.start()].rstrip(" \t")
    return not before or (before[-1] in _OPENING and _TITLE.search(before) is None)


def is_gram(term: str) -> bool:
    """Whether the term is a piece of a script without spaces."""
    return _UNSPACED_START.match(term) is not None


@lru_cache(maxsize=65_536)
def term_hash(term: str) -> int:
    """Hash a term to 32 bits: blake2b, little-endian, equal on every machine."""
    return int.from_bytes(blake2b(term.encode("utf-8", "surrogatepass"), digest_size=4).digest(), "little")


def pack(terms: Sequence[str], names: Collection[str] = (), *, marker_terms: Collection[str] = ()) -> bytes:
    """Pack terms to 5 + 5n bytes for n different terms; counts stop at 127, the length does not.

    `marks` are not terms of the text, so they do not count in its length.
    """
    counts: dict[int, int] = {}
    for term in terms:
        key = term_hash(term)
        counts[key] = counts.get(key, 0) + 1
    for mark in marker_terms:
        counts[term_hash(mark)] = 1
    hashes = sorted(counts)
    named = set(map(term_hash, names))
    tallies = bytes([min(counts[key], _MAX_TERM_COUNT) | (_NAME if key in named else 0) for key in hashes])
    header = TERMS_HEADER.pack(PACK_VERSION, min(len(terms), 0xFFFF_FFFF))
    return header + struct.pack(f"<{len(hashes)}I", *hashes) + tallies


def has_current_layout(blob: bytes) -> bool:
    """Whether packed terms have the layout of `unpack`; empty or older ones are analysed again."""
    return len(blob) >= TERMS_HEADER.size and blob[0] == PACK_VERSION


def unpack_many(
    blobs: Sequence[bytes],
) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint8], npt.NDArray[np.bool_], list[int], npt.NDArray[np.float32]]:
    """Return the joined hashes, counts and name flags of many blobs (hashes ascending in each), their numbers of terms,
    and their document lengths.

    Raises:
        ValueError: a blob has another layout version, or is truncated.
    """
    start = TERMS_HEADER.size
    if any(len(blob) < start or blob[0] != PACK_VERSION or (len(blob) - start) % 5 for blob in blobs):
        raise ValueError("these packed terms were written by another version: run `keepward reindex`")
    sizes = [(len(blob) - start) // 5 for blob in blobs]
    lengths = np.array([TERMS_HEADER.unpack_from(blob)[1] for blob in blobs], dtype=np.float32)
    hashes = b"".join([blob[start : start + 4 * size] for blob, size in zip(blobs, sizes, strict=True)])
    tallies = np.frombuffer(
        b"".join([blob[start + 4 * size :] for blob, size in zip(blobs, sizes, strict=True)]), dtype=np.uint8
    )
    return (
        np.frombuffer(hashes, dtype="<u4").astype(np.uint32, copy=False),
        np.bitwise_and(tallies, np.uint8(_MAX_TERM_COUNT)),
        tallies >= _NAME,
        sizes,
        lengths,
    )
