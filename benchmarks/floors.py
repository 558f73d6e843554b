"""Hybrid recall beside the least that a search can cost: a scan of all vectors in numpy, and FTS5 alone."""

from __future__ import annotations

import sqlite3
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.measure import growth, p50, p95, table, times
from benchmarks.peers.adapters import Looked
from benchmarks.peers.material import DIM, Material
from keepward import Memory

#: Milliseconds at the median, by the number of memories.
GOALS = {1_000: 1.0, 10_000: 3.0, 100_000: 12.0, 1_000_000: 60.0}


def _words(folder: Path, texts: list[str]) -> sqlite3.Connection:
    connection = sqlite3.connect(folder / "words.db", isolation_level=None)
    connection.execute("CREATE VIRTUAL TABLE notes USING fts5(body)")
    connection.execute("BEGIN")
    connection.executemany("INSERT INTO notes VALUES (?)", [(text,) for text in texts])
    connection.execute("COMMIT")
    return connection


def _match(connection: sqlite3.Connection, query: str) -> None:
    asked = " OR ".join('"' + word.strip("(),") + '"' for word in query.split())
    connection.execute("SELECT rowid FROM notes WHERE notes MATCH ? ORDER BY rank LIMIT 10", (asked,)).fetchall()


def run(sizes: tuple[int, ...] = (1_000, 10_000, 100_000)) -> None:
    """Print the table."""
    rows, costs = [], []
    for size in sizes:
        material = Material(size)
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            words = _words(folder, material.texts)
            with Memory.open(folder / "store.db", embedder=Looked(material), config_dir=folder / "config") as memory:
                memory.remember_many([{"text": text, "tier": "archival"} for text in material.texts], batch=2_000)
                memory.recall(material.queries[0])
                ours, scans, matches = [], [], []
                for at, query in enumerate(material.queries):
                    ours += times(lambda _, q=query: memory.recall(q, limit=10), 1)
                    vector = material.query_vectors[at]
                    scans += times(lambda _, m=material.vectors, v=vector: np.argpartition(-(m @ v), 10)[:10], 1)
                    matches += times(lambda _, w=words, q=query: _match(w, q), 1)
            words.close()
        costs.append(p50(ours))
        rows.append(
            [size, p50(ours), p95(ours), GOALS[size], p50(scans), p50(matches), p50(ours) / (p50(scans) + p50(matches))]
        )
    table(
        f"Hybrid recall, query vector given, {DIM} numbers a vector",
        ["memories", "recall p50 ms", "p95 ms", "goal ms", "numpy scan ms", "FTS5 any word ms", "recall / both floors"],
        rows,
    )
    print(f"\ngrowth exponent of the median: {growth(sizes, costs):.3f}")
    print(
        "\nAt 1,000 most of a recall does not depend on how much is held: the query is analysed, ten records are "
        "read and checked by their seals, and uses are counted. A million: "
        "`python -m benchmarks.bench_index --sizes 1000000`."
    )
