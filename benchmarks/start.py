"""How long it takes until something can be asked: importing, and the shortest commands."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

from benchmarks.measure import table

#: Seconds beyond an interpreter that does nothing.
GOAL = 0.15
COMMANDS = {
    "python -c pass": ["-c", "pass"],
    "import keepward": ["-c", "import keepward"],
    "from keepward import Memory": ["-c", "from keepward import Memory"],
    "keepward --help": ["-m", "keepward", "--help"],
}


def run() -> None:
    """Print the table."""
    rows: list[list[object]] = []
    for name, arguments in COMMANDS.items():
        taken = []
        for _ in range(11):
            start = time.perf_counter()
            subprocess.run([sys.executable, *arguments], check=True, capture_output=True)
            taken.append(time.perf_counter() - start)
        rows.append([name, statistics.median(taken)])
    floor = float(str(rows[0][1]))
    table(
        f"Start (goal for the import: {GOAL} s)",
        ["command", "median s", "beyond the interpreter s"],
        [[*row, float(str(row[1])) - floor] for row in rows],
    )
