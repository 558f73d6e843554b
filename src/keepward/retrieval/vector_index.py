"""Unit vectors in 440 bytes at 384 dimensions: sign bits to find candidates, 8-bit components to score them.

Invariants
(1) A vector is quantised once, by `quantise`; a packed vector and its original float32 vector are indexed alike.
(2) Dot products are exact integers in float32, because |x| * |q| and every partial sum are below 2**24. So neither the
    row number nor the order of summation changes a score.
(3) A limit among equal Hamming distances includes all of them, so candidates do not depend on the order of rows.
(4) Vectors of different models are in different `VectorIndex` objects and are never compared.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from keepward.ports.index_parts import Part, StoredPart
from keepward.ports.store import VECTORS_HEADER
from keepward.retrieval.columns import BLOCK_BYTES, Floats, GrowableArray, Indices, Mask, Rows

Counts = npt.NDArray[np.int64]

PACK_VERSION: Final = 1
_EXACT: Final = float(2**24)
#: With this many vectors, their estimated mean counts half.
_KNOWN_FROM: Final = 30.0


def quantise(units: Floats) -> tuple[npt.NDArray[np.int8], Floats]:
    """Round unit vectors (n, dim) to mid-rise 8-bit codes and steps: x ~ (code + 0.5) * step.

    No code stands for zero, so the sign of every component survives. A zero vector gets step 0.
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
    """Pack float32 (n, dim) to 8 + n * (dim + 4) bytes, about a quarter of the size, in the format of the index."""
    codes, steps = quantise(units)
    return (
        VECTORS_HEADER.pack(PACK_VERSION, 0, codes.shape[1], codes.shape[0])
        + steps.astype("<f4").tobytes()
        + codes.tobytes()
    )


def unpack_many(blobs: Sequence[bytes]) -> Iterator[tuple[int, Indices, npt.NDArray[np.int8], Floats]]:
    """Yield for each dimension among packed blobs the blob number of each vector, all codes and all steps.

    Raises:
        ValueError: a blob is of another layout version, or cut short.
    """
    heads = [VECTORS_HEADER.unpack_from(blob) if len(blob) >= VECTORS_HEADER.size else (0, 0, 0, 0) for blob in blobs]
    by_dim: dict[int, list[int]] = {}
    for number, (blob, (version, _, dim, n)) in enumerate(zip(blobs, heads, strict=True)):
        if version != PACK_VERSION or len(blob) != VECTORS_HEADER.size + n * (dim + 4):
            problem = "are truncated" if version == PACK_VERSION else "were written by another version"
            raise ValueError(f"these packed vectors {problem}: run `keepward reindex`")
        if n:
            by_dim.setdefault(dim, []).append(number)
    for dim, numbers in by_dim.items():
        counts = [heads[number][3] for number in numbers]
        ends = [VECTORS_HEADER.size + 4 * n for n in counts]
        steps = b"".join([blobs[number][VECTORS_HEADER.size : end] for number, end in zip(numbers, ends, strict=True)])
        codes = b"".join([blobs[number][end:] for number, end in zip(numbers, ends, strict=True)])
        yield (
            dim,
            np.repeat(np.array(numbers, dtype=np.intp), counts),
            np.frombuffer(codes, dtype=np.int8).reshape(-1, dim),
            np.frombuffer(steps, dtype="<f4").astype(np.float32, copy=False),
        )


def unpack(blob: bytes) -> Floats:
    """Return the packed vectors as float32 (n, dim), equal to the originals within 1 % of their largest component."""
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
    """Counts of the signs of many vectors, from which their mean can be estimated."""

    #: For each component, how many vectors have a value of 0 or more there.
    ones: Counts
    #: Number of vectors.
    units: int

    def mean_cosine(self, query: Floats) -> float:
        """Return the expected cosine of the vectors to a query."""
        differing = int(np.where(query >= 0, self.units - self.ones, self.ones).sum())
        dim = len(self.ones)
        return round(float(expected_cosine(dim)[round(differing / self.units)]), 6)

    def estimated_mean(self) -> npt.NDArray[np.float64]:
        """Return an estimate of the mean of the vectors, closer to 0 the fewer they are.

        Assumption: a component is normally distributed with standard deviation 1 / sqrt(dim). Then the share of
        non-negative values determines the mean.
        """
        skew = 2.0 * self.ones / self.units - 1.0
        known = self.units / (self.units + _KNOWN_FROM)
        return np.asarray(skew * (known * math.sqrt(math.pi / (2.0 * len(self.ones)))), dtype=np.float64)


