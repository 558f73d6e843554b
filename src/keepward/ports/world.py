"""The world outside: time, randomness, folders of blobs, and what is remembered where the store's thief is not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, Protocol

from keepward.core.commit import Head


class Clock(Protocol):
    """Tells the time."""

    def now(self) -> datetime:
        """Return the present instant, aware, in UTC, in whole microseconds."""
        ...


class IdSource(Protocol):
    """Gives fresh names and salts."""

    def new_id(self, now: datetime) -> str:
        """Return a UUIDv7 in its 36-character form; ids of one source rise in the order given."""
        ...

    def salt(self) -> bytes:
        """Return 16 random bytes."""
        ...


#: What a head is of.
HeadKind = Literal["journal", "beside"]
#: What this machine knows of a store at a path: nothing, the store, or the store at another path that it is a copy of.
StoreRecognition = Literal["unknown", "known", "copied"]


class Anchor(Protocol):
    """Remembers, outside the store's folder, a secret key and how far each tenant's journal had come."""

    def bind(self, store_id: str, place: Path | None = None) -> StoreRecognition:
        """Say which store this is about and where its file is; the store calls it once, before anything else."""
        ...

    def had_store_at(self, place: Path) -> bool:
        """Whether a store was at a place, as far as this machine has noted."""
        ...

    def key(self) -> bytes | None:
        """Return the store's 32-byte sealing key, or None when this machine holds none."""
        ...

    def adopt(self) -> bytes:
        """Make and keep a new sealing key for the store, forgetting every head noted; return it.

        Raises:
            OSError: this machine offers no place to keep it.
        """
        ...

    def noted(self, tenant: str, of: HeadKind = "journal") -> Head | None:
        """Return the last head noted of a tenant's journal, or of what stands beside it; or None.

        Raises:
            Tampered: what was noted does not match its own seal.
        """
        ...

    def names(self) -> set[str]:
        """Return, for every tenant with a noted head, the hex digest of its name under the label ``tenant``."""
        ...

    def note(self, tenant: str, head: Head | None, beside: Head | None = None) -> None:
        """Note a head of the journal and one of what stands beside it; one that is behind its note changes nothing."""
        ...

    def obstacle(self, tenant: str) -> str | None:
        """Return why no head of a tenant could be noted now; None where one could. Nothing is noted by it."""
        ...


class ErasureList(Protocol):
    """Remembers, outside of any store's folder, what was erased, which tokens were revoked, which backups were made."""

    def key(self, *, make: bool = False) -> bytes | None:
        """Return the key of this machine's marks; None when there is none yet and it is not to be made."""
        ...

    def note(self, entries: Sequence[Mapping[str, Any]]) -> None:
        """Add entries, durably.

        Raises:
            OSError: they cannot be written.
        """
        ...

    def revoked(self) -> frozenset[str]:
        """Return the hashes, in hex, of tokens that were revoked on this machine, whatever a store says of them.

        Raises:
            OSError: the list is there and cannot be read.
        """
        ...

    def entries(self) -> list[dict[str, Any]]:
        """Return all entries, oldest first."""
        ...


class IdentityDocument(Protocol):
    """A text of the user's outside of the store, such as the identity."""

    #: The tenant that may change it; None where none may.
    tenant: str | None

    def __call__(self) -> tuple[str, str] | None:
        """Return its version and its text, as they are now; None where there is none."""
        ...

    def obstacle(self) -> str | None:
        """Return why no other text can be put in its place, and what to do; None where one can."""
        ...

    def check_writable(self) -> None:
        """See that it can be replaced.

        Raises:
            OSError: it cannot.
        """
        ...

    def replace(self, text: str) -> None:
        """Replace its text, durably and in one step.

        Raises:
            OSError: it cannot be written, and is as it was.
        """
        ...


class BlobStore(Protocol):
    """Keeps bytes by place."""

    def holding(self, *, alone: bool = False) -> AbstractContextManager[None]:
        """Hold the folder against those that remove from it; ``alone`` against those that add to it as well.

        Raises:
            OSError: the folder cannot be reached.
        """
        ...

    def keep(self, place: str, data: bytes) -> None:
        """Write bytes, durably; what is there already and the same stays, and what is not the same is replaced.

        Raises:
            OSError: they cannot be written.
        """
        ...

    def read(self, place: str) -> bytes | None:
        """Return the bytes as they lie there, unchecked; None where there is no file.

        Raises:
            OSError: they cannot be read.
        """
        ...

    def size(self, place: str) -> int | None:
        """Return the size of a file in bytes; None where there is none."""
        ...

    def remove(self, place: str) -> None:
        """Remove a file for good; one that is not there is passed over.

        Raises:
            OSError: it cannot be removed.
        """
        ...

    def places(self) -> list[str]:
        """Return the paths of all files in the folder, sorted, what an interrupted write left behind among them."""
        ...
