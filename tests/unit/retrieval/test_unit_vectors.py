"""Quantised unit vectors."""

import numpy as np
import pytest

from keepward.retrieval import vector_index

RNG = np.random.default_rng(3)
UNITS = RNG.normal(size=(300, 384)).astype(np.float32)
UNITS /= np.linalg.norm(UNITS, axis=1, keepdims=True)
QUERY = RNG.normal(size=384).astype(np.float32)


def store_of(units: np.ndarray) -> vector_index.VectorIndex:
    store = vector_index.VectorIndex(units.shape[1])
    store.extend(np.arange(len(units), dtype=np.int32), *vector_index.quantise(units))
    return store


def test_packed_vectors_keep_their_cosine() -> None:
    back = vector_index.unpack(vector_index.pack(UNITS))
    assert np.einsum("ij,ij->i", back, UNITS).min() > 0.9999


@pytest.mark.parametrize("blob", [b"", b"\x09" * 8, vector_index.pack(UNITS[:1])[:-1]])
def test_a_foreign_blob_is_refused(blob: bytes) -> None:
    with pytest.raises(ValueError, match="reindex"):
        vector_index.unpack(blob)


def test_cosines_are_within_two_thousandths() -> None:
    exact = UNITS @ (QUERY / np.linalg.norm(QUERY))
    assert np.abs(store_of(UNITS).cosines(QUERY, np.arange(300)) - exact).max() < 0.002


def test_a_cosine_does_not_depend_on_the_row() -> None:
    forward = store_of(UNITS).cosines(QUERY, np.arange(300))
    backward = store_of(UNITS[::-1]).cosines(QUERY, np.arange(300))
    assert forward.tobytes() == np.ascontiguousarray(backward[::-1]).tobytes()


def test_equal_distances_stay_together_at_the_cut() -> None:
    assert vector_index.nearest(np.array([3, 1, 2, 2, 2], dtype=np.uint16), 2, 384).tolist() == [1, 2, 3, 4]


def test_the_best_unit_of_a_row_counts() -> None:
    store = vector_index.VectorIndex(384)
    store.extend(np.array([2, 2, 5], dtype=np.int32), *vector_index.quantise(UNITS[:3]))
    best, _ = store.best(UNITS[1], np.array([2, 4]))
    assert best.tolist() == pytest.approx([1.0, 0.0], abs=0.002)


def test_what_vectors_have_in_common_shows_in_their_signs() -> None:
    made = np.random.default_rng(3).normal(size=(2_000, 64)).astype(np.float32) / 8
    made += np.linspace(-0.08, 0.08, 64, dtype=np.float32)
    made /= np.linalg.norm(made, axis=1, keepdims=True)
    mean = made.mean(axis=0)
    common = store_of(made).signs(np.ones(2_000, dtype=np.bool_)).estimated_mean()
    assert common @ mean / np.linalg.norm(common) / np.linalg.norm(mean) > 0.98
    assert np.linalg.norm(common) == pytest.approx(np.linalg.norm(mean), rel=0.1)


@pytest.mark.parametrize("share", [0.2, 0.8])
def test_signs_are_counted_of_rows_visible_alone(share: float) -> None:
    dice = np.random.default_rng(4)
    made = dice.normal(size=(900, 64)).astype(np.float32)
    mask = dice.random(900) < share
    store = store_of(made)
    whole = store_of(made[mask]).signs(np.ones(int(mask.sum()), dtype=np.bool_))
    assert store.signs(mask).units == whole.units
    assert (store.signs(mask).ones == whole.ones).all()
    store.renumber(np.where(mask, np.cumsum(mask) - 1, -1).astype(np.int32))
    assert (store.signs(np.ones(int(mask.sum()), dtype=np.bool_)).ones == whole.ones).all()
