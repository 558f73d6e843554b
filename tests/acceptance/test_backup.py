"""Backups of a live store, and stores that come from elsewhere: nothing erased comes back with them."""

from __future__ import annotations

import errno
import os
import shutil
import stat
from pathlib import Path
from typing import Any

import pytest
from outcomes import committed_record, refused

from keepward import Actor, Memory, durable
from keepward.errors import Conflict, InvalidInput, NotAdopted, NotAStore, StoreUnavailable, Tampered, Unauthorised
from keepward.keys import export_key, import_key
from support import tamper

OLGA = Actor.operator("olga")
TEXT = "Ana's private number is quokkablue"


def erased(owner: Memory, *ids: str) -> None:
    owner.erase(owner.plan_erase(ids).digest, ids)


def holding(folder: Path, word: str = "quokkablue") -> list[str]:
    forms = (word.encode(), word.encode("utf-16-le"))
    found = [each for each in sorted(folder.rglob("*")) if each.is_file()]
    return [file.name for file in found if any(form in file.read_bytes() for form in forms)]


@pytest.fixture
def number(owner: Memory) -> str:
    owner.remember("Deploys happen on Tuesdays", tier="archival")
    return committed_record(owner.remember(TEXT, tier="archival", reason="quokkablue it is")).id


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    return tmp_path / "copies" / "monday.db"


@pytest.fixture(autouse=True)
def folder(copy: Path) -> None:
    copy.parent.mkdir()


@pytest.fixture
def world(tmp_path: Path, clock: Any) -> dict[str, Any]:
    return {"actor": OLGA, "config_dir": tmp_path / "config", "clock": clock}


def test_backup_of_an_open_store_is_a_consistent_state(owner, number, copy, world, tmp_path):
    owner.backup(copy)
    owner.remember("Said after the backup", tier="archival")
    Memory.restore_backup(copy, tmp_path / "back.db", **world)
    with Memory.open(tmp_path / "back.db", embedder="hashed", **world) as back:
        assert (back.verify().faults, sorted(each.text for each in back.list_memories())) == (
            (),
            [TEXT, "Deploys happen on Tuesdays"],
        )


def test_a_backup_is_one_file_for_its_owner_alone(owner, number, copy):
    made = owner.backup(copy)
    files = {each.name: stat.S_IMODE(each.stat().st_mode) for each in copy.parent.iterdir()}
    assert (files, made.heads) == ({"monday.db": 0o600}, {"default": owner.status()["head"]})


def test_a_backup_replaces_no_file(owner, number, copy):
    copy.write_text("something else")
    with pytest.raises(InvalidInput):
        owner.backup(copy)
    assert copy.read_text() == "something else"


def test_only_the_owner_makes_and_restores_backups(owner, mem, copy, world, tmp_path):
    with pytest.raises(Unauthorised):
        mem.backup(copy)
    owner.backup(copy)
    with pytest.raises(Unauthorised):
        Memory.restore_backup(copy, tmp_path / "back.db", **world | {"actor": Actor.agent()})
    assert not (tmp_path / "back.db").exists()


@pytest.mark.promise("F14")
def test_an_erasure_reaches_the_backups_that_were_made_before(owner, number, copy, tmp_path):
    owner.backup(copy)
    assert "monday.db" in holding(tmp_path)
    erased(owner, number)
    assert holding(tmp_path) == []


@pytest.mark.promise("F14")
@pytest.mark.parametrize("number_of_error", [errno.EACCES, errno.EIO, errno.ESTALE, errno.ENOTCONN])
def test_a_backup_that_cannot_be_reached_is_named_in_the_certificate(owner, number, copy, monkeypatch, number_of_error):
    owner.backup(copy)
    other = copy.with_name("tuesday.db")
    owner.backup(other)
    stat = Path.stat

    def out_of_reach(self: Path, **options: Any) -> Any:
        if self == copy:
            raise OSError(number_of_error, os.strerror(number_of_error), str(self))
        return stat(self, **options)

    monkeypatch.setattr(Path, "stat", out_of_reach)
    erased(owner, number)
    states = [each["state"] for each in owner.certificate(number)["cleaned"]["backups"]]
    assert states == [f"not reached: {os.strerror(number_of_error)}", "cleaned: 2 places"]


