"""What each operation costs in a large store, in a second process while a first one writes.

    python -m benchmarks.scale --sizes 10000 100000
    python -m benchmarks.scale --sizes 300000 --keep FOLDER      # fills once, measures again later
    python -m benchmarks.scale --sizes 100000 --postgres         # with the role of docs/howto/postgresql.md
    python -m benchmarks.scale --sizes 300000 --postgres --source FOLDER    # moved from a file that --keep has left
    python -m benchmarks.scale --tenants 5000x20 50x2000

Before each call that is timed, the first process remembers one note. A bare commit of one row is timed in turns with
the calls. Figures are medians in milliseconds: wall time, and processor time of the process that asks.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from functools import cache, partial
from itertools import accumulate
from pathlib import Path
from typing import Any

from benchmarks.measure import growth, table
from benchmarks.remember import bare
from keepward import Actor, Memory

#: Calls that are timed of each operation, fewer where one takes more than a second.
RUNS = 9
BATCH = 2_000
#: How many memories have one tag.
_TAGS = 200
#: How many users there are.
_USERS = 100

Ask = Callable[[Memory, int, int], object]


@cache
def _words() -> tuple[list[str], list[float]]:
    """Return made-up words, and their cumulative odds."""
    syllables = [first + second for first in "bcdfghklmnprstvz" for second in "aeiou"]
    fixed = random.Random(3)
    words = ["".join(fixed.choices(syllables, k=fixed.randint(1, 4))) for _ in range(20_000)]
    return words, list(accumulate(1 / (rank + 10) for rank in range(len(words))))


def notes(count: int, start: int = 0) -> Iterator[dict[str, Any]]:
    """Yield notes of 8 to 24 made-up words by a Zipf law over 20,000, with a tag, a user and an importance."""
    words, odds = _words()
    for number in range(start, start + count):
        source = random.Random(number)
        text = " ".join(source.choices(words, cum_weights=odds, k=source.randint(8, 24))).capitalize()
        yield {
            "text": f"{text} {number}.",
            "tier": "archival",
            "tags": [f"tag{number % _TAGS}"],
            "importance": source.randint(1, 9) / 10,
            "scope": f"/users/user{number % _USERS}" if number % 2 else "/",
        }


def _query(number: int) -> str:
    (note,) = notes(1, number * 7)
    return " ".join(str(note["text"]).split()[1:6])


#: Calls in a process that has already asked once; they get the number of the call and the size of the store.
CALLS: dict[str, Ask] = {
    "remember": lambda memory, n, size: memory.remember(f"The second process keeps note {n} of {os.getpid()}"),
    "recall of 10": lambda memory, n, size: memory.recall(_query(n)),
    "context of 1,000 tokens": lambda memory, n, size: memory.context(_query(n), budget_tokens=1_000),
    "list, first 50": lambda memory, n, size: memory.list_memories(),
    "list, 50 near the end": lambda memory, n, size: memory.list_memories(offset=size - 100 - n),
    "list by importance": lambda memory, n, size: memory.list_memories(offset=0, sort="importance"),
    "list of one tag": lambda memory, n, size: memory.list_memories(tags=[f"tag{n}"], offset=0),
    "list of a past state": lambda memory, n, size: memory.list_memories(as_of=memory.log(limit=2)[1].commit.id),
    "facets": lambda memory, n, size: memory.facets(),
    "status": lambda memory, n, size: memory.status(),
    "activity": lambda memory, n, size: memory.activity(),
    "log": lambda memory, n, size: memory.log(),
    "doctor": lambda memory, n, size: memory.doctor(),
    "plan of one erasure": lambda memory, n, size: memory.plan_erase([_some(memory, n)]),
}
#: Calls once each, in a process of their own.
ONCE: dict[str, Ask] = {
    "open": lambda memory, n, size: memory.head,
    "first recall": lambda memory, n, size: memory.recall(_query(n)),
    "first list": lambda memory, n, size: memory.list_memories(),
    "verify": lambda memory, n, size: memory.verify(),
    "one erasure": lambda memory, n, size: _erase(memory, [_some(memory, n)]),
    "erasure of a user": lambda memory, n, size: _erase(memory.user(f"user{os.getpid() % (_USERS // 2) * 2 + 1}")),
    "consolidate": lambda memory, n, size: memory.run_jobs("consolidate", force=True),
}
_SLOW = ("verify", "one erasure", "erasure of a user", "consolidate")


def _some(memory: Memory, number: int) -> str:
    return str(memory.recall(_query(number), limit=1)[0].memory.id)


def _erase(memory: Memory, ids: Sequence[str] = ()) -> None:
    memory.erase(memory.plan_erase(ids).digest, ids)


def _megabytes(what: str, file: str = "status") -> float:
    """Return a figure of this process: ``VmHWM`` is its peak, ``Anonymous`` of ``smaps_rollup`` what no file backs."""
    for line in Path("/proc/self", file).read_text().splitlines():
        if line.startswith(f"{what}:"):
            return int(line.split()[1]) / 1_024
    return float("nan")


class _Stopwatch:
    """Starts when it is made."""

    def __init__(self) -> None:
        self._work, self._clock = time.process_time(), time.perf_counter()

    def read(self) -> dict[str, float]:
        """Return the milliseconds since the start: wall time, and processor time of this process."""
        clock, work = time.perf_counter() - self._clock, time.process_time() - self._work
        return {"wall": clock * 1_000, "cpu": work * 1_000}


def _timed(action: Callable[[], object]) -> dict[str, float]:
    watch = _Stopwatch()
    action()
    return watch.read()


def _open(store: str, config: str) -> Memory:
    given: dict[str, Any] = {"actor": Actor.operator("olga"), "embedder": "hashed", "maintenance": False}
    return Memory.open(store, config_dir=Path(config), **given)


def _child(store: str, config: str) -> None:
    """Time calls that are asked for on standard input, one a line: ``[name, number, size]``."""
    # The words of the queries are no part of what is timed.
    _words()
    with ExitStack() as stack:
        memory = None
        for line in sys.stdin:
            name, number, size = json.loads(line)
            before = _Stopwatch()
            memory = memory or stack.enter_context(_open(store, config))
            watch = before if name in ONCE else _Stopwatch()
            (ONCE | CALLS)[name](memory, number, size)
            found = watch.read()
            print(
                json.dumps(found | {"anonymous": _megabytes("Anonymous", "smaps_rollup"), "peak": _megabytes("VmHWM")}),
                flush=True,
            )


class _Asker:
    """A second process."""

    def __init__(self, store: str, config: Path) -> None:
        command = [sys.executable, "-m", "benchmarks.scale", "--child", store, str(config)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, name: str, number: int, size: int) -> dict[str, float]:
        """Return the milliseconds of one call, and the megabytes of the process after it."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps([name, number, size]) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"{name} failed: see the error above")
        found: dict[str, float] = json.loads(line)
        return found

    def close(self) -> None:
        """End it."""
        self._process.communicate()


