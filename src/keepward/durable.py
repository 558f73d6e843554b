"""Files that are either complete or missing, even after a power cut.

Invariants
(1) A file under its final name is complete: it is written next to it, flushed to disk and renamed, and then the folder
    is flushed.
(2) During the write only its owner can read the file, and no existing link is followed.
(3) A failed write leaves the previous file unchanged and nothing next to it. The leftovers of a killed process end in
    ``.part``.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from keepward.errors import InvalidInput

#: Suffix of an incomplete file, after the final name and a random word.
PART_SUFFIX = ".part"
#: Flag of ``os.open`` without which Windows changes line ends; 0 on other systems.
BINARY: int = getattr(os, "O_BINARY", 0)
#: Errors of Windows for a file that another process has open for a moment, and seconds until the move is given up.
_SHARING_ERRORS, _SHARING_TIMEOUT_S = {5, 32, 33}, 5.0
#: Permissions for the owner only.
_PRIVATE_MODE = 0o600
#: Errors of a system that has nothing to flush in a folder.
_CANNOT_FLUSH = {errno.EINVAL, errno.ENOTSUP, errno.EBADF, errno.EROFS}


def flush(path: Path) -> None:
    """Flush a file or a folder to disk.

    A rename is durable once its folder is flushed. On systems that cannot open or flush folders this is not needed.

    Raises:
        OSError: the disk did not take it.
    """
    try:
        # Windows flushes only what is open for writing, and opens no folder.
        handle = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    except OSError:
        return
    try:
        os.fsync(handle)
    except OSError as exc:
        if exc.errno not in _CANNOT_FLUSH:
            raise
    finally:
        os.close(handle)


def make_folder(folder: Path, *, below: Path | None = None) -> None:
    """Create a private folder and its missing parents, each flushed into its parent.

    Parents of ``below`` are not created.

    Raises:
        OSError: a folder cannot be created, or the disk did not take it.
    """
    if folder.is_dir():
        return
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
    except FileNotFoundError:
        if folder == below:
            raise
        make_folder(folder.parent, below=below)
        folder.mkdir(mode=0o700, exist_ok=True)
    flush(folder.parent)


def write_all(handle: int, data: bytes, offset: int | None = None) -> None:
    """Write all bytes at an offset, or at the position of the file; a disk may take only a part of them at a time.

    Raises:
        OSError: the disk takes no more; a part may be written.
    """
    if offset is not None:
        os.lseek(handle, offset, os.SEEK_SET)
    done = 0
    while done < len(data):
        part = memoryview(data)[done:]
        taken = os.write(handle, part)
        if taken == 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        done += taken


def read_regular(path: Path, limit: int) -> bytes:
    """Return the content of a regular file; opening or reading a pipe or a device could wait for ever.

    Raises:
        InvalidInput: it is not a regular file, or longer than ``limit`` bytes.
        OSError: it cannot be read.
    """
    with os.fdopen(os.open(path, os.O_RDONLY | BINARY | getattr(os, "O_NONBLOCK", 0)), "rb") as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode) or found.st_size > limit:
            most = f"{limit >> 20} MB" if limit >> 20 else f"{limit} bytes"
            raise InvalidInput(f"{path.name} is no regular file of at most {most}; move it away, or name another")
        return file.read(limit)


@contextmanager
def new_file(path: Path, *, mode: int = _PRIVATE_MODE) -> Iterator[IO[bytes]]:
    """Open a new file for the block. It is on disk when the block ends, and removed if the block raises.

    ``mode`` applies from the end on; during the block only the owner has access. The folder is not flushed.

    Raises:
        FileExistsError: the path exists, even as a link.
        OSError: it cannot be written.
    """
    handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | BINARY, _PRIVATE_MODE)
    try:
        with os.fdopen(handle, "wb") as out:
            yield out
            out.flush()
            if mode != _PRIVATE_MODE and hasattr(os, "fchmod"):
                os.fchmod(out.fileno(), mode)
            os.fsync(out.fileno())
    except BaseException:
        _unlink_quietly(path)
        raise


@contextmanager
def atomic_replace(path: Path, *, mode: int = _PRIVATE_MODE) -> Iterator[IO[bytes]]:
    """Open a file for the block that replaces ``path``, with ``mode``, when the block ends without an error.

    A link at ``path`` is replaced, not followed.

    Raises:
        OSError: it cannot be written, and the previous file is unchanged; or the disk did not take its new name.
    """
    aside = _temporary_path(path)
    with new_file(aside, mode=mode) as out:
        yield out
    try:
        _move(aside, path)
    except BaseException:
        _unlink_quietly(aside)
        raise
    flush(path.parent)


def _move(aside: Path, path: Path) -> None:
    """Rename a file, replacing another. Windows refuses this while a reader has the other open, so it tries again."""
    deadline = time.monotonic() + _SHARING_TIMEOUT_S
    while True:
        try:
            aside.replace(path)
            return
        except PermissionError as exc:
            if getattr(exc, "winerror", None) not in _SHARING_ERRORS or time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def replace(path: Path, data: bytes, *, mode: int = _PRIVATE_MODE) -> None:
    """Replace or create a file with these bytes; see ``atomic_replace``."""
    with atomic_replace(path, mode=mode) as out:
        out.write(data)


def create_exclusive(path: Path, data: bytes) -> bytes:
    """Create a file with these bytes unless it exists; return its content, which may be another process's.

    Raises:
        OSError: it cannot be written or read.
    """
    aside = _temporary_path(path)
    with new_file(aside) as out:
        out.write(data)
    try:
        # Of two processes one creates the file, and both return its bytes.
        os.link(aside, path)
    except FileExistsError:
        pass
    finally:
        _unlink_quietly(aside)
    flush(path.parent)
    return path.read_bytes()


def _temporary_path(path: Path) -> Path:
    # The process id alone is not unique: two machines or containers may share a folder.
    return path.with_name(f"{path.name}.{os.urandom(8).hex()}{PART_SUFFIX}")


def _unlink_quietly(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink()
