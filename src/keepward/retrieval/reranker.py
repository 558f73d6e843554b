"""Learn from feedback how to reorder candidates, and check on held-out feedback whether the new order is better.

    score = fused score + change - mean change of all candidates
    change = [q, 1] D m + w . features

q and m are the vectors of query and memory. D is a matrix of low rank, w has one weight per feature. Untrained weights
are zero, so the order is exactly the fused one. The same examples give the same bytes.
"""

import io
import json
import math
import zipfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from keepward.retrieval.columns import Doubles, Floats
from keepward.retrieval.ranking import SESSION_BEST_WEIGHT, rounded

#: Minimum number of candidates that are reordered.
MIN_CANDIDATES: Final = 200
#: The parts of the fused score, then properties of the memory.
FEATURES: Final = ("cover", "cosine", "feature", "session", "recency", "importance", "trust")
#: Every fourth feedback of a person is used for evaluation, never for training.
HOLD_OUT_EVERY: Final = 4
#: A used memory should score this much above an ignored one.
MARGIN: Final = 1.0
LEARNING_RATE: Final = 0.4
FEATURE_LEARNING_RATE: Final = 0.1
#: Value of the 1 next to the query while learning.
CONSTANT: Final = 0.5
MAX_RANK: Final = 16
#: Weights are used if they gain this share of held-out pairs, by this many standard errors, with at least this many
#: pairs and feedbacks.
MIN_GAIN: Final = 0.05
MIN_Z_SCORE: Final = 2.0
MIN_PAIRS: Final = 20
MIN_FEEDBACK: Final = 5
#: Age at which a memory has no recency left: ten years.
_OLD_HOURS: Final = 87_660.0
_MAX_TRUST: Final = 7.0
_HOUR_MICROS: Final = 3_600_000_000.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RerankerWeights:
    """The learned weights."""

    #: Id of the embedder whose vectors they apply to; None for none.
    model: str | None
    #: float32 (dim + 1, rank) and (rank, dim): D = left right.
    left: Floats
    right: Floats
    #: float32 (len(FEATURES),).
    features: Floats

    def query_direction(self, query: Floats) -> Doubles:
        """Return [q, 1] D: the direction (dim,) in which memories gain for a query."""
        left = self.left.astype(np.float64)
        return np.asarray((query.astype(np.float64) @ left[:-1] + left[-1]) @ self.right.astype(np.float64))

    def score_deltas(self, near: Doubles, features: Doubles) -> Doubles:
        """Return the change of each candidate's score; ``near`` is the product of direction and vector."""
        total = near.astype(np.float64)
        for column, weight in enumerate(self.features.tolist()):
            total = total + weight * features[:, column]
        # A change that all candidates share must not move scores across thresholds.
        return rounded(total - math.fsum(total.tolist()) / max(len(total), 1))

    def dump(self) -> bytes:
        """Return the weights as the bytes of an npz file."""
        out = io.BytesIO()
        head = json.dumps([self.model, *FEATURES])
        np.savez(out, head=np.array(head), left=self.left, right=self.right, features=self.features)
        return out.getvalue()


def load(data: bytes) -> RerankerWeights:
    """Return the weights of ``RerankerWeights.dump``.

    Raises:
        ValueError: they are damaged, for other features, or not finite.
    """
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as file:
            model, *names = json.loads(str(file["head"]))
            left, right, features = (file[name].astype(np.float32) for name in ("left", "right", "features"))
    except (ValueError, KeyError, EOFError, OSError, zipfile.BadZipFile) as exc:
        raise ValueError("its weights are damaged") from exc
    dim, rank = right.shape[1], right.shape[0]
    if tuple(names) != FEATURES or left.shape != (dim + 1, rank) or features.shape != (len(FEATURES),):
        raise ValueError("its weights are for other features")
    if not all(np.isfinite(each).all() for each in (left, right, features)):
        raise ValueError("its weights are damaged")
    return RerankerWeights(model=model, left=left, right=right, features=features)


def recency(happened: npt.NDArray[np.int64], now: int) -> Doubles:
    """Return the recency by the logarithm of the age: 1 for now, 0 for ten years ago. Times are µs since 1970."""
    hours = np.clip((now - happened.astype(np.float64)) / _HOUR_MICROS, 0.0, _OLD_HOURS)
    return rounded(1.0 - np.log1p(hours) / math.log1p(_OLD_HOURS))


def features_of(
    parts: Sequence[Doubles],
    *,
    happened: npt.NDArray[np.int64],
    now: int,
    importance: npt.NDArray[np.floating],
    trust: npt.NDArray[np.integer],
) -> Doubles:
    """Return the features (n, len(FEATURES)) of candidates; ``parts`` are the first four, trust is 0..7."""
    *others, session = parts
    own = (recency(happened, now), rounded(importance), rounded(trust.astype(np.float64) / _MAX_TRUST))
    # The session part of the score is weighted; its feature is not.
    return np.stack([*map(rounded, others), rounded(session / SESSION_BEST_WEIGHT), *own], axis=1)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Example:
    """One feedback: the memories that it names, and which of them were used."""

    held_out: bool
    #: Whether an agent or another program gave it.
    from_agent: bool
    receipt: str
    #: float32 (dim,), zeros if the query has no vector.
    query: Floats
    #: float32 (n, dim), zeros if a memory has none.
    vectors: Floats
    #: Fused scores (n,) and features (n, len(FEATURES)).
    fused: Doubles
    features: Doubles
    #: (n,): True for used, False for ignored.
    used: npt.NDArray[np.bool_]

    @property
    def pairs(self) -> int:
        """The number of pairs of a used and an ignored memory."""
        used = int(np.count_nonzero(self.used))
        return used * (len(self.used) - used)

    def score_margins(self, scores: Doubles) -> Doubles:
        """Return the score of each used memory (row) minus that of each ignored one (column)."""
        return np.asarray(scores[self.used][:, None] - scores[~self.used][None, :])


