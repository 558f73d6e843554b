"""The hashed embedder: same bytes everywhere, unit rows, and no text that it cannot take."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keepward.embedding.hashed import HashedEmbedder

ODD = ["", " ", "!?", "\ud800", "\x00", "\U0001f600", "a" * 10_000, "é", "٣"]


def cosine(one: str, other: str) -> float:
    a, b = HashedEmbedder().embed([one, other])
    return float(a @ b)


def test_vector_bytes_of_a_known_text_never_change() -> None:
    rows = HashedEmbedder(384).embed(["Ana keeps the spare key under the blue pot. 东京是日本的首都"])
    assert hashlib.sha256(rows.astype("<f4").tobytes()).hexdigest()[:16] == "bfb0529cdb88c8d1"


def test_a_dimension_too_small_to_tell_words_apart_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 16"):
        HashedEmbedder(8)


@pytest.mark.parametrize("text", ODD)
def test_an_odd_text_has_length_one_as_any_other(text: str) -> None:
    assert np.linalg.norm(HashedEmbedder().embed([text])[0]) == pytest.approx(1.0, abs=1e-6)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.text(max_size=30), max_size=5))
def test_neighbours_change_nothing(texts: list[str]) -> None:
    embedder = HashedEmbedder(32)
    alone = [embedder.embed([text])[0].tobytes() for text in texts]
    assert [row.tobytes() for row in embedder.embed(texts)] == alone


def test_shared_words_bring_texts_nearer_than_none() -> None:
    near = cosine("the spare key is under the pot", "a spare key under the blue pot")
    assert near > 0.4 > cosine("the spare key is under the pot", "quarterly revenue grew")


def test_case_and_width_do_not_matter() -> None:
    assert cosine("ＡＮＡ keeps it", "ana keeps it") == pytest.approx(1.0)


def test_parts_of_words_bring_inflections_nearer() -> None:
    assert cosine("gardening", "gardener") > 0.25


def test_texts_without_spaces_match_by_pairs_of_characters() -> None:
    assert cosine("东京是日本的首都", "日本的首都是东京") > 0.5
