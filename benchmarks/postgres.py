"""Governed commits on PostgreSQL: one ``remember`` beside a bare one-row commit, and eight writers on eight tenants.

The servers are those of the tests, on this machine; every commit is on the disk before it is acknowledged. The role is
that of ``docs/howto/postgresql.md``. Then calls to a server that is away, and calls beside those of a superuser.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from benchmarks.database import DEBIAN, NEWEST, OLDEST, Server
from benchmarks.distance import calls_of, distant
from benchmarks.measure import p50, p95, table, times
from benchmarks.texts import notes
from keepward import Actor, Memory

RUNS = 200
WRITERS = 8
#: Memories of the store on which roles are compared.
FILLED = 10_000
#: Seconds that a message takes to a server that is away, and calls of each kind to it.
DISTANCE_S, AWAY_RUNS = 0.002, 20
#: Commits of each writer.
EACH = 60
_WORKER = """
import sys, time
from benchmarks.texts import notes
from keepward import Actor, Memory
url, config, tenant, count = sys.argv[1:3] + [sys.argv[3], int(sys.argv[4])]
given = {"actor": Actor.operator(), "embedder": None, "config_dir": config, "maintenance": False}
with Memory.open(url, tenant=tenant, **given) as mem:
    texts = [f"{tenant}: {each}" for each in notes(count + 20)]
    for text in texts[:20]:
        mem.remember(text)
    print("ready", flush=True)
    sys.stdin.readline()
    begun = time.perf_counter()
    done = sum(mem.remember(text).commit is not None for text in texts[20:])
    print(done, time.perf_counter() - begun, flush=True)
"""


def rate(url: str, config: Path, writers: int) -> tuple[float, int]:
    """Return commits each second of so many processes, each on a tenant of its own, and how many were lost."""
    command = [sys.executable, "-c", _WORKER, url, str(config)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    crowd = [subprocess.Popen([*command, f"w{writers}-{n}", str(EACH)], **pipes) for n in range(writers)]
    for each in crowd:
        each.stdout.readline()
    begun = time.perf_counter()
    for each in crowd:
        each.stdin.write("go\n")
        each.stdin.flush()
    done = [int(each.communicate()[0].split()[0]) for each in crowd]
    return sum(done) / (time.perf_counter() - begun), writers * EACH - sum(done)


def run() -> None:
    """Print the tables of each server that is here."""
    for name in (NEWEST, OLDEST) if DEBIAN.exists() else (NEWEST,):
        with (
            tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder,
            closing(Server(Path(folder), name)) as server,
        ):
            title = f"PostgreSQL {server.version}"
            commits(title, server, Path(folder) / "config")
            trips(title, server, Path(folder) / "trips")
            roles(title, server, Path(folder) / "roles")


def commits(title: str, server: Server, config: Path) -> None:
    """Print a governed commit beside a bare one, and the commits of many writers."""
    import psycopg

    server.create_database("commits")
    url = server.address("commits")
    given = {"actor": Actor.operator(), "embedder": None, "config_dir": config, "maintenance": False}
    with psycopg.connect(url, autocommit=True) as floor, Memory.open(url, **given) as mem:
        floor.execute("CREATE TABLE bare (n BIGINT PRIMARY KEY, body TEXT)")
        texts = list(notes(RUNS + 20))
        for text in texts[:20]:
            mem.remember(text)
        bare = times(lambda n: floor.execute("INSERT INTO bare VALUES (%s, %s)", (n, "x" * 100)), RUNS)
        kept = times(lambda n: mem.remember(texts[20 + n]), RUNS)
    rows = [
        ("a bare one-row commit", f"{p50(bare):.2f}", f"{p95(bare):.2f}", ""),
        ("a governed remember", f"{p50(kept):.2f}", f"{p95(kept):.2f}", f"{p50(kept) / p50(bare):.1f}"),
    ]
    table(f"{title}: one commit, ms", ("", "p50", "p95", "to bare"), rows)
    one, lost = rate(url, config, 1)
    many, gone = rate(url, config, WRITERS)
    rows = [("1", f"{one:.0f}", "", lost), (str(WRITERS), f"{many:.0f}", f"{many / one:.2f}", gone)]
    table(f"{title}: commits a second, each writer on its tenant", ("writers", "rate", "to one", "lost"), rows)


def trips(title: str, server: Server, config: Path) -> None:
    """Print how often each call waits for a server that is 2 ms away each way, and how long it takes."""
    server.create_database("trips")
    given = {"actor": Actor.operator(), "embedder": "hashed", "config_dir": config, "maintenance": False}
    with distant(server.address("trips"), delay_s=DISTANCE_S) as far, Memory.open(far.address, **given) as mem:
        rows = []
        for name, call in calls_of(mem).items():
            waits: list[int] = []

            def counted(_: int, call: Callable[[], object] = call, waits: list[int] = waits) -> None:
                far.clear()
                call()
                waits.append(far.trips)

            taken = times(counted, AWAY_RUNS)
            rows.append((name, min(waits), max(waits), f"{p50(taken):.1f}"))
    table(f"{title}: {1000 * DISTANCE_S:.0f} ms away", ("call", "round trips", "at most", "p50 ms"), rows)


def roles(title: str, server: Server, config: Path) -> None:
    """Print what row-level security costs: calls by the role of the page beside a superuser, in turn on one store."""
    given = {"actor": Actor.operator(), "embedder": None, "config_dir": config, "maintenance": False}
    texts = list(notes(FILLED + 2 * RUNS))
    with Memory.open(server.address(), **given) as role, Memory.open(server.admin(), **given) as superuser:
        role.remember_many(texts[2 * RUNS :])
        # What the server does by itself after a minute.
        server.execute("memory", "VACUUM ANALYZE")
        calls = {
            "remember": lambda mem, n: mem.remember(texts[n]),
            "recall": lambda mem, n: mem.recall(texts[n]),
            "first 50 of the list": lambda mem, _: mem.list_memories(limit=50),
        }
        rows = []
        for name, call in calls.items():
            taken: dict[Memory, list[float]] = {role: [], superuser: []}
            for n in range(RUNS):
                # Each is the first one in every second turn.
                for turn, mem in list(enumerate(taken))[:: 1 if n % 2 else -1]:
                    taken[mem] += times(lambda _, mem=mem, n=2 * n + turn, call=call: call(mem, n), 1)
            own, free = map(p50, taken.values())
            rows.append((name, f"{own:.2f}", f"{free:.2f}", f"{own / free:.2f}"))
    table(f"{title}: {FILLED} memories, p50 ms", ("", "role", "superuser", "ratio"), rows)


if __name__ == "__main__":
    import argparse

    parser = argparse.ArgumentParser(prog="python -m benchmarks.postgres", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--candidates", type=int, help="measure one tenant of so many memories in its place")
    parser.add_argument("--per-topic", type=int, default=50, help="memories of one cluster")
    options = parser.parse_args()
    if options.candidates:
        from benchmarks.candidates import run as candidates

        candidates(options.candidates, options.per_topic)
    else:
        run()
