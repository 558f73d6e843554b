"""Unit vectors in 440 bytes: sign bits to find candidates, 8-bit components to score them.

Invariants
(1) a vector is quantised once, by `quantise`; a packed vector and the float32 it came from index alike.
(2) dot products are exact integers held in float32 (|x| * |q| < 2**24, so is every partial sum), so neither
    the row a vector stands in nor the order of summation changes a bit of a score.
(3) a cut through equal Hamming distances keeps all of them, so candidates do not depend on row order.
(4) vectors of different models live in different `VectorIndex`s and never meet.
"""

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from keepward.ports.store import VECTORS_HEADER
from keepward.retrieval.columns import GrowableArray, Mask, Places, Rows

Floats = npt.NDArray[np.float32]
Counts = npt.NDArray[np.int64]

PACK_VERSION: Final = 1
_EXACT: Final = float(2**24)
#: Vectors from which their mean is half known.
_KNOWN_FROM: Final = 30.0


def quantise(units: Floats) -> tuple[npt.NDArray[np.int8], Floats]:
    """Round unit vectors (n, dim) to mid-rise 8-bit codes and steps: x ~ (code + 0.5) * step.

    There is no zero code, so the sign of every component survives. Vectors are L2-normalised first; a zero
    vector gets step 0.
    """
    units = np.ascontiguousarray(units, dtype=np.float32)
    peaks = np.maximum(units.max(axis=1, initial=0.0), -units.min(axis=1, initial=0.0))
    fine = np.where(peaks > 0, np.float32(128.0) / np.where(peaks > 0, peaks, 1), 0).astype(np.float32)
    scaled = units * fine[:, None]
    np.floor(scaled, out=scaled)
    np.clip(scaled, -128, 127, out=scaled)
    codes = scaled.astype(np.int8)
    scaled += np.float32(0.5)
    # The step that brings the cosine of the code with its own vector to 1.
    norms = np.sqrt(np.einsum("ij,ij->i", units, units))
    along = np.einsum("ij,ij->i", scaled, units)
    return codes, np.where(along > 0, norms / np.where(along > 0, along, 1), 0).astype(np.float32)


def pack(units: Floats) -> bytes:
    """Pack float32 (n, dim) to 8 + n * (dim + 4) bytes, a quarter of the floats, as the index keeps them."""
    codes, steps = quantise(units)
    return (
        VECTORS_HEADER.pack(PACK_VERSION, 0, codes.shape[1], codes.shape[0])
        + steps.astype("<f4").tobytes()
        + codes.tobytes()
    )


def unpack_many(blobs: Sequence[bytes]) -> Iterator[tuple[int, Places, npt.NDArray[np.int8], Floats]]:
    """Yield, for each dimension among packed blobs, the blob that each vector is of, all codes and all steps.

    Raises:
        ValueError: a blob is of another layout version, or cut short.
    """
    heads = [VECTORS_HEADER.unpack_from(blob) if len(blob) >= VECTORS_HEADER.size else (0, 0, 0, 0) for blob in blobs]
    by_dim: dict[int, list[int]] = {}
    for place, (blob, (version, _, dim, n)) in enumerate(zip(blobs, heads, strict=True)):
        if version != PACK_VERSION or len(blob) != VECTORS_HEADER.size + n * (dim + 4):
            what = "are cut short" if version == PACK_VERSION else "were written by another version"
            raise ValueError(f"these packed vectors {what}: run `keepward reindex`")
        if n:
            by_dim.setdefault(dim, []).append(place)
    for dim, places in by_dim.items():
        counts = [heads[place][3] for place in places]
        ends = [VECTORS_HEADER.size + 4 * n for n in counts]
        steps = b"".join([blobs[place][VECTORS_HEADER.size : end] for place, end in zip(places, ends, strict=True)])
        codes = b"".join([blobs[place][end:] for place, end in zip(places, ends, strict=True)])
        yield (
            dim,
            np.repeat(np.array(places, dtype=np.intp), counts),
            np.frombuffer(codes, dtype=np.int8).reshape(-1, dim),
            np.frombuffer(steps, dtype="<f4").astype(np.float32, copy=False),
        )


