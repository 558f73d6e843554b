"""Protocols of the outside world: clock, ids, blobs, and the records that are stored apart from the store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, Protocol

from keepward.core.commit import Head
from keepward.core.evidence import FoundSource, Reference


class Clock(Protocol):
    """Returns the current time."""

    def now(self) -> datetime:
        """Return the current time, aware, in UTC, in whole microseconds."""


class IdSource(Protocol):
    """Makes new ids and salts."""

    def new_id(self, now: datetime) -> str:
        """Return a UUIDv7 as 36 characters; ids of one source rise in the order in which they are made."""

    def salt(self) -> bytes:
        """Return 16 random bytes."""


#: Which part of a store a head describes.
HeadKind = Literal["journal", "sums"]
#: What this machine knows of a store at a path: nothing, the store, or the original of which it is a copy.
StoreRecognition = Literal["unknown", "known", "copied"]


class Anchor(Protocol):
    """Stores, outside the store's folder, a secret key and the last head of each tenant."""

    def bind(self, store_id: str, path: Path | None = None) -> StoreRecognition:
        """Set the store and the path of its file; the store calls this first."""

    def recorded_path(self) -> str | None:
        """Return the path at which the store was last; None without one."""

    def had_store_at(self, path: Path) -> bool:
        """Whether this machine has recorded a store at a path."""

    def key(self) -> bytes | None:
        """Return the store's 32-byte sealing key; None if this machine has none."""

    def adopt(self) -> bytes:
        """Create a new sealing key for the store, delete every recorded head, and return the key.

        Raises:
            OSError: the key cannot be stored.
        """

    def last_head(self, tenant: str, of: HeadKind = "journal") -> Head | None:
        """Return the last recorded head of a tenant's journal, or of the rows outside it; None without one.

        Raises:
            Tampered: the record does not match its seal.
        """

    def tenant_digests(self) -> set[str]:
        """Return, for every tenant with a recorded head, the hex digest of its name under the label ``tenant``."""

    def record_head(self, tenant: str, head: Head | None, sums: Head | None = None) -> None:
        """Record the heads of the journal and of the rows outside it. A head behind the recorded one is ignored."""

    def unwritable_reason(self, tenant: str) -> str | None:
        """Return why no head of a tenant can be recorded now; None if one can. Records nothing."""


class ErasureList(Protocol):
    """Records, outside of any store's folder, erasures, revoked tokens and backups."""

    def key(self, *, make: bool = False) -> bytes | None:
        """Return the key of this machine's erasure fingerprints; None without one unless it is to be created."""

    def add(self, entries: Sequence[Mapping[str, Any]]) -> None:
        """Add entries, durably.

        Raises:
            OSError: they cannot be written.
        """

    def revoked(self) -> frozenset[str]:
        """Return the SHA-256, in hex, of tokens that were revoked on this machine, whatever their rows say.

        Raises:
            OSError: the list exists and cannot be read.
        """

    def entries(self) -> list[dict[str, Any]]:
        """Return all entries, oldest first."""


class IdentityDocument(Protocol):
    """A text of the user outside the store, such as the identity. Nothing here writes it."""

    #: Name of its file; None if there is to be no document.
    name: str | None

    def __call__(self) -> tuple[str, str] | None:
        """Return its current version and text; None without a document."""


class SourceReader(Protocol):
    """Reads what memories cite outside of the store."""

    def read(self, reference: Reference) -> FoundSource:
        """Return what a reference of the form ``file`` or ``git`` cites now."""


class BlobStore(Protocol):
    """Stores bytes by path."""

    def locked(self, *, alone: bool = False) -> AbstractContextManager[None]:
        """Lock the folder against removals during the block; ``alone`` also against additions.

        Raises:
            OSError: the folder cannot be reached.
        """

    def save(self, path: str, data: bytes) -> None:
        """Write bytes durably; replace a file with other bytes at the same path.

        Raises:
            OSError: they cannot be written.
        """

    def read(self, path: str) -> bytes | None:
        """Return the stored bytes, unchecked; None without a file.

        Raises:
            OSError: they cannot be read.
        """

    def size(self, path: str) -> int | None:
        """Return the size of a file in bytes; None without a file."""

    def remove(self, path: str) -> None:
        """Remove a file durably, if it exists.

        Raises:
            OSError: it cannot be removed.
        """

    def paths(self) -> list[str]:
        """Return the sorted paths of all files in the folder, with the leftovers of interrupted writes."""
