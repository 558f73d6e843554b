"""Blobs: where their bytes lie, and what the store knows of them.

Invariants
(1) Bytes are on disk, under their final name, before the store knows of them; they go after the store has
    forgotten them. What a crash leaves is a file that the store does not know, never the other way round.
(2) Whoever adds a file and its row holds the folder; whoever removes what has no row holds it alone.
(3) A place is of ``model.blob.place``; nothing else names a file.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Protocol


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