def unpack(blob: bytes) -> Floats:
    """Return the packed vectors as float32 (n, dim), equal to the originals within 1 % of a component."""
    for _, _, codes, steps in unpack_many([blob]):
        return _floats(codes, steps)
    return np.zeros((0, VECTORS_HEADER.unpack_from(blob)[2]), dtype=np.float32)


def _floats(codes: npt.NDArray[np.int8], steps: Floats) -> Floats:
    return np.asarray((codes.astype(np.float32) + np.float32(0.5)) * steps[:, None], dtype=np.float32)


def sign_bits(codes: npt.NDArray[np.int8]) -> npt.NDArray[np.uint64]:
    """Sign bits of codes (n, dim) as uint64 (n, ceil(dim / 64)); padding bits are 0."""
    n, dim = codes.shape
    words = -(-dim // 64)
    packed = np.zeros((n, words * 8), dtype=np.uint8)
    packed[:, : -(-dim // 8)] = np.packbits(codes >= 0, axis=1)
    return packed.view(np.uint64)


class SignStatistics(NamedTuple):
    """The signs of many vectors in numbers: what they have in common shows in them."""

    #: By component, how many vectors are not negative there.
    ones: Counts
    #: Vectors.
    units: int

    def mean_cosine(self, query: Floats) -> float:
        """Return the cosine to expect of the vectors to a query."""
        differing = int(np.where(query >= 0, self.units - self.ones, self.ones).sum())
        dim = len(self.ones)
        return round(float(expected_cosine(dim)[round(differing / self.units)]), 6)

    def estimated_mean(self) -> npt.NDArray[np.float64]:
        """Return the mean of the vectors, nearly, as far as their number tells it from chance.

        A component spreads about its mean like a normal variable, by 1 / sqrt(dim): from how often it is not
        negative follows how far the mean is from 0.
        """
        lean = 2.0 * self.ones / self.units - 1.0
        known = self.units / (self.units + _KNOWN_FROM)
        return np.asarray(lean * (known * math.sqrt(math.pi / (2.0 * len(self.ones)))), dtype=np.float64)


def _ones(codes: npt.NDArray[np.int8]) -> Counts:
    """By component, how many codes are not negative."""
    total = np.zeros(codes.shape[1], dtype=np.int64)
    positive = (codes >= 0).view(np.uint8)
    # Sums of so many stay in a byte, which is several times faster.
    for start in range(0, len(codes), 255):
        total += positive[start : start + 255].sum(axis=0, dtype=np.uint8)
    return total


class VectorIndex:
    """The unit vectors of one model: codes, steps, sign bits by column, and the row that owns each."""

    __slots__ = ("_bits", "_codes", "_ones", "_owners", "_steps", "dim")

    def __init__(self, dim: int) -> None:
        self.dim = dim
        self._codes = GrowableArray(np.int8, (dim,))
        self._steps = GrowableArray(np.float32)
        self._owners = GrowableArray(np.int32)
        self._bits = [GrowableArray(np.uint64) for _ in range(-(-dim // 64))]
        self._ones = np.zeros(dim, dtype=np.int64)

    def __len__(self) -> int:
        return len(self._owners)

    @property
    def owners(self) -> Rows:
        """Row of each unit, ascending: the units of a row stand together."""
        return self._owners.view

    @property
    def nbytes(self) -> int:
        return sum(a.nbytes for a in (self._codes, self._steps, self._owners, *self._bits))

    def extend(self, owners: Rows, codes: npt.NDArray[np.int8], steps: Floats) -> None:
        self._owners.extend(owners)
        self._codes.extend(codes)
        self._ones = self._ones + _ones(codes)
        self._steps.extend(steps)
        for growable, words in zip(self._bits, sign_bits(codes).T, strict=True):
            growable.extend(words)

    def renumber(self, new_rows: Rows) -> None:
        """Move to new row numbers (index: old row; -1: drop its units)."""
        moved = new_rows[self.owners]
        for growable in (self._codes, self._steps, *self._bits):
            growable.put(growable.view[moved >= 0])
        self._owners.put(moved[moved >= 0])
        self._ones = _ones(self._codes.view)

    def signs(self, mask: Mask) -> SignStatistics:
        """Return the signs of the units of the rows in a mask, in numbers."""
        kept = mask[self.owners]
        count = int(np.count_nonzero(kept))
        if 2 * count < len(kept):
            return SignStatistics(_ones(self._codes.view[kept]), count)
        return SignStatistics(self._ones - _ones(self._codes.view[~kept]), count)

    def hamming(self, query: Floats) -> npt.NDArray[np.uint16]:
        """Differing sign bits of every unit to the query, 0..dim."""
        # A code is negative where its component is, so the query needs no codes to have its signs.
        bits = sign_bits(np.where(query >= 0, 0, -1).astype(np.int8)[None, :])[0]
        distance = np.zeros(len(self), dtype=np.uint16)
        for column, growable in enumerate(self._bits):
            distance += np.bitwise_count(growable.view ^ bits[column])
        return distance

    def cosines(self, query: Floats, units: Places) -> Floats:
        """Cosine of each of these units to the query, error below 0.002; exact sums, see invariant (2)."""
        norm = math.sqrt(float(np.dot(query.astype(np.float64), query.astype(np.float64))))
        if norm == 0.0 or not len(units):
            return np.zeros(len(units), dtype=np.float32)
        # The largest norm a code vector can have is 128 * sqrt(dim); the query gets what 2**24 leaves, less
        # its own rounding.
        scale = _EXACT / (128.0 * math.sqrt(self.dim)) - math.sqrt(self.dim)
        whole = np.rint(query.astype(np.float64) * (scale / norm)).astype(np.float32)
        dots = self._codes.view.take(units, axis=0).astype(np.float32) @ whole
        half = 0.5 * float(whole.sum(dtype=np.float64))
        return np.asarray(
            (dots.astype(np.float64) + half) * (self._steps.view[units].astype(np.float64) / scale),
            dtype=np.float32,
        )

    def pairwise_cosines(self, units: Places) -> npt.NDArray[np.float64]:
        """Cosine of each of these units to each, (n, n); exact sums, see invariant (2)."""
        codes = self._codes.view[units].astype(np.float64)
        sums = codes.sum(axis=1)
        steps = self._steps.view[units].astype(np.float64)
        dots = codes @ codes.T + 0.5 * (sums[:, None] + sums[None, :]) + 0.25 * self.dim
        return np.asarray(dots * (steps[:, None] * steps[None, :]), dtype=np.float64)

    def floats(self, units: Places) -> Floats:
        """Return these units as float32 (n, dim), equal to the originals within 1 % of a component."""
        return _floats(self._codes.view[units], self._steps.view[units])

    def spans(self, rows: Places) -> tuple[Places, Places]:
        """Return the first unit of each row, or of what comes behind it where it has none, and how many it has."""
        # Looked for as numbers of another size, all owners would be converted to that first.
        sought, owners = rows.astype(np.int32), self.owners
        first = owners.searchsorted(sought)
        return first, owners.searchsorted(sought, side="right") - first

    def best(self, query: Floats, rows: Places) -> tuple[Floats, Places]:
        """Highest cosine among the units of each row, and how many units it has (none: cosine 0)."""
        first, counts = self.spans(rows)
        best = np.zeros(len(rows), dtype=np.float32)
        some = np.flatnonzero(counts)
        if len(some):
            starts = np.cumsum(counts[some]) - counts[some]
            units = np.repeat(first[some] - starts, counts[some]) + np.arange(int(counts.sum()))
            best[some] = np.maximum.reduceat(self.cosines(query, units), starts)
        return best, counts


def nearest(distance: npt.NDArray[np.uint16], k: int, dim: int) -> Places:
    """Units of the k smallest distances and everything equal to the last of them, in row order."""
    if len(distance) <= k:
        return np.arange(len(distance))
    counts = np.bincount(distance, minlength=dim + 2)
    limit = int(np.searchsorted(np.cumsum(counts), k))
    return np.flatnonzero(distance <= limit)


@lru_cache(maxsize=8)
def expected_cosine(dim: int) -> Floats:
    """Cosine to expect at each Hamming distance 0..dim: cos(pi * h / dim).

    Source: Charikar (2002), "Similarity Estimation Techniques from Rounding Algorithms".
    """
    return np.cos(np.pi * np.arange(dim + 1) / dim).astype(np.float32)
