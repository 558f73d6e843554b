"""A store that is cut or overwritten gives a new one its valid beginning, and names what is lost."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from outcomes import committed_record

from keepward import Actor, InvalidInput, KeepwardError, Memory, NotAStore, Unauthorised
from keepward.cli.main import main
from keepward.storage.damaged import MAX_TRIES
from support import tamper

pytestmark = pytest.mark.slow

OLGA = Actor.operator("olga")
PAGE = 4_096


@pytest.fixture
def full(owner: Memory, mem: Memory) -> dict[str, str]:
    """A closed store of 120 commits: texts by id, with versions, a key, a core block and another tenant."""
    for n in range(110):
        committed_record(
            mem.remember(f"The ferry number {n} crosses the sound at {n} past six", tier="archival", key=f"f{n}")
        )
    committed_record(owner.remember("Never deploy on Friday", tier="core", key="mission"))
    committed_record(
        mem.revise(mem.list_memories(key="f3")[0].id, text="The ferry number 3 is in the dock", reason="news")
    )
    mem.forget(mem.list_memories(key="f4")[0].id, reason="sold")
    committed_record(mem.remember("The chart is in the drawer", tier="archival", blob=mem.put_blob(b"a chart").ref))
    committed_record(owner.at(tenant="elsewhere").remember("The lamp is on the shelf", tier="archival"))
    texts = {each.id: each.text for each in owner.list_memories(limit=None)}
    owner.close()
    return texts


@pytest.fixture
def rescue(path: Path, tmp_path: Path, clock: Any, full: dict[str, str]) -> Callable[..., Any]:
    def call(broken: Path = path, new: Path = tmp_path / "new.db", **options: Any) -> Any:
        given = {"actor": OLGA, "config_dir": tmp_path / "config", "clock": clock, **options}
        return Memory.recover(broken, new, **given)

    return call


@pytest.fixture
def reopen(tmp_path: Path, clock: Any) -> Callable[..., Memory]:
    def call(file: Path = tmp_path / "new.db") -> Memory:
        return Memory.open(file, actor=OLGA, embedder=None, clock=clock, config_dir=tmp_path / "config")

    return call


def digest_of(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def cut(path: Path) -> None:
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size - 1)


def overwrite(path: Path, page: int) -> None:
    with path.open("r+b") as file:
        file.seek((page - 1) * PAGE)
        file.write(b"\x5a" * PAGE)


def pages_of(path: Path, table: str) -> list[int]:
    """Return the leaf pages of a table that hold rows, in the order of the rows."""
    with closing(sqlite3.connect(path)) as db:
        try:
            found = db.execute(
                "SELECT pageno FROM dbstat WHERE name = ? AND pagetype = 'leaf' ORDER BY path", (table,)
            ).fetchall()
        except sqlite3.OperationalError:
            pytest.skip("this SQLite does not tell of pages")
    return [page for (page,) in found]


def test_a_complete_store_is_copied_commit_by_commit(rescue: Any, reopen: Any, full: dict[str, str]) -> None:
    made = rescue()
    assert made.whole, made
    with reopen() as again:
        assert {each.id: each.text for each in again.list_memories(limit=None)} == full
        assert again.verify().faults == ()
        assert again.at(tenant="elsewhere").list_memories()[0].text == "The lamp is on the shelf"
        assert again.recall("drawer")[0].memory.text == "The chart is in the drawer"


def test_every_commit_is_copied_after_an_erasure(rescue: Any, reopen: Any, path: Path, full: dict[str, str]) -> None:
    first = next(iter(full))
    with reopen(path) as owner:
        owner.revise(first, text="The ferry rests", reason="quokkablue has no crew")
        owner.erase(owner.plan_erase(first).digest, first)
        before = (owner.status()["head"], len(owner.list_memories(limit=None)))
        assert owner.verify().faults == ()
    made = rescue()
    assert made.whole, made
    with reopen() as again:
        assert (again.status()["head"], len(again.list_memories(limit=None))) == before
        assert (again.verify().faults, again.get(first).status.value) == ((), "erased")


def test_truncated_file_is_refused_with_the_recovery_command(path: Path, reopen: Any, full: Any) -> None:
    cut(path)
    with pytest.raises(NotAStore, match="keepward store recover"):
        reopen(path)


def test_recovery_of_a_truncated_file_names_what_is_lost(
    path: Path, rescue: Any, reopen: Any, full: dict[str, str]
) -> None:
    cut(path)
    before = digest_of(path)
    made = rescue()
    with reopen() as again:
        found = {each.id: each.text for each in again.list_memories(limit=None)}
        assert again.verify().faults == ()
    lost = {name for each in made.tenants for name in (*each.lost, *each.outdated)}
    assert found.keys() | lost >= full.keys()
    assert digest_of(path) == before


@pytest.mark.parametrize("table", ["commits", "events", "records", "documents"])
def test_one_overwritten_page_loses_its_rows_and_says_so(
    path: Path, rescue: Any, reopen: Any, full: dict[str, str], table: str
) -> None:
    pages = pages_of(path, table)
    overwrite(path, pages[len(pages) // 2])
    made = rescue()
    with reopen() as again:
        found = {each.id: each.text for each in again.list_memories(limit=None)}
        assert again.verify().faults == ()
    told = {name for each in made.tenants for name in (*each.lost, *each.outdated)}
    assert full.keys() - found.keys() <= told
    assert all(full[name] == text for name, text in found.items() if name not in told)
    # Records and documents are computed, or lie beside the journal.
    assert len(found) >= (len(full) if table in {"records", "documents"} else 10)


def test_forged_row_numbers_end_the_search_and_are_reported(path: Path, rescue: Any, full: dict[str, str]) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.execute("UPDATE events SET rowid = rowid + ? WHERE rowid > 1", (1 << 40,))
        db.commit()
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    overwrite(path, pages_of(path, "events")[0])
    made = rescue()
    assert [each.rpartition(" to ")[0] for each in made.skipped] == [f"events, rows {MAX_TRIES + 1}"]
    assert not made.whole


def test_store_without_a_first_page_is_refused_with_what_helps(path: Path, rescue: Any, reopen: Any, full: Any) -> None:
    overwrite(path, 1)
    before = digest_of(path)
    with pytest.raises(KeepwardError, match="keepward store recover"):
        reopen(path)
    with pytest.raises(NotAStore, match="restore a backup"):
        rescue()
    assert digest_of(path) == before


def test_recovered_head_and_ids_match_up_to_the_lost_commit(path: Path, rescue: Any, reopen: Any, full: Any) -> None:
    with reopen(path) as old:
        names = {view.commit.seq: view.commit.hash for view in old.log(limit=500)}
    tamper.delete(path, "commits", where="tenant = 'default' AND seq = 60")
    (made,) = [each for each in rescue().tenants if each.tenant == "default"]
    assert (made.commits, made.lost_commits, made.head) == (59, 55, f"59:{names[59].hex()[:16]}")
    with reopen() as again:
        assert {view.commit.seq: view.commit.hash for view in again.log(limit=500)} == dict(sorted(names.items())[:59])
        found = {each.id for each in again.list_memories(limit=None)}
    # Two of the first 59 were revised or retired after it.
    assert (len(found), len(made.outdated)) == (59, 2)
    assert {*made.lost} == full.keys() - found


def test_a_memory_whose_newest_version_is_lost_is_named(path: Path, rescue: Any, reopen: Any, full: Any) -> None:
    ((sold,),) = tamper.rows(path, "SELECT memory_id FROM events WHERE op = 'retire'")
    tamper.run(path, tamper.RETIRED)
    (made,) = [each for each in rescue().tenants if each.tenant == "default"]
    assert made.outdated == (sold,)
    with reopen() as again:
        assert [each.record.version for each in again.history(sold)] == [1]


def test_an_edited_text_is_lost_and_never_copied(path: Path, rescue: Any, reopen: Any, full: Any) -> None:
    query = "SELECT memory_id, payload FROM events WHERE seq = 50 AND tenant = 'default'"
    ((name, payload),) = tamper.rows(path, query)
    tamper.edit(path, "events", "payload = ?", "memory_id = ?", (payload.replace(b"ferry", b"fairy"), name))
    made = rescue()
    with reopen() as again:
        assert "fairy" not in " ".join(each.text for each in again.list_memories(limit=None))
    assert name in {lost for each in made.tenants for lost in each.lost}


def test_without_the_key_hashes_alone_speak(path: Path, rescue: Any, tmp_path: Path, full: Any) -> None:
    made = rescue(config_dir=tmp_path / "another")
    assert (made.sealed, made.whole) == (False, True)


def test_what_is_no_store_leaves_nothing_behind(tmp_path: Path, rescue: Any) -> None:
    (tmp_path / "notes.txt").write_text("nothing of the kind" * 500)
    with pytest.raises(NotAStore, match="nothing of"):
        rescue(tmp_path / "notes.txt")
    assert sorted(each.name for each in tmp_path.iterdir() if "new" in each.name) == []


def test_database_without_our_tables_is_refused(tmp_path: Path, rescue: Any) -> None:
    with closing(sqlite3.connect(tmp_path / "other.db")) as db:
        db.execute("CREATE TABLE notes (text)")
    with pytest.raises(NotAStore, match="nothing of"):
        rescue(tmp_path / "other.db")


def test_a_store_that_is_there_is_not_written_over(path: Path, rescue: Any) -> None:
    with pytest.raises(InvalidInput, match="is there already"):
        rescue(new=path)


def test_it_takes_the_owner(rescue: Any) -> None:
    with pytest.raises(Unauthorised):
        rescue(actor=Actor.agent())


def test_the_command_names_what_is_lost_and_ends_with_one(
    path: Path, tmp_path: Path, full: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("KEEPWARD_HOME", str(tmp_path / "config"))
    assert main(["store", "recover", str(path), str(tmp_path / "first.db"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["whole"] is True
    overwrite(path, pages_of(path, "events")[5])
    assert main(["store", "recover", str(path), str(tmp_path / "second.db")]) == 1
    said = capsys.readouterr()
    assert ("lost" in said.out, "commits hold" in said.err) == (True, True)


def test_command_on_a_damaged_file_exits_with_8(
    path: Path, tmp_path: Path, full: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("KEEPWARD_HOME", str(tmp_path / "config"))
    for page in pages_of(path, "records"):
        overwrite(path, page)
    code = main(["list", "--db", str(path), "--embedder", "none"])
    assert (code, "store recover" in capsys.readouterr().err) == (8, True)
