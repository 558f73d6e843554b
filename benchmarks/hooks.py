"""How long a client waits for its hook: through the socket of a running server, and without one."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.measure import table

#: Seconds that a prompt may wait, the interpreter and a running server included.
GOAL = 0.15
MEMORIES, RUNS = 1_000, 41
_HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}},
}


def run() -> None:
    """Print the table; each row beside an interpreter that does nothing, in turns."""
    with tempfile.TemporaryDirectory() as folder:
        environ = _prepared(Path(folder))
        hook = ["-m", "keepward", "hook", "prompt", "--db", environ["KEEPWARD_DB"]]
        cold = _timed({"python -c pass": ["-c", "pass"], "prompt, no server": hook}, environ, RUNS // 4)
        with _server(environ):
            # What a plugin calls names no store: that takes the settings.
            bare = ["-m", "keepward", "hook", "prompt", "--quiet"]
            warm = _timed(
                {"python -c pass": ["-c", "pass"], "prompt, server": hook, "the same, found by settings": bare},
                environ,
                RUNS,
            )
    table(
        f"Hooks at {MEMORIES:,} memories (goal at a prompt, with a server: {GOAL} s)",
        ["command", "cpu p50 s", "cpu p95 s", "wall p50 s", "wall p95 s"],
        [*warm, *cold],
    )


def _prepared(folder: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("KEEPWARD_")}
    named = {
        "HOME": folder,
        "KEEPWARD_HOME": folder / "home",
        "XDG_RUNTIME_DIR": folder,
        "KEEPWARD_DB": folder / "m.db",
    }
    environ = {**kept, **{name: str(value) for name, value in named.items()}}
    notes = "\n".join(
        json.dumps({"role": "user", "content": f"Note {n}: the oven of shop {n} bakes at {180 + n % 60} degrees"})
        for n in range(MEMORIES)
    )
    _keepward(["init"], environ)
    (folder / "notes.jsonl").write_text(notes)
    _keepward(["import", str(folder / "notes.jsonl")], environ)
    return environ


def _keepward(arguments: list[str], environ: dict[str, str]) -> None:
    subprocess.run([sys.executable, "-m", "keepward", *arguments], env=environ, check=True, capture_output=True)


@contextmanager
def _server(environ: dict[str, str]) -> Iterator[None]:
    command = [sys.executable, "-m", "keepward", "mcp", "--name", "claude", "--user", "me", "--project", "."]
    with subprocess.Popen(
        command, env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as server:
        assert server.stdin
        assert server.stdout
        server.stdin.write(json.dumps(_HELLO).encode() + b"\n")
        server.stdin.flush()
        server.stdout.readline()
        yield
        server.stdin.close()


def _timed(commands: dict[str, list[str]], environ: dict[str, str], runs: int) -> list[list[object]]:
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in commands}
    for number in range(runs):
        asked = json.dumps({"session_id": f"s{number}", "prompt": f"How hot is the oven of shop {number}?"})
        for name, arguments in commands.items():
            before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
            subprocess.run(
                [sys.executable, *arguments], env=environ, input=asked.encode(), check=True, capture_output=True
            )
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            taken[name].append((cpu, time.perf_counter() - start))
    return [
        [name, *_quantiles([c for c, _ in each]), *_quantiles([w for _, w in each])] for name, each in taken.items()
    ]


def _quantiles(values: list[float]) -> tuple[float, float]:
    values = sorted(values)
    return values[len(values) // 2], values[int(len(values) * 0.95)]
