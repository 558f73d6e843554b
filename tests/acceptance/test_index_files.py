"""A process begins with the file of an index, and believes no file that is not of this state of this store."""

from __future__ import annotations

import logging
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from outcomes import committed_record

from keepward import Actor, Memory
from keepward.embedding.hashed import HashedEmbedder
from keepward.errors import StoreUnavailable
from keepward.retrieval.tokenizer import term_hash
from keepward.services.search import index_cache
from keepward.storage.store import EventStore

ENTRIES = 40


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let small indexes have files."""
    monkeypatch.setattr(index_cache, "MIN_STORED", 10)
    monkeypatch.setattr(index_cache, "MAX_CHANGES", 5)


@pytest.fixture
def anew(path: Path, tmp_path: Path, clock: Any) -> Iterator[Callable[..., Memory]]:
    """Opens the store once more, as another process would."""
    with ExitStack() as handles:
        given = {"embedder": "hashed", "clock": clock, "config_dir": tmp_path / "config"}
        yield lambda **more: handles.enter_context(Memory.open(path, actor=Actor.operator("olga"), **{**given, **more}))


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The ids of the memories that are read to build an index."""
    found: list[str] = []
    profiles = EventStore.profiles

    def counted(self: EventStore, tenant: str, **given: Any) -> Any:
        for name, row in profiles(self, tenant, **given):
            found.append(name)
            yield name, row

    monkeypatch.setattr(EventStore, "profiles", counted)
    return found


def notes(first: int, count: int) -> list[dict[str, Any]]:
    words = ("harbour", "lamp", "ferry", "crane", "quay", "oven", "garden")
    return [
        {"text": f"The {words[n % 7]} of case w{n} is near the {words[n % 5]}", "tier": "archival"}
        for n in range(first, first + count)
    ]


@pytest.fixture
def filled(owner: Memory) -> Memory:
    """The owner's handle, whose index has a file."""
    owner.remember_many(notes(0, ENTRIES))
    owner.recall("ferry")
    return owner


def files(path: Path) -> list[Path]:
    return sorted(Path(f"{path}.index").iterdir())


def answers(mem: Memory) -> list[Any]:
    asked = ("ferry", "the lamp of case w8", "who is near the quay?")
    return [[(hit.memory.id, hit.score, hit.parts, hit.weak) for hit in mem.recall(text).hits] for text in asked]


