"""Fusion: which rows are worth a score, what the text, the vectors and their neighbours add to it, and how they relate.

A question may need two memories of which the second shares no word with it: "Where does Maria's manager live?" is
answered by "Maria's manager is Tomasz Wilk" and "Wilk has moved to Gdansk". The name in the first leads to the second.
And of two statements of the same thing the older one is mostly no longer true.

Invariants
(1) Coverage and cosine are absolute, so a signal with nothing to say fades by itself; no ranks, no z-scores. Parts are
    rounded to 1e-6 before they are added, in a fixed order. What the best memory covers decides how much words count.
(2) Candidates depend on the set of allowed rows, never on the order in which rows came; what cannot be compared has
    the mean cosine, neither praise nor blame.
(3) Only names that few of the allowed memories hold lead anywhere, and none that the query itself holds.
(4) Events are never outdone: what happened stays true, whatever happens later; and nothing is by what is trusted less.
"""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt

from keepward.retrieval import vectors
from keepward.retrieval.postings import Coverage, Sight, TermStore, idf
from keepward.retrieval.rows import Places

Floats = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

#: Candidates of each kind, at least.
LEAST: Final = 400
#: Weight of the cosine beside coverage.
COSINE: Final = 1.35
#: Cosines that reach from a mean of 1 - REACH to 1 count in full; in a narrower space (a model that does not
#: know the language puts all texts close together) they count in proportion.
REACH: Final = 0.7
#: The best of n units is high by luck; what it is discounted by per sqrt(2 ln n), the growth of a maximum.
LUCK: Final = 0.02
#: The units of a long text are nearly all on one topic, and beyond the first few that discount is far too small: so
#: much more per ln(n / CROWD_FROM).
CROWD: Final = 0.06
CROWD_FROM: Final = 4
#: Words count in full where the best memory covers so much of the query, and in proportion below: what no memory covers
#: more of, many cover by chance. In full, too, where fewer memories than this cover any of it.
PLENTY: Final = 0.6
SINGLED_OUT: Final = 12
#: Weight of words in a request for advice: what bears on it is a liking, told in other words.
ADVICE_WORDS: Final = 0.7
#: Share of what all memories have in common that is taken off the vector of any other question.
COMMON: Final = 0.6
#: Added where the speaker of the memory is named in the query.
SPEAKER: Final = 0.3
#: Taken off what the other one said, where the query asks for what the user, or the assistant, said.
OTHER_ROLE: Final = 0.25
#: Share of what a turn that ends in a question scores, above what is usual, that goes over to the turn that answers it.
ANSWERED: Final = 0.15
#: Added to what somebody tells of himself, where the query is such a remark.
REMARK: Final = 0.1
#: Added, where something is to be done, to what the user wants to be heeded, if one memory alone says such a thing;
#: less, the more do.
WISHED: Final = 0.4
#: Added to what happened on the days that the query names.
DATED: Final = 0.25
#: Added to what tells a time where the query asks for one, and to what holds a name that is in neither the query nor a
#: speaker's, where it asks for such.
TIMED: Final = 0.2
NAMED: Final = 0.15
#: Weight of the best score of the same session.
SESSION_BEST: Final = 0.3
#: Share of its score that an answer passes on to where a name in it leads.
LINK: Final = 0.3
#: Share of its score that an older statement loses to a newer one of the same.
OUTDONE: Final = 0.2
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


def crowd(counts: Places) -> Doubles:
    """Return the further discount of a text of many units; 0 for up to `CROWD_FROM`."""
    return np.asarray(CROWD * np.log(np.maximum(counts / CROWD_FROM, 1.0)), dtype=np.float64)


def luck(counts: Places) -> Doubles:
    """Discount of the best cosine of n units; 0 for a single one."""
    return LUCK * np.sqrt(2.0 * np.log(np.maximum(counts, 1))) + crowd(counts)


def words_weight(covered: Doubles, *, advice: bool) -> float:
    """Weight of what candidates cover of a query, beside their cosines: little where many cover a little of it."""
    singled_out = np.count_nonzero(covered) < SINGLED_OUT
    known = 1.0 if singled_out else min(1.0, float(covered.max()) / PLENTY)
    return known * (ADVICE_WORDS if advice else 1.0)


