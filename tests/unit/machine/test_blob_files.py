"""Blobs on disk: whole or not there, for their owner alone, and nowhere but in their folder."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from keepward.machine.blob_files import FileBlobs, MemoryBlobs, folder_of

PLACE = "0123456789abcdef/2026/03/01/" + "ab" * 32
OTHER = "0123456789abcdef/2026/03/02/" + "cd" * 32


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return folder_of(tmp_path / "m.db")


@pytest.fixture(params=["files", "memory"])
def blobs(request: pytest.FixtureRequest, folder: Path) -> FileBlobs | MemoryBlobs:
    return FileBlobs(folder) if request.param == "files" else MemoryBlobs()


def test_what_was_stored_is_read(blobs: FileBlobs) -> None:
    blobs.save(PLACE, b"bytes")
    assert (blobs.read(PLACE), blobs.size(PLACE), blobs.paths()) == (b"bytes", 5, [PLACE])


def test_what_was_not_stored_is_none(blobs: FileBlobs) -> None:
    assert (blobs.read(PLACE), blobs.size(PLACE), blobs.paths()) == (None, None, [])


def test_what_was_removed_is_missing(blobs: FileBlobs) -> None:
    blobs.save(PLACE, b"bytes")
    blobs.remove(PLACE)
    blobs.remove(PLACE)
    assert (blobs.read(PLACE), blobs.paths()) == (None, [])


def test_keeping_again_heals_what_was_changed(blobs: FileBlobs) -> None:
    blobs.save(PLACE, b"bent!")
    blobs.save(PLACE, b"bytes")
    assert blobs.read(PLACE) == b"bytes"


def test_folders_and_files_are_for_their_owner_alone(folder: Path) -> None:
    old = os.umask(0)
    try:
        blobs = FileBlobs(folder)
        with blobs.locked():
            blobs.save(PLACE, b"bytes")
    finally:
        os.umask(old)
    modes = {stat.S_IMODE(path.stat().st_mode) for path in (folder, *folder.rglob("*")) if path.is_dir()}
    files = {stat.S_IMODE(path.stat().st_mode) for path in folder.rglob("*") if path.is_file()}
    assert (modes, files) == ({0o700}, {0o600})


@pytest.mark.promise("E21")
@pytest.mark.parametrize(
    "place", ["../../etc/passwd", "/etc/passwd", "", "x", PLACE + "/..", PLACE.upper(), PLACE + "\n"]
)
def test_no_path_leads_out_of_the_folder(folder: Path, place: str) -> None:
    with pytest.raises(ValueError, match="not the path"):
        FileBlobs(folder).save(place, b"bytes")


def test_a_link_instead_of_a_file_is_not_followed(folder: Path, tmp_path: Path) -> None:
    blobs = FileBlobs(folder)
    blobs.save(PLACE, b"bytes")
    (tmp_path / "secret").write_bytes(b"elsewhere")
    (folder / PLACE).unlink()
    (folder / PLACE).symlink_to(tmp_path / "secret")
    assert (blobs.read(PLACE), blobs.size(PLACE), blobs.paths()) == (None, None, [PLACE])


def test_what_an_interrupted_write_left_is_listed_and_removed(folder: Path) -> None:
    blobs = FileBlobs(folder)
    blobs.save(PLACE, b"bytes")
    left = f"{PLACE}.77.1.part"
    (folder / left).write_bytes(b"by")
    listed = blobs.paths()
    blobs.remove(left)
    assert (listed, blobs.paths()) == ([PLACE, left], [PLACE])


def test_files_that_are_no_blobs_are_neither_listed_nor_touched(folder: Path) -> None:
    blobs = FileBlobs(folder)
    blobs.save(PLACE, b"bytes")
    (folder / "notes.txt").write_text("mine")
    blobs.remove(PLACE)
    assert (blobs.paths(), (folder / "notes.txt").read_text()) == ([], "mine")


def test_folders_that_are_left_empty_go(folder: Path) -> None:
    blobs = FileBlobs(folder)
    blobs.save(PLACE, b"bytes")
    blobs.save(OTHER, b"others")
    blobs.remove(PLACE)
    assert sorted(path.name for path in (folder / PLACE).parents[1].iterdir()) == ["02"]


def test_nothing_is_made_by_looking(folder: Path) -> None:
    blobs = FileBlobs(folder)
    with blobs.locked(alone=True):
        blobs.paths()
    assert not folder.exists()


def test_who_removes_waits_for_who_adds(folder: Path) -> None:
    import fcntl

    blobs = FileBlobs(folder)
    with blobs.locked():
        handle = os.open(folder / "lock", os.O_RDWR)
        try:
            with pytest.raises(BlockingIOError):
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        finally:
            os.close(handle)
