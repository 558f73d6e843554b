"""Forks of a process that has a store open: what either side acknowledged stays, or the child is refused."""

from __future__ import annotations

import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest
from filled import TENANT, opened

from keepward.core.principals import Actor
from keepward.memory import Memory
from keepward.storage import forks
from keepward.storage.store import EventStore, open_store
from support import tamper
from support.factories import RecordFactory
from support.forking import forked


def append(store: EventStore, name: str) -> int:
    """Write one commit; return its number."""
    make = RecordFactory()
    with store.write() as writer:
        return writer.append(TENANT, make.stage(make.record("from a child", id=name), commit_id=f"c-{name}")).seq


@pytest.mark.promise("T25")
@pytest.mark.parametrize("own", [False, True], ids=["inherited", "opened"])
def test_writes_of_a_fork_stay_when_its_parent_closes(path: Path, own: bool) -> None:
    store, (go, start) = opened(path), os.pipe()
    arrived, ready = os.pipe()

    def write() -> int:
        mine = opened(path) if own else store
        append(mine, "m-before")
        os.write(ready, b"x")
        os.read(go, 1)
        return append(mine, "m-after")

    wait = forked(write)
    # A child that ends before is one that will never say so.
    os.close(ready)
    assert os.read(arrived, 1) == b"x"
    # Reads, so that the parent is not told apart by having nothing open.
    assert store.head(TENANT).seq == 5
    store.close()
    os.write(start, b"x")
    assert wait() == "6"
    with opened(path) as store:
        assert store.head(TENANT).seq == 6


@pytest.mark.promise("T25")
@pytest.mark.parametrize("own", [False, True], ids=["inherited", "opened"])
def test_process_forked_during_a_read_is_refused(path: Path, own: bool) -> None:
    with opened(path) as store, store.read_snapshot(TENANT):
        wait = forked(lambda: append(opened(path) if own else store, "m-in-between"))
        assert wait().startswith("StoreUnavailable: the store was in use as this process was forked off")


@pytest.mark.promise("T25")
def test_child_that_leaves_a_parents_write_commits_nothing(path: Path) -> None:
    make = RecordFactory()
    with opened(path) as store, ExitStack() as block:
        writer = block.enter_context(store.write())
        writer.append(TENANT, make.stage(make.record("one", id="m-one"), commit_id="c-one"))
        leaving = forked(block.close)
        assert leaving().startswith("StoreUnavailable: the store was in use as this process was forked off")
        writer.append(TENANT, make.stage(make.record("two", id="m-two"), commit_id="c-two"))
        block.close()
        assert store.head(TENANT).seq == 6


@pytest.mark.promise("T25")
def test_child_forked_during_a_read_is_refused_the_store(path: Path) -> None:
    reading, over = threading.Event(), threading.Event()

    def read() -> None:
        with store.read_snapshot(TENANT):
            reading.set()
            over.wait(20)

    with opened(path) as store:
        reader = threading.Thread(target=read, daemon=True)
        reader.start()
        assert reading.wait(20)
        assert forked(lambda: store.head(TENANT))().startswith("StoreUnavailable: the store was in use")
        over.set()
        reader.join(20)
        assert forked(lambda: store.head(TENANT).seq)() == "4"
        assert append(store, "m-parent") == 5


def test_child_forked_during_sqlite_use_is_refused_every_store(path: Path, tmp_path: Path) -> None:
    reading, over = threading.Event(), threading.Event()
    other = tmp_path / "other" / "memory.db"
    other.parent.mkdir()
    opened(other).close()

    def read() -> None:
        with store.read_snapshot(TENANT):
            reading.set()
            over.wait(20)

    with opened(path) as store:
        reader = threading.Thread(target=read, daemon=True)
        reader.start()
        assert reading.wait(20)
        refused = forked(lambda: opened(other))()
        over.set()
        reader.join(20)
        assert refused.startswith("StoreUnavailable: another thread was inside SQLite")
        assert forked(lambda: opened(other).head(TENANT).seq)() == "0"


def test_child_forked_while_a_file_is_made_is_refused_it(path: Path) -> None:
    with forks.using(path):
        wait = forked(lambda: opened(path))
    assert wait().startswith("StoreUnavailable: the store was in use")


def test_store_opened_between_the_hook_and_the_fork_is_refused(path: Path) -> None:
    with opened(path) as store:
        store._database.close_idle = lambda: None
        assert forked(lambda: append(store, "m-child"))().startswith("StoreUnavailable: the store was in use")


def test_child_unknown_to_python_is_refused_an_open_file(path: Path) -> None:
    def other_side() -> object:
        # As if this was the parent, and what follows a child that it was not told of.
        assert store.head(TENANT).seq == 4
        forks._pid = 0
        return opened(path)

    with opened(path) as store:
        assert forked(other_side)().startswith("StoreUnavailable: the store was in use as this process was forked off")


@pytest.mark.slow
def test_threads_that_fork_at_once_wait_for_each_other(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # What is raised at a fork is not raised where it was asked for.
    failed: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", failed.append)
    with opened(path) as store, ThreadPoolExecutor(4) as threads:
        said = list(threads.map(lambda _: forked(lambda: store.head(TENANT).seq)(), range(12)))
    assert (said, failed) == (["4"] * 12, [])


def test_what_another_actor_changed_around_a_fork_is_noticed(path: Path) -> None:
    with opened(path) as store:
        before = store._database.data_version()
        forked(lambda: None)()
        tamper.edit(path, "records", "status = status")
        assert store._database.data_version() != before


def test_a_store_in_memory_is_the_parents_alone() -> None:
    with open_store(":memory:") as store:
        assert forked(lambda: store.head(TENANT))().startswith("StoreUnavailable: the store is closed")
        assert store.head(TENANT).seq == 0


def test_child_searches_although_forked_during_a_search(tmp_path: Path) -> None:
    with Memory.open(tmp_path / "m.db", actor=Actor.operator("ada"), embedder=None, config_dir=tmp_path) as memory:
        memory.remember("The oven is off.")
        searching, over = threading.Event(), threading.Event()

        def search() -> None:
            with memory._engine.indexes.lock:
                searching.set()
                over.wait(20)

        other = threading.Thread(target=search, daemon=True)
        other.start()
        assert searching.wait(20)
        wait = forked(lambda: len(memory.recall("oven").hits))
        over.set()
        other.join(20)
        assert wait() == "1"
