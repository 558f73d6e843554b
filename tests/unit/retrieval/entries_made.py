"""Entries of an index, with what a test does not care about filled in."""

from __future__ import annotations

from typing import Any

import numpy as np

from keepward.ports.store import RankingRow
from keepward.retrieval import vector_index

PLAIN: dict[str, Any] = dict.fromkeys(RankingRow._fields) | {
    "touched": 0,
    "content_type": "text",
    "tags": (),
    "trust": 0,
    "sensitive": False,
    "importance": 0.5,
    "confidence": 0.5,
    "created_at": 0,
}


def profile(**fields: Any) -> RankingRow:
    """Return an entry; vectors may be given as floats."""
    units = fields.get("units")
    if isinstance(units, np.ndarray):
        fields["units"] = vector_index.pack(units)
    return RankingRow(**(PLAIN | fields))
