"""Checkpoints of a training: going on from one gives what going through in one piece gives."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from test_rerank_learning import DIM, voices

from keepward.retrieval.checkpoint import Trail, name_of_texts, pack, unpack, vectors_of
from keepward.retrieval.learn import Course, Example, learn, lessons, train

TOLD = lessons(voices(40, 2))
RULES = {"model": "m", "dim": DIM, "share": 0.25, "seed": 0}


def stopped(told: list[Example], at: int) -> bytes:
    """Return the checkpoint of a training of these that was stopped after so many."""
    trail = Trail(**RULES)
    course = next(each for each in learn(told, Course.begun(DIM), share=0.25) if each.count == at)
    return pack(course, trail.follow(told, at))


def gone_on(packed: bytes, told: list[Example]) -> bytes:
    course = unpack(packed, Trail(**RULES), told)
    assert course is not None
    for _ in learn(told, course, share=0.25):
        pass
    return course.weights(model="m").pack()


@pytest.mark.parametrize("at", [1, 7, 50, 109])
def test_a_training_that_goes_on_ends_in_the_very_weights(at: int) -> None:
    whole = replace(train(TOLD, model="m", dim=DIM, share=0.25), seen=0)
    assert gone_on(stopped(TOLD, at), TOLD) == whole.pack()


def test_it_goes_on_where_more_was_said_since() -> None:
    more = [*TOLD, *lessons(voices(9, 1, first=1_000))]
    whole = replace(train(more, model="m", dim=DIM, share=0.25), seen=0)
    assert gone_on(stopped(TOLD, 60), more) == whole.pack()


def test_a_checkpoint_of_other_feedback_is_not_gone_on_with() -> None:
    assert unpack(stopped(TOLD, 60), Trail(**RULES), TOLD[1:]) is None


@pytest.mark.parametrize("field", ["fused", "facts", "query", "vectors"])
def test_nor_one_of_the_same_feedback_with_another_number_in_it(field: str) -> None:
    packed = stopped(TOLD, 60)
    bent = replace(TOLD[10], **{field: getattr(TOLD[10], field) + np.float32(0.001)})
    assert unpack(packed, Trail(**RULES), [*TOLD[:10], bent, *TOLD[11:]]) is None


@pytest.mark.parametrize("rule", [{"model": "n"}, {"share": 0.5}, {"seed": 1}])
def test_nor_one_of_other_rules(rule: dict[str, object]) -> None:
    assert unpack(stopped(TOLD, 60), Trail(**{**RULES, **rule}), TOLD) is None


def test_nor_one_that_holds_all_there_is() -> None:
    assert unpack(stopped(TOLD, len(TOLD)), Trail(**RULES), TOLD) is None


@pytest.mark.parametrize("cut", [0, 3, 20, 200, -8, -1])
def test_nor_one_that_was_cut(cut: int) -> None:
    assert unpack(stopped(TOLD, 60)[:cut], Trail(**RULES), TOLD) is None


def test_a_trail_followed_in_parts_is_the_one_followed_at_once() -> None:
    parts, whole = Trail(**RULES), Trail(**RULES)
    parts.follow(TOLD, 20)
    assert parts.follow(TOLD, 60) == whole.follow(TOLD, 60)


def test_vectors_are_kept_under_their_texts_and_embedder() -> None:
    names = {name_of_texts(*each) for each in (("m", ["a", "b"]), ("m", ["b", "a"]), ("n", ["a", "b"]), ("m", ["a"]))}
    assert len(names) == 4


def test_vectors_of_another_count_are_not_taken() -> None:
    assert vectors_of(b"\0" * 32, 3, 4) is None
