"""Scores of a ranking and of contexts against the ids that answer a question.

Invariants
(1) Every score is a share, 0..1; evidence counts alike, whatever its rank among the evidence.
(2) Means are over questions, each counting once.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

#: Depths of recall@k and full@k.
DEPTHS = (5, 10, 20, 50)


def recall_at(ranked: Sequence[str], evidence: Collection[str], depth: int) -> float:
    """Return the share of the evidence among the first ``depth``."""
    return sum(name in evidence for name in ranked[:depth]) / len(evidence)


def gain_at(ranked: Sequence[str], evidence: Collection[str], depth: int) -> float:
    """Return nDCG with gains of 0 and 1.

    Source: Järvelin and Kekäläinen (2002), "Cumulated gain-based evaluation of IR techniques".
    """
    got = sum(1 / math.log2(place + 2) for place, name in enumerate(ranked[:depth]) if name in evidence)
    return got / sum(1 / math.log2(place + 2) for place in range(min(depth, len(evidence))))


def reciprocal_rank(ranked: Sequence[str], evidence: Collection[str]) -> float:
    """Return 1 / rank of the first that answers, rank from 1; 0 where none does."""
    return next((1 / place for place, name in enumerate(ranked, 1) if name in evidence), 0.0)


def scores(
    ranked: Sequence[str], contexts: Mapping[int, Collection[str]], evidence: Collection[str]
) -> dict[str, float]:
    """Return every score of one question by name: ``recall@k``, ``full@k``, ``ndcg@10``, ``mrr``, ``context@b``."""
    found: dict[str, float] = {}
    for depth in DEPTHS:
        found[f"recall@{depth}"] = recall_at(ranked, evidence, depth)
        found[f"full@{depth}"] = float(found[f"recall@{depth}"] == 1)
    found["ndcg@10"] = gain_at(ranked, evidence, 10)
    found["mrr"] = reciprocal_rank(ranked, evidence)
    for budget, ids in contexts.items():
        found[f"context@{budget}"] = sum(name in ids for name in evidence) / len(evidence)
    return found


def means(rows: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """Return the mean of each score; {} for no rows."""
    kept = list(rows)
    return {name: sum(row[name] for row in kept) / len(kept) for name in kept[0]} if kept else {}


def percentile(values: Iterable[float], share: float) -> float:
    """Return the value that at least ``share`` of the values do not exceed; 0 for none."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)] if ordered else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A part that is better than the whole by more than is allowed."""

    part: str
    score: str
    #: Points, 0..100, by which the part is better.
    points: float


def below_parts(whole: Mapping[str, float], parts: Mapping[str, Mapping[str, float]], score: str) -> Fault:
    """Return the best part by a score, and by how many points it is better than the whole; below 0: worse."""
    part = max(sorted(parts), key=lambda name: parts[name][score])
    return Fault(part=part, score=score, points=100 * (parts[part][score] - whole[score]))