def fresh(mem: Memory) -> list[Any]:
    """Return the answers of an index that is built from the store."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(EventStore, "index_files", lambda _: None)
        mem._engine.indexes.clear()
        found = answers(mem)
    mem._engine.indexes.clear()
    return found


def test_the_next_process_reads_only_what_has_changed_since(
    filled: Memory, anew: Callable[..., Memory], read: list[str]
) -> None:
    changed = committed_record(filled.remember("The tide table is on the shelf", tier="archival")).id
    other = anew()
    found = answers(other)
    assert (set(read), found) == ({changed}, fresh(anew()))


def test_a_small_index_has_no_file(owner: Memory, path: Path) -> None:
    owner.remember_many(notes(0, 5))
    owner.recall("ferry")
    assert not Path(f"{path}.index").exists()


def test_an_index_that_has_changed_enough_is_stored_again(filled: Memory, path: Path) -> None:
    (first,) = files(path)
    filled.remember_many(notes(100, 7))
    filled.recall("ferry")
    (second,) = files(path)
    assert first.name < second.name
    assert answers(filled) == fresh(filled)


def test_only_the_owner_of_a_file_can_read_it(filled: Memory, path: Path) -> None:
    assert {each.stat().st_mode & 0o777 for each in files(path)} == {0o600}
    assert files(path)[0].parent.stat().st_mode & 0o777 == 0o700


def bend(file: Path) -> None:
    """Change every block."""
    content = bytearray(file.read_bytes())
    content[16::256] = bytes(byte ^ 0x5A for byte in content[16::256])
    file.write_bytes(content)


def bend_arrays(file: Path) -> None:
    """Change the arrays and leave the sealed end as it is."""
    content = bytearray(file.read_bytes())
    end = content.index(b'{"store"') - 20_000
    content[0:end:64] = bytes(byte ^ 0x5A for byte in content[0:end:64])
    file.write_bytes(content)


def cut(file: Path) -> None:
    os.truncate(file, file.stat().st_size // 2)


def empty(file: Path) -> None:
    file.write_bytes(b"")


def shorten(file: Path) -> None:
    file.write_bytes(b"keepward index 1")


@pytest.mark.promise("F4")
@pytest.mark.parametrize("change", [bend, bend_arrays, cut, empty, shorten])
def test_a_changed_file_is_dropped_and_built_again(
    filled: Memory, path: Path, anew: Callable[..., Memory], caplog: pytest.LogCaptureFixture, change: Any
) -> None:
    expected = answers(filled)
    (file,) = files(path)
    change(file)
    with caplog.at_level(logging.WARNING):
        assert answers(anew()) == expected
    assert "was dropped" in caplog.text
    assert file not in files(path)


def test_a_link_is_not_followed(filled: Memory, path: Path, anew: Callable[..., Memory], read: list[str]) -> None:
    (file,) = files(path)
    other = file.with_suffix(".aside")
    file.rename(other)
    file.symlink_to(other)
    anew().recall("ferry")
    assert len(read) >= ENTRIES


def test_an_erasure_succeeds_although_its_index_file_cannot_be_written(
    filled: Memory, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import keepward.storage.index_files as module

    def broken(*_: Any) -> Any:
        raise StoreUnavailable("the disk gave an error")

    victim = filled.recall("ferry").hits[0].memory.id
    plan = filled.plan_erase([victim])
    monkeypatch.setattr(module, "_write_parts", broken)
    filled.erase(plan.digest, [victim])
    assert files(path) == []


def test_a_file_that_is_changed_while_it_is_open_is_not_believed(filled: Memory, path: Path) -> None:
    expected = answers(filled)
    bend_arrays(files(path)[0])
    assert answers(filled) == expected


def test_a_file_of_another_tenant_is_not_believed(filled: Memory, path: Path, anew: Callable[..., Memory]) -> None:
    other = anew(tenant="bob")
    other.remember_many([{**item, "text": f"Bob: {item['text']}"} for item in notes(0, 20)])
    expected = answers(other)
    (mine,) = [each for each in files(path) if each.read_bytes().count(b'"tenant": "default"')]
    (his,) = [each for each in files(path) if each != mine]
    shutil.copy(mine, his)
    assert answers(anew(tenant="bob")) == expected


def test_a_file_of_another_store_is_not_believed(
    filled: Memory, path: Path, tmp_path: Path, clock: Any, anew: Callable[..., Memory]
) -> None:
    expected = answers(filled)
    given = {"embedder": "hashed", "clock": clock, "config_dir": tmp_path / "config"}
    with Memory.open(tmp_path / "other.db", actor=Actor.operator("olga"), **given) as other:
        other.remember_many([{**item, "text": f"Other: {item['text']}"} for item in notes(0, 30)])
        other.recall("ferry")
    shutil.copy(files(tmp_path / "other.db")[0], files(path)[0])
    assert answers(anew()) == expected


def test_a_file_from_after_a_restored_backup_is_not_believed(
    filled: Memory, path: Path, tmp_path: Path, anew: Callable[..., Memory]
) -> None:
    filled.backup(tmp_path / "backup.db")
    lost = committed_record(filled.remember("The lighthouse is painted green", tier="archival")).id
    filled.remember_many(notes(200, 9))
    filled.recall("lighthouse")
    later, store_id = files(path), filled._engine.store.store_id
    filled.close()
    shutil.rmtree(tmp_path / "config" / "stores" / store_id / "heads")
    shutil.copy(tmp_path / "backup.db", path)
    for suffix in ("-wal", "-shm"):
        Path(f"{path}{suffix}").unlink(missing_ok=True)
    again = anew()
    # Another history of the same length.
    for n in range(3):
        committed_record(again.remember(f"The pier number {n} is closed", tier="archival"))
    assert lost not in str(answers(again))
    assert answers(again) == fresh(anew())
    assert set(later).isdisjoint(files(path))


def test_a_file_that_an_erasure_left_behind_is_not_believed(
    filled: Memory, path: Path, anew: Callable[..., Memory], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    victim = committed_record(filled.remember("The password hint is zanzibar", tier="archival")).id
    filled.remember_many(notes(100, 7))
    filled.recall("zanzibar")
    (left,) = files(path)
    shutil.copy(left, tmp_path / left.name)
    filled.erase(filled.plan_erase([victim]).digest, [victim])
    for each in files(path):
        each.unlink()
    shutil.copy(tmp_path / left.name, left)
    with caplog.at_level(logging.INFO):
        found = answers(anew())
    assert "was dropped" in caplog.text
    assert (left in files(path), found) == (False, fresh(anew()))


@pytest.mark.promise("F14")
def test_an_erasure_leaves_nothing_in_the_folder(filled: Memory, path: Path, read: list[str]) -> None:
    victim = committed_record(
        filled.remember(
            "The password hint is zanzibar", tier="archival", subject="Zacharias Quince", tags=["xylophone"]
        )
    ).id
    filled.remember_many(notes(100, 7))
    filled.recall("zanzibar")
    traces = [victim.encode(), b"zacharias quince", b"xylophone", term_hash("zanzibar").to_bytes(4, "little")]

    def found() -> list[bool]:
        content = b"".join(each.read_bytes() for each in files(path)).lower()
        return [trace.lower() in content for trace in traces]

    assert found() == [True] * 4
    part = Path(f"{files(path)[0]}.part")
    shutil.copy(files(path)[0], part)
    read.clear()
    filled.erase(filled.plan_erase([victim]).digest, [victim])
    assert (found(), part.exists()) == ([False] * 4, False)
    # The file was written again from the one before, not from all memories.
    filled.recall("ferry")
    assert len(files(path)) == 1
    assert len(read) < 5


@pytest.mark.slow
@pytest.mark.parametrize("end", ["is complete", "was killed before it cleaned up"])
def test_a_writer_that_an_erasure_overtakes_leaves_no_file(
    owner: Memory, path: Path, anew: Callable[..., Memory], monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    if end != "is complete":
        monkeypatch.setattr(index_cache.IndexCache, "erase", lambda *_: None)
    owner.remember_many(notes(0, ENTRIES))
    victim = committed_record(owner.remember("The password hint is zanzibar", tier="archival")).id
    eraser = anew()
    plan = eraser.plan_erase([victim])
    import keepward.storage.index_files as module

    write = module._write_parts
    done: list[str] = []

    def overtaken(*given: Any) -> Any:
        about = write(*given)
        if not done:
            done.append(eraser.erase(plan.digest, [victim]).commit.id)
        return about

    monkeypatch.setattr(module, "_write_parts", overtaken)
    owner.recall("ferry")
    assert (len(done), files(path)) == (1, [])
    assert answers(owner) == fresh(anew())


def test_two_processes_may_write_at_once(owner: Memory, path: Path, anew: Callable[..., Memory]) -> None:
    owner.remember_many(notes(0, ENTRIES))
    import keepward.storage.index_files as module

    write, other = module._write_parts, anew()
    with pytest.MonkeyPatch.context() as patch:

        def both(*given: Any) -> Any:
            patch.setattr(module, "_write_parts", write)
            other.recall("ferry")
            return write(*given)

        patch.setattr(module, "_write_parts", both)
        owner.recall("ferry")
    committed_record(owner.remember("The tide table is on the shelf", tier="archival"))
    assert answers(owner) == answers(other) == answers(anew()) == fresh(anew())


KILLED = """
import os, signal, sys
from keepward import Actor, Memory
from keepward.services.search import index_cache
from keepward.storage import index_files
index_cache.MIN_STORED = 10
write = index_files._write_part
def part(*given):
    about = write(*given)
    if given[1].name == "postings":
        given[0].flush()
        os.kill(os.getpid(), signal.SIGKILL)
    return about
