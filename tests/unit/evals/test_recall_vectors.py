"""Embedders of the recall evaluation."""

from __future__ import annotations

import numpy as np
import pytest
from evals.recall_vectors import KeptVectors, WordlessVectors

from keepward.embedding.hashed import HashedEmbedder


class Counted(HashedEmbedder):
    """Counts the texts it is asked for."""

    asked = 0

    def embed(self, texts):
        self.asked += len(texts)
        return super().embed(texts)


@pytest.fixture
def inner():
    return Counted()


def test_a_stored_vector_has_the_bytes_of_the_embedder(inner, tmp_path):
    KeptVectors(inner, tmp_path).embed(["a boat", "a tree"])
    again = KeptVectors(inner, tmp_path).embed(["a tree"])
    assert again.tobytes() == HashedEmbedder().embed(["a tree"]).tobytes()


def test_a_stored_vector_is_computed_once(inner, tmp_path):
    KeptVectors(inner, tmp_path).embed(["a boat", "a boat"])
    KeptVectors(inner, tmp_path).embed(["a boat"])
    assert inner.asked == 1


def test_half_a_row_of_a_stopped_run_is_dropped(inner, tmp_path):
    KeptVectors(inner, tmp_path).embed(["a boat"])
    file = next(tmp_path.iterdir())
    file.write_bytes(file.read_bytes() + b"half")
    KeptVectors(inner, tmp_path).embed(["a tree"])
    assert np.array_equal(KeptVectors(inner, tmp_path).embed(["a tree"]), HashedEmbedder().embed(["a tree"]))


def test_no_texts_have_no_vectors(inner, tmp_path):
    assert KeptVectors(inner, tmp_path).embed([]).shape == (0, inner.dim)


def test_a_is_in_has_the_vector_of_its_question(inner):
    found = WordlessVectors(inner, {"qzx": "where is the boat"}).embed(["qzx"])
    assert np.array_equal(found, inner.embed(["where is the boat"]))


def test_wrapped_vectors_can_be_compared_with_those_inside(inner, tmp_path):
    assert KeptVectors(inner, tmp_path).id == WordlessVectors(inner, {}).id == inner.id
