"""What the server costs: recall and remember over HTTP, beside the same verbs in this process.

`keepward serve` runs in a process of its own and the calls come from this one, over kept connections, so the two share
the machine as an agent and its memory do. Beside each stands the same verb called here on the same kind of store, in
turns with it: the rest is HTTP, reading, rights, JSON and two processes that wait for each other. CPU seconds are the
server's own, which a busy machine disturbs least.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2

from benchmarks.measure import p50, table, times
from benchmarks.texts import notes
from keepward import Actor, Memory

HELD = 1_000
CONNECTIONS = (1, 8, 32)
#: Calls of one line of the table.
RECALLS, REMEMBERS = 1_200, 400
QUERY = "who moved the oven schedule"
#: Clock ticks in a second, for the CPU time of another process.
_TICKS = os.sysconf("SC_CLK_TCK")


def furnish(folder: Path) -> Memory:
    """Open a store in a folder that holds notes, as its owner."""
    memory = Memory.open(
        folder / "memory.db", actor=Actor.operator(), embedder="none", config_dir=folder / "home"
    )  # fmt: skip
    memory.remember_many([{"text": text, "tier": "archival"} for text in notes(HELD)], batch=500)
    memory.recall(QUERY)
    return memory


@contextmanager
def served(folder: Path) -> Iterator[tuple[str, str, int]]:
    """Serve the store in a folder; give address, token and process."""
    (folder / "keepward.toml").write_text("[server]\nwrites_per_minute = 0\n")
    command = [sys.executable, "-m", "keepward", "serve", "--port", "0", "--json", "--no-mcp", "--quiet"]
    environment = os.environ | {
        "KEEPWARD_HOME": str(folder / "home"),
        "KEEPWARD_EMBEDDER": "none",
        "KEEPWARD_DB": "memory.db",
    }
    process = subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        told = json.loads(process.stdout.readline())
        yield told["url"], Path(told["token_file"]).read_text("ascii").strip(), process.pid
    finally:
        process.terminate()
        process.wait(30)


def cpu(pid: int) -> float:
    """Return the CPU seconds that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


async def load(client: httpx2.AsyncClient, width: int, calls: list[tuple[str, str, bytes | None]]) -> list[float]:
    """Make calls over so many connections at once; return the seconds of each."""
    waiting, taken = iter(calls), []

    async def one() -> None:
        for method, path, body in waiting:
            begun = time.perf_counter()
            answer = await client.request(method, path, content=body)
            taken.append(time.perf_counter() - begun)
            assert answer.is_success, answer.text

    await asyncio.gather(*(one() for _ in range(width)))
    return taken


def percentile(taken: list[float], share: float) -> float:
    """Return a percentile, in milliseconds."""
    return sorted(taken)[min(len(taken) - 1, int(share * len(taken)))] * 1_000


def run() -> None:
    """Print the tables."""
    fresh = iter(notes(len(CONNECTIONS) * REMEMBERS + 2 * REMEMBERS + HELD + 400, seed=11)[HELD:])
    with tempfile.TemporaryDirectory() as name:
        here, there = Path(name) / "here", Path(name) / "there"
        here.mkdir()
        there.mkdir()
        furnish(there).close()
        with furnish(here) as memory, served(there) as (url, token, pid):
            owner = memory.with_token(memory.owner_token().read_text("ascii").strip())
            rows = asyncio.run(_compared(owner, url, token, pid, fresh))
    table(
        f"Served: {HELD} memories, no embedder; the client shares the machine's {os.cpu_count()} cores",
        [
            "call",
            "connections",
            "calls/s",
            "p50 ms",
            "p99 ms",
            "server CPU ms a call",
            "in process p50 ms",
            "in process CPU ms",
            "CPU outside the engine",
        ],
        rows,
    )


async def _compared(memory: Memory, url: str, token: str, pid: int, fresh: Iterator[str]) -> list[tuple[object, ...]]:
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    limits = httpx2.Limits(max_connections=64, max_keepalive_connections=64)
    rows: list[tuple[object, ...]] = []
    async with httpx2.AsyncClient(base_url=url, headers=headers, limits=limits, timeout=60) as client:
        for word, verb, count, calls in (
            ("recall", lambda _: memory.recall(QUERY), RECALLS, lambda n: [_search()] * n),
            (
                "remember",
                lambda _: memory.remember(next(fresh), tier="archival"),
                REMEMBERS,
                lambda n: _writes(fresh, n),
            ),
            ("health", None, RECALLS, lambda n: [("GET", "/health", None)] * n),
        ):
            await load(client, 8, calls(100))
            for width in CONNECTIONS:
                own, own_cpu = _in_process(verb, count // 4)
                chosen, used, begun = calls(count), cpu(pid), time.perf_counter()
                taken = await load(client, width, chosen)
                seconds, each = time.perf_counter() - begun, (cpu(pid) - used) / count * 1_000
                outside = f"{max(0.0, 1 - own_cpu / each):.0%}" if verb else "all"
                rows.append(
                    (
                        word,
                        width,
                        f"{count / seconds:.0f}",
                        percentile(taken, 0.5),
                        percentile(taken, 0.99),
                        each,
                        own,
                        own_cpu,
                        outside,
                    )
                )
    return rows


def _in_process(verb: Callable[[int], object] | None, count: int) -> tuple[float, float]:
    """Return the median milliseconds and the mean CPU milliseconds of a verb called here."""
    if verb is None:
        return 0.0, 0.0
    used = time.process_time()
    taken = times(verb, count)
    return p50(taken), (time.process_time() - used) / count * 1_000


def _search() -> tuple[str, str, bytes | None]:
    return "GET", f"/memory/search?query={QUERY.replace(' ', '+')}", None


def _writes(fresh: Iterator[str], count: int) -> list[tuple[str, str, bytes | None]]:
    return [
        ("POST", "/memory/items", json.dumps({"text": next(fresh), "tier": "archival"}).encode()) for _ in range(count)
    ]
