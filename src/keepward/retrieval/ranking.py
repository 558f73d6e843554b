"""Ranking: the choice of candidate rows, and the parts of their scores.

    base  = words + 1.35 cosine + role + preference + answered question
    score = base + 0.3 best base of the session + named day or kind of answer
    of two very similar statements the newer one ranks first

Filters apply before statistics, so hidden memories change neither scores nor order. Parts are rounded to 1e-6 and added
in a fixed order, so the result is the same on every machine. A row without a comparable vector gets the mean cosine.
"""

import math
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt

from keepward.retrieval import vector_index
from keepward.retrieval.columns import Doubles, Floats, Indices, Mask
from keepward.retrieval.inverted_index import Bm25Shares, VisibleRows, idf

#: Minimum number of candidates by words, and by vectors.
MIN_CANDIDATES: Final = 400
#: Weight of the cosine; the weight of words is 1.
COSINE_WEIGHT: Final = 1.35
#: Cosines count in full if their mean is at most 1 - COSINE_RANGE. With a higher mean they count less: a model that
#: does not know the language puts all texts close together.
COSINE_RANGE: Final = 0.7
#: The maximum of n cosines grows with sqrt(2 ln n) by chance; it is reduced by this much per sqrt(2 ln n).
MAX_POOL_PENALTY: Final = 0.02
#: The passages of a long text share a topic, so its maximum is reduced further, by this much per
#: ln(n / LONG_TEXT_FROM_PASSAGES).
LONG_TEXT_PENALTY: Final = 0.06
LONG_TEXT_FROM_PASSAGES: Final = 4
#: Words count in full if the best memory covers this share of the query, and less below: many memories cover a small
#: share by chance. They also count in full if fewer than DISTINCTIVE_BELOW candidates have any word of the query.
FULL_COVERAGE: Final = 0.6
DISTINCTIVE_BELOW: Final = 12
#: Weight of words in a request for advice: the preferences it needs are stated in other words.
ADVICE_WORDS_WEIGHT: Final = 0.7
#: Share of the mean vector of all memories that is subtracted from the vector of any other question.
COMMON_MEAN_SHARE: Final = 0.6
#: Weight of the wording with a name where all visible memories are about this person. The other wording has 1.
LONE_NAME_WEIGHT: Final = 0.25
#: Subtracted from an assistant's message if the query asks for the user's words, and the other way round.
OTHER_ROLE_PENALTY: Final = 0.25
#: This share of a question's score above the mean moves from the message that asks to the message that answers.
ANSWER_TRANSFER_SHARE: Final = 0.15
#: Added to a preference if the query requests something and one memory states a preference; less, the more do.
PREFERENCE_BOOST: Final = 0.4
#: Added to events of the days that the query names.
NAMED_DAY_BOOST: Final = 0.25
#: Added to a text with a time if the query asks for a time.
TIME_ANSWER_BOOST: Final = 0.2
#: Added to a text with a name if the query asks for a name. Names in the query and names of speakers do not count.
NAME_ANSWER_BOOST: Final = 0.15
#: Weight of the best score of the same session.
SESSION_BEST_WEIGHT: Final = 0.3
#: A score of 1 is the maximum of a memory without a session: by words and meaning, or by words only.
MAX_SCORE: Final = (1.5 + COSINE_WEIGHT) * (1.0 + SESSION_BEST_WEIGHT)
MAX_TEXT_SCORE: Final = 1.5 * (1.0 + SESSION_BEST_WEIGHT)
#: The best candidates, which are compared pairwise for newer statements.
MAX_RECENCY_CANDIDATES: Final = 20
#: Two memories are similar from the first value on, and certainly similar from the second on. 0 is the mean
#: similarity of the candidates, 1 is equality.
SIMILAR_FROM: Final = 0.4
SURELY_SIMILAR_FROM: Final = 0.7
#: A newer statement has at least this share of the older one's score.
MIN_NEWER_SCORE_SHARE: Final = 0.5
#: Share of its score that the older of two similar statements loses.
OLDER_PENALTY_SHARE: Final = 0.2
#: With fewer candidates than this, their mean similarity counts less.
_RELIABLE_MEAN_FROM: Final = 10
#: A memory bears on a query if its score is at least this share of the best one, both above the score of a memory that
#: has no word of the query and the mean cosine.
BEARING_SHARE: Final = 0.75
#: It must also have a word of the query, or a cosine of at least so many standard deviations of unrelated texts.
BEARING_NOISE: Final = 4.5
#: The best hits to which a search adds what else was said about the same, and how many memories to each.
MAX_WITH_RELATED: Final = 3
MAX_RELATED: Final = 2
#: A statement is about the same from this cosine on (0 for unrelated texts, 1 for equal ones), or if it shares a name
#: that at most so many memories have.
RELATED_COSINE: Final = 0.45
MAX_NAME_MEMORIES: Final = 3


