"""What a compiled context costs beside the recall it begins with, and a recall from a cold start."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.measure import p50, p95, table, times
from benchmarks.texts import notes
from keepward import Memory

RUNS = 60
#: Milliseconds a context of so many tokens may take longer than its recall, and seconds a cold recall may take, both at
#: 10,000 memories.
GOALS, COLD = {1_000: 3.0, 4_000: 15.0}, 0.6


def _cold(folder: Path) -> float:
    """Return the median seconds of ``keepward recall`` from the shell, its bytecode compiled as an installer does."""
    command = [sys.executable, "-m", "keepward", "recall", "an espresso machine", "--db", str(folder / "store.db")]
    environment = os.environ | {"XDG_CONFIG_HOME": str(folder), "KEEPWARD_EMBEDDER": "hashed"}
    environment |= {"PYTHONPYCACHEPREFIX": str(folder / "bytecode"), "PYTHONDONTWRITEBYTECODE": ""}
    subprocess.run(command, env=environment, check=True, capture_output=True)
    taken = []
    for _ in range(5):
        start = time.perf_counter()
        subprocess.run(command, env=environment, check=True, capture_output=True)
        taken.append(time.perf_counter() - start)
    return sorted(taken)[2]


def _contexts(memory: Memory, queries: Sequence[str], tokens: int) -> tuple[list[float], list[float]]:
    """Return the seconds of a context, and of the recall alone, of each query."""
    recalls, contexts = [], []
    for query in queries:
        recalls += times(lambda _, q=query: memory.recall(q), 1)
        contexts += times(lambda _, q=query: memory.context(q, budget_tokens=tokens), 1)
    return contexts, recalls


def run(sizes: tuple[int, ...] = (1_000, 10_000, 100_000)) -> None:
    """Print the table."""
    rows = []
    asked = [" ".join(text.split()[:9]) for text in notes(2 * RUNS, seed=99)]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with Memory.open(folder / "store.db", embedder="hashed", config_dir=folder / "keepward") as memory:
            texts = iter(notes(sizes[-1]))
            held = 0
            for size in sizes:
                fresh = [{"text": next(texts), "tier": "archival"} for _ in range(size - held)]
                memory.remember_many(fresh, batch=2_000)
                held = size
                memory.context(asked[0])
                cold = _cold(folder)
                for tokens, goal in GOALS.items():
                    # What is shown for the first time is screened.
                    first, _ = _contexts(memory, asked, tokens)
                    contexts, recalls = _contexts(memory, asked[RUNS:], tokens)
                    more = p50(contexts) - p50(recalls)
                    taken = [p50(recalls), p50(first), p50(contexts), p95(contexts)]
                    rows.append([size, tokens, *taken, more, goal, cold])
    table(
        f"Context (more: than its recall), receipt kept durably, and a cold recall from the shell (goal: {COLD} s)",
        ["memories", "tokens", "recall ms", "first ms", "context ms", "p95 ms", "more ms", "goal ms", "cold recall s"],
        rows,
    )
    print(
        "\nA context is more than its recall by up to 130 records that are read and checked by their seals, by "
        "counting and placing them, and by a receipt that is kept durably. Decoded records are not kept between calls: "
        "an erasure would have to reach them in every process."
    )
