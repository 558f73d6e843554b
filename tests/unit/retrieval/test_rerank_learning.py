"""Learning an order from feedback: what is learned, what is held out, and when it may serve."""

from __future__ import annotations

import numpy as np
import pytest

from keepward.retrieval.learn import HELD_OUT, LEAST_PAIRS, Example, judge, train
from keepward.retrieval.rerank import PARTS, Weights, name_of

DIM = 32


def example(n: int, *, helpful: bool = True, shown: int = 4) -> Example:
    """Memories whose use follows one direction, where the fused score says the opposite."""
    draws = np.random.default_rng(n)
    vectors = draws.normal(size=(shown, DIM)).astype(np.float32)
    vectors[:, 0] = 0.0
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    vectors *= np.float32(0.8)
    used = np.zeros(shown, dtype=np.bool_)
    used[0 if helpful else n * 2_654_435_761 % 97 % shown] = True
    vectors[0, 0] = 0.6
    query = draws.normal(size=DIM).astype(np.float32)
    facts = np.zeros((shown, len(PARTS)))
    facts[:, PARTS.index("cosine")] = -used.astype(np.float64) if helpful else draws.normal(size=shown)
    return Example(
        n=n,
        query=query / np.linalg.norm(query),
        vectors=vectors,
        known=np.ones(shown, dtype=np.bool_),
        fused=0.2 * facts[:, PARTS.index("cosine")],
        facts=facts,
        used=used,
    )


def lessons(count: int, **how: bool) -> list[Example]:
    return [example(n, **how) for n in range(1, count + 1)]


def learned(told: list[Example], seed: int = 0) -> Weights:
    return train(told, model="m", dim=DIM, seed=seed)


@pytest.mark.promise("Z42")
def test_an_online_step_changes_the_weights_and_helps_held_out_ranking() -> None:
    found = judge(learned(lessons(60)), lessons(60))
    assert (found.serves, found.learned > found.fused) == (True, True)


@pytest.mark.promise("E55")
def test_feedback_at_random_does_not_serve() -> None:
    found = judge(learned(lessons(200, helpful=False)), lessons(200, helpful=False))
    assert not found.serves


def test_untrained_weights_gain_nothing_and_do_not_serve() -> None:
    found = judge(Weights.untrained("m", DIM), lessons(60))
    assert (found.gain, found.serves) == (0.0, False)


def test_a_step_is_taken_for_every_five_feedbacks_learned_from() -> None:
    told = [each for each in lessons(80) if not each.held_out][:20]
    assert learned(told).steps == 4


def test_every_fourth_feedback_is_held_out() -> None:
    assert [each.n for each in lessons(12) if each.held_out] == [4, 8, 12]


def test_what_is_held_out_teaches_nothing() -> None:
    told = lessons(40)
    apart = [each if not each.held_out else example(each.n + 1_000 * HELD_OUT) for each in told]
    apart = [Example(**{**_fields(each), "n": n}) for n, each in enumerate(apart, start=1)]
    assert name_of(learned(told).pack()) == name_of(learned(apart).pack())


def _fields(each: Example) -> dict[str, object]:
    return {name: getattr(each, name) for name in Example.__slots__}


def test_the_same_feedback_and_seed_give_the_same_bytes() -> None:
    assert learned(lessons(40)).pack() == learned(lessons(40)).pack()


def test_another_seed_gives_other_weights() -> None:
    assert learned(lessons(40)).pack() != learned(lessons(40), seed=1).pack()


def test_too_few_held_out_pairs_do_not_let_it_serve() -> None:
    found = judge(learned(lessons(16)), lessons(16))
    assert found.pairs < LEAST_PAIRS
    assert (found.serves, "it takes" in found.why) == (False, True)


def test_no_feedback_gives_weights_that_change_nothing() -> None:
    none = learned([])
    assert (none.steps, bool(none.parts.any()), none.left.shape[1]) == (0, False, 0)


def test_without_vectors_the_parts_alone_are_learned() -> None:
    told = [
        Example(**{**_fields(each), "query": np.zeros(0, np.float32), "vectors": np.zeros((4, 0), np.float32)})
        for each in lessons(60)
    ]
    told = [Example(**{**_fields(each), "known": np.zeros(4, dtype=np.bool_)}) for each in told]
    assert judge(train(told, model=None, dim=0), told).serves


def test_a_memory_without_a_vector_is_compared_by_its_parts_alone() -> None:
    told = lessons(60)
    blind = [Example(**{**_fields(each), "known": np.zeros(4, dtype=np.bool_)}) for each in told]
    assert not learned(blind).left.any()
