"""Checkpoint: how far a training has come, as bytes from which it goes on as if nothing had happened.

Invariants
(1) A checkpoint is of exactly the feedback, settings and rules that it names by a digest; under any other it is as if
    there were none, so that going on never gives other weights than a training in one go.
(2) Numbers are kept as they are calculated with, to the last bit.
"""

import hashlib
import json
import struct
from collections.abc import Sequence
from typing import Final

import numpy as np

from keepward.retrieval import learn
from keepward.retrieval.learn import Course, Example
from keepward.retrieval.rerank import PARTS, Floats

LAYOUT: Final = 1
_MAGIC: Final = b"KWTC"
_HEAD: Final = struct.Struct("<4sBI")


class Trail:
    """The digest over the feedback that a training has learned from so far."""

    __slots__ = ("_state", "count")

    def __init__(self, *, model: str | None, dim: int, share: float, seed: int) -> None:
        rules = [learn.EVERY, learn.BATCH, learn.BUFFER, learn.MARGIN, learn.RATE, learn.PART_RATE, learn.FORGET]
        told = [LAYOUT, model, dim, share, seed, *rules, learn.CONSTANT, list(PARTS)]
        self._state = hashlib.sha256(json.dumps(told).encode())
        self.count = 0

    def follow(self, told: Sequence[Example], count: int) -> str:
        """Take in the feedback up to a count; return the digest in hex."""
        for example in told[self.count : count]:
            head = [example.n, example.bounded, example.receipt, len(example.used)]
            self._state.update(json.dumps(head).encode())
            for array in (example.query, example.vectors, example.known, example.fused, example.facts, example.used):
                self._state.update(np.ascontiguousarray(array).tobytes())
        self.count = max(self.count, count)
        return self._state.hexdigest()


def pack(course: Course, digest: str) -> bytes:
    """Return a course as bytes; ``digest`` is the trail's at its count."""
    head = {
        "digest": digest,
        "dim": int(course.matrix.shape[1]),
        "count": course.count,
        "steps": course.steps,
        "bounded": course.bounded,
    }
    told = json.dumps(head, sort_keys=True, separators=(",", ":")).encode()
    numbers = b"".join(array.astype("<f8").tobytes() for array in (course.matrix, course.parts))
    return _HEAD.pack(_MAGIC, LAYOUT, len(told)) + told + numbers


def unpack(packed: bytes, trail: Trail, told: Sequence[Example]) -> Course | None:
    """Return the course of ``pack`` where it is one of this very training, which ``trail`` then has followed to it.

    None where it is of another, or cannot be read: a training then begins anew.
    """
    try:
        magic, layout, size = _HEAD.unpack_from(packed)
        if (magic, layout) != (_MAGIC, LAYOUT):
            return None
        head = json.loads(packed[_HEAD.size : _HEAD.size + size])
        dim, count = int(head["dim"]), int(head["count"])
        values = np.frombuffer(packed, dtype="<f8", offset=_HEAD.size + size).astype(np.float64)
        cut = (dim + 1) * dim
        matrix, parts = values[:cut].reshape(dim + 1, dim), values[cut:]
        steps, bounded, digest = int(head["steps"]), int(head["bounded"]), head["digest"]
    except (struct.error, ValueError, KeyError, TypeError):
        return None
    if not 0 < count < len(told) or len(parts) != len(PARTS) or trail.follow(told, count) != digest:
        return None
    return Course(matrix=matrix, parts=parts, count=count, steps=steps, bounded=bounded)


def name_of_texts(model: str, texts: Sequence[str]) -> str:
    """Return the name under which the vectors of these texts are kept."""
    return hashlib.sha256(json.dumps([LAYOUT, model, *texts]).encode()).hexdigest()


def vectors_of(packed: bytes, count: int, dim: int) -> Floats | None:
    """Return kept vectors (count, dim), None where they are not that many."""
    if len(packed) != 4 * count * dim:
        return None
    return np.frombuffer(packed, dtype="<f4").astype(np.float32).reshape(count, dim)