def max_pool_penalty(counts: Indices) -> Doubles:
    """Reduction of the best cosine of n passages; 0 for a single one."""
    long_text = LONG_TEXT_PENALTY * np.log(np.maximum(counts / LONG_TEXT_FROM_PASSAGES, 1.0))
    return np.asarray(MAX_POOL_PENALTY * np.sqrt(2.0 * np.log(np.maximum(counts, 1))) + long_text, dtype=np.float64)


def words_weight(covered: Doubles, *, advice: bool) -> float:
    """Weight of the words of a query: low if many candidates cover little of it."""
    distinctive = np.count_nonzero(covered) < DISTINCTIVE_BELOW
    weight = 1.0 if distinctive else min(1.0, float(covered.max()) / FULL_COVERAGE)
    return weight * (ADVICE_WORDS_WEIGHT if advice else 1.0)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CentredQuery:
    """The vector of a query, centred, and the numbers that rescale its cosines to those of the original query."""

    vector: Floats
    stretch: float = 1.0
    shift: float = 0.0
    #: The shift of a mean that is estimated from signs, which a constant component hardly changes.
    mean_shift: float | None = None

    def mean_cosine(self, signs: vector_index.SignStatistics) -> float:
        """Return the mean cosine of the visible passages."""
        mean = signs.mean_cosine(self.vector)
        return float(rounded(self.rescale_cosines(mean))) if self.mean_shift is None else mean

    def rescale_cosines(self, cosines: npt.NDArray[np.floating] | float) -> Doubles:
        """Return cosines to the centred vector, rescaled so that their mean is that of the original query."""
        return np.asarray(np.asarray(cosines, dtype=np.float64) * self.stretch + self.shift, dtype=np.float64)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelScale:
    """How close a model puts unrelated texts, so that one rule serves every model."""

    #: Mean cosine of unrelated texts, 0..1; 0 for most models, about 0.75 for some.
    baseline: float = 0.0
    #: Standard deviation of these cosines, rescaled so that the baseline is 0 and equal texts are 1.
    noise: float = 0.07

    def rescale(self, cosines: Doubles) -> Doubles:
        """Return cosines with 0 for unrelated texts and 1 for equal ones."""
        return np.asarray((cosines - self.baseline) / (1.0 - self.baseline), dtype=np.float64)

    def query(self, vector: Floats, common: Floats | None = None) -> CentredQuery:
        """Return a query whose cosines are rescaled so that the baseline is 0.

        ``common`` is the mean vector of all requests for advice, which some memories are close to. Without it only the
        topic counts.
        """
        stretch = 1.0 / (1.0 - self.baseline)
        mean_shift = 0.0 if self.baseline else None
        if common is None:
            return CentredQuery(vector=vector, stretch=stretch, shift=-self.baseline * stretch, mean_shift=mean_shift)
        mean = common.astype(np.float64)
        length = float(np.dot(mean, mean))
        # Without what unrelated texts share, the mean has this length, and the query this part of its direction.
        own_length = math.sqrt(max((length - self.baseline) * stretch, 1e-9))
        share = (float(np.dot(vector, mean)) - self.baseline) * stretch / own_length
        multiple = share / own_length
        topic = np.asarray(vector - multiple * mean, dtype=np.float32)
        # Cosines to the topic are divided by its length, here too by the one without what unrelated texts share.
        own_rest = math.sqrt(max(1.0 - share * share, 1e-9))
        return CentredQuery(
            vector=topic,
            stretch=stretch * math.sqrt(float(np.dot(topic.astype(np.float64), topic))) / own_rest,
            shift=-self.baseline * stretch * (1.0 - multiple) / own_rest,
            mean_shift=mean_shift,
        )


#: What most models do with unrelated texts.
USUAL_SCALE: Final = ModelScale()


