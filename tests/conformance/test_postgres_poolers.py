"""A store behind a pooler, which gives transactions of one session several connections to the server."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from keepward import Actor, Memory, StoreUnavailable
from keepward.storage import postgres, postgres_connection
from support.database import on_each_server, pooler

pytestmark = [pytest.mark.slow, on_each_server]

psycopg = pytest.importorskip("psycopg")


@pytest.fixture(params=["transaction", "session"])
def pooled(request: pytest.FixtureRequest, database: str) -> Iterator[str]:
    with pooler(database, request.param) as address:
        yield address


def opened(address: str, folder: Path, **given: str) -> Memory:
    options = {"embedder": "hashed", "config_dir": folder / "config", "maintenance": False, **given}
    return Memory.open(address, actor=Actor.operator("ana"), **options)


def test_many_clients_of_two_handles_lose_nothing(pooled: str, tmp_path: Path) -> None:
    with opened(pooled, tmp_path) as one, opened(pooled, tmp_path) as other, ThreadPoolExecutor(6) as pool:

        def use(n: int) -> None:
            memory = (one, other)[n % 2].at(tenant=f"t{n % 3}")
            memory.remember(f"The ferry number {n} leaves the quay at {n % 24}")
            assert memory.recall(f"ferry number {n}").hits
            assert memory.context("the ferry", budget_tokens=400).text
            assert memory.list_memories(limit=5)

        list(pool.map(use, range(48)))
        for n in range(3):
            memory = one.at(tenant=f"t{n}")
            assert (len(memory.list_memories(limit=None)), memory.verify().ok) == (16, True)


def test_blobs_erasures_and_jobs_work(pooled: str, tmp_path: Path) -> None:
    with opened(pooled, tmp_path) as memory:
        blob = memory.put_blob(b"plain bytes of a note")
        out = memory.remember("The oak by the gate is ninety years old", blob=blob.ref)
        memory.remember("The oak is cut every spring")
        assert memory.read_blob(blob.ref) == b"plain bytes of a note"
        memory.erase(memory.plan_erase(str(out.id)).digest, str(out.id))
        assert {run.outcome for run in memory.run_jobs()} <= {"run", "skipped"}
        assert memory.verify().ok


def test_no_setting_of_a_transaction_is_left_to_others(pooled: str, tmp_path: Path) -> None:
    with opened(pooled, tmp_path) as memory:
        memory.remember("The ferry leaves at six")
        memory.recall("ferry")
        with psycopg.connect(pooled, autocommit=True, prepare_threshold=None) as connection:
            for name, default in (("lock_timeout", "0"), ("keepward.tenant", ""), ("plan_cache_mode", "auto")):
                (value,) = connection.execute("SELECT current_setting(%s, true)", (name,)).fetchone() or (None,)
                assert (value or "") == default, name


def test_a_confused_pooler_is_one_clear_error(database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(postgres._CONNECT_OPTIONS, "prepare_threshold", 0)
    with pooler(database, "transaction") as address, ThreadPoolExecutor(6) as pool:

        def use(n: int) -> str:
            try:
                with opened(address, tmp_path) as memory:
                    memory.remember(f"The ferry number {n} leaves")
                    return str(memory.verify().ok)
            except StoreUnavailable as exc:
                return str(exc)

        said = set(pool.map(use, range(24)))
    assert said <= {"True", postgres_connection._POOLED}
    assert postgres_connection._POOLED in said
