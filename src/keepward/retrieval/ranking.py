"""Ranking: which rows are candidates, and what words, vectors, session and speaker add to the score of each.

    score = words + 1.35 cosine + role + preference + answered question      (``base``)
          + 0.3 best base score of the session + day or kind of answer
    of two very similar statements the newer one comes first

Filters apply before statistics: hidden memories change neither score nor order. Parts are rounded to 1e-6 before they
are added in a fixed order, so two machines agree. A row without a comparable vector gets the mean cosine.
"""

import math
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt

from keepward.retrieval import vector_index
from keepward.retrieval.columns import Places
from keepward.retrieval.inverted_index import Bm25Shares, VisibleRows, idf

Floats = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

#: Candidates of each kind, at least.
MIN_CANDIDATES: Final = 400
#: Weight of the cosine beside coverage.
COSINE_WEIGHT: Final = 1.35
#: Cosines that reach from a mean of 1 - REACH to 1 count in full; in a narrower space (a model that does not
#: know the language puts all texts close together) they count in proportion.
COSINE_RANGE: Final = 0.7
#: The best of n units is high by luck; what it is discounted by per sqrt(2 ln n), the growth of a maximum.
MAX_POOL_PENALTY: Final = 0.02
#: The units of a long text are nearly all on one topic, and beyond the first few that discount is far too small: so
#: much more per ln(n / CROWD_FROM).
LONG_TEXT_PENALTY: Final = 0.06
LONG_TEXT_FROM_PASSAGES: Final = 4
#: Words count in full where the best memory covers so much of the query, and in proportion below: what no memory covers
#: more of, many cover by chance. In full, too, where fewer memories than this cover any of it.
FULL_COVERAGE: Final = 0.6
DISTINCTIVE_BELOW: Final = 12
#: Weight of words in a request for advice: what bears on it is a liking, told in other words.
ADVICE_WORDS_WEIGHT: Final = 0.7
#: Share of what all memories have in common that is taken off the vector of any other question.
COMMON_MEAN_SHARE: Final = 0.6
#: Taken off what the other one said, where the query asks for what the user, or the assistant, said.
OTHER_ROLE_PENALTY: Final = 0.25
#: Share of what a turn that ends in a question scores, above what is usual, that goes over to the turn that answers it.
ANSWER_TRANSFER_SHARE: Final = 0.15
#: Added to a preference where the query requests something, if one memory alone states one; less, the more do.
PREFERENCE_BOOST: Final = 0.4
#: Added to what happened on the days that the query names.
NAMED_DAY_BOOST: Final = 0.25
#: Added to what tells a time where the query asks for one, and to what holds a name that is in neither the query nor a
#: speaker's, where it asks for such.
TIME_ANSWER_BOOST: Final = 0.2
NAME_ANSWER_BOOST: Final = 0.15
#: Weight of the best score of the same session.
SESSION_BEST_WEIGHT: Final = 0.3
#: A score of 1 is the most that a memory outside any session can reach by words and meaning, or by words alone.
MAX_SCORE: Final = (1.5 + COSINE_WEIGHT) * (1.0 + SESSION_BEST_WEIGHT)
MAX_TEXT_SCORE: Final = 1.5 * (1.0 + SESSION_BEST_WEIGHT)
#: Candidates that are compared with each other for which is newer.
MAX_RECENCY_CANDIDATES: Final = 20
#: Two memories are similar from the first likeness on, and surely from the second on: shares of the way from how alike
#: the candidates are on average to equal.
SIMILAR_FROM: Final = 0.4
SURELY_SIMILAR_FROM: Final = 0.7
#: A newer statement has at least this share of the older one's score.
MIN_NEWER_SCORE_SHARE: Final = 0.5
#: Share of its score that the older of two similar statements loses.
OLDER_PENALTY_SHARE: Final = 0.2
#: Below so many candidates their average likeness says little, and of two nothing.
_USUAL_OF: Final = 10
#: A word is rare where at most so many of the visible memories hold it, or this share of them.
MAX_RARE_MEMORIES: Final = 3
MAX_RARE_SHARE: Final = 0.01


def max_pool_penalty(counts: Places) -> Doubles:
    """Discount of the best cosine of n units; 0 for a single one."""
    many = LONG_TEXT_PENALTY * np.log(np.maximum(counts / LONG_TEXT_FROM_PASSAGES, 1.0))
    return np.asarray(MAX_POOL_PENALTY * np.sqrt(2.0 * np.log(np.maximum(counts, 1))) + many, dtype=np.float64)