@pytest.mark.promise("F14")
@pytest.mark.parametrize(
    "place",
    [
        "machine.trust_store.FileErasures.add",
        "machine.trust_store.FileErasures.entries",
        "machine.blob_files.FileBlobs.locked",
        "storage.sqlite.SqliteDatabase.scrub",
    ],
)
def test_the_next_opening_finishes_an_erasure_whose_paths_failed(
    owner, number, copy, tmp_path, monkeypatch, place, world, path
):
    owner.backup(copy)
    owner.put_blob(b"a chart")

    def fail(*_: Any, **__: Any) -> Any:
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patch:
        patch.setattr(f"keepward.{place}", fail)
        erased(owner, number)
        assert owner.get(number).status.value == "erased"
        assert owner.certificate(number)["cleaned"]["file_and_log"].startswith("not yet")
    owner.close()
    with Memory.open(path, embedder=None, **world) as again:
        assert not again.certificate(number)["cleaned"]["file_and_log"].startswith("not yet")
    assert holding(tmp_path) == []


@pytest.mark.promise("F14", "T12")
def test_restored_old_backup_lacks_everything_erased_since(owner, number, copy, world, tmp_path):
    owner.backup(copy)
    away = tmp_path / "away.db"
    copy.rename(away)
    erased(owner, number)
    away.rename(copy)
    made = Memory.restore_backup(copy, tmp_path / "back.db", **world)
    copy.unlink()
    with Memory.open(tmp_path / "back.db", embedder="hashed", **world) as back:
        assert (made.erased, back.verify().faults, back.get(number).status.value) == (2, (), "erased")
        assert refused(back.remember(TEXT, tier="archival")) == {"erased"}
    assert holding(tmp_path) == []


def test_backup_into_a_missing_folder_names_the_folder(owner, tmp_path):
    target = tmp_path / "missing" / "monday.db"
    with pytest.raises(StoreUnavailable) as failure:
        owner.backup(target)
    assert str(failure.value) == f"cannot write {target}: No such file or directory"


def test_unwritable_folder_of_a_new_store_is_named(path, tmp_path, monkeypatch):
    def refuse(file: Path) -> Any:
        raise PermissionError(13, "Permission denied", str(file))

    path.parent.mkdir()
    monkeypatch.setattr(durable, "new_file", refuse)
    with pytest.raises(StoreUnavailable, match=f"may not write the folder {path.parent}"):
        Memory.open(path, actor=OLGA, config_dir=tmp_path / "config")


def lost(tmp_path: Path) -> dict[str, Any]:
    """Another home, which knows nothing of the store."""
    return {"actor": OLGA, "config_dir": tmp_path / "other"}


def test_restore_warns_where_the_list_of_erasures_was_lost(owner, number, copy, tmp_path):
    owner.backup(copy)
    copy.rename(tmp_path / "away.db")
    erased(owner, number)
    made = Memory.restore_backup(tmp_path / "away.db", tmp_path / "back.db", **lost(tmp_path))
    assert (made.erased, "may be back" in made.warning, "keepward key import" in made.warning) == (0, True, True)


def test_restored_store_without_its_key_here_is_used_only_after_adoption(owner, copy, clock, tmp_path):
    elsewhere = lost(tmp_path) | {"clock": clock}
    committed_record(owner.remember("Mallory likes long answers", tier="core", key="human"))
    token = owner.create_token("mallory", rights="owner").secret
    owner.backup(copy)
    owner.close()
    made = Memory.restore_backup(copy, tmp_path / "back.db", **elsewhere)
    with Memory.open(tmp_path / "back.db", embedder="hashed", **elsewhere) as back:
        with pytest.raises(NotAdopted):
            back.context("hello")
        plan = back.plan_adopt()
        assert (plan.foreign, [each.text for each in plan.core], "keepward adopt" in made.warning) == (
            True,
            ["Mallory likes long answers"],
            True,
        )
        back.adopt(plan.digest)
        assert back.verify().faults == ()
    with pytest.raises(Unauthorised):
        Memory.open(tmp_path / "back.db", token=token, config_dir=elsewhere["config_dir"])


@pytest.mark.promise("T12")
def test_erased_content_stays_erased_where_the_list_was_imported(owner, number, copy, tmp_path):
    owner.backup(copy)
    away = tmp_path / "away.db"
    copy.rename(away)
    erased(owner, number)
    export_key(owner, tmp_path / "home.key", "a long passphrase", config_dir=tmp_path / "config")
    owner.close()
    shutil.rmtree(tmp_path / "config")
    import_key(tmp_path / "home.key", "a long passphrase", config_dir=tmp_path / "other")
    made = Memory.restore_backup(away, tmp_path / "back.db", **lost(tmp_path))
    away.unlink()
    with Memory.open(tmp_path / "back.db", embedder="hashed", **lost(tmp_path)) as back:
        assert (made.erased, made.warning, back.get(number).status.value) == (2, "", "erased")
        assert refused(back.remember(TEXT, tier="archival")) == {"erased"}
    assert holding(tmp_path) == []


