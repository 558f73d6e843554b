"""A store on PostgreSQL passes the suite of every store, and does what only a database can."""

from __future__ import annotations

import gc
import re
import subprocess
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest
from benchmarks.database import Server

from keepward import Actor, Memory, StoreUnavailable
from keepward.core.query import Filter
from keepward.errors import Conflict, NewerSchema, NotAStore
from keepward.machine.clock import RandomIds
from keepward.machine.trust_store import TrustStore
from keepward.storage.postgres_connection import PostgresConnection
from keepward.storage.sql import SQL, parse_queries, read_sql
from keepward.storage.store import EventStore, open_store
from support.bulk_data import put_records
from support.clock import SteppingClock
from support.database import on_each_server
from support.factories import RecordFactory
from support.forking import forked
from support.ids import CountingIds
from support.store_suite import StoreSuite

pytestmark = [pytest.mark.slow, on_each_server]

psycopg = pytest.importorskip("psycopg")
TEXTS = [f"The ferry number {n} leaves the quay at {n % 24} for island {n % 7}" for n in range(40)]


class TestPostgresStore(StoreSuite):
    @pytest.fixture
    def store(self, database: str, tmp_path: Path) -> Iterator[EventStore]:
        with open_store(database, anchor=TrustStore(tmp_path / "config")) as store:
            yield store


def open_repeatable(path: str | Path, config: Path, **more: Any) -> Memory:
    """Open a store in a world that is the same every time."""
    given = {"embedder": "hashed", "clock": SteppingClock(), "ids": CountingIds(), "config_dir": config, **more}
    return Memory.open(path, actor=Actor.operator("olga"), **given)


def lived(memory: Memory) -> dict[str, Any]:
    """Do the same things to a store, and return what it answers."""
    memory.remember_many(TEXTS)
    memory.remember("Never deploy on Friday", tier="core", key="rule")
    first = memory.list_memories(limit=1)[0]
    memory.revise(first.id, text=f"{first.text}, weather permitting", reason="news")
    memory.forget(memory.list_memories(limit=5)[4].id, reason="over")
    found = memory.recall("when does the ferry to island 3 leave", limit=20)
    return {
        "head": memory.head,
        "ranking": [(hit.memory.id, hit.score) for hit in found],
        "context": memory.context("the ferry to island 5").text,
        "snapshot": memory.snapshot().text,
        "verify": memory.verify().ok,
    }


@pytest.mark.promise("D11")
def test_same_operations_give_the_same_head_and_rankings_on_both(database: str, tmp_path: Path) -> None:
    with open_repeatable(tmp_path / "m.db", tmp_path / "a") as file, open_repeatable(database, tmp_path / "b") as other:
        assert lived(file) == lived(other)


@pytest.mark.parametrize("to_database", [True, False])
def test_journal_of_one_database_is_restored_into_the_other(database: str, tmp_path: Path, to_database: bool) -> None:
    places = [tmp_path / "m.db", database][:: 1 if to_database else -1]
    with (
        open_repeatable(places[0], tmp_path / "a") as source,
        open_store(places[1], anchor=TrustStore(tmp_path / "b")) as target,
    ):
        lived(source)
        target.restore_journal("default", iter(source._engine.store.events("default")))
        assert target.head("default").name == source.head
        # What recall needs is computed afterwards.
        assert {each.check for each in target.verify()[1]} == {"features"}


def put(store: EventStore, tenant: str, text: str) -> None:
    make = RecordFactory(RandomIds())
    with store.write() as writer:
        stage = make.stage(make.record(text))
        writer.append(tenant, stage)
        writer.put_receipt(make.receipt(tenant, stage.details.receipt))


@pytest.mark.parametrize("name", ["rolsuper", "rolbypassrls"])
def test_the_role_of_these_tests_has_no_right_beyond_the_page(database: str, name: str) -> None:
    with psycopg.connect(database) as connection:
        query = f"SELECT {name} FROM pg_roles WHERE rolname = current_user"
        assert connection.execute(query.encode()).fetchone() == (False,)


