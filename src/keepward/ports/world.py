"""The world outside: time, randomness, and a place to note heads where the store's thief is not."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Literal, Protocol

from keepward.model.commit import Head


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
Sort = Literal["journal", "beside"]
#: What this machine knows of a store at a place: nothing, the store, or only the store that it is a new copy of.
Standing = Literal["unknown", "known", "copied"]


class Anchor(Protocol):
    """Remembers, outside the store's folder, a secret key and how far each tenant's journal had come."""

    def bind(self, store_id: str, place: Path | None = None) -> Standing:
        """Say which store this is about and where its file is; the store calls it once, before anything else."""
        ...

    def knows(self, place: Path) -> bool:
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

    def noted(self, tenant: str, of: Sort = "journal") -> Head | None:
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
