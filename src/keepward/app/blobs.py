"""The verbs of blobs: content that is no text, kept beside the store and referred to by memories."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from keepward.app.handle import Handle
from keepward.model.blob import Blob

if TYPE_CHECKING:
    from keepward.app.memory import Memory


class Blobs(Handle):
    """Putting and reading content."""

    def put_blob(self, data: bytes, *, media_type: str | None = None) -> Blob:
        """Keep 1 byte to 32 MB, for memories to refer to: ``remember("what it shows", blob=blob.ref)``.

        Without a media type, or with ``application/octet-stream``, the bytes say what they are. The same bytes are
        kept once. What no memory refers to goes a day after it was put.

        Raises:
            Unauthorised: this principal may not propose.
            InvalidInput: empty, too large, not what the media type says, or holding a secret; nothing was stored.
            Conflict: they were erased here, or memory is switched off.
        """
        from keepward.engine.blobs import put

        return put(self._kit, self._who, data, media_type)

    def blob(self, ref: str) -> Blob:
        """Return size and media type of a blob that a live memory within reach refers to, or that one has put.

        Raises:
            NotFound: there is none by that name, or none that this handle may read.
        """
        from keepward.engine.blobs import told

        return told(self._kit, self._who, ref)

    def read_blob(self, ref: str) -> bytes:
        """Return the bytes of a blob, compared with its hash; who may read it is as for ``blob``.

        Raises:
            NotFound: there is none by that name, or none that this handle may read.
            Tampered: the bytes on disk are not those that were put, or are gone.
        """
        from keepward.engine.blobs import read

        return read(self._kit, self._who, ref)


def told_of(memory: Memory, refs: set[str]) -> Iterator[tuple[Blob, bytes | None]]:
    """Yield blobs of the tenant by ref, with their bytes, whatever refers to them; for the owner's export.

    Bytes are None where they are gone or do not match their hash.
    """
    from keepward.engine.blobs import files_of, reachable
    from keepward.model.blob import ref_of

    memory._owner("reading every blob")  # noqa: SLF001  a part of the front door
    kit = memory._kit  # noqa: SLF001  as above
    for kept in kit.store.blobs(memory.tenant):
        if kept.blob.ref in refs:
            with reachable():
                data = files_of(kit).read(kept.place)
            yield kept.blob, data if data is not None and ref_of(data) == kept.blob.ref else None
