"""What was acknowledged stays, whatever dies, runs full or comes in a crowd.

Nothing here depends on the speed of the machine: rates are printed with ``-s`` and not asserted.
"""

from __future__ import annotations

import json
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from evals.workload import acknowledged, survivors, writing
from outcomes import committed_record

from keepward import Actor, Memory, StoreUnavailable

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
CROWD = Path(__file__).with_name("crowd.py")


@pytest.mark.promise("T8", "Z19")
@pytest.mark.slow
@pytest.mark.parametrize("blobs", [(), ("--blobs",)], ids=["plain", "blobs"])
@pytest.mark.parametrize("kind", ["file", "database"])
def test_acknowledged_writes_survive_repeated_kills_of_the_writer(
    tmp_path: Path, blobs: tuple[str, ...], kind: str, request: pytest.FixtureRequest
) -> None:
    place = str(tmp_path / "kill") if kind == "file" else request.getfixturevalue("database")
    home = tmp_path / "home"
    chance, lines = random.Random(8), set[int]()
    for turn in range(20):
        with writing(place, home, turn * 10_000, *blobs) as child:
            lines |= acknowledged(child, chance.randrange(1, 60))
            child.kill()
            lines |= acknowledged(child)
        if turn % 5 == 4:
            found, faults = survivors(place, home)
            assert (lines - found, faults) == (set(), 0)
            # At most the one write that was under way is there without having been acknowledged.
            assert len(found - lines) <= turn + 1
    assert len(lines) > 100


def crowd(store: Path, processes: int, count: int, *place: str) -> dict[str, Any]:
    """Run a crowd; return what it said."""
    done = subprocess.run(
        [sys.executable, str(CROWD), str(store), str(processes), str(count), *(place and ("1", *place))],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    said: dict[str, Any] = json.loads(done.stdout)
    total = processes * count
    print(f"\n{processes} x {count}: {total / said['seconds']:.0f}/s, slowest {said['slowest']:.2f} s")
    return said


@pytest.mark.promise("T25")
@pytest.mark.parametrize(
    ("processes", "count"),
    [
        (16, 10),
        pytest.param(8, 200, marks=pytest.mark.slow),
        pytest.param(16, 500, marks=pytest.mark.slow),
        pytest.param(64, 50, marks=pytest.mark.slow),
    ],
)
def test_concurrent_writers_lose_no_commit(tmp_path: Path, processes: int, count: int) -> None:
    store = tmp_path / "crowd"
    said = crowd(store, processes, count)
    assert said["errors"] == []
    assert len(said["acknowledged"]) == processes * count
    # The bound that a writer is promised: longer than the patience of the store is an error.
    assert said["slowest"] < 30
    assert survivors(str(store), None) == (set(said["acknowledged"]), 0)
    with sqlite3.connect(store / "memory.db") as raw:
        seqs = [seq for (seq,) in raw.execute("SELECT seq FROM commits ORDER BY seq")]
        tips = raw.execute("SELECT count(*) FROM commits WHERE hash NOT IN (SELECT prev FROM commits)").fetchone()[0]
    raw.close()
    assert (seqs, tips) == (list(range(1, processes * count + 1)), 1)


@pytest.mark.slow
def test_concurrent_database_writers_lose_no_commit(database: str, tmp_path: Path) -> None:
    said = crowd(tmp_path / "crowd", 16, 20, database)
    assert (said["errors"], len(said["acknowledged"])) == ([], 320)
    assert survivors(database, tmp_path / "crowd.config") == (set(said["acknowledged"]), 0)


@pytest.fixture
def room(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Bounds the pages of every connection that is open, as a full disk does; 0 takes the bound away."""
    from keepward.storage import sqlite as connection

    real, opened = connection.connect, []

    def connect(*given: Any, **named: Any) -> sqlite3.Connection:
        opened.append(real(*given, **named))
        return opened[-1]

    def bound(pages: int) -> None:
        for each in opened:
            with suppress(sqlite3.ProgrammingError):  # It was closed.
                each.execute(f"PRAGMA max_page_count = {pages or 1_073_741_823}")

    monkeypatch.setattr(connection, "connect", connect)
    return bound


@pytest.mark.promise("T8")
def test_full_disk_is_reported_and_writes_resume_with_space(tmp_path: Path, room: Callable[[int], None]) -> None:
    with Memory.open(tmp_path / "m.db", actor=Actor.operator(), embedder=None, config_dir=tmp_path / "config") as mem:
        told = [committed_record(mem.remember(f"Order {n} was packed", tier="archival")).id for n in range(3)]
        with sqlite3.connect(tmp_path / "m.db") as raw:
            pages = raw.execute("PRAGMA page_count").fetchone()[0]
        raw.close()
        room(pages + 2)
        with pytest.raises(StoreUnavailable, match="full"):
            for n in range(500):
                told.append(
                    committed_record(mem.remember(f"Crate {n} " + "left the harbour " * 20, tier="archival")).id
                )
        assert {each.id for each in mem.list_memories(limit=None)} == set(told)
        assert mem.recall("order packed")
        assert mem.verify().ok
        room(0)
        told.append(committed_record(mem.remember("There is room again", tier="archival")).id)
        assert ({each.id for each in mem.list_memories(limit=None)}, mem.verify().ok) == (set(told), True)
    with Memory.open(tmp_path / "m.db", actor=Actor.operator(), embedder=None, config_dir=tmp_path / "config") as mem:
        assert {each.id for each in mem.list_memories(limit=None)} == set(told)


LIMITED = """
import json, resource, signal, sys
from pathlib import Path
from keepward import Memory, StoreUnavailable
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
folder = Path(sys.argv[1])
with Memory.open(folder / "m.db", embedder=None, config_dir=folder / "config") as mem:
    told, faults = [], []
    for n in range(4):
        told.append(mem.remember(f"Order {n} was packed", tier="archival").records[0].id)
    most = max(each.stat().st_size for each in folder.iterdir() if each.is_file()) + 40_000
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, resource.RLIM_INFINITY))
    for n in range(400):
        try:
            told.append(mem.remember(f"Crate {n} " + "left the harbour " * 30, tier="archival").records[0].id)
        except StoreUnavailable as fault:
            faults.append(str(fault))
            break
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    told.append(mem.remember("There is room again", tier="archival").records[0].id)
    found = {each.id for each in mem.list_memories(limit=None)}
    print(json.dumps({"lost": sorted(set(told) - found), "more": sorted(found - set(told)), "faults": faults,
                      "ok": mem.verify().ok}))
