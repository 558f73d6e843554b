"""One story on a disk that fails at one call, for every call there is: what was acknowledged, told and found after it.

    LD_PRELOAD=bad_disk.so python bad_disk.py FOLDER PHASE KIND [FIRST [STEP]]
    LD_PRELOAD=bad_disk.so python bad_disk.py FOLDER power-cut FULL|NORMAL COUNT

A phase is ``open`` (a new store), ``write`` (three commits) or ``close`` (closing, which moves the log into the file).
Prints one JSON object a failed call, and last how many calls the phase makes. ``power-cut`` writes so many times, and
after each looks at what would be there had the power been cut: the bytes that were flushed, and no others.
"""

from __future__ import annotations

import ctypes
import json
import shutil
import sqlite3
import sys
from pathlib import Path
from typing import Any

from keepward import Actor, Memory
from keepward.errors import KeepwardError

KINDS = {"error": 1, "full": 2, "short": 3}
DISK = ctypes.CDLL(None)
DISK.bad_disk_watch.argtypes = [ctypes.c_char_p]


def opened(folder: Path) -> Memory:
    return Memory.open(
        folder / "store" / "m.db", actor=Actor.operator("olga"), embedder=None, config_dir=folder / "config"
    )


class Story:
    """What happens on the way, and what came of it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.told: list[str] = []
        self.faults: list[str] = []
        self.memory: Memory | None = None

    def try_to(self, action: Any) -> Any:
        """Do something; note an error of ours. Any other one ends the story."""
        try:
            return action()
        except KeepwardError as fault:
            self.faults.append(f"{type(fault).__name__}: {fault}")
            return None

    def open(self) -> None:
        self.memory = self.try_to(lambda: opened(self.folder)) or self.memory

    def say(self, text: str) -> None:
        assert self.memory is not None
        outcome = self.try_to(lambda: self.memory.remember(f"{text} " + "left the harbour " * 12, tier="archival"))
        if outcome is not None:
            self.told.append(outcome.records[0].id)

    def write(self) -> None:
        for n in range(3):
            self.say(f"Crate {n}")

    def close(self) -> None:
        assert self.memory is not None
        self.try_to(self.memory.close)


def play(folder: Path, phase: str, kind: int, nth: int) -> dict[str, Any]:
    """Play the story with one call of one phase failing; 0 for none."""
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "store").mkdir(parents=True)
    story = Story(folder)
    DISK.bad_disk_arm(0, 0)
    for step in ("open", "write", "close"):
        if step == phase:
            DISK.bad_disk_arm(kind, nth)
        getattr(story, step)()
        if step == phase:
            calls, failed = DISK.bad_disk_calls(), DISK.bad_disk_failed()
            DISK.bad_disk_arm(0, 0)
            if step == "open" and story.memory is None:
                story.open()  # Once more, on a disk that works.
            if step == "write":
                story.say("There is room again")
    with opened(folder) as again:
        found = {each.id for each in again.list_memories(limit=None)}
        ok = again.verify().ok
        after = again.remember("The next day goes on as ever", tier="archival").outcome
    return {
        "nth": nth,
        "calls": calls,
        "failed": failed,
        "lost": sorted(set(story.told) - found),
        "more": len(found - set(story.told)),
        "faults": story.faults,
        "told": len(story.told),
        "ok": ok,
        "after": after,
    }


def power_cut(folder: Path, synchronous: str, count: int) -> dict[str, Any]:
    """Cut the power after each of some writes; return how many acknowledged ones would be lost, and faults."""
    from keepward.storage import sqlite as connection

    real = connection.connect

    def connect(*given: Any, **named: Any) -> sqlite3.Connection:
        made = real(*given, **named)
        made.execute(f"PRAGMA synchronous={synchronous}")
        return made

    connection.connect = connect
    shutil.rmtree(folder, ignore_errors=True)
    left = folder / "left"
    (folder / "store").mkdir(parents=True)
    # What is renamed or linked is not followed: the store is there, and on the disk, when it begins.
    opened(folder).close()
    shutil.copytree(folder / "store", left)
    DISK.bad_disk_shadow(str(left).encode())
    lost, faults, told = 0, 0, set()
    with opened(folder) as memory:
        for n in range(count):
            outcome = memory.remember(f"Crate {n} " + "left the harbour " * 12, tier="archival")
            told.add(outcome.records[0].id)
            cut = folder / "cut"
            shutil.copytree(left, cut / "store")
            shutil.copytree(folder / "config", cut / "config")
            try:
                with opened(cut) as after:
                    lost += len(told - {each.id for each in after.list_memories(limit=None)})
                    faults += not after.verify().ok
            except KeepwardError:
                faults += 1
                lost += len(told)
            shutil.rmtree(cut)
    return {"writes": count, "lost": lost, "faults": faults}


def main() -> None:
    """Fail every call of a phase in turn, or cut the power."""
    if sys.argv[2] == "power-cut":
        folder = Path(sys.argv[1])
        DISK.bad_disk_watch(str(folder / "store").encode())
        print(json.dumps(power_cut(folder, sys.argv[3], int(sys.argv[4]))))
        return
    folder, phase, kind = Path(sys.argv[1]), sys.argv[2], KINDS[sys.argv[3]]
    first, step = (int(each) for each in (*sys.argv[4:], "1", "1")[:2]) if len(sys.argv) > 4 else (1, 1)
    DISK.bad_disk_watch(str(folder / "store").encode())
    calls = play(folder, phase, kind, 0)["calls"]
    for nth in range(first, calls + 1, step):
        print(json.dumps(play(folder, phase, kind, nth)), flush=True)
    print(json.dumps({"calls": calls}))


if __name__ == "__main__":
    main()
