"""Embedding: vectors for memories that have none, or only those of another embedder, a few at a time.

What is done is kept batch by batch: a run that is stopped, and the next one, go on where it was.
"""

from __future__ import annotations

from collections.abc import Callable

from keepward.engine.kit import Kit, Who
from keepward.engine.reindex import reindex
from keepward.jobs.desk import Done

#: Memories embedded between two writes: few, so that a run that is asked to stop does so soon.
BATCH = 16


def wanting(kit: Kit, tenant: str) -> bool:
    """Whether a live memory of the tenant has no vectors of the embedder in use."""
    return kit.embedder is not None and kit.store.unembedded(tenant, kit.clock.now(), kit.embedder.id)


def embed(kit: Kit, who: Who, keep_lease: Callable[[], None]) -> Done:
    """Compute what is missing."""
    if not wanting(kit, who.tenant):
        return Done(counts={"embedded": 0})
    return Done(counts={"embedded": reindex(kit, who, batch=BATCH, before_batch=keep_lease)})
