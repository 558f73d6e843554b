"""Learn: weights of the reranker from feedback, and whether they are good enough to serve.

Invariants
(1) the weights are a function of the examples in order, of the seed and of the share that bounded feedback may have:
    a draw is a hash of seed, step and place in the batch, and nothing else is random.
(2) what is held out is judged on and never learned from; bounded feedback is never held out, so it is never judged on.
(3) weights serve only by a clear margin: `LEAST_GAIN` over the better of fused order and cosine on the held-out
    feedback, on at least `LEAST_PAIRS` pairs and `LEAST_FEEDBACK` feedbacks, and by `SURE` standard errors.
(4) a lot counts once: one feedback of a person; or one receipt, whatever agents said of it and how often. A lot is
    drawn as a whole first, then a feedback in it, then a pair in that.
(5) in every step agents' lots together are drawn with at most their share, measured by what people had said until
    then; where no person has said anything, they are not drawn at all. So they add at most that share of the steps.
"""

import hashlib
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt

from keepward.retrieval.rerank import PARTS, Doubles, Floats, Weights

#: Of feedback that can be, every so many one is held out.
HELD_OUT: Final = 4
#: A step for every so many feedbacks learned from, on so many pairs drawn from the last so many feedbacks.
EVERY: Final = 5
BATCH: Final = 16
BUFFER: Final = 10_000
#: A used memory should score so much above an ignored one.
MARGIN: Final = 1.0
#: Rates of learning for the matrix and for the parts, and the share of the weights that every step forgets.
RATE: Final = 1.0
PART_RATE: Final = 0.25
FORGET: Final = 0.01
#: Rank to which the learned matrix is cut.
RANK: Final = 16
#: Weight of the 1 beside the query while learning.
CONSTANT: Final = 0.5

LEAST_GAIN: Final = 0.05
LEAST_PAIRS: Final = 20
LEAST_FEEDBACK: Final = 5
SURE: Final = 2.0
_WHOLE: Final = float(1 << 64)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Example:
    """One feedback: memories shown for a query, and which of them were used."""

    #: Number of the feedback, from 1 without a gap in the log.
    n: int
    #: Whether it is only judged on.
    held_out: bool
    #: Whether an agent or another program gave it, so that it counts up to a share and is never held out.
    bounded: bool = False
    #: Id of the receipt that it is on.
    receipt: str
    #: float32 (dim,), zeros where the query has no vector.
    query: Floats
    #: float32 (k, dim), zeros where a memory has none; `known` (k,) says which have one.
    vectors: Floats
    known: npt.NDArray[np.bool_]
    #: Fused scores (k,), and facts (k, len(PARTS)).
    fused: Doubles
    facts: Doubles
    #: (k,): True for used, False for ignored.
    used: npt.NDArray[np.bool_]

    @property
    def pairs(self) -> int:
        """How many combinations of a used and an ignored memory there are."""
        used = int(np.count_nonzero(self.used))
        return used * (len(self.used) - used)

    def pair(self, number: int) -> tuple[int, int]:
        """Return the places of a used and an ignored memory; any number names one combination."""
        used, ignored = np.flatnonzero(self.used), np.flatnonzero(~self.used)
        better, worse = divmod(number % self.pairs, len(ignored))
        return int(used[better]), int(ignored[worse])


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """How three orders did on held-out feedback: shares of pairs in the right order, 0..1, ties as half."""

    feedbacks: int
    pairs: int
    learned: float
    fused: float
    cosine: float
    #: `learned` less the better of the other two.
    gain: float
    #: Whether invariant (3) holds.
    serves: bool
    #: In words, for a person.
    why: str

    @property
    def enough(self) -> bool:
        """Whether there was enough held-out feedback to tell anything."""
        return self.pairs >= LEAST_PAIRS and self.feedbacks >= LEAST_FEEDBACK


