"""Memories as an index takes them, with what a test does not care about filled in."""

from __future__ import annotations

from typing import Any

import numpy as np

from keepward.core.memory import MemoryFields
from keepward.core.principals import Trust
from keepward.ports.store import Features, IndexedMemory
from keepward.retrieval import vector_index

PLAIN: dict[str, Any] = {
    "version": 1,
    "tier": "archival",
    "kind": "fact",
    "text": "",
    "scope": "/",
    "source": "user",
    "confidence": 5_000,
    "importance": 5_000,
    # It does not decay.
    "stability": "permanent",
    "author": "user:ana",
    "created_at": 0,
    "reinforced_at": 0,
}


def indexed_memory(
    *,
    arrival: int = 0,
    position: int = 0,
    terms: bytes = b"",
    model: str | None = None,
    vectors: np.ndarray | None = None,
    recipe: str = "",
    trust: Trust | int = Trust.UNKNOWN,
    sensitive: bool = False,
    **fields: Any,
) -> IndexedMemory:
    """Return a memory; ``fields`` are those of ``MemoryFields``."""
    packed, units = (b"", 0) if vectors is None else (vector_index.pack(vectors), len(vectors))
    label = trust.label if isinstance(trust, Trust) else tuple(Trust)[trust].label
    given = PLAIN | fields | {"trust": label, "sensitivity": "sensitive" if sensitive else "normal"}
    features = Features(terms=terms, model=model, vectors=packed, units=units, recipe=recipe)
    return IndexedMemory(MemoryFields(**given), features, arrival, position)
