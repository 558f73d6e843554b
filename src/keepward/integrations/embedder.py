"""An embedding function of a framework as the embedder of a store."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionEmbedder:
    """Vectors by a function from a list of texts to as many lists of numbers."""

    #: Names the model, its weights and dimension: vectors of equal names are compared.
    id: str
    dim: int
    function: Callable[[list[str]], Sequence[Sequence[float]]]

    def embed(self, texts: Sequence[str]) -> np.ndarray[Any, np.dtype[np.float32]]:
        """Return vectors of length 1, float32, shape (len(texts), dim)."""
        found = np.asarray(self.function(list(texts)), dtype=np.float32)
        return np.asarray(found / np.maximum(np.linalg.norm(found, axis=1, keepdims=True), 1e-9), dtype=np.float32)
