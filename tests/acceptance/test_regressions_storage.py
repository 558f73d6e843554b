"""How storage fails elsewhere: many writers, damage, and hands in the file."""

from __future__ import annotations

import random
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from outcomes import committed_record, quarantined_item

from keepward import Actor, Committed, KeepwardError, Memory, NotFound, Tampered
from support import tamper

TEXTS = [f"The ferry number {n} crosses the sound" for n in range(12)]
Enter = Callable[..., Memory]


@pytest.fixture
def copy(owner: Memory, mem: Memory, path: Path, tmp_path: Path, clock: Any) -> Iterator[Callable[[], Memory]]:
    """A filled and closed store; the function opens it as its owner."""
    for n, text in enumerate(TEXTS):
        committed_record(mem.remember(text, tier="archival", tags=["boat"], key=f"f{n}"))
    committed_record(owner.remember("Sail to Oslo", tier="core", key="mission"))
    committed_record(mem.remember("The radio is on loan", tier="archival", ttl="2d", source="web"))
    quarantined_item(mem.remember("Sail to Bergen", tier="core", key="mission"))
    owner.close()
    handles: list[Memory] = []

    def enter(file: Path = path) -> Memory:
        given: dict[str, Any] = {"embedder": "hashed", "clock": clock, "config_dir": tmp_path / "config"}
        handles.append(Memory.open(file, actor=Actor.operator("olga"), **given))
        return handles[-1]

    yield enter
    for handle in handles:
        handle.close()


def everything(mem: Memory) -> tuple[set[Any], set[str]]:
    """Return all records that reads give, and all lines of what is compiled; what refuses gives nothing."""
    records: set[Any] = set()
    lines: set[str] = set()
    for ask in (
        lambda: records.update(mem.list_memories(limit=None, include_ended=True)),
        lambda: records.update(hit.memory for hit in mem.recall("ferry sound", limit=50)),
        lambda: records.update(step.after for item in mem.pending(state="all") for step in item.steps),
        lambda: records.update(step.after for view in mem.log() for step in view.steps),
        lambda: lines.update(mem.context("ferry sound").text.splitlines()),
        lambda: lines.update(mem.snapshot().text.splitlines()),
    ):
        with suppress(KeepwardError):
            ask()
    return records, lines


@pytest.mark.promise("F1", "F3")
@pytest.mark.parametrize("what", sorted(tamper.EDITS))
def test_manual_edit_is_named_and_never_returned(copy: Callable[[], Memory], path: Path, what: str) -> None:
    truth = everything(copy())
    tamper.run(path, tamper.EDITS[what])
    mem = copy()
    assert not mem.verify().ok
    records, lines = everything(mem)
    assert (records - truth[0], lines - truth[1]) == (set(), set())


def _found(mem: Memory) -> list[Any]:
    with suppress(KeepwardError):
        return mem.list_memories(limit=None)
    return []


@pytest.mark.promise("F2")
@pytest.mark.parametrize(
    "tables",
    [("commits", "events", "tenants"), ("events",), ("commits",), ("commits", "events", "tenants", "records")],
    ids=str,
)
def test_a_journal_that_was_deleted_fails_verification(
    copy: Callable[[], Memory], path: Path, tables: tuple[str, ...]
) -> None:
    tamper.delete(path, *tables)
    try:
        assert not copy().verify().ok
    except KeepwardError:
        return


@pytest.mark.promise("F4")
def test_manually_inserted_row_is_never_returned(copy: Callable[[], Memory], path: Path) -> None:
    tamper.run(path, *tamper.FORGED_MEMORY)
    mem = copy()
    assert "forged" not in repr(everything(mem))
    with pytest.raises(KeepwardError):
        mem.get("forged")
    assert not mem.verify().ok


