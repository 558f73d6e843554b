"""Erasing: destroying content in place, and remembering outside of the store that this was done.

Invariants
(1) What is destroyed is named by a commit of the same transaction.
(2) Nothing here holds content: places, commitments, ids, and marks under a key that is not in the store.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from keepward.model.commit import CommitDetails, Head, Place
from keepward.model.proposal import Waiting
from keepward.model.query import Feedback


@dataclass(frozen=True, slots=True, kw_only=True)
class Destruction:
    """What a transaction destroys beside the commit it has just appended."""

    #: Memories that are gone: what recall needs of them goes, and their uses.
    ids: tuple[str, ...] = ()
    #: Events whose payload and salt go.
    events: tuple[Place, ...] = ()
    #: Commits whose details go, by seq, with what may stay of them.
    details: Mapping[int, CommitDetails] = field(default_factory=dict)
    #: What stays of receipts, by id.
    receipts: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    #: What stays of proposals.
    proposals: tuple[Waiting, ...] = ()
    #: Kind and version of kept texts that go.
    artefacts: tuple[tuple[str, str], ...] = ()
    #: What stays of feedback, under its number.
    feedback: tuple[Feedback, ...] = ()


class Erases(Protocol):
    """What a writer can destroy."""

    def destroy(self, tenant: str, what: Destruction) -> None:
        """Destroy content, named by the commit that this transaction appended, and note that the file is unclean.

        Raises:
            Conflict: a place is not there, or is empty already.
        """
        ...

    def settle(self) -> None:
        """Take back the note that the file is unclean."""
        ...


class Erasable(Protocol):
    """What a store can tell about, and do for, an erasure."""

    def receipts(self, tenant: str) -> Iterator[dict[str, Any]]:
        """Yield every receipt whose seal holds, by id."""
        ...

    def artefacts(self, tenant: str) -> list[tuple[str, str, str]]:
        """Return (kind, version, text) of every kept text whose seal holds."""
        ...

    def erasing(self, tenant: str) -> list[str]:
        """Return the ids of the commits that erased something, oldest first."""
        ...

    def unclean(self) -> bool:
        """Whether destroyed content may still lie in free pages or in the log."""
        ...

    def scrub(self) -> str | None:
        """Write the file anew from what is live and empty its log; return None, or why that has to wait."""
        ...

    def backup(self, target: Path) -> None:
        """Write a consistent copy of the live store to a new file.

        Raises:
            StoreUnavailable: it cannot be written.
        """
        ...

    def tails(self) -> dict[str, Head]:
        """Return each tenant's head as the file has it, unchecked."""
        ...

    def adopt(self, note: str) -> None:
        """Accept the store as it stands, once its chain was verified; every seal and noted head is made anew.

        ``note`` is kept in the store; of a foreign one for good.

        Raises:
            StoreUnavailable: this machine has no place for a key.
            Tampered: the chain does not hold.
        """
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
