"""The store: how fast it opens after a crash and verifies, and whether a change of its bytes goes unnoticed."""

from __future__ import annotations

import logging
import os
import random
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from msgspec.structs import replace

from evals.attack_store import attacked
from evals.attacks import attacks
from evals.security_figure import Figure, all_of, kept, none_of, opened, recalled
from evals.target import Column, DatabaseTarget, Target
from keepward import Actor, KeepwardError, Policy
from keepward.drill.drill import drill
from keepward.locations import parse_location


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep what a store says about its damage out of the way: here it is meant."""
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(logging.NOTSET)


def drilled(target: Target, long: bool) -> list[Figure]:
    """Run the drill on the store, and make every other attack."""
    _filled(target)
    statuses = [each.status for each in drill(parse_location(target.address), tenant="default", policy=Policy())]
    with _quiet():
        statuses += [each.status for each in attacked(target, attacks())]
    return [
        none_of("attacks that go through", statuses.count("breached"), len(statuses), "attacks"),
        none_of("attacks that prove nothing", statuses.count("inconclusive"), len(statuses), "attacks"),
    ]


def _crashed(target: Target, commits: int) -> None:
    """Leave a store of so many commits as a killed writer leaves it: on a file, the newest of them in the log alone."""
    from tests.support.factories import RecordFactory

    from keepward.machine.trust_store import TrustStore
    from keepward.storage.store import open_store

    child = os.fork()
    if child == 0:
        make = RecordFactory()
        store = open_store(target.address, anchor=TrustStore(target.home))
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


def recovery(target: Target, long: bool) -> list[Figure]:
    """Open a store that crashed, until its first answer."""
    commits = 100_000 if long else 5_000
    _crashed(target, commits)
    begun = time.perf_counter()
    with opened(target) as memory:
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


def verify(target: Target, long: bool) -> list[Figure]:
    """Verify everything of a store."""
    commits = 100_000 if long else 5_000
    _crashed(target, commits)
    with opened(target) as memory:
        begun = time.process_time()
        found = memory.verify()
        taken = time.process_time() - begun
    rate = found.checked["events"] / taken
    return [
        none_of("faults in a sound store", len(found.faults), found.checked["events"], "events"),
        Figure(what="verify", value=f"{rate:.0f} events/s of CPU", goal="50,000", ok=rate >= 50_000, speed=True),
    ]


def _filled(target: Target) -> None:
    """Make a store with something in every table."""
    with opened(target, embedder="hashed") as owner:
        agent = owner.as_actor(Actor.agent("scout"))
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
        owner.run_job("learn_importance", force=True)


def _answers(target: Target) -> dict[str, Any]:
    """Return everything a store answers, one entry a memory, commit and proposal; what is refused is left out."""
    told: dict[str, Any] = {}
    try:
        with opened(target) as memory:
            asks = (
                lambda: {f"found {each.id}": each for each in memory.list_memories(limit=None, include_ended=True)},
                lambda: {f"recalled {hit.memory.id}": hit.memory for hit in memory.recall("crane ferry quay")},
                lambda: {f"commit {view.commit.seq}": view for view in memory.log(limit=99)},
                lambda: {f"waits {each.id}": each for each in memory.pending(state="all", limit=None)},
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


def flips(target: Target, long: bool) -> list[Figure]:
    """Flip one bit of the file, or of a row, at a time: whatever is answered is what was stored, or refused."""
    _filled(target)
    truth = _answers(target)
    target.save_state("sound")
    chance, silent, many = random.Random(7), 0, 2_000 if long else 60
    flip = _flip_row if isinstance(target, DatabaseTarget) else _flip_byte
    with _quiet():
        for _ in range(many):
            flip(target, chance)
            silent += any(truth.get(name) != value for name, value in _answers(target).items())
            target.restore_state("sound")
    return [none_of("flipped bits that change an answer", silent, many, "flips")]


def _flip_byte(target: Target, chance: random.Random) -> None:
    bent = bytearray(target.path.read_bytes())
    bent[chance.randrange(len(bent))] ^= 1 << chance.randrange(8)
    target.write(bytes(bent))


def _flip_row(target: Target, chance: random.Random) -> None:
    """Flip one bit of a cell that was drawn from all cells, as far as the database takes the value."""
    tables, changed = target.tables(), 0
    counts = {name: target.rows(f"SELECT count(*) FROM {name}")[0][0] for name in tables}
    cells = [(name, column) for name, columns in tables.items() for column in columns if counts[name]]
    while not changed:
        name, column = chance.choice(cells)
        which = _nth(name, tables[name], chance.randrange(counts[name]))
        value = target.rows(f"SELECT {column.name} FROM {name} WHERE {which}")[0][0]
        if value not in (None, "", b""):
            flip = f"UPDATE {name} SET {column.name} = :value WHERE {which}"
            changed = target.execute(flip, {"value": _flipped(value, chance)})


def _flipped(value: Any, chance: random.Random) -> Any:
    if isinstance(value, int) or not value:
        return (value or 0) ^ 1 << chance.randrange(40)
    raw = bytearray(value.encode() if isinstance(value, str) else value)
    raw[chance.randrange(len(raw))] ^= 1 << chance.randrange(8)
    return raw.decode("utf-8", "replace") if isinstance(value, str) else bytes(raw)


def tampering(target: Target, long: bool) -> list[Figure]:
    """Edit cells, delete, repeat and exchange rows, and empty tables with a database tool: each is noticed."""
    _filled(target)
    target.save_state("sound")
    noticed: dict[str, list[bool]] = {}
    with _quiet():
        for kind, statement, values in _statements(target, long):
            # One that the database tool itself refuses changes nothing.
            if target.execute(statement, values) > 0:
                noticed.setdefault(kind, []).append(_noticed(target))
                target.restore_state("sound", home=True)
    return [all_of(f"{kind} that are noticed", sum(each), len(each), "changes") for kind, each in noticed.items()]


def _nth(table: str, columns: list[Column], n: int) -> str:
    """Return what is true of the n-th row of a table alone."""
    key = ", ".join(each.name for each in columns if each.in_key)
    return f"({key}) = (SELECT {key} FROM {table} ORDER BY {key} LIMIT 1 OFFSET {n})"


def _statements(target: Target, long: bool) -> list[tuple[str, str, dict[str, Any]]]:
    """Return (kind, SQL, its values) of the changes: of each table, of each column of its first row, or of each row."""
    found: list[tuple[str, str, dict[str, Any]]] = []
    changed = {"integer": "coalesce({0}, 0) + 1", "text": "coalesce({0}, '') || 'x'", "bytes": target.longer}
    for table, columns in target.tables().items():
        rows = target.rows(f"SELECT count(*) FROM {table}")[0][0]
        for n in range(rows if long else min(rows, 1)):
            which = _nth(table, columns, n)
            found.append(("deleted rows", f"DELETE FROM {table} WHERE {which}", {}))
            for each in columns:
                value = changed[each.sort].format(each.name)
                found.append(("edited cells", f"UPDATE {table} SET {each.name} = {value} WHERE {which}", {}))
        found.append(("emptied tables", f"DELETE FROM {table}", {}))
        first, last = (_nth(table, columns, n) for n in (0, max(rows - 1, 0)))
        for name in (each.name for each in columns if not each.in_key and rows > 1):
            # Two rows exchange one column that is no part of their key.
            ends = [target.rows(f"SELECT {name} FROM {table} WHERE {which}")[0][0] for which in (first, last)]
            if ends[0] != ends[1]:
                swap = f"UPDATE {table} SET {name} = CASE WHEN {first} THEN :last ELSE :first END"
                values = {"first": ends[0], "last": ends[1]}
                found.append(("exchanged cells", f"{swap} WHERE {first} OR {last}", values))
    return found


def _noticed(target: Target) -> bool:
    try:
        with opened(target) as memory:
            return not memory.verify().ok
    except KeepwardError:
        return True
