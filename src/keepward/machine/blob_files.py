"""Blobs on disk, and in memory for a store in memory.

Layout: ``<store>.blobs/<tenant's digest>/<year>/<month>/<day>/<SHA-256>``, next to ``lock``.

Invariants
(1) Folders are 0700, files 0600; nothing is created before the first blob.
(2) A file under its final name is complete and on disk, see ``durable``. The leftovers of interrupted writes are listed
    with the paths, so that they can be removed.
(3) Only paths of blobs are read, written or removed. A link instead of a file is never followed or read.
"""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from keepward import durable, locks
from keepward.core.blob import is_blob_path

_LOCK = "lock"


def folder_of(store: str | Path) -> Path:
    """Return the folder of blobs next to a store's file, or next to the target of a link."""
    return Path(f"{os.path.realpath(store)}.blobs")


class FileBlobs:
    """Stores bytes in a folder, created when needed; see the protocol. Safe for threads and processes."""

    def __init__(self, folder: str | Path) -> None:
        self._folder = Path(folder)

    @contextmanager
    def locked(self, *, alone: bool = False) -> Iterator[None]:
        """Lock the folder; see the protocol. Without a folder, ``alone`` locks nothing."""
        if alone and not self._folder.is_dir():
            yield
            return
        durable.make_folder(self._folder, below=self._folder)
        handle = os.open(self._folder / _LOCK, os.O_CREAT | os.O_RDWR, 0o600)
        try:
            locks.lock_file(handle, shared=not alone)
            yield
        finally:
            os.close(handle)

    def save(self, path: str, data: bytes) -> None:
        """Write bytes durably; see (2)."""
        file = self._file(path)
        if self.size(path) == len(data) and self.read(path) == data:
            # Another process may have been interrupted before it flushed the folder.
            durable.flush(file.parent)
            return
        durable.make_folder(file.parent, below=self._folder)
        durable.replace(file, data)

    def read(self, path: str) -> bytes | None:
        file = self._file(path)
        if not hasattr(os, "O_NOFOLLOW") and file.is_symlink():
            return None
        try:
            handle = os.open(file, os.O_RDONLY | durable.BINARY | getattr(os, "O_NOFOLLOW", 0))
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as exc:
            if exc.errno == errno.ELOOP:
                return None
            raise
        with os.fdopen(handle, "rb") as opened:
            return opened.read()

    def size(self, path: str) -> int | None:
        file = self._file(path)
        return file.stat().st_size if file.is_file() and not file.is_symlink() else None

    def remove(self, path: str) -> None:
        """Remove a file and the folders that become empty."""
        file = self._folder / path if path.endswith(durable.PART_SUFFIX) and path in self.paths() else self._file(path)
        file.unlink(missing_ok=True)
        durable.flush(file.parent)
        for folder in file.parents:
            if folder == self._folder or not folder.is_relative_to(self._folder):
                return
            try:
                folder.rmdir()
            except FileNotFoundError:
                continue
            except OSError:
                return  # The folder is not empty.

    def paths(self) -> list[str]:
        """Return the sorted paths of all files and links; other names are skipped."""
        found = []
        for folder, _, names in os.walk(self._folder):
            for name in names:
                path = (Path(folder) / name).relative_to(self._folder).as_posix()
                if is_blob_path(path) or (path.endswith(durable.PART_SUFFIX) and is_blob_path(path.partition(".")[0])):
                    found.append(path)
        return sorted(found)

    def _file(self, path: str) -> Path:
        if not is_blob_path(path):
            raise ValueError("that is not the path of a blob")
        return self._folder / path


class MemoryBlobs:
    """Stores bytes for the lifetime of the process."""

    def __init__(self) -> None:
        self._blobs: dict[str, bytes] = {}
        self._lock = threading.RLock()

    @contextmanager
    def locked(self, *, alone: bool = False) -> Iterator[None]:
        del alone
        with self._lock:
            yield

    def save(self, path: str, data: bytes) -> None:
        self._blobs[path] = bytes(data)

    def read(self, path: str) -> bytes | None:
        return self._blobs.get(path)

    def size(self, path: str) -> int | None:
        data = self._blobs.get(path)
        return None if data is None else len(data)

    def remove(self, path: str) -> None:
        self._blobs.pop(path, None)

    def paths(self) -> list[str]:
        return sorted(self._blobs)
