"""Baselines of the recall evaluation."""

from __future__ import annotations

from evals.recall_baselines import Bm25, answers, fused, pack
from evals.recall_sets import Asked, Conversation, Told

from keepward.embedding.tokens import EstimateCounter

TEXTS = ["the red boat sails", "a boat", "the garden is green", "茶碗が割れた"]
TOLD = tuple(Told(id=f"m{place}", text=text) for place, text in enumerate(TEXTS))


def test_bm25_ranks_what_shares_rare_words_first():
    assert Bm25(TEXTS).rank("red boat")[0] == 0


def test_bm25_reads_scripts_without_spaces_by_character():
    assert Bm25(TEXTS).rank("茶碗は") == [3]


def test_fusion_sums_reciprocal_ranks():
    assert fused([[0, 1, 2], [2, 0]]) == [0, 2, 1]


def test_packing_passes_over_what_is_too_long():
    counter = EstimateCounter()
    lines = ["word " * 50, "short", "brief"]
    costs = [counter.count(f"{line}\n") for line in lines]
    assert pack(lines, costs, [0, 1, 2], 8, counter) == ([1, 2], "short\nbrief")


def test_a_question_without_evidence_is_not_answered():
    asked = (Asked(id="c#0", text="boat", category="1", evidence=frozenset()),)
    conversation = Conversation(name="c", told=TOLD, asked=asked)
    assert list(answers(conversation, embedder=None, counter=EstimateCounter(), budgets=(10,))) == []
