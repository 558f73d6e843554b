"""What survives: a writer that is killed, a disk that fails at each of its calls, a power cut after each write."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from evals.security_figure import Figure, none_of
from evals.target import Target
from evals.workload import ROOT, acknowledged, survivors, writing

DISK = ROOT / "tests" / "acceptance"


def kill(target: Target, long: bool) -> list[Figure]:
    """Kill a writer at random moments, over and over, on one store."""
    chance, lines = random.Random(8), set[int]()
    turns = 100 if long else 8
    for turn in range(turns):
        with writing(target.address, target.home, turn * 100_000) as child:
            lines |= acknowledged(child, chance.randrange(1, 80))
            os.kill(child.pid, signal.SIGKILL)
            lines |= acknowledged(child)
    found, faults = survivors(target.address, target.home)
    return [
        none_of(f"acknowledged commits lost, {turns} x kill -9", len(lines - found), len(lines), "commits"),
        none_of("faults that verify finds afterwards", faults, turns, "kills"),
    ]


def _library(folder: Path) -> Path | None:
    """Build the failing disk; None where that cannot be done."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None or not sys.platform.startswith("linux"):
        return None
    built = folder / "bad_disk.so"
    command = [compiler, "-shared", "-fPIC", "-O1", "-o", str(built), str(DISK / "bad_disk.c"), "-ldl"]
    return built if subprocess.run(command, capture_output=True, check=False).returncode == 0 else None


def _played(library: Path, *arguments: str) -> list[dict[str, Any]]:
    done = subprocess.run(
        [sys.executable, str(DISK / "bad_disk.py"), *arguments],
        cwd=ROOT,
        env={**os.environ, "LD_PRELOAD": str(library)},
        capture_output=True,
        text=True,
        check=True,
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def _unmeasured(what: str) -> list[Figure]:
    return [Figure(what=what, value="it takes Linux and a C compiler", goal="0", ok=None)]


def failing(target: Target, long: bool) -> list[Figure]:
    """Fail each call of the disk in turn, with an error, with no room left, and after half of a write."""
    library = _library(target.store)
    if library is None:
        return _unmeasured("commits lost on a failing disk")
    figures = []
    for kind, word in (("error", "EIO"), ("full", "a full disk"), ("short", "half a write")):
        played: list[dict[str, Any]] = []
        for phase in ("open", "write", "close"):
            played += _played(library, str(target.store / "here"), phase, kind, "1", "1" if long else "7")[:-1]
        lost = sum(len(each["lost"]) for each in played)
        stuck = sum(1 for each in played if not each["ok"] or each["after"] != "committed")
        figures += [
            none_of(f"acknowledged commits lost, {word}", lost, len(played), "failed calls"),
            none_of(f"stores that do not verify or go on after {word}", stuck, len(played), "failed calls"),
        ]
    return figures


def power(target: Target, long: bool) -> list[Figure]:
    """Cut the power after every write: what was not flushed is gone."""
    library = _library(target.store)
    if library is None:
        return _unmeasured("commits lost in a power cut")
    count = 200 if long else 20
    (told,) = _played(library, str(target.store / "here"), "power-cut", "FULL", str(count))
    (loose,) = _played(library, str(target.store / "here"), "power-cut", "NORMAL", "20")
    return [
        none_of("acknowledged commits lost, power cut", told["lost"], count, "cuts"),
        Figure(
            what="the same without a flush each commit, so that the cut is one",
            value=f"{loose['lost']} lost",
            goal="> 0",
            ok=loose["lost"] > 0,
        ),
    ]
