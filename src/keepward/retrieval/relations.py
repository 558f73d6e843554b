"""What candidates are to each other: named by a good answer, or an older statement of the same.

A question may need two memories of which the second shares no word with it: "Where does Maria's manager live?" is
answered by "Maria's manager is Tomasz Wilk" and "Wilk has moved to Gdansk". The name in the first leads to the second.
And of two statements of the same thing the older one is mostly no longer true.

Invariants
(1) only names that few of the allowed memories hold lead anywhere, and none that the query itself holds.
(2) events are never outdone: what happened stays true, whatever happens later; and nothing is by what is trusted less.
(3) every answer is computed of allowed rows alone, in a fixed order.
"""

import math
from collections.abc import Collection
from typing import Final

import numpy as np
import numpy.typing as npt

from keepward.retrieval import lexical
from keepward.retrieval.sight import Sight

Doubles = npt.NDArray[np.float64]
Rows = npt.NDArray[np.intp]

#: Best answers whose names are followed.
SOURCES: Final = 2
#: A name leads somewhere while at most so many memories hold it, or this share of them where that is more.
FEW: Final = 3
FEW_SHARE: Final = 0.01
#: Candidates that are compared with each other.
COMPARED: Final = 20
#: Two memories speak of the same thing from the first likeness on, and surely from the second on: shares of the way
#: from how alike the candidates are on average to equal.
ALIKE: Final = 0.4
SAME: Final = 0.7
#: An average of fewer memories than this says little of what is usual, and of two nothing.
_USUAL_OF: Final = 10
#: What outdoes an older statement has at least this share of its score, and of what it covers of the query: less of
#: that where it tells of a change, for such a text rarely repeats what it changes.
CLOSE: Final = 0.5
COVERS: Final = 0.9
COVERS_CHANGED: Final = 0.4


def linked(
    sources: Rows, scores: Doubles, asked: Collection[int], postings: lexical.TermStore, sight: Sight
) -> tuple[Rows, Doubles]:
    """Return rows that a name in one of the sources leads to, ascending, and the score that comes along.

    `sources` are rows best first, `scores` theirs, `asked` the term hashes of the query. The whole score of its source
    comes along where the names have the weight of one that a single memory holds; rarer than that nothing is.
    """
    links: dict[int, float] = {}
    cap = max(FEW, int(FEW_SHARE * sight.count))
    rarest = lexical.idf(sight.count, 1)
    for source, score in zip(sources.tolist(), scores.tolist(), strict=True):
        reached: dict[int, float] = {}
        for name in postings.names(source):
            # Of a common name it is enough to know that it is one, where nothing is hidden.
            if name in asked or (sight.whole and postings.count(name) > cap):
                continue
            rows = postings.postings(name)[0]
            if not sight.whole:
                rows = rows[sight.mask[rows]]
            if 1 < len(rows) <= cap:
                weight = lexical.idf(sight.count, len(rows)) / rarest
                for row in rows.tolist():
                    reached[row] = reached.get(row, 0.0) + weight
        reached.pop(source, None)
        for row, weight in reached.items():
            links[row] = max(links.get(row, 0.0), max(score, 0.0) * min(weight, 1.0))
    found = sorted(links)
    return np.array(found, dtype=np.intp), np.array([links[row] for row in found])


def overtaking(
    scores: Doubles,
    cover: Doubles,
    when: npt.NDArray[np.int64],
    trust: npt.NDArray[np.int8],
    lasting: npt.NDArray[np.bool_],
    changing: npt.NDArray[np.bool_],
    held: npt.NDArray[np.bool_],
    likeness: Doubles,
) -> tuple[Doubles, Doubles]:
    """Return what each candidate catches up on older ones that say the same, and how surely it is an older one itself.

    `when` are instants, `trust` ranks, `lasting` is true for what is no event, `changing` for what tells of a change,
    `held` (names, n) for names of the query that stand in each, `likeness` (n, n) are cosines, diagonal included. What
    is caught up is in points of score: the newer answers what the older one does, however it is worded. The second is a
    share, 0..1.
    """
    newer = (when[None, :] > when[:, None]) & lasting[:, None] & lasting[None, :]
    newer &= trust[None, :] >= trust[:, None]
    newer &= scores[None, :] >= CLOSE * scores[:, None]
    newer &= cover[None, :] >= np.where(changing, COVERS_CHANGED, COVERS)[None, :] * cover[:, None]
    # What lacks a name that was asked for speaks of another.
    newer &= ~(held[:, :, None] & ~held[:, None, :]).any(axis=0)
    usual = _usual(likeness[np.ix_(lasting, lasting)])
    closer = (likeness - usual) / max(1.0 - usual, 1e-9)
    same = np.where(newer, np.clip((closer - ALIKE) / (SAME - ALIKE), 0.0, 1.0), 0.0)
    behind = np.maximum(scores[:, None] - scores[None, :], 0.0)
    return (same * behind).max(axis=0, initial=0.0), same.max(axis=1, initial=0.0)


def _usual(likeness: Doubles) -> float:
    """Return how alike candidates are on average: where a model does not know the language, all texts are close."""
    count = len(likeness)
    if count < 3:
        return 0.0
    others = math.fsum(likeness.ravel().tolist()) - math.fsum(likeness.diagonal().tolist())
    return max(others / (count * (count - 1)), 0.0) * min(1.0, (count - 2) / (_USUAL_OF - 2))