def fill(store: str, config: Path, size: int) -> dict[str, float] | None:
    """Write notes until the store has ``size``; return the rate, or None if it had them already."""
    with _open(store, str(config)) as memory:
        held = sum(memory.status()["by_tier"].values())
        if held >= size:
            return None
        work, clock = time.process_time(), time.perf_counter()
        for start in range(held, size, 10 * BATCH):
            memory.remember_many(list(notes(min(10 * BATCH, size - start), start)), batch=BATCH)
            print(f"\rfilled {min(start + 10 * BATCH, size):,} of {size:,}", end="", file=sys.stderr, flush=True)
        print(file=sys.stderr)
        spent, took = time.process_time() - work, time.perf_counter() - clock
        return {"a second of processor time": (size - held) / spent, "a second": (size - held) / took}


def move(source: Path, store: str, size: int) -> dict[str, float]:
    """Move a store of ``size`` notes from a folder that ``--keep`` named; return the rate."""
    with _open(str(source / f"{size}.db"), str(source / f"config-{size}")) as memory:
        took = _timed(lambda: memory.move_store(store))
    return {"a second of processor time": size / took["cpu"] * 1_000, "a second": size / took["wall"] * 1_000}


def _shell(store: str, config: Path, number: int) -> dict[str, float]:
    command = [sys.executable, "-m", "keepward", "--db", store, "recall", _query(number)]
    environment = os.environ | {"KEEPWARD_HOME": str(config), "KEEPWARD_EMBEDDER": "hashed"}
    before, clock = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, check=True, capture_output=True, env=environment)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    work = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"wall": (time.perf_counter() - clock) * 1_000, "cpu": work * 1_000}