def test_doctor_reports_a_lost_erasure_list_and_adopt_recreates_it(owner, number, copy, world, path, tmp_path):
    def check(mem: Memory) -> Any:
        return next(each for each in mem.doctor() if each.name == "erasures")

    owner.backup(copy)
    shutil.move(copy, tmp_path / "away.db")
    erased(owner, number)
    assert check(owner).ok
    owner.close()
    (tmp_path / "config" / "erasures" / "list.jsonl").unlink()
    with Memory.open(path, embedder="hashed", **world) as back:
        before = check(back)
        assert (before.ok, "keepward adopt" in before.remedy, "not on this machine's list: 1" in before.detail) == (
            False,
            True,
            True,
        )
        back.adopt(back.plan_adopt().digest)
        assert check(back).ok
    made = Memory.restore_backup(tmp_path / "away.db", tmp_path / "back.db", **world)
    assert made.erased == 2


def test_restored_backup_loses_versions_that_copied_erased_text(owner, copy, world, tmp_path):
    living = committed_record(owner.remember(TEXT, tier="archival", scope="/agents/orion")).id
    owner.revise(living, "Orion keeps no numbers", reason="tidied")
    owner.backup(copy)
    away = tmp_path / "away.db"
    copy.rename(away)
    erased(owner, committed_record(owner.remember(TEXT, tier="archival")).id)
    away.rename(copy)
    Memory.restore_backup(copy, tmp_path / "back.db", **world)
    copy.unlink()
    with Memory.open(tmp_path / "back.db", embedder="hashed", **world) as back:
        done = back.rollback("2")
        assert (
            back.get(living).text,
            [reason.code for reason in done.reasons],
            done.conflicts,
            back.verify().faults,
        ) == (
            "Orion keeps no numbers",
            ["erased"],
            (),
            (),
        )
    assert holding(tmp_path) == []


def test_backup_made_after_an_erasure_is_restored_unchanged(owner, number, copy, world, tmp_path):
    erased(owner, number)
    owner.backup(copy)
    assert Memory.restore_backup(copy, tmp_path / "back.db", **world).erased == 0


def test_where_the_original_lives_on_both_stores_hold(owner, number, copy, world, tmp_path):
    owner.backup(copy)
    made = Memory.restore_backup(copy, tmp_path / "back.db", **world)
    with Memory.open(tmp_path / "back.db", embedder="hashed", **world) as back:
        back.remember("Only in the copy", tier="archival")
        owner.remember("Only in the original", tier="archival")
        assert (made.separate, back.verify().faults, owner.verify().faults) == (True, (), ())


def test_backup_replaces_a_lost_store(owner, number, copy, world, path):
    owner.backup(copy)
    owner.remember("Lost with the disk", tier="archival")
    owner.close()
    for file in path.parent.glob("memory.db*"):
        if not file.name.endswith(".id"):
            file.unlink()
    made = Memory.restore_backup(copy, path, **world)
    with Memory.open(path, embedder="hashed", **world) as back:
        assert (made.separate, back.verify().faults, len(back.list_memories())) == (False, (), 2)


def test_a_backup_is_not_restored_over_a_store(owner, number, copy, world, path):
    owner.backup(copy)
    with pytest.raises(InvalidInput):
        Memory.restore_backup(copy, path, **world)


def test_backup_is_not_restored_next_to_an_orphaned_log(owner, number, copy, world, tmp_path):
    owner.backup(copy)
    (tmp_path / "back.db-wal").write_bytes(b"frames")
    with pytest.raises(InvalidInput, match=r"back\.db-wal is there"):
        Memory.restore_backup(copy, tmp_path / "back.db", **world)
    assert not (tmp_path / "back.db").exists()


def test_a_backup_whose_journal_was_changed_is_not_restored(owner, number, copy, world, tmp_path):
    owner.backup(copy)
    tamper.edit(copy, "events", "payload = CAST(replace(CAST(payload AS TEXT), 'Tuesdays', 'Saturday') AS BLOB)")
    with pytest.raises(Tampered):
        Memory.restore_backup(copy, tmp_path / "back.db", **world)
    assert not list(tmp_path.glob("*back.db*"))


