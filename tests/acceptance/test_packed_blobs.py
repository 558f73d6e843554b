"""Secrets in packed blobs are refused, and what could not be looked into is said."""

from __future__ import annotations

import bz2
import gzip
import io
import zipfile

import pytest

from keepward import Memory
from keepward.errors import InvalidInput

KEY = "AKIA" + "Q7TZ5LWM3XJ2KD4R"
TEXT = f"notes of today\naws_access_key_id = {KEY}\n".encode()


def zipped(*contents: bytes, method: int = zipfile.ZIP_DEFLATED, lead: bytes = b"") -> bytes:
    file = io.BytesIO(lead)
    file.seek(0, io.SEEK_END)
    with zipfile.ZipFile(file, "a", method) as archive:
        for n, content in enumerate(contents):
            archive.writestr(f"{n}.txt", content)
    return file.getvalue()


def claimed(data: bytes, size: int) -> bytes:
    """Return an archive of one file with another claimed size."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        info = archive.infolist()[0]
    return data.replace(info.file_size.to_bytes(4, "little"), size.to_bytes(4, "little"))


@pytest.mark.parametrize(
    "data",
    [
        gzip.compress(TEXT),
        gzip.compress(b"nothing here\n") + gzip.compress(TEXT),
        gzip.compress(TEXT)[:-6],
        zipped(b"nothing here", TEXT),
        zipped(TEXT, method=zipfile.ZIP_STORED),
        zipped(TEXT.decode().encode("utf-16")),
        zipped(TEXT, lead=b"#!/bin/sh\nexit\n"),
        claimed(zipped(TEXT + bytes(500)), 8),
        gzip.compress(bytes(2 << 20) + TEXT),
    ],
    ids=["gzip", "second member", "cut", "zip", "stored", "utf-16", "behind a script", "claims less", "far behind"],
)
def test_a_packed_secret_is_refused_and_nothing_stored(mem: Memory, data: bytes) -> None:
    with pytest.raises(InvalidInput, match="looks like a secret") as told:
        mem.put_blob(data)
    assert KEY not in str(told.value)


@pytest.mark.parametrize(
    ("data", "note"),
    [
        (bz2.compress(TEXT), "bzip2 is not unpacked"),
        (b"%PDF-1.7\n\xb5\xb5\n" + bytes(200), "PDF is not unpacked"),
        (zipped(gzip.compress(TEXT)), "inside of packed ones"),
        (gzip.compress(zipped(TEXT)), "inside of packed ones"),
        (zipped(TEXT, method=zipfile.ZIP_BZIP2), "another way than deflate"),
        (gzip.compress(b"plain words\n" * 99)[:-9], "damaged"),
        (gzip.compress(bytes(40 << 20)), "first 32 MB"),
        (zipped(*[bytes(20 << 20)] * 2), "first 32 MB"),
        (gzip.compress(b"") * 10_001, "more than 10000 files"),
    ],
    ids=["bzip2", "pdf", "gzip in zip", "zip in gzip", "bzip2 in zip", "damaged", "large", "large together", "many"],
)
def test_what_could_not_be_scanned_is_said(mem: Memory, data: bytes, note: str) -> None:
    kept = mem.put_blob(data)
    assert [each for each in kept.notes if note in each], kept.notes


def test_packed_text_without_a_secret_is_stored_without_a_note(mem: Memory) -> None:
    assert mem.put_blob(zipped(b"the ferry leaves at six")).notes == mem.put_blob(gzip.compress(b"tea")).notes == ()
