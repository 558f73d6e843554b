"""One adapter a memory: fill it, add one, search it.

Each is used as its own documents show for the case that a vector is at hand and no language model is called.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from benchmarks.peers.material import DIM, Material


class Peer(Protocol):
    """What is asked of a memory."""

    def fill(self, texts: Sequence[str]) -> None:
        """Take many at once, by whatever way there is."""

    def add(self, text: str) -> None:
        """Take one, and return when it is kept."""

    def search(self, query: str) -> list[str]:
        """Return the ten best texts."""

    def close(self) -> None:
        """Write what is still to be written."""


class _Keepward:
    def __init__(self, folder: Path, material: Material) -> None:
        from keepward import Actor, Memory

        self.memory = Memory.open(
            folder / "store.db",
            embedder=Looked(material),
            actor=Actor.operator("bench"),
            config_dir=folder.parent / (folder.name + "-config"),
        )

    def fill(self, texts: Sequence[str]) -> None:
        self.memory.remember_many([{"text": text, "tier": "archival"} for text in texts], batch=2_000)

    def add(self, text: str) -> None:
        self.memory.remember(text, tier="archival")

    def search(self, query: str) -> list[str]:
        return [hit.memory.text for hit in self.memory.recall(query, limit=10)]

    def close(self) -> None:
        self.memory.close()


class Looked:
    """An embedder that looks vectors up."""

    def __init__(self, material: Material) -> None:
        self.id, self.dim, self._material = "looked-up", DIM, material

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        """Return float32 rows, L2-normalised, one a text; texts that are not known get a fixed vector."""
        odd = np.full(DIM, DIM**-0.5, dtype=np.float32)
        known = self._material._known  # noqa: SLF001
        return np.stack([known.get(text, odd) for text in texts]).astype(np.float32)


def _loading() -> Any:
    """Return an sqlite3 module that can load extensions; not every Python's own can."""
    try:
        import pysqlite3
    except ImportError:
        return sqlite3
    return pysqlite3


class _LangGraph:
    def __init__(self, folder: Path, material: Material) -> None:
        self.store = self.open(folder, {"dims": DIM, "embed": material.embed, "fields": ["text"]})
        self.count = 0

    def open(self, folder: Path, index: Any) -> Any:
        from langgraph.store.sqlite import SqliteStore

        connection = _loading().connect(folder / "store.db", check_same_thread=False, isolation_level=None)
        store = SqliteStore(connection, index=index)
        store.setup()
        self.connection = connection
        return store

    def close(self) -> None:
        self.connection.close()

    def fill(self, texts: Sequence[str]) -> None:
        from langgraph.store.base import PutOp

        for start in range(0, len(texts), 500):
            part = texts[start : start + 500]
            self.store.batch(
                [PutOp(("notes",), str(self.count + n), {"text": text}, index=["text"]) for n, text in enumerate(part)]
            )
            self.count += len(part)

    def add(self, text: str) -> None:
        self.store.put(("notes",), str(self.count), {"text": text}, index=["text"])
        self.count += 1

    def search(self, query: str) -> list[str]:
        return [item.value["text"] for item in self.store.search(("notes",), query=query, limit=10)]


class _LangGraphInMemory(_LangGraph):
    def open(self, folder: Path, index: Any) -> Any:
        from langgraph.store.memory import InMemoryStore

        return InMemoryStore(index=index)

    def close(self) -> None:
        """Nothing is kept."""


class _Mem0:
    vector_store = "qdrant"

    def __init__(self, folder: Path, material: Material) -> None:
        os.environ["MEM0_TELEMETRY"] = "False"
        os.environ["MEM0_DIR"] = str(folder / "home")
        # Never called: nothing is inferred, and vectors are looked up.
        os.environ.setdefault("OPENAI_API_KEY", "none")
        from mem0 import Memory

        config: dict[str, Any] = {"path": str(folder / "vectors"), "collection_name": "notes"}
        if self.vector_store == "qdrant":
            config |= {"embedding_model_dims": DIM, "on_disk": True}
        self.memory = Memory.from_config(
            {
                "vector_store": {"provider": self.vector_store, "config": config},
                "history_db_path": str(folder / "history.db"),
            }
        )
        self.memory.embedding_model.embed = lambda text, *_, **__: material.embed([text])[0]

    def fill(self, texts: Sequence[str]) -> None:
        for text in texts:
            self.add(text)

    def add(self, text: str) -> None:
        self.memory.add(text, user_id="ana", infer=False)

    def search(self, query: str) -> list[str]:
        found = self.memory.search(query, filters={"user_id": "ana"}, top_k=10)
        return [item["memory"] for item in found["results"]]

    def close(self) -> None:
        """Everything was written by each call."""


