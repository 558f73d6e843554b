"""A kept store of each schema is read, written and verified by this code. ``keep_store.py`` makes one."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from keepward import Actor, Memory
from keepward.storage import file, sql, sqlite, verify
from keepward.storage.sql import Migration
from support.clock import SteppingClock

KEPT = Path(__file__).parent / "kept"
#: Schema numbers of which a store is kept: its dump, and its sealing key in hex.
SCHEMAS = sorted(int(each.stem) for each in KEPT.glob("*.sql"))


def laid(tmp_path: Path, schema: int) -> Path:
    """Write a kept store and what its machine knew of it; return its path."""
    path = tmp_path / "memory.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.executescript((KEPT / f"{schema:04}.sql").read_text())
        db.execute(f"PRAGMA application_id = {sqlite.APPLICATION_ID}")
        db.execute(f"PRAGMA user_version = {schema}")
        db.execute("PRAGMA journal_mode = WAL")
        (store_id,) = db.execute("SELECT value FROM meta WHERE name = 'store_id'").fetchone()
    file.id_file(path).write_text(store_id)
    home = tmp_path / "home" / "stores" / store_id
    (home / "heads").mkdir(parents=True)
    (home / "key").write_bytes(bytes.fromhex((KEPT / f"{schema:04}.key").read_text()))
    return path


def entered(tmp_path: Path) -> Memory:
    given = {"embedder": "hashed", "clock": SteppingClock(), "config_dir": tmp_path / "home"}
    return Memory.open(tmp_path / "memory.db", actor=Actor.operator("olga"), **given)


@pytest.mark.promise("D22")
def test_a_store_of_every_schema_exists() -> None:
    assert [each.number for each in sql.load_migrations()] == SCHEMAS


@pytest.mark.promise("D22")
@pytest.mark.parametrize("schema", SCHEMAS)
def test_a_stored_store_is_read_written_and_verified(tmp_path: Path, schema: int) -> None:
    laid(tmp_path, schema)
    with entered(tmp_path) as mem:
        assert {each.text for each in mem.list_memories()} == {
            "The ferry leaves the quay at seven",
            "Never deploy on Friday",
        }
        assert mem.recall("when does the ferry leave")[0].memory.text == "The ferry leaves the quay at seven"
        assert "Never deploy on Friday" in mem.snapshot().text
        assert [each.record.version for each in mem.history(mem.list_memories(tags=["boats"])[0].id)] == [1, 2]
        assert len(mem.pending()) == 1
        # Schema 1 did not store who wrote the present text, so it is the first author.
        assert {each.text_by == each.author and each.text_at == each.created_at for each in mem.list_memories()} == {
            True
        }
        assert mem.remember("The quay is closed in winter", tier="archival").ok
        assert mem.status()["schema"] == file.newest_schema()
        assert mem.verify().faults == ()


@pytest.mark.promise("D22")
def test_store_is_upgraded_once_and_preserves_its_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    laid(tmp_path, 1)
    number = len(sql.load_migrations()) + 1
    newer = Migration(
        number=number, name="harbours", sql="CREATE TABLE harbours (\n    name TEXT\n) STRICT;\n", sha256="0" * 64
    )
    steps = (*sql.load_migrations(), newer)
    for module in (file, sqlite, verify):
        monkeypatch.setattr(module, "load_migrations", lambda: steps)
    for _ in range(2):
        with entered(tmp_path) as mem:
            assert (mem.status()["schema"], len(mem.list_memories()), mem.verify().faults) == (number, 2, ())
    with closing(sqlite3.connect(tmp_path / "memory.db")) as db:
        assert db.execute("SELECT number, name FROM migrations ORDER BY number").fetchall()[-1] == (number, "harbours")
