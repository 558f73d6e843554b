"""A store whose address names a replica: what may be behind says so, and a handle never reads from before its writes."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from keepward import Actor, Memory, StoreUnavailable
from support.clock import SteppingClock
from support.database import Replica, emptied, replicated

psycopg = pytest.importorskip("psycopg")
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def pair() -> Iterator[tuple[str, Replica]]:
    with replicated() as both:
        yield both


class World:
    """Handles on one store with a replica, each as another server has it."""

    def __init__(self, primary: str, replica: Replica, config: Path) -> None:
        self.primary, self.replica, self.config = primary, replica, config

    def opened(self, tenant: str = "default") -> Memory:
        url = f"{self.primary}&read={self.replica.folder}"
        given: dict[str, Any] = {"embedder": None, "clock": SteppingClock(), "config_dir": self.config}
        memory = Memory.open(url, actor=Actor.operator("ana"), tenant=tenant, maintenance=False, **given)
        # A tenant is met at the primary.
        memory.recall("anything at all")
        return memory

    def ask(self, query: str, values: tuple[Any, ...] = ()) -> Any:
        with psycopg.connect(self.replica.address, autocommit=True) as connection:
            return connection.execute(query, values).fetchone()[0]

    def pause(self) -> None:
        """Let the replica stop at what it has."""
        self.ask("SELECT pg_wal_replay_pause()::text")
        while self.ask("SELECT pg_get_wal_replay_pause_state()") != "paused":
            pass

    def catch_up(self) -> None:
        self.ask("SELECT CASE WHEN pg_is_wal_replay_paused() THEN pg_wal_replay_resume()::text ELSE '' END")
        with psycopg.connect(self.primary, autocommit=True) as connection:
            # What no commit has flushed yet is sent later: a reader may have noted a position in it.
            connection.execute("SELECT pg_logical_emit_message(true, 'flush', '')")
            (end,) = connection.execute("SELECT pg_current_wal_flush_lsn()::text").fetchone()
        while not self.ask("SELECT pg_last_wal_replay_lsn() >= %s::pg_lsn", (end,)):
            pass


@pytest.fixture
def world(pair: tuple[str, Replica], tmp_path: Path) -> Iterator[World]:
    emptied(pair[0])
    world = World(*pair, tmp_path / "config")
    with Memory.open(pair[0], actor=Actor.operator("ana"), embedder=None, config_dir=world.config) as memory:
        memory.remember("The ferry leaves at six")
    world.catch_up()
    yield world
    world.catch_up()


def replicas_of(notes: Any) -> list[str]:
    return [each for each in notes if "a replica answered" in each]


def test_a_replica_answers_and_says_from_which_commit(world: World) -> None:
    with world.opened() as memory:
        world.catch_up()
        found = memory.recall("when does the ferry leave")
        assert found[0].memory.text == "The ferry leaves at six"
        assert replicas_of(found.notes) == [
            f"a replica answered, which has commit 1 ({memory.head}) as its newest: later ones may be missing"
        ]
        assert replicas_of(memory.find().notes) == replicas_of(memory.status()["notes"]) == replicas_of(found.notes)
        reasons = [reason.detail for reason in memory.context("the ferry").receipt.reasons]
        assert replicas_of(reasons) == replicas_of(found.notes)


def test_one_that_is_behind_answers_with_its_own_head_and_never_its_writer(world: World) -> None:
    with world.opened() as writer, world.opened() as reader:
        world.catch_up()
        before = reader.head
        world.pause()
        written = writer.remember("The lamp at the pier burns all night")
        mine, theirs = writer.recall("does the lamp at the pier burn"), reader.recall("does the lamp at the pier burn")
        assert mine[0].memory.id == written.id
        assert replicas_of(mine.notes) == []
        assert (theirs.head, written.id in [hit.memory.id for hit in theirs]) == (before, False)
        assert "commit 1 " in replicas_of(theirs.notes)[0]
        assert (reader.status()["head"], reader.head) == (before, before)
        world.catch_up()
        assert reader.recall("does the lamp at the pier burn")[0].memory.id == written.id
        assert replicas_of(writer.recall("does the lamp at the pier burn").notes) != []


def test_what_was_read_at_the_primary_is_not_gone_behind(world: World) -> None:
    world.pause()
    with Memory.open(world.primary, actor=Actor.operator("ana"), embedder=None, config_dir=world.config) as other:
        second = other.remember("The lamp at the pier burns all night")
    with world.opened() as reader:
        assert [reader.find().notes, reader.find()[0].id] == [(), second.id]


def test_a_moment_that_a_replica_does_not_have_yet_is_read_at_the_primary(world: World) -> None:
    with world.opened() as writer, world.opened() as reader:
        world.catch_up()
        world.pause()
        writer.remember("The lamp at the pier burns all night")
        assert reader.find(as_of=2)[0].text == "The lamp at the pier burns all night"


def test_what_is_decided_is_decided_on_what_the_primary_has(world: World) -> None:
    with world.opened() as one, world.opened() as other:
        world.catch_up()
        world.pause()
        first = one.remember("Ana prefers tabs", key="indent", kind="state")
        assert other.remember("Ana prefers spaces", key="indent", kind="state").id == first.id
        token = one.create_token("orion")
        one.revoke_token(token.token.id)
        with pytest.raises(Exception, match="token"):
            Memory.open(f"{world.primary}&read={world.replica.folder}", token=token.secret, config_dir=world.config)


def test_without_a_replica_the_primary_answers(world: World, tmp_path: Path) -> None:
    url = f"{world.primary}&read={tmp_path}"
    with Memory.open(url, actor=Actor.operator("ana"), embedder=None, config_dir=world.config) as memory:
        assert memory.recall("the ferry")[0].memory.text == "The ferry leaves at six"
        assert replicas_of(memory.recall("the ferry").notes) == []


def test_a_promoted_replica_has_all_that_was_acknowledged_and_clients_go_on_after_one_error(tmp_path: Path) -> None:
    with replicated() as (primary, replica):
        with psycopg.connect(primary, autocommit=True) as connection:
            connection.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
            connection.execute("SELECT pg_reload_conf()")
            query = "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'"
            while connection.execute(query).fetchone() != (1,):
                pass
        sockets = primary.partition("host=")[2]
        url = f"postgresql://postgres@/postgres?host={sockets},{replica.folder}&target_session_attrs=read-write"
        acknowledged: dict[str, list[str]] = {f"t{n}": [] for n in range(4)}
        errors: dict[str, int] = dict.fromkeys(acknowledged, 0)
        stop, promoted = threading.Semaphore(0), threading.Event()

        def client(tenant: str) -> None:
            given: dict[str, Any] = {"embedder": None, "config_dir": tmp_path, "maintenance": False}
            with Memory.open(url, actor=Actor.operator("ana"), tenant=tenant, **given) as memory:
                left = 10
                while left:
                    text = f"note {len(acknowledged[tenant])} of {tenant} after {errors[tenant]} errors"
                    try:
                        done = memory.remember(text)
                    except StoreUnavailable:
                        errors[tenant] += 1
                        assert promoted.wait(120)
                        continue
                    acknowledged[tenant].append(done.id or "")
                    left -= promoted.is_set()
                    stop.release()

        clients = [threading.Thread(target=client, args=(tenant,), daemon=True) for tenant in acknowledged]
        for each in clients:
            each.start()
        for _ in range(40):
            assert stop.acquire(timeout=120)
        replica.run("pg_ctl", "-w", "-D", str(Path(sockets)), "-m", "immediate", "stop")
        replica.control("promote")
        promoted.set()
        for each in clients:
            each.join(120)
            assert not each.is_alive()
        # Who was waiting for a connection just then has waited until there was one.
        assert set(errors.values()) in ({1}, {0, 1})
        for tenant, ids in acknowledged.items():
            with Memory.open(
                url, actor=Actor.operator("ana"), tenant=tenant, embedder=None, config_dir=tmp_path
            ) as found:
                assert {*ids} <= {record.id for record in found.find(limit=None)}
                assert found.verify().ok
