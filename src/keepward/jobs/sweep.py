"""Sweep: blobs that nothing refers to go, a day after they were last put; so do old bodies of proposals.

No memory changes by it, and nothing that a memory refers to is touched, whether the memory holds or not. What an
interrupted write left in the folder of blobs goes as well.
"""

from __future__ import annotations

from collections.abc import Callable

from keepward.engine import blobs, review
from keepward.engine.kit import Kit, Who
from keepward.jobs.desk import Done


def sweep(kit: Kit, who: Who, _: Callable[[], None]) -> Done:
    """Remove what nothing refers to; counts blobs, their bytes, files that no blob was known of, and proposals."""
    dropped = review.drop_bodies(kit, who)
    found = blobs.sweep(kit, who.tenant)
    return Done(counts={"blobs": found.blobs, "bytes": found.bytes, "strays": found.strays, "proposals": dropped})
