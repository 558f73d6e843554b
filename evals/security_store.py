"""The store: how fast it opens after a crash and verifies, and whether a change of its bytes goes unnoticed."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from evals.security_figure import Figure, all_of, kept, none_of, recalled
from keepward import Actor, KeepwardError, Memory

OWNER = Actor.operator("olga")


def _opened(folder: Path) -> Memory:
    return Memory.open(folder / "m.db", actor=OWNER, embedder=None, config_dir=folder / "config")


def _crashed(folder: Path, commits: int) -> None:
    """Leave a store of so many commits as a killed writer leaves it: the newest of them in the log alone."""
    from tests.support.stages import Maker

    from keepward.adapters.home import FileAnchor
    from keepward.store.store import open_store

    child = os.fork()
    if child == 0:
        make = Maker()
        store = open_store(folder / "m.db", anchor=FileAnchor(folder / "config"))
        done = 0
        while done < commits:
            # Journal and records as they are; of what recall needs, that each has nothing.
            many = 1 if commits - done <= 100 else min(1_000, commits - done - 100)
            with store.write() as writer:
                for n in range(done, done + many):
                    stage = make.stage(make.record(f"Order {n} was packed at station {n % 17}"))
                    writer.append("default", stage)
                    writer.put_receipt(replace(make.receipt("default", stage.details.receipt)))
            done += many
        os._exit(0)
    os.waitpid(child, 0)


def recovery(folder: Path, long: bool) -> list[Figure]:
    """Open a store that crashed, until its first answer."""
    commits = 100_000 if long else 5_000
    _crashed(folder, commits)
    begun = time.perf_counter()
    with _opened(folder) as memory:
        head = memory.log(limit=1)[0].commit.seq
        taken = time.perf_counter() - begun
    return [
        all_of("commits there after a crash", head, commits, "commits"),
        Figure(
            what=f"opening after a crash at {commits} commits",
            value=f"{taken:.2f} s",
            goal="1 s",
            ok=taken <= 1,
            speed=True,
        ),
    ]


def verify(folder: Path, long: bool) -> list[Figure]:
    """Verify everything of a store."""
    commits = 100_000 if long else 5_000
    _crashed(folder, commits)
    with _opened(folder) as memory:
        begun = time.process_time()
        found = memory.verify()
        taken = time.process_time() - begun
    rate = found.checked["events"] / taken
    return [
        none_of("faults in a sound store", len(found.faults), found.checked["events"], "events"),
        Figure(what="verify", value=f"{rate:.0f} events/s of CPU", goal="50,000", ok=rate >= 50_000, speed=True),
    ]


def _filled(folder: Path) -> None:
    """Make a store with something in every table."""
    with Memory.open(folder / "m.db", actor=OWNER, embedder="hashed", config_dir=folder / "config") as owner:
        agent = owner.acting_as(Actor.agent("scout"))
        first = kept(owner.remember("The crane is red", tier="archival", aliases=["crate:1"], tags=["quay"]))
        owner.revise(first.id, "The crane is green", reason="painted")
        owner.remember("The ferry leaves at six", tier="core", key="mission")
        owner.merge([first.id, kept(agent.remember("The quay is closed", tier="archival")).id], reason="tidy")
        agent.remember("Sail to Oslo", tier="core", key="mission")
        agent.remember("Sail to Bergen", tier="core", key="workspace_state")
        owner.reject(owner.pending()[-1].id, reason="no")
        for query in ("crane", "ferry"):
            shown, receipt = recalled(owner, query)
            owner.feedback(receipt, used=[shown[0].memory.id])
            owner.context(query)
        for name in ("claude", "vega"):
            owner.revoke_token(owner.create_token(name).token.id)
        gone = kept(owner.remember("Ana's locker is number 44", tier="archival"))
        owner.erase(owner.plan_erase([gone.id]).digest, [gone.id])
        owner.learn_importance()


def _answers(folder: Path) -> dict[str, Any]:
    """Return everything a store answers, one entry a memory, commit and proposal; what is refused is left out."""
    told: dict[str, Any] = {}
    try:
        with _opened(folder) as memory:
            asks = (
                lambda: {f"found {each.id}": each for each in memory.find(limit=None, include_ended=True)},
                lambda: {f"recalled {hit.memory.id}": hit.memory for hit in memory.recall("crane ferry quay")},
                lambda: {f"commit {view.commit.seq}": view for view in memory.log(limit=99)},
                lambda: {f"waits {each.id}": each for each in memory.pending(state=None)},
                lambda: {f"token {each.id}": each for each in memory.tokens()},
            )
            for ask in asks:
                try:
                    told.update(ask())
                except KeepwardError:
                    continue
    except KeepwardError:
        pass
    return told


def flips(folder: Path, long: bool) -> list[Figure]:
    """Flip one bit of the file at a time: whatever is answered is what was stored, or refused."""
    import logging

    logging.disable(logging.WARNING)
    _filled(folder)
    truth, raw = _answers(folder), (folder / "m.db").read_bytes()
    chance, silent, many = random.Random(7), 0, 2_000 if long else 60
    for _ in range(many):
        bent, at = bytearray(raw), chance.randrange(len(raw))
        bent[at] ^= 1 << chance.randrange(8)
        _put(folder, bytes(bent))
        silent += any(truth.get(name) != value for name, value in _answers(folder).items())
    logging.disable(logging.NOTSET)
    return [none_of("flipped bits that change an answer", silent, many, "flips")]


def _put(folder: Path, raw: bytes) -> None:
    for end in ("-wal", "-shm"):
        (folder / f"m.db{end}").unlink(missing_ok=True)
    (folder / "m.db").write_bytes(raw)


def tampering(folder: Path, long: bool) -> list[Figure]:
    """Edit cells, delete, repeat and exchange rows, and empty tables with a database tool: each is noticed."""
    import logging
    import warnings

    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")
    _filled(folder)
    config = folder / "kept"
    shutil.copytree(folder / "config", config)
    raw = (folder / "m.db").read_bytes()
    noticed: dict[str, list[bool]] = {}
    for kind, statement in _statements(folder / "m.db", long):
        _put(folder, raw)
        shutil.rmtree(folder / "config")
        shutil.copytree(config, folder / "config")
        with closing(sqlite3.connect(folder / "m.db", isolation_level=None)) as db:
            try:
                changed = db.execute(statement).rowcount
            except sqlite3.IntegrityError:
                continue  # The database tool itself refuses.
        if changed:
            noticed.setdefault(kind, []).append(_noticed(folder))
    logging.disable(logging.NOTSET)
    return [all_of(f"{kind} that are noticed", sum(each), len(each), "changes") for kind, each in noticed.items()]


def _statements(path: Path, long: bool) -> list[tuple[str, str]]:
    """Return (kind, SQL) of the changes: of each table, of each column of its first row, or of each row."""
    found = []
    with closing(sqlite3.connect(path)) as db:
        tables = [name for (name,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")]
        for table in (name for name in tables if not name.startswith("sqlite_")):
            columns = db.execute(f"PRAGMA table_info({table})").fetchall()
            key = ", ".join(row[1] for row in columns if row[5])
            rows = db.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
            for n in range(rows if long else min(rows, 1)):
                which = f"({key}) = (SELECT {key} FROM {table} ORDER BY {key} LIMIT 1 OFFSET {n})"
                found.append(("deleted rows", f"DELETE FROM {table} WHERE {which}"))
                for _, name, sort, *_ in columns:
                    fresh = {"INTEGER": f"coalesce({name}, 0) + 1", "TEXT": f"coalesce({name}, '') || 'x'"}
                    value = fresh.get(sort, f"CAST(coalesce({name}, x'') || x'78' AS BLOB)")
                    found.append(("edited cells", f"UPDATE {table} SET {name} = {value} WHERE {which}"))
            found.append(("emptied tables", f"DELETE FROM {table}"))
            for _, name, _, _, _, part in columns:
                # Two rows exchange one column that is no part of their key.
                if not part and rows > 1:
                    ends = [f"(SELECT {key} FROM {table} ORDER BY {key} LIMIT 1 OFFSET {n})" for n in (0, rows - 1)]
                    other = f"(SELECT o.{name} FROM {table} o WHERE ({_of('o', key)}) = "
                    swap = (
                        f"UPDATE {table} SET {name} = CASE WHEN ({key}) = {ends[0]} THEN {other}{ends[1]}) "
                        f"ELSE {other}{ends[0]}) END WHERE ({key}) IN ({ends[0][1:-1]}) OR ({key}) IN ({ends[1][1:-1]})"
                    )
                    same = f"SELECT count(DISTINCT quote({name})) FROM {table} WHERE ({key}) IN ({ends[0][1:-1]})"
                    both = f"{same} OR ({key}) IN ({ends[1][1:-1]})"
                    if db.execute(both).fetchone()[0] > 1:
                        found.append(("exchanged cells", swap))
    return found


def _of(alias: str, key: str) -> str:
    return ", ".join(f"{alias}.{name}" for name in key.split(", "))


def _noticed(folder: Path) -> bool:
    try:
        with _opened(folder) as memory:
            return not memory.verify().ok
    except KeepwardError:
        return True