def test_servers_that_open_a_new_store_together_share_one_key(database: str, admin: str, tmp_path: Path) -> None:
    def opened(anchor: TrustStore) -> str:
        with open_store(database, anchor=anchor) as store:
            return store._sealer.key_id

    first, second = TrustStore(tmp_path / "config"), TrustStore(tmp_path / "config")
    made = first.adopt
    with ThreadPoolExecutor() as pool, psycopg.connect(admin, autocommit=True) as looking:
        others = []

        def adopt() -> bytes:
            others.append(pool.submit(opened, second))
            query = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
            while not others[0].done() and looking.execute(query).fetchone() == (0,):
                pass
            return made()

        first.adopt = adopt  # type: ignore[method-assign]
        assert opened(first) == others[0].result()


def test_dump_without_short_lived_rows_is_restored_with_its_heads(
    postgres: Server, database: str, admin: str, tmp_path: Path
) -> None:
    dump, anchor = tmp_path / "memory.dump", tmp_path / "config"
    with open_repeatable(database, anchor) as memory:
        before = lived(memory)
    options = ["--format=custom", "--exclude-table-data=server_state", "--file", str(dump)]
    subprocess.run([postgres.programs / "pg_dump", *options, "--dbname", admin], check=True)
    postgres.create_database("restored")
    try:
        options = ["--exit-on-error", "--dbname", postgres.admin("restored"), str(dump)]
        subprocess.run([postgres.programs / "pg_restore", *options], check=True)
        with open_repeatable(postgres.address("restored"), anchor, ids=RandomIds()) as memory:
            assert memory.head == before["head"]
            assert memory.verify().ok
            assert [hit.memory.id for hit in memory.recall("when does the ferry to island 3 leave", limit=20)] == [
                name for name, _ in before["ranking"]
            ]
            assert memory.remember("The ferry is written to again").commit is not None
    finally:
        postgres.drop_database("restored")


def test_a_statement_that_forgets_its_tenant_finds_nothing_of_another(database: str, tmp_path: Path) -> None:
    with open_store(database, anchor=TrustStore(tmp_path / "config")) as store:
        for tenant in ("ada", "bob"):
            put(store, tenant, f"a secret of {tenant}")
        with store._database.reading("ada") as db:
            assert {row[0] for row in db.execute("SELECT tenant FROM events").fetchall()} == {"ada"}
        with pytest.raises(StoreUnavailable, match="lacks a privilege"), store.write() as writer:
            writer.head("ada")
            writer.connection.execute("INSERT INTO marks VALUES ('bob', 1, 1)")
        assert store.tenants() == ["ada", "bob"]
        assert store.verify()[1] == []


def test_a_statement_that_fails_stores_nothing_of_its_transaction(database: str) -> None:
    with open_store(database) as store:
        put(store, "ada", "first")
        make = RecordFactory(RandomIds())
        with pytest.raises(Conflict, match="a receipt is written once"), store.write() as writer:
            writer.append("ada", make.stage(make.record("second")))
            for _ in range(2):
                writer.put_receipt(make.receipt("ada", "7" * 26))
            writer.append("ada", make.stage(make.record("third")))
        assert store.head("ada").seq == 1
        put(store, "ada", "second")
        assert store.verify()[1] == []


def test_a_transaction_whose_error_another_actor_swallowed_is_not_acknowledged(database: str) -> None:
    with open_store(database) as store:
        put(store, "ada", "first")
        make = RecordFactory(RandomIds())
        with pytest.raises(StoreUnavailable, match="nothing was stored"), store.write() as writer:
            writer.append("ada", make.stage(make.record("second")))
            with suppress(psycopg.Error):
                writer.connection.execute("SELECT 1 FROM nowhere").fetchone()
        assert store.head("ada").seq == 1


