"""Folders and zip archives as the files in them: which can be read, and what is left out.

Invariants
(1) Nothing is unpacked to disk: a member is read inside the archive.
(2) A harmful archive is refused before anything of it is used: a path outside of the archive, too many bytes,
    encryption, damage. Unpacked bytes are counted, because declared sizes may be wrong.
(3) Links are not followed and hidden folders are not read; the notes count both.
"""

from __future__ import annotations

import copy
import os
import stat
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import IO, Any, cast

from keepward.errors import InvalidInput
from keepward.interchange.parsing import TOTAL_LIMIT, ZIP_MAGIC, ImportSource, open_source, require_readable

#: Endings of files that are read.
_READABLE_SUFFIXES = frozenset({".json", ".jsonl", ".af", ".md", ".markdown", ".mdown", ".mkd"})
#: Maximum number of files in one folder or archive; bytes of an archive's list of files, and of one read.
_MAX_FILES, _MAX_DIRECTORY_BYTES, _PIECE = 100_000, 8_000_000, 1 << 20
#: Compression methods: these unpack in steps of any size.
_METHODS = frozenset({zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED})
#: Errors of a damaged archive.
_DAMAGE_ERRORS = (zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError, ValueError)


@dataclass(slots=True, kw_only=True)
class Bundle:
    """The files of one import: one file, or those of a folder or an archive."""

    name: str
    #: The function that opens each file, by its path inside, in order; a single file has its own name.
    files: dict[str, Callable[[], AbstractContextManager[ImportSource]]] = field(default_factory=dict)
    #: Sentences, and the number of skipped files by description.
    notes: list[str] = field(default_factory=list)
    left: Counter[str] = field(default_factory=Counter)
    #: Whether it is a folder or an archive.
    many: bool = False


@contextmanager
def open_bundle(target: str | Path | IO[str] | IO[bytes]) -> Iterator[Bundle]:
    """Open a file, a stream, a folder or an archive."""
    if isinstance(target, str | Path) and Path(target).is_dir():
        yield _folder(Path(target))
        return
    with open_source(target) as source:
        if not source.begins(ZIP_MAGIC):
            yield Bundle(name=source.name, files={source.name: lambda: nullcontext(source)})
            return
        source.stream.seek(0)
        try:
            archive = zipfile.ZipFile(cast("IO[bytes]", _LimitedStream(source.stream)))
            found = _archive(archive, source.name)
        except _DAMAGE_ERRORS as fault:
            raise InvalidInput(f"{source.name} is a damaged archive; fetch it again") from fault
        with archive:
            yield found


@dataclass(slots=True)
class _LimitedStream:
    """The stream of an archive. ``zipfile`` reads the list of files at once, so a too long one is refused here."""

    stream: IO[bytes]

    def read(self, size: int = _MAX_DIRECTORY_BYTES) -> bytes:
        if size > _MAX_DIRECTORY_BYTES:
            raise InvalidInput(
                f"its list of files is longer than {_MAX_DIRECTORY_BYTES // 10**6} MB; import a part of it"
            )
        return self.stream.read(size)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


def _folder(folder: Path) -> Bundle:
    if not folder.resolve().name:
        raise InvalidInput("that is the root folder of this machine: name the folder to import")
    found = Bundle(name=folder.resolve().name, many=True)
    for parent, folders, names in os.walk(folder):
        entered = [each for each in sorted(folders) if not each.startswith(".") and not Path(parent, each).is_symlink()]
        found.left["hidden folders or links to folders"] += len(folders) - len(entered)
        folders[:] = entered
        for name in sorted(names):
            path = Path(parent, name)
            if path.is_symlink():
                found.left["links"] += 1
            elif name.startswith(".") or path.suffix.lower() not in _READABLE_SUFFIXES or not path.is_file():
                found.left["files of other kinds"] += 1
            else:
                inside = path.relative_to(folder).as_posix()
                found.files[inside] = partial(_file, path, inside)
        _check_file_count(found)
    return found


@contextmanager
def _file(path: Path, inside: str) -> Iterator[ImportSource]:
    with open_source(path) as source:
        yield ImportSource(stream=source.stream, name=inside, path=path)


def _archive(archive: zipfile.ZipFile, name: str) -> Bundle:
    found, members = Bundle(name=name, many=True), list[zipfile.ZipInfo]()
    for info in archive.infolist():
        inside = PurePosixPath(info.filename.replace("\\", "/"))
        rooted = inside.is_absolute() or PureWindowsPath(info.filename).drive
        if rooted or ".." in inside.parts or "\0" in info.orig_filename:
            raise InvalidInput(f"{name} names a file outside of itself; nothing was imported")
        if info.is_dir():
            continue
        if stat.S_ISLNK(info.external_attr >> 16):
            found.left["links"] += 1
            continue
        if (
            any(part.startswith((".", "__MACOSX")) for part in inside.parts)
            or inside.suffix.lower() not in _READABLE_SUFFIXES
        ):
            found.left["files of other kinds"] += 1
            continue
        if info.flag_bits & 1:
            raise InvalidInput(f"{name} is encrypted; unpack it and import the folder")
        if info.compress_type not in _METHODS:
            raise InvalidInput(f"{name} is packed in another way than deflate; unpack it and import the folder")
        members.append(info)
        found.left["files whose name another one has as well"] += inside.as_posix() in found.files
        found.files[inside.as_posix()] = partial(_member, archive, info, inside.as_posix())
        _check_file_count(found)
    unpacked = 0
    for info in members:
        # Every member is unpacked once, so that damage shows before anything is stored. `zipfile` stops at the declared
        # size, so a larger one is set.
        more = copy.copy(info)
        more.file_size = TOTAL_LIMIT + 1
        began = unpacked
        with archive.open(more) as member:
            while unpacked <= TOTAL_LIMIT and (piece := member.read(_PIECE)):
                unpacked += len(piece)
        if unpacked > TOTAL_LIMIT:
            limit = f"{TOTAL_LIMIT // 10**6} MB"
            raise InvalidInput(f"{name} unpacks to more than {limit}; unpack it and import the folder")
        if unpacked - began != info.file_size:
            raise InvalidInput(f"{name} declares a wrong size of {info.filename}; nothing was imported")
    return found


@contextmanager
def _member(archive: zipfile.ZipFile, info: zipfile.ZipInfo, inside: str) -> Iterator[ImportSource]:
    with archive.open(info) as member:
        yield require_readable(ImportSource(stream=member, name=inside))


def _check_file_count(count: Bundle) -> None:
    if len(count.files) > _MAX_FILES:
        raise InvalidInput(f"{count.name} contains more than {_MAX_FILES} files; import a part of it")
