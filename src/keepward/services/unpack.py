"""Unpack gzip and zip bytes in steps and count the output, so that a scanner reads a bounded amount."""

from __future__ import annotations

import copy
import gzip
import io
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from functools import partial

#: Most bytes unpacked from one blob, bytes of one step, and most files in one archive.
MAX_UNPACKED_BYTES, _CHUNK_BYTES, _MAX_FILES = 32 << 20, 1 << 20, 10_000
_METHODS = frozenset({zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED})
_DAMAGE_ERRORS = (zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError, ValueError)
#: First bytes of gzip, and of each entry in the file list of a zip.
_GZIP_MAGIC, _ZIP_ENTRY_MAGIC = b"\x1f\x8b\x08", b"PK\x01\x02"
#: Formats that are not unpacked, by their first bytes.
_UNSUPPORTED_MAGIC = {
    b"BZh": "bzip2",
    b"\xfd7zXZ": "xz",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"7z\xbc\xaf": "7z",
    b"Rar!": "rar",
}
_UNSUPPORTED_MAGIC |= {b"%PDF-": "PDF"}


def unpack_files(data: bytes, notes: list[str]) -> Iterator[bytes]:
    """Yield each file in gzip or zip bytes; append notes on what was not unpacked."""
    notes += [f"{name} is not unpacked" for magic, name in _UNSUPPORTED_MAGIC.items() if data.startswith(magic)]
    if max(map(data.count, (_GZIP_MAGIC, _ZIP_ENTRY_MAGIC))) > _MAX_FILES:
        notes.append(f"an archive of more than {_MAX_FILES} files is not unpacked")
        return
    part, left = bytearray(), MAX_UNPACKED_BYTES
    try:
        for pieces in (
            _gzip_members(data) if data.startswith(_GZIP_MAGIC) else _zip_members(data, notes) if _is_zip(data) else ()
        ):
            part = bytearray()
            for piece in pieces:
                part += piece
                left -= len(piece)
                if left < 0:
                    raise OverflowError
            if part.startswith((_GZIP_MAGIC, *_UNSUPPORTED_MAGIC)) or _is_zip(part):
                notes.append("packed files inside of packed ones are not unpacked")
            yield bytes(part)
        return
    except OverflowError:
        notes.append(f"only the first {MAX_UNPACKED_BYTES >> 20} MB that came out were scanned")
    except _DAMAGE_ERRORS:
        notes.append("a part is damaged and was not scanned")
    yield bytes(part)


def _is_zip(data: bytes | bytearray) -> bool:
    return zipfile.is_zipfile(io.BytesIO(data))


def _zip_members(data: bytes, notes: list[str]) -> Iterator[Iterable[bytes]]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for info in map(copy.copy, archive.infolist()):
            if info.flag_bits & 1 or info.compress_type not in _METHODS:
                notes.append("files that are encrypted, or packed in another way than deflate, are not unpacked")
                continue
            # `zipfile` stops at the size that the archive claims, so set a larger one.
            info.file_size = MAX_UNPACKED_BYTES + 1
            with archive.open(info) as member:
                yield iter(partial(member.read, _CHUNK_BYTES), b"")


def _gzip_members(data: bytes) -> Iterator[Iterable[bytes]]:
    with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
        # `read1` returns what comes before a truncation.
        yield iter(partial(file.read1, _CHUNK_BYTES), b"")
