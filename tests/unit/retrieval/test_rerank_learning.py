"""Learning an order from feedback: what is learned, what is held out, and when it may serve."""

from __future__ import annotations

import numpy as np
import pytest

from keepward.retrieval.reranker import (
    FEATURES,
    HOLD_OUT_EVERY,
    Example,
    RerankerWeights,
    evaluate_held_out,
    train,
)

DIM = 32


def example(n: int, *, helpful: bool = True, shown: int = 4, from_agent: bool = False, receipt: str = "") -> Example:
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
    facts = np.zeros((shown, len(FEATURES)))
    facts[:, FEATURES.index("cosine")] = -used.astype(np.float64) if helpful else draws.normal(size=shown)
    return Example(
        held_out=n % HOLD_OUT_EVERY == 0 and not from_agent,
        from_agent=from_agent,
        receipt=receipt or f"receipt {n}",
        query=query / np.linalg.norm(query),
        vectors=vectors,
        fused=0.2 * facts[:, FEATURES.index("cosine")],
        features=facts,
        used=used,
    )


def lessons(count: int, **how: bool) -> list[Example]:
    return [example(n, **how) for n in range(1, count + 1)]


def learned(told: list[Example]) -> RerankerWeights:
    return train(told, model="m", dim=DIM, share=0.25)[0]


@pytest.mark.promise("Z42")
def test_online_step_changes_weights_and_improves_held_out_ranking() -> None:
    found = evaluate_held_out(learned(lessons(60)), lessons(60))
    assert (found.serves, found.learned > found.fused) == (True, True)


@pytest.mark.promise("E55")
def test_feedback_at_random_does_not_serve() -> None:
    found = evaluate_held_out(learned(lessons(200, helpful=False)), lessons(200, helpful=False))
    assert not found.serves


def test_untrained_weights_gain_nothing_and_do_not_serve() -> None:
    found = evaluate_held_out(learned([]), lessons(60))
    assert (found.gain, found.serves) == (0.0, False)


def _fields(each: Example) -> dict[str, object]:
    return {name: getattr(each, name) for name in Example.__slots__}


def test_without_vectors_the_parts_alone_are_learned() -> None:
    told = [
        Example(**{**_fields(each), "query": np.zeros(0, np.float32), "vectors": np.zeros((4, 0), np.float32)})
        for each in lessons(60)
    ]
    assert evaluate_held_out(train(told, model=None, dim=0, share=0.25)[0], told).serves


def test_memory_without_a_vector_is_compared_by_its_parts() -> None:
    told = lessons(60)
    blind = [Example(**{**_fields(each), "vectors": np.zeros((4, DIM), np.float32)}) for each in told]
    assert not learned(blind).left.any()


# --- how far the feedback of agents counts


def voices(people: int, agents: int, *, first: int = 1) -> list[Example]:
    """Feedback of people, and after each of them as much of agents, who say the reverse."""
    told: list[Example] = []
    for _n in range(people):
        told.append(example(first + len(told)))
        for _ in range(agents):
            said = example(first + len(told), from_agent=True)
            told.append(Example(**{**_fields(said), "used": ~said.used}))
    return told


def test_what_agents_say_is_never_judged_on() -> None:
    told = voices(60, 10)
    assert evaluate_held_out(learned(told), told).feedbacks == sum(
        each.held_out for each in told if not each.from_agent
    )


def agents_share(people: int, receipts: list[str]) -> float:
    said = [example(n, from_agent=True, receipt=receipt) for n, receipt in enumerate(receipts, start=1)]
    told = [*(each for each in lessons(2 * people) if not each.held_out)][:people]
    return train([*told, *said], model="m", dim=DIM, share=0.25)[1]


def test_agents_together_weigh_at_most_their_share() -> None:
    assert agents_share(30, [f"r{n}" for n in range(500)]) == 0.25


def test_agents_that_say_little_weigh_as_much_as_they_say() -> None:
    assert agents_share(98, ["r1", "r2"]) == 0.02


def test_a_receipt_that_agents_speak_of_often_weighs_as_one() -> None:
    assert agents_share(98, [*["often"] * 50, "once"]) == 0.02


def test_what_is_quarantined_out_teaches_nothing() -> None:
    told = lessons(40)
    assert learned(told).dump() == learned([each for each in told if not each.held_out]).dump()
