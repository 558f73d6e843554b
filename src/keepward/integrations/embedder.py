"""Embedding functions of frameworks: as the embedder of a store, and as the way back from a vector to its text."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from keepward.locks import ForkSafeLock


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionEmbedder:
    """Vectors by a function from a list of texts to as many lists of numbers."""

    #: Names the model, its weights and dimension: vectors of equal names are compared.
    id: str
    dim: int
    function: Callable[[list[str]], Sequence[Sequence[float]]]
    #: For one query; without it, ``function`` is for queries too.
    query_function: Callable[[str], Sequence[float]] | None = None

    def embed(self, texts: Sequence[str]) -> np.ndarray[Any, np.dtype[np.float32]]:
        """Return vectors of length 1, float32, shape (len(texts), dim)."""
        return self._unit(self.function(list(texts)))

    def embed_query(self, texts: Sequence[str]) -> np.ndarray[Any, np.dtype[np.float32]]:
        """Return the vectors of queries."""
        return self.embed(texts) if self.query_function is None else self._unit([*map(self.query_function, texts)])

    @staticmethod
    def _unit(vectors: Sequence[Sequence[float]]) -> np.ndarray[Any, np.dtype[np.float32]]:
        found = np.asarray(vectors, dtype=np.float32)
        return np.asarray(found / np.maximum(np.linalg.norm(found, axis=1, keepdims=True), 1e-9), dtype=np.float32)


class TextByVector:
    """An embedding function that remembers the text of each vector, for searches that are given vectors."""

    #: Number of texts that are remembered; the oldest are dropped first.
    MAX_TEXTS = 10_000

    def __init__(self, function: Callable[[list[str]], Any]) -> None:
        self._function = function
        self._texts: OrderedDict[bytes, str] = OrderedDict()
        self._lock = ForkSafeLock()

    def __call__(self, texts: Sequence[str]) -> list[list[float]]:
        """Return a vector for each text."""
        vectors = [np.asarray(each, dtype=np.float32).tolist() for each in self._function(list(texts))]
        for vector, text in zip(vectors, texts, strict=True):
            self.learn(vector, text)
        return vectors

    def learn(self, vector: Sequence[float], text: str) -> None:
        """Remember the text that a vector was made of."""
        name = np.asarray(vector, dtype=np.float32).tobytes()
        with self._lock:
            self._texts[name] = text
            self._texts.move_to_end(name)
            if len(self._texts) > self.MAX_TEXTS:
                self._texts.popitem(last=False)

    def text_of(self, vector: Sequence[float]) -> str:
        """Return the text that a vector was made of.

        Raises:
            ValueError: it was not made here.
        """
        found = self._texts.get(np.asarray(vector, dtype=np.float32).tobytes())
        if found is None:
            raise ValueError("this vector is of another embedder: search by those of the embedder that is here")
        return found