def test_first_memories_are_read_with_few_rows_and_nothing_compiled(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = list[str]()
    ask = PostgresConnection._ask

    def listen(session: Any, query: str, *args: Any, **options: Any) -> Any:
        sent.append(query)
        return ask(session, query, *args, **options)

    with open_repeatable(database, tmp_path / "config", embedder=None) as memory:
        memory.remember_many([f"{text}, says the {n}. board" for n, text in enumerate(TEXTS * 4)])
        store = memory._engine.store
        monkeypatch.setattr(PostgresConnection, "_ask", listen)
        assert len(store.find("default", Filter(scopes=("/",)), live_at=None, limit=50).records) == 50
        assert [int(query.split()[1]) for query in sent if query.startswith("FETCH")] == [64]
        with store._database.reading("default") as db:
            assert db.execute("SHOW jit").fetchone() == ("off",)


@pytest.mark.parametrize("name", ["likely", "profiles_by_id", "profiles", "indexed", "records_to_verify"])
def test_a_new_table_is_found_by_its_key(new_database: str, name: str) -> None:
    scopes = {"scopes": None, "low": "", "high": ""}
    values = {"tenant": "ada", "positions": "[1]", "ids": '["a"]', "after": 0, **scopes}
    # A database that other tests have filled has statistics, by which another plan may be the best.
    with open_store(new_database) as store, store._database.reading("ada") as db:
        plan = "\n".join(line for (line,) in db.execute(f"EXPLAIN {SQL[name]}", values))
    assert re.search(r"features_pkey on features.*\n\s+Index Cond: .*\bid = ", plan), plan


def test_used_memories_of_a_large_new_store_are_counted_by_their_ids(new_database: str, tmp_path: Path) -> None:
    values = dict.fromkeys(("low", "high", "main_low", "main_high"), "") | {
        "tenant": "default",
        "now": 0,
        "scopes": None,
    }
    counted = parse_queries(read_sql("queries.sql") + read_sql("postgres.sql"))["facts_usage"]
    with open_repeatable(new_database, tmp_path / "config", embedder=None) as memory:
        put_records(memory, [f"Shelf {n} holds flour" for n in range(3_000)])
        memory.recall("Which shelf holds flour?")
        with memory._engine.store._database.reading("default") as db:
            plan = "\n".join(line for (line,) in db.execute(f"EXPLAIN {counted}", values))
    assert re.search(r"records_pkey on records.*\n\s+Index Cond: .*\bid = ", plan), plan


def test_writers_of_one_tenant_queue_and_others_do_not(database: str) -> None:
    with open_store(database) as store:
        for tenant in ("ada", "bob"):
            put(store, tenant, "first")
        order: list[str] = []
        inside = threading.Event()

        def slow() -> None:
            with store.write() as writer:
                writer.head("ada")
                inside.set()
                put(store_of_bob, "bob", "second")
                order.append("bob")
            order.append("ada")

        with open_store(database) as store_of_bob, ThreadPoolExecutor(2) as pool:
            first = pool.submit(slow)
            inside.wait(10)
            second = pool.submit(put, store, "ada", "third")
            first.result(30), second.result(30)
        assert (order, store.head("ada").seq, store.head("bob").seq) == (["bob", "ada"], 2, 2)


def test_child_uses_its_own_connections_and_leaves_the_parents_transaction(database: str) -> None:
    with open_store(database) as store:
        put(store, "ada", "first")
        with ExitStack() as block:
            writer, make = block.enter_context(store.write()), RecordFactory(RandomIds())
            stage = make.stage(make.record("second"))
            writer.append("ada", stage)
            assert forked(lambda: store.head("ada").seq)() == "1"
            assert forked(block.close)().startswith("StoreUnavailable: the store was in use")
            assert forked(lambda: writer.head("bob"))().startswith("StoreUnavailable: the store was in use")
            writer.put_receipt(make.receipt("ada", stage.details.receipt))
        assert (store.head("ada").seq, store.verify("ada")[1]) == (2, [])


def test_a_child_takes_no_answer_that_its_parent_waits_for(database: str) -> None:
    with open_store(database) as store:
        put(store, "ada", "first")
        # The end of this read is sent, and its answer is not read yet.
        assert store.head("ada").seq == 1
        assert forked(lambda: (store.head("ada").seq, gc.collect() >= 0))() == "(1, True)"
        assert store.head("ada").seq == 1
        put(store, "ada", "second")
        assert store.head("ada").seq == 2


def test_first_writes_of_one_tenant_at_once_lose_nothing(database: str) -> None:
    with open_store(database) as store, ThreadPoolExecutor(6) as pool:
        list(pool.map(lambda n: put(store, "ada", f"note {n}"), range(12)))
        assert (store.head("ada").seq, store.verify("ada")[1]) == (12, [])


def test_store_whose_scopes_are_not_folded_yet_is_opened_and_gets_them(
    database: str, admin: str, tmp_path: Path
) -> None:
    with open_repeatable(database, tmp_path / "config", embedder=None) as memory:
        memory.at(scope="/users/ana").remember("Ana likes tea")
    with psycopg.connect(admin, autocommit=True) as connection:
        connection.execute("ALTER TABLE records DROP COLUMN folded")
        connection.execute(
            "CREATE INDEX records_scope ON records (tenant, lower(scope), scope) WHERE status = 'active'"
        )
    with open_repeatable(database, tmp_path / "config", embedder=None, ids=RandomIds()) as memory:
        said = memory.at(scope="/users/Ana").remember("Ana likes coffee")
        assert "other_case" in {each.code for each in said.reasons}
        assert memory.verify().ok


def test_concurrent_creation_makes_one_store(database: str) -> None:
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("CREATE SCHEMA twice")
    address = f"{database}&options=-csearch_path%3Dtwice,public"
    try:
        with ThreadPoolExecutor(4) as pool:
            stores = list(pool.map(lambda _: open_store(address), range(4)))
        assert len({store.store_id for store in stores}) == 1
        for store in stores:
            store.close()
    finally:
        with psycopg.connect(database, autocommit=True) as connection:
            connection.execute("DROP SCHEMA twice CASCADE")


def test_database_without_a_store_is_reported_and_nothing_created(database: str) -> None:
    address = f"{database}&options=-csearch_path%3Dnowhere"
    with pytest.raises(StoreUnavailable, match="does not exist"):
        open_store(address)
    with pytest.raises(StoreUnavailable, match="cannot be reached"):
        open_store("postgresql://nobody@127.0.0.1:1/none")


def test_another_programs_tables_and_a_newer_schema_are_refused(database: str) -> None:
    open_store(database).close()
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("INSERT INTO migrations VALUES (99, 'later', '')")
        try:
            with pytest.raises(NewerSchema):
                open_store(database)
        finally:
            connection.execute("DELETE FROM migrations WHERE number = 99")
        connection.execute("CREATE SCHEMA theirs")
        connection.execute("CREATE TABLE theirs.meta (x TEXT)")
        try:
            with pytest.raises(NotAStore, match="another program"):
                open_store(f"{database}&options=-csearch_path%3Dtheirs")
        finally:
            connection.execute("DROP SCHEMA theirs CASCADE")


def test_store_on_a_database_is_copied_by_database_tools(database: str, tmp_path: Path) -> None:
    with open_store(database) as store, pytest.raises(StoreUnavailable, match="pg_dump"):
        store.backup(tmp_path / "copy.db")
    assert list(tmp_path.iterdir()) == []


def test_unreachable_database_is_reported_and_found_again_at_once(
    postgres: Server, database: str, tmp_path: Path
) -> None:
    other = postgres.admin("postgres")
    with open_repeatable(database, tmp_path / "a") as memory, psycopg.connect(other, autocommit=True) as connection:
        memory.remember(TEXTS[0])
        connection.execute("ALTER DATABASE memory ALLOW_CONNECTIONS false")
        try:
            connection.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'memory'")
            with suppress(StoreUnavailable):
                memory.recall("ferry")
            began = time.monotonic()
            with pytest.raises(StoreUnavailable, match="not currently accepting connections"):
                memory.recall("ferry")
        finally:
            connection.execute("ALTER DATABASE memory ALLOW_CONNECTIONS true")
        assert memory.recall("ferry")
        assert time.monotonic() - began < 15


def test_database_that_ended_every_connection_is_one_error_then_recovers(
    database: str, admin: str, tmp_path: Path
) -> None:
    with open_repeatable(database, tmp_path / "a") as memory:
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda n: memory.remember(TEXTS[n]), range(8)))
        with psycopg.connect(admin, autocommit=True) as connection:
            connection.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'keepward'")
        with pytest.raises(StoreUnavailable, match="what was acknowledged is kept"):
            memory.remember(TEXTS[8])
        memory.remember(TEXTS[9])
        assert (len(memory.list_memories(limit=None)), memory.verify().ok) == (9, True)
