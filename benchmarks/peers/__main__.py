"""Run every memory in a process of its own and print the tables: ``python -m benchmarks.peers [SIZE ...]``."""

from __future__ import annotations

import json
import subprocess
import sys

from benchmarks.measure import table
from benchmarks.peers.adapters import PEERS

HEADER = ["memory", "bulk per s", "add p50 ms", "add p95 ms", "search p50 ms", "meant note in the ten", "bytes a note"]


def main(sizes: list[int]) -> None:
    """Print a table a size."""
    for size in sizes:
        rows: list[list[object]] = []
        for name in PEERS:
            done = subprocess.run(
                [sys.executable, "-m", "benchmarks.peers.run", name, str(size)],
                capture_output=True,
                text=True,
                check=False,
            )
            if done.returncode:
                why = (done.stderr.strip().splitlines() or ["no word"])[-1]
                rows.append([name, f"left out: {why[:80]}", "", "", "", "", ""])
                continue
            got = json.loads(done.stdout.strip().splitlines()[-1])
            rows.append(
                [
                    name,
                    round(got["bulk_per_s"]),
                    got["add_ms"],
                    got["add_p95_ms"],
                    got["search_ms"],
                    got["found"],
                    round(got["bytes"]),
                ]
            )
        table(f"{size:,} notes, the same texts and vectors, no language model", HEADER, rows)


if __name__ == "__main__":
    main([int(word) for word in sys.argv[1:]] or [1_000, 10_000])