@dataclass(slots=True, kw_only=True)
class Lots:
    """The lots of the feedback so far (4)."""

    #: 0..1, of agents' lots among the draws; from 1 on they are not bounded.
    share: float
    #: Lots of a class that are drawn from, newest.
    buffer: int = BUFFER
    #: Places of the feedback in each lot, in the order of arrival.
    people: list[list[int]] = field(default_factory=list)
    agents: list[list[int]] = field(default_factory=list)
    _receipts: dict[str, list[int]] = field(default_factory=dict)

    def add(self, place: int, *, receipt: str, bounded: bool) -> None:
        """Take in one feedback."""
        if not bounded:
            self.people.append([place])
        elif receipt in self._receipts:
            self._receipts[receipt].append(place)
        else:
            lot = self._receipts[receipt] = [place]
            self.agents.append(lot)

    @property
    def weight(self) -> float:
        """How many lots the agents' ones count for."""
        if self.share >= 1.0:
            return float(len(self.agents))
        return min(float(len(self.agents)), self.share / (1.0 - self.share) * len(self.people))

    def draw(self, seed: int, step: int, batch: int) -> Iterator[tuple[int, int]]:
        """Yield, with repeats, places of feedback and a number from which to choose a pair of it."""
        people, agents = self.people[-self.buffer :], self.agents[-self.buffer :]
        odds = self.weight / (len(self.people) + self.weight)
        for n in range(batch):
            digest = hashlib.sha256(f"keepward/replay/{seed}/{step}/{n}".encode()).digest()
            side, lot, place, pair = (int.from_bytes(digest[at : at + 8], "big") for at in range(0, 32, 8))
            lots = agents if not people or side / _WHOLE < odds else people
            chosen = lots[lot % len(lots)]
            yield chosen[place % len(chosen)], pair


def train(
    examples: Sequence[Example],
    *,
    model: str | None,
    dim: int,
    share: float = 1.0,
    seed: int = 0,
    on_progress: Callable[[int], None] = lambda _: None,
) -> tuple[Weights, float]:
    """Return the weights learned from the feedback that is not held out, oldest first, and what agents had of it.

    The second is the share, 0..1, of the pairs drawn that bounded feedback had named. `on_progress` gets the number
    of feedbacks learned from, after each.
    """
    matrix, parts = np.zeros((dim + 1, dim), dtype=np.float64), np.zeros(len(PARTS), dtype=np.float64)
    lessons = [example for example in examples if not example.held_out and example.pairs]
    lots, steps, bounded = Lots(share=share), 0, 0
    for count, example in enumerate(lessons, start=1):
        lots.add(count - 1, receipt=example.receipt, bounded=example.bounded)
        due = (len(lots.people) + lots.weight) / EVERY
        # A step for every so many lots, and one more for a rest where nothing follows.
        while steps < (math.ceil(due) if count == len(lessons) else math.floor(due)):
            steps += 1
            drawn = [(lessons[place], pair) for place, pair in lots.draw(seed, steps, BATCH)]
            bounded += sum(each.bounded for each, _ in drawn)
            _step(matrix, parts, [(each, each.pair(number)) for each, number in drawn])
        on_progress(count)
    left, right = _cut(matrix)
    seen = max((example.n for example in examples), default=0)
    weights = Weights(
        model=model, left=left, right=right, parts=parts.astype(np.float32), seed=seed, steps=steps, seen=seen
    )
    return weights, round(bounded / (steps * BATCH), 4) if steps else 0.0


def _step(matrix: Doubles, parts: Doubles, batch: Sequence[tuple[Example, tuple[int, int]]]) -> None:
    """Take one step of the margin ranking loss max(0, MARGIN - (used - ignored)), in place."""
    turn, weigh = np.zeros_like(matrix), np.zeros_like(parts)
    for example, (better, worse) in batch:
        asked = np.append(example.query.astype(np.float64), CONSTANT)
        apart = example.facts[better] - example.facts[worse]
        lead = float(example.fused[better] - example.fused[worse] + parts @ apart)
        both = bool(example.known[better] and example.known[worse])
        if both:
            between = example.vectors[better].astype(np.float64) - example.vectors[worse]
            lead += float(asked @ matrix @ between)
        if lead >= MARGIN:
            continue
        weigh += apart
        if both:
            turn += np.outer(asked, between)
    matrix *= 1.0 - FORGET
    parts *= 1.0 - FORGET
    matrix += RATE / len(batch) * turn
    parts += PART_RATE / len(batch) * weigh


