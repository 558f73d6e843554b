"""Prefixes of queries and documents: chosen by the model's name or by a setting, sent, and part of the id."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from keepward.embedding import choose_embedder
from keepward.embedding.prefixes import FAMILIES, parse_prefixes
from keepward.embedding.remote import HttpEmbedder, RunnerEmbedder
from support.loopback import Script, Server, serving

TASK = "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery:"
PASSAGES = "Represent this sentence for searching relevant passages: "


class Vectors(Script):
    """Answers each text with the same vector."""

    def answer(self, asked: dict[str, Any]) -> Any:
        return {"data": [{"index": at, "embedding": [1.0, 2.0, 2.0]} for at, _ in enumerate(asked["input"])]}


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving() as server:
        yield server


@pytest.fixture
def script(server: Server) -> Vectors:
    server.script = Vectors()
    return server.script


@pytest.mark.parametrize(
    ("model", "query", "document"),
    [
        ("intfloat/e5-base-v2", "query: ", "passage: "),
        ("intfloat/multilingual-e5-small", "query: ", "passage: "),
        ("text-embedding-multilingual-e5-large", "query: ", "passage: "),
        ("intfloat/multilingual-e5-large-instruct", TASK + " ", ""),
        ("intfloat/e5-mistral-7b-instruct", TASK + " ", ""),
        ("BAAI/bge-small-en-v1.5", PASSAGES, ""),
        ("bge-large:335m", PASSAGES, ""),
        ("BAAI/bge-base-zh-v1.5", "为这个句子生成表示以用于检索相关文章：", ""),
        ("Alibaba-NLP/gte-Qwen2-1.5B-instruct", TASK + " ", ""),
        ("nomic-embed-text", "search_query: ", "search_document: "),
        ("nomic-embed-text-v1.5.Q8_0.gguf", "search_query: ", "search_document: "),
        ("nomic-ai/nomic-embed-text-v2-moe", "search_query: ", "search_document: "),
        ("snowflake-arctic-embed:335m", PASSAGES, ""),
        ("Snowflake/snowflake-arctic-embed-m-v1.5", PASSAGES, ""),
        ("snowflake-arctic-embed2", "query: ", ""),
        ("Snowflake/snowflake-arctic-embed-l-v2.0", "query: ", ""),
        ("qwen3-embedding:0.6b", TASK, ""),
        ("Qwen/Qwen3-Embedding-8B", TASK, ""),
        ("embeddinggemma:300m", "task: search result | query: ", "title: none | text: "),
        ("google/embeddinggemma-300m", "task: search result | query: ", "title: none | text: "),
    ],
)
def test_model_is_sent_the_prefixes_that_it_was_trained_with(
    server: Server, script: Vectors, model: str, query: str, document: str
) -> None:
    embedder = choose_embedder(f"{server.url}#{model}")
    assert isinstance(embedder, HttpEmbedder)
    embedder.embed_query(["Where do I live?"])
    embedder.embed(["I moved to Porto"])
    assert [asked["input"] for _, _, asked in script.seen] == [
        [query + "Where do I live?"],
        [document + "I moved to Porto"],
    ]


@pytest.mark.parametrize(
    "model",
    [
        *("BAAI/bge-m3", "bge-m3:567m", "BAAI/bge-large-zh-noinstruct", "thenlper/gte-base", "gte-multilingual-base"),
        *("nomic-ai/nomic-embed-code", "text-embedding-3-small", "all-minilm", "small"),
    ],
)
def test_model_without_prefixes_gets_none_and_its_id_stays(server: Server, script: Vectors, model: str) -> None:
    embedder = choose_embedder(f"{server.url}#{model}")
    assert isinstance(embedder, HttpEmbedder)
    assert embedder.id == f"http:127.0.0.1:{server.server_port}:{model}:3"
    embedder.embed_query(["x"])
    embedder.embed(["x"])
    assert [asked["input"] for _, _, asked in script.seen[1:]] == [["x"], ["x"]]


@pytest.mark.parametrize(
    ("choice", "query", "document"),
    [
        ("none", "", ""),
        ("nomic", "search_query: ", "search_document: "),
        ("find: ||", "find: ", ""),
        ("task: x | query: ||title: none | text: ", "task: x | query: ", "title: none | text: "),
    ],
)
def test_setting_decides_before_the_name(choice: str, query: str, document: str) -> None:
    assert parse_prefixes(choice, "multilingual-e5-small") == (query, document)


def test_embedders_with_other_prefixes_have_other_ids() -> None:
    choices = ["none", *FAMILIES, "a||b", "ab||", "||ab"]
    ids = {}
    for choice in choices:
        ids.setdefault(parse_prefixes(choice, "small").mark, set()).add(parse_prefixes(choice, "small"))
    assert all(len(prefixes) == 1 for prefixes in ids.values())
    one, other = (
        HttpEmbedder("http://host", "e5-small", dim=3, prefixes=parse_prefixes(each, "e5-small"))
        for each in ("auto", "none")
    )
    assert (other.id, one.id.startswith(other.id), one.id == other.id) == ("http:host:e5-small:3", True, False)


def test_unknown_prefixes_are_answered_with_what_there_is() -> None:
    with pytest.raises(ValueError, match="did you mean nomic"):
        choose_embedder("http://host#small", prefixes="nomik")


def fake(monkeypatch: pytest.MonkeyPatch, module: str, **members: Any) -> None:
    monkeypatch.setitem(sys.modules, module, SimpleNamespace(**members))


class Fast:
    """The interface of fastembed: generators of arrays."""

    def __init__(self, model_name: str) -> None:
        self.seen: list[tuple[str, str]] = []
        Fast.made = self

    def passage_embed(self, texts: Sequence[str]) -> Iterator[np.ndarray]:
        for text in texts:
            self.seen.append(("passage", text))
            yield np.array([3.0, 4.0])

    def query_embed(self, query: str) -> Iterator[np.ndarray]:
        self.seen.append(("query", query))
        yield np.array([3.0, 4.0])


class Sentences:
    """The interface of sentence-transformers."""

    prompts: dict[str, str] | None = {"query": "", "document": ""}

    def __init__(self, name: str) -> None:
        self.seen: list[str] = []
        Sentences.made = self

    def encode(self, text: str, *, prompt: str, show_progress_bar: bool) -> np.ndarray:
        self.seen.append(prompt + text)
        return np.array([3.0, 4.0])


def asked(embedder: RunnerEmbedder) -> None:
    rows = [*embedder.embed_query(["where"]), *embedder.embed(["here"])]
    assert np.allclose(rows, [[0.6, 0.8]] * 2)


def test_fastembed_gets_the_prefixes_that_it_does_not_add(monkeypatch: pytest.MonkeyPatch) -> None:
    fake(monkeypatch, "fastembed", TextEmbedding=Fast)
    embedder = RunnerEmbedder("fastembed", "intfloat/multilingual-e5-large")
    asked(embedder)
    assert Fast.made.seen[1:] == [("query", "query: where"), ("passage", "passage: here")]
    assert embedder.id.startswith("fastembed:intfloat/multilingual-e5-large:2:prefixes-")
    plain = RunnerEmbedder("fastembed", "thenlper/gte-base")
    asked(plain)
    assert (Fast.made.seen[1:], plain.id) == (
        [("query", "where"), ("passage", "here")],
        "fastembed:thenlper/gte-base:2",
    )


@pytest.mark.parametrize(
    ("model", "prompts", "seen"),
    [
        ("multilingual-e5-small", {"query": "", "document": ""}, ["query: where", "passage: here"]),
        ("own-model", {"query": "q: ", "passage": "d: "}, ["q: where", "d: here"]),
        ("own-model", {"query": "", "document": ""}, ["where", "here"]),
        ("own-model", None, ["where", "here"]),
    ],
)
def test_sentence_transformers_get_prefixes_once(
    monkeypatch: pytest.MonkeyPatch, model: str, prompts: dict[str, str] | None, seen: list[str]
) -> None:
    fake(monkeypatch, "sentence_transformers", SentenceTransformer=Sentences)
    monkeypatch.setattr(Sentences, "prompts", prompts)
    embedder = RunnerEmbedder("sentence-transformers", model)
    asked(embedder)
    assert Sentences.made.seen[1:] == seen
    assert (":prefixes-" in embedder.id) is (seen != ["where", "here"])


def test_setting_switches_prefixes_of_a_runner_off(monkeypatch: pytest.MonkeyPatch) -> None:
    fake(monkeypatch, "fastembed", TextEmbedding=Fast)
    embedder = choose_embedder("fastembed:intfloat/multilingual-e5-large", prefixes="none")
    assert isinstance(embedder, RunnerEmbedder)
    asked(embedder)
    assert Fast.made.seen[1:] == [("query", "where"), ("passage", "here")]
