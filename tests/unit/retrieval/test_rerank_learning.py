"""Learning an order from feedback: what is learned, what is held out, and when it may serve."""

from __future__ import annotations

import numpy as np
import pytest

from keepward.retrieval.learn import HELD_OUT, LEAST_PAIRS, Example, Lots, judge, train
from keepward.retrieval.rerank import PARTS, Weights, name_of

DIM = 32


def example(n: int, *, helpful: bool = True, shown: int = 4, bounded: bool = False, receipt: str = "") -> Example:
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
        held_out=n % HELD_OUT == 0 and not bounded,
        bounded=bounded,
        receipt=receipt or f"receipt {n}",
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
    return train(told, model="m", dim=DIM, seed=seed)[0]


@pytest.mark.promise("Z42")
def test_an_online_step_changes_the_weights_and_helps_held_out_ranking() -> None:
    found = judge(learned(lessons(60)), lessons(60))
    assert (found.serves, found.learned > found.fused) == (True, True)


@pytest.mark.promise("E55")
def test_feedback_at_random_does_not_serve() -> None:
    found = judge(learned(lessons(200, helpful=False)), lessons(200, helpful=False))
    assert not found.serves


def test_untrained_weights_gain_nothing_and_do_not_serve() -> None:
    found = judge(train([], model="m", dim=DIM)[0], lessons(60))
    assert (found.gain, found.serves) == (0.0, False)


def test_a_step_is_taken_for_every_five_feedbacks_learned_from() -> None:
    told = [each for each in lessons(80) if not each.held_out][:20]
    assert learned(told).steps == 4


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
    assert judge(train(told, model=None, dim=0)[0], told).serves


def test_a_memory_without_a_vector_is_compared_by_its_parts_alone() -> None:
    told = lessons(60)
    blind = [Example(**{**_fields(each), "known": np.zeros(4, dtype=np.bool_)}) for each in told]
    assert not learned(blind).left.any()


# --- how far the feedback of agents counts


def voices(people: int, agents: int, *, first: int = 1) -> list[Example]:
    """Feedback of people, and after each of them as much of agents, who say the reverse."""
    told: list[Example] = []
    for _n in range(people):
        told.append(example(first + len(told)))
        for _ in range(agents):
            said = example(first + len(told), bounded=True)
            told.append(Example(**{**_fields(said), "used": ~said.used}))
    return told


def swayed(told: list[Example], share: float) -> float:
    """Return how much of what people held out is in the right order after a training."""
    return judge(train(told, model="m", dim=DIM, share=share)[0], told).learned


def test_agents_that_say_the_reverse_ten_times_as_often_do_not_turn_the_order() -> None:
    assert swayed(voices(60, 10), 0.25) > 0.9


def test_without_a_bound_they_would() -> None:
    assert swayed(voices(60, 10), 1.0) < 0.5


def test_agents_alone_teach_nothing() -> None:
    told = [example(n, bounded=True) for n in range(1, 60)]
    assert train(told, model="m", dim=DIM, share=0.25)[0].steps == 0


def test_agents_add_at_most_their_share_of_steps() -> None:
    told = voices(60, 10)
    people = [each for each in told if not each.bounded]
    alone = train(people, model="m", dim=DIM, share=0.25)[0].steps
    assert train(told, model="m", dim=DIM, share=0.25)[0].steps <= round(alone / 0.75) + 1


def test_what_agents_say_is_never_judged_on() -> None:
    told = voices(60, 10)
    assert judge(learned(told), told).feedbacks == sum(each.held_out for each in told if not each.bounded)


def lots(people: int, agents: list[str], share: float = 0.25) -> Lots:
    made = Lots(share=share)
    for place in range(people):
        made.add(place, receipt=f"p{place}", bounded=False)
    for place, receipt in enumerate(agents, start=people):
        made.add(place, receipt=receipt, bounded=True)
    return made


def drawn(made: Lots) -> list[int]:
    return [place for step in range(200) for place, _ in made.draw(0, step, 16)]


def test_a_share_is_one_of_the_whole_and_not_of_what_people_say() -> None:
    assert lots(30, [f"r{n}" for n in range(500)]).weight == 10.0


def test_agents_that_say_little_count_no_more_than_they_say() -> None:
    assert lots(300, ["r1", "r2"]).weight == 2.0


def test_draws_keep_to_the_share() -> None:
    places = drawn(lots(30, [f"r{n}" for n in range(500)]))
    assert 0.22 < sum(place >= 30 for place in places) / len(places) < 0.28


def test_a_receipt_that_agents_speak_of_often_is_drawn_as_one() -> None:
    places = [place for place in drawn(lots(300, [*["often"] * 50, "once"])) if place >= 300]
    assert 0.3 < places.count(350) / len(places) < 0.7


def test_a_feedback_that_names_many_memories_is_drawn_as_often_as_another() -> None:
    told = [example(1, shown=400), example(2)]
    found = Lots(share=0.25, buffer=10_000)
    for place, each in enumerate(told):
        found.add(place, receipt=each.receipt, bounded=False)
    assert 0.4 < drawn(found).count(0) / 3200 < 0.6


def test_a_flood_of_agents_does_not_push_people_out_of_the_buffer() -> None:
    made = Lots(share=0.25, buffer=10)
    made.add(0, receipt="p", bounded=False)
    for place in range(1, 500):
        made.add(place, receipt=f"r{place}", bounded=True)
    assert 0 in drawn(made)
