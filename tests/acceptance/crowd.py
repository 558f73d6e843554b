"""Many processes that write to one store at once: forks them, lets them begin together, tells what they were told.

    python crowd.py FOLDER PROCESSES COUNT [WARM [ADDRESS]]

The store is in the folder, or in the database of the address, with its keys beside the folder. Prints one JSON object: the acknowledged numbers, every error, the slowest write in seconds, and the seconds from the
moment at which all had opened the store to the last acknowledgement. WARM writes to a store of its own come first, so
that what is loaded and compiled once is so.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

from keepward import Actor, Committed, Memory
from keepward.gates.detectors import injection, pii, secrets


def write(place: str, config: Path, worker: int, count: int, ready: int, gate: int) -> dict[str, object]:
    """Open the store, say so, wait for the others, commit governed writes; return what was acknowledged."""
    acknowledged: list[int] = []
    errors: list[str] = []
    slowest = 0.0
    with Memory.open(place, actor=Actor.agent(f"w{worker}"), embedder=None, config_dir=config) as mem:
        os.close(ready)
        os.read(gate, 1)
        for n in range(count):
            number = worker * 100_000 + n
            text = f"Order {number} was packed at station {number % 17} and left on truck {number % 29}"
            begun = time.perf_counter()
            try:
                outcome = mem.remember(text, tier="archival", aliases=[f"workload:{number}"])
            except Exception as fault:
                errors.append(f"{type(fault).__name__}: {fault}")
                continue
            slowest = max(slowest, time.perf_counter() - begun)
            if isinstance(outcome, Committed):
                acknowledged.append(number)
            else:
                errors.append(f"{number}: {outcome.outcome} {outcome.reasons}")
    return {"acknowledged": acknowledged, "errors": errors, "slowest": slowest, "ended": time.perf_counter()}


def main() -> None:
    """Fork, start together, gather."""
    folder, processes, count = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    warm = int(sys.argv[4]) if len(sys.argv) > 4 else 1
    place = sys.argv[5] if len(sys.argv) > 5 else str(folder / "memory.db")
    config = folder.parent / f"{folder.name}.config"
    folder.mkdir(parents=True, exist_ok=True)
    for detector in (injection, pii, secrets):
        # Loaded once and inherited, so that a thousand children do not load it a thousand times.
        detector.scan("Call +351 210 000 000 or write to ines@mail.example.org: her locker code stays at home.")
    with Memory.open(":memory:", embedder=None, config_dir=folder.parent / "aside") as aside:
        for n in range(warm):
            aside.remember(f"Crate {n} was weighed at gate {n % 7}", tier="archival")
    waiting, starter = os.pipe()
    arrived, ready = os.pipe()
    children = []
    for worker in range(processes):
        said, tell = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(said)
            os.close(starter)
            try:
                told = json.dumps(write(place, config, worker, count, ready, waiting))
            except BaseException as fault:
                told = json.dumps(
                    {"acknowledged": [], "errors": [f"{type(fault).__name__}: {fault}"], "slowest": 0, "ended": 0}
                )
            with os.fdopen(tell, "w") as out:
                out.write(told)
            os._exit(0)
        os.close(tell)
        children.append((child, said))
    # Ended by the last of them that says so, or dies; and they go on also where this process does.
    os.close(ready)
    os.read(arrived, 1)
    begun = time.perf_counter()
    os.close(starter)
    found = []
    for child, said in children:
        with os.fdopen(said) as heard:
            found.append(json.loads(heard.read()))
        os.waitpid(child, 0)
    print(
        json.dumps(
            {
                "acknowledged": sorted(number for each in found for number in each["acknowledged"]),
                "errors": [error for each in found for error in each["errors"]],
                "slowest": max(each["slowest"] for each in found),
                "seconds": max(each["ended"] for each in found) - begun,
            }
        )
    )


if __name__ == "__main__":
    main()