"""


@pytest.mark.promise("T8")
def test_disk_error_inside_a_write_is_reported_and_survived(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(tmp_path)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert (said["lost"], said["more"], said["ok"], len(said["faults"])) == ([], [], True, 1)
    assert "disk" in said["faults"][0]


@pytest.mark.promise("T8", "Z30")
def test_interrupted_checkpoint_leaves_a_store_that_opens(tmp_path: Path) -> None:
    given: dict[str, Any] = {"embedder": None, "config_dir": tmp_path / "config"}
    store = tmp_path / "m.db"
    with Memory.open(store, **given) as mem:
        # So few writes that SQLite has not made a checkpoint of its own, which it does at 1,000 pages of the log.
        told = [committed_record(mem.remember(f"Crate {n} left the harbour", tier="archival")).id for n in range(30)]
        body, log = store.read_bytes(), Path(f"{store}-wal").read_bytes()
    whole = store.read_bytes()
    assert len(whole) > len(body)
    store.write_bytes(whole[:4096] + body[4096:])
    Path(f"{store}-wal").write_bytes(log)
    with Memory.open(store, **given) as mem:
        assert ({each.id for each in mem.list_memories(limit=None)}, mem.verify().ok) == (set(told), True)


@pytest.mark.slow
def test_a_small_disk_that_runs_full_loses_nothing(tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(small)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("this user cannot make a small disk")
    try:
        given: dict[str, Any] = {"embedder": None, "config_dir": tmp_path / "config"}
        with Memory.open(small / "m.db", **given) as mem:
            told = []
            with pytest.raises(StoreUnavailable, match="disk"):
                for n in range(20_000):
                    told.append(
                        committed_record(mem.remember(f"Crate {n} " + "left the harbour " * 30, tier="archival")).id
                    )
            assert {each.id for each in mem.list_memories(limit=None)} == set(told)
        subprocess.run(["mount", "-o", "remount,size=8m", str(small)], check=True)
        with Memory.open(small / "m.db", **given) as mem:
            told.append(committed_record(mem.remember("There is room again", tier="archival")).id)
            assert ({each.id for each in mem.list_memories(limit=None)}, mem.verify().ok) == (set(told), True)
    finally:
        subprocess.run(["umount", str(small)], check=False)


def test_every_commit_is_on_the_disk_before_it_is_acknowledged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from keepward.storage import sqlite as connection

    real, modes = connection.connect, []

    def connect(*given: Any, **named: Any) -> sqlite3.Connection:
        made = real(*given, **named)
        modes.append(
            (made.execute("PRAGMA synchronous").fetchone()[0], made.execute("PRAGMA journal_mode").fetchone()[0])
        )
        return made

    monkeypatch.setattr(connection, "connect", connect)
    with Memory.open(tmp_path / "m.db", embedder=None, config_dir=tmp_path / "config") as mem:
        committed_record(mem.remember("The ferry is blue"))
    assert set(modes[1:]) == {(2, "wal")}


Ways = Callable[[Memory], object]
ACTS: dict[str, Ways] = {
    "approval": lambda mem: mem.approve(mem.pending()[0].id),
    "rejection": lambda mem: mem.reject(mem.pending()[0].id, reason="no"),
    "rollback": lambda mem: mem.rollback(mem.log()[0].commit.id),
    "draft": lambda mem: mem.merge([each.id for each in mem.list_memories(tiers=["archival"])], reason="tidy"),
    "token": lambda mem: mem.create_token("claude"),
    "rebuild": lambda mem: mem.rebuild(),
}
DIES = """
import os, signal, sys
sys.path.insert(0, {here!r})
from pathlib import Path
from keepward import Actor, Memory
from keepward.storage import sqlite as connection
from test_durability import ACTS
folder, what, step = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
mem = Memory.open(folder / "m.db", actor=Actor.operator("olga"), embedder=None, config_dir=folder / "config")
count = 0
def traced(statement):
    global count
    count += 1
    if count == step:
        os.kill(os.getpid(), signal.SIGKILL)
