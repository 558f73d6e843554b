"""What memories are to each other in a ranking: a name that leads on, and a newer statement of the same."""

from typing import Any

import numpy as np
import pytest
from entries_made import profile

from keepward.ports.store import Profile
from keepward.retrieval import analyze, fusion
from keepward.retrieval.analyze import tells_change
from keepward.retrieval.index import Allowed, Index, Query

ALL = Allowed(scopes=None, now=0)
EQUAL = np.full(12, 3, dtype=np.int8)
YES, NONE = np.ones(12, dtype=np.bool_), np.zeros((0, 12), dtype=np.bool_)
FILLER = ["green tea", "the harbour at night", "a cold winter", "an old letter", "the museum garden", "piano music"]


def entry(n: int, text: str, **fields: Any) -> Profile:
    given = {"version": 1, "position": n, "scope": "/", "tier": "archival", "kind": "fact"} | fields
    marks = (analyze.CHANGE,) if tells_change(text) else ()
    return profile(
        id=f"m{n:03}", terms=analyze.pack(analyze.terms(text), analyze.analyse(text).names, marks=marks), **given
    )


def index_of(*texts: str, **fields: Any) -> Index:
    index = Index()
    index.apply([entry(n, text, **fields) for n, text in enumerate((*texts, *FILLER))])
    return index


def found(index: Index, text: str, allowed: Allowed = ALL, **more: Any) -> list[str]:
    query = Query(text=text, terms=tuple(analyze.terms(text)), **more)
    return [scored.id for scored in index.search(query, allowed, 10)]


MANAGER, MOVED = "Maria's manager is Tomasz Wilk", "Last year Wilk moved to Gdansk"


def test_a_name_in_an_answer_leads_to_a_memory_without_a_word_of_the_question() -> None:
    assert found(index_of(MANAGER, MOVED), "home of the manager of Maria") == ["m000", "m001"]


def test_a_common_word_leads_nowhere() -> None:
    assert found(index_of("Maria's manager likes boats", "some boats are red"), "manager of Maria") == ["m000"]


def test_a_name_that_many_memories_hold_leads_nowhere() -> None:
    texts = [MANAGER, *(f"and Wilk did {n} things" for n in range(5))]
    assert found(index_of(*texts), "manager of Maria") == ["m000"]


def test_a_name_in_the_question_leads_nowhere_for_it_counts_already() -> None:
    query = Query(text="", terms=tuple(analyze.terms("Tomasz Wilk")))
    assert [scored.parts["link"] for scored in index_of(MANAGER, MOVED).search(query, ALL, 2)] == [0, 0]


def test_a_name_does_not_lead_to_a_hidden_memory() -> None:
    index = Index()
    index.apply([entry(0, MANAGER), entry(1, MOVED, sensitive=True)])
    assert found(index, "manager of Maria") == ["m000"]


def test_hidden_memories_with_a_name_do_not_make_it_common() -> None:
    index = index_of(MANAGER, MOVED)
    index.apply([entry(50 + n, "and Wilk again", sensitive=True) for n in range(9)])
    assert found(index, "manager of Maria") == ["m000", "m001"]


def test_a_name_leads_on_after_memories_were_removed() -> None:
    index = Index()
    index.apply([entry(100 + n, f"notes of Wilk and Berta {n}") for n in range(2_000)])
    index.apply([entry(0, MANAGER), entry(1, MOVED)], [f"m{100 + n:03}" for n in range(2_000)])
    assert found(index, "manager of Maria") == ["m000", "m001"]


def test_a_linked_memory_says_so_in_its_parts() -> None:
    query = Query(text="", terms=tuple(analyze.terms("manager of Maria")))
    parts = [scored.parts["link"] for scored in index_of(MANAGER, MOVED).search(query, ALL, 2)]
    assert parts[0] == 0 < parts[1]


def test_a_linked_memory_says_by_what_it_was_found() -> None:
    query = Query(text="", terms=tuple(analyze.terms("manager of Maria")))
    assert [scored.used for scored in index_of(MANAGER, MOVED).search(query, ALL, 2)] == [("text",), ("link",)]


def test_a_linked_memory_far_down_among_vectors_is_fetched() -> None:
    made = np.random.default_rng(7).normal(size=(1_500, 512))
    made[1:] -= np.outer(made[1:] @ made[0] / (made[0] @ made[0]), made[0])
    made /= np.linalg.norm(made, axis=1, keepdims=True)
    # The linked memory points away from the query, so neither words nor vectors make it a candidate.
    made[1] -= 0.15 * made[0]
    index = Index()
    texts = [MANAGER, MOVED, *(f"filler {n}" for n in range(1_498))]
    units = made.astype(np.float32)
    index.apply([entry(n, text, vector_model="m", units=units[n : n + 1]) for n, text in enumerate(texts)])
    assert "m001" in found(index, "manager of Maria", vector=units[0], vector_model="m")


