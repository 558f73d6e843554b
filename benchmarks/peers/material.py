"""The texts and vectors that every peer is given.

Vectors stand in clusters, as those of texts do, and come from a generator with a fixed seed: no model is run, and no
peer waits for one.
"""

from __future__ import annotations

import numpy as np

from benchmarks.texts import notes

DIM = 384
TOPICS = 200


class Material:
    """`count` notes with their vectors (float32, shape (count, DIM), L2-normalised), and queries near them."""

    def __init__(self, count: int, queries: int = 100) -> None:
        rng = np.random.default_rng(5)
        centres = rng.normal(size=(TOPICS, DIM)).astype(np.float32)
        made = centres[rng.integers(0, TOPICS, count)] + rng.normal(size=(count, DIM)).astype(np.float32)
        self.vectors = made / np.linalg.norm(made, axis=1, keepdims=True)
        self.texts = notes(count)
        picked = rng.choice(count, size=queries, replace=False)
        near = self.vectors[picked] + 0.02 * rng.normal(size=(queries, DIM)).astype(np.float32)
        self.query_vectors = (near / np.linalg.norm(near, axis=1, keepdims=True)).astype(np.float32)
        #: The text that each query is about, in other words: its own words, some left out.
        self.meant = [self.texts[at] for at in picked]
        self.queries = [f"what about {' '.join(text.split()[4:14])} ({n})" for n, text in enumerate(self.meant)]
        self._known = dict(zip(self.texts, self.vectors, strict=True))
        self._known |= dict(zip(self.queries, self.query_vectors, strict=True))

    def embed(self, texts: list[str]) -> list[list[float]]:
        """Return the vectors of texts that are known here, looked up and not computed."""
        return [self._known[text].tolist() for text in texts]

    def vector(self, text: str) -> np.ndarray:
        """Return the vector of one text."""
        return self._known[text]
