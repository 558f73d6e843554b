"""Vectors from hashed words and letters: the embedder that needs no model, no download and no extra package.

It is lexical, not semantic: texts are near when they share words, word pairs, parts of words, or (in scripts
written without spaces) pairs of characters. "car" and "automobile" are strangers to it.

Invariants
(1) One text gives the same bytes on every machine, in every process and in any batch: features are
    counted in integers, and the only inexact steps are one square root and one division, both IEEE 754.
(2) Every row has length 1; no text raises, not even an empty one or one with lone surrogates.
(3) Whatever changes a vector changes the revision in `id`.
"""

from __future__ import annotations

import math
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from hashlib import blake2b
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from keepward.core.patterns import lazy_regex

_REVISION = 1

#: Scripts written without spaces between words: runs of these are cut into single characters and pairs.
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"  # Thai and Lao, Burmese, Khmer
    "\u3040-\u30ff\u3100-\u312f\u31f0-\u31ff"  # kana, bopomofo
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # Han
)
_TOKEN = lazy_regex(rf"(?P<run>[{_UNSPACED}]+)|[^\W_{_UNSPACED}]+")

#: Weights in units of 1/16, so that sums stay integers (1).
_WORD, _SHORT_WORD, _PAIR, _PIECE, _CHARACTER, _CHARACTER_PAIR = 16, 4, 6, 3, 6, 16

#: 1 + ln(tf) in units of 1/64 for tf from 0 to 16, and 16 for more: written as integers because libm
#: may differ by a bit from machine to machine.
_SUBLINEAR = (0, 64, 108, 134, 153, 167, 179, 189, 197, 205, 211, 217, 223, 228, 233, 237, 241)


class HashedEmbedder:
    """Signed feature hashing with sublinear counts; deterministic, lexical, not semantic.

    Good enough to find near-duplicates and texts that share rare words; use a trained model for meaning.

    Raises:
        ValueError: `dim` < 16, below which almost every feature collides.
    Source: Weinberger et al. (2009), "Feature Hashing for Large Scale Multitask Learning"; pieces of words as
    in Bojanowski et al. (2017), "Enriching Word Vectors with Subword Information".
    """

    #: It takes so little time that a text is embedded inside of a transaction.
    in_transaction = True

    def __init__(self, dim: int = 384) -> None:
        if dim < 16:
            raise ValueError(f"dim must be at least 16, not {dim}")
        self.dim = dim

    @property
    def id(self) -> str:
        """Name, revision and dimension: equal exactly when vectors can be compared."""
        return f"hashed:{_REVISION}:{self.dim}"

    @property
    def cosine_scale(self) -> tuple[float, float]:
        """What ``services.search.features.model_scale`` measures: mean and deviation of cosines of unrelated texts.

        A feature has a random index and sign, so that the deviation is near ``1 / sqrt(dim)``.
        """
        return 0.0, round(1.08 / math.sqrt(self.dim), 3)

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return float32, shape (len(texts), dim), L2-normalised rows, in the order of `texts`."""
        rows = np.zeros((len(texts), self.dim), dtype=np.float32)
        for row, text in zip(rows, texts, strict=True):
            sums = np.zeros(self.dim, dtype=np.int64)
            for (feature, weight), times in Counter(_features(text)).items():
                index, sign = _slot(feature, self.dim)
                sums[index] += sign * weight * _SUBLINEAR[min(times, len(_SUBLINEAR) - 1)]
            # Nothing countable (blank, punctuation, emoji), or everything cancelled by an accident of signs: the
            # complete text becomes the one feature, so that equal texts have equal vectors and (2) holds.
            if not sums.any():
                index, sign = _slot("t:" + text.strip(), self.dim)
                sums[index] = sign
            row[:] = (sums / math.sqrt(int(sums @ sums))).astype(np.float32)
        return rows


def _features(text: str) -> Iterator[tuple[str, int]]:
    """Yield each occurrence of a feature with its weight."""
    previous = ""
    for match in _TOKEN.finditer(unicodedata.normalize("NFKC", text).casefold()):
        token = match.group()
        if match["run"]:
            for character in token:
                yield "c:" + character, _CHARACTER
            for pair in pairwise(token):
                yield "c:" + "".join(pair), _CHARACTER_PAIR
            previous = ""
            continue
        yield from _of_word(token)
        if previous:
            yield f"p:{previous} {token}", _PAIR
        previous = token


@lru_cache(maxsize=16_384)
def _of_word(word: str) -> tuple[tuple[str, int], ...]:
    # Very short words are mostly grammar in every spaced script; numbers are names however short they are.
    short = len(word) < 4 and not any(character.isdigit() for character in word)
    features = [("w:" + word, _SHORT_WORD if short else _WORD)]
    if not short:
        # A word of thousands of letters is data, not language; its start is enough to recognise it.
        edged = f"<{word[:40]}>"
        features += [
            ("g:" + edged[at : at + size], _PIECE) for size in (3, 4, 5) for at in range(len(edged) - size + 1)
        ]
    return tuple(features)


@lru_cache(maxsize=131_072)
def _slot(feature: str, dim: int) -> tuple[int, int]:
    """Return the index (0 to dim - 1) and the sign (1 or -1) of a feature."""
    digest = int.from_bytes(blake2b(feature.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big")
    return (digest >> 1) % dim, 1 if digest & 1 else -1
