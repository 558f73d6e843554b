"""Media types: detection from bytes, and the types that are safe to show in a browser.

* A claimed type never overrules detected bytes: an image with the claim ``text/plain`` is refused. A claim that the
  bytes neither confirm nor contradict is accepted.
* Content is active unless both its claimed and its detected type are in ``_INERT_TYPES``.

The signatures are those of puremagic. Text is not matched against them, because words look like short signatures.

Late imports: few texts need it.
"""

from __future__ import annotations

import codecs
import json
import re

from keepward.core.memory import ContentType
from keepward.core.patterns import lazy_regex
from keepward.errors import InvalidInput

UNKNOWN_TYPE = "application/octet-stream"
#: Types that a browser shows and never executes. Content of any other type is active and offered as a download.
_INERT_TYPES = lazy_regex(
    r"application/(?:json|pdf)|audio/(?:aac|flac|mp4|mpeg|ogg|wav|webm)|image/(?:avif|bmp|gif|heic|jpeg|png|tiff|webp)"
    r"|text/(?:csv|markdown|plain)|video/(?:mp4|ogg|quicktime|webm)"
)
#: Container formats: a claim of any document or archive type is accepted for them.
_CONTAINERS = frozenset(
    {"application/gzip", "application/x-executable", "application/x-ole-storage", "application/zip"}
)
#: Other names of a type, with the stored name.
_TYPE_SYNONYMS = {
    "application/ogg": "audio/ogg",
    "application/x-gzip": "application/gzip",
    # puremagic's name for every ELF file.
    "application/x-iso9660-appimage": "application/x-executable",
    "application/x-msdownload": "application/vnd.microsoft.portable-executable",
    "application/x-pdf": "application/pdf",
    "application/x-sqlite3": "application/vnd.sqlite3",
    "application/x-rar-compressed": "application/vnd.rar",
    "application/x-zip-compressed": "application/zip",
    "audio/mp3": "audio/mpeg",
    "audio/wave": "audio/wav",
    "audio/x-aiff": "audio/aiff",
    "audio/x-flac": "audio/flac",
    "audio/x-m4a": "audio/mp4",
    "audio/x-midi": "audio/midi",
    "audio/x-opus+ogg": "audio/opus",
    "audio/x-wav": "audio/wav",
    "image/heif": "image/heic",
    "image/jpg": "image/jpeg",
    "image/x-icon": "image/vnd.microsoft.icon",
    "image/x-ms-bmp": "image/bmp",
    "image/x-png": "image/png",
    "text/json": "application/json",
    "text/xml": "application/xml",
    "video/avi": "video/x-msvideo",
    "video/x-m4v": "video/mp4",
}
_TYPE_NAME = lazy_regex(r"[a-z0-9][a-z0-9!#$&^_.+-]{0,126}/[a-z0-9][a-z0-9!#$&^_.+-]{0,126}", re.ASCII)
_TEXTUAL = lazy_regex(
    r"text/.+|(?:application|image|model)/(?:.+\+(?:json|xml|yaml)|json|jsonl|(?:x-)?ndjson|xml|(?:x-)?yaml|toml|sql"
    r"|graphql|rtf|typescript|obj|x-(?:sh|python|tex|subrip|pem-file|www-form-urlencoded))|message/rfc822"
)
_MARKUP_PREAMBLE = lazy_regex(
    r"(?:\s|<\?xml[^>]{0,256}\?>|<!--.{0,1024}?-->|<!doctype\s+(?!html)[^>]{0,512}>)*", re.DOTALL | re.IGNORECASE
)
_MARKUP = lazy_regex(r"<!doctype\s+html|<(?:html|head|body|script|iframe|svg)[\s/>]", re.IGNORECASE)
_BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_HEAD_CHARACTERS = 4096
_JSON_CHARACTERS = 4 * 1024 * 1024


def media_type_of(claim: str | None, data: bytes) -> tuple[str, bool]:
    """Return the media type of a content, and whether it is active.

    Without a claim, or with ``application/octet-stream``, the bytes decide.

    Raises:
        InvalidInput: the claim is not a media type, or the bytes have another type.
    """
    named = None if claim is None else _name(claim)
    # A small PDF can be plain ASCII.
    text = None if data.startswith(b"%PDF-") else decode_text(data)
    detected = _signatures(data) if text is None else [_detect_text_type(text)]
    best = detected[0] if detected else UNKNOWN_TYPE
    if named is None or named == UNKNOWN_TYPE:
        named = best
    elif not _fits(named, detected, text, data):
        known = f"they look like {best}" if detected else "they do not match it"
        raise InvalidInput(f"the bytes do not have that media type: {known}. Give their type, or leave it out")
    return named, not all(_INERT_TYPES.fullmatch(name) for name in (named, *detected[:1]))