real = connection.SqliteDatabase._begin
def begin(self, raw, patience):
    raw.set_trace_callback(traced)
    real(self, raw, patience)
connection.SqliteDatabase._begin = begin
ACTS[what](mem)
print("done", count)
"""


@pytest.mark.promise("Z19", "T8")
@pytest.mark.parametrize(
    "what", [pytest.param(name, marks=() if name == "approval" else pytest.mark.slow) for name in sorted(ACTS)]
)
def test_crash_at_any_statement_is_atomic(tmp_path: Path, what: str) -> None:
    first = tmp_path / "first"
    first.mkdir()
    with Memory.open(first / "m.db", actor=Actor.operator("olga"), embedder=None, config_dir=first / "config") as owner:
        agent = owner.as_actor(Actor.agent())
        for text in ("The crane is red", "The crane is old"):
            committed_record(agent.remember(text, tier="archival"))
        agent.remember("Sail to Oslo", tier="core", key="mission")

    def state(folder: Path) -> tuple[Any, ...]:
        with Memory.open(
            folder / "m.db", actor=Actor.operator("olga"), embedder=None, config_dir=folder / "config"
        ) as mem:
            assert mem.verify().ok, mem.verify().faults
            return (
                mem.status()["head"].split(":")[0],
                [(each.text, each.status.value) for each in mem.list_memories(limit=None, include_ended=True)],
                [each.state for each in mem.pending(state="all")],
                len(mem.tokens()),
            )

    before, seen = state(first), set()
    step, last = 1, 60 if what == "approval" else 400
    while step < last:
        folder = tmp_path / f"{what}-{step}"
        shutil.copytree(first, folder)
        script = DIES.format(here=str(Path(__file__).parent))
        done = subprocess.run(
            [sys.executable, "-c", script, str(folder), what, str(step)],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        seen.add(state(folder) == before)
        shutil.rmtree(folder)
        if done.returncode == 0:
            break
        assert done.returncode == -signal.SIGKILL, done.stderr
        step += 17 if what == "approval" else 5
    assert done.returncode == 0
    assert seen == ({True} if what == "rebuild" else {True, False})
