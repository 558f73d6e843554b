"""Opening a store: what is made, what is refused, and what is left untouched."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing, suppress

import pytest
from filled import TENANT, opened

from keepward.errors import InvalidInput, NewerSchema, NotAStore, StoreUnavailable, Tampered
from keepward.interchange import parsing
from keepward.machine.blob_files import folder_of
from keepward.machine.recovery import read_damaged
from keepward.machine.trust_store import TrustStore
from keepward.storage.driver import translate_error
from keepward.storage.file import id_file
from keepward.storage.store import open_store
from support import tamper
from support.factories import RecordFactory


def import_file(path, _):
    with parsing.open_source(path):
        pass


def read_rows(path, aside):
    read_damaged(path, aside.parent)


def test_a_new_store_can_be_read_by_its_user_alone(tmp_path):
    with open_store(tmp_path / "m.db", anchor=TrustStore(tmp_path / "config")) as store, store.write():
        modes = {each.name: each.stat().st_mode & 0o777 for each in tmp_path.iterdir() if each.is_file()}
    assert modes == dict.fromkeys(("m.db", "m.db-wal", "m.db-shm", "m.db.id"), 0o600)


@pytest.mark.parametrize("path", ["typo/m.db", "no/such/m.db"])
def test_a_folder_that_is_not_there_is_not_made_up(tmp_path, path):
    with pytest.raises(StoreUnavailable, match="check the path"):
        open_store(tmp_path / path)
    assert list(tmp_path.iterdir()) == []


def test_a_store_whose_file_is_missing_is_not_recreated(path):
    path.unlink()
    with pytest.raises(NotAStore, match="still next to it"):
        opened(path)


def test_a_missing_id_file_is_written_again(path):
    beside = path.with_name("m.db.id")
    before = beside.read_text()
    beside.unlink()
    opened(path).close()
    assert beside.read_text() == before


def test_a_foreign_file_is_left_untouched(tmp_path):
    with closing(sqlite3.connect(tmp_path / "m.db")) as foreign:
        foreign.execute("PRAGMA journal_mode=WAL")
        foreign.execute("CREATE TABLE theirs (x)")
    before = (tmp_path / "m.db").read_bytes(), sorted(tmp_path.iterdir())
    with pytest.raises(NotAStore, match="another program"):
        open_store(tmp_path / "m.db")
    assert ((tmp_path / "m.db").read_bytes(), sorted(tmp_path.iterdir())) == before


def test_a_newer_schema_is_left_untouched(path):
    tamper.run(path, "PRAGMA user_version=99")
    before = path.read_bytes()
    with pytest.raises(NewerSchema):
        opened(path)
    assert path.read_bytes() == before


def test_a_folder_instead_of_the_file_is_refused(tmp_path):
    with pytest.raises(NotAStore):
        open_store(tmp_path)


@pytest.mark.promise("T25")
def test_writes_stay_when_another_process_closes_a_twice_opened_store(path):
    look = "import sqlite3, sys; db = sqlite3.connect(sys.argv[1]); print(*db.execute('SELECT max(seq) FROM commits'))"
    command, seen = [sys.executable, "-Sc", f"{look}; db.close()", str(path)], ""
    with opened(path) as store:
        for name in ("before", "after"):
            make = RecordFactory()
            with store.write() as writer:
                writer.append(TENANT, make.stage(make.record(name, id=f"m-{name}"), commit_id=f"c-{name}"))
            opened(path).close()
            # The last one to close a file puts its log away, unless it finds the locks of another process.
            seen = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert seen == "(6,)\n"


@pytest.mark.promise("T25")
@pytest.mark.parametrize("link", [os.link, os.symlink, None])
@pytest.mark.parametrize("read", [import_file, read_rows], ids=["import", "rescue"])
def test_file_of_an_open_store_is_read_by_nothing_else(path, tmp_path, read, link):
    named = path if link is None else tmp_path / "linked.db"
    if link is not None:
        link(path, named)
    with opened(path), pytest.raises(InvalidInput, match=f"{named.name} is a store that is open"):
        read(named, tmp_path / "aside")
    read(named, tmp_path / "aside")


def test_log_of_a_killed_process_is_recovered_through_a_link(path, tmp_path):
    make, link = RecordFactory(), tmp_path / "linked" / "l.db"
    link.parent.mkdir()
    with opened(path) as store:
        with store.write() as writer:
            writer.append(TENANT, make.stage(make.record("tea", id="m-tea"), commit_id="c-tea"))
        for end in ("", "-wal"):
            shutil.copyfile(f"{path}{end}", tmp_path / f"killed.db{end}")
    link.symlink_to(tmp_path / "killed.db")
    _, tables, _ = read_damaged(link, tmp_path)
    assert max(row[1] for row in tables["commits"]) == 5


@pytest.mark.promise("T25")
@pytest.mark.parametrize("empty", [False, True])
def test_log_left_by_a_store_is_not_read_into_another(path, empty):
    with opened(path) as store:
        make = RecordFactory()
        with store.write() as writer:
            writer.append(TENANT, make.stage(make.record("tea", id="m-tea"), commit_id="c-tea"))
        log = path.with_name(f"{path.name}-wal").read_bytes()
    path.unlink()
    path.with_name(f"{path.name}.id").unlink()
    path.with_name(f"{path.name}-wal").write_bytes(log)
    if empty:
        path.touch()
    with pytest.raises(NotAStore, match="-wal, which has the last changes to it, is still next to it"):
        open_store(path)


@pytest.mark.promise("T25")
@pytest.mark.parametrize("other", [False, True], ids=["moved", "replaced"])
def test_moved_store_file_is_not_written_until_it_returns(path, tmp_path, other):
    make, away = RecordFactory(), tmp_path / "away.db"
    with opened(path) as store:
        with store.write() as writer:
            writer.append(TENANT, make.stage(make.record("before", id="m-before"), commit_id="c-before"))
        path.rename(away)
        if other:
            path.touch()
        with pytest.raises(StoreUnavailable, match="was moved away"):
            store.head(TENANT)
        with pytest.raises(StoreUnavailable, match="was moved away"), store.write():
            pass
        away.replace(path)
        with store.write() as writer:
            assert writer.append(TENANT, make.stage(make.record("after", id="m-after"), commit_id="c-after")).seq == 6


def test_relative_path_names_the_same_store_in_another_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    make = RecordFactory()
    with open_store("n.db") as store:
        (tmp_path / "elsewhere").mkdir()
        monkeypatch.chdir(tmp_path / "elsewhere")
        with store.write() as writer:
            writer.append(TENANT, make.stage(make.record("tea", id="m-tea"), commit_id="c-tea"))
        assert store.head(TENANT).seq == 1


def test_write_after_a_broken_connection_uses_another(path):
    make = RecordFactory()
    with opened(path) as store:
        with pytest.raises(StoreUnavailable), store.write():
            store._database._writer.close()
        with store.write() as writer:
            assert writer.append(TENANT, make.stage(make.record("tea", id="m-tea"), commit_id="c-tea")).seq == 5


@pytest.mark.parametrize("place", ["file", ":memory:"])
def test_reader_ended_in_another_thread_blocks_no_writer(path, place):
    with open_store(path.with_name("n.db") if place == "file" else place) as store:
        make = RecordFactory()

        def write(name):
            with store.write() as writer:
                writer.append(TENANT, make.stage(make.record(name)))

        write("tea")
        reader = store.profiles(TENANT, after=0)
        beginning = threading.Thread(target=lambda: next(reader), daemon=True)
        beginning.start()
        beginning.join(20)
        # As the collector does it, errors and all.
        with suppress(RuntimeError):
            reader.close()
        writing = threading.Thread(target=write, args=("coffee",), daemon=True)
        writing.start()
        writing.join(10)
        assert not writing.is_alive()


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("SQLITE_BUSY_SNAPSHOT", StoreUnavailable),
        ("SQLITE_READONLY_DBMOVED", StoreUnavailable),
        ("SQLITE_FULL", StoreUnavailable),
        ("SQLITE_IOERR_WRITE", StoreUnavailable),
        ("SQLITE_CANTOPEN_ISDIR", StoreUnavailable),
        ("SQLITE_NOTADB", NotAStore),
        ("SQLITE_CORRUPT_INDEX", Tampered),
    ],
)
def test_every_driver_error_becomes_one_of_ours(name, error):
    fault = sqlite3.OperationalError("x")
    fault.sqlite_errorname = name
    assert type(translate_error(fault)) is error


def test_a_broken_store_from_elsewhere_is_not_adopted(path):
    shutil.rmtree(path.parent / "config")
    tamper.edit(path, "events", "op = 'x'", "seq = 1 AND n = 0")
    with opened(path) as store, pytest.raises(Tampered):
        store.adopt("it came from elsewhere")


def read(path):
    return open_store(path, anchor=TrustStore(path.parent / "config"), read_only=True)


@pytest.mark.promise("T25")
def test_read_only_opener_creates_no_sidecar_files(path):
    before = sorted(each.name for each in path.parent.iterdir())
    with read(path) as store:
        assert store.head(TENANT).seq == 4
        assert sorted(each.name for each in path.parent.iterdir()) == before


@pytest.mark.promise("T25")
@pytest.mark.parametrize("closed", [False, True])
def test_read_only_opener_sees_later_writes(path, closed):
    with read(path) as reader:
        assert reader.head(TENANT).seq == 4
        with closing(opened(path)) as store:
            with store.write() as writer:
                writer.append(TENANT, RecordFactory().stage(commit_id="c" * 8))
            if closed:
                store.close()
            assert reader.head(TENANT).seq == 5
        assert reader.head(TENANT).seq == 5


def test_read_during_a_foreign_write_is_not_trusted(path):
    with read(path) as reader, pytest.raises(StoreUnavailable, match="try again"), reader.read_snapshot(TENANT):
        with opened(path) as store, store.write() as writer:
            writer.append(TENANT, RecordFactory().stage(commit_id="c" * 8))
        reader.head(TENANT)


def test_a_link_that_leads_nowhere_is_called_that(tmp_path):
    (tmp_path / "m.db").symlink_to(tmp_path / "gone.db")
    with pytest.raises(StoreUnavailable, match="link to a file that is not there"):
        open_store(tmp_path / "m.db")


def test_sidecar_files_follow_the_target_of_a_link(path, tmp_path):
    link = tmp_path / "link.db"
    link.symlink_to(path)
    path.with_name("m.db.id").unlink()
    open_store(link, anchor=TrustStore(path.parent / "config")).close()
    assert path.with_name("m.db.id").exists()
    assert folder_of(link) == folder_of(path)


def refused_at_once(store):
    """Whether a brief write, begun in another thread, is over with an error within ten seconds."""
    faults = []

    def note():
        with pytest.raises(StoreUnavailable, match="locked") as fault, store.write(brief=True):
            pass
        faults.append(fault)

    thread = threading.Thread(target=note, daemon=True)
    thread.start()
    thread.join(10)
    return len(faults) == 1


def test_recording_a_read_does_not_wait_long_for_a_writer(path, monkeypatch):
    monkeypatch.setattr("keepward.storage.sqlite.BRIEF_LOCK_TIMEOUT_S", 0.02)
    with opened(path) as store, closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        refused = refused_at_once(store)
        other.execute("ROLLBACK")
        assert refused


def test_token_is_not_called_wrong_after_a_concurrent_adoption(path):
    with opened(path) as store:
        with opened(path) as other:
            other.adopt("it was meant")
        with pytest.raises(StoreUnavailable, match="open it again"):
            store.token_by_hash(bytes(32))


def test_log_grown_by_one_write_does_not_stay_long(path, monkeypatch):
    monkeypatch.setattr("keepward.storage.sqlite._WRITER_PRAGMAS", ("journal_size_limit=50000",))
    log = path.with_name("m.db-wal")
    with opened(path) as store:
        lengths = []
        for statement in ("CREATE TABLE long AS SELECT zeroblob(5000000)", "CREATE TABLE short (x)"):
            with store.write() as writer:
                writer._db.execute(statement)
            lengths.append(log.stat().st_size)
    assert (lengths[0] > 5_000_000, lengths[1] <= 50_000) == (True, True)


def test_a_pipe_in_place_of_the_id_file_is_not_waited_for(path):
    id_file(path).unlink(missing_ok=True)
    os.mkfifo(id_file(path))
    with pytest.raises(InvalidInput, match=r"m\.db\.id is no regular file"):
        opened(path)


class OutOfReach(TrustStore):
    """A folder of keys that this user may not enter."""

    def bind(self, store_id, place=None):
        raise PermissionError(13, "Permission denied", str(self._config))


@pytest.fixture(params=[TrustStore, OutOfReach])
def no_place(request, tmp_path):
    """An anchor whose folder cannot be made, or cannot be entered."""
    (tmp_path / "file").write_text("in the way")
    return request.param(tmp_path / "file" / "config")


def test_store_refused_for_its_key_location_is_created_later(tmp_path, no_place):
    with pytest.raises(StoreUnavailable, match=r"file/config.*set KEEPWARD_HOME"):
        open_store(tmp_path / "m.db", anchor=no_place)
    make, given = RecordFactory(), TrustStore(tmp_path / "config")
    with open_store(tmp_path / "m.db", anchor=given) as store, store.write() as writer:
        writer.append(TENANT, make.stage(make.record()))
    with open_store(tmp_path / "m.db", anchor=given) as store:
        assert (store.head(TENANT).seq, store.facts(TENANT, make.now)["sealed"]) == (1, True)


def test_unsealed_store_works_without_reachable_keys_and_says_so(tmp_path):
    make = RecordFactory()
    with open_store(tmp_path / "m.db") as store, store.write() as writer:
        writer.append(TENANT, make.stage(make.record()))
    with open_store(tmp_path / "m.db", anchor=OutOfReach(tmp_path)) as store:
        assert (store.head(TENANT).seq, store.facts(TENANT, make.now)["anchor"]) == (
            1,
            "unavailable: Permission denied",
        )


@pytest.mark.promise("T25")
def test_a_sealed_store_is_not_written_without_its_key(path):
    with open_store(path) as store, store.write() as writer, pytest.raises(StoreUnavailable, match="out of reach"):
        writer.append(TENANT, RecordFactory().stage())
    with opened(path) as store:
        assert store.head(TENANT).seq == 4


def test_unsealed_store_is_not_trusted_with_a_key(path):
    make = RecordFactory()
    tamper.edit(path, "meta", "value = ''", "name = 'sealed_by'")
    with open_store(path) as store, store.write() as writer:
        writer.append(TENANT, make.stage(make.record("unsealed", id="0" * 8), commit_id="c" * 8))
    with opened(path) as store, pytest.raises(Tampered, match="adopt"):
        store.head(TENANT)
