"""Vectors are asked for once, kept small, and read while somebody writes."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import numpy as np
import pytest

from keepward import Memory
from keepward.embedding.hashed import HashedEmbedder


class Counting:
    """An embedder that counts the texts it was given."""

    def __init__(self) -> None:
        self._inner, self.texts = HashedEmbedder(), 0
        self.id, self.dim = self._inner.id, self._inner.dim

    def embed(self, texts):
        self.texts += len(texts)
        return self._inner.embed(texts)


@pytest.mark.promise("E4")
def test_recall_reports_search_by_meaning_and_words(mem: Memory) -> None:
    mem.remember("The kiln is fired on Mondays")
    assert mem.recall("kiln").used == ("text", "vector")


@pytest.mark.promise("E4")
def test_recall_without_embedder_reports_search_by_words_only(opened) -> None:
    with opened("words", embedder=None) as mem:
        mem.remember("The kiln is fired on Mondays")
        assert mem.recall("kiln").used == ("text",)


@pytest.mark.promise("E22")
def test_vector_takes_one_byte_per_number_plus_a_scale(opened) -> None:
    with opened("packed") as mem:
        mem.remember("The kiln is fired on Mondays")
        with closing(sqlite3.connect(mem.path)) as store:
            units, size = store.execute("SELECT units, length(vectors) FROM features").fetchone()
    header = 8
    assert size == header + units * (HashedEmbedder().dim + np.float32().nbytes)


@pytest.mark.promise("E23")
def test_reopening_a_store_embeds_only_the_question(opened) -> None:
    with opened("again") as mem:
        for text in ("The kiln is fired on Mondays", "Glaze is mixed on Tuesdays", "Ana keeps the ledger"):
            mem.remember(text)
    embedder = Counting()
    with opened("again", embedder=embedder) as mem:
        mem.recall("kiln")
    assert embedder.texts == 1


@pytest.mark.promise("E24")
def test_reader_can_read_during_a_write_transaction(mem: Memory) -> None:
    mem.remember("The kiln is fired on Mondays")
    writer = sqlite3.connect(mem.path, isolation_level=None)
    writer.execute("BEGIN IMMEDIATE")
    try:
        assert mem.recall("kiln")[0].memory.text == "The kiln is fired on Mondays"
    finally:
        writer.execute("ROLLBACK")
        writer.close()