class _Mem0Chroma(_Mem0):
    vector_store = "chroma"


class _Chroma:
    def __init__(self, folder: Path, material: Material) -> None:
        import chromadb
        from chromadb.config import Settings

        client = chromadb.PersistentClient(str(folder), settings=Settings(anonymized_telemetry=False))
        self.notes = client.create_collection("notes", metadata={"hnsw:space": "cosine"}, embedding_function=None)
        self.material, self.count = material, 0

    def fill(self, texts: Sequence[str]) -> None:
        for start in range(0, len(texts), 1_000):
            self._put(texts[start : start + 1_000])

    def add(self, text: str) -> None:
        self._put([text])

    def _put(self, texts: Sequence[str]) -> None:
        names = [str(self.count + n) for n in range(len(texts))]
        self.notes.add(ids=names, documents=list(texts), embeddings=self.material.embed(list(texts)))
        self.count += len(texts)

    def search(self, query: str) -> list[str]:
        found = self.notes.query(query_embeddings=self.material.embed([query]), n_results=10)
        return list(found["documents"][0])

    def close(self) -> None:
        """Everything was written by each call."""


class _Txtai:
    def __init__(self, folder: Path, material: Material) -> None:
        from txtai import Embeddings

        self.index = Embeddings(
            method="external",
            transform=lambda texts: np.asarray(material.embed(list(texts)), dtype=np.float32),
            content=True,
            hybrid=True,
        )
        self.folder, self.count = folder, 0

    def fill(self, texts: Sequence[str]) -> None:
        self.index.upsert([(str(self.count + n), text, None) for n, text in enumerate(texts)])
        self.count += len(texts)
        self.index.save(str(self.folder / "index"))

    def add(self, text: str) -> None:
        self.fill([text])

    def search(self, query: str) -> list[str]:
        return [item["text"] for item in self.index.search(query, 10)]

    def close(self) -> None:
        self.index.close()


class _BareInsert:
    """The floor of a write: one row and its vector, one commit with FULL, nothing else."""

    def __init__(self, folder: Path, material: Material) -> None:
        self.material = material
        self.connection = sqlite3.connect(folder / "store.db", isolation_level=None)
        self.connection.execute("PRAGMA journal_mode=WAL")
        self.connection.execute("PRAGMA synchronous=FULL")
        self.connection.execute("CREATE VIRTUAL TABLE words USING fts5(body)")
        self.connection.execute("CREATE TABLE notes (id INTEGER PRIMARY KEY, body TEXT, vector BLOB)")

    def fill(self, texts: Sequence[str]) -> None:
        self.connection.execute("BEGIN")
        for text in texts:
            self.add(text)
        self.connection.execute("COMMIT")

    def add(self, text: str) -> None:
        vector = self.material.vector(text).tobytes()
        self.connection.execute("INSERT INTO notes (body, vector) VALUES (?, ?)", (text, vector))

    def search(self, query: str) -> list[str]:
        """The floor of a search: every vector read from the table and compared, in numpy."""
        rows = self.connection.execute("SELECT body, vector FROM notes").fetchall()
        matrix = np.frombuffer(b"".join(row[1] for row in rows), dtype=np.float32).reshape(len(rows), DIM)
        best = np.argsort(-(matrix @ self.material.vector(query)))[:10]
        return [rows[at][0] for at in best]

    def close(self) -> None:
        self.connection.close()


PEERS: dict[str, Any] = {
    "keepward": _Keepward,
    "LangGraph SqliteStore": _LangGraph,
    "LangGraph InMemoryStore": _LangGraphInMemory,
    "mem0 (qdrant local)": _Mem0,
    "mem0 (chroma)": _Mem0Chroma,
    "chroma": _Chroma,
    "txtai hybrid": _Txtai,
    "bare SQLite rows": _BareInsert,
}
