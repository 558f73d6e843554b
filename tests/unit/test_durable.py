"""Files that are whole or not there: what stands under the final name, whose it is, and in which order it gets there."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from keepward import durable


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "file"


def full(*_: Any) -> None:
    raise OSError(28, "No space left on device")


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_bytes_replace_a_file(file: Path) -> None:
    file.write_bytes(b"before")
    durable.replace(file, b"after")
    assert (file.read_bytes(), names(file.parent)) == (b"after", ["file"])


@pytest.mark.parametrize("umask", [0, 0o077])
def test_a_file_is_its_owners_alone_unless_said_otherwise(file: Path, umask: int) -> None:
    old = os.umask(umask)
    try:
        durable.replace(file, b"")
        durable.replace(file.with_name("shared"), b"", mode=0o644)
    finally:
        os.umask(old)
    assert (mode(file), mode(file.with_name("shared"))) == (0o600, 0o644)


def test_temporary_file_is_private_to_its_owner(file: Path) -> None:
    with durable.atomic_replace(file, mode=0o644) as out:
        out.write(b"secret")
        out.flush()
        [aside] = file.parent.iterdir()
        assert mode(aside) == 0o600


def test_two_writers_of_one_file_do_not_collide(file: Path) -> None:
    with durable.atomic_replace(file) as one, durable.atomic_replace(file) as other:
        one.write(b"one")
        other.write(b"other")
    assert (file.read_bytes(), names(file.parent)) == (b"one", ["file"])


def test_file_is_on_disk_before_its_name_and_folder_after(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    sync, move = os.fsync, Path.replace

    def fsync(handle: int) -> None:
        told.append("folder" if stat.S_ISDIR(os.fstat(handle).st_mode) else "file")
        sync(handle)

    def rename(self: Path, target: Path) -> Path:
        told.append("rename")
        return move(self, target)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(Path, "replace", rename)
    durable.replace(file, b"bytes")
    assert told == ["file", "rename", "folder"]


@pytest.mark.parametrize("place", ["os.fsync", "pathlib.Path.replace", "os.fchmod"])
def test_failed_write_leaves_the_old_file_and_nothing_else(
    file: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    file.write_bytes(b"before")
    with monkeypatch.context() as patch:
        patch.setattr(place, full)
        with pytest.raises(OSError, match="space"):
            durable.replace(file, b"after", mode=0o640)
    assert (file.read_bytes(), names(file.parent)) == (b"before", ["file"])


def test_failed_block_leaves_the_old_file(file: Path) -> None:
    file.write_bytes(b"before")
    with pytest.raises(KeyboardInterrupt), durable.atomic_replace(file) as out:
        out.write(b"half")
        raise KeyboardInterrupt
    assert (file.read_bytes(), names(file.parent)) == (b"before", ["file"])


def test_a_link_is_replaced_and_not_followed(file: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_bytes(b"theirs")
    file.symlink_to(tmp_path / "elsewhere")
    durable.replace(file, b"ours")
    assert (file.is_symlink(), (tmp_path / "elsewhere").read_bytes()) == (False, b"theirs")


def test_a_fresh_file_takes_no_other_file(file: Path) -> None:
    file.write_bytes(b"before")
    with pytest.raises(FileExistsError), durable.new_file(file) as out:
        out.write(b"after")
    assert file.read_bytes() == b"before"


def test_a_fresh_file_is_not_written_through_a_link(file: Path, tmp_path: Path) -> None:
    file.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(FileExistsError), durable.new_file(file):
        pass
    assert not (tmp_path / "elsewhere").exists()


def test_a_fresh_file_that_is_not_finished_is_missing(file: Path) -> None:
    with pytest.raises(ValueError, match="half"), durable.new_file(file) as out:
        out.write(b"ha")
        raise ValueError("half")
    assert names(file.parent) == []


def test_first_of_two_exclusive_creations_wins_for_both(file: Path) -> None:
    assert (durable.create_exclusive(file, b"first"), durable.create_exclusive(file, b"second")) == (b"first", b"first")


def test_flushing_what_cannot_be_opened_is_no_error(tmp_path: Path) -> None:
    durable.flush(tmp_path / "nowhere")


def test_a_disk_that_does_not_take_a_folder_is_an_error(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="space"):
        durable.flush(file.parent)


def test_each_new_folder_is_flushed_into_its_parent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flushed: list[str] = []
    monkeypatch.setattr(durable, "flush", lambda path: flushed.append(path.name))
    durable.make_folder(tmp_path / "a" / "b" / "c")
    assert (flushed, mode(tmp_path / "a" / "b")) == ([tmp_path.name, "a", "b"], 0o700)


def test_parents_above_a_folder_are_not_created(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        durable.make_folder(tmp_path / "gone" / "a" / "b", below=tmp_path / "gone" / "a")


@pytest.mark.parametrize("offset", [None, 2])
def test_all_bytes_are_written_if_the_disk_takes_one_at_a_time(
    file: Path, monkeypatch: pytest.MonkeyPatch, offset: int | None
) -> None:
    write, pwrite = os.write, os.pwrite
    monkeypatch.setattr(os, "write", lambda handle, data: write(handle, bytes(data[:1])))
    monkeypatch.setattr(os, "pwrite", lambda handle, data, place: pwrite(handle, bytes(data[:1]), place))
    handle = os.open(file, os.O_CREAT | os.O_RDWR)
    durable.write_all(handle, b"bytes", offset)
    os.close(handle)
    assert file.read_bytes() == b"\0\0bytes"[-5 - (offset or 0) :]


def test_a_disk_that_takes_nothing_is_an_error(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "write", lambda *_: 0)
    with file.open("wb") as out, pytest.raises(OSError, match="space"):
        durable.write_all(out.fileno(), b"bytes")


def _refusing(times, monkeypatch):
    """Refuse to replace files so many times, as Windows does while another process reads one."""
    replace, left = Path.replace, [times]

    def refuse(self, target):
        if left[0] > 0:
            left[0] -= 1
            fault = PermissionError(errno.EACCES, "in use")
            fault.winerror = 32
            raise fault
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", refuse)


def test_a_file_that_is_read_elsewhere_is_replaced_after_that(tmp_path, monkeypatch):
    file = tmp_path / "key"
    durable.replace(file, b"1")
    _refusing(3, monkeypatch)
    durable.replace(file, b"2")
    assert file.read_bytes() == b"2"


def test_a_file_that_stays_open_elsewhere_is_an_error_and_leaves_nothing(tmp_path, monkeypatch):
    file = tmp_path / "key"
    durable.replace(file, b"1")
    _refusing(1 << 30, monkeypatch)
    monkeypatch.setattr(durable, "_SHARING_TIMEOUT_S", 0.0)
    with pytest.raises(PermissionError):
        durable.replace(file, b"2")
    assert [(each.name, each.read_bytes()) for each in tmp_path.iterdir()] == [("key", b"1")]
