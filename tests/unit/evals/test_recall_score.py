"""Scores of the recall evaluation."""

from __future__ import annotations

import math

import pytest
from evals.recall_score import below_parts, percentile, scores

EVIDENCE = frozenset({"a", "b"})


def test_recall_is_the_share_of_the_evidence_near_the_top():
    assert scores(["x", "a", "y", "z", "w", "b"], {}, EVIDENCE)["recall@5"] == 0.5


def test_gain_fades_with_the_logarithm_of_the_rank():
    assert scores(["x", "x", "a"], {}, frozenset({"a"}))["ndcg@10"] == pytest.approx(1 / math.log2(4))


def test_the_reciprocal_rank_looks_at_the_first_answer():
    assert scores(["x", "y", "z", "b", "a"], {}, EVIDENCE)["mrr"] == 0.25


def test_a_context_scores_the_evidence_it_holds():
    assert scores([], {1000: ("b", "x"), 2000: ("b", "a")}, EVIDENCE)["context@2000"] == 1


@pytest.mark.parametrize(("share", "value"), [(0.5, 2), (0.95, 4), (1.0, 4)])
def test_a_percentile_is_one_of_the_values(share, value):
    assert percentile([4, 2, 1, 3], share) == value


def test_a_part_that_is_better_is_named_with_its_lead():
    found = below_parts({"mrr": 0.5}, {"words": {"mrr": 0.4}, "vectors": {"mrr": 0.53}}, "mrr")
    assert (found.part, round(found.points, 6)) == ("vectors", 3.0)
