"""Blobs: content in files next to the store, named by its hash.

* The name of a blob is the SHA-256 of its bytes. The media type of the first upload stays.
* A blob belongs to one tenant. The path of its file contains a digest of the tenant and the day of the first upload,
  and nothing that a caller chose.
* ``is_blob_path`` accepts only paths from ``blob_path``, so no path leads out of the folder.
"""

from __future__ import annotations

import hashlib
import re
from datetime import UTC, datetime, timedelta

from keepward.core.patterns import lazy_regex
from keepward.core.principals import Actor, ActorKind, Role
from keepward.core.serialization import tenant_digest
from keepward.core.value import Data, Instant, Value
from keepward.errors import InvalidInput

#: Maximum size of a blob.
MAX_BLOB_BYTES = 32 * 1024 * 1024
#: A blob that nothing refers to is deleted this long after its last upload.
UNREFERENCED_GRACE = timedelta(hours=24)
#: Maximum number of recorded uploads of a blob; the newest are recorded.
MAX_UPLOADS = 64
REF_PREFIX = "sha256:"
_REF = lazy_regex(r"sha256:[0-9a-f]{64}", re.ASCII)
_PATH = lazy_regex(r"[0-9a-f]{16}/[0-9]{4}/[0-9]{2}/[0-9]{2}/[0-9a-f]{64}", re.ASCII)


class Blob(Value):
    """A blob without its bytes."""

    #: ``sha256:`` and 64 hex digits.
    ref: str
    #: Size in bytes.
    bytes: int
    #: Lower case, without parameters, such as ``image/png``.
    media_type: str
    #: Whether a browser or an operating system might execute it.
    active: bool
    #: The parts that could not be searched for secrets.
    notes: tuple[str, ...] = ()


class BlobUpload(Data):
    """An actor who uploaded the bytes and may therefore read them."""

    kind: str
    name: str
    credential: str | None
    at: Instant

    def by(self, actor: Actor) -> bool:
        """Whether this actor uploaded it."""
        return actor.is_same_actor(
            Actor(kind=ActorKind(self.kind), name=self.name, rights=Role.AGENT, credential=self.credential)
        )


class StoredBlob(Data):
    """A blob and its uploads."""

    tenant: str
    blob: Blob
    #: Time of the first upload; its day names the folder.
    at: Instant
    #: Oldest first; one for each actor.
    puts: tuple[BlobUpload, ...]

    @property
    def place(self) -> str:
        """Path of its file inside the blob folder."""
        return blob_path(self.tenant, self.at, self.blob.ref)

    @property
    def last_upload(self) -> datetime:
        """Time of the last upload."""
        return max((upload.at for upload in self.puts), default=self.at)


def ref_of(data: bytes) -> str:
    """Return the name of a blob with these bytes."""
    return REF_PREFIX + hashlib.sha256(data).hexdigest()


def parse_ref(ref: object) -> str:
    """Return a valid blob name unchanged.

    Raises:
        InvalidInput: it is not a blob name.
    """
    if not isinstance(ref, str) or not _REF.fullmatch(ref):
        raise InvalidInput("a blob is named sha256: and 64 hex digits, as put_blob returned it")
    return ref


def blob_path(tenant: str, at: datetime, ref: str) -> str:
    """Return ``<16 hex digits>/<year>/<month>/<day>/<64 hex digits>``, with the day in UTC."""
    return f"{tenant_digest(tenant)[:16]}/{at.astimezone(UTC):%Y/%m/%d}/{parse_ref(ref).removeprefix(REF_PREFIX)}"


def is_blob_path(path: str) -> bool:
    """Whether ``blob_path`` could have returned this path."""
    return _PATH.fullmatch(path) is not None


def with_upload(puts: tuple[BlobUpload, ...], fresh: BlobUpload, actor: Actor) -> tuple[BlobUpload, ...]:
    """Return the uploads of a blob with a new one, which replaces an earlier one of the same actor."""
    return (*(upload for upload in puts if not upload.by(actor)), fresh)[-MAX_UPLOADS:]
