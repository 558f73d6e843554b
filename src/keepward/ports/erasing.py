"""Erasing: destroying content in place, and remembering outside of the store that this was done.

Invariants
(1) What is destroyed is named by a commit of the same transaction.
(2) Nothing here holds content: places, commitments, ids, and marks under a key that is not in the store.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from keepward.model.commit import CommitDetails, Place
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
