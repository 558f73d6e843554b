"""What a governed, durable ``remember`` costs, and whether it grows.

Beside each size stands a bare one-row commit with the same durability, measured in turns with it.
"""

from __future__ import annotations

import sqlite3
import tempfile
from pathlib import Path

from benchmarks.measure import growth, p50, p95, table, times
from benchmarks.texts import notes
from keepward import Memory

RUNS = 300


def bare(path: Path) -> sqlite3.Connection:
    """Return a database of one table, in WAL mode with FULL durability."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("CREATE TABLE row (id INTEGER PRIMARY KEY, body TEXT)")
    return connection


def run(sizes: tuple[int, ...] = (100, 1_000, 10_000, 100_000)) -> None:
    """Print the table."""
    rows, costs = [], []
    with tempfile.TemporaryDirectory() as folder:
        floor = bare(Path(folder) / "floor.db")
        texts = iter(notes(sizes[-1] + RUNS * len(sizes) + 1_000))
        with Memory.open(Path(folder) / "store.db", embedder=None, config_dir=Path(folder) / "config") as mem:
            held = 0
            for size in sizes:
                missing = [{"text": next(texts), "tier": "archival"} for _ in range(size - held)]
                mem.remember_many(missing, batch=2_000)
                batch = [next(texts) for _ in range(RUNS)]

                def both(number: int, batch: list[str] = batch) -> None:
                    mem.remember(batch[number], tier="archival")

                def row(number: int) -> None:
                    floor.execute("INSERT INTO row (body) VALUES (?)", ("x" * 100,))

                governed, plain = [], []
                for number in range(RUNS):
                    plain += times(lambda _, n=number: row(n), 1)
                    governed += times(lambda _, n=number: both(n), 1)
                held = size + RUNS
                costs.append(p50(governed))
                rows.append([size, p50(governed), p95(governed), p50(plain), p50(governed) / p50(plain)])
        floor.close()
    table(
        "Governed remember, durable, embedding left out (goals: at most 5 ms and 3 bare commits, exponent under 0.1)",
        ["memories held", "p50 ms", "p95 ms", "bare commit p50 ms", "ratio"],
        rows,
    )
    print(f"\ngrowth exponent of the median: {growth(sizes, costs):.3f}")
    print(
        "\nOne flush a commit, as the bare row has. What is beyond it is about half SQL, over nine tables (journal, "
        "event, record, receipt, features, marks, heads, seals ...), and half gates, folding, encoding and sealing in "
        "Python: three bare commits would leave a third of a millisecond for both."
    )
