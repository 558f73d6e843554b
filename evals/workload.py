"""Commit governed writes and acknowledge each durable one, until killed or done.

``python -m evals.workload STORE --start N [--count M] [--blobs] [--home HOME]`` keeps a store in the folder or database
STORE and prints a flushed line ``ACK <id>`` after each write that is durable. Ids are whole numbers from N on and never
repeat within a run. ``evals.survivors`` tells afterwards which of them are there.
"""

from __future__ import annotations

import argparse
import itertools
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from keepward import Committed, KeepwardError, Memory

#: Where the number of a write stands, so that survivors can be named.
ALIAS = "workload:"
ROOT = Path(__file__).parents[1]


def open_store(place: str, home: Path | None) -> Memory:
    """Open the store of a folder or database; keys and noted heads are in ``home``, by default beside the folder.

    A file that ends in ``.db`` is a store itself.
    """
    if "://" in place or place.endswith(".db"):
        return Memory.open(place, embedder=None, config_dir=home)
    folder = Path(place)
    folder.mkdir(parents=True, exist_ok=True)
    home = home or folder.with_name(f"{folder.name}.config")
    return Memory.open(folder / "memory.db", embedder=None, config_dir=home)


def add_store(parser: argparse.ArgumentParser) -> None:
    """Let a program take a store."""
    parser.add_argument("store", metavar="STORE", help="a folder, or postgresql://…")
    parser.add_argument("--home", type=Path, help="the folder of keys")


def _program(name: str, place: str, home: Path | None, *more: str) -> list[str]:
    named = [] if home is None else ["--home", str(home)]
    return [sys.executable, "-m", f"evals.{name}", place, *named, *more]


@contextmanager
def writing(place: str, home: Path | None, start: int, *more: str) -> Iterator[subprocess.Popen[str]]:
    """Run this program as a process of its own, which is killed at the end."""
    child = subprocess.Popen(
        _program("workload", place, home, "--start", str(start), *more),
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        yield child
    finally:
        child.kill()
        assert child.stdout is not None
        child.stdout.close()
        child.wait()


def acknowledged(child: subprocess.Popen[str], many: int | None = None) -> set[int]:
    """Read so many acknowledged numbers, or all that are left; the last line may have been cut by a kill."""
    assert child.stdout is not None
    return {int(line.split()[1]) for line in itertools.islice(child.stdout, many) if line.endswith("\n")}


def survivors(place: str, home: Path | None) -> tuple[set[int], int]:
    """Return the numbers that are there, and how many faults there are."""
    program = _program("survivors", place, home)
    done = subprocess.run(program, cwd=ROOT, capture_output=True, text=True, check=False)
    return set(map(int, done.stdout.split())), len(done.stderr.splitlines())


def main(arguments: list[str] | None = None) -> int:
    """Run the program; return its exit code."""
    parser = argparse.ArgumentParser(prog="evals.workload", description=__doc__)
    add_store(parser)
    parser.add_argument("--start", type=int, required=True, metavar="N")
    parser.add_argument("--count", type=int, metavar="M", help="stop after M writes; without it, never")
    parser.add_argument("--blobs", action="store_true", help="give each memory structured content too")
    asked = parser.parse_args(arguments)
    numbers = itertools.count(asked.start)
    if asked.count is not None:
        numbers = itertools.islice(numbers, asked.count)  # type: ignore[assignment]
    try:
        with open_store(asked.store, asked.home) as mem:
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
