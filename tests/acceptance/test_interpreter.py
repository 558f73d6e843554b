"""A library leaves the interpreter of its host alone."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from keepward.jobs.pacing import PAUSE_S, WORK_S, Pace

pytestmark = pytest.mark.slow

#: Prints what the process has, then uses the library in every way that a host would, and prints it again.
PROGRAM = """
import asyncio, decimal, gc, json, locale, logging, os, resource, signal, socket, sys, threading, time, warnings

# Its import adds filters of warnings.
import numpy

def state():
    umask = os.umask(0)
    os.umask(umask)
    return {
        "switch interval": sys.getswitchinterval(),
        "recursion limit": sys.getrecursionlimit(),
        "digits of an int": sys.get_int_max_str_digits(),
        "hooks": [str(each) for each in (sys.excepthook, sys.unraisablehook, threading.excepthook, sys.displayhook)],
        "tracing": [str(sys.gettrace()), str(sys.getprofile()), threading.stack_size()],
        "imports": [sys.path, [str(each) for each in sys.meta_path], sys.dont_write_bytecode],
        "streams": [str(each) for each in (sys.stdin, sys.stdout, sys.stderr)],
        "signals": [str(signal.getsignal(each)) for each in sorted(signal.valid_signals())],
        "warnings": [str(each) for each in warnings.filters] + [str(warnings.showwarning)],
        "locale": locale.setlocale(locale.LC_ALL, None),
        "root logger": [str(logging.root), [str(each) for each in logging.root.handlers], logging.root.manager.disable],
        "loggers": [str(logging.getLogger(name)) for name in ("keepward", "uvicorn", "asyncio", "psycopg")],
        "collector": [gc.isenabled(), gc.get_threshold(), gc.get_freeze_count(), gc.get_debug()],
        "umask": umask,
        "folder": os.getcwd(),
        "environment": dict(os.environ),
        "priority": os.nice(0),
        "limits": [resource.getrlimit(each) for each in (resource.RLIMIT_CPU, resource.RLIMIT_AS, resource.RLIMIT_NOFILE)],
        "timeout": socket.getdefaulttimeout(),
        "decimals": str(decimal.getcontext()),
        "event loops": str(type(asyncio.get_event_loop_policy())),
    }

before = state()
from pathlib import Path

import keepward
from keepward import Actor, AsyncMemory, Client, Memory
from keepward.embedding.minilm import disable_telemetry
from keepward.http.server import create_app
from keepward.jobs import maintenance
from keepward.jobs.registry import JOBS

import keepward.cli.main, keepward.hooks.event_handler, keepward.mcp.server, keepward.interchange.imports

folder = Path(sys.argv[1])
maintenance.IDLE_BEFORE_START_S = 0.0
run_pending, during = maintenance.run_pending, []

def watched(engine, **given):
    during.append(state())
    run_pending(engine, **given)

maintenance.run_pending = watched
disable_telemetry()
owner = Memory.open(folder / "m.db", actor=Actor.operator("ana"), embedder="hashed", config_dir=folder, maintenance=True)
other = Memory.open(folder / "n.db", actor=Actor.operator("ana"), embedder="hashed", config_dir=folder, maintenance=True)
for memory in (owner, other):
    memory.remember_many([{"text": f"The number of house {number} is {number}"} for number in range(20)])
    memory.recall("house 3")
    memory.context("house 3")
    for name in [job.name for job in JOBS]:
        memory.run_job(name, force=True)
while len(during) < 2:
    time.sleep(0.01)
create_app(owner)
owner.verify()
owner.backup(folder / "copy.db")
# Closed in the order in which they were opened.
owner.close()
other.close()
changed = [
    [name, before[name], now[name]] for now in (*during, state()) for name in before if now[name] != before[name]
]
print(json.dumps(changed))
"""


def test_a_program_finds_its_interpreter_as_it_was(tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path)],
        capture_output=True,
        check=False,
        text=True,
        timeout=120,
        cwd=tmp_path,
    )
    assert (run.returncode, run.stderr) == (0, "")
    assert json.loads(run.stdout) == []


def test_a_job_pauses_after_each_millisecond_of_work() -> None:
    clock, slept = iter(range(1_000)), []
    pace = Pace(now=lambda: next(clock) * WORK_S / 3, sleep=slept.append)
    for _ in range(12):
        pace()
    assert slept == [PAUSE_S] * 4