def test_a_backup_does_not_replace_another_store(owner, number, copy, world, opened, tmp_path):
    owner.backup(copy)
    with opened("else", actor=OLGA):
        pass
    (tmp_path / "else.db").unlink()
    with pytest.raises(NotAStore):
        Memory.restore_backup(copy, tmp_path / "else.db", **world)


def test_manually_restored_older_copy_is_refused_until_the_owner_accepts(owner, number, path, world):
    older = path.with_name("older")
    owner.backup(older)
    owner.remember("Said later", tier="archival")
    owner.close()
    for file in path.parent.glob("memory.db-*"):
        file.unlink()
    shutil.copy(older, path)
    with Memory.open(path, embedder="hashed", **world) as back:
        with pytest.raises(Tampered):
            back.list_memories()
        plan = back.plan_adopt()
        back.adopt(plan.digest)
        assert ({fault.check for fault in plan.faults}, back.verify().faults, len(back.list_memories())) == (
            {"anchor"},
            (),
            2,
        )


@pytest.mark.promise("T12")
def test_accepting_an_older_copy_repeats_later_erasures(owner, number, path, world, tmp_path):
    older = tmp_path / "older.db"
    shutil.copy(path, older)
    shutil.copy(f"{path}-wal", f"{older}-wal")
    erased(owner, number)
    owner.close()
    older.rename(path)
    Path(f"{older}-wal").rename(f"{path}-wal")
    with Memory.open(path, embedder="hashed", **world) as back:
        back.adopt(back.plan_adopt().digest)
        assert (back.verify().faults, back.get(number).status.value, holding(tmp_path)) == ((), "erased", [])


def test_accepting_is_bound_to_the_state_that_was_shown(owner, number):
    plan = owner.plan_adopt()
    owner.remember("Said in between", tier="archival")
    with pytest.raises(Conflict):
        owner.adopt(plan.digest)


# --- whether backups are fresh


def backups(memory: Memory) -> dict[str, Any]:
    return memory.status()["backups"]


def backup_check(memory: Memory) -> Any:
    return next(each for each in memory.doctor() if each.name == "backups")


def test_status_says_when_the_newest_backup_was_made_where_and_of_what(owner, number, copy, clock):
    assert (backups(owner)["state"], backups(owner)["at"]) == ("none", None)
    owner.backup(copy)
    made = clock.now().isoformat()
    clock.move(hours=5)
    owner.remember("Said after the backup", tier="archival")
    found, commits = backups(owner), owner.status()["commits"]
    assert (found["state"], found["at"], found["path"], found["commits"]) == ("fresh", made, str(copy), commits - 1)


def test_doctor_warns_of_an_old_backup_only_if_something_was_written_since(owner, number, copy, clock):
    owner.backup(copy)
    clock.move(days=8)
    assert not backup_check(owner).warning
    owner.remember("Said after the backup", tier="archival")
    assert backup_check(owner).warning
    assert str(copy) in backup_check(owner).detail


def test_doctor_warns_if_a_week_old_store_has_no_backup(owner, number, clock):
    assert not backup_check(owner).warning
    clock.move(days=8)
    assert backup_check(owner).warning


def test_a_backup_whose_file_is_gone_does_not_count(owner, number, copy, clock):
    owner.backup(copy)
    copy.unlink()
    assert (backups(owner)["state"], backups(owner)["missing"]) == ("none", 1)


def test_a_restored_store_does_not_claim_the_backups_of_its_original(owner, number, copy, world, tmp_path):
    owner.backup(copy)
    Memory.restore_backup(copy, tmp_path / "back.db", **world)
    with Memory.open(tmp_path / "back.db", embedder="hashed", **world) as back:
        assert (backups(back)["state"], backups(back)["path"]) == ("none", None)
    assert backups(owner)["path"] == str(copy)


def test_a_backup_that_goes_on_after_the_restored_state_does_not_count(owner, number, copy, world, tmp_path):
    place = Path(owner.path)
    owner.backup(copy)
    owner.remember("Said after the first backup", tier="archival")
    owner.backup(copy.with_name("tuesday.db"))
    owner.close()
    for each in place.parent.glob(f"{place.name}*"):
        each.unlink() if each.is_file() else shutil.rmtree(each)
    Memory.restore_backup(copy, place, **world)
    with Memory.open(place, embedder="hashed", **world) as back:
        back.remember("Another history", tier="archival")
        assert backups(back)["path"] == str(copy)


def test_only_the_owner_sees_where_a_backup_is(owner, mem, number, copy):
    owner.backup(copy)
    assert (backups(mem)["state"], backups(mem)["path"]) == ("fresh", None)
