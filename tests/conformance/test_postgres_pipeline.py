"""Statements that are sent without waiting for the answer lose nothing, and no error of one is lost."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from types import FrameType

import pytest

from keepward import Actor, Memory, StoreUnavailable
from keepward.core.query import EVERYTHING
from keepward.errors import Conflict, InvalidInput, KeepwardError, NotAStore
from keepward.machine.clock import RandomIds
from keepward.machine.trust_store import TrustStore
from keepward.services.search import index_cache
from keepward.storage.store import EventStore, open_store
from keepward.storage.writer import UnitOfWork
from support.database import on_each_server
from support.factories import RecordFactory

pytestmark = [pytest.mark.slow, on_each_server]

psycopg = pytest.importorskip("psycopg")

from keepward.storage import postgres, postgres_connection  # noqa: E402
from keepward.storage.postgres_pool import Pool, PooledConnection  # noqa: E402

OTHERS = "FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"


@pytest.fixture
def store(database: str, tmp_path: Path) -> Iterator[EventStore]:
    with open_store(database, anchor=TrustStore(tmp_path / "config")) as store:
        yield store


def append(writer: UnitOfWork, text: str, tenant: str = "ada", **fields: object) -> None:
    make = RecordFactory(RandomIds())
    stage = make.stage(make.record(text, **fields))
    writer.append(tenant, stage)
    writer.put_receipt(make.receipt(tenant, stage.details.receipt))


def put(store: EventStore, text: str, tenant: str = "ada") -> None:
    with store.write() as writer:
        append(writer, text, tenant)


def end_connections(admin: str) -> None:
    with psycopg.connect(admin, autocommit=True) as connection:
        connection.execute(f"SELECT pg_terminate_backend(pid, 5000) {OTHERS}".encode())


def test_a_taken_key_is_a_conflict_although_more_was_sent(store: EventStore) -> None:
    with store.write() as writer:
        append(writer, "first", key="rule", scope="/")
    with pytest.raises(Conflict, match="the key is taken"), store.write() as writer:
        append(writer, "second", key="rule", scope="/")
        append(writer, "third")
        writer.clear_scrub_pending()
    assert (store.head("ada").seq, store.verify()[1]) == (1, [])


def test_an_unawaited_error_is_raised_by_the_commit(store: EventStore) -> None:
    put(store, "first")
    with pytest.raises(NotAStore, match="does not have the tables"), store.write() as writer:
        append(writer, "second")
        writer.connection.execute("INSERT INTO nowhere VALUES (1)")
    put(store, "second")
    assert (store.head("ada").seq, store.verify()[1]) == (2, [])


@pytest.mark.parametrize("sent", [0, 1, 2])
def test_a_connection_that_ends_inside_a_write_stores_nothing(store: EventStore, admin: str, sent: int) -> None:
    put(store, "first")
    with pytest.raises(StoreUnavailable, match="what was acknowledged is kept"), store.write() as writer:
        writer.head("ada")
        for n in range(sent):
            append(writer, f"lost {n}")
        end_connections(admin)
        append(writer, "lost too")
    put(store, "second")
    assert (store.head("ada").seq, store.verify()[1]) == (2, [])


def test_connection_lost_inside_a_read_is_one_clear_error(
    store: EventStore, admin: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_connection, "_PAGE_ROWS", 2)
    for n in range(5):
        put(store, f"note {n}")
    profiles = store.profiles("ada", after=-1)
    next(profiles)
    end_connections(admin)
    with pytest.raises(StoreUnavailable, match="the database cannot be reached"):
        list(profiles)
    assert len(list(store.profiles("ada", after=-1))) == 5


def test_pages_of_a_stream_are_read_between_writes(store: EventStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres_connection, "_PAGE_ROWS", 2)
    for n in range(5):
        put(store, f"note {n}")
    assert store.rebuild("ada") == 5
    assert (len(list(store.profiles("ada", after=-1))), store.verify()[1]) == (5, [])


def test_only_a_character_is_called_a_character(store: EventStore) -> None:
    with pytest.raises(InvalidInput, match="such as NUL"):
        store.ids_by_alias("ada", ["a\0b"], bool)
    with pytest.raises(InvalidInput, match="number is too large"):
        store.ids_with_prefix("ada", "a", limit=1 << 70)
    with pytest.raises(KeepwardError) as refused:
        store.ids_with_prefix("ada", "a", limit=-1)
    assert "NUL" not in str(refused.value)


def test_a_blob_that_cannot_be_stored_fails_at_once(store: EventStore, database: str) -> None:
    blobs = store.blob_store()
    assert blobs is not None
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("ALTER TABLE blob_bytes ADD CONSTRAINT none CHECK (false) NOT VALID")
        try:
            with pytest.raises(Exception, match="refused"):
                blobs.save(f"{'0' * 16}/2026/01/01/{'0' * 64}", b"bytes")
        finally:
            connection.execute("ALTER TABLE blob_bytes DROP CONSTRAINT none")


def test_a_write_that_waits_too_long_stores_nothing(
    store: EventStore, database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres, "BRIEF_LOCK_TIMEOUT_S", 0.2)
    put(store, "first")
    with open_store(database, anchor=TrustStore(tmp_path / "config")) as other, store.write() as writer:
        writer.head("ada")
        with (
            ThreadPoolExecutor(1) as pool,
            pytest.raises(StoreUnavailable, match="another transaction holds the tenant"),
        ):

            def second() -> None:
                with other.write(brief=True) as late:
                    append(late, "late")

            pool.submit(second).result(20)
        append(writer, "second")
    assert (store.head("ada").seq, store.verify()[1]) == (2, [])


def test_who_is_interrupted_while_it_waits_can_write_afterwards(
    store: EventStore, database: str, tmp_path: Path
) -> None:
    def interrupt(_: int, __: FrameType | None) -> None:
        raise KeyboardInterrupt

    put(store, "first")
    with open_store(database, anchor=TrustStore(tmp_path / "config")) as other:
        with store.write() as writer:
            writer.head("ada")
            before = signal.signal(signal.SIGUSR1, interrupt)
            main = threading.main_thread().ident
            assert main is not None
            timer = threading.Timer(0.5, signal.pthread_kill, (main, signal.SIGUSR1))
            timer.start()
            try:
                with pytest.raises(KeyboardInterrupt):
                    put(other, "late")
            finally:
                timer.join()
                signal.signal(signal.SIGUSR1, before)
            append(writer, "second")
        put(other, "third")
        assert (other.head("ada").seq, other.verify()[1]) == (3, [])


def test_reads_of_server_state_hide_no_foreign_change(store: EventStore, admin: str) -> None:
    server = store._database

    def read_state() -> None:
        with server.tenantless_transaction() as db:  # type: ignore[attr-defined]
            assert db.execute("SELECT count(*) FROM server_state").fetchone() == (0,)

    put(store, "first")
    before = server.data_version()
    for _ in range(3):
        put(store, "more")
        read_state()
    server._polled_at = -postgres.CHANGE_POLL_INTERVAL_S  # type: ignore[attr-defined]
    assert server.data_version() == before
    for _ in range(4):
        read_state()
    with psycopg.connect(admin, autocommit=True) as connection:
        for _ in range(4):
            connection.execute("UPDATE records SET standing = standing")
    server._polled_at = -postgres.CHANGE_POLL_INTERVAL_S  # type: ignore[attr-defined]
    assert server.data_version() != before


@pytest.mark.parametrize("call", ["recall", "status", "doctor"])
def test_threads_that_need_a_second_connection_do_not_wait_for_each_other(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    monkeypatch.setattr(postgres, "MAX_CONNECTIONS", 2)
    monkeypatch.setattr(postgres, "LOCK_TIMEOUT_S", 10)
    monkeypatch.setattr(index_cache, "MIN_STORED", 3)
    monkeypatch.setenv("KEEPWARD_DATA", str(tmp_path / "data"))
    given = {"actor": Actor.operator("ana"), "embedder": None, "config_dir": tmp_path / "config", "maintenance": False}
    calls = {"recall": lambda each: each.recall("ferry"), "status": Memory.status, "doctor": Memory.doctor}
    with Memory.open(database, **given) as memory:
        memory.remember_many([{"text": f"the ferry {n} leaves the quay {n * 7}"} for n in range(5)])
    with Memory.open(database, **given) as memory, ThreadPoolExecutor(8) as pool:
        start = threading.Barrier(8)

        def ask(_: int) -> bool:
            start.wait(30)
            return bool(calls[call](memory))

        assert list(pool.map(ask, range(8))) == [True] * 8


def test_no_call_waits_behind_a_rewrite_that_waits_for_a_read(
    store: EventStore, database: str, admin: str, tmp_path: Path
) -> None:
    put(store, "first")
    waiting = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'VACUUM%' AND wait_event_type = 'Lock'"
    with (
        open_store(database, anchor=TrustStore(tmp_path / "config")) as other,
        psycopg.connect(admin, autocommit=True) as connection,
        ThreadPoolExecutor(2) as pool,
    ):
        with store.read_snapshot("ada"):
            store.find("ada", EVERYTHING, live_at=None, limit=None)
            rewrite = pool.submit(other.scrub)
            while connection.execute(waiting.encode()).fetchone() == (0,):
                assert not rewrite.done()
            read = pool.submit(other.find, "ada", EVERYTHING, live_at=None, limit=None)
            assert len(read.result(15).records) == 1
            assert not rewrite.done()
        assert rewrite.result(60) is None


def test_status_measures_the_store_by_the_connection_that_it_has(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_once, take = [], Pool.take

    def counted(pool: Pool) -> PooledConnection:
        taken = take(pool)
        at_once.append(max(pool._used.values()))
        return taken

    given = {"actor": Actor.operator("ana"), "embedder": None, "config_dir": tmp_path / "config", "maintenance": False}
    with Memory.open(database, **given) as memory:
        memory.remember("the ferry leaves the quay")
        monkeypatch.setattr(Pool, "take", counted)
        assert memory.status()["file_bytes"] > 0
    assert max(at_once) == 1


@pytest.mark.promise("T8")
def test_what_was_acknowledged_outlives_a_crash_of_the_database(database: str, admin: str, tmp_path: Path) -> None:
    acknowledged: list[str] = []
    failed: list[int] = []
    done = threading.Event()

    def write(writer: int) -> None:
        tenant, n = f"t{writer}", 0
        with Memory.open(
            database, tenant=tenant, actor=Actor.operator("ana"), embedder=None, config_dir=tmp_path / "config"
        ) as memory:
            while not done.is_set():
                n += 1
                text = f"{tenant}: the ferry number {n} leaves the quay"
                try:
                    memory.remember(text)
                    acknowledged.append(text)
                except StoreUnavailable:
                    failed.append(n)
                    time.sleep(0.05)

    def await_writes(count: int) -> None:
        until, most = time.monotonic() + 60, len(acknowledged) + count
        while len(acknowledged) < most and time.monotonic() < until:
            time.sleep(0.01)

    def await_busy(connection: psycopg.Connection) -> int:
        """Return the process of a connection that is in a statement or a transaction."""
        until = time.monotonic() + 60
        while time.monotonic() < until:
            if busy := connection.execute(f"SELECT pid {OTHERS} AND state <> 'idle' LIMIT 1".encode()).fetchone():
                return int(busy[0])
        raise AssertionError("no connection was busy for 60 s")

    with ThreadPoolExecutor(3) as pool:
        writers = [pool.submit(write, n) for n in range(3)]
        try:
            for _ in range(3):
                await_writes(20)
                with suppress(psycopg.Error), psycopg.connect(admin, autocommit=True) as connection:
                    os.kill(await_busy(connection), signal.SIGKILL)
            await_writes(20)
        finally:
            done.set()
        for each in writers:
            each.result(60)
    found: list[str] = []
    for n in range(3):
        with Memory.open(
            database, tenant=f"t{n}", actor=Actor.operator("ana"), embedder=None, config_dir=tmp_path / "config"
        ) as memory:
            found += [each.text for each in memory.list_memories(limit=None)]
            assert memory.verify().ok
    assert set(acknowledged) - set(found) == set()
    assert len(set(found) - set(acknowledged)) <= len(failed)
    assert len(acknowledged) > 60