def words_weight(covered: Doubles, *, advice: bool) -> float:
    """Weight of what candidates cover of a query, beside their cosines: little where many cover a little of it."""
    singled_out = np.count_nonzero(covered) < DISTINCTIVE_BELOW
    known = 1.0 if singled_out else min(1.0, float(covered.max()) / FULL_COVERAGE)
    return known * (ADVICE_WORDS_WEIGHT if advice else 1.0)


def project_out(query: Floats, usual: Floats) -> Floats:
    """Return the vector of a request for advice without what it has of the `usual`, of length 1, in such requests.

    Some memories are close to any request, whatever it is about; this leaves them with what they share with this one.
    """
    return np.asarray(query - np.dot(query, usual) * usual, dtype=np.float32)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CentredQuery:
    """Where a query points in the space of its model, and what a cosine to that is of the query itself, on average."""

    vector: Floats
    stretch: float = 1.0
    shift: float = 0.0

    def level(self, cosines: npt.NDArray[np.floating] | float) -> Doubles:
        """Return cosines to this direction as such to the query, of which the mean memory has the same."""
        return np.asarray(np.asarray(cosines, dtype=np.float64) * self.stretch + self.shift, dtype=np.float64)


def centre_query(query: Floats, signs: vector_index.SignStatistics) -> CentredQuery:
    """Return a question without what all memories have in common: their topic and how they are told.

    Some memories are close to whatever is asked in a store; this leaves them with what they share with this question.
    """
    own = query.astype(np.float64)
    common = COMMON_MEAN_SHARE * signs.estimated_mean()
    rest = own / max(math.sqrt(float(np.dot(own, own))), 1e-9) - common
    return CentredQuery(
        vector=rest.astype(np.float32),
        stretch=math.sqrt(float(np.dot(rest, rest))),
        shift=float(np.dot(common, common)) / COMMON_MEAN_SHARE,
    )


def cosine_weight(mean: float) -> float:
    """Weight of a cosine in a space whose cosines to this query have this mean."""
    return COSINE_WEIGHT * min(1.0, max(0.0, 1.0 - mean) / COSINE_RANGE)


def rounded(values: npt.NDArray[np.floating]) -> Doubles:
    """Round to 1e-6 as float64."""
    return np.asarray(np.round(values.astype(np.float64), 6) + 0.0, dtype=np.float64)


def preference_weight(count: int, holders: int) -> float:
    """Return what is added to a preference where ``holders`` of ``count`` memories state one; near 0 where half do."""
    return PREFERENCE_BOOST * (idf(count, holders) / idf(count, 1)) ** 2


def session_best(scores: Doubles, session: npt.NDArray[np.int32], sessions: int) -> Doubles:
    """Best score of each one's session; its own where `session` is `sessions`, which means none."""
    best = np.full(sessions + 1, -np.inf)
    np.maximum.at(best, session, scores)
    return np.where(session < sessions, best[session], scores)


def top_k(scores: npt.NDArray[np.floating], positions: npt.NDArray[np.int64], k: int) -> Places:
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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Candidates:
    """Rows, ascending, and what vectors say of them."""

    rows: Places
    #: Of each row's best unit.
    cosine: Doubles
    #: Whether a row has a unit that can be compared.
    compared: Mask
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


def with_cosines(
    store: vector_index.VectorIndex | None, toward: CentredQuery | None, rows: Places, mean: float
) -> Candidates:
    """Return the rows, ascending, with their cosines; without a store or direction none can be compared."""
    if store is None or toward is None:
        return Candidates(
            rows=rows, cosine=np.full(len(rows), mean), compared=np.zeros(len(rows), dtype=np.bool_), mean=mean
        )
    best, counts = store.best(toward.vector, rows)
    compared = counts > 0
    cosine = np.where(compared, rounded(toward.level(best) - max_pool_penalty(counts)), mean)
    return Candidates(rows=rows, cosine=cosine, compared=compared, mean=mean)


def average_two_views(
    store: vector_index.VectorIndex, toward: CentredQuery, near: Candidates, preferences: Places
) -> Candidates:
    """Return candidates where a preference with two vectors, of the whole and of its subject, has their mean cosine."""
    first, counts = store.spans(near.rows)
    places = np.flatnonzero((counts == 2) & np.isin(near.rows, preferences))
    cosines = store.cosines(toward.vector, np.concatenate((first[places], first[places] + 1))).astype(np.float64)
    cosine = near.cosine.copy()
    cosine[places] = rounded(toward.level(cosines.reshape(2, -1).mean(axis=0)) - max_pool_penalty(counts[places]))
    return replace(near, cosine=cosine)


