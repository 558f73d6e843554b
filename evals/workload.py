"""Commit governed writes and acknowledge each durable one, until killed or done.

``python -m evals.workload DIR --start N [--count M] [--blobs]`` keeps a store in DIR and prints a flushed line
``ACK <id>`` after each write that is durable. Ids are whole numbers from N on and never repeat within a run.
``evals.survivors`` tells afterwards which of them are there.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from pathlib import Path

from keepward import Committed, KeepwardError, Memory

#: Where the number of a write stands, so that survivors can be named.
ALIAS = "workload:"


def open_store(folder: Path) -> Memory:
    """Open the store of a folder; its key and noted heads are kept in a folder beside it."""
    folder.mkdir(parents=True, exist_ok=True)
    return Memory.open(folder / "memory.db", embedder=None, config_dir=folder.parent / f"{folder.name}.config")


def main(arguments: list[str] | None = None) -> int:
    """Run the program; return its exit code."""
    parser = argparse.ArgumentParser(prog="evals.workload", description=__doc__)
    parser.add_argument("folder", type=Path, metavar="DIR")
    parser.add_argument("--start", type=int, required=True, metavar="N")
    parser.add_argument("--count", type=int, metavar="M", help="stop after M writes; without it, never")
    parser.add_argument("--blobs", action="store_true", help="give each memory structured content too")
    asked = parser.parse_args(arguments)
    numbers = itertools.count(asked.start)
    if asked.count is not None:
        numbers = itertools.islice(numbers, asked.count)  # type: ignore[assignment]
    try:
        with open_store(asked.folder) as mem:
            for number in numbers:
                outcome = mem.remember(
                    f"Order {number} was packed at station {number % 17} and left on truck {number % 29}",
                    tier="archival",
                    aliases=[f"{ALIAS}{number}"],
                    metadata={"pallets": [number % 7] * 64, "number": number} if asked.blobs else None,
                )
                if not isinstance(outcome, Committed):
                    print(f"write {number} was {outcome.outcome}", file=sys.stderr)
                    return 1
                print(f"ACK {number}", flush=True)
    except KeepwardError as fault:
        print(f"{fault.code}: {fault}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