def answered(scores: Doubles, usual: float, asking: Places, answering: Places) -> Doubles:
    """Return what each candidate's score changes by, as the turn at each place of `asking` is answered by another.

    A question is as near to the same question asked later as its answer is, and tells nothing.
    """
    passed = ANSWERED * np.maximum(scores[asking] - usual, 0.0)
    change = np.zeros(len(scores))
    change[asking] -= passed
    change[answering] += passed
    return change


def particular(query: Floats, usual: Floats) -> Floats:
    """Return the vector of a request for advice without what it has of the `usual`, of length 1, in such requests.

    Some memories are close to any request, whatever it is about; this leaves them with what they share with this one.
    """
    return np.asarray(query - np.dot(query, usual) * usual, dtype=np.float32)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Direction:
    """Where a query points in the space of its model, and what a cosine to that is of the query itself, on average."""

    vector: Floats
    stretch: float = 1.0
    shift: float = 0.0

    def level(self, cosines: npt.NDArray[np.floating] | float) -> Doubles:
        """Return cosines to this direction as such to the query, of which the mean memory has the same."""
        return np.asarray(np.asarray(cosines, dtype=np.float64) * self.stretch + self.shift, dtype=np.float64)


def apart(query: Floats, signs: vectors.Signs) -> Direction:
    """Return a question without what all memories have in common: their topic and how they are told.

    Some memories are close to whatever is asked in a store; this leaves them with what they share with this question.
    """
    own = query.astype(np.float64)
    common = COMMON * signs.common()
    rest = own / max(math.sqrt(float(np.dot(own, own))), 1e-9) - common
    return Direction(
        vector=rest.astype(np.float32),
        stretch=math.sqrt(float(np.dot(rest, rest))),
        shift=float(np.dot(common, common)) / COMMON,
    )


def cosine_weight(mean: float) -> float:
    """Weight of a cosine in a space whose cosines to this query have this mean."""
    return COSINE * min(1.0, max(0.0, 1.0 - mean) / REACH)


def beyond(cosines: Doubles, mean: float, count: int) -> Doubles:
    """Return cosines as they would be in a wide space: in a narrow one what all have in common is taken off.

    The mean of fewer memories than ten says little of what is usual, and of two nothing.
    """
    shared = max(mean - (1.0 - REACH), 0.0) * min(1.0, max(count - 2, 0) / 8)
    return np.asarray((cosines - shared) / (1.0 - shared), dtype=np.float64)


def adds(parts: Mapping[str, float]) -> dict[str, float]:
    """Return what each part of a score adds to the sum that puts hits in order; together they are that sum.

    What the cosine adds is what the others do not: its weight depends on the question.
    """
    behind = 1.0 - OUTDONE * parts["outdone"]
    before = parts["fused"] / behind
    found = {name: parts[name] for name in ("cover", "feature", "caught")}
    found |= {"session": SESSION_BEST * parts["session"], "link": LINK * parts["link"]}
    found["cosine"] = before - math.fsum(found.values())
    found["outdone"] = parts["fused"] - before
    found["learned"] = parts.get("learned", 0.0)
    return {name: round(value, 6) for name, value in found.items()}


def rounded(values: npt.NDArray[np.floating]) -> Doubles:
    """Round to 1e-6 as float64."""
    return np.asarray(np.round(values.astype(np.float64), 6) + 0.0, dtype=np.float64)


def wish_weight(count: int, holders: int) -> float:
    """Return what is added to a wish where ``holders`` of ``count`` memories tell one; nearly nothing where half do."""
    return WISHED * (idf(count, holders) / idf(count, 1)) ** 2


def session_best(scores: Doubles, session: npt.NDArray[np.int32], sessions: int) -> Doubles:
    """Best score of each one's session; its own where `session` is `sessions`, which means none."""
    best = np.full(sessions + 1, -np.inf)
    np.maximum.at(best, session, scores)
    return np.where(session < sessions, best[session], scores)