@pytest.mark.promise("F5")
@pytest.mark.parametrize("whole", [True, False])
def test_older_copy_in_the_path_of_the_newer_is_detected(
    copy: Callable[[], Memory], path: Path, tmp_path: Path, whole: bool
) -> None:
    shutil.copytree(path.parent, tmp_path / "old")
    with copy() as mem:
        committed_record(mem.remember("The ferry was sold", tier="archival"))
    for file in path.parent.iterdir():
        file.unlink()
    for file in (tmp_path / "old").iterdir():
        if whole or file.suffix == ".db":
            shutil.copy(file, path.parent)
    with pytest.raises(Tampered, match="older copy"):
        copy().list_memories()
    assert not copy().verify().ok


@pytest.mark.promise("F6")
@pytest.mark.slow
def test_a_flipped_byte_is_never_a_silent_loss(copy: Callable[[Path], Memory], path: Path, tmp_path: Path) -> None:
    chance = random.Random(6)
    with copy(path) as mem:
        truth = {each.id: each for each in mem.list_memories(limit=None, include_ended=True)}
    whole = path.read_bytes()
    silent = []
    for n in range(2_000):
        place, bit = chance.randrange(len(whole)), 1 << chance.randrange(8)
        path.write_bytes(whole[:place] + bytes([whole[place] ^ bit]) + whole[place + 1 :])
        for name in ("-wal", "-shm"):
            Path(f"{path}{name}").unlink(missing_ok=True)
        size = path.stat().st_size
        try:
            with copy(path) as mem:
                told = not mem.verify().ok
                found = {each.id: each for each in _found(mem)}
        except KeepwardError:
            told, found = True, {}
        wrong = [each for name, each in found.items() if truth.get(name) != each]
        lost = set(truth) - set(found)
        if wrong or (lost and not told) or path.stat().st_size < size:
            silent.append((n, place, len(wrong), len(lost)))
    assert silent == []


@pytest.mark.promise("F6")
@pytest.mark.parametrize("table", ["events", "records", "features", "commits"])
def test_one_damaged_row_is_named_and_the_rest_is_served(copy: Callable[[], Memory], path: Path, table: str) -> None:
    column = {"events": "payload", "records": "body", "features": "terms", "commits": "receipt"}[table]
    tamper.edit(path, table, f"{column} = zeroblob(9)", f"rowid = (SELECT min(rowid) + 4 FROM {table})")
    mem = copy()
    assert any(fault.row.startswith(table) for fault in mem.verify().faults)
    served = {each.text for each in mem.list_memories(limit=None)}
    assert len(served & set(TEXTS)) >= len(TEXTS) - 1
    assert {hit.memory.text for hit in mem.recall("ferry sound", limit=50)} <= {
        *TEXTS,
        "The radio is on loan",
        "Sail to Oslo",
    }


@pytest.mark.promise("Z30")
@pytest.mark.parametrize("cut", [1, 100, 4096, 5000])
def test_torn_end_of_the_log_recovers_to_the_last_commit(
    copy: Callable[[Path], Memory], path: Path, tmp_path: Path, cut: int
) -> None:
    torn = tmp_path / "torn" / "memory.db"
    torn.parent.mkdir()
    with copy(path) as mem:
        committed_record(mem.remember("The ferry was painted", tier="archival"))
        committed_record(mem.remember("The ferry was sold", tier="archival"))
        for name in ("", "-wal", ".id"):
            if Path(f"{path}{name}").exists():
                shutil.copy(f"{path}{name}", f"{torn}{name}")
    wal = Path(f"{torn}-wal")
    wal.write_bytes(wal.read_bytes()[:-cut])
    with Memory.open(torn, actor=Actor.operator(), embedder=None, config_dir=tmp_path / "elsewhere") as mem:
        mem.adopt(mem.plan_adopt().digest)
        held_texts = [each.text for each in mem.list_memories(limit=None)]
        assert set(TEXTS) <= set(held_texts)
        assert mem.verify().ok
        committed_record(mem.remember("The ferry came back", tier="archival"))


