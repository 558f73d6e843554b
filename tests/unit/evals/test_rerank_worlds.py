"""The evaluation of the learned reranker, small: it helps where closeness misleads and keeps out elsewhere."""

from __future__ import annotations

import pytest
from evals import rerank
from evals.rerank_sets import WORLDS

#: Enough to be judged: a quarter of the feedback is held out.
LESSONS = 60


@pytest.mark.slow
@pytest.mark.promise("E30", "E55", "Z42")
@pytest.mark.parametrize("name", sorted(WORLDS))
def test_a_world_goes_as_it_ought_to(name, tmp_path):
    row = rerank.run(WORLDS[name](), tmp_path, embedder="hashed", lessons=LESSONS)
    assert row["ok"], rerank.table([row])


@pytest.mark.slow
def test_without_the_limit_a_misled_agent_changes_the_order(tmp_path):
    row = rerank.run(WORLDS["swayed"](), tmp_path, embedder="hashed", lessons=LESSONS, share=1.0)
    assert not row["ok"]


def row(*, learnable, serving, ok):
    """A row as ``run`` gives it."""

    class _Training:
        pass

    training = _Training()
    training.serving = serving
    world = next(world for world in (each() for each in WORLDS.values()) if world.learnable is learnable)
    exam = {"cosine": 0.2, "fused": 0.4, "learned": 0.9}
    return {"world": world, "training": training, "exam": exam, "ok": ok}


def test_one_world_that_goes_wrong_makes_the_verdict_bad():
    rows = [row(learnable=True, serving=True, ok=True), row(learnable=False, serving=True, ok=False)]
    assert rerank.verdict(rows).startswith("verdict: BAD; helps in 1 of 1 worlds that can be learned; off in 0 of 1")


def test_exam_uses_other_words_and_topics_than_lessons():
    for made in WORLDS.values():
        world = made()
        assert not {question.text for question in world.lessons} & {question.text for question in world.exam}
