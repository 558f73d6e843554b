"""A linear classifier of prompt injections, over hashed words and letter n-grams.

The score of a piece of text is the sum of the weights of its features, each counted once, divided by the square root of
their number. For example, "tell", "the user that" and the letters "ransf" of "transfer" are features. ``python -m
evals.weights`` learns the weights. They are integers, so every platform computes the same score. The classifier knows
only the languages of its training texts.
"""

from __future__ import annotations

import functools
import io
import math
import pkgutil
import re
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Hashes = npt.NDArray[np.uint64]

#: Maximum characters of a text that are scored, and of one piece.
MAX_CHARACTERS, PIECE_CHARACTERS = 6_144, 320
#: Maximum number of scored pieces of a text.
MAX_PIECES = 64
#: Lengths of the letter n-grams, and bits of the hash that names a weight.
NGRAM_LENGTHS, HASH_BITS = (3, 4, 5), 16
_SENTENCE_END = re.compile(r"(?<=[.!?。;])\s+|\n+")
#: Odd base of the rolling hash: the hash of a substring is the difference of the hashes of two prefixes.
_BASE = 0xD6E8FEB86659FD93
_MIX, _NEXT, _AFTER_NEXT = (np.uint64(each) for each in (0x9E3779B97F4A7C15, 0xA24BAED4963EE407, 0x9FB21C651E98DF25))


class Piece(NamedTuple):
    """The piece of a text with the highest score: its half-open span and its score. Above 0 means an injection."""

    start: int
    end: int
    score: float


class _Model:
    def __init__(self, data: bytes) -> None:
        with np.load(io.BytesIO(data)) as table:
            self.weights: npt.NDArray[np.int8] = table["weights"]
            self.scale, self.bias = (float(each) for each in table["scale_and_bias"])


@functools.cache
def _model() -> _Model:
    return _Model(pkgutil.get_data(__package__, "injection.npz") or b"")


def _powers(base: int) -> Hashes:
    powers = np.full(MAX_CHARACTERS + 3, base, np.uint64)
    powers[0] = 1
    return np.multiply.accumulate(powers)


_POWERS, _INVERSES = _powers(_BASE), _powers(pow(_BASE, -1, 1 << 64))
#: The code of each code point: that of 0 for a digit, of a blank for a sign beyond ASCII, else its own.
_CODES = np.arange(1 << 16, dtype=np.uint64)
_CODES[ord("0") : ord("9") + 1] = ord("0")
for _first, _last in ((0, 0x20), (0x7F, 0xBF), (0x2000, 0x206F), (0x3000, 0x3004), (0x3008, 0x301F), (0xFF00, 0xFF0F)):
    _CODES[_first : _last + 1] = ord(" ")
_IS_WORD = np.ones(1 << 16, np.bool_)
_IS_WORD[:128] = [chr(code).isalnum() for code in range(128)]


def features(text: str) -> tuple[Ints, Ints]:
    """Return the position and the weight's index of each word, of two and three words in a row, and of each n-gram."""
    given = np.frombuffer(
        f" {text[:MAX_CHARACTERS].lower()[:MAX_CHARACTERS]} ".encode("utf-32-le", "replace"), np.uint32
    )
    codes = _CODES[given & 0xFFFF]
    begins = np.zeros(len(codes) + 1, np.uint64)
    np.cumsum((codes + np.uint64(1)) * _POWERS[: len(codes)], out=begins[1:])
    is_word = _IS_WORD[codes]
    edges = np.flatnonzero(is_word[1:] != is_word[:-1]) + 1
    starts, ends = edges[::2], edges[1::2]
    words = (begins[ends] - begins[starts]) * _INVERSES[starts]
    positions = [starts, starts[:-1], starts[:-2]]
    hashes = [words, words[:-1] * _NEXT + words[1:], words[:-2] * _AFTER_NEXT + words[2:]]
    for length in NGRAM_LENGTHS:
        count = max(0, len(codes) - length + 1)
        positions.append(np.arange(count))
        hashes.append((begins[length:] - begins[:count]) * _INVERSES[:count] + np.uint64(length))
    numbers = (np.concatenate(hashes) * _MIX) >> np.uint64(64 - HASH_BITS)
    return np.concatenate(positions), numbers.astype(np.int64)


def pieces(text: str) -> list[tuple[int, int]]:
    """Return the scored spans: a short text as one, else each sentence with the following ones that fit."""
    end = min(len(text), MAX_CHARACTERS)
    if end <= PIECE_CHARACTERS:
        return [(0, end)]
    starts = [0, *(match.end() for match in _SENTENCE_END.finditer(text, 0, end))]
    stops = [*starts[1:], end]
    found: list[tuple[int, int]] = []
    last = 0
    for index, start in enumerate(starts):
        last = max(last, index)
        while last + 1 < len(stops) and stops[last + 1] - start <= PIECE_CHARACTERS:
            last += 1
        if not found or stops[last] > found[-1][1]:
            found.append((start, stops[last]))
    return found[:MAX_PIECES]


def most_injection_like(text: str) -> Piece:
    """Return the piece of a text with the highest score; ``text`` is in its normal form."""
    model = _model()
    positions, numbers = features(text)
    spans = pieces(text)
    if len(spans) > 1:
        order = np.argsort(positions, kind="stable")
        positions, numbers = positions[order], numbers[order]
    best = Piece(0, 0, -math.inf)
    for start, end in spans:
        within = numbers[slice(*np.searchsorted(positions, (start, end + 1)))] if len(spans) > 1 else numbers
        found = model.weights[np.unique(within)]
        # A sum of integers is the same in any order.
        score = int(found.sum(dtype=np.int64)) * model.scale / math.sqrt(len(found) or 1) + model.bias
        if score > best.score:
            best = Piece(start, end, score)
    return best