def twins(
    *,
    likeness: float = 0.9,
    older: str = "the rent is 1,150 euros",
    newer: str = "the rent went up to 1,240 euros",
    **fields: Any,
) -> Index:
    """Two statements of one thing, the older the better match, and others that are unlike both."""
    rng = np.random.default_rng(3)
    made = rng.normal(size=(8, 64))
    made /= np.linalg.norm(made, axis=1, keepdims=True)
    across = made[1] - (made[1] @ made[0]) * made[0]
    made[1] = likeness * made[0] + np.sqrt(1 - likeness**2) * across / np.linalg.norm(across)
    texts = [older, newer, *FILLER]
    index = Index()
    index.apply(
        [
            entry(n, text, created_at=n, vector_model="m", units=made[n : n + 1].astype(np.float32), **given)
            for n, text, given in zip(range(8), texts, [fields] + 7 * [{}], strict=True)
        ]
    )
    return index


def ask(index: Index, text: str = "rent in euros") -> list[str]:
    return found(index, text, vector=twins_query(), vector_model="m")[:2]


def twins_query() -> np.ndarray:
    made = np.random.default_rng(3).normal(size=(8, 64))
    return (made[0] / np.linalg.norm(made[0])).astype(np.float32)


def test_of_two_statements_of_the_same_the_newer_comes_first() -> None:
    assert ask(twins()) == ["m001", "m000"]


def test_a_newer_statement_that_tells_of_no_change_has_to_hold_what_the_older_one_does_of_the_question() -> None:
    asked = "rent euros zeppelin quark"
    found = [ask(twins(newer=newer), asked)[0] for newer in ("the rent is high", "the rent was raised")]
    assert found == ["m000", "m001"]


def test_what_lacks_a_name_that_was_asked_for_is_no_newer_statement() -> None:
    asked = Query(text="the rent of Ana", terms=("rent", "zeppelin"), vector=twins_query(), vector_model="m")
    found = [
        twins(older="the rent of Ana is 900 euros", newer=newer).search(asked, ALL, 1)[0].id
        for newer in ("the rent of Ben was raised", "the rent of Ana was raised")
    ]
    assert found == ["m000", "m001"]


def test_what_is_trusted_more_is_not_outdone_by_what_is_trusted_less() -> None:
    assert ask(twins(trust=7)) == ["m000", "m001"]


def test_an_event_is_not_outdone_by_what_was_told_later() -> None:
    assert ask(twins(kind="event")) == ["m000", "m001"]


def test_a_newer_statement_that_holds_less_of_the_question_goes_before_nothing() -> None:
    assert ask(twins(newer="the lease went up", likeness=0.97), "rent zeppelin quark lobster")[0] == "m000"


def test_a_newer_statement_of_something_else_goes_before_nothing() -> None:
    assert ask(twins(likeness=0.3)) == ["m000", "m001"]


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_the_newer_statement_wins_whichever_arrived_first(order: tuple[int, int]) -> None:
    made = np.stack([twins_query(), twins_query()])
    index = Index()
    for place, n in enumerate(order):
        index.apply(
            [
                entry(
                    n,
                    "the rent is due",
                    position=place,
                    created_at=n,
                    vector_model="m",
                    units=made[n : n + 1],
                )
            ]
        )
    assert found(index, "rent", vector=twins_query(), vector_model="m")[0] == "m001"


def test_the_newer_catches_up_with_the_older_however_it_is_worded() -> None:
    likeness = np.array([[1.0, 0.9], [0.9, 1.0]])
    caught, outdone = fusion.overtaking(
        np.array([1.0, 0.6]), np.array([0.5, 0.4]), np.array([1, 2]), EQUAL[:2], YES[:2], YES[:2], NONE[:, :2], likeness
    )
    assert (caught.tolist(), outdone.tolist()) == (pytest.approx([0.0, 0.4]), pytest.approx([1.0, 0.0]))


def test_what_is_caught_up_is_part_of_the_score() -> None:
    asked = Query(text="", terms=("rent", "zeppelin"), vector=twins_query(), vector_model="m")
    newer, older = twins(newer="the rent and more besides than one would think").search(asked, ALL, 2)
    # What the older one had before it was outdone.
    assert newer.score == pytest.approx(older.score / (1 - fusion.OUTDONE), abs=1e-5)


def test_where_all_texts_are_close_none_is_taken_for_the_same() -> None:
    n = 12
    likeness = np.full((n, n), 0.8) + 0.2 * np.eye(n)
    caught, outdone = fusion.overtaking(
        np.linspace(1.0, 0.9, n), np.ones(n), np.arange(n), EQUAL, YES, YES, NONE, likeness
    )
    assert (caught.any(), outdone.any()) == (False, False)