def _ones(codes: npt.NDArray[np.int8]) -> Counts:
    """Return, for each component, how many codes have a value of 0 or more there."""
    total = np.zeros(codes.shape[1], dtype=np.int64)
    positive = (codes >= 0).view(np.uint8)
    # Sums of 255 fit into a byte, which is several times faster.
    for start in range(0, len(codes), 255):
        total += positive[start : start + 255].sum(axis=0, dtype=np.uint8)
    return total


class VectorIndex:
    """The unit vectors of one model: codes, steps, sign bits by column, and the row that owns each."""

    __slots__ = ("_bits", "_codes", "_counted", "_ones", "_owners", "_steps", "dim")

    def __init__(self, dim: int, parts: Mapping[str, StoredPart] | None = None, name: str = "") -> None:
        """Make an index without vectors, or that of a file, whose parts have names that begin with ``name``."""
        stored = {part.removeprefix(name): each for part, each in (parts or {}).items() if part.startswith(name)}
        self.dim = dim
        self._codes = GrowableArray(np.int8, (dim,), stored=stored.get("codes"))
        self._steps = GrowableArray(np.float32, stored=stored.get("steps"))
        self._owners = GrowableArray(np.int32, stored=stored.get("owners"))
        self._bits = [GrowableArray(np.uint64, stored=stored.get(f"bits {n}")) for n in range(-(-dim // 64))]
        ones = GrowableArray(np.int64, stored=stored.get("ones"))
        self._ones = ones.view.copy() if len(ones) else np.zeros(dim, dtype=np.int64)
        #: The units that were counted last, and their counts: the next ones are mostly the same.
        self._counted: tuple[Mask, Counts] = np.zeros(0, dtype=np.bool_), np.zeros(dim, dtype=np.int64)

    def parts(self, name: str, new_rows: Rows) -> Iterator[Part]:
        """Yield what a file has. ``new_rows`` maps each row to its new number, or to -1 for rows to drop."""
        moved = new_rows[self.owners]
        units, dropped = np.flatnonzero(moved >= 0), np.flatnonzero(moved < 0)
        yield Part(
            name=f"{name}codes",
            chunks=self._codes.chunks(units),
            block=max(BLOCK_BYTES // self.dim, 1),
            grows=True,
        )
        yield Part(name=f"{name}steps", chunks=self._steps.chunks(units), grows=True)
        yield Part(name=f"{name}owners", chunks=[moved[units]], grows=True)
        for number, growable in enumerate(self._bits):
            yield Part(name=f"{name}bits {number}", chunks=growable.chunks(units), grows=True)
        yield Part(name=f"{name}ones", chunks=[self._ones - self._ones_of(dropped)])

    def __len__(self) -> int:
        return len(self._owners)

    @property
    def owners(self) -> Rows:
        """Row of each unit, in ascending order, so the units of a row are adjacent."""
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
        """Change the row numbers; ``new_rows`` maps old to new, and to -1 for rows whose units are dropped."""
        moved = new_rows[self.owners]
        for growable in (self._codes, self._steps, *self._bits):
            growable.put(growable.view[moved >= 0])
        self._owners.put(moved[moved >= 0])
        self._ones = _ones(self._codes.view)
        self._counted = np.zeros(0, dtype=np.bool_), np.zeros(self.dim, dtype=np.int64)

    def signs(self, mask: Mask) -> SignStatistics:
        """Return the sign statistics of the units of the rows in a mask."""
        chosen = mask[self.owners]
        count = int(np.count_nonzero(chosen))
        before, ones = self._counted
        before = np.pad(before, (0, len(chosen) - len(before)))
        changed = np.count_nonzero(before != chosen)
        if changed < min(count, len(chosen) - count):
            ones = ones + self._ones_of(np.flatnonzero(chosen & ~before))
            ones -= self._ones_of(np.flatnonzero(before & ~chosen))
        elif 2 * count < len(chosen):
            ones = self._ones_of(np.flatnonzero(chosen))
        else:
            ones = self._ones - self._ones_of(np.flatnonzero(~chosen))
        self._counted = chosen, ones
        return SignStatistics(ones, count)

    def _ones_of(self, units: Indices) -> Counts:
        """Return, for each component, how many of these vectors have a value of 0 or more there."""
        total = np.zeros(self.dim, dtype=np.int64)
        for codes in self._codes.chunks(units):
            total += _ones(codes)
        return total

    def hamming(self, query: Floats) -> npt.NDArray[np.uint16]:
        """Number of sign bits of every unit that differ from the query's, 0..dim."""
        # A code has the sign of its component, so the query need not be quantised.
        bits = sign_bits(np.where(query >= 0, 0, -1).astype(np.int8)[None, :])[0]
        distance = np.zeros(len(self), dtype=np.uint16)
        for column, growable in enumerate(self._bits):
            distance += np.bitwise_count(growable.view ^ bits[column])
        return distance

    def cosines(self, query: Floats, units: Indices) -> Floats:
        """Cosine of each of these units to the query, error below 0.002; exact sums, see invariant (2)."""
        norm = math.sqrt(float(np.dot(query.astype(np.float64), query.astype(np.float64))))
        if norm == 0.0 or not len(units):
            return np.zeros(len(units), dtype=np.float32)
        # The norm of a code vector is at most 128 * sqrt(dim); the query gets the rest of 2**24, less its own rounding.
        scale = _EXACT / (128.0 * math.sqrt(self.dim)) - math.sqrt(self.dim)
        scaled_query = np.rint(query.astype(np.float64) * (scale / norm)).astype(np.float32)
        dots = self._codes.take(units).astype(np.float32) @ scaled_query
        half = 0.5 * float(scaled_query.sum(dtype=np.float64))
        return np.asarray(
            (dots.astype(np.float64) + half) * (self._steps.view[units].astype(np.float64) / scale),
            dtype=np.float32,
        )

    def pairwise_cosines(self, units: Indices) -> npt.NDArray[np.float64]:
        """Cosine of each pair of these units, (n, n); exact sums, see invariant (2)."""
        codes = self._codes.take(units).astype(np.float64)
        sums = codes.sum(axis=1)
        steps = self._steps.view[units].astype(np.float64)
        dots = codes @ codes.T + 0.5 * (sums[:, None] + sums[None, :]) + 0.25 * self.dim
        return np.asarray(dots * (steps[:, None] * steps[None, :]), dtype=np.float64)

    def floats(self, units: Indices) -> Floats:
        """Return these units as float32 (n, dim), equal to the originals within 1 % of their largest component."""
        return _floats(self._codes.take(units), self._steps.view[units])

    def spans(self, rows: Indices) -> tuple[Indices, Indices]:
        """Return the first unit of each row and its number of units. A row without units gets that of a later row."""
        # With another integer type, numpy would convert all owners first.
        sought, owners = rows.astype(np.int32), self.owners
        first = owners.searchsorted(sought)
        return first, owners.searchsorted(sought, side="right") - first

    def best(self, query: Floats, rows: Indices) -> tuple[Floats, Indices]:
        """Highest cosine among the units of each row, and its number of units (without units: cosine 0)."""
        first, counts = self.spans(rows)
        best = np.zeros(len(rows), dtype=np.float32)
        some = np.flatnonzero(counts)
        if len(some):
            starts = np.cumsum(counts[some]) - counts[some]
            units = np.repeat(first[some] - starts, counts[some]) + np.arange(int(counts.sum()))
            best[some] = np.maximum.reduceat(self.cosines(query, units), starts)
        return best, counts


def nearest(distance: npt.NDArray[np.uint16], k: int, dim: int) -> Indices:
    """Units with the k smallest distances, and all that are equal to the last of them, in row order."""
    if len(distance) <= k:
        return np.arange(len(distance))
    counts = np.bincount(distance, minlength=dim + 2)
    limit = int(np.searchsorted(np.cumsum(counts), k))
    return np.flatnonzero(distance <= limit)


@lru_cache(maxsize=8)
def expected_cosine(dim: int) -> Floats:
    """Expected cosine for each Hamming distance 0..dim: cos(pi * h / dim).

    Source: Charikar (2002), "Similarity Estimation Techniques from Rounding Algorithms".
    """
    return np.cos(np.pi * np.arange(dim + 1) / dim).astype(np.float32)
