"""Of two very similar statements the newer one comes first."""

from typing import Any

import numpy as np
import pytest

from keepward.core.query import Filter
from keepward.ports.store import IndexedMemory
from keepward.retrieval import ranking, tokenizer
from keepward.retrieval.index import Index, Query
from support.indexed import indexed_memory

ALL = Filter(scopes=())
EQUAL = np.full(12, 3, dtype=np.int8)
YES, NONE = np.ones(12, dtype=np.bool_), np.zeros((0, 12), dtype=np.bool_)
FILLER = ["green tea", "the harbour at night", "a cold winter", "an old letter", "the museum garden", "piano music"]


def entry(n: int, text: str, **fields: Any) -> IndexedMemory:
    given = {"version": 1, "arrival": n, "scope": "/", "tier": "archival", "kind": "fact"} | fields
    return indexed_memory(
        id=f"m{n:03}", terms=tokenizer.pack(tokenizer.terms(text), tokenizer.analyse(text).names), **given
    )


def found(index: Index, text: str, allowed: Filter = ALL, **more: Any) -> list[str]:
    query = Query(text=text, terms=tuple(tokenizer.terms(text)), **more)
    return [scored.id for scored in index.search(query, allowed, 10)]


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
            entry(n, text, created_at=n, model="m", vectors=made[n : n + 1].astype(np.float32), **given)
            for n, text, given in zip(range(8), texts, [fields] + 7 * [{}], strict=True)
        ]
    )
    return index


def ask(index: Index, text: str = "rent in euros") -> list[str]:
    return found(index, text, vector=twins_query(), vector_model="m")[:2]


def twins_query() -> np.ndarray:
    made = np.random.default_rng(3).normal(size=(8, 64))
    return (made[0] / np.linalg.norm(made[0])).astype(np.float32)


@pytest.mark.parametrize(
    ("older", "newer", "terms"),
    [
        ("the rent of Ana is 900 euros", "the rent of Ben was raised", ("rent", "ana")),
        ("the rent of flat 7 is 900 euros", "the rent of flat 8 is 950 euros", ("rent", "7")),
        ("the rent is due on Friday", "the lease is due on Monday", ("rent", "zeppelin")),
    ],
)
def test_statement_without_a_query_term_is_not_put_first(older: str, newer: str, terms: tuple[str, ...]) -> None:
    asked = Query(text="", terms=terms, vector=twins_query(), vector_model="m")
    assert twins(older=older, newer=newer).search(asked, ALL, 1)[0].id == "m000"


def test_an_event_is_not_outdated_by_a_later_statement() -> None:
    assert ask(twins(kind="event")) == ["m000", "m001"]


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
                    arrival=place,
                    created_at=n,
                    model="m",
                    vectors=made[n : n + 1],
                )
            ]
        )
    assert found(index, "rent", vector=twins_query(), vector_model="m")[0] == "m001"


def test_change_of_order_is_part_of_the_score() -> None:
    asked = Query(text="", terms=("rent", "zeppelin"), vector=twins_query(), vector_model="m")
    newer, older = twins(newer="the rent and more besides than one would think").search(asked, ALL, 2)
    assert older.parts["newer"] < 0 < newer.parts["newer"]
    assert older.parts["fused"] == pytest.approx(older.score * ranking.MAX_SCORE, abs=1e-5)


def test_alike_texts_are_not_taken_for_the_same() -> None:
    n = 12
    likeness = np.full((n, n), 0.8) + 0.2 * np.eye(n)
    assert not ranking.newer_similarity(np.linspace(1.0, 0.9, n), np.arange(n), EQUAL, YES, NONE, likeness).any()


@pytest.mark.parametrize(
    ("newer", "first"),
    [("the staging rent is 1,240 euros", "m000"), ("the rent is 1,240 euros since May", "m001")],
)
def test_statement_with_another_qualifier_is_not_put_first(newer: str, first: str) -> None:
    older = "the rent is 1,150 euros"
    asked = Query(text="", terms=("rent",), vector=twins_query(), vector_model="m")
    said = {"m000": older, "m001": newer}
    hits = twins(older=older, newer=newer).search(asked, ALL, 1, texts=lambda _: said)
    assert hits[0].id == first
