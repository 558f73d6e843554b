"""Files that are whole or not there, also after a power cut.

Invariants
(1) A file under its final name is whole: it is written beside it, flushed to disk and renamed, and then the folder
    is flushed.
(2) What is being written is readable by its owner alone, and never through a link that lay in wait.
(3) A write that fails leaves what was there before, and nothing beside it. What a killed process leaves ends in
    ``.part``.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

#: What stands behind the name of a file that is not whole yet, after the final name and a word of its own.
PART_SUFFIX = ".part"
#: What a file's owner may do, and nobody else.
_PRIVATE_MODE = 0o600


def flush(path: Path) -> None:
    """Flush a file or a folder to disk.

    A folder keeps a rename only once it is flushed; where folders cannot be opened there is no such need.
    """
    with contextlib.suppress(OSError):
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


@contextmanager
def new_file(path: Path, *, mode: int = _PRIVATE_MODE) -> Iterator[IO[bytes]]:
    """Lend a new file: on disk when the block ends, gone when it ends in an error. Its folder is not flushed.

    ``mode`` holds from the end on; while it is written the file is its owner's alone.

    Raises:
        FileExistsError: something of that name is there, be it a link.
        OSError: it cannot be written.
    """
    handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, _PRIVATE_MODE)
    try:
        with os.fdopen(handle, "wb") as out:
            yield out
            out.flush()
            if mode != _PRIVATE_MODE:
                os.fchmod(out.fileno(), mode)
            os.fsync(out.fileno())
    except BaseException:
        _unlink_quietly(path)
        raise


@contextmanager
def atomic_replace(path: Path, *, mode: int = _PRIVATE_MODE) -> Iterator[IO[bytes]]:
    """Lend a file beside ``path`` that takes its place, with ``mode``, when the block ends without an error.

    A link at ``path`` is replaced, not followed.

    Raises:
        OSError: it cannot be written; what was there before is unchanged.
    """
    aside = _temporary_path(path)
    with new_file(aside, mode=mode) as out:
        yield out
    try:
        aside.replace(path)
    except BaseException:
        _unlink_quietly(aside)
        raise
    flush(path.parent)


def replace(path: Path, data: bytes, *, mode: int = _PRIVATE_MODE) -> None:
    """Put bytes in the place of a file, or where there is none; see ``replacing``."""
    with atomic_replace(path, mode=mode) as out:
        out.write(data)


def create_exclusive(path: Path, data: bytes) -> bytes:
    """Put bytes where no file is; return what stands there then, theirs where another process was first.

    Raises:
        OSError: it cannot be written or read.
    """
    aside = _temporary_path(path)
    with new_file(aside) as out:
        out.write(data)
    try:
        # Of two that try one wins, and both go on with its bytes.
        os.link(aside, path)
    except FileExistsError:
        pass
    finally:
        _unlink_quietly(aside)
    flush(path.parent)
    return path.read_bytes()


def _temporary_path(path: Path) -> Path:
    # A process's number alone would not do: two machines, or two containers, may share a folder.
    return path.with_name(f"{path.name}.{os.urandom(8).hex()}{PART_SUFFIX}")


def _unlink_quietly(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink()