def centre_query(query: Floats, signs: vector_index.SignStatistics) -> CentredQuery:
    """Return the vector of a question minus a share of the mean vector of all visible memories.

    Some memories are close to every question of a store. After centring only the topic of the question counts.
    """
    vector = query.astype(np.float64)
    common = COMMON_MEAN_SHARE * signs.estimated_mean()
    centred = vector / max(math.sqrt(float(np.dot(vector, vector))), 1e-9) - common
    return CentredQuery(
        vector=centred.astype(np.float32),
        stretch=math.sqrt(float(np.dot(centred, centred))),
        shift=float(np.dot(common, common)) / COMMON_MEAN_SHARE,
    )


def cosine_weight(mean: float) -> float:
    """Weight of the cosines if their mean is ``mean``."""
    return COSINE_WEIGHT * min(1.0, max(0.0, 1.0 - mean) / COSINE_RANGE)


def rounded(values: npt.NDArray[np.floating]) -> Doubles:
    """Round to 1e-6 as float64."""
    return np.asarray(np.round(values.astype(np.float64), 6) + 0.0, dtype=np.float64)


def preference_weight(count: int, preferences: int) -> float:
    """Boost of a preference if ``preferences`` of ``count`` memories state one; near 0 if half of them do."""
    return PREFERENCE_BOOST * (idf(count, preferences) / idf(count, 1)) ** 2


def session_best(scores: Doubles, session: npt.NDArray[np.int32], sessions: int) -> Doubles:
    """Best score of each row's session; the row's own score if `session` is `sessions`, which means none."""
    best = np.full(sessions + 1, -np.inf)
    np.maximum.at(best, session, scores)
    return np.where(session < sessions, best[session], scores)


def top_k(scores: npt.NDArray[np.floating], positions: npt.NDArray[np.int64], k: int) -> Indices:
    """Indices of the k highest scores, in any order. Of equal scores the higher positions count."""
    n = len(scores)
    if n <= k:
        return np.arange(n)
    cut = np.partition(scores, n - k)[n - k]
    above = np.flatnonzero(scores > cut)
    ties = np.flatnonzero(scores == cut)
    room = k - len(above)
    if len(ties) > room:
        ties = ties[np.argpartition(positions[ties], len(ties) - room)[len(ties) - room :]]
    return np.concatenate((above, ties))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Candidates:
    """Rows in ascending order, and their cosines."""

    rows: Indices
    #: Cosine of each row's best passage.
    cosine: Doubles
    #: Whether the row has a vector of the query's model.
    compared: Mask
    #: Mean cosine of the visible passages.
    mean: float

    def merge(self, other: "Candidates") -> "Candidates":
        """Return these candidates and those of a disjoint set."""
        rows = np.concatenate((self.rows, other.rows))
        order = np.argsort(rows)
        return Candidates(
            rows=rows[order],
            cosine=np.concatenate((self.cosine, other.cosine))[order],
            compared=np.concatenate((self.compared, other.compared))[order],
            mean=self.mean,
        )


def with_cosines(
    store: vector_index.VectorIndex | None, direction: CentredQuery | None, rows: Indices, mean: float
) -> Candidates:
    """Return the rows, in ascending order, with their cosines. Without vectors, all get the mean cosine."""
    if store is None or direction is None:
        return Candidates(
            rows=rows, cosine=np.full(len(rows), mean), compared=np.zeros(len(rows), dtype=np.bool_), mean=mean
        )
    best, counts = store.best(direction.vector, rows)
    compared = counts > 0
    cosine = np.where(compared, rounded(direction.rescale_cosines(best) - max_pool_penalty(counts)), mean)
    return Candidates(rows=rows, cosine=cosine, compared=compared, mean=mean)


def average_two_views(
    store: vector_index.VectorIndex, direction: CentredQuery, near: Candidates, preferences: Indices
) -> Candidates:
    """Return the candidates; a preference with two vectors, of its text and of its topic, gets their mean cosine."""
    first, counts = store.spans(near.rows)
    indices = np.flatnonzero((counts == 2) & np.isin(near.rows, preferences))
    cosines = store.cosines(direction.vector, np.concatenate((first[indices], first[indices] + 1))).astype(np.float64)
    mean = direction.rescale_cosines(cosines.reshape(2, -1).mean(axis=0))
    cosine = near.cosine.copy()
    cosine[indices] = rounded(mean - max_pool_penalty(counts[indices]))
    return replace(near, cosine=cosine)


