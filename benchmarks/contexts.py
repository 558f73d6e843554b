"""What a compiled context costs beside the recall it begins with, and a recall from a cold start."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.measure import p50, p95, table, times
from benchmarks.texts import notes
from keepward import Memory

RUNS = 60
#: Milliseconds a context may take longer than its recall, and seconds a cold recall may take at 10,000.
GOAL, COLD = 5.0, 0.6


def _cold(folder: Path) -> float:
    """Return the median seconds of ``keepward recall`` from the shell."""
    command = [sys.executable, "-m", "keepward", "recall", "an espresso machine", "--db", str(folder / "store.db")]
    environment = os.environ | {"XDG_CONFIG_HOME": str(folder), "KEEPWARD_EMBEDDER": "hashed"}
    taken = []
    for _ in range(5):
        start = time.perf_counter()
        subprocess.run(command, env=environment, check=True, capture_output=True)
        taken.append(time.perf_counter() - start)
    return sorted(taken)[2]


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
                recalls, contexts = [], []
                for query in asked[RUNS:]:
                    recalls += times(lambda _, q=query: memory.recall(q), 1)
                    contexts += times(lambda _, q=query: memory.context(q), 1)
                more = p50(contexts) - p50(recalls)
                rows.append([size, p50(recalls), p50(contexts), p95(contexts), more, GOAL, _cold(folder)])
    table(
        f"Context, receipt kept durably, and a cold recall from the shell (goal at 10,000: {COLD} s)",
        ["memories", "recall ms", "context ms", "context p95 ms", "context - recall ms", "goal ms", "cold recall s"],
        rows,
    )
    print(
        "\nA context is more than its recall by about seventy records that are read and checked by their seals, by "
        "counting and placing them, and by a receipt that is kept durably. Decoded records are not kept between calls: "
        "an erasure would have to reach them in every process."
    )
