"""The reranker's weights: what they change in an order, and how they are kept."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from keepward.core.query import Filter
from keepward.ports.store import IndexedMemory
from keepward.retrieval import tokenizer
from keepward.retrieval.index import Index, Query
from keepward.retrieval.ranking import MAX_SCORE
from keepward.retrieval.reranker import FEATURES, RerankerWeights, load, recency, train
from support.indexed import indexed_memory

ALL = Filter(scopes=())
DIM = 64


def vector(seed: int) -> np.ndarray:
    made = np.random.default_rng(seed).normal(size=DIM).astype(np.float32)
    return made / np.linalg.norm(made)


def weights(**given: Any) -> RerankerWeights:
    draws = np.random.default_rng(7)
    arrays = {
        "left": draws.normal(size=(DIM + 1, 3)).astype(np.float32),
        "right": draws.normal(size=(3, DIM)).astype(np.float32),
        "features": draws.normal(size=len(FEATURES)).astype(np.float32),
    }
    return RerankerWeights(**{"model": "m", **arrays, **given})


def entries(count: int) -> list[IndexedMemory]:
    return [
        indexed_memory(
            id=f"m{n:04}",
            version=1,
            arrival=n,
            scope="/",
            tier="archival",
            kind="fact",
            terms=tokenizer.pack(tokenizer.terms(f"note {n} about the harbour")),
            model="m",
            vectors=vector(n)[None],
            importance=10_000 * (n % 7) // 7,
            trust=n % 8,
        )
        for n in range(count)
    ]


def index_of(count: int) -> Index:
    index = Index()
    index.apply(entries(count))
    return index


def ranked(index: Index, limit: int = 20, **how: Any) -> list[tuple[str, float]]:
    query = Query(text="harbour", terms=("harbour",), vector=vector(1_000_000), vector_model="m")
    return [(scored.id, scored.score) for scored in index.search(query, ALL, limit, **how)]


@pytest.mark.promise("E30")
def test_untrained_weights_preserve_the_fused_order_and_scores() -> None:
    index = index_of(300)
    assert ranked(index, weights=train([], model="m", dim=DIM, share=0.25)[0]) == ranked(index)


@pytest.mark.promise("E30")
def test_trained_weights_change_the_order() -> None:
    index = index_of(300)
    assert ranked(index, weights=weights()) != ranked(index)


def test_weighted_scores_do_not_depend_on_insertion_order() -> None:
    one, two = index_of(50), Index()
    for entry in reversed(entries(50)):
        two.apply([entry])
    assert ranked(one, weights=weights()) == ranked(two, weights=weights())


def test_weighted_score_is_the_fused_score_plus_the_learned() -> None:
    index = index_of(30)
    query = Query(text="harbour", terms=("harbour",), vector=vector(1_000_000), vector_model="m")
    plain = {scored.id: scored.score for scored in index.search(query, ALL, 30)}
    small = weights(
        left=np.zeros((DIM + 1, 3), dtype=np.float32), features=np.full(len(FEATURES), 0.01, dtype=np.float32)
    )
    learned = index.search(query, ALL, 30, weights=small)
    assert [each.score for each in learned] == [
        pytest.approx(max(0.0, plain[each.id] + each.parts["learned"] / MAX_SCORE), abs=2e-6) for each in learned
    ]


def test_scores_with_weights_are_never_negative() -> None:
    assert min(score for _, score in ranked(index_of(100), limit=100, weights=weights())) >= 0


def test_learned_scores_are_centred_and_do_not_drift() -> None:
    change = weights().score_deltas(np.arange(10.0), np.ones((10, len(FEATURES))))
    assert abs(change.sum()) < 1e-5


def test_query_direction_is_its_product_with_the_weight_matrix() -> None:
    held = weights()
    query = vector(3)
    full = np.append(query, 1.0) @ (held.left.astype(np.float64) @ held.right.astype(np.float64))
    assert np.allclose(held.query_direction(query), full, atol=1e-6)


def test_an_own_vector_is_the_first_unit_of_its_memory() -> None:
    index = index_of(5)
    found, known = index.own_vectors(["m0003", "nobody"], "m", DIM)
    assert known.tolist() == [True, False]
    assert float(found[0] @ vector(3)) > 0.999


def test_now_is_recent_and_ten_years_ago_is_not() -> None:
    hour = 3_600_000_000
    ages = np.array([0, -hour, -24 * hour, -87_660 * hour, -200_000 * hour], dtype=np.int64)
    told = recency(ages, 0)
    assert told.tolist() == sorted(told.tolist(), reverse=True)
    assert (told[0], told[-1]) == (1.0, 0.0)


def test_weights_come_back_from_their_bytes_as_they_were() -> None:
    data = weights().dump()
    assert load(data).dump() == data


def test_weights_without_vectors_come_back_too() -> None:
    data = train([], model=None, dim=0, share=0.25)[0].dump()
    assert load(data).right.shape == (0, 0)


@pytest.mark.promise("Z43")
def test_damaged_or_foreign_weights_are_not_loaded() -> None:
    data = weights().dump()
    endless = weights(features=np.full(len(FEATURES), np.nan, dtype=np.float32)).dump()
    other = data.replace(*(json.dumps(each)[1:-1].encode("utf-32-le") for each in ("recency", "recenty")))
    for broken in (data[:-40], data[:6], b"", other, endless):
        with pytest.raises(ValueError, match="weights"):
            load(broken)