def candidates_by_text(cover: Bm25Shares, positions: npt.NDArray[np.int64], limit: int) -> Candidates:
    """Return the rows that cover most of the query, of those that hold any word of it."""
    rows = np.flatnonzero(cover.own > 0)
    rows = rows[top_k(cover.full[rows], positions[rows], max(MIN_CANDIDATES, limit))]
    return with_cosines(None, None, rows, 0.0)


def candidates_by_text_and_vector(
    store: vector_index.VectorIndex,
    toward: CentredQuery,
    signs: vector_index.SignStatistics,
    sight: VisibleRows,
    cover: Bm25Shares | None,
    positions: npt.NDArray[np.int64],
    limit: int,
) -> Candidates | None:
    """Return the rows nearest by sign bits and those that cover most; None where no allowed row has a vector."""
    owners, distance = store.owners, store.hamming(toward.vector)
    if not sight.whole:
        units = np.flatnonzero(sight.mask[owners])
        owners, distance = owners[units], distance[units]
    if not len(owners):
        return None
    k = max(MIN_CANDIDATES, 2 * limit)
    expected = vector_index.expected_cosine(store.dim)
    mean = float(rounded(toward.level(signs.mean_cosine(toward.vector))))
    chosen = np.zeros(len(sight.mask), dtype=np.bool_)
    chosen[owners[vector_index.nearest(distance, k, store.dim)]] = True
    if cover is not None:
        weight = np.float32(cosine_weight(mean))
        held = np.flatnonzero(cover.full[owners] > 0)
        rows = owners[held]
        rough = weight * expected[distance[held]] + cover.full[rows]
        chosen[rows[top_k(rough, positions[rows], k)]] = True
        # Entries without a vector, or with one of another model, come in by their text.
        textual = np.flatnonzero(cover.own > 0)
        chosen[textual[top_k(cover.full[textual], positions[textual], k)]] = True
    return with_cosines(store, toward, np.flatnonzero(chosen), mean)


def newer_similarity(
    scores: Doubles,
    when: npt.NDArray[np.int64],
    trust: npt.NDArray[np.int8],
    lasting: Mask,
    held: Mask,
    likeness: Doubles,
) -> Doubles:
    """Return how surely each candidate (row) has a newer, very similar one (column), 0..1, shape (n, n).

    ``when`` are instants, ``trust`` ranks, ``lasting`` is true for what is no event, ``held`` (terms, n) says which
    terms of the query each holds, ``likeness`` (n, n) are cosines. A newer statement must hold every term of the query
    that the older one holds, and be trusted as much.
    """
    newer = (when[None, :] > when[:, None]) & lasting[:, None] & lasting[None, :]
    newer &= trust[None, :] >= trust[:, None]
    newer &= scores[None, :] >= MIN_NEWER_SCORE_SHARE * scores[:, None]
    newer &= ~(held[:, :, None] & ~held[:, None, :]).any(axis=0)
    usual = _usual(likeness[np.ix_(lasting, lasting)])
    closer = (likeness - usual) / max(1.0 - usual, 1e-9)
    return np.where(newer, np.clip((closer - SIMILAR_FROM) / (SURELY_SIMILAR_FROM - SIMILAR_FROM), 0.0, 1.0), 0.0)


def recency_boosts(scores: Doubles, same: Doubles) -> Doubles:
    """Return what to add to each score so that newer statements pass older ones; see ``newer_similarity``."""
    raised = scores + (same * np.maximum(scores[:, None] - scores[None, :], 0.0)).max(axis=0, initial=0.0)
    return np.asarray(raised * (1.0 - OLDER_PENALTY_SHARE * same.max(axis=1, initial=0.0)) - scores, dtype=np.float64)


def _usual(likeness: Doubles) -> float:
    """Return how alike candidates are on average: where a model does not know the language, all texts are close."""
    count = len(likeness)
    if count < 3:
        return 0.0
    others = math.fsum(likeness.ravel().tolist()) - math.fsum(likeness.diagonal().tolist())
    return max(others / (count * (count - 1)), 0.0) * min(1.0, (count - 2) / (_USUAL_OF - 2))
