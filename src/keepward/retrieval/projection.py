"""A map of meaning: vectors laid out in a plane by their two principal components.

Invariants
(1) The same vectors in the same order give the same map: signs are fixed, and nothing is drawn by chance.
(2) A coordinate is a whole number from -1000 to 1000; what lies far outside of the others stands at the edge.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

#: Vectors that the components are computed from, at most: evenly spaced ones of those given.
FITTED: Final = 20_000
EDGE: Final = 1_000
#: Share of vectors on either side that may stand at the edge.
_FAR: Final = 0.002
#: Vectors multiplied together: what is held of them in floats at a time.
_TOGETHER: Final = 8_192


def plane(units: npt.NDArray[np.float32]) -> npt.NDArray[np.int16]:
    """Return the place of each vector (n, dim) as whole numbers (n, 2).

    Source: Pearson (1901), "On Lines and Planes of Closest Fit"; signs after Bro, Acar, Kolda (2008) made simple: the
    component of the largest size is positive.
    """
    places = np.zeros((len(units), 2), dtype=np.int16)
    if len(units) < 2:
        return places
    fitted = units[np.unique(np.linspace(0, len(units) - 1, min(len(units), FITTED)).astype(np.intp))]
    centre = fitted.mean(axis=0, dtype=np.float64)
    spread = fitted.astype(np.float64) - centre
    _, axes = np.linalg.eigh(spread.T @ spread)
    main = axes[:, ::-1][:, :2]
    main = main * np.where(main[np.abs(main).argmax(axis=0), range(main.shape[1])] < 0, -1.0, 1.0)
    flat = np.zeros((len(units), 2))
    for first in range(0, len(units), _TOGETHER):
        part = units[first : first + _TOGETHER].astype(np.float64) - centre
        flat[first : first + _TOGETHER, : main.shape[1]] = part @ main
    low, high = np.quantile(flat, (_FAR, 1 - _FAR), axis=0)
    # One measure for both, so that distances mean the same across and down.
    half = max(float((high - low).max()) / 2, 1e-9)
    places[:] = np.clip(np.rint((flat - (low + high) / 2) / half * EDGE), -EDGE, EDGE)
    return places
