"""What a memory takes on disk beyond its text, table by table, and what a process holds."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.measure import table
from benchmarks.peers.adapters import Looked
from benchmarks.peers.material import Material
from keepward import Memory

#: Bytes a memory beyond its text, journal and vectors included; megabytes of a process at 100,000.
DISK, RESIDENT = 2_200, 200


def resident() -> float:
    """Return the megabytes of this process that are in memory now."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1_024
    return float("nan")


def _fill(folder: Path, size: int) -> None:
    material = Material(size)
    with Memory.open(folder / "store.db", embedder=Looked(material), config_dir=folder / "config") as memory:
        for start in range(0, size, 10_000):
            part = material.texts[start : start + 10_000]
            memory.remember_many([{"text": text, "tier": "archival"} for text in part], batch=2_000)
    print(json.dumps({"text": sum(len(text.encode()) for text in material.texts)}))


def _ask(folder: Path) -> None:
    material = Material(1_000)
    empty = resident()
    with Memory.open(folder / "store.db", embedder=Looked(material), config_dir=folder / "config") as memory:
        for query in material.queries[:5]:
            memory.recall(query)
        print(json.dumps({"resident": resident(), "before": empty}))


def _child(what: str, folder: Path, size: int) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.size", what, str(folder), str(size)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def run(sizes: tuple[int, ...] = (10_000, 100_000)) -> None:
    """Print the tables."""
    rows: list[list[object]] = []
    parts: list[list[object]] = []
    for size in sizes:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            text = _child("fill", folder, size)["text"] / size
            asked = _child("ask", folder, size)
            whole = sum(file.stat().st_size for file in folder.glob("store.db*")) / size
            rows.append([size, text, whole, whole - text, DISK, asked["resident"], RESIDENT])
            with sqlite3.connect(folder / "store.db") as store:
                kept = store.execute("SELECT name, SUM(pgsize) FROM dbstat GROUP BY name ORDER BY 2 DESC LIMIT 9")
                parts = [[name, taken / size] for name, taken in kept]
    table(
        "Disk and memory, vectors of 384 numbers, one a note",
        ["memories", "text bytes", "on disk, bytes each", "beyond the text", "goal", "process MB", "goal MB"],
        rows,
    )
    print(
        "\nA process at 100,000 holds about 45 MB of Python and numpy, 600 bytes a memory of the index (vectors in "
        "eight bits and their sign bits 440, packed words 100, columns and ids 66), and what malloc keeps of the load."
    )
    table(f"Where the bytes are at {sizes[-1]:,}", ["table or index", "bytes a memory"], parts)


if __name__ == "__main__":
    if sys.argv[1] == "fill":
        _fill(Path(sys.argv[2]), int(sys.argv[3]))
    else:
        _ask(Path(sys.argv[2]))
