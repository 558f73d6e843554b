"""Governed commits of many processes to one store: what the crowd commits each second, all together.

Every process opens the store, waits until all have, and then remembers one sentence after another; each is judged by
every gate and is on the disk before it is acknowledged. Beside it stands what the disk itself allows: one row a
transaction, alone.
"""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

from benchmarks.measure import table

WORKER = Path(__file__).parents[1] / "tests" / "acceptance" / "crowd.py"
#: Processes, and commits of each.
CROWDS = ((1, 500), (16, 500), (64, 50))
GOAL = 500
#: Writes elsewhere before the crowd forks: the first ones compile the rules.
WARM = 150


def commits(folder: Path, processes: int, count: int) -> dict[str, float]:
    """Run one crowd; return commits each second in sum, the slowest of them in seconds, and how many failed."""
    done = subprocess.run(
        [sys.executable, str(WORKER), str(folder), str(processes), str(count), str(WARM)],
        capture_output=True,
        text=True,
        check=True,
    )
    said = json.loads(done.stdout)
    return {
        "rate": len(said["acknowledged"]) / said["seconds"],
        "slowest": said["slowest"],
        "failed": len(said["errors"]),
    }


def bare(folder: Path, count: int = 500) -> float:
    """Return one-row transactions each second of one connection, each of them on the disk."""
    with closing(sqlite3.connect(folder / "bare.db", isolation_level=None)) as db:
        db.execute("PRAGMA journal_mode=WAL")
        db.execute("PRAGMA synchronous=FULL")
        db.execute("CREATE TABLE t (n INTEGER PRIMARY KEY, text TEXT)")
        begun = time.perf_counter()
        for n in range(count):
            db.execute("BEGIN IMMEDIATE")
            db.execute("INSERT INTO t VALUES (?, ?)", (n, "left on truck " * 8))
            db.execute("COMMIT")
        return count / (time.perf_counter() - begun)


def run() -> None:
    """Print the table."""
    rows: list[tuple[object, ...]] = []
    with tempfile.TemporaryDirectory() as name:
        limit = bare(Path(name))
        for processes, count in CROWDS:
            told = commits(Path(name) / f"crowd{processes}", processes, count)
            goal = f">= {GOAL}" if processes > 1 else ""
            rate = told["rate"]
            rows.append((f"{processes} x {count}", f"{rate:.0f}", goal, rate / limit, told["slowest"], told["failed"]))
    header = ("processes x commits", "commits/s in sum", "goal", "of a bare row", "slowest, s", "failed, goal 0")
    table(f"Governed commits of a crowd (bare rows: {limit:.0f}/s)", header, rows)
