"""The adapters of the page on embedders, as they stand there, against the interfaces of their packages."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from keepward import Memory
from keepward.embedding.hashed import HashedEmbedder
from support.samples import unrun

PAGE = (Path(__file__).parents[3] / "docs" / "howto" / "model.md").read_text()
SEEN: list[str] = []


class TextEmbedding:
    """What fastembed has: generators of arrays, for one text or several."""

    def __init__(self, model_name: str, threads: int | None = None) -> None:
        self.dim = {"BAAI/bge-small-en-v1.5": 384}[model_name]

    def embed(self, documents: str | Iterable[str], batch_size: int = 256, **_: Any) -> Iterator[np.ndarray]:
        for text in [documents] if isinstance(documents, str) else documents:
            SEEN.append(text)
            yield HashedEmbedder(self.dim).embed([text])[0]

    def passage_embed(self, texts: Iterable[str], **options: Any) -> Iterator[np.ndarray]:
        yield from self.embed(texts, **options)

    def query_embed(self, query: str | Iterable[str], **options: Any) -> Iterator[np.ndarray]:
        yield from self.embed(query, **options)


class SentenceTransformer:
    """What sentence-transformers has from version 5 on."""

    def __init__(self, name: str, device: str | None = None) -> None:
        self.dim = {"Qwen/Qwen3-Embedding-0.6B": 1024}[name]

    def encode(self, sentences: list[str], *, batch_size: int, normalize_embeddings: bool) -> np.ndarray:
        assert (batch_size, normalize_embeddings) == (1, True)
        SEEN.extend(sentences)
        return HashedEmbedder(self.dim).embed(sentences)

    def encode_query(self, sentences: list[str], **options: Any) -> np.ndarray:
        return self.encode(["Query:" + text for text in sentences], **options)

    def encode_document(self, sentences: list[str], **options: Any) -> np.ndarray:
        return self.encode(sentences, **options)


@pytest.mark.parametrize(
    ("package", "member", "name", "prefix"),
    [
        ("fastembed", TextEmbedding, "FastEmbed", "Represent this sentence for searching relevant passages: "),
        ("sentence_transformers", SentenceTransformer, "Sentences", "Query:"),
    ],
)
def test_adapter_of_the_page_embeds_queries_and_documents(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, package: str, member: type, name: str, prefix: str
) -> None:
    monkeypatch.setitem(sys.modules, package, SimpleNamespace(**{member.__name__: member}))
    (code,) = [block for block in unrun("python", PAGE) if f"from {package} " in block]
    space: dict[str, Any] = {}
    exec(code, space)
    SEEN.clear()
    with Memory.open(tmp_path / "a.db", config_dir=tmp_path / "home", embedder=space[name]()) as mem:
        assert mem.remember("The ferry leaves at six").reasons == ()
        found = mem.recall("When does the ferry leave?")
    assert (found.used, found.notes) == (("text", "vector"), ())
    stored, asked, *unrelated = SEEN
    assert (stored, asked) == ("The ferry leaves at six", prefix + "When does the ferry leave?")
    assert [text for text in unrelated if not text.startswith(prefix)] == []
