"""Vectors from model runners that the user has installed: sentence-transformers and fastembed.

Both may fetch weights from a hub on first use, which is theirs to do and fails on a closed network.

Invariants
(1) Nothing is imported before the first use of `id`, `dim` or `embed`; the model is then loaded once.
(2) A missing package is a `ModelUnavailable` that says what to install.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from keepward.errors import ModelUnavailable


class SentenceTransformerEmbedder:
    """Any model that sentence-transformers can load, one text at a time so that neighbours change nothing."""

    def __init__(self, model: str) -> None:
        self._name = model
        self._lock = threading.Lock()
        self._model: Any = None

    @property
    def id(self) -> str:
        """Runner, model and dimension; loads the model."""
        return f"sentence-transformers:{self._name}:{self.dim}"

    @property
    def dim(self) -> int:
        """Components of a vector; loads the model."""
        return int(self._open().get_sentence_embedding_dimension())

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return float32, shape (len(texts), dim), L2-normalised rows, in the order of `texts`."""
        model = self._open()
        return _unit([model.encode(text, show_progress_bar=False) for text in texts], self.dim)

    def _open(self) -> Any:
        with self._lock:
            if self._model is None:
                module = _import("sentence_transformers", "sentence-transformers")
                self._model = module.SentenceTransformer(self._name)
            return self._model


class FastembedEmbedder:
    """Any text model that fastembed can load, one text at a time so that neighbours change nothing."""

    def __init__(self, model: str) -> None:
        self._name = model
        self._lock = threading.Lock()
        self._model: Any = None
        self._dim = 0

    @property
    def id(self) -> str:
        """Runner, model and dimension; loads the model."""
        return f"fastembed:{self._name}:{self.dim}"

    @property
    def dim(self) -> int:
        """Components of a vector; loads the model and embeds one word."""
        self._open()
        return self._dim

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return float32, shape (len(texts), dim), L2-normalised rows, in the order of `texts`."""
        model = self._open()
        return _unit([next(iter(model.embed([text]))) for text in texts], self._dim)

    def _open(self) -> Any:
        with self._lock:
            if self._model is None:
                model = _import("fastembed", "fastembed").TextEmbedding(self._name)
                self._dim = len(next(iter(model.embed(["dimension"]))))
                self._model = model
            return self._model


def _import(module: str, package: str) -> Any:
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        raise ModelUnavailable(f"this embedder needs the package {package}: pip install {package}") from error


def _unit(vectors: Sequence[Any], dim: int) -> NDArray[np.float32]:
    rows = np.array(vectors, dtype=np.float64).reshape(len(vectors), dim)
    lengths = np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
    unit: NDArray[np.float32] = (rows / lengths).astype(np.float32)
    return unit
