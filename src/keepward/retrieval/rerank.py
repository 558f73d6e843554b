"""Rerank: what feedback has taught about the order of candidates, as weights beside the fused score.

    score = fused + (the change, centred over the candidates)
    change = [q, 1] D m + w . parts

q and m are unit vectors of query and memory; the matrix D, of low rank, adds to the identity that the fused score
already holds as its cosine. Bilinear, because what is relevant depends on both sides; the row under 1 is what makes
a memory useful whatever is asked.

Invariants
(1) untrained weights are all zero, and then the order is the fused order, bit for bit.
(2) the same weights and candidates give the same scores in any process: dot products with memories are exact
    integers (see `vectors`), sums run in a fixed order, and scores are rounded to 1e-6.
(3) packed weights name their layout, and their name is the SHA-256 of all their bytes; what does not match is not
    loaded.
"""

import hashlib
import json
import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from keepward.retrieval.fusion import rounded

Floats = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]

#: Candidates that are put in order anew, at least.
DEPTH: Final = 200
#: What the weights `parts` stand for, in order: the parts of the fused score, then facts of the memory.
PARTS: Final = ("cover", "cosine", "feature", "session", "recency", "importance", "trust")
LAYOUT: Final = 1
_MAGIC: Final = b"KWRR"
_HEAD: Final = struct.Struct("<4sBI")
#: Age at which nothing is recent any more, in hours: ten years.
_OLD: Final = 87_660.0
_TRUST: Final = 7.0
_HOUR: Final = 3_600_000_000.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Weights:
    """What was learned; immutable."""

    #: Id of the embedder whose vectors `left` and `right` are for; None where there is none.
    model: str | None
    #: float32 (dim + 1, rank) and (rank, dim): D = left right; rank 0 where there are no vectors.
    left: Floats
    right: Floats
    #: float32 (len(PARTS),).
    parts: Floats
    #: Seed of the draws from the replay buffer.
    seed: int = 0
    #: Online steps taken, and the number of the last feedback that was seen.
    steps: int = 0
    seen: int = 0

    @property
    def dim(self) -> int:
        """Components of the vectors these weights are for; 0 for none."""
        return int(self.right.shape[1])

    def towards(self, query: Floats) -> Doubles:
        """Return [q, 1] D: the direction (dim,) in which memories gain for a query, of any length."""
        left = self.left.astype(np.float64)
        return np.asarray((query.astype(np.float64) @ left[:-1] + left[-1]) @ self.right.astype(np.float64))

    def change(self, near: Doubles, facts: Doubles) -> Doubles:
        """Return the change of each candidate's score, centred and rounded.

        `near` (n,) is the product of each memory's vector with `towards`, `facts` (n, len(PARTS)) its parts.
        """
        total = near.astype(np.float64)
        for column, weight in enumerate(self.parts.tolist()):
            total = total + weight * facts[:, column]
        if not len(total):
            return total
        # What is the same for all candidates says nothing about their order and must not move scores across floors.
        return rounded(total - math.fsum(total.tolist()) / len(total))

    def pack(self) -> bytes:
        """Return the weights as bytes; see `unpack`."""
        head = {
            "model": self.model,
            "dim": self.dim,
            "rank": int(self.right.shape[0]),
            "parts": list(PARTS),
            "seed": self.seed,
            "steps": self.steps,
            "seen": self.seen,
        }
        told = json.dumps(head, sort_keys=True, separators=(",", ":")).encode()
        arrays = (self.left, self.right, self.parts)
        return _HEAD.pack(_MAGIC, LAYOUT, len(told)) + told + b"".join(a.astype("<f4").tobytes() for a in arrays)


def name_of(packed: bytes) -> str:
    """Return the name of packed weights: SHA-256 of the bytes, in hex."""
    return hashlib.sha256(packed).hexdigest()


def unpack(packed: bytes, *, name: str) -> Weights:
    """Return the weights of `Weights.pack`.

    Raises:
        ValueError: they are not the ones of this name, are cut short, of another layout, or not finite.
    """
    if name_of(packed) != name:
        raise ValueError("its weights are not those that were committed")
    try:
        magic, layout, size = _HEAD.unpack_from(packed)
        if (magic, layout) != (_MAGIC, LAYOUT):
            raise ValueError("its weights were written in another layout")
        head = json.loads(packed[_HEAD.size : _HEAD.size + size])
        dim, rank, start = int(head["dim"]), int(head["rank"]), _HEAD.size + size
        values = np.frombuffer(packed, dtype="<f4", offset=start).astype(np.float32)
        known = tuple(head["parts"]) == PARTS and len(values) == (2 * dim + 1) * rank + len(PARTS)
        weights = Weights(
            model=head["model"],
            left=values[: (dim + 1) * rank].reshape(dim + 1, rank),
            right=values[(dim + 1) * rank : (2 * dim + 1) * rank].reshape(rank, dim),
            parts=values[(2 * dim + 1) * rank :],
            seed=int(head["seed"]),
            steps=int(head["steps"]),
            seen=int(head["seen"]),
        )
    except (struct.error, KeyError, TypeError, UnicodeDecodeError, json.JSONDecodeError) as fault:
        raise ValueError("its weights are damaged") from fault
    if not known or not np.isfinite(values).all():
        raise ValueError("its weights are damaged")
    return weights


def recency(happened: npt.NDArray[np.int64], now: int) -> Doubles:
    """Return 1 for now down to 0 for ten years ago, by the logarithm of the age; microseconds since 1970."""
    hours = np.clip((now - happened.astype(np.float64)) / _HOUR, 0.0, _OLD)
    return rounded(1.0 - np.log1p(hours) / math.log1p(_OLD))


def facts_of(
    scored: Sequence[Doubles],
    *,
    happened: npt.NDArray[np.int64],
    now: int,
    importance: npt.NDArray[np.floating],
    trust: npt.NDArray[np.integer],
) -> Doubles:
    """Return the facts (n, len(PARTS)) of candidates; `scored` are the first four of `PARTS`, trust is 0..7."""
    standing = (recency(happened, now), rounded(importance), rounded(trust.astype(np.float64) / _TRUST))
    return np.stack([*(rounded(part) for part in scored), *standing], axis=1)
