"""Processes that wait to write to one file."""

from __future__ import annotations

import fcntl
import logging
import os
import signal
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from filled import TENANT, opened

from keepward.errors import StoreUnavailable
from keepward.storage import sqlite
from keepward.storage.store import EventStore
from support.factories import RecordFactory


@pytest.fixture
def other(path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[sqlite3.Connection]:
    """Another writer, which ends its transaction once somebody reports to wait for it."""
    monkeypatch.setattr(sqlite, "REPORT_AFTER_S", 0.02)
    with closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as other:
        handler = logging.Handler(logging.WARNING)
        handler.emit = lambda _: other.execute("ROLLBACK")  # type: ignore[assignment, method-assign]
        sqlite._log.addHandler(handler)
        yield other
        sqlite._log.removeHandler(handler)


def append(store: EventStore) -> int:
    make = RecordFactory()
    with store.write() as writer:
        return writer.append(TENANT, make.stage(make.record("tea", id="m-tea"), commit_id="c-tea")).seq


@pytest.mark.promise("T25")
def test_writer_goes_on_when_another_dies_while_writing(path: Path) -> None:
    begun, ready = os.pipe()
    child = os.fork()
    if child == 0:
        store = opened(path)
        with store.write():
            os.write(ready, b"x")
            signal.pause()
    assert os.read(begun, 1) == b"x"
    with opened(path) as store:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        assert append(store) == 5


@pytest.mark.promise("T25")
def test_process_that_hangs_in_the_queue_delays_no_one(path: Path, other: sqlite3.Connection) -> None:
    with opened(path) as store, path.with_name("m.db.id").open("rb") as queue:
        fcntl.flock(queue, fcntl.LOCK_EX)
        other.execute("BEGIN IMMEDIATE")
        assert append(store) == 5


@pytest.mark.promise("T25")
def test_writer_that_gave_up_delays_no_later_write(
    path: Path, other: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(path) as store:
        other.execute("BEGIN IMMEDIATE")
        with monkeypatch.context() as patience:
            patience.setattr(sqlite, "LOCK_TIMEOUT_S", 0.0)
            with pytest.raises(StoreUnavailable, match="locked"):
                append(store)
        other.execute("ROLLBACK")
        assert append(store) == 5
        with path.with_name("m.db.id").open("rb") as queue:
            fcntl.flock(queue, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_store_without_an_id_file_is_written_all_the_same(path: Path, other: sqlite3.Connection) -> None:
    with opened(path) as store:
        path.with_name("m.db.id").unlink()
        other.execute("BEGIN IMMEDIATE")
        assert append(store) == 5