@pytest.mark.promise("Z28", "D37")
def test_upserts_of_one_key_at_once_give_one_memory(owner: Memory, entering: Enter) -> None:
    handles = [entering(Actor.agent(f"a{n}")) for n in range(6)]
    with ThreadPoolExecutor(6) as pool:
        outcomes = list(
            pool.map(
                lambda each: each.remember(f"{each.actor.name} is calm", key="mood", kind="state", tier="archival"),
                handles,
            )
        )
    assert all(isinstance(each, Committed) for each in outcomes)
    (made,) = owner.list_memories(key="mood")
    assert (made.version, len(owner.history(made.id))) == (6, 6)
    assert owner.verify().ok
    with pytest.raises(sqlite3.IntegrityError, match=r"records\.key"):
        tamper.run(Path(owner.path), *tamper.SECOND_OF_A_KEY)


@pytest.mark.promise("T26")
def test_no_model_is_asked_inside_a_transaction(opened: Callable[..., Memory], tmp_path: Path) -> None:
    class Watching:
        id, dim = "watching:4", 4
        locked: list[bool] = []

        def embed(self, texts: Any) -> Any:
            with closing(sqlite3.connect(tmp_path / "calm.db", timeout=0, isolation_level=None)) as raw:
                try:
                    raw.execute("BEGIN IMMEDIATE")
                    raw.execute("ROLLBACK")
                    self.locked.append(False)
                except sqlite3.OperationalError:
                    self.locked.append(True)
            return np.ones((len(texts), 4), np.float32) / 2

    model = Watching()
    with opened("calm", embedder=model, actor=Actor.operator("olga")) as owner:
        mem = owner.as_actor(Actor.agent())
        made = mem.remember("The ferry leaves at six", tier="archival")
        committed_record(mem.revise(committed_record(made).id, "The ferry leaves at seven", reason="winter"))
        owner.approve(quarantined_item(mem.remember("Sail to Oslo", tier="core", key="mission")).id)
        owner.rollback(made.commit.id, with_later=True)  # type: ignore[union-attr]
        mem.remember_many([f"Pump {n} works" for n in range(3)])
        mem.context("ferry")
        owner.reindex()
    assert len(model.locked) >= 5
    assert not any(model.locked)


LOOKALIKES = ["a", "A", "a_", "a-b", "a_b", "aXb", "a.b", "ab", "a0", "aO"]


@pytest.mark.promise("T28")
def test_nothing_crosses_between_scopes_and_tenants_whose_names_are_alike(owner: Memory) -> None:
    places = [(tenant, scope) for tenant in ("t", "t_", "T", "t-t") for scope in LOOKALIKES]
    for n, (tenant, scope) in enumerate(places):
        committed_record(
            owner.at(tenant=tenant, scope=scope).remember(f"ferry secret {n:03}", tier="archival", key="k")
        )
    for n, (tenant, scope) in enumerate(places):
        handle = owner.at(tenant=tenant, scope=scope)
        seen = {each.text for each in handle.list_memories(limit=None)}
        seen |= {hit.memory.text for hit in handle.recall("ferry secret", limit=50)}
        seen |= {line for line in handle.context("ferry secret").text.splitlines() if "ferry" in line}
        assert all(f"{n:03}" in text for text in seen), (tenant, scope, seen)


@pytest.mark.promise("T28")
@pytest.mark.parametrize("name", ["%", "_", "/%", "/agents/%", "/agents/_", "a/b", "/agents/a/../b", "/agents//a", "*"])
def test_a_scope_is_a_name_and_never_a_pattern(owner: Memory, name: str) -> None:
    committed_record(owner.at(scope="orion").remember("ferry secret", tier="archival"))
    try:
        handle = owner.at(scope=name)
    except KeepwardError:
        return
    assert handle.list_memories(limit=None) == []
    with pytest.raises(NotFound):
        handle.as_actor(Actor.agent()).get(owner.at(scope="orion").list_memories()[0].id)
