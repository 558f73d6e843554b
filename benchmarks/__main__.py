"""Run the benchmarks and print their tables: ``python -m benchmarks [name ...]``."""

from __future__ import annotations

import subprocess
import sys

from benchmarks import bulk, contexts, crowd, remember


def index() -> None:
    """Time the retrieval index; each size in a process of its own, so that memory is measured alone."""
    subprocess.run([sys.executable, "-m", "benchmarks.bench_index"], check=True)


ALL = {"remember": remember.run, "bulk": bulk.run, "context": contexts.run, "index": index, "crowd": crowd.run}

if __name__ == "__main__":
    for name in sys.argv[1:] or ALL:
        ALL[name]()
