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
from functools import cache

from keepward.errors import InvalidInput
from keepward.model.codec import hidden
from keepward.model.memory import ContentType
from keepward.model.patterns import regex, table
from keepward.model.trust import Actor, ActorKind, Rights
from keepward.model.value import Value

#: Most bytes of one blob.
LIMIT = 32 * 1024 * 1024
#: How long a blob is kept that nothing refers to, counted from when it was last put.
GRACE = timedelta(hours=24)
#: Principals that are remembered as having put a blob; the newest stay.
MOST_PUTS = 64
PREFIX = "sha256:"
_REF = regex(r"sha256:[0-9a-f]{64}", re.ASCII)
_PLACE = regex(r"[0-9a-f]{16}/[0-9]{4}/[0-9]{2}/[0-9]{2}/[0-9a-f]{64}", re.ASCII)


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
    #: What of it could not be looked into for secrets.
    notes: tuple[str, ...] = ()


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
    return f"{hidden(tenant)[:16]}/{at.astimezone(UTC):%Y/%m/%d}/{parse_ref(ref).removeprefix(PREFIX)}"


def is_place(path: str) -> bool:
    """Whether a path is one that ``place`` gives."""
    return _PLACE.fullmatch(path) is not None


def with_put(puts: tuple[Put, ...], fresh: Put, actor: Actor) -> tuple[Put, ...]:
    """Return the puts of a blob with one more; an earlier one of the same principal goes."""
    return (*(each for each in puts if not each.by(actor)), fresh)[-MOST_PUTS:]


ANY = "application/octet-stream"
_NAME = regex(r"[a-z0-9][a-z0-9!#$&^_.+-]{0,126}/[a-z0-9][a-z0-9!#$&^_.+-]{0,126}", re.ASCII)
_LEAD = regex(
    r"(?:\s|<\?xml[^>]{0,256}\?>|<!--.{0,1024}?-->|<!doctype\s+(?!html)[^>]{0,512}>)*", re.DOTALL | re.IGNORECASE
)
_MARKUP = regex(r"<!doctype\s+html|<(?:html|head|body|script|iframe|svg)[\s/>]", re.IGNORECASE)
_BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_HEAD = 4096
_JSON = 4 * 1024 * 1024


class _Media:
    """What ``media.toml`` says, read once, at the first content whose type is asked for."""

    def __init__(self) -> None:
        told = table(__package__, "media.toml")
        self.signatures: list[tuple[int, bytes, bytes, str]] = [
            (each.get("at", 0), each["bytes"].encode("latin-1"), each.get("begins", "").encode(), each["type"])
            for each in told["signature"]
        ]
        self.short = {each["type"] for each in told["signature"] if each.get("short")}
        #: Types whose bytes always say so; a claim to one of them takes proof.
        self.proved = {each["type"] for each in told["signature"] if each.get("told", True)}
        self.brands: dict[str, str] = told["brands"]
        self.same: dict[str, str] = {other: name for name, others in told["same"].items() for other in others}
        self.within: dict[str, re.Pattern[str]] = {name: regex(pattern) for name, pattern in told["within"].items()}
        self.textual, self.active = (regex(told["sorts"][name]) for name in ("textual", "active"))


_media = cache(_Media)


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
        raise InvalidInput(
            f"the bytes are not of that media type: {_likeness(found, text)}; name theirs, or leave it out"
        )
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
    return _media().textual.fullmatch(media_type) is not None


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
    return _media().same.get(plain, plain)


def _sniffed(data: bytes, text: str | None) -> str | None:
    for offset, signature, begins, name in _media().signatures:
        fits = data.startswith(signature, offset) and data.startswith(begins)
        if fits and not (text is not None and name in _media().short):
            return name
    if data[4:8] == b"ftyp":
        return _media().brands.get(data[8:12].decode("latin-1"), "video/mp4")
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
            named not in _media().proved and named.partition("/")[0] not in {"image", "audio", "video"}
        )
    if is_textual(named):
        # An older encoding is let through as a text; a zero byte is in none of them.
        return found is None and b"\0" not in data
    if found is None:
        return named not in _media().proved
    within = _media().within.get(found)
    return named == found or (within is not None and within.fullmatch(named) is not None)


def _likeness(found: str | None, text: str | None) -> str:
    if found is not None:
        return f"they look like {found}"
    return "they are text" if text is not None else "they look like nothing of the kind"


def _is_active(media_type: str) -> bool:
    return _media().active.fullmatch(media_type) is not None