def decode_text(data: bytes) -> str | None:
    """Return the text of UTF-8 bytes, or of UTF-16 and UTF-32 bytes with a byte order mark; None for other bytes."""
    codec = next((codec for bom, codec in _BOMS if data.startswith(bom)), "utf-8")
    if codec.startswith("utf-8") and b"\0" in data:
        return None
    try:
        text = data.decode(codec)
    except UnicodeDecodeError:
        return None
    return None if "\0" in text else text


def is_textual(media_type: str) -> bool:
    """Whether content of this type is text."""
    return _TEXTUAL.fullmatch(media_type) is not None


def content_type_of(media_type: str) -> ContentType:
    """Return the default content type of a memory with such a blob."""
    main = media_type.partition("/")[0]
    if main in {"image", "audio", "video"}:
        return ContentType(main)
    if main == "text":
        return ContentType.TEXT
    return ContentType.STRUCTURED if is_textual(media_type) else ContentType.FILE


def content_type_fits(content_type: ContentType, media_type: str) -> bool:
    """Whether a memory of this content type may refer to a blob of this media type."""
    if content_type is ContentType.FILE:
        return True
    if content_type in {ContentType.TEXT, ContentType.STRUCTURED}:
        return is_textual(media_type)
    return media_type.startswith(f"{content_type.value}/")


def _name(claim: object) -> str:
    plain = claim.partition(";")[0].strip().lower() if isinstance(claim, str) else ""
    if not _TYPE_NAME.fullmatch(plain):
        raise InvalidInput("a media type is two names with a slash between them, such as image/png")
    return _TYPE_SYNONYMS.get(plain, plain)


def _signatures(data: bytes) -> list[str]:
    """Return the media types whose signature matches, best evidence first."""
    import puremagic

    if data[4:12] in {b"ftypmif1", b"ftypmsf1"}:
        # puremagic reports these two HEIF brands as a video.
        return ["image/heic", "image/avif"]
    try:
        rows = puremagic.magic_string(data)
    except puremagic.PureError:
        return []
    ends: dict[str, int] = {}
    for row in rows:
        name = _TYPE_SYNONYMS.get(row.mime_type, row.mime_type)
        if name not in {"", UNKNOWN_TYPE} and not is_textual(name):
            ends[name] = max(ends.get(name, 0), row.offset + len(row.byte_match))
    # The signature that reaches furthest into the bytes is the most specific one.
    most = max(ends.values(), default=0)
    kinds = {name.partition("/")[0] for name, end in ends.items() if end == most}
    fitting = [name for name in ends if name.partition("/")[0] in kinds]
    return sorted(fitting, key=lambda name: (name not in _CONTAINERS, -ends[name], len(name), name))


def _fits(named: str, detected: list[str], text: str | None, data: bytes) -> bool:
    """Whether the bytes confirm a claimed type, or do not contradict it."""
    if is_textual(named):
        # Text in an older encoding is accepted; it contains no zero byte.
        return text is not None or not (detected or b"\0" in data)
    proved = detected if text is None else _signatures(data)
    kind, _, form = named.partition("/")
    if named in proved or (kind in {"audio", "video"} and any(name.endswith(f"/{form}") for name in proved)):
        return True
    if kind in {"audio", "video"}:
        return text is None and not proved
    if kind == "image" and text is not None:
        return False
    return _INERT_TYPES.fullmatch(named) is None and (
        not proved or (kind == "application" and proved[0] in _CONTAINERS)
    )


def _detect_text_type(text: str) -> str:
    """Return the type of a text: HTML, SVG, XML, JSON or plain."""
    head = text[:_HEAD_CHARACTERS]
    start = _MARKUP_PREAMBLE.match(head)
    markup = _MARKUP.match(head, start.end() if start else 0)
    if markup is not None:
        return "image/svg+xml" if markup[0].lower().startswith("<svg") else "text/html"
    opening = head.lstrip()
    if opening.startswith("<?xml"):
        return "application/xml"
    if opening[:1] in {"{", "["} and len(text) <= _JSON_CHARACTERS:
        try:
            json.loads(text)
        except (ValueError, RecursionError):
            return "text/plain"
        return "application/json"
    return "text/plain"
