"""Blobs: content in files next to the store, named by its hash.

Invariants
(1) A blob is named by the SHA-256 of its bytes and by nothing else: the name does not say when or by whom they
    were put. The media type of the first put stays.
(2) A blob belongs to one tenant. The place of its file says the tenant's digest and the day it was first put, and
    holds nothing that a caller chose.
(3) ``place`` is one to one; what is no place names no file, so no path leads out of the folder.
"""

from __future__ import annotations

import hashlib
import re
from datetime import UTC, datetime, timedelta

from keepward.core.patterns import lazy_regex
from keepward.core.principals import Actor, ActorKind, Role
from keepward.core.serialization import tenant_digest
from keepward.core.value import Data, Value
from keepward.errors import InvalidInput

#: Most bytes of one blob.
MAX_BLOB_BYTES = 32 * 1024 * 1024
#: How long a blob is kept that nothing refers to, counted from when it was last put.
UNREFERENCED_GRACE = timedelta(hours=24)
#: Principals that are remembered as having put a blob; the newest stay.
MAX_UPLOADS = 64
REF_PREFIX = "sha256:"
_REF = lazy_regex(r"sha256:[0-9a-f]{64}", re.ASCII)
_PATH = lazy_regex(r"[0-9a-f]{16}/[0-9]{4}/[0-9]{2}/[0-9]{2}/[0-9a-f]{64}", re.ASCII)


class Blob(Value):
    """What can be told of a blob without reading it."""

    #: ``sha256:`` and 64 hex digits.
    ref: str
    #: Size.
    bytes: int
    #: Lower case, without parameters, such as ``image/png``.
    media_type: str
    #: Whether a browser or a system might run it: every type but those that a browser only shows.
    active: bool
    #: What of it could not be looked into for secrets.
    notes: tuple[str, ...] = ()


class BlobUpload(Data):
    """That a principal had the bytes and put them; it may read them as well."""

    kind: str
    name: str
    credential: str | None
    at: datetime

    def by(self, actor: Actor) -> bool:
        """Whether it was this principal."""
        return actor.is_same_actor(
            Actor(kind=ActorKind(self.kind), name=self.name, rights=Role.AGENT, credential=self.credential)
        )


class StoredBlob(Data):
    """A blob as the store knows it."""

    tenant: str
    blob: Blob
    #: When it was first put: the day of its folder.
    at: datetime
    #: Oldest first; one a principal.
    puts: tuple[BlobUpload, ...]

    @property
    def place(self) -> str:
        """Path of its file inside the folder of blobs."""
        return blob_path(self.tenant, self.at, self.blob.ref)

    @property
    def last_upload(self) -> datetime:
        """When it was put last."""
        return max((each.at for each in self.puts), default=self.at)


def ref_of(data: bytes) -> str:
    """Return the name of a blob with these bytes."""
    return REF_PREFIX + hashlib.sha256(data).hexdigest()


def parse_ref(ref: object) -> str:
    """Return a blob's name as it is.

    Raises:
        InvalidInput: it is none.
    """
    if not isinstance(ref, str) or not _REF.fullmatch(ref):
        raise InvalidInput("a blob is named sha256: and 64 hex digits, as put_blob returned it")
    return ref


def blob_path(tenant: str, at: datetime, ref: str) -> str:
    """Return ``<16 hex digits>/<year>/<month>/<day>/<64 hex digits>``, with the day in UTC."""
    return f"{tenant_digest(tenant)[:16]}/{at.astimezone(UTC):%Y/%m/%d}/{parse_ref(ref).removeprefix(REF_PREFIX)}"


def is_blob_path(path: str) -> bool:
    """Whether a path is one that ``place`` gives."""
    return _PATH.fullmatch(path) is not None


def with_upload(puts: tuple[BlobUpload, ...], fresh: BlobUpload, actor: Actor) -> tuple[BlobUpload, ...]:
    """Return the puts of a blob with one more; an earlier one of the same principal goes."""
    return (*(each for each in puts if not each.by(actor)), fresh)[-MAX_UPLOADS:]
