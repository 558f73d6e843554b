"""Candidates: the rows that are worth an exact score, and their cosines to the query.

Invariants
(1) candidates depend on the set of allowed rows, never on the order in which rows came.
(2) rows stand in ascending order; what cannot be compared has the mean cosine, neither praise nor blame.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from keepward.retrieval import fuse, vectors
from keepward.retrieval.fields import Coverage
from keepward.retrieval.sight import Sight

Floats = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]
Rows = npt.NDArray[np.intp]

#: Candidates of each kind, at least.
LEAST: Final = 400


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Candidates:
    """Rows, ascending, and what vectors say of them."""

    rows: Rows
    #: Of each row's best unit.
    cosine: Doubles
    #: Whether a row has a unit that can be compared.
    compared: npt.NDArray[np.bool_]
    #: Mean cosine of the allowed units to the query.
    mean: float

    def joined(self, more: "Candidates") -> "Candidates":
        """Return these and others, of which none is among these."""
        rows = np.concatenate((self.rows, more.rows))
        order = np.argsort(rows)
        return Candidates(
            rows=rows[order],
            cosine=np.concatenate((self.cosine, more.cosine))[order],
            compared=np.concatenate((self.compared, more.compared))[order],
            mean=self.mean,
        )


def compare(store: vectors.UnitStore | None, vector: Floats | None, rows: Rows, mean: float) -> Candidates:
    """Return the rows, ascending, with their cosines; without a store or vector none can be compared."""
    if store is None or vector is None:
        return Candidates(
            rows=rows, cosine=np.full(len(rows), mean), compared=np.zeros(len(rows), dtype=np.bool_), mean=mean
        )
    best, counts = store.best(np.asarray(vector, dtype=np.float32), rows)
    compared = counts > 0
    cosine = np.where(compared, fuse.rounded(best - fuse.luck(counts)), mean)
    return Candidates(rows=rows, cosine=cosine, compared=compared, mean=mean)


def by_text(cover: Coverage, positions: npt.NDArray[np.int64], limit: int) -> Candidates:
    """Return the rows that cover most of the query, of those that hold any word of it."""
    rows = np.flatnonzero(cover.own > 0)
    rows = rows[fuse.strongest(cover.full[rows], positions[rows], max(LEAST, limit))]
    return compare(None, None, rows, 0.0)


def by_both(
    store: vectors.UnitStore,
    query: Floats,
    sight: Sight,
    cover: Coverage | None,
    positions: npt.NDArray[np.int64],
    limit: int,
) -> Candidates | None:
    """Return the rows nearest by sign bits and those that cover most; None where no allowed row has a vector."""
    vector = np.asarray(query, dtype=np.float32)
    owners, distance = store.owners, store.hamming(vector)
    units = np.arange(len(owners)) if sight.whole else np.flatnonzero(sight.mask[owners])
    if not len(units):
        return None
    if not sight.whole:
        owners, distance = owners[units], distance[units]
    k = max(LEAST, 2 * limit)
    expected = vectors.expected_cosine(store.dim)
    mean = round(float(expected[round(int(distance.sum(dtype=np.int64)) / len(distance))]), 6)
    chosen = np.zeros(len(sight.mask), dtype=np.bool_)
    chosen[owners[vectors.nearest(distance, k, store.dim)]] = True
    if cover is not None:
        weight = np.float32(fuse.cosine_weight(mean))
        held = np.flatnonzero(cover.full[owners] > 0)
        rough = weight * expected[distance[held]] + cover.full[owners[held]]
        chosen[owners[held[fuse.strongest(rough, positions[owners[held]], k)]]] = True
        # Entries without a vector, or with one of another model, come in by their text.
        textual = np.flatnonzero(cover.own > 0)
        chosen[textual[fuse.strongest(cover.full[textual], positions[textual], k)]] = True
    return compare(store, vector, np.flatnonzero(chosen), mean)