index_files._write_part = part
with Memory.open(sys.argv[1], actor=Actor.operator("olga"), embedder="hashed", config_dir=sys.argv[2]) as memory:
    memory.recall("ferry")
"""


def test_a_process_that_is_killed_while_it_writes_harms_nobody(
    owner: Memory, path: Path, tmp_path: Path, anew: Callable[..., Memory]
) -> None:
    owner.remember_many(notes(0, ENTRIES))
    command = [sys.executable, "-c", KILLED, str(path), str(tmp_path / "config")]
    done = subprocess.run(command, capture_output=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    (left,) = files(path)
    assert left.suffix == ".part"
    other = anew()
    assert answers(other) == fresh(anew())
    victim = other.recall("ferry").hits[0].memory.id
    other.erase(other.plan_erase([victim]).digest, [victim])
    assert left not in files(path)


def test_a_folder_that_cannot_be_written_costs_only_time(
    owner: Memory, path: Path, anew: Callable[..., Memory]
) -> None:
    Path(f"{path}.index").write_text("a file where the folder would be")
    owner.remember_many(notes(0, ENTRIES))
    assert answers(owner) == answers(anew()) == fresh(anew())
    victim = owner.recall("ferry").hits[0].memory.id
    owner.erase(owner.plan_erase([victim]).digest, [victim])
    assert victim not in str(answers(owner))


def test_an_erasure_is_finished_when_its_index_file_is_gone(
    filled: Memory, path: Path, anew: Callable[..., Memory], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert len(files(path)) == 1
    victim = filled.recall("ferry").hits[0].memory.id
    other, unlink = anew(), Path.unlink

    def refuse(file: Path, **given: bool) -> None:
        if file.suffix in {".index", ".part"}:
            raise PermissionError(13, "Permission denied")
        unlink(file, **given)

    monkeypatch.setattr(Path, "unlink", refuse)
    other.erase(other.plan_erase([victim]).digest, [victim])
    assert other.certificate(victim)["cleaned"]["file_and_log"].startswith("not yet")
    monkeypatch.undo()
    left = files(path)
    assert anew().certificate(victim)["cleaned"]["file_and_log"].startswith("the file was rewritten")
    assert set(left).isdisjoint(files(path))


def test_vectors_of_another_process_are_not_hidden(path: Path, owner: Memory, anew: Callable[..., Memory]) -> None:
    words = anew(embedder="none")
    words.remember_many(notes(0, ENTRIES))
    words.recall("ferry")
    reader = anew()
    before = reader.recall("ferry")
    anew().reindex()
    assert ("vector" in before.used, "vector" in reader.recall("ferry").used) == (False, True)
    assert answers(reader) == answers(anew()) == fresh(anew())


def test_vectors_that_were_replaced_elsewhere_are_not_used(
    filled: Memory, path: Path, anew: Callable[..., Memory], tmp_path: Path
) -> None:
    (before,) = files(path)
    shutil.copy(before, tmp_path / before.name)
    anew(embedder=HashedEmbedder(64)).reindex()
    # As on another server, which keeps its own files.
    shutil.copy(tmp_path / before.name, before)
    found = anew().recall("ferry")
    assert ("vector" in found.used, before in files(path)) == (False, False)
    assert anew().verify().ok


def test_missing_vectors_are_added_without_building_the_index_again(
    filled: Memory, path: Path, anew: Callable[..., Memory], read: list[str]
) -> None:
    (before,) = files(path)
    added = committed_record(anew(embedder="none").remember("The tide table is on the shelf", tier="archival")).id
    filled.reindex()
    assert (answers(filled), files(path), set(read)) == (answers(anew()), [before], {added})
    assert answers(filled) == fresh(anew())


def test_memories_of_a_damaged_store_are_not_stored_in_a_file(
    owner: Memory, path: Path, anew: Callable[..., Memory]
) -> None:
    from support import tamper

    owner.remember_many(notes(0, ENTRIES))
    victim = owner.list_memories()[3].id
    tamper.run(path, tamper.BENT_BODY.format(victim))
    assert victim in anew().recall("ferry").withheld
    assert not Path(f"{path}.index").exists()


def test_a_row_that_was_deleted_behind_a_file_is_named(filled: Memory, path: Path, anew: Callable[..., Memory]) -> None:
    from support import tamper

    victim = filled.recall("ferry").hits[0].memory.id
    tamper.delete(path, "records", where=f"id = '{victim}'")
    assert victim in anew().recall("ferry").withheld


def test_an_adopted_copy_does_not_believe_the_files_of_its_original(
    filled: Memory, path: Path, tmp_path: Path, clock: Any
) -> None:
    filled.backup(tmp_path / "copy.db")
    shutil.copytree(f"{path}.index", tmp_path / "copy.db.index")
    old = set(files(tmp_path / "copy.db"))
    given = {"embedder": "hashed", "clock": clock, "config_dir": tmp_path / "elsewhere"}
    with Memory.open(tmp_path / "copy.db", actor=Actor.operator("olga"), **given) as copy:
        copy.adopt(copy.plan_adopt().digest)
        assert answers(copy) == answers(filled)
    assert old.isdisjoint(files(tmp_path / "copy.db"))


@pytest.mark.slow
class TestServers:
    """On PostgreSQL each server has files of its own, in the data folder of its user."""

    @pytest.fixture
    def server(
        self, database: str, tmp_path: Path, clock: Any, monkeypatch: pytest.MonkeyPatch
    ) -> Iterator[Callable[[str], Memory]]:
        """Switches to a server by name and opens the database there, under the key that they share."""
        with ExitStack() as handles:

            def at(name: str) -> Memory:
                monkeypatch.setenv("KEEPWARD_DATA", str(tmp_path / name))
                given = {"embedder": "hashed", "clock": clock, "config_dir": tmp_path / "config"}
                return handles.enter_context(Memory.open(database, actor=Actor.operator("olga"), **given))

            yield at

    def files(self, tmp_path: Path, name: str) -> list[Path]:
        return sorted((tmp_path / name).glob("indexes/*/*"))

    def test_the_next_process_of_a_server_begins_with_its_file(
        self, server: Callable[[str], Memory], tmp_path: Path, read: list[str]
    ) -> None:
        first = server("a")
        first.remember_many(notes(0, ENTRIES))
        expected = answers(first)
        read.clear()
        assert (answers(server("a")), read) == (expected, [])
        assert len(self.files(tmp_path, "a")) == 1

    def test_a_server_that_missed_an_erasure_drops_its_file_before_it_reads(
        self, server: Callable[[str], Memory], tmp_path: Path
    ) -> None:
        first = server("a")
        first.remember_many(notes(0, ENTRIES))
        victim = committed_record(first.remember("The password hint is zanzibar", tier="archival")).id
        first.recall("ferry")
        (left,) = self.files(tmp_path, "a")
        other = server("b")
        other.erase(other.plan_erase([victim]).digest, [victim])
        again = server("a")
        assert answers(again) == answers(other)
        (new,) = self.files(tmp_path, "a")
        assert (left == new, victim.encode() in new.read_bytes()) == (False, False)

    def test_an_open_server_that_missed_an_erasure_writes_its_file_again(
        self, server: Callable[[str], Memory], tmp_path: Path, read: list[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        first = server("a")
        first.remember_many(notes(0, ENTRIES))
        victim = committed_record(first.remember("The password hint is zanzibar", tier="archival")).id
        first.recall("ferry")
        other = server("b")
        other.erase(other.plan_erase([victim]).digest, [victim])
        monkeypatch.setenv("KEEPWARD_DATA", str(tmp_path / "a"))
        read.clear()
        first.recall("ferry")
        (new,) = self.files(tmp_path, "a")
        assert (set(read), victim.encode() in new.read_bytes()) == ({victim}, False)
