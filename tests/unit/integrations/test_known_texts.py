"""Vectors lead back to the texts that they were made of."""

from __future__ import annotations

import pytest

from keepward.integrations.embedder import TextByVector


def letters(texts: list[str]) -> list[list[float]]:
    return [[float(len(each)), float(ord(each[0]))] for each in texts]


def test_text_is_found_by_its_vector():
    embedder = TextByVector(letters)
    first, second = embedder(["tabs", "spaces"])
    assert [embedder.text_of(first), embedder.text_of(second)] == ["tabs", "spaces"]


def test_a_vector_that_was_made_elsewhere_is_an_error():
    with pytest.raises(ValueError, match="of another embedder"):
        TextByVector(letters).text_of([1.0, 2.0])


def test_of_too_many_texts_the_oldest_are_forgotten(monkeypatch):
    monkeypatch.setattr(TextByVector, "MAX_TEXTS", 2)
    embedder = TextByVector(letters)
    oldest, *newer = embedder(["a", "bb", "ccc"])
    assert [embedder.text_of(each) for each in newer] == ["bb", "ccc"]
    with pytest.raises(ValueError, match="of another embedder"):
        embedder.text_of(oldest)