def measure(store: str, config: Path, size: int, commit: Callable[[], object]) -> dict[str, dict[str, float]]:
    """Return the medians of each operation at one size; ``commit`` makes a bare commit of one row."""
    found: dict[str, dict[str, float]] = {}
    with _open(store, str(config)) as writer:
        told = 0

        def write() -> None:
            nonlocal told
            told += 1
            writer.remember(f"The first process keeps note {told} of {os.getpid()} and {time.time_ns()}")

        def median(rows: list[dict[str, float]]) -> dict[str, float]:
            return {key: statistics.median(row[key] for row in rows) for key in rows[0]}

        def repeated(once: Callable[[int], dict[str, float]], runs: int) -> dict[str, float]:
            rows: list[dict[str, float]] = []
            while len(rows) < runs and sum(row["wall"] for row in rows) < 8_000:
                write()
                floor = _timed(commit)["wall"]
                rows.append(once(len(rows)) | {"floor": floor})
            return median(rows)

        def fresh(name: str, number: int) -> dict[str, float]:
            asker = _Asker(store, config)
            try:
                return asker.ask(name, number, size)
            finally:
                asker.close()

        # The first search of a store that was filled builds its index, and stores that.
        found["first recall of all"] = repeated(lambda n: fresh("first recall", n), 1)
        for name in ONCE:
            if name not in _SLOW:
                found[name] = repeated(lambda n, name=name: fresh(name, n), 5)
        found["keepward recall"] = repeated(lambda n: _shell(store, config, n), 5)
        asker = _Asker(store, config)
        asker.ask("recall of 10", 0, size)
        for name in CALLS:
            asker.ask(name, RUNS, size)
            found[name] = repeated(lambda n, name=name: asker.ask(name, n, size), RUNS)
        asker.close()
        for name in _SLOW:
            found[name] = repeated(lambda n, name=name: fresh(name, 100 + n), 1)
    return found


def _report(title: str, sizes: list[int], results: list[dict[str, dict[str, float]]]) -> None:
    rows: list[list[object]] = []
    for name in results[-1]:
        each = [result[name] for result in results]
        row: list[object] = [name]
        for one in each:
            row += [one["wall"], one["cpu"], one["wall"] / one["floor"]]
        row.append(growth(sizes, [one["cpu"] for one in each]) if len(sizes) > 1 else "")
        rows.append(row)
    header = ["call"] + [f"{size:,}: {what}" for size in sizes for what in ("ms", "CPU ms", "bare commits")]
    table(title, [*header, "exponent of CPU"], rows)
    rows = [
        [name, *(value for result in results for value in (result[name]["anonymous"], result[name]["peak"]))]
        for name in results[-1]
        if "anonymous" in results[-1][name] and name in ONCE
    ]
    header = ["process that calls"] + [f"{size:,}: {what}" for size in sizes for what in ("anonymous MB", "peak MB")]
    table("Memory of a process", header, rows)
    if len(sizes) > 2:
        _extrapolated(sizes, results)


def _extrapolated(sizes: list[int], results: list[dict[str, dict[str, float]]]) -> None:
    """Compare the largest size with a line through the smaller ones: a constant, and a part for each memory."""
    rows: list[list[object]] = []
    for name in results[-1]:
        values = [result[name]["cpu"] for result in results]
        slope, constant = statistics.linear_regression(sizes[:-1], values[:-1])
        expected = constant + slope * sizes[-1]
        rows.append([name, constant, slope * 1_000, expected, values[-1], values[-1] / expected])
    title = f"CPU ms at {sizes[-1]:,}, extrapolated from the smaller sizes"
    table(title, ["call", "constant", "for each 1,000 memories", "expected", "measured", "ratio"], rows)


class _Files:
    """Stores in files of a folder, and a file with a bare table beside them."""

    title = "SQLite"

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self._folder = folder
        self._floor = stack.enter_context(closing(bare(folder / f"floor-{os.getpid()}.db")))

    def address(self, name: str) -> str:
        """Return the address of a store."""
        return str(self._folder / f"{name}.db")

    def size(self, name: str) -> int:
        """Return the bytes that a store takes."""
        return sum(file.stat().st_size for file in self._folder.glob(f"{name}.db*") if file.is_file())

    def commit(self) -> object:
        """Commit one row."""
        return self._floor.execute("INSERT INTO row (body) VALUES (?)", ("x" * 100,))


