"""Blobs: content that lies in files beside the store, named by its hash, and what sort of content it is.

Invariants
(1) A blob is named by the SHA-256 of its bytes and by nothing else: the name does not say when or by whom they
    were put. The media type of the first put stays.
(2) A blob belongs to one tenant. The place of its file says the tenant's digest and the day it was first put, and
    holds nothing that a caller chose.
(3) ``place`` is one to one; what is no place names no file, so no path leads out of the folder.
(4) A claimed media type never outvotes bytes that are known: a picture that is called a text is refused. A claim that
    the bytes neither confirm nor contradict stands.
(5) Content that may run when it is opened is active, whatever it was called.

Sources of the signatures: the WHATWG MIME Sniffing Standard, RFC 9559 (Matroska), RFC 1952 (gzip), APPNOTE (zip).
"""

from __future__ import annotations

import codecs
import hashlib
import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from keepward.errors import InvalidInput
from keepward.model.codec import digest
from keepward.model.memory import ContentType
from keepward.model.trust import Actor, ActorKind, Rights
from keepward.model.value import Value

#: Most bytes of one blob.
LIMIT = 32 * 1024 * 1024
#: How long a blob is kept that nothing refers to, counted from when it was last put.
GRACE = timedelta(hours=24)
#: Principals that are remembered as having put a blob; the newest stay.
MOST_PUTS = 64
PREFIX = "sha256:"
_REF = re.compile(r"sha256:[0-9a-f]{64}", re.ASCII)
_PLACE = re.compile(r"[0-9a-f]{16}/[0-9]{4}/[0-9]{2}/[0-9]{2}/[0-9a-f]{64}", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Blob(Value):
    """What can be told of a blob without reading it."""

    #: ``sha256:`` and 64 hex digits.
    ref: str
    #: Size.
    bytes: int
    #: Lower case, without parameters, such as ``image/png``.
    media_type: str
    #: Whether a browser or a system might run it: HTML, SVG, XML, scripts, programs.
    active: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Put:
    """That a principal had the bytes and put them; it may read them as well."""

    kind: str
    name: str
    credential: str | None
    at: datetime

    def by(self, actor: Actor) -> bool:
        """Whether it was this principal."""
        return actor.is_same(
            Actor(kind=ActorKind(self.kind), name=self.name, rights=Rights.AGENT, credential=self.credential)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A blob as the store knows it."""

    tenant: str
    blob: Blob
    #: When it was first put: the day of its folder.
    at: datetime
    #: Oldest first; one a principal.
    puts: tuple[Put, ...]

    @property
    def place(self) -> str:
        """Path of its file inside the folder of blobs."""
        return place(self.tenant, self.at, self.blob.ref)

    @property
    def last_put(self) -> datetime:
        """When it was put last."""
        return max((each.at for each in self.puts), default=self.at)


def ref_of(data: bytes) -> str:
    """Return the name of a blob with these bytes."""
    return PREFIX + hashlib.sha256(data).hexdigest()


def parse_ref(ref: object) -> str:
    """Return a blob's name as it is.

    Raises:
        InvalidInput: it is none.
    """
    if not isinstance(ref, str) or not _REF.fullmatch(ref):
        raise InvalidInput("a blob is named sha256: and 64 hex digits, as put_blob returned it")
    return ref


def place(tenant: str, at: datetime, ref: str) -> str:
    """Return ``<16 hex digits>/<year>/<month>/<day>/<64 hex digits>``, with the day in UTC."""
    folder = digest("tenant", tenant.encode()).hex()[:16]
    return f"{folder}/{at.astimezone(UTC):%Y/%m/%d}/{parse_ref(ref).removeprefix(PREFIX)}"


def is_place(path: str) -> bool:
    """Whether a path is one that ``place`` gives."""
    return _PLACE.fullmatch(path) is not None


def with_put(puts: tuple[Put, ...], fresh: Put, actor: Actor) -> tuple[Put, ...]:
    """Return the puts of a blob with one more; an earlier one of the same principal goes."""
    return (*(each for each in puts if not each.by(actor)), fresh)[-MOST_PUTS:]


ANY = "application/octet-stream"
#: (offset, signature, media type), the first that fits counts.
_MAGIC: tuple[tuple[int, bytes, str], ...] = (
    (0, b"\x89PNG\r\n\x1a\n", "image/png"),
    (0, b"\xff\xd8\xff", "image/jpeg"),
    (0, b"GIF87a", "image/gif"),
    (0, b"GIF89a", "image/gif"),
    (8, b"WEBP", "image/webp"),
    (8, b"WAVE", "audio/wav"),
    (8, b"AVI ", "video/x-msvideo"),
    (0, b"BM", "image/bmp"),
    (0, b"II*\0", "image/tiff"),
    (0, b"MM\0*", "image/tiff"),
    (0, b"\0\0\1\0", "image/vnd.microsoft.icon"),
    (0, b"%PDF-", "application/pdf"),
    (0, b"PK\3\4", "application/zip"),
    (0, b"PK\5\6", "application/zip"),
    (0, b"\x1f\x8b\x08", "application/gzip"),
    (0, b"7z\xbc\xaf\x27\x1c", "application/x-7z-compressed"),
    (0, b"Rar!\x1a\x07", "application/vnd.rar"),
    (0, b"BZh", "application/x-bzip2"),
    (0, b"\xfd7zXZ\0", "application/x-xz"),
    (0, b"\x28\xb5\x2f\xfd", "application/zstd"),
    (257, b"ustar", "application/x-tar"),
    (0, b"ID3", "audio/mpeg"),
    (0, b"OggS", "audio/ogg"),
    (0, b"fLaC", "audio/flac"),
    (8, b"AIFF", "audio/aiff"),
    (0, b"MThd", "audio/midi"),
    (0, b"\x1a\x45\xdf\xa3", "video/webm"),
    (0, b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "application/x-ole-storage"),
    (0, b"SQLite format 3\0", "application/vnd.sqlite3"),
    (0, b"\x7fELF", "application/x-executable"),
    (0, b"MZ", "application/x-msdownload"),
    (0, b"\xcf\xfa\xed\xfe", "application/x-mach-binary"),
    (0, b"\xca\xfe\xba\xbe", "application/x-mach-binary"),
    (0, b"\0asm", "application/wasm"),
)
#: What stands at an offset of 8 needs this at the beginning.
_FORMS = {"image/webp": b"RIFF", "audio/wav": b"RIFF", "video/x-msvideo": b"RIFF", "audio/aiff": b"FORM"}
#: Signatures so short that bytes which are text are taken for text.
_SHORT = frozenset({"image/bmp", "application/x-msdownload", "application/x-bzip2", "audio/mpeg"})
_BRANDS = {
    **dict.fromkeys(("avif", "avis"), "image/avif"),
    **dict.fromkeys(("heic", "heix", "hevc", "mif1", "msf1"), "image/heic"),
    **dict.fromkeys(("M4A ", "M4B ", "M4P "), "audio/mp4"),
    "qt  ": "video/quicktime",
}
#: Other names of one thing.
_SAME = {
    **dict.fromkeys(("image/jpg", "image/pjpeg"), "image/jpeg"),
    **dict.fromkeys(("image/x-png", "image/apng"), "image/png"),
    **dict.fromkeys(("image/x-icon", "image/ico"), "image/vnd.microsoft.icon"),
    **dict.fromkeys(("image/x-ms-bmp", "image/x-bmp"), "image/bmp"),
    "image/tif": "image/tiff",
    "image/heif": "image/heic",
    **dict.fromkeys(("audio/mp3", "audio/x-mp3", "audio/x-mpeg"), "audio/mpeg"),
    **dict.fromkeys(("audio/x-wav", "audio/wave", "audio/vnd.wave"), "audio/wav"),
    "audio/x-flac": "audio/flac",
    **dict.fromkeys(("audio/x-m4a", "audio/m4a"), "audio/mp4"),
    "audio/x-aiff": "audio/aiff",
    **dict.fromkeys(("audio/x-midi", "audio/mid"), "audio/midi"),
    **dict.fromkeys(("video/avi", "video/msvideo"), "video/x-msvideo"),
    "video/x-m4v": "video/mp4",
    "application/x-pdf": "application/pdf",
    "application/x-zip-compressed": "application/zip",
    "application/x-gzip": "application/gzip",
    "application/x-rar-compressed": "application/vnd.rar",
    "application/x-sqlite3": "application/vnd.sqlite3",
    "application/x-shockwave": "application/x-shockwave-flash",
    "text/json": "application/json",
    "text/xml": "application/xml",
    **dict.fromkeys(("application/javascript", "application/x-javascript", "text/ecmascript"), "text/javascript"),
}
#: Claims that a container allows beside its own name.
_WITHIN: dict[str, re.Pattern[str]] = {
    "application/zip": re.compile(
        r"application/(?:[\w.+-]*\+zip|java-archive|vnd\.(?:openxmlformats-|oasis\.opendocument\.|ms-\w+\."
        r"|android\.|comicbook|google-earth\.kmz)[\w.+-]*|x-wheel|x-apple[\w.+-]*)"
    ),
    "application/gzip": re.compile(r"application/(?:[\w.+-]*\+gzip|x-tgz|x-compressed-tar)"),
    "audio/ogg": re.compile(r"(?:application|video)/ogg|audio/(?:opus|vorbis|speex)"),
    "video/webm": re.compile(r"audio/(?:webm|x-matroska)|video/(?:x-)?matroska"),
    "video/mp4": re.compile(r"audio/mp4|video/(?:3gpp2?|quicktime)|audio/3gpp2?|application/mp4"),
    "audio/mp4": re.compile(r"video/mp4|application/mp4"),
    "video/quicktime": re.compile(r"video/mp4"),
    "image/heic": re.compile(r"image/avif|image/hei[cf]-sequence"),
    "application/x-ole-storage": re.compile(r"application/(?:msword|vnd\.(?:ms-|visio)[\w.-]*|x-msi)"),
    "application/x-executable": re.compile(r"application/x-(?:sharedlib|object|elf|pie-executable)"),
    "application/x-msdownload": re.compile(r"application/(?:x-dosexec|vnd\.microsoft\.portable-executable)"),
    "application/x-mach-binary": re.compile(r"application/java-vm"),
    "application/vnd.sqlite3": re.compile(r"application/(?:x-sqlite|geopackage\+sqlite3)"),
    "application/pdf": re.compile(r"application/(?:vnd\.adobe\.)?illustrator"),
    "image/tiff": re.compile(r"image/(?:x-|dng)[\w-]*"),
}
#: Types whose bytes always say so; a claim to one of them takes proof.
_PROVED = frozenset(name for _, _, name in _MAGIC) - {"audio/mpeg", "video/webm", "application/x-tar"}
_TEXTUAL = re.compile(
    r"text/[\w.+-]+|application/(?:[\w.-]+\+(?:json|xml|yaml)|json|xml|yaml|x-yaml|toml|sql|graphql|rtf|x-sh"
    r"|x-ndjson|jsonl?|ld\+json|x-python|x-tex|x-httpd-php|typescript|x-www-form-urlencoded|x-subrip|pgp-\w+"
    r"|x-pem-file)|image/svg\+xml|message/rfc822|model/(?:obj|gltf\+json)"
)
_ACTIVE = re.compile(
    r"text/(?:html|javascript|x-component)|application/(?:xhtml\+xml|xml|[\w.-]+\+xml|x-executable|x-msdownload"
    r"|x-mach-binary|wasm|x-sh|x-sharedlib|x-pie-executable|x-dosexec|vnd\.microsoft\.portable-executable"
    r"|java-archive|x-shockwave-flash|hta|x-msi|x-httpd-php)|image/svg\+xml"
)
_NAME = re.compile(r"[a-z0-9][a-z0-9!#$&^_.+-]{0,126}/[a-z0-9][a-z0-9!#$&^_.+-]{0,126}", re.ASCII)
_LEAD = re.compile(
    r"(?:\s|<\?xml[^>]{0,256}\?>|<!--.{0,1024}?-->|<!doctype\s+(?!html)[^>]{0,512}>)*", re.DOTALL | re.IGNORECASE
)
_MARKUP = re.compile(r"<!doctype\s+html|<(?:html|head|body|script|iframe|svg)[\s/>]", re.IGNORECASE)
_BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_HEAD = 4096
_JSON = 4 * 1024 * 1024


def settled(claim: str | None, data: bytes) -> tuple[str, bool]:
    """Return the media type of a content, and whether it is active.

    ``claim`` None, or ``application/octet-stream``, takes what the bytes say.

    Raises:
        InvalidInput: the claim is no media type, or the bytes say otherwise.
    """
    named = None if claim is None else _name(claim)
    text = text_in(data)
    found = _sniffed(data, text)
    if named is None or named == ANY:
        named = found or ("text/plain" if text is not None else ANY)
    elif not _fits(named, found, data, text):
        raise InvalidInput(f"the bytes are not of that media type: {_told(found, text)}; name theirs, or leave it out")
    return named, _is_active(named) or (found is not None and _is_active(found))


def text_in(data: bytes) -> str | None:
    """Return the text that bytes are: UTF-8, or UTF-16 and UTF-32 with their mark; None when they are none."""
    codec = next((codec for mark, codec in _BOMS if data.startswith(mark)), "utf-8")
    if codec.startswith("utf-8") and b"\0" in data:
        return None
    try:
        text = data.decode(codec)
    except UnicodeDecodeError:
        return None
    return None if "\0" in text else text


def is_textual(media_type: str) -> bool:
    """Whether content of a type is text by its nature."""
    return _TEXTUAL.fullmatch(media_type) is not None


def content_type_of(media_type: str) -> ContentType:
    """Return the content type that a memory of such a blob has when its writer names none."""
    main = media_type.partition("/")[0]
    if main in {"image", "audio", "video"}:
        return ContentType(main)
    if main == "text":
        return ContentType.TEXT
    return ContentType.STRUCTURED if is_textual(media_type) else ContentType.FILE


def agrees(content_type: ContentType, media_type: str) -> bool:
    """Whether a memory of that content type may refer to a blob of that media type."""
    if content_type is ContentType.FILE:
        return True
    if content_type in {ContentType.TEXT, ContentType.STRUCTURED}:
        return is_textual(media_type)
    return media_type.startswith(f"{content_type.value}/")


def _name(claim: object) -> str:
    plain = claim.partition(";")[0].strip().lower() if isinstance(claim, str) else ""
    if not _NAME.fullmatch(plain):
        raise InvalidInput("a media type is two names with a slash between them, such as image/png")
    return _SAME.get(plain, plain)


def _sniffed(data: bytes, text: str | None) -> str | None:
    for offset, signature, name in _MAGIC:
        if data.startswith(signature, offset) and data.startswith(_FORMS.get(name, b"")):
            if text is not None and name in _SHORT:
                continue
            return name
    if data[4:8] == b"ftyp":
        return _BRANDS.get(data[8:12].decode("latin-1"), "video/mp4")
    if data[:1] == b"\xff" and len(data) > 1 and data[1] in {0xFB, 0xFA, 0xF3, 0xF2}:
        return "audio/mpeg"
    return None if text is None else _written(text)


def _written(text: str) -> str | None:
    """Return what a text is beyond being text: HTML, SVG, XML or JSON; None for any other."""
    head = text[:_HEAD]
    start = _LEAD.match(head)
    markup = _MARKUP.match(head, start.end() if start else 0)
    if markup is not None:
        return "image/svg+xml" if markup[0].lower().startswith("<svg") else "text/html"
    opening = head.lstrip()
    if opening.startswith("<?xml"):
        return "application/xml"
    if opening[:1] in {"{", "["} and len(text) <= _JSON:
        try:
            json.loads(text)
        except (ValueError, RecursionError):
            return None
        return "application/json"
    return None


def _fits(named: str, found: str | None, data: bytes, text: str | None) -> bool:
    if text is not None:
        # A text may be called any sort of text; what it might do is told by ``active``.
        return is_textual(named) or (
            named not in _PROVED and named.partition("/")[0] not in {"image", "audio", "video"}
        )
    if is_textual(named):
        # An older encoding is let through as a text; a zero byte is in none of them.
        return found is None and b"\0" not in data
    if found is None:
        return named not in _PROVED
    within = _WITHIN.get(found)
    return named == found or (within is not None and within.fullmatch(named) is not None)


def _told(found: str | None, text: str | None) -> str:
    if found is not None:
        return f"they look like {found}"
    return "they are text" if text is not None else "they look like nothing of the kind"


def _is_active(media_type: str) -> bool:
    return _ACTIVE.fullmatch(media_type) is not None