def train(examples: Sequence[Example], *, model: str | None, dim: int, share: float) -> tuple[RerankerWeights, float]:
    """Return weights learned in one pass over the examples, and the share, 0..1, that agents had in it.

    Each example is one step of stochastic gradient descent on the mean hinge loss of its pairs. A person's example
    weighs 1. All agents' examples on one receipt weigh at most 1 together, all agents' examples together at most
    ``share`` of the total; for example 0.25 allows one for three of people.
    """
    matrix, weights = np.zeros((dim + 1, dim)), np.zeros(len(FEATURES))
    lessons = [example for example in examples if not example.held_out]
    agent_receipts = Counter(example.receipt for example in lessons if example.from_agent)
    people = sum(not example.from_agent for example in lessons)
    agent_weight = 1.0 if share >= 1.0 else min(1.0, share / (1.0 - share) * people / max(len(agent_receipts), 1))
    for example in lessons:
        step = agent_weight / agent_receipts[example.receipt] if example.from_agent else 1.0
        query = np.append(example.query.astype(np.float64), CONSTANT)
        vectors = example.vectors.astype(np.float64)
        scores = example.fused + example.features @ weights + vectors @ (query @ matrix)
        short = example.score_margins(scores) < MARGIN
        push = np.zeros(len(scores))
        push[example.used], push[~example.used] = short.sum(axis=1), -short.sum(axis=0)
        push *= step / example.pairs
        matrix += LEARNING_RATE * np.outer(query, push @ vectors)
        weights += FEATURE_LEARNING_RATE * (push @ example.features)
    left, right = _factors(matrix)
    agents = agent_weight * len(agent_receipts)
    learned = RerankerWeights(model=model, left=left, right=right, features=weights.astype(np.float32))
    return learned, round(agents / (agents + people), 4) if agents else 0.0


def _factors(matrix: Doubles) -> tuple[Floats, Floats]:
    """Return the two factors of the best approximation of rank ``MAX_RANK`` (Eckart, Young 1936)."""
    dim = matrix.shape[1]
    if not dim or not matrix.any():
        return np.zeros((dim + 1, 0), dtype=np.float32), np.zeros((0, dim), dtype=np.float32)
    u, sizes, v = np.linalg.svd(matrix, full_matrices=False)
    rank = min(MAX_RANK, int(np.count_nonzero(sizes > 1e-9 * sizes[0])))
    root = np.sqrt(sizes[:rank])
    left = u[:, :rank] * root
    left[-1] *= CONSTANT
    return left.astype(np.float32), (root[:, None] * v[:rank]).astype(np.float32)


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldOutResult:
    """Result of three orders on feedback that did not train: shares of pairs in the right order; a tie is half."""

    feedbacks: int = 0
    pairs: int = 0
    learned: float = 0.0
    fused: float = 0.0
    cosine: float = 0.0
    #: ``learned`` less the better of the other two.
    gain: float = 0.0
    serves: bool = False
    #: The reason in words.
    why: str


def evaluate_held_out(weights: RerankerWeights, examples: Sequence[Example]) -> HeldOutResult:
    """Compare weights with the fused order and the cosine on the held-out feedback."""
    held_out = [example for example in examples if example.held_out]
    pairs = sum(example.pairs for example in held_out)
    too_few = (
        f"{pairs} pairs of {len(held_out)} feedbacks are held out; "
        f"an evaluation needs {MIN_PAIRS} pairs of {MIN_FEEDBACK}"
    )
    if not held_out:
        return HeldOutResult(why=too_few)
    shares = np.array([_shares(weights, example) for example in held_out])
    learned, fused, cosine = (math.fsum(column) / len(held_out) for column in shares.T.tolist())
    leads = shares[:, 0] - shares[:, 1 if fused >= cosine else 2]
    gain = math.fsum(leads.tolist()) / len(held_out)
    error = float(np.std(leads, ddof=1)) / math.sqrt(len(held_out)) if len(held_out) > 1 else 0.0
    serves = False
    if pairs < MIN_PAIRS or len(held_out) < MIN_FEEDBACK:
        why = too_few
    elif gain < MIN_GAIN:
        why = f"it gains less than {MIN_GAIN:g} on held-out feedback"
    elif gain < MIN_Z_SCORE * error:
        why = f"its gain on held-out feedback is less than {MIN_Z_SCORE:g} standard errors"
    else:
        serves, why = True, "it ranks held-out feedback better than the fused order"
    numbers = [round(number, 4) for number in (learned, fused, cosine, gain)]
    shares_by_order = dict(zip(("learned", "fused", "cosine", "gain"), numbers, strict=True))
    return HeldOutResult(feedbacks=len(held_out), pairs=pairs, serves=serves, why=why, **shares_by_order)


def _shares(weights: RerankerWeights, example: Example) -> list[float]:
    """Return the share of an example's pairs in the right order: by learned score, fused score and cosine."""
    near = example.vectors.astype(np.float64) @ weights.query_direction(example.query)
    learned = example.fused + weights.score_deltas(near, example.features)
    orders = (learned, example.fused, example.features[:, FEATURES.index("cosine")])
    return [float(np.mean((np.sign(example.score_margins(order)) + 1.0) / 2.0)) for order in orders]
