"""How long it takes until something can be asked: imports, the shortest commands, the first recall of a process."""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

from msgspec.structs import replace

from benchmarks.measure import table
from benchmarks.texts import notes
from keepward.core.commit import CommitDetails, Step
from keepward.core.memory import Kind, Record, Tier
from keepward.core.principals import Trust
from keepward.open import open_engine
from keepward.ports.store import Features, PendingCommit
from keepward.services.search.features import text_features, with_vectors

#: Seconds beyond an interpreter that does nothing.
GOAL = 0.15
COMMANDS = {
    "python -c pass": ["-c", "pass"],
    "import keepward": ["-c", "import keepward"],
    "from keepward import Memory": ["-c", "from keepward import Memory"],
    "keepward --help": ["-m", "keepward", "--help"],
}
#: Memories; ``KEEPWARD_BENCHMARK_SIZES=1000000`` names others.
SIZES = "10000,100000"
#: Different texts of a filled store; the rest repeat them.
_TEXTS, _BATCH = 5_000, 5_000
_CHILD = """
import json, sys, time
from keepward import Actor, Memory
began, cpu = time.perf_counter(), time.process_time()
with Memory.open(sys.argv[1], actor=Actor.operator("olga"), embedder="hashed", config_dir=sys.argv[2]) as memory:
    opened, cpu_opened = time.perf_counter(), time.process_time()
    memory.recall("the invoice template in the cellar")
    done, cpu_done = time.perf_counter(), time.process_time()
    lines = open("/proc/self/smaps_rollup").read().split("\\n")
    anonymous = next(int(line.split()[1]) for line in lines if line.startswith("Anonymous:")) / 1024
print(json.dumps([opened - began, done - opened, cpu_done - cpu_opened, anonymous]))
"""


def fill(path: Path, config: Path, count: int) -> None:
    """Write so many memories in large commits, without gates."""
    engine = open_engine(str(path), embedder="hashed", create=True, config_dir=config)
    texts, began = notes(_TEXTS), datetime(2026, 1, 1, tzinfo=UTC)

    def record(number: int) -> Record:
        now = began + timedelta(seconds=number)
        return Record(
            id=engine.ids.new_id(now),
            version=1,
            tier=Tier.ARCHIVAL,
            kind=Kind.FACT,
            text=texts[number % _TEXTS],
            scope="/",
            source="operator",
            trust=Trust.OWNER,
            confidence=1.0,
            importance=0.5,
            author="operator:olga",
            created_at=now,
            reinforced_at=now,
        )

    samples = [record(number) for number in range(_TEXTS)]
    features: list[Features] = []
    for start in range(0, _TEXTS, 500):
        part = samples[start : start + 500]
        features += with_vectors(engine.embedder, part, [text_features(each) for each in part], {})
    details = CommitDetails(actor="operator:olga", reason="fill", receipt=engine.ids.new_id(began), policy="0" * 16)
    for start in range(0, count, _BATCH):
        records = [record(number) for number in range(start, min(start + _BATCH, count))]
        commit = PendingCommit(
            commit_id=engine.ids.new_id(began),
            at=began + timedelta(seconds=start),
            kind="write",
            actor_kind="operator",
            details=details,
            steps=tuple(Step(op="insert", before=None, after=each) for each in records),
            features=tuple(replace(features[number % _TEXTS], marks=()) for number in range(len(records))),
            base={},
            salts=tuple(engine.ids.salt() for _ in range(len(records) + 1)),
        )
        with engine.store.write() as writer:
            writer.append("default", commit)
    engine.store.close()


def first_recalls() -> None:
    """Print how long the first recall of a process takes, with the file of the index and without."""
    rows: list[list[object]] = []
    for size in map(int, os.environ.get("KEEPWARD_BENCHMARK_SIZES", SIZES).split(",")):
        with tempfile.TemporaryDirectory() as folder:
            path, config = Path(folder) / "memory.db", Path(folder) / "config"
            fill(path, config, size)
            shell = [sys.executable, "-m", "keepward", "recall", "the invoice template", "--db", str(path)]
            for name in ("builds the index", "begins with its file"):
                taken = []
                for _ in range(1 if name == "builds the index" else 5):
                    command = [sys.executable, "-c", _CHILD, str(path), str(config)]
                    taken.append(json.loads(subprocess.run(command, check=True, capture_output=True).stdout))
                rows.append([size, name, *(statistics.median(each) for each in zip(*taken, strict=True))])
            start = time.perf_counter()
            subprocess.run(
                [*shell, "--embedder", "hashed"],
                check=True,
                capture_output=True,
                env={**os.environ, "KEEPWARD_HOME": str(config), "KEEPWARD_MAINTENANCE": "off"},
            )
            rows.append([size, "`keepward recall`", 0.0, time.perf_counter() - start, 0.0, 0.0])
            shutil.rmtree(f"{path}.index")
    table(
        "First recall of a process (goals: 0.06, 0.1 and 0.3 s at 10,000, 100,000 and a million; 250 MB)",
        ["memories", "process", "open s", "first recall s", "its CPU s", "anonymous MB"],
        rows,
    )


def run() -> None:
    """Print the tables."""
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
    first_recalls()
