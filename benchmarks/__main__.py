"""Run the benchmarks and print their tables: ``python -m benchmarks [name ...]``."""

from __future__ import annotations

import subprocess
import sys

from benchmarks import (
    bulk,
    calls,
    contexts,
    crowd,
    embedding,
    floors,
    hooks,
    postgres,
    remember,
    scale,
    served,
    size,
    start,
)


def index() -> None:
    """Time the retrieval index; each size in a process of its own, so that memory is measured alone."""
    subprocess.run([sys.executable, "-m", "benchmarks.bench_index"], check=True)


ALL = {
    "remember": remember.run,
    "calls": calls.run,
    "bulk": bulk.run,
    "context": contexts.run,
    "recall": floors.run,
    "index": index,
    "embedding": embedding.run,
    "start": start.run,
    "hooks": hooks.run,
    "size": size.run,
    "crowd": crowd.run,
    "postgres": postgres.run,
    "served": served.run,
    "scale": scale.run,
}

if __name__ == "__main__":
    for name in sys.argv[1:] or ALL:
        ALL[name]()
