"""Embedders of the harness: one that keeps vectors in a folder, and one that hides a question's words.

Invariants
(1) A wrapped embedder has the id of the one inside, and gives the same bytes.
(2) Nothing is kept unless a folder is named.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from keepward.ports.models import Embedder


class KeptVectors:
    """Looks a text's vector up by the text's hash before it asks the embedder inside."""

    def __init__(self, inner: Embedder, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._inner = inner
        self._path = folder / (re.sub(r"[^\w.-]+", "_", inner.id) + ".bin")
        self._known: dict[bytes, np.ndarray] = {}
        self._row = np.dtype([("key", "V16"), ("vector", "<f4", (inner.dim,))])
        if self._path.exists():
            data = self._path.read_bytes()
            # A run that was stopped may have left half a row behind.
            rows = np.frombuffer(data[: len(data) // self._row.itemsize * self._row.itemsize], dtype=self._row)
            self._known = {row["key"].tobytes(): row["vector"] for row in rows}
            self._path.write_bytes(rows.tobytes())

    @property
    def id(self) -> str:
        """The id of the embedder inside."""
        return self._inner.id

    @property
    def dim(self) -> int:
        """Components of a vector."""
        return self._inner.dim

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        """Return float32 vectors, shape (len(texts), dim), rows L2-normalised."""
        return self._looked_up(texts, b"", self._inner.embed)

    def embed_query(self, texts: Sequence[str]) -> np.ndarray:
        """Return the vectors of queries, as the embedder inside makes them."""
        ask = getattr(self._inner, "embed_query", None)
        return self.embed(texts) if ask is None else self._looked_up(texts, b"query", ask)

    def _looked_up(self, texts: Sequence[str], kind: bytes, ask: Callable[[list[str]], np.ndarray]) -> np.ndarray:
        digest = partial(hashlib.blake2b, digest_size=16, person=kind)
        keys = [digest(text.encode("utf-8", "surrogatepass")).digest() for text in texts]
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in self._known}
        if missing:
            rows = np.zeros(len(missing), dtype=self._row)
            rows["key"] = np.frombuffer(b"".join(missing), dtype="V16")
            rows["vector"] = ask(list(missing.values()))
            self._known |= {key: row["vector"] for key, row in zip(missing, rows, strict=True)}
            with self._path.open("ab") as file:
                file.write(rows.tobytes())
        return np.array([self._known[key] for key in keys], dtype=np.float32).reshape(len(texts), self.dim)


class WordlessVectors:
    """Gives a stand-in word the vector of the question it stands for, so that recall has no words to go by."""

    def __init__(self, inner: Embedder, questions: Mapping[str, str]) -> None:
        self._inner, self._questions = inner, questions

    @property
    def id(self) -> str:
        """The id of the embedder inside."""
        return self._inner.id

    @property
    def dim(self) -> int:
        """Components of a vector."""
        return self._inner.dim

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        """Return float32 vectors, shape (len(texts), dim), rows L2-normalised."""
        return self._inner.embed([self._questions.get(text, text) for text in texts])

    def embed_query(self, texts: Sequence[str]) -> np.ndarray:
        """Return the vectors of queries, as the embedder inside makes them."""
        ask = getattr(self._inner, "embed_query", self._inner.embed)
        vectors: np.ndarray = ask([self._questions.get(text, text) for text in texts])
        return vectors


def chosen(name: str, cache: Path | None) -> Embedder | None:
    """Return the embedder of a name that ``Memory.open`` knows, behind a folder of vectors where one is named."""
    from keepward.embedding import choose_embedder

    inner = choose_embedder(name)
    return inner if inner is None or cache is None else KeptVectors(inner, cache)
