"""An embedder that gives a query another vector than a document: every query comes from one method, every text from the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from outcomes import committed_record

from keepward import Actor, Memory
from keepward.embedding.hashed import HashedEmbedder
from support.loopback import Script, Server, serving


class Apart:
    """Notes what it is asked for: queries and documents apart."""

    id, dim = "apart:64", 64
    cosine_scale = 0.0, 0.07

    def __init__(self) -> None:
        self.queries: list[str] = []
        self.documents: list[str] = []

    def embed(self, texts: Sequence[str]) -> Any:
        self.documents += texts
        return HashedEmbedder(64).embed(texts)

    def embed_query(self, texts: Sequence[str]) -> Any:
        self.queries += texts
        # A document reads as its own first word, so that only a query finds it by meaning.
        return HashedEmbedder(64).embed([text.replace("fruit", "apple") for text in texts])


@pytest.fixture
def apart() -> Apart:
    return Apart()


@pytest.fixture
def mem(opened: Callable[..., Memory], apart: Apart) -> Iterator[Memory]:
    with opened("apart", embedder=apart, actor=Actor.operator("olga")) as memory:
        committed_record(memory.remember("apple", tier="archival"))
        committed_record(memory.remember("hammer", tier="archival"))
        apart.documents.clear()
        yield memory


def ask(name: str, memory: Memory, question: str) -> None:
    match name:
        case "recall":
            memory.recall(question)
        case "context":
            memory.context(question)
        case "past":
            memory.recall(question, as_of=memory.head)
        case "cosine":
            memory.recall(question, order="cosine")
        case "training":
            compiled = memory.context(question)
            hits = [hit.memory.id for hit in memory.recall(question)]
            memory.feedback(compiled.receipt.id, used=hits[:1], ignored=hits[1:])
            memory.train_reranker()


@pytest.mark.promise("B47")
@pytest.mark.parametrize("name", ["recall", "context", "past", "cosine", "training"])
def test_query_has_the_vector_of_a_query(mem: Memory, apart: Apart, name: str) -> None:
    ask(name, mem, "fruit apple hammer")
    assert set(apart.queries) == {"fruit apple hammer"}
    assert "fruit apple hammer" not in apart.documents


def test_query_finds_by_its_own_vector(mem: Memory) -> None:
    assert [hit.memory.text for hit in mem.recall("fruit", limit=1)] == ["apple"]


def test_request_for_advice_is_compared_with_requests(mem: Memory, apart: Apart) -> None:
    mem.recall("Can you recommend some fruit?")
    assert len(apart.queries) > 10
    assert apart.documents == []


def test_both_wordings_of_a_question_are_one_request(opened: Callable[..., Memory], apart: Apart) -> None:
    with opened("apart", embedder=apart) as memory:
        memory.user("ana").recall("Where do I live?")
        assert len(apart.queries) == 2


def test_texts_have_the_vectors_of_documents(mem: Memory, apart: Apart) -> None:
    apart.queries.clear()
    memory = committed_record(mem.remember("a pear", tier="archival"))
    committed_record(mem.revise(memory.id, "a ripe pear", reason="it is June"))
    mem.add([{"role": "user", "content": "The saw is blunt."}], session="s1")
    assert {"a pear", "a ripe pear"} <= set(apart.documents)
    assert apart.queries == []


def test_embedder_without_the_method_embeds_queries_as_documents(opened: Callable[..., Memory]) -> None:
    class One:
        id, dim = "one:64", 64
        embed = staticmethod(HashedEmbedder(64).embed)

    with opened("one", embedder=One()) as memory:
        committed_record(memory.remember("apple", tier="archival"))
        assert "vector" in memory.recall("apple").used


class Hashed(Script):
    def answer(self, asked: dict[str, Any]) -> Any:
        rows = HashedEmbedder(64).embed(asked["input"]).tolist()
        return {"data": [{"index": at, "embedding": row} for at, row in enumerate(rows)]}


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as server:
        server.script = Hashed()
        yield server


@pytest.mark.promise("T29", "Z35")
def test_vectors_with_other_prefixes_are_never_compared(opened: Callable[..., Memory], server: Server) -> None:
    name = f"{server.url}#multilingual-e5-small"
    given: dict[str, Any] = {"embedder": name, "actor": Actor.operator("olga")}
    with opened("e5", embedder_prefixes="none", **given) as memory:
        committed_record(memory.remember("The ferry leaves at six", tier="archival"))
        assert memory.recall("ferry").used == ("text", "vector")
    with opened("e5", **given) as memory:
        found = memory.recall("ferry")
        assert (found.used, "`keepward reindex`" in found.notes[0]) == (("text",), True)
        assert memory.reindex() == 1
        assert memory.recall("ferry").used == ("text", "vector")
        (check,) = [each for each in memory.doctor() if each.name == "embedder"]
        assert (check.ok, 'prefix of queries: "query: ", of documents: "passage: "' in check.detail) == (True, True)
    texts = [text for _, _, asked in server.script.seen for text in asked["input"]]
    assert {"query: ferry", "passage: The ferry leaves at six", "ferry"} <= set(texts)