class _Databases:
    """Stores in databases of a PostgreSQL server of its own, with the role that ``docs/howto/postgresql.md`` names."""

    title = "PostgreSQL"

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        import psycopg

        from benchmarks.database import Server

        self._server = Server(folder)
        stack.callback(self._server.close)
        self._floor = stack.enter_context(psycopg.connect(self._server.address(), autocommit=True))
        self._floor.execute("CREATE TABLE row (id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, body TEXT)")

    def address(self, name: str) -> str:
        """Return the address of a new database."""
        self._server.create_database(f"memory_{name}")
        return self._server.address(f"memory_{name}")

    def size(self, name: str) -> int:
        """Return the bytes that a database takes."""
        (found,) = self._floor.execute("SELECT pg_database_size(%s)", (f"memory_{name}",)).fetchone() or (0,)
        return int(found)

    def commit(self) -> object:
        """Commit one row."""
        return self._floor.execute("INSERT INTO row (body) VALUES (%s)", ("x" * 100,))


@contextmanager
def _place(keep: Path | None, *, postgres: bool) -> Iterator[tuple[_Files | _Databases, Path]]:
    """Open a place for stores, with a folder for their keys; files stay in the folder that is named."""
    with ExitStack() as stack:
        if keep is None or postgres:
            keep = Path(stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True)))
            keep.chmod(0o755)
        keep.mkdir(parents=True, exist_ok=True)
        yield (_Databases if postgres else _Files)(keep, stack), keep


def run(
    sizes: Sequence[int] = (1_000, 3_000, 30_000),
    keep: Path | None = None,
    *,
    postgres: bool = False,
    source: Path | None = None,
) -> None:
    """Print the tables of one large tenant."""
    results, rates = [], []
    with _place(keep, postgres=postgres) as (place, folder):
        for size in sizes:
            store, config = place.address(str(size)), (source or folder) / f"config-{size}"
            if rate := fill(store, config, size) if source is None else move(source, store, size):
                rates.append([size, *rate.values(), place.size(str(size)) / size])
            results.append(measure(store, config, size, place.commit))
    if rates:
        table("Bulk", ["memories", "a second of processor time", "a second", "bytes on disk each"], rates)
    _report(f"{place.title}: a second process while a first one writes", list(sizes), results)


def tenants(shapes: Sequence[str], keep: Path | None = None, *, postgres: bool = False) -> None:
    """Print what many tenants in one store cost; a shape is ``5000x20``: tenants and memories of each."""
    rows: list[list[object]] = []
    with _place(keep, postgres=postgres) as (place, folder):
        for shape in shapes:
            count, each = map(int, shape.split("x"))
            with _open(place.address(shape), str(folder / f"config-{shape}")) as memory:
                watch = _Stopwatch()
                for number in range(count):
                    owner = memory.at(tenant=f"tenant{number}")
                    owner.remember_many([{"text": note["text"]} for note in notes(each, number * each)], batch=BATCH)
                filled = watch.read()["cpu"] / (count * each)
                picked = random.Random(5).sample(range(count), min(50, count))

                def asked(action: Callable[[Memory, int], object], picked: list[int] = picked) -> float:
                    owners = [(memory.at(tenant=f"tenant{number}"), number) for number in picked]
                    return statistics.median(_timed(partial(action, *owner))["cpu"] for owner in owners)

                def recall(owner: Memory, number: int, each: int = each) -> object:
                    return owner.recall(_query(number * each))

                cold, warm = asked(recall), asked(recall)
                write = asked(lambda owner, number: owner.remember(f"Kept {number}"))
                whole = place.size(shape) / (count * each)
                rows.append([shape, filled, cold, warm, write, _megabytes("Anonymous", "smaps_rollup"), whole])
    header = ["tenants x memories", "bulk, CPU ms each", "first recall, CPU ms", "next recall", "remember"]
    title = f"{place.title}: many tenants in one process"
    table(title, [*header, "anonymous MB", "bytes on disk each"], rows)


def main() -> None:
    """Run what the arguments name."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000, 3_000, 30_000], help="memories of one tenant")
    parser.add_argument("--keep", type=Path, help="folder of the filled stores, used again by the next run")
    parser.add_argument("--tenants", nargs="+", help="for example 5000x20: tenants, and memories of each")
    parser.add_argument("--postgres", action="store_true", help="on a PostgreSQL server of its own")
    parser.add_argument("--source", type=Path, help="folder of filled files, which are moved instead of filling")
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        _child(*options.child)
    elif options.tenants:
        tenants(options.tenants, options.keep, postgres=options.postgres)
    else:
        run(options.sizes, options.keep, postgres=options.postgres, source=options.source)


if __name__ == "__main__":
    main()