def strongest(scores: npt.NDArray[np.floating], positions: npt.NDArray[np.int64], k: int) -> Places:
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


def compare(store: vectors.UnitStore | None, toward: Direction | None, rows: Places, mean: float) -> Candidates:
    """Return the rows, ascending, with their cosines; without a store or direction none can be compared."""
    if store is None or toward is None:
        return Candidates(
            rows=rows, cosine=np.full(len(rows), mean), compared=np.zeros(len(rows), dtype=np.bool_), mean=mean
        )
    best, counts = store.best(toward.vector, rows)
    compared = counts > 0
    cosine = np.where(compared, rounded(toward.level(best) - luck(counts)), mean)
    return Candidates(rows=rows, cosine=cosine, compared=compared, mean=mean)


def midway(store: vectors.UnitStore, toward: Direction, near: Candidates, wishes: Places) -> Candidates:
    """Return candidates with the cosines of wishes that have two vectors, of the whole and of what it is about, midway.

    Of two views of one sentence their mean is closer to the truth than the better one.
    """
    first, counts = store.spans(near.rows)
    places = np.flatnonzero((counts == 2) & np.isin(near.rows, wishes))
    cosines = store.cosines(toward.vector, np.concatenate((first[places], first[places] + 1))).astype(np.float64)
    cosine = near.cosine.copy()
    cosine[places] = rounded(toward.level(cosines.reshape(2, -1).mean(axis=0)) - luck(counts[places]))
    return replace(near, cosine=cosine)


def by_text(cover: Coverage, positions: npt.NDArray[np.int64], limit: int) -> Candidates:
    """Return the rows that cover most of the query, of those that hold any word of it."""
    rows = np.flatnonzero(cover.own > 0)
    rows = rows[strongest(cover.full[rows], positions[rows], max(LEAST, limit))]
    return compare(None, None, rows, 0.0)


def by_both(
    store: vectors.UnitStore,
    toward: Direction,
    signs: vectors.Signs,
    sight: Sight,
    cover: Coverage | None,
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
    k = max(LEAST, 2 * limit)
    expected = vectors.expected_cosine(store.dim)
    mean = float(rounded(toward.level(signs.mean_cosine(toward.vector))))
    chosen = np.zeros(len(sight.mask), dtype=np.bool_)
    chosen[owners[vectors.nearest(distance, k, store.dim)]] = True
    if cover is not None:
        weight = np.float32(cosine_weight(mean))
        held = np.flatnonzero(cover.full[owners] > 0)
        rows = owners[held]
        rough = weight * expected[distance[held]] + cover.full[rows]
        chosen[rows[strongest(rough, positions[rows], k)]] = True
        # Entries without a vector, or with one of another model, come in by their text.
        textual = np.flatnonzero(cover.own > 0)
        chosen[textual[strongest(cover.full[textual], positions[textual], k)]] = True
    return compare(store, toward, np.flatnonzero(chosen), mean)


def linked(
    sources: Places, scores: Doubles, asked: Collection[int], postings: TermStore, sight: Sight
) -> tuple[Places, Doubles]:
    """Return rows that a name in one of the sources leads to, ascending, and the score that comes along.

    `sources` are rows best first, `scores` theirs, `asked` the term hashes of the query. The whole score of its source
    comes along where the names have the weight of one that a single memory holds; rarer than that nothing is.
    """
    links: dict[int, float] = {}
    cap = max(FEW, int(FEW_SHARE * sight.count))
    rarest = idf(sight.count, 1)
    for source, score in zip(sources.tolist(), scores.tolist(), strict=True):
        reached: dict[int, float] = {}
        for name in postings.names(source):
            # Of a common name it is enough to know that it is one, where nothing is hidden.
            if name in asked or (sight.whole and postings.count(name) > cap):
                continue
            rows = postings.postings(name)[0]
            if not sight.whole:
                rows = rows[sight.mask[rows]]
            if 1 < (count := sight.holders(name, len(rows))) <= cap:
                weight = idf(sight.count, count) / rarest
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
    lasting: Mask,
    changing: Mask,
    held: Mask,
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
