"""A vector of one's own: taken where it fits the store's model, and used to find the memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from outcomes import committed_record

from keepward import Actor, InvalidInput, Memory, Unauthorised
from keepward.embedding.hashed import HashedEmbedder


class Noting:
    """An embedder that keeps the texts it was given."""

    def __init__(self) -> None:
        self._inner, self.texts = HashedEmbedder(), list[str]()
        self.id, self.dim = self._inner.id, self._inner.dim

    def embed(self, texts: Any) -> Any:
        self.texts += texts
        return self._inner.embed(texts)


@pytest.fixture
def noting() -> Noting:
    return Noting()


@pytest.fixture
def mem(opened: Callable[..., Memory], noting: Noting) -> Any:
    with opened("vectors", embedder=noting) as memory:
        yield memory


@pytest.mark.promise("E26")
def test_a_memory_is_found_by_the_vector_it_came_with(mem: Memory, noting: Noting) -> None:
    vector = [3.0 * each for each in HashedEmbedder().embed(["when does the ferry leave"])[0].tolist()]
    fields: dict[str, Any] = {"source": "extracted", "importance": 0.9, "tags": ["harbour"]}
    memory = committed_record(mem.remember("Six o'clock", tier="archival", vector=vector, **fields))
    committed_record(mem.remember("The kiln is fired on Mondays", tier="archival"))
    assert (memory.source, memory.importance, memory.tags) == ("extracted", 0.9, ("harbour",))
    assert not any("Six o'clock" in text for text in noting.texts)
    found = mem.recall("when does the ferry leave")
    assert found[0].memory.id == memory.id
    assert mem.status()["vectors_pending"] == 0


@pytest.mark.promise("E26")
def test_vectors_come_with_items_drafts_and_as_arrays(mem: Memory, noting: Noting) -> None:
    vector = HashedEmbedder().embed(["when does the ferry leave"])[0]
    mem.remember_many([{"text": "Six", "tier": "archival", "vector": vector}, {"text": "The kiln is red"}])
    with mem.draft(reason="two") as draft:
        draft.insert("Half past seven", tier="archival", vector=vector.tolist())
    assert not any(text in ("Six", "Half past seven") for text in noting.texts)
    assert {each.memory.text for each in mem.recall("when does the ferry leave", limit=2)} == {"Six", "Half past seven"}


@pytest.mark.parametrize(
    ("vector", "says"),
    [
        ([1.0] * 3, "has 384 numbers"),
        ([0.0] * 384, "not all zero"),
        ([float("nan")] * 384, "finite numbers"),
        ([float("inf")] * 384, "finite numbers"),
        (["a"] * 384, "a list of numbers"),
        ([], "not all zero"),
        ("text", "a list of numbers"),
        (5, "a list of numbers"),
        (np.ones((2, 384)), "a list of numbers"),
    ],
)
def test_a_vector_that_does_not_fit_is_an_error(mem: Memory, vector: Any, says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        mem.remember("Six o'clock", tier="archival", vector=vector)
    assert mem.list_memories() == []


def test_vector_without_a_model_to_compare_is_an_error(opened: Callable[..., Memory]) -> None:
    with opened("none", embedder=None) as mem, pytest.raises(InvalidInput, match="without an embedder"):
        mem.remember("Six o'clock", vector=[1.0] * 384)


def test_vector_of_a_redacted_text_is_not_stored(mem: Memory, noting: Noting) -> None:
    vector = HashedEmbedder().embed(["ana@example.com"])[0].tolist()
    memory = committed_record(mem.remember("Write to ana@example.com about the ferry", tier="archival", vector=vector))
    assert "ana@example.com" not in memory.text
    assert any("about the ferry" in text for text in noting.texts)


def test_the_holder_of_an_agents_token_gives_no_vector(opened: Callable[..., Memory], noting: Noting) -> None:
    with opened("tokens", actor=Actor.operator("ana"), embedder=noting) as owner:
        agent = owner.with_token(owner.create_token("orion").secret)
        with pytest.raises(Unauthorised, match="only the owner gives one"):
            agent.remember("Six o'clock", vector=[1.0] * 384)
        assert owner.remember("Six o'clock", vector=[1.0] * 384).ok
