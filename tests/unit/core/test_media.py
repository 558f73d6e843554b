"""What bytes say they are, against what their writer says."""

from __future__ import annotations

import codecs

import pytest

from keepward.core.media import content_type_fits, content_type_of, decode_text, media_type_of
from keepward.core.memory import ContentType
from keepward.errors import InvalidInput

PNG = b"\x89PNG\r\n\x1a\n" + bytes(32)
SAMPLES = {
    "image/png": PNG,
    "image/jpeg": b"\xff\xd8\xff\xe0" + bytes(32),
    "image/gif": b"GIF89a" + b"\1\0\1\0\0\xff" + bytes(9),
    "image/webp": b"RIFF\x24\0\0\0WEBPVP8 " + bytes(32),
    "image/bmp": b"BM\x36\0\0\0" + bytes(32),
    "image/tiff": b"II*\0" + bytes(32),
    "image/avif": b"\0\0\0\x1cftypavif" + bytes(32),
    "image/heic": b"\0\0\0\x1cftypheic" + bytes(32),
    "image/svg+xml": b'<?xml version="1.0"?>\n<!-- drawn -->\n<svg xmlns="http://www.w3.org/2000/svg"></svg>',
    "audio/wav": b"RIFF\x24\0\0\0WAVEfmt " + bytes(32),
    "audio/mpeg": b"ID3\4\0\0\0\0\0\0" + bytes(32),
    "audio/ogg": b"OggS\0\2" + bytes(32),
    "audio/flac": b"fLaC\0\0\0\x22" + bytes(32),
    "audio/mp4": b"\0\0\0\x1cftypM4A " + bytes(32),
    "video/mp4": b"\0\0\0\x1cftypisom" + bytes(32),
    "video/quicktime": b"\0\0\0\x14ftypqt  " + bytes(32),
    "video/webm": b"\x1a\x45\xdf\xa3" + bytes(32),
    "video/x-msvideo": b"RIFF\x24\0\0\0AVI LIST" + bytes(32),
    "application/pdf": b"%PDF-1.7\n\xb5\xb5\n" + bytes(32),
    "application/zip": b"PK\3\4\x14\0" + bytes(32),
    "application/gzip": b"\x1f\x8b\x08\0" + bytes(32),
    "application/json": b'{"a": [1, 2]}',
    "application/xml": b'<?xml version="1.0"?><note>hi</note>',
    "text/html": b"\n<!DOCTYPE html><title>x</title>",
    "text/plain": "Grüße aus Köln".encode(),
    "application/x-executable": b"\x7fELF\2\1\1" + bytes(32),
    "application/octet-stream": b"\x01\x02\x00\xfe" + bytes(32),
}


def test_a_pdf_of_plain_ascii_is_a_pdf() -> None:
    assert media_type_of(None, b"%PDF-1.4\ntrailer <</Root 1 0 R>>\n%%EOF\n") == ("application/pdf", False)


def test_bytes_say_what_they_are_where_no_one_else_does() -> None:
    assert [media_type for media_type in SAMPLES if media_type_of(None, SAMPLES[media_type])[0] != media_type] == []


@pytest.mark.parametrize(
    ("claim", "data"),
    [
        ("image/jpeg", PNG),
        ("image/png", b"plain words"),
        ("text/plain", PNG),
        ("application/json", SAMPLES["application/pdf"]),
        ("video/mp4", b"<script>alert(1)</script>"),
        ("image/png", SAMPLES["image/svg+xml"]),
    ],
)
def test_a_claim_that_the_bytes_contradict_is_refused(claim: str, data: bytes) -> None:
    with pytest.raises(InvalidInput, match="do not have that media type"):
        media_type_of(claim, data)


@pytest.mark.parametrize(
    ("claim", "kept"),
    [
        ("IMAGE/PNG", "image/png"),
        ("image/x-png", "image/png"),
        (" image/png ; q=1", "image/png"),
        ("application/octet-stream", "image/png"),
    ],
)
def test_one_thing_has_one_media_type(claim: str, kept: str) -> None:
    assert media_type_of(claim, PNG)[0] == kept


@pytest.mark.parametrize("claim", ["", "image", "image/", "/png", "image/p ng", "ima\u0261e/png", 7])
def test_what_is_no_media_type_is_refused(claim: object) -> None:
    with pytest.raises(InvalidInput, match="two names"):
        media_type_of(claim, PNG)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("claim", "sample"),
    [
        ("application/vnd.openxmlformats-officedocument.wordprocessingml.document", "application/zip"),
        ("application/epub+zip", "application/zip"),
        ("video/ogg", "audio/ogg"),
        ("audio/webm", "video/webm"),
        ("text/markdown", "text/plain"),
        ("text/x-python", "text/plain"),
        ("text/plain", "application/json"),
        ("application/x-unheard-of", "application/octet-stream"),
    ],
)
def test_a_closer_name_for_the_same_bytes_is_taken(claim: str, sample: str) -> None:
    assert media_type_of(claim, SAMPLES[sample])[0] == claim


def test_what_may_run_is_active() -> None:
    cases = [
        "text/html",
        "image/svg+xml",
        "application/xml",
        "application/x-executable",
        "application/zip",
        "application/octet-stream",
    ]
    assert [media_type for media_type in cases if not media_type_of(None, SAMPLES[media_type])[1]] == []


def test_what_may_run_is_active_under_another_name_too() -> None:
    assert [
        sample
        for sample in ["text/html", "image/svg+xml"]
        if media_type_of("text/plain", SAMPLES[sample]) != ("text/plain", True)
    ] == []


def test_type_no_one_listed_is_active() -> None:
    assert [
        claim
        for claim in ["application/x-unheard-of", "text/x-unheard-of"]
        if media_type_of(claim, SAMPLES["text/plain"]) != (claim, True)
    ] == []


def test_text_in_an_older_encoding_is_not_active() -> None:
    assert media_type_of("text/plain", b"K\xf6ln") == ("text/plain", False)


def test_a_text_with_a_byte_order_mark_is_read() -> None:
    cases = [
        "Köln".encode(),
        codecs.BOM_UTF8 + "Köln".encode(),
        "Köln".encode("utf-16"),
        codecs.BOM_UTF16_BE + "Köln".encode("utf-16-be"),
        "Köln".encode("utf-32"),
    ]
    assert [data for data in cases if decode_text(data) != "Köln"] == []


@pytest.mark.parametrize(
    ("media_type", "content_type"),
    [
        ("image/png", "image"),
        ("audio/ogg", "audio"),
        ("video/webm", "video"),
        ("text/markdown", "text"),
        ("application/json", "structured"),
        ("application/pdf", "file"),
    ],
)
def test_a_media_type_has_a_content_type_of_its_own(media_type: str, content_type: str) -> None:
    assert content_type_of(media_type) == content_type


@pytest.mark.parametrize(
    ("content_type", "media_type", "fits"),
    [
        ("file", "image/png", True),
        ("image", "image/png", True),
        ("image", "audio/ogg", False),
        ("text", "text/csv", True),
        ("text", "image/png", False),
        ("structured", "text/csv", True),
        ("structured", "application/pdf", False),
    ],
)
def test_a_content_type_fits_the_media_type_or_does_not(content_type: str, media_type: str, fits: bool) -> None:
    assert content_type_fits(ContentType(content_type), media_type) is fits
