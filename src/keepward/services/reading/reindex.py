"""Keep what recall searches up to date: features of the present embedder, and indexes of the database."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from msgspec.structs import replace

from keepward.core.memory import Record, Status
from keepward.core.query import EVERYTHING
from keepward.errors import ModelUnavailable, StoreUnavailable
from keepward.ports.store import Features
from keepward.retrieval.chunking import CURRENT_VERSIONS, PROVIDED, PROVIDED_PREFIX
from keepward.retrieval.tokenizer import has_current_layout
from keepward.services.request_context import Engine, RequestContext
from keepward.services.search.features import (
    answered_questions,
    embedder_id,
    known_embedder_id,
    text_features,
    with_vectors,
)

_log = logging.getLogger(__name__)

#: Memories embedded between two writes of ``reindex``.
EMBEDDING_BATCH = 64


def wants_database_index(engine: Engine, tenant: str) -> bool:
    """Whether policy asks for candidates from the database."""
    if engine.policy.candidates != "auto":
        return engine.policy.candidates == "database"
    limit = engine.policy.process_limit
    return not engine.indexes.is_small(tenant, limit) and sum(engine.store.tally(tenant).values()) > limit


def uses_database_index(engine: Engine, tenant: str) -> bool:
    """Whether a tenant's candidates come from the database; every caller decides by this function."""
    return wants_database_index(engine, tenant) and engine.store.searchable(tenant)


def sync_database_index(engine: Engine, tenant: str, before_batch: Callable[[], None] | None = None) -> None:
    """Build the database's own indexes of a tenant if it is searched there, else drop them.

    Raises:
        StoreUnavailable: policy asks for candidates from a database that lacks pgvector.
    """
    if not wants_database_index(engine, tenant):
        if engine.policy.candidates == "process" and engine.store.searchable(tenant):
            with engine.store.write() as writer:
                writer.forget_candidates(tenant)
        return
    done = engine.store.searchable(tenant)
    if not done:
        try:
            engine.store.create_vectors()
        except StoreUnavailable as exc:
            if engine.policy.candidates == "database":
                raise
            _log.warning("%s; until then the process names them", exc, extra={"action": "candidates_failed"})
            return
    while not done:
        if before_batch is not None:
            before_batch()
        with engine.store.write() as writer:
            done = writer.index_next_batch(tenant)
    engine.store.index_vectors(tenant)


def rebuild(context: RequestContext) -> int:
    """Recompute the tenant's records from the journal; return how many there are."""
    count = context.store.rebuild(context.tenant)
    context.indexes.drop(context.store, context.tenant)
    return count


def lacks_embedding(context: RequestContext) -> bool:
    """Whether an active memory has no vectors of the present embedder and version; False while it has no id."""
    model = known_embedder_id(context.embedder)
    return model is not None and context.store.unembedded(context.tenant, context.clock.now(), model, CURRENT_VERSIONS)


def reindex(
    context: RequestContext,
    *,
    ended: bool = False,
    batch: int = EMBEDDING_BATCH,
    before_batch: Callable[[], None] | None = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> int:
    """Bring every active memory's features up to the present embedder, version and release; return how many changed.

    Each batch is written at once, and a second run continues with the rest. A vector that was supplied with its memory
    stays. Without an embedder so do all others.

    ``ended`` also computes the words of inactive memories, as after a journal was restored. If ``before_batch`` raises,
    the earlier batches stay.

    Raises:
        ModelUnavailable: the embedder failed; what was computed before stays, and the rest keeps its old features.
    """
    model = known_embedder_id(context.embedder)
    if model is None and context.embedder is not None and not ended:
        model = embedder_id(context.embedder)
    if ended:
        _recompute_inactive(context)
    active = list(context.store.indexed(context.tenant))
    stale = [pair for pair in active if _is_stale(*pair, model)]
    # The vectors of a message include the question that it answers.
    questions = answered_questions([record for record, _ in active] if stale else [], lambda _: None)
    replaced = False
    for start in range(0, len(stale), batch):
        if before_batch is not None:
            before_batch()
        part = stale[start : start + batch]
        records = [record for record, _ in part]
        features = [_recomputed_features(*pair, model) for pair in part]
        try:
            computed = with_vectors(context.embedder, records, features, questions)
        except ModelUnavailable as exc:
            if not ended:
                raise ModelUnavailable(f"{exc}; try again, and this goes on where it stopped") from exc
            computed = features
        replaces = any(_is_replaced(old, new) for (_, old), new in zip(part, computed, strict=True))
        replaced = replaced or replaces
        _write_features(context, records, computed, replaces=replaces)
        if on_progress is not None:
            on_progress(min(start + batch, len(stale)), len(stale))
    if replaced or ended:
        context.indexes.drop(context.store, context.tenant)
    elif stale:
        context.indexes.reload(context.store, context.tenant, [record.id for record, _ in stale])
    sync_database_index(context.engine, context.tenant, before_batch)
    return len(stale)


def _is_replaced(before: Features, after: Features) -> bool:
    """Whether an index may have words or vectors that are not stored any more."""
    return before.model is not None or before.terms != after.terms


def _is_stale(record: Record, features: Features, model: str | None) -> bool:
    if model is None:
        # Without vectors there is no stored version, so compare the words.
        return features.terms != text_features(record).terms
    other_version = features.model != model or features.recipe not in CURRENT_VERSIONS
    return other_version or not has_current_layout(features.terms)


def _recomputed_features(record: Record, present: Features, model: str | None) -> Features:
    """Return the recomputed words of a memory, with its present vectors if the embedder must not replace them."""
    words = text_features(record)
    if model is None:
        recipe = present.recipe
    elif present.model == model and present.recipe.startswith(PROVIDED_PREFIX):
        recipe = PROVIDED
    else:
        return words
    return replace(words, model=present.model, recipe=recipe, vectors=present.vectors, units=present.units)


def _recompute_inactive(context: RequestContext) -> None:
    records = context.store.find(context.tenant, EVERYTHING, live_at=None, limit=None).records
    inactive = [record for record in records if record.status is not Status.ACTIVE]
    for start in range(0, len(inactive), EMBEDDING_BATCH):
        batch = inactive[start : start + EMBEDDING_BATCH]
        _write_features(context, batch, [text_features(record) for record in batch], replaces=False)


def _write_features(
    context: RequestContext, records: Sequence[Record], computed: Sequence[Features], *, replaces: bool
) -> None:
    versions = {record.id: record.version for record in records}
    with context.store.write() as writer:
        writer.put_features(context.tenant, dict(zip(versions, computed, strict=True)), versions)
        if replaces:
            writer.note_reindexed(context.tenant)
