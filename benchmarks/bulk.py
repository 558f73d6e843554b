"""What bulk ingestion costs through every gate, embedding left out, one commit a batch.

Processor time stands beside the clock, since the flush of a commit and whatever else runs on the machine are no
work of ours. Both kinds of notes are as hard as notes are: ``alike`` ones share most of their words with thousands
of others, so that each has neighbours to be compared with; ``apart`` ones share few.
"""

from __future__ import annotations

import random
import sqlite3
import tempfile
import time
from pathlib import Path

from benchmarks.measure import table
from benchmarks.remember import bare
from benchmarks.texts import notes
from keepward import Memory

#: Memories a second.
GOAL = 5_000
BATCH = 1_000


def apart(count: int, seed: int = 3) -> list[str]:
    """Return notes whose words follow a Zipf law over 20,000 made-up ones."""
    source = random.Random(seed)
    syllables = [first + second for first in "bcdfghklmnprstvz" for second in "aeiou"]
    words = ["".join(source.choices(syllables, k=source.randint(1, 4))) for _ in range(20_000)]
    odds = [1 / (rank + 10) for rank in range(len(words))]
    return [" ".join(source.choices(words, odds, k=source.randint(8, 24))).capitalize() + "." for _ in range(count)]


def _floor(path: Path, texts: list[str]) -> float:
    """Return how many rows a second a table without anything else takes, a batch a commit, by processor time."""
    connection: sqlite3.Connection = bare(path)
    start = time.process_time()
    for at in range(0, len(texts), BATCH):
        connection.execute("BEGIN")
        connection.executemany("INSERT INTO row (body) VALUES (?)", [(text,) for text in texts[at : at + BATCH]])
        connection.execute("COMMIT")
    spent = time.process_time() - start
    connection.close()
    return len(texts) / spent


def run(sizes: tuple[int, ...] = (2_000, 10_000)) -> None:
    """Print the table."""
    rows = []
    for kind, made in (("alike", notes), ("apart", apart)):
        for size in sizes:
            texts = made(size)
            with tempfile.TemporaryDirectory() as folder:
                place = Path(folder)
                with Memory.open(place / "store.db", embedder=None, config_dir=place / "config") as memory:
                    clock, work = time.perf_counter(), time.process_time()
                    memory.remember_many([{"text": text, "tier": "archival"} for text in texts], batch=BATCH)
                    clock, work = time.perf_counter() - clock, time.process_time() - work
                floor = _floor(place / "floor.db", texts)
            rows.append([kind, size, size / work, size / clock, f"{GOAL:,}", floor / (size / work)])
    table(
        f"Bulk ingestion through all gates, embedding left out, {BATCH:,} a commit",
        ["notes", "memories", "a second of processor time", "a second by the clock", "goal", "bare rows / ours"],
        rows,
    )
    print(
        "\nEvery text is searched for secrets, personal data and orders (about a third of the time), analysed and "
        "marked (a fifth), compared with its neighbours (a sixth), folded, encoded, hashed and sealed in Python. The "
        "store has a tenth: what is left to gain is in fewer steps a memory. The first batch also compiles patterns."
    )
