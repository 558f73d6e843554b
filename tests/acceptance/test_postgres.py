"""A handle on a store in PostgreSQL has the verbs of one on a file."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

from keepward import Actor, Memory
from keepward.errors import NotAStore
from support.clock import SteppingClock
from support.database import on_each_server

pytestmark = [pytest.mark.slow, on_each_server]


@pytest.fixture
def owner(database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Memory:
    monkeypatch.setenv("KEEPWARD_DATA", str(tmp_path / "data"))
    opened = Memory.open(
        database,
        actor=Actor.operator("ana"),
        embedder=None,
        clock=SteppingClock(),
        config_dir=tmp_path / "config",
    )
    with opened as memory:
        yield memory


def test_what_is_erased_in_a_database_is_missing(owner: Memory) -> None:
    blob = owner.put_blob(b"plain bytes of a note")
    out = owner.remember("The oak by the gate is ninety years old", blob=blob.ref)
    owner.erase(owner.plan_erase(str(out.id)).digest, str(out.id))
    assert owner.get(str(out.id)).text == ""
    assert owner.certificate(str(out.id))["commit"]
    assert owner.verify().ok


def test_store_with_a_changed_id_is_refused_in_one_line(owner: Memory, database: str, tmp_path: Path) -> None:
    owner.close()
    with psycopg.connect(database) as connection:
        connection.execute("UPDATE meta SET value = '../elsewhere' WHERE name = 'store_id'")
    with pytest.raises(NotAStore, match="id was changed outside of Keepward"):
        Memory.open(database, actor=Actor.operator("ana"), embedder=None, config_dir=tmp_path / "config")


def test_verify_names_each_table_without_row_security(owner: Memory, database: str) -> None:
    owner.remember("Ana prefers tabs")
    with psycopg.connect(database, autocommit=True) as connection:
        try:
            connection.execute("ALTER TABLE records DISABLE ROW LEVEL SECURITY")
            connection.execute("CREATE POLICY another ON events USING (true)")
            seen = {fault.row for fault in owner.verify().faults}
        finally:
            connection.execute("ALTER TABLE records ENABLE ROW LEVEL SECURITY")
            connection.execute("DROP POLICY another ON events")
    assert seen == {"schema records", "schema events"}
    assert owner.verify().ok
