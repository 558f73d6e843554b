"""Unpack gzip, zip, and compressed parts of PNG, GIF and PDF in steps, so that a scanner reads a bounded amount."""

from __future__ import annotations

import copy
import gzip
import io
import re
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import chain

#: Most bytes unpacked from one blob, bytes of one step, and most files in one archive or parts of one file.
MAX_UNPACKED_BYTES, _CHUNK_BYTES, _MAX_FILES = 32 << 20, 1 << 20, 10_000
_CUT_NOTE = f"only the first {MAX_UNPACKED_BYTES >> 20} MB that came out were scanned"
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
_PDF_MAGIC = b"%PDF-"
#: A compressed text or profile of a PNG, anywhere: pictures are in other files. Its length is before its name.
_PNG_PART = re.compile(rb"zTXt|iTXt|iCCP")
_GIF_COMMENT = re.compile(rb"\x21\xfe")
_PDF_STREAM = re.compile(rb"(?<!end)stream\r?\n")
#: Bytes before a stream of a PDF with its dictionary, and bytes of packed input of one step.
_PDF_DICTIONARY_BYTES, _INPUT_BYTES = 2_048, 16_384
#: Longest text of a picture that is read as hex digits.
_MAX_PROFILE_BYTES = 4 << 20


@dataclass(slots=True)
class Budget:
    """The bytes that may still be unpacked from one blob."""

    left: int = MAX_UNPACKED_BYTES

    def take(self, count: int) -> None:
        self.left -= count
        if self.left < 0:
            raise OverflowError


def unpack_files(data: bytes, notes: list[str], budget: Budget) -> Iterator[bytes]:
    """Yield each file in gzip or zip bytes; append notes on what was not unpacked."""
    notes += [f"{name} is not unpacked" for magic, name in _UNSUPPORTED_MAGIC.items() if data.startswith(magic)]
    if max(map(data.count, (_GZIP_MAGIC, _ZIP_ENTRY_MAGIC))) > _MAX_FILES:
        notes.append(f"an archive of more than {_MAX_FILES} files is not unpacked")
        return
    part = bytearray()
    try:
        for pieces in (
            _gzip_members(data) if data.startswith(_GZIP_MAGIC) else _zip_members(data, notes) if _is_zip(data) else ()
        ):
            part = bytearray()
            for piece in pieces:
                part += piece
                budget.take(len(piece))
            if part.startswith((_GZIP_MAGIC, *_UNSUPPORTED_MAGIC)) or _is_zip(part):
                notes.append("packed files inside of packed ones are not unpacked")
            yield bytes(part)
        return
    except OverflowError:
        notes.append(_CUT_NOTE)
    except _DAMAGE_ERRORS:
        notes.append("a part is damaged and was not scanned")
    yield bytes(part)


def _is_zip(data: bytes | bytearray) -> bool:
    return zipfile.is_zipfile(io.BytesIO(data))


def _zip_members(data: bytes, notes: list[str]) -> Iterator[Iterable[bytes]]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        if sum(info.compress_size for info in archive.infolist()) > len(data):
            raise zipfile.BadZipFile("its files overlap")
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


def unpack_parts(data: bytes, notes: list[str], budget: Budget) -> Iterator[bytes]:
    """Yield texts and metadata that are compressed or split within a picture or a PDF; append notes as above."""
    sources = (_png_parts(data, budget), _pdf_streams(data, notes, budget), _gif_comments(data))
    for number, pieces in enumerate(chain(*sources)):
        part, is_cut = bytearray(), False
        try:
            for piece in pieces:
                part += piece
                budget.take(len(piece))
        except OverflowError:
            is_cut = True
        yield bytes(part)
        yield from _profile(bytes(part))
        if is_cut or number >= _MAX_FILES:
            notes.append(_CUT_NOTE if is_cut else f"only the first {_MAX_FILES} packed parts of a file were scanned")
            return


def _profile(part: bytes) -> Iterator[bytes]:
    """Yield the metadata that ImageMagick writes as hex digits: a name, a length, and the digits in lines."""
    words = part[:_MAX_PROFILE_BYTES].split(None, 2)
    if len(words) == 3 and words[1].isdigit():
        with suppress(ValueError):
            yield bytes.fromhex(words[2].decode("latin-1"))


def _inflate(packed: memoryview, budget: Budget) -> Iterator[bytes]:
    """Yield the unpacked bytes of a zlib stream, up to its end or to the first damaged byte."""
    stream = zlib.decompressobj()
    for start in range(0, len(packed), _INPUT_BYTES):
        given = packed[start : start + _INPUT_BYTES]
        # Input counts too: some gives no output.
        budget.take(len(given))
        try:
            piece = stream.decompress(given, budget.left + 1)
        except zlib.error:
            return
        yield piece
        if stream.eof:
            return


def _png_parts(data: bytes, budget: Budget) -> Iterator[Iterator[bytes]]:
    view = memoryview(data)
    for found in _PNG_PART.finditer(data):
        begin = found.end()
        size = int.from_bytes(view[max(0, begin - 8) : begin - 4], "big")
        head = bytes(view[begin : min(begin + size, begin + _INPUT_BYTES)])
        keyword, _, rest = head.partition(b"\0")
        if found[0] == b"iTXt":
            # After the keyword: a byte for "compressed", one for the method, the language, the translated keyword.
            offset = rest.find(b"\0", rest.find(b"\0", 2) + 1) + 1
            if not rest.startswith(b"\1\0") or offset < 4:
                continue
        else:
            offset = 1
        yield _inflate(view[begin + len(keyword) + 1 + offset : begin + size], budget)


def _pdf_streams(data: bytes, notes: list[str], budget: Budget) -> Iterator[Iterator[bytes]]:
    if not data.startswith(_PDF_MAGIC):
        return
    notes.append("of a PDF only texts in one piece are scanned")
    view = memoryview(data)
    for found in _PDF_STREAM.finditer(data):
        before = data[max(0, found.start() - _PDF_DICTIONARY_BYTES) : found.start()]
        about = before[max(before.rfind(b"endobj"), before.rfind(b"endstream"), 0) :]
        if b"/Fl" in about and b"/Image" not in about:
            yield _inflate(view[found.end() :], budget)


def _gif_comments(data: bytes) -> Iterator[Iterator[bytes]]:
    """Yield comments without the lengths between their blocks."""
    for found in _GIF_COMMENT.finditer(data) if data.startswith(b"GIF8") else ():
        yield _gif_blocks(data, found.end())


def _gif_blocks(data: bytes, at: int) -> Iterator[bytes]:
    while at < len(data) and data[at]:
        yield data[at + 1 : at + 1 + data[at]]
        at += 1 + data[at]