def _cut(matrix: Doubles) -> tuple[Floats, Floats]:
    """Return the two factors of the best approximation of rank `RANK` (Eckart, Young 1936)."""
    dim = matrix.shape[1]
    if not dim or not matrix.any():
        return np.zeros((dim + 1, 0), dtype=np.float32), np.zeros((0, dim), dtype=np.float32)
    u, sizes, v = np.linalg.svd(matrix, full_matrices=False)
    rank = min(RANK, int(np.count_nonzero(sizes > 1e-9 * sizes[0])))
    root = np.sqrt(sizes[:rank])
    left = u[:, :rank] * root
    left[-1] *= CONSTANT
    return left.astype(np.float32), (root[:, None] * v[:rank]).astype(np.float32)


def scores(weights: Weights, example: Example) -> Doubles:
    """Return the score of each memory of an example as it would be served."""
    near = np.zeros(len(example.used))
    if weights.dim == example.vectors.shape[1] and weights.dim:
        near = np.where(example.known, example.vectors.astype(np.float64) @ weights.towards(example.query), 0.0)
    return np.asarray(example.fused + weights.change(near, example.facts))


def judge(weights: Weights, examples: Sequence[Example]) -> Judged:
    """Compare weights with the fused order and the cosine on the held-out feedback."""
    held = [example for example in examples if example.held_out and example.pairs]
    pairs = sum(example.pairs for example in held)
    cosine = PARTS.index("cosine")
    shares = np.array(
        [
            [_right(order, example) for order in (scores(weights, example), example.fused, example.facts[:, cosine])]
            for example in held
        ]
    ).reshape(len(held), 3)
    if not held:
        return unjudged(_few(0, 0))
    learned, fused, plain = (math.fsum(column) / len(held) for column in shares.T.tolist())
    rival = 1 if fused >= plain else 2
    leads = shares[:, 0] - shares[:, rival]
    gain = math.fsum(leads.tolist()) / len(held)
    error = float(np.std(leads, ddof=1)) / math.sqrt(len(held)) if len(held) > 1 else 0.0
    enough = pairs >= LEAST_PAIRS and len(held) >= LEAST_FEEDBACK
    clear = gain >= LEAST_GAIN and gain >= SURE * error
    if not enough:
        why = _few(len(held), pairs)
    elif clear:
        why = "it orders held-out feedback better than the plain order does"
    elif gain >= LEAST_GAIN:
        why = f"its gain on held-out feedback is within {SURE:g} standard errors of nothing"
    else:
        why = f"it gains less than {LEAST_GAIN:g} on held-out feedback"
    return Judged(
        feedbacks=len(held),
        pairs=pairs,
        learned=round(learned, 4),
        fused=round(fused, 4),
        cosine=round(plain, 4),
        gain=round(gain, 4),
        serves=enough and clear,
        why=why,
    )


def unjudged(why: str) -> Judged:
    """Return what is said where nothing was held out."""
    return Judged(feedbacks=0, pairs=0, learned=0.0, fused=0.0, cosine=0.0, gain=0.0, serves=False, why=why)


def _few(feedbacks: int, pairs: int) -> str:
    return (
        f"{pairs} pairs of {feedbacks} feedbacks are held out; "
        f"it takes {LEAST_PAIRS} pairs of {LEAST_FEEDBACK} to judge it"
    )


def _right(order: npt.NDArray[np.floating], example: Example) -> float:
    """Return the share of an example's pairs that scores put in the right order, ties as half."""
    apart = order[example.used][:, None] - order[~example.used][None, :]
    return float(np.mean((np.sign(apart) + 1.0) / 2.0))
