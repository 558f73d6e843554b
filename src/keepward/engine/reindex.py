"""Reindex: compute terms and vectors anew where they are missing, of another embedder or of an older release.

Resumable: what is done is written batch by batch, and a second run goes on with the rest.
"""

from __future__ import annotations

from collections.abc import Callable

from keepward.engine.features import embedded, questions, words
from keepward.engine.kit import Kit, Who
from keepward.errors import ModelUnavailable
from keepward.model.memory import Status
from keepward.model.query import Filter
from keepward.ports.store import Features

#: Memories embedded between two writes.
BATCH = 64


def reindex(
    kit: Kit,
    who: Who,
    *,
    ended: bool = False,
    batch: int = BATCH,
    before_batch: Callable[[], None] | None = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> int:
    """Bring every active memory's features up to the present embedder; return how many were computed.

    ``ended`` also computes the words of memories that no longer hold, as after a journal was restored.
    ``before_batch`` may raise, and what was computed until then is kept.

    Raises:
        ModelUnavailable: the embedder failed; what it had done is kept, and so is what the others had.
    """
    wanted = kit.embedder.id if kit.embedder else None
    if ended:
        _words_of_ended(kit, who)
    active = [indexed for _, indexed in kit.store.indexed(who.tenant, after=0) if indexed is not None]
    stale = [each.record for each in active if _stale(each.features, wanted)]
    # A turn's vectors hold the question that it answers, as they did when it was told.
    in_order = [each.record for each in sorted(active, key=lambda each: each.arrival)] if stale else []
    asked = questions(in_order, lambda _: None)
    for start in range(0, len(stale), batch):
        if before_batch is not None:
            before_batch()
        part = stale[start : start + batch]
        computed = embedded(kit.embedder, part, [words(record) for record in part], asked)
        if computed[0].model != wanted and not ended:
            raise ModelUnavailable("the embedder failed; try again, and this goes on where it stopped")
        with kit.store.write() as writer:
            writer.put_features(
                who.tenant,
                {record.id: features for record, features in zip(part, computed, strict=True)},
                {record.id: record.version for record in part},
            )
        if on_progress is not None:
            on_progress(min(start + batch, len(stale)), len(stale))
    kit.indexes.forget(who.tenant)
    return len(stale)


def _stale(features: Features, wanted: str | None) -> bool:
    from keepward.retrieval.analyze import readable

    return not readable(features.terms) or (wanted is not None and features.model != wanted)


def _words_of_ended(kit: Kit, who: Who) -> None:
    everything = Filter(scopes=(), include_sensitive=True)
    records = kit.store.find(who.tenant, everything, live_at=None, limit=None).records
    gone = [record for record in records if record.status is not Status.ACTIVE]
    for start in range(0, len(gone), BATCH):
        part = gone[start : start + BATCH]
        with kit.store.write() as writer:
            writer.put_features(
                who.tenant,
                {record.id: words(record) for record in part},
                {record.id: record.version for record in part},
            )
