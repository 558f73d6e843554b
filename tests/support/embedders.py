"""Embedders of the tests: the model with its vectors kept, and one whose cosines are all high."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np
import pytest

from keepward.embedding.hashed import HashedEmbedder
from keepward.embedding.minilm import MiniLmEmbedder
from keepward.ports.models import Embedder

#: As parameters of a test: the model, the embedder without a model, none at all, and one with high cosines. The last one
#: finds what the first one finds, and takes long.
EMBEDDERS = ("minilm", "hashed", "none", pytest.param("foreign", marks=pytest.mark.slow))


class Kept:
    """The model, which embeds each text once in a process."""

    def __init__(self, inner: MiniLmEmbedder) -> None:
        self._inner, self._known = inner, dict[str, np.ndarray]()
        self.id, self.dim, self.cosine_scale = inner.id, inner.dim, inner.cosine_scale

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        """Return float32 vectors, shape (len(texts), dim)."""
        new = [text for text in dict.fromkeys(texts) if text not in self._known]
        if new:
            self._known |= zip(new, self._inner.embed(new), strict=True)
        return np.stack([self._known[text] for text in texts]) if texts else self._inner.embed(texts)


class Foreign:
    """Vectors of another embedder with a constant component: a cosine c becomes (c + 3) / 4."""

    def __init__(self, inner: Embedder) -> None:
        self._inner = inner
        self.id = "foreign:" + inner.id.replace(":", "-")
        self.dim = inner.dim + 1

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        """Return float32 vectors, shape (len(texts), dim)."""
        constant = np.full((len(texts), 1), 3**0.5, dtype=np.float32)
        return np.asarray(np.hstack((self._inner.embed(texts), constant)) / 2, dtype=np.float32)


@cache
def embedder(name: str) -> Embedder | None:
    """Return one of ``EMBEDDERS``."""
    if name == "none":
        return None
    if name == "hashed":
        return HashedEmbedder()
    return Foreign(_model()) if name == "foreign" else _model()


@cache
def _model() -> Kept:
    return Kept(MiniLmEmbedder())
