"""Query coverage plus cosine: one score from what the text and the vectors say.

Invariants
(1) coverage and cosine are absolute, so a signal with nothing to say fades by itself; no ranks, no z-scores.
(2) parts are rounded to 1e-6 before they are added, in a fixed order.
(3) the order is total: score, then later position, then id.
"""

from typing import Final

import numpy as np
import numpy.typing as npt

Doubles = npt.NDArray[np.float64]
Picks = npt.NDArray[np.intp]

#: Weight of the cosine beside coverage.
COSINE: Final = 1.35
#: Cosines that reach from a mean of 1 - REACH to 1 count in full; in a narrower space (a model that does not
#: know the language puts all texts close together) they count in proportion.
REACH: Final = 0.7
#: The best of n units is high by luck; what it is discounted by per sqrt(2 ln n), the growth of a maximum.
LUCK: Final = 0.02
#: Added where the speaker of the memory is named in the query.
SPEAKER: Final = 0.2
#: Weight of the best score of the same session.
SESSION_BEST: Final = 0.3
#: Share of its score that an answer passes on to where a name in it leads.
LINK: Final = 0.3
#: Share of its score that an older statement loses to a newer one of the same.
OUTDONE: Final = 0.2


def luck(counts: npt.NDArray[np.intp]) -> Doubles:
    """Discount of the best cosine of n units; 0 for a single one."""
    return np.asarray(LUCK * np.sqrt(2.0 * np.log(np.maximum(counts, 1))), dtype=np.float64)


def cosine_weight(mean: float) -> float:
    """Weight of a cosine in a space whose cosines to this query have this mean."""
    return COSINE * min(1.0, max(0.0, 1.0 - mean) / REACH)


def beyond(cosines: Doubles, mean: float, count: int) -> Doubles:
    """Return cosines as they would be in a wide space: in a narrow one what all have in common is taken off.

    The mean of fewer memories than ten says little of what is usual, and of two nothing.
    """
    shared = max(mean - (1.0 - REACH), 0.0) * min(1.0, max(count - 2, 0) / 8)
    return np.asarray((cosines - shared) / (1.0 - shared), dtype=np.float64)


def rounded(values: npt.NDArray[np.floating]) -> Doubles:
    """Round to 1e-6 as float64."""
    return np.asarray(np.round(values.astype(np.float64), 6) + 0.0, dtype=np.float64)


def session_best(scores: Doubles, session: npt.NDArray[np.int32], sessions: int) -> Doubles:
    """Best score of each one's session; its own where `session` is `sessions`, which means none."""
    best = np.full(sessions + 1, -np.inf)
    np.maximum.at(best, session, scores)
    return np.where(session < sessions, best[session], scores)


def strongest(scores: npt.NDArray[np.floating], positions: npt.NDArray[np.int64], k: int) -> Picks:
    """Indices of the k highest scores, ties to the higher position; in no stated order."""
    n = len(scores)
    if n <= k:
        return np.arange(n)
    cut = np.partition(scores, n - k)[n - k]
    above = np.flatnonzero(scores > cut)
    level = np.flatnonzero(scores == cut)
    room = k - len(above)
    if len(level) > room:
        level = level[np.argpartition(positions[level], len(level) - room)[len(level) - room :]]
    return np.concatenate((above, level))