def candidates_by_text(cover: Bm25Shares, positions: npt.NDArray[np.int64], limit: int) -> Candidates:
    """Return the rows that cover most of the query; each contains a word of it."""
    rows = np.flatnonzero(cover.own > 0)
    rows = rows[top_k(cover.full[rows], positions[rows], max(MIN_CANDIDATES, limit))]
    return with_cosines(None, None, rows, 0.0)


def candidates_by_text_and_vector(
    store: vector_index.VectorIndex,
    direction: CentredQuery,
    signs: vector_index.SignStatistics,
    visible: VisibleRows,
    cover: Bm25Shares | None,
    positions: npt.NDArray[np.int64],
    limit: int,
) -> Candidates | None:
    """Return the rows nearest by sign bits and those that cover most. None if no visible row has a vector."""
    owners, distance = store.owners, store.hamming(direction.vector)
    if not visible.unfiltered:
        units = np.flatnonzero(visible.mask[owners])
        owners, distance = owners[units], distance[units]
    if not len(owners):
        return None
    k = max(MIN_CANDIDATES, 2 * limit)
    expected = vector_index.expected_cosine(store.dim)
    mean = direction.mean_cosine(signs)
    chosen = np.zeros(len(visible.mask), dtype=np.bool_)
    chosen[owners[vector_index.nearest(distance, k, store.dim)]] = True
    if cover is not None:
        weight = np.float32(cosine_weight(mean))
        matching = np.flatnonzero(cover.full[owners] > 0)
        rows = owners[matching]
        rough = weight * expected[distance[matching]] + cover.full[rows]
        chosen[rows[top_k(rough, positions[rows], k)]] = True
        # Rows without a vector of this model become candidates by their text.
        textual = np.flatnonzero(cover.own > 0)
        chosen[textual[top_k(cover.full[textual], positions[textual], k)]] = True
    return with_cosines(store, direction, np.flatnonzero(chosen), mean)


def newer_similarity(
    scores: Doubles,
    when: npt.NDArray[np.int64],
    trust: npt.NDArray[np.int8],
    lasting: Mask,
    terms: Mask,
    cosines: Doubles,
) -> Doubles:
    """Return by pairs, 0..1 and (n, n), how certainly the column is a newer, very similar statement than the row.

    ``when`` are instants and ``trust`` ranks; ``lasting`` is False for events; ``terms`` (terms, n) says which terms of
    the query each candidate contains. The newer statement must contain every term of the query that the older one
    contains, with at least the same trust.
    """
    newer = (when[None, :] > when[:, None]) & lasting[:, None] & lasting[None, :]
    newer &= trust[None, :] >= trust[:, None]
    newer &= scores[None, :] >= MIN_NEWER_SCORE_SHARE * scores[:, None]
    newer &= ~(terms[:, :, None] & ~terms[:, None, :]).any(axis=0)
    mean = _mean_similarity(cosines[np.ix_(lasting, lasting)])
    relative = (cosines - mean) / max(1.0 - mean, 1e-9)
    return np.where(newer, np.clip((relative - SIMILAR_FROM) / (SURELY_SIMILAR_FROM - SIMILAR_FROM), 0.0, 1.0), 0.0)


def recency_boosts(scores: Doubles, similarity: Doubles) -> Doubles:
    """Return the change of each score that ranks newer statements first; see ``newer_similarity``."""
    gap = np.maximum(scores[:, None] - scores[None, :], 0.0)
    raised = scores + (similarity * gap).max(axis=0, initial=0.0)
    penalty = OLDER_PENALTY_SHARE * similarity.max(axis=1, initial=0.0)
    return np.asarray(raised * (1.0 - penalty) - scores, dtype=np.float64)


def _mean_similarity(cosines: Doubles) -> float:
    """Mean cosine of the candidates: high if the model does not know the language."""
    count = len(cosines)
    if count < 3:
        return 0.0
    others = math.fsum(cosines.ravel().tolist()) - math.fsum(cosines.diagonal().tolist())
    return max(others / (count * (count - 1)), 0.0) * min(1.0, (count - 2) / (_RELIABLE_MEAN_FROM - 2))
